"""What the command line asks for beyond what people do on the page."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.adapters.web import bodies, shapes
from bot.adapters.web.bodies import BackupBody, Body, SearchBody
from bot.adapters.web.desk import PLATFORM, Desk
from bot.adapters.web.errors import WebError, reply
from bot.adapters.web.events import Events
from bot.adapters.web.sight import Sight
from storage.errors import StorageError

LONGEST_WAIT = 60
LONGEST_SHOWN = 200
LOOK_SECONDS = 0.2  # a turn ends a moment after its reply was said
ENDED = frozenset({"done", "failed", "withdrawn"})
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")


class Service:
    def __init__(self, desk: Desk, sight: Sight, events: Events) -> None:
        self._desk = desk
        self._sight = sight
        self._events = events
        self._closing = False

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/messages/{message}/turn", self.turn),
            web.post("/api/search", self.search),
            web.delete("/api/documents/{document}", self.forget),
            web.post("/api/reembed", self.reembed),
            web.post("/api/backup", self.backup),
        ]

    def close(self) -> None:
        self._closing = True

    async def turn(self, request: web.Request) -> web.Response:
        """What became of a message; with `wait`, after at most so many seconds, as soon as it has become something."""
        who = bodies.caller(request)
        message = bodies.path_id(request, "message")
        line = await self._sight.line(who, message)
        deadline = time.monotonic() + bodies.number(request, "wait", 0, LONGEST_WAIT)
        found = await self._desk.operations.turn(PLATFORM, who.workspace, message)
        while not _has_ended(found) and time.monotonic() < deadline and not self._closing:
            await self._events.changed(min(LOOK_SECONDS, deadline - time.monotonic()))
            found = await self._desk.operations.turn(PLATFORM, who.workspace, message)
        if found is None:
            raise WebError(404, "What became of this message is no longer known.")
        return reply({"message": message, "thread": line.thread, **found})

    async def search(self, request: web.Request) -> web.Response:
        body = await bodies.read(request, SearchBody)
        who = bodies.caller(request, body)
        await self._sight.channel(who, body.channel)
        scope = await self._desk.channels.scope(PLATFORM, who.workspace, body.channel, who.user)
        found = await self._desk.retriever.search(body.query, scope, limit=body.limit, mode=body.mode)
        hits = [shapes.hit(each) for each in found.hits]
        return reply({"query": body.query, "hits": hits, "degraded": list(found.degraded)})

    async def forget(self, request: web.Request) -> web.Response:
        who = bodies.caller(request)
        found = await self._sight.document(who, bodies.path_id(request, "document"), None)
        ended = await self._desk.operations.forget(who.workspace, found.document, who.user)
        if ended is None:
            raise WebError(404, "There is no such document.")
        return reply(shapes.document(ended))

    async def reembed(self, request: web.Request) -> web.StreamResponse:
        """A JSON object a line: {"done", "total"} on the way, {"embedded"} or {"error"} at the end."""
        _check_local(request)
        await bodies.read(request, Body)
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
        await response.prepare(request)

        async def report(done: int, total: int) -> None:
            await response.write(_line({"done": done, "total": total}))

        try:
            embedded = await self._desk.operations.reembed(report)
        except StorageError as error:
            await response.write(_line({"error": str(error)}))
        else:
            await response.write(_line({"embedded": embedded}))
        return response

    async def backup(self, request: web.Request) -> web.Response:
        _check_local(request)
        target = Path((await bodies.read(request, BackupBody)).target)
        if not target.is_absolute():
            raise WebError(400, "Name the whole path of the backup, from / on.")
        try:
            if await asyncio.to_thread(target.exists):
                raise WebError(409, f"{target} is there already. Name a path that is not.")
            await self._desk.operations.backup(target)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no path"
            raise WebError(400, f"{_shown(target)} can't be written: {why}. Name another path.") from None
        return reply({"backup": str(target)})


def _check_local(request: web.Request) -> None:
    """These write on this machine: only who is on it, and not through a proxy, may ask."""
    forwarded = any(name in request.headers for name in FORWARDED)
    try:
        is_local = ipaddress.ip_address(request.remote or "").is_loopback
    except ValueError:
        is_local = False
    if not is_local or forwarded:
        raise WebError(403, "Only the command line on the bot's own machine may do this.")


def _shown(path: Path) -> str:
    return str(path) if len(str(path)) < LONGEST_SHOWN else f"A path of {len(str(path)):,} characters"


def _has_ended(turn: dict[str, Any] | None) -> bool:
    return turn is None or turn.get("state") in ENDED


def _line(content: object) -> bytes:
    return json.dumps(content).encode() + b"\n"
