"""What a converted file is made of, and how a file is refused."""

from __future__ import annotations

from dataclasses import dataclass


class Refused(Exception):
    """A file can't be taken in. `reason` is for the person who posted it: what it is, and what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that the text itself doesn't mark, such as a PDF's bookmark. `offset` is where its line begins."""

    offset: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Part:
    """A page, slide or sheet, or a whole file that has none of these.

    `markup`: its text is Markdown, so that `#` opens a heading. `flows`: the text runs on from the part before, and
    the headings that hold there hold here.
    """

    page: int | None
    place: str
    text: str
    markup: bool = True
    flows: bool = False
    headings: tuple[Heading, ...] = ()


@dataclass(frozen=True, slots=True)
class Converted:
    """`pages` counts pages, slides or sheets as the file has them, 0 where a format has none.

    `note` says what of the file couldn't be read, for the person who posted it; "" where all of it was.
    """

    parts: tuple[Part, ...]
    pages: int = 0
    note: str = ""
