"""A bot that is started often, and stopped at a named step."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from tests.crashes.steps import Stop
from tests.running import RunningBot
from tests.warm import Order

PACE = {"QUESTIONS_PER_MINUTE": "100000"}


class CrashingBot(RunningBot):
    def __init__(self, home: Path, port: int, settings: Mapping[str, str]) -> None:
        super().__init__(home, port, {**PACE, **settings})
        self.data = home / "data"
        self._stop = home / "stop"

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

    def _order(self) -> Order:
        return replace(super()._order(), stop=str(self._stop))
