"""Waiting for something to become true, from any thread and any event loop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import AsyncIterator, Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Locked(Protocol):
    @property
    def lock(self) -> threading.RLock: ...


L = TypeVar("L", bound=Locked)


def locked(function: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """The first argument's lock is held while the function runs."""

    def hold(first: L, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with first.lock:
            return function(first, *args, **kwargs)

    functools.update_wrapper(hold, function)
    return hold


class Changes:
    def __init__(self) -> None:
        self._watchers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._lock = threading.Lock()

    def notify(self) -> None:
        with self._lock:
            for loop, event in self._watchers:
                loop.call_soon_threadsafe(event.set)

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever there is something new."""
        watcher = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._watchers.add(watcher)
        try:
            yield watcher[1]
        finally:
            with self._lock:
                self._watchers.discard(watcher)

    async def until(self, find: Callable[[], T | None], seconds: float) -> T:
        """What `find` finds, as soon as it isn't None. Raises TimeoutError."""
        async with asyncio.timeout(seconds), self.watch() as changed:
            while (found := find()) is None:
                await changed.wait()
                changed.clear()
        return found
