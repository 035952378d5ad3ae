"""Server-sent events: what the turns are doing, and every message as it comes or changes.

`status`, `step` and `token` are told once, to who listens, and may be lost. `reply` (of the bot) and `post` (of a
person) are read from the transcript by the number of their change: a reader who was away goes on where it was.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from contextlib import suppress

from aiohttp import web
from sqlalchemy.exc import SQLAlchemyError

from agent.outcomes import Event, Status, Step
from bot.adapters.web import bodies, shapes
from bot.adapters.web.bodies import Caller
from bot.adapters.web.desk import PLATFORM, Desk
from bot.adapters.web.errors import WebError
from bot.adapters.web.health import Metrics
from bot.adapters.web.sight import Sight
from bot.platform import Turn
from storage.channels import Channel, Channels
from storage.transcript import Line, Transcript

PENDING = 500  # events that may be lost, for one reader that is slow
AT_ONCE = 200  # changes that are read at once
RECENT = 1000  # changes that are kept for readers who are up to date
STALLED_SECONDS = 30.0  # that a reader may leave a write unread
LOOK_SECONDS = 5.0  # between looks at the transcript where nobody says that it changed
GLIMPSE_SECONDS = 0.05  # that a channel's readers are taken as they were
LARGEST_CHANGE = 2**62
HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}

log = logging.getLogger(__name__)


class Feed:
    """The transcript's changes, read once for all readers."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._recent: deque[tuple[int, Line]] = deque()
        self._floor = 0  # every change after this one is among the recent
        self._looked = 0  # the newest change when it was last looked, of whatever platform
        self.newest = 0

    async def open(self) -> None:
        self.newest = self._floor = self._looked = await self._transcript.newest_change()

    async def advance(self) -> bool:
        """Wait for changes for a while; whether there are any."""
        await self._transcript.wait(self._looked, LOOK_SECONDS)
        looked = await self._transcript.newest_change()
        found = await self._transcript.changes(PLATFORM, self.newest, AT_ONCE)
        if len(found) < AT_ONCE:
            self._looked = looked
        for change in found:
            self._recent.append(change)
            self.newest = change[0]
        while len(self._recent) > RECENT:
            self._floor = self._recent.popleft()[0]
        return bool(found)

    async def since(self, after: int) -> list[tuple[int, Line]]:
        if after >= self.newest:
            return []
        if after >= self._floor:
            return [change for change in self._recent if change[0] > after][:AT_ONCE]
        return await self._transcript.changes(PLATFORM, after, AT_ONCE)


class Reader:
    """One open connection. `thread` is "" where all threads are listened to."""

    def __init__(self, who: Caller, thread: str) -> None:
        self.who = who
        self.thread = thread
        self.after = 0
        self.heard = time.monotonic()  # when it was last written to
        self.wake = asyncio.Event()
        self._pending: deque[bytes] = deque()

    def offer(self, event: bytes) -> None:
        if len(self._pending) < PENDING:
            self._pending.append(event)
        self.wake.set()

    def take(self) -> bytes:
        events = b"".join(self._pending)
        self._pending.clear()
        return events

    def listens_to(self, workspace: str, thread: str) -> bool:
        return self.who.workspace == workspace and self.thread in ("", thread)


