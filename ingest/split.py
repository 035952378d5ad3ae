"""A converted file as sections, which are read, and passages, which are searched.

Both are cut along the grain of the text: headings, pages, paragraphs, rows, sentences, words. All of it is linear in
the length of the text.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ingest.parts import Heading, Part
from storage.models import Anchor, Document, Passage, Section

BOUND = 256  # tokens of a passage
OVERLAP = 32  # tokens that two passages out of one running text share
SECTION = 2048  # tokens of a section
SMALL = 64  # tokens below which a section joins a neighbour that isn't large itself
SCRAP = 24  # tokens below which a page, slide or sheet does

_INDENT = 16  # blanks before the first word that a passage keeps

_TOKEN = re.compile(r"[A-Za-z\u00c0-\u024f]{1,8}|\d{1,2}|[\u0370-\u1fff]{1,3}|\s{64}|\S")
_MARKUP = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)|(?P<level>#{1,6})[ \t](?P<title>[^\n]*)|(?P<row>\|[^\n]*))", re.M
)
_UNDERLINED = re.compile(
    r"(?:\A|(?<=\n\n))(?P<title>[^\s#|>`~=-][^\n]{0,200})\n(?P<line>=|-)(?P=line){2,}[ \t]*$", re.M
)
_SENTENCE = re.compile(r"[.!?…][\"')\]”’»]*\s+|[。！？；][”’」』）]*\s*")
_SPACE = re.compile(r"\s+")
_INK = re.compile(r"\S")
_DECORATION = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*`]+|<[^<>]*>")


def count_tokens(text: str) -> int:
    """About how many tokens a text has for the bundled model (1.0 ± .06 on average over four English sets): cheap."""
    return len(_TOKEN.findall(text))


def whole_text(parts: Sequence[Part]) -> str:
    """A file as it was read: its parts with a blank line between."""
    return "".join(_joined(parts))


def split(parts: Sequence[Part]) -> list[Section]:
    """The sections of a file. Their texts in order are `whole_text` of the parts."""
    parts = [part for part in parts if part.text.strip()]
    text = _Text(whole_text(parts))
    starts = _starts(parts)
    blocks = _merge(_blocks(text, parts, starts))
    spans = [(start, end, block.path) for block in blocks for start, end in _pieces(text, block)]
    anchors = [Anchor(start, part.page, part.place) for start, part in zip(starts, parts, strict=True)]
    return [
        Section(number, path, text.text[start:end], _anchors_within(anchors, starts, start, end))
        for number, (start, end, path) in enumerate(spans, 1)
    ]


def passages(document: Document, sections: Sequence[Section]) -> list[Passage]:
    """The passages of a version. The text of one that begins inside a table starts with that table's header."""
    text = _Text("".join(section.text for section in sections))
    found: list[Passage] = []
    offset = 0
    for section in sections:
        for start, end, header in _windows(text, offset, offset + len(section.text)):
            local = start - offset, end - offset
            place = _main_place(section, *local)
            found.append(
                Passage(
                    document=document.document,
                    version=document.version,
                    number=len(found) + 1,
                    workspace=document.workspace,
                    audience=document.audience,
                    name=document.name,
                    section=section.number,
                    start=local[0],
                    end=local[1],
                    headings=section.headings_at(place),
                    page=section.anchor_at(place).page,
                    place=section.place_at(place),
                    text=header + text.text[start:end],
                )
            )
        offset += len(section.text)
    return found


@dataclass(frozen=True, slots=True)
class _Solid:
    """A table or a piece of fenced code: kept whole while it fits. `body` is where a table's rows begin."""

    start: int
    end: int
    body: int | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    """What stands under one heading on one page."""

    start: int
    end: int
    path: tuple[str, ...]
    part: int
    tokens: int
    bare: bool = False  # a heading with nothing below it
    flows: bool = False


