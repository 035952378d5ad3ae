"""Whatever the text: nothing is lost, nothing passes its bound, and each passage knows where it stands."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.parts import Heading, Part
from ingest.split import BOUND, OVERLAP, SECTION, count_tokens, passages, split, whole_text
from storage.models import Document, DocumentState, Passage, Section

DOCUMENT = Document(
    document="d",
    version=3,
    workspace="w",
    channel="c",
    audience="channel:c",
    name="n.md",
    state=DocumentState.PENDING,
    verdict="",
    reason="",
    content_hash="",
    size=0,
    pages=0,
    sections=0,
    passages=0,
    posted_by="u",
    posted_at=0,
    message="m",
    link="",
)

WORDS = st.sampled_from(
    [
        "word",
        "internationalization",
        "x" * 300,
        "是",
        "合同期限为三年。",
        "12345678",
        "end. ",
        "\n",
        "\n\n",
        " ",
        " " * 70,
    ]
    + [
        "# Title\n",
        "## Sub\n",
        "```\n",
        "~~~\n",
        "| a | b |\n",
        "|---|---|\n",
        "😀",
        "\u200b",
        "é",
        "\r\n",
        "\t",
        "###\n",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=400),
    st.lists(WORDS, max_size=400).map("".join),
    st.tuples(WORDS, st.integers(1, 3000)).map(lambda pair: pair[0] * pair[1]),
)


def parts_of(texts: list[str]) -> list[Part]:
    return [Part(number, f"page {number}", text) for number, text in enumerate(texts, 1)]


def cut(*texts: str) -> tuple[list[Section], list[Passage]]:
    sections = split(parts_of(list(texts)))
    return sections, passages(DOCUMENT, sections)


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, max_size=4))
def test_no_text_is_lost_and_no_passage_passes_its_bound(texts: list[str]) -> None:
    parts = parts_of(texts)
    sections = split(parts)
    found = passages(DOCUMENT, sections)

    assert "".join(section.text for section in sections) == whole_text(parts)
    assert [section.number for section in sections] == list(range(1, len(sections) + 1))
    assert [passage.number for passage in found] == list(range(1, len(found) + 1))
    assert all(count_tokens(passage.text) <= BOUND for passage in found)
    assert all(count_tokens(section.text) <= SECTION + 1 for section in sections)
    for section in sections:
        own = [passage for passage in found if passage.section == section.number]
        assert_covers(section, own)


def assert_covers(section: Section, own: list[Passage]) -> None:
    covered = 0
    for passage in own:
        assert 0 <= passage.start < passage.end <= len(section.text)
        assert passage.text.endswith(section.text[passage.start : passage.end])
        assert not section.text[covered : passage.start].strip()
        assert passage.end > covered
        covered = passage.end
    assert not section.text[covered:].strip()
    assert all(before.start < after.start for before, after in pairwise(own))


@given(st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_each_anchor_is_where_its_page_begins(texts: list[str]) -> None:
    parts = [part for part in parts_of(texts) if part.text.strip()]
    at: dict[int | None, int] = {}
    offset = 0
    for section in split(parts):
        for anchor in section.anchors:
            at.setdefault(anchor.page, offset + anchor.offset)
        offset += len(section.text)
    whole = whole_text(parts)
    assert list(at) == [part.page for part in parts]
    assert all(whole.startswith(part.text.rstrip("\n"), at[part.page]) for part in parts)


def test_sections_follow_the_headings_and_passages_know_their_path() -> None:
    body = "The notice period is thirty days for every employee of the company. " * 12
    sections, found = cut(f"# Contract\n\n## Termination\n\n{body}\n\n## Notices\n\n{body}\n\n# Annex\n\n{body}")
    assert [section.headings for section in sections] == [
        ("Contract", "Termination"),
        ("Contract", "Notices"),
        ("Annex",),
    ]
    assert found[0].place == "page 1, Contract › Termination"
    assert {passage.headings for passage in found} == {section.headings for section in sections}


def test_an_underlined_line_is_a_heading_and_front_matter_is_not() -> None:
    body = "Every word counts in a section that stands alone. " * 10
    sections, _ = cut(f"---\ntitle: x\n---\n\nLeave\n=====\n\n{body}\n\nSick leave\n-----\n\n{body}")
    assert [section.headings for section in sections] == [("Leave",), ("Leave", "Sick leave")]


def test_a_comment_in_fenced_code_is_no_heading() -> None:
    body = "Some words about it. " * 30
    sections, _ = cut(f"# Setup\n\n{body}\n\n```sh\n# install it\nmake\n```\n\n{body}")
    assert {section.headings for section in sections} == {("Setup",)}


def test_plain_text_has_no_headings_but_those_it_is_given() -> None:
    body = "# not a heading\n" + "plain words of a page " * 30
    page = Part(
        4, "page 4", body + "\n2 Scope\n" + body, markup=False, headings=(Heading(len(body) + 1, 1, "2 Scope"),)
    )
    assert [section.headings for section in split([page])] == [(), ("2 Scope",)]


def test_headings_hold_on_the_next_page_and_end_with_the_slide() -> None:
    body = "plain words of a page " * 30
    flowing = [Part(1, "page 1", f"# One\n\n{body}"), Part(2, "page 2", body, flows=True)]
    slides = [Part(1, "slide 1", f"# One\n\n{body}"), Part(2, "slide 2", body)]
    assert [section.headings for section in split(flowing)] == [("One",), ("One",)]
    assert [section.headings for section in split(slides)] == [("One",), ()]


def test_small_sections_join_and_are_called_by_what_they_share() -> None:
    sections, found = cut("# Faq\n\n## One\n\nYes.\n\n## Two\n\nNo.\n\n## Three\n\nPerhaps.")
    assert len(sections) == len(found) == 1
    assert sections[0].headings == ("Faq",)


def test_a_text_below_the_bound_stays_whole() -> None:
    _, found = cut("A sentence of some words. " * 36)
    assert len(found) == 1


def test_neighbours_of_one_running_text_share_about_32_tokens() -> None:
    text = " ".join(f"Clause {number} gives the tenant a further right of renewal." for number in range(200))
    sections, found = cut(text)
    found = [passage for passage in found if passage.section == 1]
    assert len(found) > 5
    for before, after in pairwise(found):
        shared = count_tokens(sections[0].text[after.start : before.end])
        assert 5 <= shared <= OVERLAP
        assert after.text.startswith("Clause")


def test_a_large_table_is_split_by_rows_and_each_passage_says_the_header() -> None:
    rows = "\n".join(f"| {number} | customer {number} | {number * 7} |" for number in range(1000))
    sections, found = cut(f"Some words before.\n\n| id | name | total |\n|---|---|---|\n{rows}\n\nAfter it.")
    body = [passage for passage in found if "customer" in passage.text]
    assert all("| id | name | total |\n|---|---|---|\n| " in passage.text for passage in body)
    lines = [line for passage in body for line in passage.text.splitlines() if "customer" in line]
    assert lines == rows.splitlines()
    assert len(sections) > 1


def test_code_and_tables_that_fit_stay_whole() -> None:
    prose = "Some running words that fill the page. " * 18
    code = "```python\n" + "\n\n".join(f"value_{number} = {number}" for number in range(20)) + "\n```"
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {number} | x |" for number in range(12))
    _, found = cut(f"{prose}\n\n{code}\n\n{prose}\n\n{table}\n\n{prose}")
    assert any(code in passage.text for passage in found)
    assert any(table in passage.text for passage in found)


def test_a_passage_over_two_pages_is_on_the_one_that_has_most_of_it() -> None:
    text = "Most of it is here, on the second page, in a few words. " * 3
    _, found = cut("Left blank.", text)
    assert [(passage.page, passage.place) for passage in found] == [(2, "page 2")]


def test_chinese_counts_by_the_character() -> None:
    assert count_tokens("合同期限为三年") == 7
    assert count_tokens("") == count_tokens(" \n\t") == 0


def test_ten_megabytes_take_seconds() -> None:
    hostile = ["word and word. " * 700_000, "x" * 200_000, "| a " * 50_000, "# a\n" * 20_000, "`" * 200_000]
    hostile += [" " * 200_000, "# " + " " * 200_000 + "x", "|" + "-" * 200_000 + "x", "```\n" * 20_000, "。" * 100_000]
    for text in hostile:
        before = time.process_time()
        cut(text)
        assert time.process_time() - before < 10, text[:10]
