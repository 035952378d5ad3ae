"""The LangGraph checkpointer, on a SQLite file of its own, and what keeps that file small.

One saver serves the process: several on one file give "database is locked".
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from storage import sqlite
from storage.errors import MOVE_AWAY, DatabaseDamaged

Fence = Callable[[], Awaitable[None]]

fence: ContextVar[Fence | None] = ContextVar("fence", default=None)
"""Awaited before each write; raises `LeaseLost` where this worker's lease was taken over, and nothing is written."""

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
    def __init__(self, saver: AsyncSqliteSaver, connection: sqlite.Connection) -> None:
        self._saver = saver
        self._connection = connection

    @property
    def saver(self) -> BaseCheckpointSaver[Any]:
        return self._saver

    async def prune(self, agent_thread: str) -> None:
        await _pass_fence()
        await self._perform(partial(_prune, agent_thread=agent_thread))

    async def forget(self, agent_thread: str) -> None:
        await _pass_fence()
        await self._perform(partial(_forget, agent_threads=[agent_thread]))

    async def forget_all_but(self, agent_threads: Collection[str]) -> None:
        await self._perform(partial(_forget_all_but, agent_threads=agent_threads))

    async def _perform(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """And empty the write-ahead log: what was deleted would still stand in it."""
        async with self._saver.lock:
            await self._connection.perform(work)
            await self._connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")


def _prune(connection: sqlite3.Connection, agent_thread: str) -> None:
    (newest,) = connection.execute(
        "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''", [agent_thread]
    ).fetchone()
    (waiting,) = connection.execute(
        "SELECT count(*) FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = ?",
        [agent_thread, newest, _INTERRUPT],
    ).fetchone()
    connection.execute(
        "DELETE FROM checkpoints WHERE thread_id = ? AND NOT (checkpoint_ns = '' AND checkpoint_id = ?)",
        [agent_thread, newest],
    )
    connection.execute(
        "DELETE FROM writes WHERE thread_id = ? AND NOT (? AND checkpoint_ns = '' AND checkpoint_id = ?)",
        [agent_thread, waiting, newest],
    )


def _forget_all_but(connection: sqlite3.Connection, agent_threads: Collection[str]) -> None:
    known = connection.execute("SELECT thread_id FROM checkpoints UNION SELECT thread_id FROM writes")
    _forget(connection, [thread for (thread,) in known if thread not in agent_threads])


def _forget(connection: sqlite3.Connection, agent_threads: Sequence[str]) -> None:
    for table in ("checkpoints", "writes"):
        connection.executemany(f"DELETE FROM {table} WHERE thread_id = ?", [(thread,) for thread in agent_threads])


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
    connection = await sqlite.connect(str(path))
    try:
        # None: only the plain types that LangGraph lists as safe are read back
        saver = _FencedSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        await _prepare(saver, path)
        yield SqliteCheckpoints(saver, connection)
    finally:
        await connection.close()


async def _prepare(saver: AsyncSqliteSaver, path: Path) -> None:
    try:
        await saver.conn.execute(f"PRAGMA busy_timeout = {sqlite.BUSY_SECONDS * 1000}")
        ((fault,),) = await saver.conn.execute_fetchall("PRAGMA quick_check(1)")
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
