"""What the page is given: how to listen, and the parts of the bot that it reads from and calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bot.platform import NotStarted
from storage.channels import PAGE, Channels
from storage.clarifications import Clarifications
from storage.documents import Documents
from storage.models import Document
from storage.retrieval import Retriever
from storage.transcript import Transcript

PLATFORM = PAGE
WORKSPACE = "local"
USER = "me"


@dataclass(frozen=True, slots=True)
class WebOptions:
    """`largest_upload` bounds the bytes that are kept of one file; a larger one is posted and then refused by name."""

    host: str
    port: int
    token: str | None
    uploads: Path
    largest_upload: int
    heartbeat_seconds: float = 15


class Operations(Protocol):
    """What the command line asks of a running bot."""

    async def turn(self, platform: str, workspace: str, message: str) -> dict[str, Any] | None:
        """What became of a message: {"state", "kind", "text", "citations", "options", "usage", "trace", "seconds",
        "files"}. None where it is unknown."""

    async def forget(self, workspace: str, document: str, user: str) -> Document | None:
        """End a document. Raises Refused where this person may not."""

    async def reembed(self, report: Callable[[int, int], Awaitable[None]]) -> int:
        """Embed everything anew; `report` is told how many of how many passages are done."""

    async def backup(self, target: Path) -> None: ...


class Asks(Protocol):
    async def __call__(self, *, thoroughly: bool) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Desk:
    """`living` names the uploads that a message still waits for. `readiness` names each dependency with "ok", "ok: …",
    "not configured" or what is wrong with it."""

    transcript: Transcript
    channels: Channels
    clarifications: Clarifications
    documents: Documents
    retriever: Retriever
    operations: Operations
    living: Callable[[], Awaitable[set[str]]]
    readiness: Asks


class WebNotStarted(NotStarted):
    """The page's address can't be served, or not without a token."""
