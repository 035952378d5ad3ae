"""The parent of the bots that tests start: it has imported all that a bot needs, and forks one for each order.

An order is a line of its standard input, see `tests.warm.Order`. On its standard output it says `[pid, null]` when it
has forked a bot and `[pid, status]` when one has ended. When its input ends, all end.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import sys
from pathlib import Path

import pytest

import agent.models as models
import storage.lance as lance
from bot import __main__ as bot
from bot import app
from tests.crashes.stopping import watch
from tests.warm import Order

IMPORTED = (app, models, lance)  # for the children, though nothing here uses them
_PR_SET_PDEATHSIG = 1


def main() -> None:
    gc.freeze()
    ended, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(told)
    orders = b""
    while True:
        ready = select.select([0, ended], [], [])[0]
        if ended in ready:
            os.read(ended, 4096)
            _tell_who_ended()
        if 0 in ready:
            if not (more := os.read(0, 65536)):
                return
            *lines, orders = (orders + more).split(b"\n")
            for line in lines:
                child = os.fork()
                if child == 0:
                    _live_as_bot(Order(**json.loads(line)))
                _say(child, None)


def _tell_who_ended() -> None:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            _say(found[0], os.waitstatus_to_exitcode(found[1]))


def _say(pid: int, status: int | None) -> None:
    os.write(1, json.dumps([pid, status]).encode() + b"\n")


def _live_as_bot(order: Order) -> None:
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        output = os.open(order.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for stream, target in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
            os.dup2(target, stream)
        environment = pytest.MonkeyPatch()
        for name, value in order.settings.items():
            environment.setenv(name, value)
        os.chdir(order.home)
        if order.stop:
            watch(Path(order.stop))
        status = bot.main(["run"])
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
