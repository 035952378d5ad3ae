"""What the command line asks of a running bot, beside posting and reading."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bot.conversation import Conversation
from bot.datadir import DataDir
from bot.messages import Reply
from bot.platform import Refused, Why
from bot.rows import Stores
from ingest.ingestor import Ingestor
from ingest.split import passages
from storage.journal import Row
from storage.models import Document, Passage

Report = Callable[[int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class BotOperations:
    stores: Stores
    conversation: Conversation
    ingestor: Ingestor
    directory: DataDir
    accept_model: Callable[[], Awaitable[None]]  # from now on the stored vectors are the present model's alone

    async def turn(self, platform: str, workspace: str, message: str) -> dict[str, Any] | None:
        rows = await self.stores.journal.of_message(platform, workspace, message)
        turns = [row for row in rows if row.kind != "delete"]
        if not turns:
            return None
        last = turns[-1]
        return {**await self._told(last), "state": last.state, "kind_of_message": last.kind}

    async def _told(self, row: Row) -> dict[str, Any]:
        outcome = dict(row.outcome or {})
        parts = [Reply.model_validate(part) for part in outcome.get("parts", [])]
        files = await self.stores.journal.files_of(row)
        seconds = outcome.get("seconds", (row.ended_at or row.claimed_at) - row.claimed_at)
        return {
            "kind": parts[0].kind if parts else None,
            "text": "\n\n".join(part.text for part in parts),
            "citations": [citation.model_dump(mode="json") for part in parts for citation in part.citations],
            "options": await self._options(row, parts),
            "usage": outcome.get("usage", {}),
            "trace": outcome.get("trace", []),
            "seconds": round(seconds, 3),
            "files": [file.outcome for file in files] or outcome.get("files", []),
        }

    async def _options(self, row: Row, parts: Sequence[Reply]) -> list[dict[str, Any]]:
        options = [option.model_dump(mode="json") for part in parts for option in part.options]
        scope = await self.stores.channels.scope(row.platform, row.workspace, row.channel, row.user, row.thread)
        return await self.stores.documents.offered(scope, options)

    async def passages(self, document: Document) -> list[Passage]:
        return passages(document, await self.stores.documents.sections(document.key))

    async def forget(self, workspace: str, document: str, user: str) -> Document | None:
        found = await self.stores.documents.get(document)
        if found is None or found.workspace != workspace:
            return None
        channel = await self.stores.channels.get("web", workspace, found.channel)
        manages = channel is not None and channel.sees(user) and self.conversation.manages(channel, user)
        if found.posted_by != user and not manages:
            raise Refused(Why.NOT_AUTHOR, f"“{found.name}” is forgotten by {found.posted_by}, who posted it.")
        ended = await self.stores.documents.forget(document)
        await self.ingestor.clean(workspace)
        return ended

    async def reembed(self, report: Report) -> int:
        done = await self.ingestor.reembed(report)
        await self.accept_model()
        return done

    async def backup(self, target: Path) -> None:
        """A copy of everything that is kept, taken while the bot runs. Raises OSError."""
        await asyncio.to_thread(back_up, self.directory, target)


def back_up(directory: DataDir, target: Path) -> None:
    """Copy everything to a new folder; nothing is left there where that fails. Raises OSError."""
    target.mkdir(parents=True)
    try:
        for database in (directory.database, directory.checkpoints):
            _copy_database(database, target / database.name)
        for folder in (directory.passages, directory.uploads):
            if folder.exists():
                shutil.copytree(folder, target / folder.name)
    except sqlite3.Error as error:
        shutil.rmtree(target, ignore_errors=True)
        raise OSError(errno.EIO, "the copy of a database broke off, or there is no room for it") from error
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _copy_database(database: Path, target: Path) -> None:
    with (
        contextlib.closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)) as source,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)
