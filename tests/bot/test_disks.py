"""Damaged files, full disks, read-only ones: named with what to do, never overwritten, and all is there afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.bot.disk import Disk, mounted
from tests.bot.shell import Shell
from tests.bot.whole import Page, opened
from tests.fake_openai import FakeOpenAI, Text, fake_openai
from tests.running import RunningBot

HANDBOOK = "# Handbook\n\nEmployees have 28 days of annual leave.\n"
QUESTION = "How many days of annual leave do employees have?"
PAGE = 4096

Damage = Callable[[Path], None]


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def beheaded(path: Path) -> None:
    path.write_bytes(bytes(100) + path.read_bytes()[100:])


def other(path: Path) -> None:
    path.write_text("These are notes, and no database.\n" * 100)


def worn(path: Path) -> None:
    """Pages in the middle are lost; the first ones tell nothing of it."""
    content = path.read_bytes()
    lost = [
        b"\xa5" * PAGE if number > 4 and number % 3 == 0 else content[number * PAGE : (number + 1) * PAGE]
        for number in range(len(content) // PAGE)
    ]
    path.write_bytes(b"".join(lost))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def sums(folder: Path) -> dict[str, str]:
    """What is kept, by its content; what SQLite and a lock leave for a moment is not."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock" and not path.name.endswith(("-wal", "-shm"))
    }


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that knows the handbook."""
    home = tmp_path_factory.mktemp("kept")
    (home / "handbook.md").write_text(HANDBOOK)
    shell = Shell(home)
    shell.says("add", "handbook.md")
    shell.says("ask", QUESTION)
    return home / "data"


@pytest.fixture
def shell(kept: Path, tmp_path: Path) -> Shell:
    shutil.copytree(kept, tmp_path / "data")
    return Shell(tmp_path)


def assert_all_is_there(shell: Shell) -> None:
    assert "28 days" in shell.says("ask", QUESTION)


@pytest.mark.parametrize("damage", [cut, beheaded, other, worn, emptied])
def test_a_damaged_database_is_named_and_left_as_it_is(shell: Shell, kept: Path, damage: Damage) -> None:
    path = shell.home / "data" / "threadlore.sqlite"
    damage(path)
    before = sums(shell.home / "data")
    for command in (["docs"], ["ask", QUESTION], ["run"]):
        told = shell.fails(*command, PORT="0")
        assert str(path) in told
        assert "restore a backup" in told
        assert sums(shell.home / "data") == before
    shutil.copy(kept / path.name, path)
    assert_all_is_there(shell)


@pytest.mark.parametrize("damage", [cut, beheaded, other])
def test_damaged_checkpoints_are_named_and_can_be_moved_away(shell: Shell, damage: Damage) -> None:
    path = shell.home / "data" / "checkpoints.sqlite"
    damage(path)
    before = sums(shell.home / "data")
    told = shell.fails("ask", QUESTION)
    assert str(path) in told
    assert "Move the file away" in told
    assert sums(shell.home / "data") == before
    path.unlink()
    assert_all_is_there(shell)


@pytest.mark.parametrize("name", ["threadlore.sqlite", "checkpoints.sqlite"])
def test_something_else_in_the_place_of_a_database_is_named(shell: Shell, name: str) -> None:
    path = shell.home / "data" / name
    path.rename(path.with_suffix(".kept"))
    path.mkdir()
    assert "DATA_DIR" in shell.fails("docs")
    path.rmdir()
    path.with_suffix(".kept").rename(path)
    assert_all_is_there(shell)


def test_damaged_passages_are_named_and_left_as_they_are(shell: Shell, kept: Path) -> None:
    folder = shell.home / "data" / "passages"
    (path,) = folder.glob("*/_versions/*.manifest")
    path.write_bytes(b"\xa5" * path.stat().st_size)
    before = sums(folder)
    told = shell.fails("ask", QUESTION)
    assert str(folder) in told
    assert "restore a backup" in told
    assert sums(folder) == before
    shutil.copy(kept / path.relative_to(shell.home / "data"), path)
    assert_all_is_there(shell)


def test_passages_that_turn_out_damaged_are_named_in_the_log(
    shell: Shell, kept: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The person hears that it failed, and whom to tell."""
    folder = shell.home / "data" / "passages"
    (path,) = folder.glob("*/data/*.lance")
    path.write_bytes(b"\xa5" * path.stat().st_size)
    before = sums(folder)
    told = shell.fails("ask", QUESTION, LOG_LEVEL="DEBUG")
    assert "tell who runs me" in told
    assert f"in {folder} can't be read" in caplog.text
    assert "restore a backup" in caplog.text
    assert str(folder) in shell.fails("doctor")
    assert sums(folder) == before
    shutil.copy(kept / path.relative_to(shell.home / "data"), path)
    assert_all_is_there(shell)
    shell.says("doctor")


