"""Ids and timestamps as Slack gives them."""

from __future__ import annotations

import itertools
import time

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Ids:
    def __init__(self) -> None:
        self._numbers = itertools.count(DIGITS.index("A") * 36**7)

    def new(self, kind: str) -> str:
        return f"{kind}0{_base36(next(self._numbers))}"


class Clock:
    """Timestamps that identify messages: no two are alike, and each is later than the one before."""

    def __init__(self) -> None:
        self._last = 0

    def ts(self) -> str:
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = DIGITS[digit] + digits
    return digits
