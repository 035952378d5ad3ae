"""Real workers on one database and one platform: one dies or stalls, and another takes over what it had."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sqlite3
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.claiming import Claiming, Pace
from bot.messages import Incoming, Kind, ThreadRef
from bot.rows import Stores
from storage.channels import Channels
from storage.clarifications import Clarifications
from storage.embeddings import BundledEmbedder
from storage.journal import Journal
from tests.agent.conftest import embedder, empty_database
from tests.agent.library import CHANNEL, WORKSPACE, Library, open_library
from tests.crashes.worker import posted
from tests.running import PROJECT

__all__ = ["embedder", "empty_database"]

HOLIDAYS = (
    "Employees have 28 days of paid holiday a year, and those under 18 have 33 days of it, whatever their contract."
)
QUESTION = "How many days of paid holiday do employees have?"


@pytest.fixture
async def library(tmp_path: Path, empty_database: Path, embedder: BundledEmbedder) -> AsyncIterator[Library]:
    """What both workers have. One question waits to be answered."""
    shutil.copy(empty_database, tmp_path / "app.sqlite")
    async with open_library(tmp_path, embedder) as opened:
        await opened.add("handbook.md", {"Holidays": HOLIDAYS})
        stores = Stores(
            opened.database,
            Journal(opened.database),
            opened.transcript,
            Channels(opened.database),
            Clarifications(opened.database),
            opened.documents,
        )
        where = ThreadRef(platform="web", workspace=WORKSPACE, channel=CHANNEL, thread="t")
        asked = Incoming(kind=Kind.MESSAGE, where=where, message="m1", user="ann", text=QUESTION, sent_at=1.0)
        await Claiming(stores, Pace(4000, 1000)).receive(asked)
        yield opened


@contextlib.asynccontextmanager
async def worker(folder: Path) -> AsyncIterator[Process]:
    with (folder / "log").open("ab") as log:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.crashes.worker", str(folder), cwd=PROJECT, stdout=log, stderr=log
        )
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


async def held(folder: Path) -> None:
    async with asyncio.timeout(60):
        while not (folder / "held").exists():
            await asyncio.sleep(0.02)


async def stall(child: Process, folder: Path) -> None:
    """Stop it where it has no database locked: there it would hold up whoever writes, as SQLite has one writer."""
    async with asyncio.timeout(30):
        while True:
            child.send_signal(signal.SIGSTOP)
            if not any(is_locked(folder / name) for name in ("app.sqlite", "checkpoints.sqlite")):
                return
            child.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.02)


def is_locked(path: Path) -> bool:
    with contextlib.closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        return False


async def answered(library: Library) -> list[str]:
    """The parts of the answer as they are on record, once it has all of them."""
    async with asyncio.timeout(60):
        while True:
            rows = await Journal(library.database).of_message("web", WORKSPACE, "m1")
            if [row.state for row in rows] == ["done"]:
                break
            await asyncio.sleep(0.05)
    return [line.text for line in await library.transcript.thread("web", WORKSPACE, "t") if line.author == "bot"]


def assert_each_part_was_posted_once(folder: Path, said: list[str]) -> None:
    assert len(said) > 1
    assert [(line["part"], line["text"]) for line in posted(folder)] == list(enumerate(said))


async def test_a_part_that_was_posted_and_not_recorded_is_found_and_not_posted_again(
    tmp_path: Path, library: Library
) -> None:
    (tmp_path / "hold").write_text("send")
    async with worker(tmp_path) as first:
        await held(tmp_path)
        first.kill()
    (tmp_path / "hold").unlink()
    assert len(posted(tmp_path)) == 1
    async with worker(tmp_path):
        assert_each_part_was_posted_once(tmp_path, await answered(library))


@pytest.mark.parametrize("step", ["tell", "send"])
async def test_a_worker_that_stalled_past_its_lease_neither_writes_nor_posts(
    tmp_path: Path, library: Library, step: str
) -> None:
    """Stopped within its turn, and between two posts; the other one's start ends its lease."""
    (tmp_path / "hold").write_text(step)
    async with worker(tmp_path) as stalled:
        await held(tmp_path)
        await stall(stalled, tmp_path)
        (tmp_path / "hold").unlink()
        async with worker(tmp_path):
            said = await answered(library)
        before = (tmp_path / "checkpoints.sqlite").read_bytes()
        stalled.send_signal(signal.SIGCONT)
        await took_note(tmp_path)
        assert (tmp_path / "checkpoints.sqlite").read_bytes() == before
    assert_each_part_was_posted_once(tmp_path, said)


async def took_note(folder: Path) -> None:
    """The stalled worker has learnt that its row is another's."""
    async with asyncio.timeout(30):
        while "was withdrawn or taken over" not in (folder / "log").read_text():
            await asyncio.sleep(0.02)
