"""7. A post or file is deleted: it answers nothing from then on."""

from __future__ import annotations

from tests.scenarios.papers import changed, paper
from tests.scenarios.reading import says_nothing_of
from tests.scenarios.stage import Channel, Player, Post

QUESTION = "How many days of annual leave do employees have?"


async def test_a_deleted_post_answers_nothing(ada: Player, team: Channel, handbook: Post) -> None:
    assert (await ada.ask(team, QUESTION)).kind == "answer"
    await ada.delete(handbook)
    answer = await ada.ask(team, QUESTION)
    assert answer.kind == "not_found"
    assert says_nothing_of("handbook.md", answer)


async def test_docs_no_longer_lists_what_was_deleted(ada: Player, team: Channel, handbook: Post) -> None:
    assert "handbook.md" in (await ada.ask(team, "docs")).text
    await ada.delete(handbook)
    assert "handbook.md" not in (await ada.ask(team, "docs")).text


async def test_a_citation_of_a_deleted_document_opens_as_deleted(ada: Player, team: Channel, handbook: Post) -> None:
    answer = await ada.ask(team, QUESTION)
    await ada.delete(handbook)
    await ada.ask(team, QUESTION)
    opened = await ada.opens(answer.sources[0])
    assert opened.deleted
    assert "28 days" not in (opened.text or "")


async def test_what_rests_on_a_deleted_document_is_not_recalled(ada: Player, team: Channel, handbook: Post) -> None:
    question, _ = await ada.asks(team, QUESTION)
    await ada.delete(handbook)
    answer = await ada.follow_up(question, "and for contractors?")
    assert answer.kind in ("not_found", "clarification")
    assert says_nothing_of("handbook.md", answer)


async def test_deleting_the_post_of_an_older_version_changes_nothing(
    ada: Player, team: Channel, handbook: Post
) -> None:
    await ada.share(team, changed(paper("handbook.md"), "28 days", "31 days"))
    await ada.delete(handbook)
    assert "31 days" in (await ada.ask(team, QUESTION)).text


async def test_deleting_the_current_version_does_not_bring_the_older_one_back(
    ada: Player, team: Channel, handbook: Post
) -> None:
    newer, _ = await ada.shares(team, changed(paper("handbook.md"), "28 days", "31 days"))
    await ada.delete(newer)
    assert (await ada.ask(team, QUESTION)).kind == "not_found"


async def test_a_deleted_file_can_be_posted_again(ada: Player, team: Channel, handbook: Post) -> None:
    await ada.delete(handbook)
    report = await ada.share(team, paper("handbook.md"))
    assert [file.verdict for file in report.files] in (["indexed"], ["superseded"])
    assert "28 days" in (await ada.ask(team, QUESTION)).text