class _Text:
    """A text with its tokens counted and its tables and code found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = array("L", (match.start() for match in _TOKEN.finditer(text)))
        self.headings, self._solids = _structure(text)
        self._solid_starts = [solid.start for solid in self._solids]

    def count(self, start: int, end: int) -> int:
        return bisect_left(self._tokens, end) - bisect_left(self._tokens, start)

    def after(self, start: int, tokens: int) -> int:
        """Where the text from `start` on that has so many tokens ends."""
        place = bisect_left(self._tokens, start) + tokens
        return self._tokens[place] if place < len(self._tokens) else len(self.text)

    def before(self, end: int, tokens: int) -> int:
        """Where the last so many tokens before `end` begin."""
        place = bisect_left(self._tokens, end) - tokens
        return self._tokens[place] if place >= 0 else 0

    def solid_at(self, offset: int) -> _Solid | None:
        """The table or code that `offset` lies in, its first character included."""
        solid = self.solid_before(offset + 1)
        return solid if solid is not None and offset < solid.end else None

    def solid_before(self, offset: int) -> _Solid | None:
        """The last table or code that begins before `offset`."""
        place = bisect_left(self._solid_starts, offset)
        return self._solids[place - 1] if place else None

    def ink(self, start: int, end: int) -> tuple[int, int]:
        """The same span without blank lines before and blanks after; empty where nothing else is in it."""
        first = _INK.search(self.text, start, end)
        if first is None:
            return end, end
        start = max(start, self.text.rfind("\n", start, first.start()) + 1)
        if first.start() - start > _INDENT:
            start = first.start()
        return start, start + len(self.text[start:end].rstrip())

    def cut(self, start: int, end: int, limit: int, bound: int) -> int:
        """The best place after `start` and not after `limit` to part the text in two."""
        if limit >= end:
            return end
        solid = self.solid_at(limit)
        if solid is not None:
            return self._cut_solid(solid, start, limit, bound)
        cut = self._cut_prose(start, limit)
        solid = self.solid_at(cut)
        return solid.end if solid is not None and solid.start < cut else cut

    def _cut_prose(self, start: int, limit: int) -> int:
        floor = self.after(start, self.count(start, limit) // 2)
        return (
            self._after_last("\n\n", floor, limit)
            or self._after_match(_SENTENCE, floor, limit)
            or self._after_last("\n", floor, limit)
            or self._after_match(_SPACE, start, limit)
            or limit
        )

    def _cut_solid(self, solid: _Solid, start: int, limit: int, bound: int) -> int:
        in_header = solid.body is not None and limit <= solid.body
        if solid.start > start and (in_header or self.count(solid.start, solid.end) <= bound):
            return solid.start
        return self._after_last("\n", start, limit) or self._after_match(_SPACE, start, limit) or limit

    def _after_last(self, mark: str, start: int, limit: int) -> int:
        place = self.text.rfind(mark, start, limit)
        return place + len(mark) if place > start else 0

    def _after_match(self, pattern: re.Pattern[str], start: int, limit: int) -> int:
        last = 0
        for match in pattern.finditer(self.text, start, limit):
            last = match.end() if match.start() > start else last
        return last


def _structure(text: str) -> tuple[list[Heading], list[_Solid]]:
    """Every ATX and setext heading, table and piece of fenced code of a Markdown text."""
    found = _Structure()
    for match in _MARKUP.finditer(text):
        found.take(match)
    found.finish(len(text))
    return _with_underlined(text, found.headings, found.solids), found.solids


class _Structure:
    """Takes the marked lines of a text one by one."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self.solids: list[_Solid] = []
        self._fence: re.Match[str] | None = None
        self._rows: list[re.Match[str]] = []  # the first two and the last of a table

    def take(self, line: re.Match[str]) -> None:
        if self._fence is not None:
            self._take_in_fence(line, self._fence)
            return
        if self._rows and (line["row"] is None or self._rows[-1].end() + 1 != line.start()):
            self._end_table()
        if line["row"] is not None:
            self._rows = [*self._rows[:2], line]
        elif line["level"] is not None:
            self.headings.append(Heading(line.start(), len(line["level"]), line["title"].rstrip(" \t#")))
        elif line["fence"][0] == "~" or "`" not in line["info"]:
            self._fence = line

    def finish(self, end: int) -> None:
        self._end_table()
        if self._fence is not None:
            self.solids.append(_Solid(self._fence.start(), end))

    def _take_in_fence(self, line: re.Match[str], fence: re.Match[str]) -> None:
        if line["fence"] is not None and line["fence"].startswith(fence["fence"]) and not line["info"].strip():
            self.solids.append(_Solid(fence.start(), line.end()))
            self._fence = None

    def _end_table(self) -> None:
        if len(self._rows) > 1 and _is_rule(self._rows[1]["row"]):
            body = min(self._rows[1].end() + 1, self._rows[-1].end())
            self.solids.append(_Solid(self._rows[0].start(), self._rows[-1].end(), body))
        self._rows = []


def _is_rule(row: str) -> bool:
    return "-" in row and not row.strip("|:- \t")


def _with_underlined(text: str, headings: list[Heading], solids: list[_Solid]) -> list[Heading]:
    starts = [solid.start for solid in solids]
    for match in _UNDERLINED.finditer(text):
        before = bisect_right(starts, match.start())
        if not before or solids[before - 1].end <= match.start():
            headings.append(Heading(match.start(), 1 if match["line"] == "=" else 2, match["title"]))
    return sorted(headings, key=lambda heading: heading.offset)


def _joined(parts: Sequence[Part]) -> Iterator[str]:
    kept = [part.text for part in parts if part.text.strip()]
    for text in kept[:-1]:
        yield text.rstrip("\n") + "\n\n"
    yield from kept[-1:]


def _starts(parts: Sequence[Part]) -> list[int]:
    starts, offset = [], 0
    for text in _joined(parts):
        starts.append(offset)
        offset += len(text)
    return starts


