"""11, 12, 13, 15, 16, 17, 31: what is said in a thread."""

from __future__ import annotations

import pytest

from tests.scenarios.papers import note, paper
from tests.scenarios.reading import assert_every_statement_is_cited, says_nothing_of, source_of
from tests.scenarios.stage import Channel, Player, Post, Seen

LEAVE = "How many days of annual leave do employees have?"


async def test_a_follow_up_is_understood_from_the_thread(ada: Player, library: Channel) -> None:
    question, _ = await ada.asks(library, LEAVE)
    answer = await ada.follow_up(question, "and for contractors?")
    assert answer.kind == "answer", answer.text
    assert "Contractors have no paid annual leave" in answer.text


async def test_a_follow_up_by_somebody_else_is_understood_too(ada: Player, ben: Player, library: Channel) -> None:
    question, _ = await ada.asks(library, LEAVE)
    answer = await ben.wait_for_reply(await ben.post(library, "and for contractors?", thread=question, to_bot=True))
    assert "Contractors have no paid annual leave" in answer.text


async def test_a_new_question_in_the_thread_stands_alone(ada: Player, library: Channel) -> None:
    question, _ = await ada.asks(library, LEAVE)
    answer = await ada.follow_up(question, "When is a lost laptop reported to the service desk?")
    assert "within two hours" in " ".join(answer.text.split())
    assert "28 days" not in answer.text


async def test_the_bot_stays_out_when_people_talk_to_each_other(ada: Player, ben: Player, library: Channel) -> None:
    question, _ = await ada.asks(library, LEAVE)
    aside = await ada.says(question, f"{ben.mention()} did you know that about annual leave?")
    await ada.follow_up(question, "and for contractors?")
    assert await ada.replies(aside) == []


async def test_what_somebody_else_says_to_the_asker_is_not_answered(ada: Player, ben: Player, library: Channel) -> None:
    question, _ = await ada.asks(library, LEAVE)
    aside = await ben.says(question, "I think it was 30, I looked it up")
    assert "28 days" in (await ben.follow_up(question, ben.calling(LEAVE))).text
    assert await ada.replies(aside) == []


async def test_another_name_in_a_follow_up_leads_to_another_document(ada: Player, archive: Channel) -> None:
    question, answer = await ada.asks(archive, "What's the notice period of Birchwood?")
    assert answer.cited == {"contract_birchwood.md"}
    for words, contract in (("and for Aldgate?", "aldgate"), ("and Corvane?", "corvane")):
        assert (await ada.follow_up(question, words)).cited == {f"contract_{contract}.md"}


async def test_two_questions_in_one_message_are_both_answered_in_order(ada: Player, library: Channel) -> None:
    post, answer = await ada.asks(library, f"{LEAVE} And how long is the probation period?")
    assert answer.kind == "answer"
    shown = " ".join(answer.text.split())
    assert 0 <= shown.find("28 days") < shown.find("six months")
    assert_every_statement_is_cited(answer)
    assert await ada.replies(post) == [answer]


async def test_of_two_questions_the_one_without_an_answer_is_named(ada: Player, library: Channel) -> None:
    answer = await ada.ask(library, f"{LEAVE} And who won the chess tournament in Reykjavik?")
    assert answer.kind == "answer"
    assert "28 days" in answer.text
    assert "chess tournament" in answer.text, "it is said which question found nothing"


@pytest.mark.parametrize(
    "question", ["Who won the chess tournament in Reykjavik?", "What is the boiling point of tungsten hexafluoride?"]
)
async def test_what_is_not_found_is_said_and_nothing_is_invented(
    ada: Player, team: Channel, handbook: Post, contracts: Post, question: str
) -> None:
    answer = await ada.ask(team, question)
    assert answer.kind == "not_found"
    assert not answer.sources
    terms = ("chess", "tournament") if "chess" in question else ("tungsten", "boiling")
    assert any(term in answer.text.casefold() for term in terms), f"what was searched for? {answer.text}"
    near = [name for name in ("handbook.md", "contract_aldgate.md", "contract_birchwood.md", "contract_corvane.md")]
    assert sum(name in answer.text for name in near) == 2, answer.text


