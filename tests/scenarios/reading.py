"""How a person reads a reply with care."""

from __future__ import annotations

import re

from tests.scenarios.stage import Player, Seen, Source

MARKER = re.compile(r"\[(\d+)]")
ONLY_MARKERS = re.compile(r"\n\s*\n(?=(?:\[\d+]\s*)+(?:\n|$))")  # a table's stand below it
LEAD_IN = re.compile(r"[:?？：][*_\s]*$|^#")


def statements(text: str) -> list[str]:
    """The paragraphs and list items of a reply, without headings, repeated questions and lead-ins."""
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*•]|\d+\.)\s)", ONLY_MARKERS.sub("\n", text))
    return [block.strip() for block in blocks if block.strip() and not LEAD_IN.search(block.strip())]


def assert_every_statement_is_cited(answer: Seen) -> None:
    numbers = {source.number for source in answer.sources}
    assert numbers, f"no sources below: {answer.text}"
    for statement in statements(answer.text):
        markers = {int(number) for number in MARKER.findall(statement)}
        assert markers, f"without a citation: {statement!r} in {answer.text!r}"
        assert markers <= numbers, f"cites what is not listed: {statement!r}"
    assert numbers == {int(number) for number in MARKER.findall(answer.text)}


async def assert_opens_word_for_word(reader: Player, source: Source) -> None:
    opened = await reader.opens(source)
    assert not opened.deleted
    assert source.quote.strip()
    assert opened.text is None or source.quote in opened.text


def source_of(answer: Seen, words: str) -> Source:
    """The source whose quotation holds these words, wherever its lines break."""
    found = [source for source in answer.sources if words in " ".join(source.quote.split())]
    assert found, f"{words!r} is in none of {[source.quote for source in answer.sources]}"
    return found[0]


def says_nothing_of(words: str, seen: Seen) -> bool:
    shown = [seen.text, *seen.options, *(f"{source.name} {source.quote} {source.place}" for source in seen.sources)]
    return all(words.casefold() not in part.casefold() for part in shown)
