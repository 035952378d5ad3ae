"""The LangGraph checkpointer, on a SQLite file of its own, and what keeps that file small.

One saver serves the process: several on one file give "database is locked".
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from storage.errors import MOVE_AWAY, DatabaseDamaged
from storage.sqlite import outliving

Fence = Callable[[], Awaitable[None]]

fence: ContextVar[Fence | None] = ContextVar("fence", default=None)
"""Awaited before each write; raises `LeaseLost` where this worker's lease was taken over, and nothing is written."""

BUSY_SECONDS = 30
_INTERRUPT = "__interrupt__"


class Checkpoints(Protocol):
    """`agent_thread` is LangGraph's thread id."""

    @property
    def saver(self) -> BaseCheckpointSaver[Any]: ...

    async def prune(self, agent_thread: str) -> None:
        """Keep the newest checkpoint alone, with its writes where an interrupt waits."""

    async def forget(self, agent_thread: str) -> None:
        """Remove all that is kept of this thread."""

    async def forget_all_but(self, agent_threads: Collection[str]) -> None:
        """Remove what is kept of every other thread."""


class SqliteCheckpoints:
    def __init__(self, saver: AsyncSqliteSaver) -> None:
        self._saver = saver

    @property
    def saver(self) -> BaseCheckpointSaver[Any]:
        return self._saver

    async def prune(self, agent_thread: str) -> None:
        await _pass_fence()
        connection = self._saver.conn
        async with self._saver.lock:
            newest = await _one(
                connection,
                "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''",
                agent_thread,
            )
            waiting = await _one(
                connection,
                "SELECT count(*) FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
                " AND channel = ?",
                agent_thread,
                newest,
                _INTERRUPT,
            )
            await connection.execute(
                "DELETE FROM checkpoints WHERE thread_id = ? AND NOT (checkpoint_ns = '' AND checkpoint_id = ?)",
                (agent_thread, newest),
            )
            await connection.execute(
                "DELETE FROM writes WHERE thread_id = ? AND NOT (? AND checkpoint_ns = '' AND checkpoint_id = ?)",
                (agent_thread, waiting, newest),
            )
            await _settle(connection)

    async def forget(self, agent_thread: str) -> None:
        await _pass_fence()
        await self._saver.adelete_thread(agent_thread)
        async with self._saver.lock:
            await _settle(self._saver.conn)

    async def forget_all_but(self, agent_threads: Collection[str]) -> None:
        async with self._saver.lock:
            known = await self._saver.conn.execute_fetchall("SELECT DISTINCT thread_id FROM checkpoints")
        for (thread,) in known:
            if thread not in agent_threads:
                await self._saver.adelete_thread(thread)
        async with self._saver.lock:
            await _settle(self._saver.conn)


class _FencedSaver(AsyncSqliteSaver):
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        await _pass_fence()
        return await super().aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await _pass_fence()
        await super().aput_writes(config, writes, task_id, task_path)


@contextlib.asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[Checkpoints]:
    """Raises DatabaseDamaged where a file is there that isn't a sound database; it is left as it is."""
    async with outliving(aiosqlite.connect(path, timeout=BUSY_SECONDS)) as connection:
        # None: only the plain types that LangGraph lists as safe are read back
        saver = _FencedSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        await _prepare(saver, path)
        yield SqliteCheckpoints(saver)


async def _prepare(saver: AsyncSqliteSaver, path: Path) -> None:
    try:
        fault = await _one(saver.conn, "PRAGMA quick_check(1)")
        if fault == "ok":
            await saver.conn.execute("PRAGMA secure_delete = ON")
            await saver.setup()
    except sqlite3.OperationalError:
        raise  # locked, read-only, full: not damage
    except sqlite3.DatabaseError as error:
        fault = str(error)
    if fault != "ok":
        raise DatabaseDamaged(
            f"the checkpoints {path} can't be read ({' '.join(str(fault).split())}). "
            f"{MOVE_AWAY}: a new one is made at the next start, and only turns that were running are begun anew. "
            "It was not changed."
        )


async def _pass_fence() -> None:
    check = fence.get()
    if check is not None:
        await check()


async def _one(connection: aiosqlite.Connection, statement: str, *values: object) -> Any:
    async with connection.execute(statement, values) as cursor:
        row = await cursor.fetchone()
    return row[0] if row else None


async def _settle(connection: aiosqlite.Connection) -> None:
    """Commit, and empty the write-ahead log: what was deleted would still stand in it."""
    await connection.commit()
    await connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
