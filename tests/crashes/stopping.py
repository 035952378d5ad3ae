"""Within a bot: while a file is there, it names a step at which the bot kills itself, before or after, with SIGKILL.

Nothing else of the bot is changed.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.crashes.steps import STEPS, Stop


def watch(file: Path) -> None:
    """Wrap each step's function, so that the bot can be stopped at it."""
    for step in STEPS:
        module, _, name = step.partition(":")
        owner: Any = importlib.import_module(module)
        *parents, last = name.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        setattr(owner, last, _stopping(step, getattr(owner, last), file))


def _stopping(step: str, function: Callable[..., Awaitable[Any]], file: Path) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(function)
    async def watched(*args: Any, **more: Any) -> Any:
        _stop_here(step, "before", file, args, more)
        result = await function(*args, **more)
        _stop_here(step, "after", file, args, more, result)
        return result

    return watched


def _stop_here(step: str, when: str, file: Path, *known: object) -> None:
    if not file.exists():
        return
    stop = Stop(**json.loads(file.read_text()))
    if (stop.step, stop.when) != (step, when) or not all(word in repr(known) for word in stop.words):
        return
    if not stop.each_time:
        file.unlink()
    os.kill(os.getpid(), signal.SIGKILL)
