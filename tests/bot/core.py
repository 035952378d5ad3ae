"""The core over real stores, with a platform in memory at the end of the wire."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from agent.outcomes import Event, Status
from bot import lanes
from bot.claiming import Claiming, Pace
from bot.conversation import Conversation, Rules
from bot.lanes import Lanes, Widths
from bot.messages import Attachment, Incoming, Kind, Posted, Reply, ThreadRef
from bot.platform import Claim, OnMessage, Turn
from bot.rows import Stores
from ingest.convert import Converter
from ingest.ingestor import Ingestor
from ingest.limits import FileLimits
from storage.channels import Channels
from storage.clarifications import Clarifications
from storage.database import sqlite_url
from storage.embeddings import Embedder
from storage.journal import Heartbeat, Journal
from tests.agent.library import CHANNEL, WORKSPACE, Library, open_agent


@dataclass
class MemoryPlatform:
    """Keeps what it is sent. `hold` stops each turn at its first word, or one with `hold_at`; `failing` sends fail."""

    name: str = "web"
    characters: int = 100_000
    sent: list[tuple[str, Reply]] = field(default_factory=list)
    revised: list[tuple[str, Reply]] = field(default_factory=list)
    standing: dict[int, list[Posted]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    hold: asyncio.Event | None = None
    hold_at: str = ""
    held: asyncio.Event = field(default_factory=asyncio.Event)
    failing: int = 0
    failing_after_posting: int = 0

    async def start(self, on_message: OnMessage) -> None: ...

    async def stop_listening(self) -> None: ...

    async def close(self) -> None: ...

    async def look(self, where: ThreadRef, user: str) -> None:
        """It knows no more than the catalog."""

    async def tell(self, turn: Turn, event: Event) -> None:
        if self.hold is not None and event != Status(text=lanes.WAITING) and self.hold_at in str(event):
            self.held.set()
            await self.hold.wait()

    async def send(self, turn: Turn, part: int, reply: Reply) -> str:
        if self.failing:
            self.failing -= 1
            raise ConnectionError("the platform is down")
        self.sent.append((turn.message, reply))
        posted = Posted(message=f"r{turn.row}.{part}", part=part)
        self.standing.setdefault(turn.row, []).append(posted)
        if self.failing_after_posting:
            self.failing_after_posting -= 1
            raise ConnectionError("the answer to the post was lost")
        return posted.message

    async def find(self, turn: Turn) -> list[Posted]:
        return self.standing.get(turn.row, [])

    async def revise(self, where: ThreadRef, message: str, reply: Reply) -> None:
        self.revised.append((message, reply))

    async def whisper(self, where: ThreadRef, user: str, text: str) -> None: ...

    async def fetch(self, attachment: Attachment, target: Path) -> None:
        target.write_bytes(self.files[attachment.reference])

    async def discard(self, attachment: Attachment) -> None:
        self.files.pop(attachment.reference, None)

    def replies_to(self, message: str) -> list[Reply]:
        return [reply for to, reply in self.sent if to == message]


@dataclass
class Core:
    stores: Stores
    lanes: Lanes
    platform: MemoryPlatform
    library: Library
    _times: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def say(
        self,
        text: str,
        message: str,
        thread: str = "t",
        channel: str = CHANNEL,
        kind: Kind = Kind.MESSAGE,
        user: str = "ann",
        files: dict[str, bytes] | None = None,
        **more: object,
    ) -> Claim:
        self.platform.files |= files or {}
        said: dict[str, object] = {
            "kind": kind,
            "where": ThreadRef(platform="web", workspace=WORKSPACE, channel=channel, thread=thread),
            "message": message,
            "user": user,
            "text": text,
            "sent_at": float(next(self._times)),
            "attachments": [Attachment(name=n, size=len(b), reference=n) for n, b in (files or {}).items()],
        }
        return await self.lanes.receive(Incoming.model_validate({**said, **more}))

    async def settled(self, *messages: str, seconds: float = 30) -> None:
        """Wait until every claim of these messages has ended."""
        async with asyncio.timeout(seconds):
            while any([await self._open(message) for message in messages]):
                await asyncio.sleep(0.02)

    async def _open(self, message: str) -> bool:
        rows = await self.stores.journal.of_message("web", WORKSPACE, message)
        return not rows or any(row.state in ("open", "running", "sending") for row in rows)

    async def states(self, message: str) -> list[str]:
        return [row.state for row in await self.stores.journal.of_message("web", WORKSPACE, message)]


@contextlib.asynccontextmanager
async def open_core(
    library: Library, folder: Path, embedder: Embedder, platform: MemoryPlatform, *, pace: int = 1000
) -> AsyncIterator[Core]:
    """A core that works. Opened again on the same folder it is the one that starts after the other."""
    stores = Stores(
        library.database,
        Journal(library.database),
        library.transcript,
        Channels(library.database),
        Clarifications(library.database),
        library.documents,
    )
    async with contextlib.AsyncExitStack() as stack:
        asking = await stack.enter_async_context(open_agent(library, folder))
        converter = await stack.enter_async_context(Converter(FileLimits(), eager=False))
        ingestor = Ingestor(library.documents, library.store, embedder, converter, FileLimits())
        platforms = {"web": platform}
        conversation = Conversation(stores, asking.agent, ingestor, platforms, Rules(24, folder / "work"))
        heartbeat = stack.enter_context(Heartbeat(sqlite_url(folder / "app.sqlite")))
        core = lanes.Core(Claiming(stores, Pace(4000, pace)), conversation)
        opened = Lanes(stores, core, platforms, heartbeat, Widths(8, 2))
        await stack.enter_async_context(opened.running())
        yield Core(stores, opened, platform, library)
