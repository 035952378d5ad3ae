"""The port that every platform implements."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from agent.outcomes import Event
from bot.messages import Attachment, Incoming, Posted, Reply, ThreadRef


@dataclass(frozen=True, slots=True)
class Claim:
    """What the journal knows of a message: its row, and whether it was new. A repeat finds the first one's row."""

    row: int
    new: bool
    incoming: Incoming


class Why(StrEnum):
    INVALID = "invalid"
    TOO_LONG = "too long"
    TOO_MANY = "too many"
    UNKNOWN = "unknown"
    NOT_MEMBER = "not a member"
    NOT_AUTHOR = "not the author"
    NOT_ASKER = "not the asker"
    DECIDED = "decided"
    CONFLICT = "conflict"
    NOT_ADDRESSED = "not addressed"


class Refused(Exception):
    """The message can't be taken; `text` tells the person what to do. Nothing was claimed."""

    def __init__(self, why: Why, text: str) -> None:
        super().__init__(text)
        self.why = why
        self.text = text


OnMessage = Callable[[Incoming], Awaitable[Claim]]
"""Claims a message. It returns when the claim is on disk: only then may a platform acknowledge. Raises Refused."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The message that a reply answers, and the id that each part of the reply carries where it stays."""

    row: int
    where: ThreadRef
    message: str
    user: str


class Platform(Protocol):
    name: str
    characters: int  # that one posted message holds

    async def start(self, on_message: OnMessage) -> None:
        """Begin to listen. Returns when messages are being taken."""

    async def stop_listening(self) -> None:
        """Take no more messages. Replies can still be sent."""

    async def close(self) -> None: ...

    async def look(self, where: ThreadRef, user: str) -> None:
        """See to it that the catalog knows who may read what this person's turn there may draw on, as it is now.

        Raises PlatformDown.
        """

    async def tell(self, turn: Turn, event: Event) -> None:
        """Show what the turn is doing. Best effort: never raises, never waits long."""

    async def send(self, turn: Turn, part: int, reply: Reply) -> str:
        """Post one part of a turn's reply, marked with the turn's id and the part's number; the new message's id.

        Raises PlatformDown, or Undeliverable where it can't be posted there and never will.
        """

    async def find(self, turn: Turn) -> list[Posted]:
        """The parts of this turn's reply that stand in the thread already."""

    async def revise(self, where: ThreadRef, message: str, reply: Reply) -> None:
        """Replace one of the bot's messages: an expired card, a decided one, the answer to an edited question.

        Raises PlatformDown.
        """

    async def whisper(self, where: ThreadRef, user: str, text: str) -> None:
        """Tell one person alone, where the platform can."""

    async def fetch(self, attachment: Attachment, target: Path) -> None:
        """Write the attachment's bytes to `target`. Raises PlatformDown, or FetchFailed with what to do."""

    async def discard(self, attachment: Attachment) -> None:
        """The attachment's bytes are not needed any more."""


class PlatformDown(Exception):
    """The platform doesn't answer, or with a failure of its own: later it may."""


class Undeliverable(Exception):
    """There is no way to post there any more: the channel is gone, or the bot is no longer in it."""


class FetchFailed(Exception):
    """An attachment can't be had; the text says why and what to do, for the person who posted it."""


class NotStarted(Exception):
    """A platform can't be served as it is set up; the text says what to do."""
