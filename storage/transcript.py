"""What was said: every message of a thread with its citations, clarifications and feedback."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a thread as a later turn may know it. `citations` and `options` are dumped outcomes."""

    author: str
    user: str
    text: str
    kind: str
    message: str
    citations: tuple[dict[str, object], ...] = ()
    options: tuple[dict[str, object], ...] = ()
