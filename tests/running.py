"""A real bot in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tests.warm import Forked, Order, warm

PROJECT = Path(__file__).parents[1]
START_SECONDS = 60.0
STOP_SECONDS = 20.0


class RunningBot:
    """A bot that runs on a data directory of its own, with no setting but the ones given here."""

    def __init__(self, home: Path, port: int, settings: Mapping[str, str]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._home = home
        self._log = home / "log"
        self._settings = {
            "PYTHONPATH": str(PROJECT),
            "DATA_DIR": str(home / "data"),
            "HOST": "127.0.0.1",
            "PORT": str(port),
            **settings,
        }
        self._child: Forked | None = None

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start it, and don't wait until it is ready."""
        self._child = warm().fork(self._order())

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            assert self.is_running, f"the bot ended while it started:\n{self.log()[-4000:]}"
            assert time.monotonic() < deadline, f"the bot is not ready after {START_SECONDS} s:\n{self.log()[-4000:]}"
            time.sleep(0.05)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _order(self) -> Order:
        return Order(str(self._home), str(self._log), self._settings)

    def _end(self, sign: signal.Signals) -> int:
        child, self._child = self._child, None
        if child is None:
            return 0
        child.send_signal(sign)
        try:
            return child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=1) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False
