"""Seconds by the wall and of the processor: on a busy machine only the second say what something costs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass
class Clock:
    """Adds up the seconds of what it is held around, by the wall and of the processor."""

    wall: float = 0.0
    processor: float = 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        wall, processor = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.wall += time.perf_counter() - wall
            self.processor += time.process_time() - processor

    def since(self, before: Clock) -> Clock:
        return Clock(self.wall - before.wall, self.processor - before.processor)


def percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]
