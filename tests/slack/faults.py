"""What goes wrong at the next calls."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

DOWNLOAD = "download"
HOUR = 3600.0


@dataclass(frozen=True)
class TooMany:
    """Status 429."""

    seconds: float = 1


@dataclass(frozen=True)
class Status:
    """Another status, with the page that a proxy would send."""

    status: int = 503


@dataclass(frozen=True)
class Refused:
    """`ok: false` with this error."""

    error: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """No answer."""


@dataclass(frozen=True)
class Closed:
    """The connection is closed before anything is done."""


@dataclass(frozen=True)
class Lost:
    """The call is done, and the connection is closed before the answer."""


@dataclass(frozen=True)
class Slow:
    """The call is done after these seconds."""

    seconds: float


@dataclass(frozen=True)
class Page:
    """This page with status 200 instead of what was asked for."""

    html: str = "<!DOCTYPE html><html><body>Something went wrong</body></html>"


@dataclass(frozen=True)
class Cut:
    """A download breaks off after this many bytes."""

    after: int


Fault = TooMany | Status | Refused | Hang | Closed | Lost | Slow | Page | Cut
Answer = Callable[[], Awaitable[web.StreamResponse]]


class Faults:
    """Faults that wait for calls of a method, `"*"` for any; files are downloaded by the method `DOWNLOAD`."""

    def __init__(self) -> None:
        self._queues: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._lasting: dict[str, Fault] = {}

    def enqueue(self, method: str, *faults: Fault) -> None:
        """One call each."""
        self._queues[method].extend(faults)

    def always(self, method: str, fault: Fault) -> None:
        """Every call, until it is healed."""
        self._lasting[method] = fault

    def heal(self, method: str = "") -> None:
        for faults in (self._queues, self._lasting):
            if method:
                faults.pop(method, None)
            else:
                faults.clear()

    def take(self, method: str) -> Fault | None:
        for name in (method, "*"):
            if self._queues[name]:
                return self._queues[name].popleft()
        return self._lasting.get(method, self._lasting.get("*"))


async def suffer(fault: Fault | None, request: web.Request, answer: Answer) -> web.StreamResponse:
    """The answer, unless the fault comes in between."""
    match fault:
        case TooMany(seconds):
            return too_many(seconds)
        case Status(status):
            return web.Response(status=status, text="<html>upstream error</html>", content_type="text/html")
        case Refused(error, fields):
            return web.json_response({"ok": False, "error": error} | fields)
        case Page(html):
            return web.Response(text=html, content_type="text/html")
        case Hang():
            await asyncio.sleep(HOUR)
        case Closed():
            return _close(request)
        case Slow(seconds):
            await asyncio.sleep(seconds)
    response = await answer()
    return _close(request) if isinstance(fault, Lost) else response


def too_many(seconds: float) -> web.Response:
    headers = {"Retry-After": str(math.ceil(seconds))}
    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)


def _close(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response(status=500)
