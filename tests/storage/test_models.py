from __future__ import annotations

from storage.models import Anchor, Section, document_id

JOINED = Section(
    1,
    ("Handbook",),
    "# Handbook\n\n## Holidays\n28 days.\n\n### Carrying over\nFive days.\n\n"
    "```sh\n# not a heading\n```\n\n## Notice\n14 days.",
    (Anchor(0, 1, "page 1"), Anchor(60, 2, "page 2")),
)


def at(text: str) -> int:
    return JOINED.text.index(text)


def test_a_place_names_the_nearest_heading_above_it_and_the_page() -> None:
    assert JOINED.place_at(at("28 days")) == "page 1, Handbook › Holidays"
    assert JOINED.place_at(at("Five days")) == "page 1, Handbook › Holidays › Carrying over"
    assert JOINED.place_at(at("14 days")) == "page 2, Handbook › Notice"


def test_a_heading_stands_at_itself() -> None:
    assert JOINED.headings_at(at("Carrying")) == ("Handbook", "Holidays", "Carrying over")


def test_a_line_of_code_is_no_heading() -> None:
    assert JOINED.headings_at(at("not a heading")) == ("Handbook", "Holidays", "Carrying over")


def test_a_section_without_headings_or_pages_has_no_place() -> None:
    assert Section(1, (), "text").place_at(2) == ""


def test_a_document_id_is_stable_and_tells_audiences_apart() -> None:
    assert document_id("w", "channel:a", "x.md") == document_id("w", "channel:a", "x.md")
    assert document_id("w", "channel:a", "x.md") != document_id("w", "channel:b", "x.md")


def test_its_places_tell_as_much_as_the_text() -> None:
    bare = Section(1, (), "", JOINED.places())
    for words in ("28 days", "Five days", "14 days"):
        assert bare.place_at(at(words)) == JOINED.place_at(at(words))
        assert bare.anchor_at(at(words)).page == JOINED.anchor_at(at(words)).page
