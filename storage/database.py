"""One database: an engine for reading, one connection for writing.

SQLite has one writer. A transaction that begins by reading and then writes fails at once when another one wrote
meanwhile, whatever its time-out; so every writing transaction begins with `BEGIN IMMEDIATE`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

from storage import sqlite
from storage.errors import MOVE_AWAY, DatabaseDamaged
from storage.migrations import upgrade

READERS = 8
BUSY_SECONDS = 30
SOUND = "ok"


class Database:
    """`read()` and `write()` are transactions; a write is committed at its block's end, or rolled back on an error."""

    def __init__(self, reader: AsyncEngine, writer: AsyncEngine) -> None:
        self._reader = reader
        self._writer = writer
        self._one_writer = asyncio.Lock()
        self._is_sqlite = writer.dialect.name == "sqlite"

    @property
    def dialect(self) -> str:
        return self._writer.dialect.name

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        async with self._reader.connect() as connection:
            yield connection

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        async with contextlib.AsyncExitStack() as stack:
            if self._is_sqlite:
                await stack.enter_async_context(self._one_writer)
            yield await stack.enter_async_context(self._writer.begin())

    async def close(self) -> None:
        await self._reader.dispose()
        await self._writer.dispose()


def sqlite_url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


@contextlib.asynccontextmanager
async def open_database(url: str) -> AsyncIterator[Database]:
    """Open the database at this SQLAlchemy URL, with its schema brought up to date.

    Raises DatabaseDamaged where a file is there that isn't a sound database; it is left as it is.
    """
    is_sqlite = url.startswith("sqlite")
    connect = partial(sqlite.connect, str(make_url(url).database))
    reading, writing = ({"async_creator": partial(connect, at_once=at_once)} for at_once in (True, False))
    reader = create_async_engine(
        url, poolclass=AsyncAdaptedQueuePool, pool_size=READERS, **(reading if is_sqlite else {})
    )
    writer = create_async_engine(
        url, poolclass=AsyncAdaptedQueuePool, pool_size=1 if is_sqlite else READERS, **(writing if is_sqlite else {})
    )
    if is_sqlite:
        tune_sqlite(reader.sync_engine, begin="BEGIN")
        tune_sqlite(writer.sync_engine, begin="BEGIN IMMEDIATE")
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
            f"busy_timeout = {BUSY_SECONDS * 1000}",
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "secure_delete = ON",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)
