"""One database: connections for reading, one for writing.

SQLite has one writer. A transaction that begins by reading and then writes fails at once when another one wrote
meanwhile, whatever its time-out; so every writing transaction begins with `BEGIN IMMEDIATE`. Its readers wait for
nobody: a statement that reads takes less than handing it to a thread, and is made on the spot.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, cast

from sqlalchemy import (
    URL,
    Connection,
    CursorResult,
    Engine,
    Executable,
    QueuePool,
    ScalarResult,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

from storage import sqlite
from storage.errors import MOVE_AWAY, DatabaseDamaged
from storage.migrations import upgrade

READERS = 8
SOUND = "ok"


class Database:
    """`read()` and `write()` are transactions; a write is committed at its block's end, or rolled back on an error."""

    def __init__(self, reader: AsyncEngine | Engine, writer: AsyncEngine) -> None:
        self._reader = reader
        self._writer = writer
        self._one_writer = asyncio.Lock()
        self._is_sqlite = writer.dialect.name == "sqlite"

    @property
    def dialect(self) -> str:
        return self._writer.dialect.name

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        if isinstance(self._reader, Engine):
            with self._reader.connect() as connection:
                yield cast(AsyncConnection, _OnTheSpot(connection))
        else:
            async with self._reader.connect() as remote:
                yield remote

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        async with contextlib.AsyncExitStack() as stack:
            if self._is_sqlite:
                await stack.enter_async_context(self._one_writer)
            yield await stack.enter_async_context(self._writer.begin())

    async def close(self) -> None:
        if isinstance(self._reader, Engine):
            self._reader.dispose()
        else:
            await self._reader.dispose()
        await self._writer.dispose()


class _OnTheSpot:
    """A connection, with as much of an `AsyncConnection` as reading takes. A result is read before its block ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        return self._connection.execute(statement, parameters)

    async def scalar(self, statement: Executable, parameters: Any = None) -> Any:
        return self._connection.scalar(statement, parameters)

    async def scalars(self, statement: Executable, parameters: Any = None) -> ScalarResult[Any]:
        return self._connection.scalars(statement, parameters)


def sqlite_url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


@contextlib.asynccontextmanager
async def open_database(url: str) -> AsyncIterator[Database]:
    """Open the database at this SQLAlchemy URL, with its schema brought up to date.

    Raises DatabaseDamaged where a file is there that isn't a sound database; it is left as it is.
    """
    is_sqlite = url.startswith("sqlite")
    if is_sqlite:
        path = str(make_url(url).database)
        local = create_engine(
            URL.create("sqlite", database=path), poolclass=QueuePool, pool_size=READERS, max_overflow=-1
        )
        reader: AsyncEngine | Engine = local
        writer = create_async_engine(
            url, poolclass=AsyncAdaptedQueuePool, pool_size=1, async_creator=partial(sqlite.connect, path)
        )
        tune_sqlite(local, begin="BEGIN")
        tune_sqlite(writer.sync_engine, begin="BEGIN IMMEDIATE")
    else:
        reader = writer = create_async_engine(url, pool_size=READERS)
    database = Database(reader, writer)
    try:
        await _migrate(database, url)
        yield database
    finally:
        await database.close()


async def _migrate(database: Database, url: str) -> None:
    try:
        async with database.write() as connection:
            fault = await connection.scalar(text("PRAGMA quick_check(1)")) if url.startswith("sqlite") else SOUND
            if fault == SOUND:
                await connection.run_sync(upgrade)
    except OperationalError:
        raise  # locked, read-only, full: not damage
    except DatabaseError as error:
        fault = error.orig
    if fault != SOUND:
        raise DatabaseDamaged(
            f"the database {make_url(url).database} can't be read ({' '.join(str(fault).split())}). "
            f"{MOVE_AWAY}, and restore a backup in its place; it was not changed."
        )


def is_disk_full(error: BaseException) -> bool:
    """Whether this came of a disk without room: a file's error, or the database's."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    answer = error.orig if isinstance(error, OperationalError) else error
    return isinstance(answer, sqlite3.OperationalError) and "full" in str(answer)


def tune_sqlite(engine: Engine, begin: str) -> None:
    @event.listens_for(engine, "connect")
    def connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        cursor = connection.cursor()
        for pragma in (
            f"busy_timeout = {sqlite.BUSY_SECONDS * 1000}",
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "secure_delete = ON",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        if isinstance(driver, sqlite.Connection):
            driver.begins = begin
        else:
            driver.execute(begin)
