"""9. A file with a question, outside a knowledge channel: the file serves this thread only."""

from __future__ import annotations

import pytest

from tests.scenarios.papers import paper
from tests.scenarios.reading import assert_opens_word_for_word, says_nothing_of
from tests.scenarios.stage import Channel, Player, Stage

QUESTION = "What does clause 7 say?"


@pytest.fixture
async def lobby(stage: Stage, ada: Player, ben: Player) -> Channel:
    """A channel whose files are no knowledge."""
    return await stage.make_channel("lobby", by=ada, members=[ada, ben], knowledge=False)


async def test_the_file_answers_the_question_it_came_with(ada: Player, lobby: Channel) -> None:
    answer = await ada.ask(lobby, QUESTION, [paper("clauses.md")])
    assert answer.kind == "answer"
    assert "written consent of the landlord" in answer.text
    assert answer.cited == {"clauses.md"}
    await assert_opens_word_for_word(ada, answer.sources[0])


async def test_the_file_answers_later_questions_of_the_thread(ada: Player, ben: Player, lobby: Channel) -> None:
    post, _ = await ada.asks(lobby, QUESTION, [paper("clauses.md")])
    answer = await ada.follow_up(post, "And who insures the building?")
    assert answer.kind == "answer", answer.text
    assert "landlord insures the building" in answer.text


async def test_the_file_serves_no_other_thread(ada: Player, lobby: Channel) -> None:
    await ada.ask(lobby, QUESTION, [paper("clauses.md")])
    elsewhere = await ada.ask(lobby, "Who insures the building of the warehouse against fire and flood?")
    assert elsewhere.kind == "not_found"
    assert says_nothing_of("clauses.md", elsewhere)
    private = await ada.ask(ada.direct, "Who insures the building of the warehouse against fire and flood?")
    assert private.kind == "not_found"
    assert "clauses.md" not in (await ada.ask(lobby, "docs")).text


async def test_a_file_posted_to_a_thread_with_a_question_serves_it(ada: Player, lobby: Channel) -> None:
    post, first = await ada.asks(lobby, "Who insures the building of the warehouse?")
    assert first.kind == "not_found"
    within = await ada.says(post, "Who insures the building of the warehouse?", [paper("clauses.md")])
    assert "landlord insures the building" in (await ada.wait_for_reply(within)).text