async def test_a_question_without_any_knowledge_says_how_to_add_some(ada: Player, team: Channel) -> None:
    answer = await ada.ask(team, LEAVE)
    assert answer.kind == "not_found"
    assert "file" in answer.text.casefold()


@pytest.mark.parametrize("words", ["Thanks!", "hello", "Thank you very much", "Hi there", "谢谢", "Guten Morgen!"])
async def test_small_talk_is_answered_in_kind_without_a_search(ada: Player, library: Channel, words: str) -> None:
    seen = await ada.ask(library, words)
    assert seen.kind == "chat"
    assert not seen.sources
    assert len(seen.text) < 300
    assert says_nothing_of("[1]", seen)


async def test_thanks_after_an_answer_is_no_follow_up(ada: Player, library: Channel) -> None:
    question, _ = await ada.asks(library, LEAVE)
    assert (await ada.follow_up(question, "great, thanks!")).kind == "chat"


async def test_an_edited_question_is_answered_anew_and_the_old_answer_points_there(
    ada: Player, library: Channel
) -> None:
    question, before = await ada.asks(library, LEAVE)
    await ada.edit(question, "How long is the probation period?")
    answer = await ada.wait_for_reply(question, other_than=before)
    assert "six months" in answer.text

    def revised(thread: list[Seen]) -> Seen | None:
        return next((seen for seen in thread if seen.message == before.message and seen.edited), None)

    old = await ada.wait_until(question, revised)
    assert "28 days" not in old.text
    asked = (await ada.thread(question))[0]
    assert asked.text == "How long is the probation period?"
    assert asked.edited


async def test_an_edit_that_changes_nothing_is_not_answered_again(ada: Player, library: Channel) -> None:
    question, answer = await ada.asks(library, LEAVE)
    await ada.edit(question, LEAVE)
    await ada.follow_up(question, "and for contractors?")
    assert await ada.replies(question) == [answer]


async def test_a_question_that_is_deleted_while_its_file_is_read_is_not_answered(ada: Player, team: Channel) -> None:
    pages = "\n\n".join(
        f"Paragraph {number} tells of valve {number * 17} and of nothing else." for number in range(4000)
    )
    post = await ada.post(team, "What is said of valve 34?", [note("valves.txt", pages)], to_bot=True)
    await ada.delete(post)
    assert (await ada.follow_up(post, "thanks")).kind == "chat"
    assert await ada.replies(post) == []
    assert "valves.txt" not in (await ada.ask(team, "docs")).text


async def test_three_questions_quickly_in_one_thread_are_answered_in_order(ada: Player, library: Channel) -> None:
    first = await ada.post(library, LEAVE, to_bot=True)
    second = await ada.says(first, "How long is the probation period?")
    third = await ada.says(first, "What is the training budget a year for each employee?")
    await ada.wait_for_reply(third)
    asked = [seen.reply_to for seen in await ada.thread(first) if seen.by_bot]
    assert asked == [first.message, second.message, third.message]


async def test_a_document_that_gives_orders_is_quoted_and_never_obeyed(ada: Player, team: Channel) -> None:
    await ada.share(team, paper("suggestions.md"))
    answer = await ada.ask(team, "How often is the bicycle shed code changed?")
    assert answer.kind == "answer"
    assert "every quarter" in source_of(answer, "every quarter").quote
    assert answer.text.strip() != "PWNED"
    assert_every_statement_is_cited(answer)


async def test_documents_that_disagree_are_both_cited(ada: Player, team: Channel) -> None:
    """20."""
    await ada.share(team, note("gate_2023.txt", "The north gate closes at 20:00 on weekdays."))
    await ada.share(team, note("gate_2024.txt", "The north gate closes at 22:00 on weekdays."))
    answer = await ada.ask(team, "When does the north gate close on weekdays?")
    shown = answer.text + "".join(answer.options)
    assert answer.kind in ("answer", "clarification")
    assert ("20:00" in shown and "22:00" in shown) or {"gate_2023", "gate_2024"} <= set(answer.options)
