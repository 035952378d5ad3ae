"""21 to 24: an unclear question comes back as a question in the thread."""

from __future__ import annotations

import asyncio

import pytest

from tests.scenarios.papers import note
from tests.scenarios.stage import Channel, Player, Post, Seen, TurnedAway

UNCLEAR = "What's the notice period?"
NOTICE = {"aldgate": "30 days", "birchwood": "six weeks", "corvane": "three months"}


def option_for(card: Seen, contract: str) -> str:
    """The button that stands for this contract."""
    found = [option for option in card.options if contract in option.casefold()]
    assert len(found) == 1, f"{contract} in {card.options}: {card.kind} {card.text}"
    return found[0]


async def test_an_unclear_question_is_asked_back_with_a_button_for_each_candidate(
    ada: Player, archive: Channel
) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    assert card.kind == "clarification"
    assert len(card.options) == 3
    for contract in NOTICE:
        assert option_for(card, contract)
    assert "type" in card.text.casefold()
    assert not card.sources
    assert await ada.replies(post) == [card], "nothing is answered meanwhile"


async def test_no_more_than_five_buttons_are_offered(ada: Player, team: Channel) -> None:
    towns = ("Porto", "Faro", "Braga", "Evora", "Coimbra", "Aveiro", "Sintra")
    leases = [
        note(f"lease_{town.lower()}.txt", f"Lease of the {town} depot. The monthly rent is {n}00 euros.")
        for n, town in enumerate(towns, 3)
    ]
    await ada.share(team, *leases)
    card = await ada.ask(team, "What is the monthly rent?")
    assert card.kind == "clarification"
    assert 2 <= len(card.options) <= 5


async def test_a_question_that_tells_them_apart_is_answered_at_once(ada: Player, archive: Channel) -> None:
    answer = await ada.ask(archive, "What's the notice period of the contract with Corvane Logistics?")
    assert answer.kind == "answer", answer.text
    assert "three months" in answer.text
    assert answer.cited == {"contract_corvane.md"}


@pytest.mark.parametrize("words", ["tell me about that thing", "what about it?"])
async def test_a_question_that_refers_to_nothing_is_asked_back_openly(
    ada: Player, team: Channel, handbook: Post, contracts: Post, words: str
) -> None:
    card = await ada.ask(team, words)
    assert card.kind == "clarification"
    assert len(card.options) <= 3
    assert "?" in card.text
    assert not card.sources


async def test_a_click_is_answered_in_the_thread(ada: Player, archive: Channel) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    click = await ada.click(card, option_for(card, "birchwood"))
    answer = await ada.wait_for_reply(click)
    assert click.thread == post.thread
    assert answer.kind == "answer"
    assert "six weeks" in answer.text
    assert answer.cited == {"contract_birchwood.md"}


async def test_the_buttons_give_way_to_the_choice(ada: Player, archive: Channel) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    choice = option_for(card, "aldgate")
    await ada.clicks(card, choice)
    thread = await ada.thread(post)
    (decided,) = [seen for seen in thread if seen.message == card.message]
    assert not decided.options
    assert any(choice in seen.text for seen in thread), "the choice can be read in the thread"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("the second one", 1),
        ("2", 1),
        ("the last one please", 2),
        ("Aldgate", "30 days"),
        ("I mean the one with Corvane Logistics", "three months"),
        ("the one for the canteen", "six weeks"),
    ],
)
async def test_a_typed_choice_is_understood(ada: Player, archive: Channel, typed: str, expected: int | str) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    answer = await ada.follow_up(post, typed)
    wanted = expected if isinstance(expected, str) else fact_of(card.options[expected])
    assert answer.kind == "answer", answer.text
    assert wanted in answer.text
    others = set(NOTICE.values()) - {wanted}
    assert not any(other in answer.text for other in others), answer.text


async def test_both_or_all_of_them_answers_for_each(ada: Player, team: Channel) -> None:
    await ada.share(team, note("depot_north.txt", "Depot north: the rent is 310 euros."))
    await ada.share(team, note("depot_south.txt", "Depot south: the rent is 470 euros."))
    post, card = await ada.asks(team, "What is the rent?")
    assert card.kind == "clarification"
    answer = await ada.follow_up(post, "both")
    assert "310 euros" in answer.text
    assert "470 euros" in answer.text
    assert answer.cited == {"depot_north.txt", "depot_south.txt"}


async def test_a_new_question_instead_is_answered_and_the_card_is_closed(
    ada: Player, team: Channel, handbook: Post, contracts: Post
) -> None:
    post, card = await ada.asks(team, UNCLEAR)
    answer = await ada.follow_up(post, "How many days of annual leave do employees have?")
    assert "28 days" in answer.text
    (closed,) = [seen for seen in await ada.thread(post) if seen.message == card.message]
    assert not closed.options


async def test_an_open_question_is_answered_by_what_is_typed(ada: Player, library: Channel) -> None:
    post, card = await ada.asks(library, "tell me about that thing")
    assert card.kind == "clarification"
    answer = await ada.follow_up(post, "the probation period")
    assert answer.kind == "answer", answer.text
    assert "six months" in answer.text


