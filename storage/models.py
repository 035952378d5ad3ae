"""What the knowledge is made of: documents, sections, passages, and the scope that a question may search."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

_LINES = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})|(?P<level>#{1,6})[ \t]+(?P<title>[^\n]*?)[ \t#]*$)", re.MULTILINE
)


def channel_audience(channel: str) -> str:
    """The audience of a document posted to `channel`: whoever may read that channel."""
    return f"channel:{channel}"


def thread_audience(channel: str, thread: str) -> str:
    """The audience of a file attached to a question: that thread alone."""
    return f"thread:{channel}:{thread}"


@dataclass(frozen=True, slots=True)
class Scope:
    """What one question may search. Computed from the place of the reply, never chosen by a model."""

    workspace: str
    audiences: frozenset[str]


class Version(NamedTuple):
    """One version of one document."""

    document: str
    version: int


class DocumentName(NamedTuple):
    """A current document, as far as a question may name it."""

    document: str
    name: str


class Living(NamedTuple):
    """A current version: who may see it, and where its post is."""

    audience: str
    link: str


class DocumentState(StrEnum):
    PENDING = "pending"  # being read
    CURRENT = "current"  # the version that answers
    SUPERSEDED = "superseded"
    DELETED = "deleted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Document:
    """One ingested file, in one version. Times are seconds since the epoch, UTC."""

    document: str
    version: int
    workspace: str
    channel: str
    audience: str
    name: str
    state: DocumentState
    verdict: str
    reason: str
    content_hash: str
    size: int
    pages: int
    sections: int
    passages: int
    posted_by: str
    posted_at: float
    message: str
    link: str

    @property
    def key(self) -> Version:
        return Version(self.document, self.version)


def document_id(workspace: str, audience: str, name: str) -> str:
    """An opaque, URL-safe id that is stable for a name in its channel or thread."""
    return hashlib.sha256("\0".join((workspace, audience, name)).encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class Anchor:
    """From `offset` on (characters of the section's text) the text stands at this place.

    `page` is the number of the page, slide or sheet, 1-based; None where a format has none. `place` is how a person
    would say it: "page 3", "slide 2", "sheet Budget", or "" (the heading path then tells).
    """

    offset: int
    page: int | None
    place: str


@dataclass(frozen=True, slots=True)
class Section:
    """A parent chunk: what the agent reads and what a citation opens. `number` counts from 1 within the document.

    The texts of a version's sections, in order, are the whole document as it was read: no overlap, nothing left out.
    """

    number: int
    headings: tuple[str, ...]
    text: str
    anchors: tuple[Anchor, ...] = ()

    def anchor_at(self, offset: int) -> Anchor:
        """Where the character at `offset` stands."""
        found = Anchor(0, None, "")
        for anchor in self.anchors:
            if anchor.offset > offset:
                break
            found = anchor
        return found

    def headings_at(self, offset: int) -> tuple[str, ...]:
        """The heading path above the character at `offset`: sections that were joined hold headings of their own."""
        path: list[tuple[int, str]] = []
        in_code = False
        end = self.text.find("\n", offset)
        for line in _LINES.finditer(self.text, 0, end if end >= 0 else len(self.text)):
            if line["fence"]:
                in_code = not in_code
            elif line["title"] and not in_code:
                level = len(line["level"])
                path = [(above, title) for above, title in path if above < level] + [(level, line["title"].strip())]
        below = tuple(title for _, title in path)
        return self.headings + tuple(title for title in below if title not in self.headings)

    def places(self) -> tuple[Anchor, ...]:
        """Anchors for each page and each heading, whose `place` is whole: enough to tell a place without the text."""
        headings = {line.start() for line in _LINES.finditer(self.text) if line["title"]}
        starts = sorted({0, *headings, *(anchor.offset for anchor in self.anchors)})
        return tuple(Anchor(start, self.anchor_at(start).page, self.place_at(start)) for start in starts)

    def place_at(self, offset: int) -> str:
        """The place as a citation shows it: page and heading, whichever there is."""
        parts = [self.anchor_at(offset).place, " › ".join(self.headings_at(offset))]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Passage:
    """A child chunk: what is embedded and searched. `start` and `end` are offsets in the text of its section."""

    document: str
    version: int
    number: int
    workspace: str
    audience: str
    name: str
    section: int
    start: int
    end: int
    headings: tuple[str, ...]
    page: int | None
    place: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.document}.{self.version}.{self.number}"

    @property
    def key(self) -> Version:
        return Version(self.document, self.version)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a search found. `score` is the fused score, 0 to 1, comparable within one search alone.

    `cosine` is the similarity of the question's vector to the passage's, None where one of them has none.
    """

    passage: Passage
    score: float
    cosine: float | None = field(default=None, compare=False)


def versions_of(hits: Iterable[Hit]) -> set[Version]:
    return {hit.passage.key for hit in hits}
