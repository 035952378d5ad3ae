"""One writer, whoever else is in the way and whatever is broken off."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from storage.database import Database, open_database, sqlite_url

INSERT = text("INSERT INTO facts (name, value) VALUES (:name, '1')")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(sqlite_url(tmp_path / "app.sqlite")) as database:
        yield database


@pytest.fixture
def other(tmp_path: Path, database: Database) -> Iterator[sqlite3.Connection]:
    """Another process, as it were, that writes to the same file."""
    with contextlib.closing(sqlite3.connect(tmp_path / "app.sqlite", isolation_level=None)) as connection:
        yield connection


async def note(database: Database, *names: str) -> None:
    async with database.write() as connection:
        for name in names:
            await connection.execute(INSERT, {"name": name})


async def noted(database: Database) -> list[str]:
    async with database.read() as connection:
        return list(await connection.scalars(text("SELECT name FROM facts WHERE value = '1' ORDER BY rowid")))


async def test_who_waits_for_another_writer_holds_nobody_up(database: Database, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(note(database, "a"))
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert not waiting.done()
    other.execute("COMMIT")
    await waiting
    assert await noted(database) == ["a"]


async def test_what_was_given_up_while_it_waited_is_not_written(database: Database, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    given_up = asyncio.create_task(note(database, "a"))
    await asyncio.sleep(0.05)
    given_up.cancel()
    following = asyncio.create_task(note(database, "b", "c"))
    await asyncio.sleep(0.05)
    other.execute("COMMIT")
    await following
    assert given_up.cancelled() or given_up.done()
    assert await noted(database) == ["b", "c"]


@pytest.mark.parametrize("turns", range(8))
async def test_a_transaction_is_whole_wherever_it_is_broken_off(database: Database, turns: int) -> None:
    broken_off = asyncio.create_task(note(database, "a", "b"))
    for _ in range(turns):
        await asyncio.sleep(0)
    broken_off.cancel()
    await note(database, "c", "d")
    with contextlib.suppress(asyncio.CancelledError):
        await broken_off
    assert await noted(database) in (["c", "d"], ["a", "b", "c", "d"])


async def test_what_failed_is_undone(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.write() as connection:
            await connection.execute(INSERT, {"name": "a"})
            raise ZeroDivisionError
    await note(database, "b")
    assert await noted(database) == ["b"]
