"""14: who sees what. Some documents here are for everyone, so this module has a bot of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.running import RunningBot
from tests.scenarios.conftest import Bots
from tests.scenarios.papers import note, paper
from tests.scenarios.reading import says_nothing_of
from tests.scenarios.stage import Channel, Player, Stage, TurnedAway

SECRET = "What is the code name of the purchase?"


@pytest.fixture
def bot(bots: Bots, platform: str, store: str, settings: dict[str, str]) -> RunningBot:
    return bots.called(f"audience {platform} {store}", settings)


@pytest.fixture
async def board(stage: Stage, ada: Player) -> Channel:
    """A private channel of Ada's, with the minutes of the board."""
    channel = await stage.make_channel("board", by=ada, members=[ada])
    await ada.share(channel, paper("board_minutes.md"))
    return channel


async def test_a_private_document_serves_its_members_in_its_channel(ada: Player, board: Channel) -> None:
    assert "Heron" in (await ada.ask(board, SECRET)).text


async def test_a_direct_message_draws_on_the_private_channels_of_this_person(ada: Player, board: Channel) -> None:
    answer = await ada.ask(ada.direct, SECRET)
    assert "Heron" in answer.text
    assert answer.cited == {"board_minutes.md"}


async def test_a_direct_message_never_draws_on_the_private_channels_of_others(
    ada: Player, ben: Player, board: Channel
) -> None:
    answer = await ben.ask(ben.direct, SECRET)
    assert answer.kind == "not_found"
    assert says_nothing_of("Heron", answer)
    assert says_nothing_of("board_minutes", answer)


async def test_an_answer_in_a_channel_never_draws_on_a_private_one_even_for_its_member(
    stage: Stage, ada: Player, team: Channel, board: Channel
) -> None:
    everyone = await stage.make_channel("everyone", by=ada)
    for channel in (team, everyone):
        answer = await ada.ask(channel, SECRET)
        assert answer.kind == "not_found"
        assert says_nothing_of("Heron", answer)
        assert says_nothing_of("board_minutes", answer)


async def test_what_was_said_in_private_is_not_carried_into_another_thread(
    ada: Player, team: Channel, board: Channel
) -> None:
    await ada.ask(board, SECRET)
    asked, _ = await ada.asks(team, "What is the code name?")
    assert says_nothing_of("Heron", await ada.follow_up(asked, "and of the purchase?"))


async def test_a_public_document_serves_everyone(stage: Stage, ada: Player, ben: Player, team: Channel) -> None:
    everyone = await stage.make_channel("everyone", by=ada)
    await ada.share(everyone, note("parking.txt", "The parking deck Oderberg opens at 5:45."))
    for channel in (everyone, team, ben.direct):
        assert "5:45" in (await ben.ask(channel, "When does the parking deck Oderberg open?")).text


async def test_a_channel_made_private_takes_effect_at_once(stage: Stage, ada: Player, ben: Player) -> None:
    project = await stage.make_channel("project", by=ada)
    await ada.share(project, note("tender.txt", "The tender for the weir at Lauenburg ends on 9 June."))
    question = "When does the tender for the weir at Lauenburg end?"
    asked, answer = await ben.asks(ben.direct, question)
    assert "9 June" in answer.text
    await stage.change_channel(project, by=ada, members=[ada])
    assert says_nothing_of("9 June", await ben.ask(ben.direct, question))
    assert says_nothing_of("9 June", await ben.follow_up(asked, question))
    with pytest.raises(TurnedAway):
        await ben.opens(answer.sources[0])


async def test_a_member_who_has_left_no_longer_sees_it(stage: Stage, ada: Player, ben: Player) -> None:
    project = await stage.make_channel("project", by=ada, members=[ada, ben])
    await ada.share(project, note("tender.txt", "The tender for the lock at Geesthacht ends on 7 July."))
    question = "When does the tender for the lock at Geesthacht end?"
    assert "7 July" in (await ben.ask(ben.direct, question)).text
    await stage.change_channel(project, by=ada, members=[ada])
    assert says_nothing_of("7 July", await ben.ask(ben.direct, question))
    with pytest.raises(TurnedAway):
        await ben.ask(project, question)


async def test_who_is_no_member_can_do_nothing_in_a_private_channel(ada: Player, ben: Player, board: Channel) -> None:
    asked, answer = await ada.asks(board, SECRET)
    attempts: list[Callable[[], object]] = [
        lambda: ben.post(board, SECRET, to_bot=True),
        lambda: ben.post(board, SECRET, thread=asked),
        lambda: ben.post(board, files=[paper("handbook.md")]),
        lambda: ben.thread(asked),
        lambda: ben.opens(answer.sources[0]),
        lambda: ben.edit(asked, "mine now"),
        lambda: ben.delete(asked),
        lambda: ben.post(ada.direct, SECRET),
    ]
    for attempt in attempts:
        with pytest.raises(TurnedAway) as told:
            await attempt()  # type: ignore[misc]
        assert "Heron" not in told.value.text
        assert "board_minutes" not in told.value.text


async def test_a_clarification_names_no_document_of_a_private_channel(
    stage: Stage, ada: Player, ben: Player, team: Channel
) -> None:
    alone = await stage.make_channel("alone", by=ada, members=[ada])
    await ada.share(alone, note("loan_private.txt", "Loan of the private kind. The interest rate is 3 percent."))
    await ben.share(team, note("loan_north.txt", "Loan of the northern plant. The interest rate is 4 percent."))
    await ben.share(team, note("loan_south.txt", "Loan of the southern plant. The interest rate is 5 percent."))
    card = await ben.ask(team, "What is the interest rate?")
    assert card.kind == "clarification"
    assert len(card.options) == 2
    assert says_nothing_of("private", card)


async def test_a_candidate_that_became_private_meanwhile_can_no_longer_be_chosen(
    stage: Stage, ada: Player, ben: Player, team: Channel
) -> None:
    plant = await stage.make_channel("plant", by=ada)
    await ada.share(plant, note("tariff_north.txt", "Tariff of the northern mill. The hourly wage is 31 euros."))
    await ben.share(team, note("tariff_south.txt", "Tariff of the southern mill. The hourly wage is 47 euros."))
    asked, card = await ben.asks(team, "What is the hourly wage in the mill?")
    assert card.kind == "clarification"
    north = next(option for option in card.options if "north" in option)
    await stage.change_channel(plant, by=ada, members=[ada])
    with pytest.raises(TurnedAway) as told:
        await ben.click(card, north)
    assert "no longer available" in told.value.text
    assert "north" not in told.value.text
    answer = await ben.follow_up(asked, "both")
    assert "47" in answer.text
    assert says_nothing_of("31", answer)
    assert says_nothing_of("north", answer)
