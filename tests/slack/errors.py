from __future__ import annotations

from typing import Any


class SlackError(Exception):
    """What the Web API answers with `ok: false`."""

    def __init__(self, code: str, **fields: Any) -> None:
        super().__init__(code)
        self.code = code
        self.fields = fields


def invalid_arguments(why: str) -> SlackError:
    return SlackError("invalid_arguments", response_metadata={"messages": [f"[ERROR] {why}"]})


class Limited(Exception):
    """Status 429: the call may be repeated after these seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds} s")
        self.seconds = seconds
