from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.outcomes import Citation, Option
from bot import rendering
from bot.messages import Reply
from ingest.ingestor import Verdict

LIMIT = 200


def reply(text: str) -> Reply:
    return Reply(kind="answer", text=text)


def cited(number: int) -> Citation:
    return Citation(number=number, document="d", version=1, name="a.md", section=1, quote="q")


def bare(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_a_short_reply_is_one_part() -> None:
    assert rendering.split(reply("short"), LIMIT) == [reply("short")]


def test_a_long_reply_is_cut_between_paragraphs() -> None:
    paragraphs = [f"Paragraph {number} " + "word " * 15 for number in range(8)]
    parts = rendering.split(reply("\n\n".join(paragraphs)), LIMIT)
    assert len(parts) > 1
    assert all(len(part.text) <= LIMIT for part in parts)
    assert "\n\n".join(part.text for part in parts).split("\n\n") == [each for each in paragraphs]


def test_a_code_fence_stays_whole_where_it_fits() -> None:
    fence = "```python\n" + "x = 1\n\n" * 10 + "```"
    parts = rendering.split(reply("\n\n".join(["intro " * 25, fence, "outro " * 25])), LIMIT)
    assert any(fence in part.text for part in parts)


def test_a_code_fence_that_is_too_long_is_closed_and_opened_again() -> None:
    fence = "```python\n" + "\n".join(f"line_{number} = {number}" for number in range(60)) + "\n```"
    parts = rendering.split(reply(fence), LIMIT)
    assert all(part.text.startswith("```python\n") and part.text.endswith("\n```") for part in parts)
    assert all(len(part.text) <= LIMIT for part in parts)


def test_each_part_carries_the_citations_that_it_names_and_the_last_one_the_options() -> None:
    text = "\n\n".join(f"Statement {number} {'w ' * 60}[{number}]" for number in (1, 2, 3))
    whole = Reply(
        kind="answer", text=text, citations=(cited(1), cited(2), cited(3)), options=(Option(label="a"),), feedback=True
    )
    parts = rendering.split(whole, LIMIT)
    assert [[each.number for each in part.citations] for part in parts] == [[1], [2], [3]]
    assert [bool(part.options) for part in parts] == [False, False, True]
    assert [part.feedback for part in parts] == [False, False, True]


@given(st.text(alphabet=st.sampled_from("ab `\n~|-#本"), max_size=1500))
def test_no_part_passes_its_limit_and_no_character_is_lost(text: str) -> None:
    parts = rendering.split(reply(text), 60)
    assert all(len(part.text) <= 60 for part in parts)
    if "```" not in text and "~~~" not in text:
        assert bare("".join(part.text for part in parts)) == bare(text)


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        (
            Verdict(name="handbook.pdf", verdict="indexed", reason="", pages=84, passages=1212, version=1),
            "*handbook.pdf*: 84 pages, 1,212 passages, ready",
        ),
        (Verdict(name="a.md", verdict="indexed", reason="", passages=1, version=1), "*a.md*: 1 passage, ready"),
        (Verdict(name="a.md", verdict="unchanged", reason=""), "*a.md*: already known"),
        (Verdict(name="a.zip", verdict="refused", reason="it is empty"), "*a.zip*: not read: it is empty"),
        (
            Verdict(
                name="a_b.md",
                verdict="superseded",
                reason="",
                passages=2,
                version=2,
                replaces=1772496000.0,
                replaces_version=1,
            ),
            "*a\\_b.md*: version 2, replaces version 1 of 3 March 2026: 2 passages, ready",
        ),
        (
            Verdict(name="a.md", verdict="superseded", reason="a later post of it answers", version=2),
            "*a.md*: version 2: a later post of it answers",
        ),
    ],
)
def test_every_verdict_is_one_line(verdict: Verdict, line: str) -> None:
    assert rendering.file_line(verdict).text == line
