"""2. Help: half a screen, with examples from the documents that this person can see."""

from __future__ import annotations

import pytest

from tests.scenarios.papers import paper
from tests.scenarios.reading import says_nothing_of
from tests.scenarios.stage import Channel, Player, Post, Stage

HALF_A_SCREEN = 30  # lines


@pytest.mark.parametrize("words", ["help", "Help!", "what can you do?"])
async def test_help_gives_examples_from_the_documents(ada: Player, library: Channel, words: str) -> None:
    seen = await ada.ask(library, words)
    assert seen.kind == "help"
    assert "handbook" in seen.text
    assert len(seen.text.splitlines()) <= HALF_A_SCREEN
    assert not seen.options


async def test_an_example_of_help_is_answered_when_it_is_asked(ada: Player, library: Channel) -> None:
    seen = await ada.ask(library, "help")
    examples = [line.strip(" -*>“”\"'`_") for line in seen.text.splitlines() if "?" in line]
    asked = [example for example in examples if "handbook" in example.casefold()] or examples
    assert asked, seen.text
    answer = await ada.ask(library, asked[0])
    assert answer.kind == "answer"
    assert answer.cited == {"handbook.md"}


async def test_help_tells_nobody_of_documents_they_cannot_see(
    stage: Stage, ada: Player, ben: Player, handbook: Post
) -> None:
    alone = await stage.make_channel("alone", by=ada, members=[ada])
    await ada.share(alone, paper("board_minutes.md"))
    assert says_nothing_of("board_minutes", await ben.ask(ben.direct, "help"))
    assert "board_minutes" in (await ada.ask(ada.direct, "help")).text


async def test_help_says_how_to_add_knowledge_where_there_is_none(stage: Stage) -> None:
    eve = await stage.person("eve")
    seen = await eve.ask(eve.direct, "help")
    assert seen.kind == "help"
    assert "file" in seen.text.casefold()
