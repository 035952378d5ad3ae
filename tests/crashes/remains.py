"""What a bot has on its disk, read from beside it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import lancedb

from storage.embeddings import BundledEmbedder, collection_name

SECONDS = 60.0
ALIVE = "('open', 'running', 'sending')"
Line = tuple[Any, ...]


def catalog(data: Path, query: str, *values: object) -> list[Line]:
    return _read(data / "threadlore.sqlite", query, *values)


def checkpoints(data: Path, query: str, *values: object) -> list[Line]:
    return _read(data / "checkpoints.sqlite", query, *values)


async def settled(data: Path, seconds: float = SECONDS) -> None:
    """Wait until nothing is open in the journal."""
    async with asyncio.timeout(seconds):
        while catalog(data, f"SELECT id FROM journal WHERE state IN {ALIVE} LIMIT 1"):
            await asyncio.sleep(0.05)


async def stored(data: Path) -> Counter[tuple[str, int, int]]:
    """How often each passage is stored: document, version, number."""
    connection = await lancedb.connect_async(data / "passages")
    with contextlib.closing(await connection.open_table(collection_name(BundledEmbedder.model))) as table:
        rows = await table.query().select(["document", "version", "number"]).to_arrow()
    return Counter(zip(*(rows[name].to_pylist() for name in ("document", "version", "number")), strict=True))


async def astray(data: Path) -> list[str]:
    """What is stored that the catalog doesn't know, or not as often as it says."""
    living = catalog(data, "SELECT document, version, passages FROM documents WHERE state = 'current'")
    right = {(document, version, number) for document, version, count in living for number in range(1, count + 1)}
    found = await stored(data)
    missing = [f"missing: {passage}" for passage in sorted(right - set(found))]
    foreign = [f"orphan: {passage}" for passage in sorted(set(found) - right)]
    return missing + foreign + [f"{times} times: {passage}" for passage, times in found.items() if times > 1]


def unclosed(data: Path) -> list[str]:
    """What no open row needs any more and is still there."""
    rests = [f"row {line}" for line in catalog(data, f"SELECT id, kind FROM journal WHERE state IN {ALIVE}")]
    rests += [f"file {path}" for folder in ("uploads", "work") for path in (data / folder).glob("*")]
    pending = "SELECT document, version, name FROM documents WHERE state = 'pending'"
    rests += [f"pending {line}" for line in catalog(data, pending)]
    many = "SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id HAVING count(*) > 1"
    rests += [f"checkpoints of {thread}: {count}" for thread, count in checkpoints(data, many)]
    waiting = (
        "SELECT thread_id, count(*) FROM writes AS each WHERE NOT EXISTS (SELECT 1 FROM writes WHERE thread_id ="
        " each.thread_id AND channel = '__interrupt__') GROUP BY thread_id"
    )
    return rests + [f"writes of {thread}: {count}" for thread, count in checkpoints(data, waiting)]


def _read(database: Path, query: str, *values: object) -> list[Line]:
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)) as connection:
        return connection.execute(query, values).fetchall()