class Glimpses:
    """Channels as they were a moment ago: many readers ask for the same one at once."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._seen: dict[tuple[str, str], Channel | None] = {}
        self._until = 0.0
        self._changes = 0

    async def channel(self, workspace: str, channel: str) -> Channel | None:
        if self._until < time.monotonic() or self._changes != self._channels.changes:
            self._seen.clear()
            self._until = time.monotonic() + GLIMPSE_SECONDS
            self._changes = self._channels.changes
        key = workspace, channel
        if key in self._seen:
            return self._seen[key]
        found = await self._channels.get(PLATFORM, workspace, channel)
        self._seen[key] = found
        return found


class Events:
    def __init__(self, desk: Desk, sight: Sight, metrics: Metrics, heartbeat_seconds: float) -> None:
        self._desk = desk
        self._sight = sight
        self._metrics = metrics
        self._heartbeat = heartbeat_seconds
        self._feed = Feed(desk.transcript)
        self._glimpses = Glimpses(desk.channels)
        self._readers: set[Reader] = set()
        self._watch: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._closing = False

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/events", self.all_threads, allow_head=False),
            web.get("/api/threads/{thread}/events", self.one_thread, allow_head=False),
        ]

    async def open(self) -> None:
        await self._feed.open()
        self._watch = asyncio.create_task(self._watch_feed(), name="web events")

    async def close(self) -> None:
        self._closing = True
        for reader in self._readers:
            reader.wake.set()
        async with self._changed:
            self._changed.notify_all()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    async def all_threads(self, request: web.Request) -> web.StreamResponse:
        return await self._stream(request, Reader(bodies.caller(request), ""))

    async def one_thread(self, request: web.Request) -> web.StreamResponse:
        who = bodies.caller(request)
        thread = bodies.path_id(request, "thread")
        await self._sight.thread(who, thread)
        return await self._stream(request, Reader(who, thread))

    async def tell(self, turn: Turn, event: Event) -> None:
        """To who listens and may read the turn's channel, and never at the turn's cost."""
        where = turn.where
        listening = [reader for reader in self._readers if reader.listens_to(where.workspace, where.thread)]
        if not listening:
            return
        try:
            channel = await self._glimpses.channel(where.workspace, where.channel)
        except SQLAlchemyError:
            log.exception("an event of %s was not told", where)
            return
        block = _told(turn, event)
        for reader in listening:
            if _may_read(reader.who, channel):
                reader.offer(block)

    async def changed(self, seconds: float) -> None:
        """Return when something was said anywhere, or after `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                if not self._closing:
                    await self._changed.wait()

    async def _watch_feed(self) -> None:
        while True:
            try:
                has_changes = await self._feed.advance()
            except SQLAlchemyError:
                log.exception("the transcript can't be read; trying again")
                await asyncio.sleep(1)
                continue
            if has_changes:
                for reader in self._readers:
                    reader.wake.set()
                async with self._changed:
                    self._changed.notify_all()

    async def _stream(self, request: web.Request, reader: Reader) -> web.StreamResponse:
        reader.after = self._start(request)
        response = web.StreamResponse(headers=HEADERS)
        await response.prepare(request)
        self._readers.add(reader)
        self._metrics.readers.inc()
        try:
            await self._write(response, f"retry: 1000\nid: {reader.after}\n\n".encode())
            while not self._closing and not _is_gone(request):
                await self._serve(reader, response)
        except (ConnectionError, TimeoutError):
            log.debug("a reader of events is gone")
        finally:
            self._readers.discard(reader)
            self._metrics.readers.dec()
        return response

    async def _serve(self, reader: Reader, response: web.StreamResponse) -> None:
        """Write what there is; where there is nothing, wait for it, and let the reader hear that we are here."""
        reader.wake.clear()
        block = reader.take()
        changes = await self._feed.since(reader.after)
        for number, line in await self._shown(reader, changes):
            block += _said(number, line.author, await self._sight.message(line))
        if changes:
            reader.after = changes[-1][0]
        silence = reader.heard + self._heartbeat - time.monotonic()
        if block or silence <= 0:
            await self._write(response, block or b": still here\n\n")
            reader.heard = time.monotonic()
        elif not changes:
            with suppress(TimeoutError):
                async with asyncio.timeout(silence):
                    await reader.wake.wait()

    async def _shown(self, reader: Reader, changes: list[tuple[int, Line]]) -> list[tuple[int, Line]]:
        """Those that this reader may see now."""
        theirs = [change for change in changes if reader.listens_to(change[1].workspace, change[1].thread)]
        names = {line.channel for _, line in theirs}
        channels = {name: await self._glimpses.channel(reader.who.workspace, name) for name in names}
        return [change for change in theirs if _may_read(reader.who, channels[change[1].channel])]

    async def _write(self, response: web.StreamResponse, block: bytes) -> None:
        async with asyncio.timeout(STALLED_SECONDS):
            await response.write(block)

    def _start(self, request: web.Request) -> int:
        """The change that this reader saw last; now where it doesn't say."""
        given = request.headers.get("Last-Event-ID") or request.query.get("last_event_id", "")
        if not given:
            return self._feed.newest
        if not (given.isascii() and given.isdigit() and len(given) < 20) or int(given) > LARGEST_CHANGE:
            raise WebError(400, "Last-Event-ID is the id of an event that was received here.")
        return min(int(given), self._feed.newest)


def _may_read(who: Caller, channel: Channel | None) -> bool:
    return channel is not None and channel.sees(who.user)


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _told(turn: Turn, event: Event) -> bytes:
    where = {"message": turn.message, "thread": turn.where.thread, "channel": turn.where.channel}
    if isinstance(event, Step):
        return _event("step", {**where, "name": event.name, "detail": event.detail})
    return _event("status" if isinstance(event, Status) else "token", {**where, "text": event.text})


def _said(number: int, author: str, message: shapes.Json) -> bytes:
    return f"id: {number}\n".encode() + _event("reply" if author == "bot" else "post", message)


def _event(name: str, content: shapes.Json) -> bytes:
    told = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    return b"event: " + name.encode() + b"\ndata: " + told + b"\n\n"
