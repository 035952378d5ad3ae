"""10. A question: a sign of life soon, then an answer whose each statement is cited."""

from __future__ import annotations

import time

from tests.scenarios.papers import pdf
from tests.scenarios.reading import assert_every_statement_is_cited, assert_opens_word_for_word, source_of
from tests.scenarios.stage import Channel, Player, Post

QUESTION = "How many days of annual leave do employees have?"


async def test_a_question_is_answered_and_cited(ada: Player, library: Channel) -> None:
    post, answer = await ada.asks(library, QUESTION)
    assert answer.kind == "answer"
    assert "28 days" in answer.text
    assert_every_statement_is_cited(answer)
    assert await ada.replies(post) == [answer]


async def test_a_source_names_document_and_place_and_links_to_the_post(
    ada: Player, team: Channel, handbook: Post
) -> None:
    answer = await ada.ask(team, QUESTION)
    source = source_of(answer, "28 days")
    assert source.name == "handbook.md"
    assert "Annual leave" in source.place
    linked = await ada.follows(source.link)
    assert linked.message == handbook.message
    assert [file.name for file in linked.files] == ["handbook.md"]


async def test_a_citation_opens_the_quoted_place_word_for_word(ada: Player, library: Channel) -> None:
    answer = await ada.ask(library, QUESTION)
    for source in answer.sources:
        await assert_opens_word_for_word(ada, source)


async def test_a_source_in_a_pdf_names_its_page(ada: Player, team: Channel) -> None:
    await ada.share(
        team, pdf("rota.pdf", ["The gate opens at 6.", "The crane is inspected every Monday.", "No post on Sunday."])
    )
    answer = await ada.ask(team, "When is the crane inspected?")
    source = source_of(answer, "every Monday")
    assert source.page == 2
    assert "page 2" in source.place


async def test_a_sign_of_life_comes_within_a_second(ada: Player, library: Channel) -> None:
    await ada.ask(library, "How many hours has a full working week?")
    asked = time.monotonic()
    post = await ada.post(library, QUESTION, to_bot=True)
    assert await ada.sees_progress(post)
    assert time.monotonic() - asked < 1


async def test_the_answer_streams(ada: Player, library: Channel) -> None:
    post, answer = await ada.asks(library, QUESTION)
    pieces = await ada.saw_streamed(post)
    assert pieces
    assert "".join(pieces).strip() == answer.text.strip()


async def test_others_in_the_channel_see_the_answer(ada: Player, ben: Player, library: Channel) -> None:
    post, answer = await ada.asks(library, QUESTION)
    assert await ben.wait_for_reply(post) == answer


async def test_an_answer_takes_no_model_when_none_is_configured_and_stays_verbatim(
    ada: Player, library: Channel
) -> None:
    answer = await ada.ask(library, "What must be reported within two hours?")
    source = source_of(answer, "lost or stolen laptop")
    assert " ".join(source.quote.split()) in " ".join(answer.text.replace("> ", "").split())


async def test_a_question_that_is_too_long_is_refused_with_advice(ada: Player, library: Channel) -> None:
    told = await ada.is_told(library, "Why? " * 2000)
    assert "4,000" in told or "4000" in told
    assert "file" in told.casefold() or "short" in told.casefold()


async def test_nobody_asks_more_than_ten_questions_a_minute(ada: Player, team: Channel, handbook: Post) -> None:
    """30: a friendly word to that person alone; files are no questions, and what was asked before is answered."""
    posts = [await ada.post(team, f"{QUESTION} ({number})", to_bot=True) for number in range(10)]
    assert "minute" in await ada.is_told(team, QUESTION)
    for post in posts:
        assert (await ada.wait_for_reply(post)).kind == "answer"
    assert (await ada.ask(team, "docs")).kind == "help"
