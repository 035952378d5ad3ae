"""Ten kills at random instants under a mixed load; `python -m bench.chaos` makes it many more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crashes.chaos import chaos
from tests.crashes.crashing import CrashingBot

KILLS = 10
SEED = 20
LONGEST = 1.5  # seconds from ready to kill


@pytest.mark.timeout(300)
async def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path, free_port: Callable[[], int]) -> None:
    bot = CrashingBot(tmp_path, free_port(), {})
    try:
        result = await chaos(bot, KILLS, SEED, LONGEST)
    finally:
        bot.kill()
    assert result.faults == [] and result.given_up == 0
    assert result.messages > KILLS and result.repeated > 0
