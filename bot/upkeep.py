"""What has to be done now and then: cards expire, what is dead leaves the disk, what waits for a vector gets it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from bot.lanes import Lanes
from bot.rows import Stores
from ingest.ingestor import Ingestor
from storage.errors import StorageError
from storage.knowledge import KnowledgeStore

log = logging.getLogger(__name__)

TICK_SECONDS = 5.0


@dataclass(slots=True)
class _Chore:
    every: float  # seconds
    work: Callable[[], Awaitable[object]]
    due: float = 0.0


class Upkeep:
    def __init__(
        self, stores: Stores, lanes: Lanes, ingestor: Ingestor, store: KnowledgeStore, retention_days: float
    ) -> None:
        self._stores = stores
        self._lanes = lanes
        self._ingestor = ingestor
        self._store = store
        self._retention_days = retention_days
        self._chores = [
            _Chore(TICK_SECONDS, self.expire_cards),
            _Chore(60, ingestor.embed_missing),
            _Chore(600, self._clean),
            _Chore(600, lanes.forget_ended),
            _Chore(86400, self._prune),
        ]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run(), name="upkeep")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def expire_cards(self) -> None:
        """A clarification that nobody answered in its time says so, once."""
        async with self._stores.database.write() as connection:
            over = await self._stores.clarifications.expire(connection)
            for card in over:
                await self._stores.transcript.touch_clarification(connection, card.id)
        for card in over:
            await self._lanes.show(card.id)
        if over:
            await self._stores.transcript.announce()
            await self._lanes.forget_ended()

    async def _clean(self) -> None:
        await self._ingestor.clean()
        await self._store.compact()

    async def _prune(self) -> None:
        await self._stores.journal.prune(self._retention_days)

    async def _run(self) -> None:
        while True:
            for chore in self._chores:
                if chore.due <= time.monotonic():
                    await self._do(chore)
            await asyncio.sleep(TICK_SECONDS)

    async def _do(self, chore: _Chore) -> None:
        chore.due = time.monotonic() + chore.every
        try:
            await chore.work()
        except (StorageError, SQLAlchemyError):
            log.exception("upkeep failed; trying again in %s s", chore.every)
