"""What `add` posts: files, folders, and the lines of a corpus, as many to a post as are read well."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.client import NotDone, Sent

FILES_IN_POST = 10
LINES_IN_POST = 50
BYTES_IN_POST = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Unfit:
    """What can't be posted, and why."""

    name: str
    reason: str


Item = Sent | Unfit


def batches(paths: Sequence[Path], corpus: Path | None) -> Iterator[list[Item]]:
    """The posts to make. Raises NotDone where there is nothing."""
    yield from grouped(files(paths), FILES_IN_POST)
    if corpus is not None:
        yield from grouped(lines(corpus), LINES_IN_POST)


def grouped(items: Iterator[Item], most: int) -> Iterator[list[Item]]:
    """Twins by name never stand in one post: there the second would not be a new version of the first."""
    batch: list[Item] = []
    names: set[str] = set()
    size = 0
    for file in items:
        bytes_ = _size(file)
        if batch and (len(batch) == most or file.name in names or size + bytes_ > BYTES_IN_POST):
            yield batch
            batch, names, size = [], set(), 0
        batch.append(file)
        names.add(file.name)
        size += bytes_
    if batch:
        yield batch


def _size(item: Item) -> int:
    if isinstance(item, Unfit):
        return 0
    return len(item.content) if isinstance(item.content, bytes) else item.content.stat().st_size


def files(paths: Sequence[Path]) -> Iterator[Item]:
    """The files, and what lies in the folders but for what is hidden. Of several with one name, those that lie deeper
    are told apart by their folders: they are different documents."""
    found: list[tuple[Path, Path]] = []
    for path in paths:
        if not path.exists():
            raise NotDone(404, f"There is no {path}. Nothing was added.")
        found += [(path, each) for each in _within(path)] if path.is_dir() else [(path.parent, path)]
    if paths and not found:
        raise NotDone(404, "There is no file in there.")
    names = [path.name for _, path in found]
    for folder, path in found:
        inner = path.relative_to(folder)
        is_twin = names.count(path.name) > 1 and len(inner.parts) > 1
        name = os.fsencode(" - ".join(inner.parts) if is_twin else path.name).decode("utf-8", "replace")
        yield Sent(name, path) if os.access(path, os.R_OK) else Unfit(name, "this user may not read it")


def _within(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def lines(path: Path) -> Iterator[Item]:
    """A document for each line of a JSON-lines file, read as they are posted."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _document(line, f"{path.name}, line {number}")
    except OSError as error:
        raise NotDone(404, f"{path} can't be read: {error.strerror}.") from None


def _document(line: bytes, where: str) -> Item:
    try:
        entry = json.loads(line)
        name, title, text = str(entry["_id"]), entry.get("title") or "", entry["text"]
        content = f"# {title}\n\n{text}" if title else str(text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Unfit(where, 'it is no {"_id", "title", "text"} object in JSON')
    return Sent(name.replace("/", "-").replace("\\", "-"), content.encode("utf-8", "replace"))
