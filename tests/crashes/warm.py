"""A parent that has imported the bot and forks one for each line that it is sent: a start without the imports.

Run as `python -m tests.crashes.warm LOG STOP`. It says each bot's pid, and then how it ended. The file STOP, while
it is there, names a step: the bot kills itself at it, before or after, with SIGKILL. Nothing else of it is changed.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bot import __main__ as bot
from bot import app as app  # imported for the children
from tests.crashes.steps import STEPS, Stop

_PR_SET_PDEATHSIG = 1


def main(log: Path, stop: Path) -> None:
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            _live_as_bot(log, stop)
        _say(child)
        _say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _live_as_bot(log: Path, stop: Path) -> None:
    status = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for stream, target in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
            os.dup2(target, stream)
        for step in STEPS:
            _watch(step, stop)
        status = bot.main(["run"])
    finally:
        os._exit(status)


def _watch(step: str, file: Path) -> None:
    """Wrap the function of this name, so that the bot can be stopped at it."""
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
