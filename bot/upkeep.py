"""What has to be done now and then: cards expire, what is dead leaves the disk, what waits for a vector gets it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from bot.lanes import Lanes
from bot.rows import Stores
from ingest.ingestor import Ingestor
from storage.errors import StorageError

log = logging.getLogger(__name__)

CARDS_SECONDS = 5.0
EMBED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Chore:
    every: float  # seconds
    work: Callable[[], Awaitable[object]]


class Upkeep:
    """`restores`: what the store lacks is stored again, which is not for a store that is filled anew."""

    def __init__(
        self, stores: Stores, lanes: Lanes, ingestor: Ingestor, retention_days: float, *, restores: bool
    ) -> None:
        self._stores = stores
        self._lanes = lanes
        self._retention_days = retention_days
        self._chores = [
            _Chore(CARDS_SECONDS, self.expire_cards),
            _Chore(EMBED_SECONDS, ingestor.embed_missing),
            _Chore(600, ingestor.clean),
            _Chore(600, lanes.forget_ended),
            _Chore(86400, self._prune),
        ]
        if restores:
            self._chores.append(_Chore(3600, ingestor.restore))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._do_over_and_over(chore), name="upkeep") for chore in self._chores]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

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

    async def _prune(self) -> None:
        await self._stores.journal.prune(self._retention_days)

    async def _do_over_and_over(self, chore: _Chore) -> None:
        while True:
            try:
                await chore.work()
            except (StorageError, SQLAlchemyError):
                log.exception("upkeep failed; trying again in %s s", chore.every)
            await asyncio.sleep(chore.every)