def _blocks(text: _Text, parts: Sequence[Part], starts: Sequence[int]) -> Iterator[_Block]:
    """The text between one heading or beginning of a part and the next, in order and without a gap."""
    path: list[Heading] = []
    for number, (part, start) in enumerate(zip(parts, starts, strict=True)):
        end = starts[number + 1] if number + 1 < len(starts) else len(text.text)
        headings = _headings_within(text, part, start, end)
        path = path if part.flows else []
        bounds = [start, *(heading.offset for heading in headings), end]
        opening: Sequence[Heading | None] = [None, *headings]
        for heading, (first, last) in zip(opening, pairwise(bounds), strict=True):
            if heading is not None:
                path = [*(above for above in path if above.level < heading.level), heading]
            if first < last:
                titles = tuple(above.title for above in path)
                bare = heading is not None and not text.text[first:last].strip().count("\n")
                yield _Block(first, last, titles, number, text.count(first, last), bare, part.flows)


def _headings_within(text: _Text, part: Part, start: int, end: int) -> list[Heading]:
    if part.markup:
        first = bisect_left(text.headings, start, key=lambda heading: heading.offset)
        last = bisect_left(text.headings, end, key=lambda heading: heading.offset)
        found = text.headings[first:last]
    else:
        found = [replace(heading, offset=start + heading.offset) for heading in part.headings]
    named = [replace(heading, title=_plain_title(heading.title)) for heading in found]
    return [heading for heading in named if heading.title and start <= heading.offset < end]


def _plain_title(title: str) -> str:
    return " ".join(_DECORATION.sub(r"\1", title[:300]).split())[:200]


def _merge(blocks: Iterable[_Block]) -> list[_Block]:
    """Small blocks joined to their neighbours."""
    merged: list[_Block] = []
    for block in blocks:
        if merged and (joined := _join(merged[-1], block)):
            merged[-1] = joined
        else:
            merged.append(block)
    return merged


def _join(left: _Block, right: _Block) -> _Block | None:
    same_flow = left.part == right.part or right.flows
    tokens = left.tokens + right.tokens
    if same_flow and left.bare and right.path[: len(left.path)] == left.path:
        return replace(right, start=left.start, tokens=tokens)
    small = SMALL if left.part == right.part else SCRAP
    if min(left.tokens, right.tokens) < small and max(left.tokens, right.tokens) <= BOUND // 2:
        return replace(left, end=right.end, path=_joined_path(left, right), tokens=tokens, bare=False)
    return None


def _joined_path(left: _Block, right: _Block) -> tuple[str, ...]:
    """What both stand under; a scrap below or above the other's heading doesn't count."""
    common = _common(left.path, right.path)
    less, more = sorted((left, right), key=lambda block: block.tokens)
    return more.path if less.tokens < SCRAP and common == less.path else common


def _common(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    shared = 0
    while shared < min(len(left), len(right)) and left[shared] == right[shared]:
        shared += 1
    return left[:shared]


def _pieces(text: _Text, block: _Block) -> Iterator[tuple[int, int]]:
    """A block, in pieces where it is too large for one section."""
    start = block.start
    while start < block.end:
        cut = text.cut(start, block.end, text.after(start, SECTION), SECTION)
        yield start, cut
        start = cut


def _anchors_within(anchors: Sequence[Anchor], starts: Sequence[int], start: int, end: int) -> tuple[Anchor, ...]:
    first = bisect_right(starts, start) - 1
    last = bisect_left(starts, end)
    return tuple(replace(anchor, offset=max(anchor.offset - start, 0)) for anchor in anchors[first:last])


def _windows(text: _Text, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """The passages of one section: where each begins and ends, and the table header that it needs."""
    start, end = text.ink(start, end)
    while start < end:
        header = _header(text, start)
        room = BOUND - count_tokens(header)
        left = text.count(start, end)
        if room < left < 2 * (room - OVERLAP):
            room = left // 2 + OVERLAP
        cut = text.cut(start, end, text.after(start, room), BOUND)
        yield (*text.ink(start, cut), header)
        start, _ = text.ink(_overlapped(text, start, cut) if cut < end else end, end)


def _header(text: _Text, start: int) -> str:
    """The header of the table that `start` lies in; none where it is too long to be said again."""
    table = text.solid_at(start)
    if table is None or table.body is None or start < table.body:
        return ""
    header = text.text[table.start : table.body]
    return header.rstrip("\n") + "\n" if text.count(table.start, table.body) <= BOUND // 2 else ""


def _overlapped(text: _Text, start: int, cut: int) -> int:
    """Where the next passage begins: a sentence or some words before the cut, where it parts running text."""
    solid = text.solid_before(cut + 1)
    if solid is not None and cut <= solid.end + 1:
        return cut
    earliest = max(text.before(cut, OVERLAP), solid.end if solid is not None else 0)
    if earliest <= start:
        return cut
    for pattern in (_SENTENCE, _SPACE):
        first = pattern.search(text.text, earliest, cut)
        if first is not None and text.text[first.end() : cut].strip():
            return first.end()
    return earliest


def _main_place(section: Section, start: int, end: int) -> int:
    """The offset in a passage from which on most of it stands on one page."""
    inner = [start, *(anchor.offset for anchor in section.anchors if start < anchor.offset < end), end]
    first, _ = max(pairwise(inner), key=lambda span: span[1] - span[0])
    return first