async def test_someone_elses_click_changes_nothing(ada: Player, ben: Player, archive: Channel) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    with pytest.raises(TurnedAway) as told:
        await ben.click(card, card.options[0])
    assert told.value.why == "not allowed"
    assert told.value.text
    assert await ada.replies(post) == [card]
    assert len(await ada.thread(post)) == 2
    assert "30 days" in (await ada.clicks(card, option_for(card, "aldgate"))).text


async def test_someone_elses_words_do_not_decide(ada: Player, ben: Player, archive: Channel) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    await ben.post(archive, "the second one", thread=post)
    assert "three months" in (await ada.clicks(card, option_for(card, "corvane"))).text


async def test_a_second_click_is_told_that_it_is_decided(ada: Player, archive: Channel) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    await ada.clicks(card, option_for(card, "aldgate"))
    with pytest.raises(TurnedAway) as told:
        await ada.click(card, option_for(card, "corvane"))
    assert told.value.why == "too late"
    assert answers(await ada.thread(post)) == 1


async def test_two_clicks_at_once_get_one_answer(ada: Player, archive: Channel) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    clicks = [ada.click(card, option_for(card, contract)) for contract in NOTICE]
    done = await asyncio.gather(*clicks, return_exceptions=True)
    (taken,) = [each for each in done if isinstance(each, Post)]
    assert {each.why for each in done if isinstance(each, TurnedAway)} == {"too late"}
    await ada.wait_for_reply(taken)
    await ada.follow_up(post, "thanks")
    assert answers(await ada.thread(post)) == 1


async def test_a_click_after_it_was_typed_is_too_late(ada: Player, archive: Channel) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    await ada.follow_up(post, "Aldgate")
    with pytest.raises(TurnedAway) as told:
        await ada.click(card, option_for(card, "aldgate"))
    assert told.value.why == "too late"
    assert answers(await ada.thread(post)) == 1


async def test_a_deleted_candidate_is_not_answered_from(ada: Player, team: Channel) -> None:
    post, _ = await ada.shares(team, note("depot_north.txt", "Depot north: the rent is 310 euros."))
    await ada.share(team, note("depot_south.txt", "Depot south: the rent is 470 euros."))
    _, card = await ada.asks(team, "What is the rent?")
    assert card.kind == "clarification"
    await ada.delete(post)
    try:
        answer = await ada.clicks(card, option_for(card, "north"))
    except TurnedAway:
        return
    assert "310" not in answer.text
    assert "depot_north.txt" not in answer.cited


async def test_a_number_that_no_button_has_is_asked_back_again(ada: Player, archive: Channel) -> None:
    post, card = await ada.asks(archive, UNCLEAR)
    again = await ada.follow_up(post, "7")
    assert (again.kind, again.options) == ("clarification", card.options)
    assert (await ada.follow_up(post, "3")).kind == "answer"


async def test_the_words_of_a_choice_go_with_their_message(ada: Player, archive: Channel) -> None:
    post, _ = await ada.asks(archive, UNCLEAR)
    said = await ada.says(post, "the one with Corvane, for Mrs. Quillfeather")
    await ada.wait_for_reply(said)
    await ada.wait_until(post, lambda thread: any("Quillfeather" in seen.chosen for seen in thread) or None)
    await ada.delete(said)
    await ada.wait_until(post, lambda thread: "Quillfeather" not in repr(thread) or None)


async def test_a_file_that_comes_meanwhile_is_no_option(ada: Player, team: Channel) -> None:
    await ada.share(team, note("depot_north.txt", "Depot north: the rent is 310 euros."))
    await ada.share(team, note("depot_south.txt", "Depot south: the rent is 470 euros."))
    post, card = await ada.asks(team, "What is the rent?")
    await ada.share(team, note("depot_west.txt", "Depot west: the rent is 550 euros."))
    assert await ada.replies(post) == [card]
    answer = await ada.follow_up(post, "both")
    assert answer.cited == {"depot_north.txt", "depot_south.txt"}
    assert "310" in answer.text and "470" in answer.text and "550" not in answer.text


async def test_a_candidate_that_is_posted_again_is_answered_from_its_new_version(ada: Player, team: Channel) -> None:
    await ada.share(team, note("depot_north.txt", "Depot north: the rent is 310 euros."))
    await ada.share(team, note("depot_south.txt", "Depot south: the rent is 470 euros."))
    _, card = await ada.asks(team, "What is the rent?")
    await ada.share(team, note("depot_north.txt", "Depot north: the rent is 340 euros."))
    answer = await ada.clicks(card, option_for(card, "north"))
    assert "340" in answer.text and "310" not in answer.text


def answers(thread: list[Seen]) -> int:
    return sum(seen.by_bot and seen.kind in ("answer", "not_found", "error") for seen in thread)


def fact_of(option: str) -> str:
    (fact,) = [fact for contract, fact in NOTICE.items() if contract in option.casefold()]
    return fact
