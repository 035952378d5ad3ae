"""Files as Markdown, each opened in a child of its own that is killed at its limits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Self

import psutil

from ingest import frames
from ingest.limits import FileLimits
from ingest.parts import Converted, Heading, Part, Refused

__all__ = ["Converted", "Converter", "ConverterDown", "Part", "Refused"]

Progress = Callable[[int, int], Awaitable[None]]
"""Told how many pages, slides or sheets are read, and how many there are."""

START_SECONDS = 60  # a parent that imports everything on a busy machine
REST_SECONDS = 0.2  # between two parents, where one dies
WARM_AFTER_SECONDS = 2.0  # or with the first file: the start of the bot doesn't share its processor with it
LOOK_SECONDS = 0.05  # between two looks at a child's memory
_ROOT = Path(__file__).resolve().parents[1]
_ENVIRONMENT = {"PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # and no key of ours

_TOO_SLOW = "it took longer than {seconds:g} seconds to read: split it and post the parts"
_TOO_LARGE_IN_MEMORY = "it needs more than {megabytes:,} MB of memory to be read: split it and post the parts"
_BROKEN = "it is broken and can't be read: open it, save it again and post that"


class ConverterDown(Exception):
    """No child could be had for a file. Trying again later may work."""


class _Fell(Exception):
    """The child ended without a word: it fell over the file, or something killed it."""


class Converter:
    """Holds the warm parent. Within `async with`, files are converted, any number at once.

    `eager`: the parent warms up at once, not only for the first file.
    """

    def __init__(self, limits: FileLimits, *, eager: bool = True) -> None:
        self._limits = limits
        self._eager = eager
        self._warm: asyncio.Task[None] | None = None
        self._open = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._asking, self._asked = socket.socketpair()
        self._open.enter_context(self._asking)
        self._open.enter_context(self._asked)
        if self._eager:
            waiting = asyncio.get_running_loop().call_later(WARM_AFTER_SECONDS, self._warm_up)
            self._open.callback(waiting.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def convert(self, path: Path, name: str, progress: Progress) -> Converted:
        """Raises Refused with the reason for the person, or ConverterDown."""
        self._warm_up()
        for _ in range(2):
            try:
                return await self._convert(path.resolve(), name, progress)
            except _Fell:
                continue  # once more: the warm parent may have been killed, and the child with it
        raise Refused(_BROKEN)

    def _warm_up(self) -> None:
        if self._warm is None:
            self._warm = asyncio.create_task(_keep_warm(self._asked.fileno()))
            self._open.push_async_callback(_cancel, self._warm)

    async def _convert(self, path: Path, name: str, progress: Progress) -> Converted:
        async with self._child() as (reader, writer, child):
            asked = {"path": str(path), "name": name, "limits": asdict(self._limits)}
            watch = asyncio.create_task(self._watch_memory(child))
            try:
                async with asyncio.timeout(self._limits.seconds):
                    writer.write(json.dumps(asked).encode() + b"\n")
                    return await _receive(reader, progress)
            except TimeoutError as error:
                raise Refused(_TOO_SLOW.format(seconds=self._limits.seconds)) from error
            except (_Fell, ConnectionError) as error:
                if watch.done():  # it was killed for its memory
                    megabytes = self._limits.memory // (1024 * 1024)
                    raise Refused(_TOO_LARGE_IN_MEMORY.format(megabytes=megabytes)) from error
                raise _Fell from error
            finally:
                await _cancel(watch)

    @contextlib.asynccontextmanager
    async def _child(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, psutil.Process | None]]:
        """A fresh child that waits for its file; it is dead at the block's end."""
        try:
            reader, writer = await self._connection()
        except OSError as error:
            raise ConverterDown("no child for a file: the warm parent can't be reached") from error
        child: psutil.Process | None = None
        try:
            async with asyncio.timeout(START_SECONDS):
                letter, content = await _frame(reader)
            with contextlib.suppress(psutil.NoSuchProcess):
                child = psutil.Process(int(content)) if letter == frames.STARTED else None
            yield reader, writer, child
        except TimeoutError as error:
            raise ConverterDown("no child for a file: the warm parent doesn't answer") from error
        finally:
            _kill(child)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A socket whose other end goes to the warm parent, and with it to a child."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._asking, [frames.FILE], [theirs.fileno()])
        return await asyncio.open_unix_connection(sock=ours, limit=frames.LARGEST)

    async def _watch_memory(self, child: psutil.Process | None) -> None:
        """Ends when it has killed the child."""
        while child is not None:
            await asyncio.sleep(LOOK_SECONDS)
            with contextlib.suppress(psutil.Error):
                if child.memory_info().rss > self._limits.memory:
                    _kill(child)
                    return
        await asyncio.Event().wait()


async def _keep_warm(asked: int) -> None:
    """One parent after another: files wait in this socket until the next one takes them."""
    while True:
        parent = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ingest.warm",
            str(asked),
            cwd=_ROOT,
            env=_ENVIRONMENT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            pass_fds=(asked,),
            start_new_session=True,  # a terminal's Ctrl-C is for the bot: files go on until it ends
        )
        try:
            await parent.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                parent.kill()
            await parent.wait()
            if parent.stdin is not None:
                parent.stdin.close()
        await asyncio.sleep(REST_SECONDS)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _kill(child: psutil.Process | None) -> None:
    if child is not None:
        with contextlib.suppress(psutil.Error):
            child.kill()


async def _receive(reader: asyncio.StreamReader, progress: Progress) -> Converted:
    parts: list[tuple[Part, list[str]]] = []
    while True:
        letter, content = await _frame(reader)
        if letter == frames.DONE:
            done, total = json.loads(content)
            await progress(int(done), int(total))
        elif letter == frames.PART:
            parts.append((_part(content), []))
        elif letter == frames.TEXT:
            parts[-1][1].append(content.decode())
        elif letter == frames.REFUSED:
            raise Refused(content.decode())
        elif letter == frames.END:
            pages, note = json.loads(content)
            return Converted(tuple(_with_text(part, "".join(pieces)) for part, pieces in parts), pages, note)


def _part(content: bytes) -> Part:
    described = json.loads(content)
    headings = tuple(Heading(**heading) for heading in described.pop("headings"))
    return Part(**described, headings=headings)


def _with_text(part: Part, text: str) -> Part:
    return Part(part.page, part.place, text, part.markup, part.flows, part.headings)


async def _frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    try:
        letter, length = frames.HEADER.unpack(await reader.readexactly(frames.HEADER.size))
        return letter, await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise _Fell from error
