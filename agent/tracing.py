"""What each step did and how long it took, for those who want to look inside."""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable
from typing import ParamSpec

from agent.state import Json

P = ParamSpec("P")


def traced(node: Callable[P, Awaitable[Json]]) -> Callable[P, Awaitable[Json]]:
    """A node whose update carries its name, its time, and the counts that it left under `trace`."""

    @functools.wraps(node)
    async def timed(*args: P.args, **kwargs: P.kwargs) -> Json:
        started = time.perf_counter()
        update = await node(*args, **kwargs)
        entry: Json = {"node": node.__name__, "ms": round(1000 * (time.perf_counter() - started), 1)}
        for counts in update.get("trace", ()):
            entry |= counts
        if usage := update.get("usage"):
            entry["model_calls"] = usage["calls"]
        return {**update, "trace": [entry]}

    return timed
