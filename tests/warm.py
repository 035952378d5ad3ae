"""Real bots that start without the imports: one parent has done them, and forks itself for each that is asked for."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[1]
IMPORT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Order:
    """A bot that runs in `home` with these settings alone and writes to `log`. `stop`: see `tests.crashes.stopping`."""

    home: str
    log: str
    settings: Mapping[str, str]
    stop: str = ""


class Forked:
    """One bot, as a `Popen` would be."""

    def __init__(self, warm: Warm, pid: int) -> None:
        self._warm = warm
        self.pid = pid

    def poll(self) -> int | None:
        return self._warm.status(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + timeout if timeout is not None else None
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("the bot", timeout or 0)
            time.sleep(0.01)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Warm:
    """The parent, from outside. Threads may share it."""

    def __init__(self) -> None:
        quiet = ["-W", "ignore:lancedb fork support"]  # it is forked before it does anything
        command = [sys.executable, *quiet, "-m", "tests.warm_parent"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=PROJECT, env={}, stdin=pipe, stdout=pipe, bufsize=0)
        self._one_at_a_time = threading.Lock()
        self._said = b""
        self._started: list[int] = []
        self._ended: dict[int, int] = {}

    def fork(self, order: Order) -> Forked:
        with self._one_at_a_time:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
            deadline = time.monotonic() + IMPORT_SECONDS
            while not self._started:
                assert time.monotonic() < deadline, "the bot can't be forked"
                self._listen(0.1)
            return Forked(self, self._started.pop())

    def status(self, pid: int) -> int | None:
        with self._one_at_a_time:
            self._listen(0)
            return self._ended.get(pid)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _listen(self, seconds: float) -> None:
        assert self._process.stdout is not None
        while select.select([self._process.stdout], [], [], seconds)[0]:
            said = os.read(self._process.stdout.fileno(), 65536)
            assert said, "the warm parent has ended"
            *lines, self._said = (self._said + said).split(b"\n")
            for pid, status in map(json.loads, lines):
                if status is None:
                    self._started.append(pid)
                else:
                    self._ended[pid] = status
            seconds = 0


@functools.cache
def warm() -> Warm:
    """The one of this process."""
    started = Warm()
    atexit.register(started.close)
    return started
