"""A bot that is started often, and stopped at a named step."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tests.crashes.steps import Stop
from tests.scenarios.running import PROJECT, Child, RunningBot

IMPORT_SECONDS = 60.0
PACE = {"QUESTIONS_PER_MINUTE": "100000"}


class CrashingBot(RunningBot):
    """Each start is a real process of its own, forked from a parent that has done the imports."""

    def __init__(self, home: Path, port: int, settings: Mapping[str, str]) -> None:
        super().__init__(home, port, {**PACE, **settings})
        self.data = home / "data"
        self._stop = home / "stop"
        self._warm: subprocess.Popen[bytes] | None = None

    def stop_at(self, stop: Stop) -> None:
        """From now on; a bot that runs already is stopped as well."""
        fresh = self._stop.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(stop)))
        fresh.replace(self._stop)

    def stop_nowhere(self) -> None:
        self._stop.unlink(missing_ok=True)

    def wait_for_the_crash(self, seconds: float = 40) -> None:
        assert self._child is not None
        status = self._child.wait(seconds)
        assert status == -signal.SIGKILL, f"the bot ended with {status}:\n{self.log()[-4000:]}"
        self._child = None

    def close(self) -> None:
        self.kill()
        if self._warm is not None:
            self._warm.kill()
            self._warm.communicate()

    def _launched(self) -> Child:
        if self._warm is None:
            quiet = ["-W", "ignore:lancedb fork support"]  # it is forked before it does anything
            command = [sys.executable, *quiet, "-m", "tests.crashes.warm", str(self._log), str(self._stop)]
            pipe = subprocess.PIPE
            self._warm = subprocess.Popen(command, cwd=PROJECT, env=self._settings, stdin=pipe, stdout=pipe, bufsize=0)
        assert self._warm.stdin is not None
        self._warm.stdin.write(b"start\n")
        return _Forked(self._warm)


class _Forked:
    """One bot of a warm parent, as a `Popen` would be."""

    def __init__(self, warm: subprocess.Popen[bytes]) -> None:
        assert warm.stdout is not None
        self._said = warm.stdout
        self._status: int | None = None
        self.pid = self._number(IMPORT_SECONDS)

    def poll(self) -> int | None:
        if self._status is None and select.select([self._said], [], [], 0)[0]:
            self._status = int(self._said.readline())
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        if self._status is None:
            self._status = self._number(timeout)
        return self._status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _number(self, seconds: float | None) -> int:
        if not select.select([self._said], [], [], seconds)[0]:
            raise subprocess.TimeoutExpired("the bot", seconds or 0)
        return int(self._said.readline())