async def test_passages_that_turn_out_damaged_are_named_until_they_are_whole(kept: Path, tmp_path: Path) -> None:
    shutil.copytree(kept, tmp_path / "data")
    (path,) = (tmp_path / "data" / "passages").glob("*/data/*.lance")
    whole = path.read_bytes()
    async with opened(tmp_path) as page:
        path.write_bytes(b"\xa5" * len(whole))
        assert "tell who runs me" in (await page.asks(QUESTION))["text"]
        for health in ("/readyz", "/api/doctor"):
            assert "can't be read" in (await page.http.get(health)).json()["dependencies"]["passages"]
        path.write_bytes(whole)
        assert (await page.http.get("/readyz")).json()["ready"]
        assert "28 days" in (await page.asks(QUESTION))["text"]


# Read-only, full


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "disk", 24) as disk:
        yield disk


def test_a_read_only_directory_is_named_and_left_as_it_is(kept: Path, tmp_path: Path, disk: Disk) -> None:
    shutil.copytree(kept, disk.path / "data")
    before = sums(disk.path / "data")
    disk.remount("ro")
    shell = Shell(tmp_path)
    shell.settings["DATA_DIR"] = str(disk.path / "data")
    for command in ("run", "docs"):
        told = shell.fails(command, PORT="0")
        assert f"{disk.path}/data" in told
        assert "DATA_DIR" in told
    assert sums(disk.path / "data") == before
    disk.remount("rw")
    assert_all_is_there(shell)


def test_a_bot_that_cannot_start_for_want_of_room_says_so(tmp_path: Path, disk: Disk) -> None:
    shell = Shell(tmp_path)
    shell.settings["DATA_DIR"] = str(disk.path / "data")
    disk.fill()
    assert "The disk is full" in shell.fails("run", PORT="0")
    disk.free()
    assert "no documents" in shell.says("docs")


@pytest.fixture
async def openai() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai() as fake:
        yield fake


@contextlib.asynccontextmanager
async def running(home: Path, port: int, **settings: str) -> AsyncIterator[tuple[RunningBot, Page]]:
    bot = RunningBot(home, port, settings)
    await asyncio.to_thread(bot.start)
    async with httpx.AsyncClient(base_url=bot.url, timeout=30) as http:
        yield bot, Page(http)
    assert await asyncio.to_thread(bot.stop) == 0


async def test_a_disk_that_fills_while_the_bot_runs_loses_nothing(
    kept: Path, tmp_path: Path, disk: Disk, openai: FakeOpenAI, free_port: Callable[[], int]
) -> None:
    """What comes is refused in words; what was taken before waits, or ends with a plain error; then it goes on."""
    data = disk.path / "data"
    shutil.copytree(kept, data)
    openai.by_model = {"slow": Text("Employees have 28 days of annual leave [1].", pause=0.4)}
    settings = {"DATA_DIR": str(data), "OPENAI_BASE_URL": openai.url, "OPENAI_MODEL": "slow"}
    async with running(tmp_path, free_port(), **settings) as (bot, page):
        taken = await page.posts(QUESTION)
        assert taken.status_code == 202
        while not openai.requests:
            await asyncio.sleep(0.02)
        disk.fill()
        for refused in (await page.posts(QUESTION), await page.posts(file="Rule 1.")):
            assert refused.status_code == 507
            assert "disk is full" in refused.json()["error"]
        await asyncio.sleep(4)  # the turn is over by then, and can't write
        disk.free()
        turn = await page.outcome(taken)
        assert "28 days" in turn["text"] or "went wrong" in turn["text"]
        assert len(await page.replies(taken)) == 1
        learnt = await page.outcome(await page.posts(file="Rule 1: the gate closes at nine."))
        assert learnt["files"][0]["verdict"] == "indexed"
        openai.by_model = {"slow": Text("The gate closes at nine [1].")}
        assert "nine" in (await page.outcome(await page.posts("When does the gate close?")))["text"]
        assert sorted(path.name for path in (data / "uploads").iterdir()) == []
    with contextlib.closing(sqlite3.connect(data / "threadlore.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# Two at once


async def test_of_two_bots_that_start_at_once_on_one_directory_one_runs(shell: Shell) -> None:
    environment = {**shell.settings, "PORT": "0"}
    command = [sys.executable, "-m", "bot", "run"]
    pipe = asyncio.subprocess.PIPE
    children = [await asyncio.create_subprocess_exec(*command, env=environment, stderr=pipe) for _ in range(2)]
    ended = [asyncio.create_task(child.communicate()) for child in children]
    await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
    (loser,) = [number for number in (0, 1) if ended[number].done()]
    assert children[loser].returncode == 1
    _, told = ended[loser].result()
    assert "Another bot has" in told.decode()
    assert len(told.splitlines()) == 1
    await asyncio.to_thread(assert_all_is_there, shell)
    children[1 - loser].terminate()
    _, log = await ended[1 - loser]
    assert children[1 - loser].returncode == 0
    assert b"Traceback" not in log
