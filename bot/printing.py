"""How the command line shows things: lines for people, or one JSON object a line."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import TextIO

from bot.client import Json

# what a document could use to steer the terminal that shows it
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
QUOTED = 160  # characters of a citation's quote
SHOWN = 300  # characters of a hit


class Printer:
    def __init__(self, as_json: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.as_json = as_json
        self._out = _tolerant(out or sys.stdout)
        self._err = _tolerant(err or sys.stderr)
        self.shows_progress = self._err.isatty()
        self._has_progress = False

    def json(self, content: object) -> None:
        self.clear()
        self._out.write(json.dumps(content, ensure_ascii=False) + "\n")
        self._out.flush()

    def say(self, text: str = "") -> None:
        self.clear()
        self._out.write(plain(text) + "\n")
        self._out.flush()

    def whole(self, text: str) -> None:
        """A text as it is, but not to a terminal."""
        self.clear()
        self._out.write(plain(text) if self._out.isatty() else text)
        if not text.endswith("\n"):
            self._out.write("\n")
        self._out.flush()

    def complain(self, text: str) -> None:
        """The reason why something was not done, in one line."""
        self.clear()
        self._err.write(" ".join(plain(text).split()) + "\n")
        self._err.flush()

    def progress(self, text: str) -> None:
        if self.shows_progress:
            width = shutil.get_terminal_size().columns - 1
            self._err.write("\r\x1b[K" + plain(" ".join(text.split()))[:width])
            self._err.flush()
            self._has_progress = True

    def clear(self) -> None:
        if self._has_progress:
            self._err.write("\r\x1b[K")
            self._err.flush()
            self._has_progress = False


def plain(text: str) -> str:
    return _STEERING.sub("", text)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of as many cells each, the columns aligned."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: two for a wide character, none for one that joins the one before."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def verdict(found: Json) -> str:
    name = str(found["name"])
    if found["verdict"] == "refused":
        return f"refused     {name}: {found['reason']}"
    sizes = [_count(found.get(what) or 0, what) for what in ("pages", "passages") if found.get(what)]
    seconds = f"{found.get('seconds') or 0:.1f} s"
    version = f"version {found['version']}" if (found.get("version") or 1) > 1 else ""
    return f"{found['verdict']:<10}  {name}: " + ", ".join(part for part in (version, *sizes, seconds) if part)


def documents(found: Sequence[Json]) -> str:
    head = ("document", "version", "name", "channel", "verdict", "pages", "passages", "size", "posted by", "posted at")
    rows = [
        (
            str(each["document"]),
            str(each["version"]),
            str(each["name"]),
            str(each["channel"]),
            str(each["verdict"]),
            str(each["pages"] or ""),
            str(each["passages"]),
            size(each["size"]),
            str(each["posted_by"]),
            day(each["posted_at"]),
        )
        for each in found
    ]
    refused = [f"{each['name']} is refused: {each['reason']}" for each in found if each["verdict"] == "refused"]
    return "\n".join([table([head, *rows]), *([""] if refused else []), *refused])


def size(octets: int) -> str:
    if octets < 1024:
        return f"{octets} B"
    return f"{octets / 1024:,.0f} KB" if octets < 1024 * 1024 else f"{octets / 1024 / 1024:,.1f} MB"


def answer(turn: Json, base: str) -> str:
    """A reply with its sources; `base` goes before the links, "" where they lead nowhere."""
    parts = [str(turn["text"])]
    if turn["citations"]:
        parts.append("\n".join(_source(each, base) for each in turn["citations"]))
    if turn["options"]:
        parts.append("\n".join(f"  {number}. {each['label']}" for number, each in enumerate(turn["options"], 1)))
    return "\n\n".join(parts)


def channel(found: Json) -> str:
    members = f", members: {', '.join(found['members'])}" if found["visibility"] == "private" else ""
    knowledge = "its files are learned" if found["knowledge"] else "its files are not learned"
    return f"{found['channel']}: {found['visibility']}{members}; {knowledge}"


def hits(found: Json) -> str:
    lines = [str(found["query"])]
    for number, hit in enumerate(found["hits"], 1):
        place = f", {hit['place']}" if hit["place"] else ""
        lines.append(f"  {number}. {hit['score']:.3f}  {hit['name']}{place}")
        lines.append(f"     {short(hit['text'], SHOWN)}")
    if not found["hits"]:
        lines.append("  nothing found")
    return "\n".join(lines) + "\n"


def short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def _source(citation: Json, base: str) -> str:
    place = f", {citation['place']}" if citation["place"] else ""
    version = f" (version {citation['version']})" if citation["version"] > 1 else ""
    lines = [f"[{citation['number']}] {citation['name']}{version}{place}", f"    “{short(citation['quote'], QUOTED)}”"]
    if base and citation["link"]:
        lines.append(f"    {base}{citation['link']}" if citation["link"].startswith("/") else f"    {citation['link']}")
    return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what if number != 1 else what.removesuffix('s')}"


def _tolerant(stream: TextIO) -> TextIO:
    """What its encoding can't carry is replaced."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream
