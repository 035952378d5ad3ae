"""aiosqlite with a thread's hand-over for each statement, where it takes four: cursor, execute, fetch and close.

A turn writes some dozens of times, and a hand-over costs more than most statements.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import aiosqlite
from aiosqlite.context import contextmanager
from aiosqlite.core import _connection_worker_thread

Rows = list[Any]
Result = TypeVar("Result")


async def connect(path: str) -> Connection:
    """For `create_async_engine(async_creator=…)`."""
    connection = Connection(
        partial(sqlite3.connect, path, check_same_thread=False, isolation_level=None), iter_chunk_size=64
    )
    connection._thread = threading.Thread(target=_work, args=(connection._tx,), daemon=True)
    await connection
    return connection


def _work(statements: Any) -> None:
    """Where the event loop is closed before a statement is made, nobody waits for it any more."""
    while True:
        with contextlib.suppress(RuntimeError):  # "Event loop is closed"
            _connection_worker_thread(statements)
            return


class Connection(aiosqlite.Connection):
    """A transaction begins with its first statement: one that makes none takes no lock. What is made for many
    parameters outside of one is one."""

    begins = ""
    _is_settled = True  # False while a statement is made, and after one that failed or that nobody waited for

    def cursor(self) -> Cursor:  # type: ignore[override]
        return Cursor(self)

    async def run(self, statement: str, parameters: Any, many: bool) -> tuple[sqlite3.Cursor, Rows]:
        begins, self.begins = self.begins, ""
        self._is_settled = False
        doing = self._execute(_run, self._conn, begins, statement, parameters, many)  # type: ignore[no-untyped-call]
        made: tuple[sqlite3.Cursor, Rows] = await doing
        self._is_settled = True
        return made

    @contextmanager
    async def execute(self, statement: str, parameters: Any = ()) -> Cursor:  # type: ignore[override]
        return await self.cursor().execute(statement, parameters)

    async def perform(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Several statements, as one transaction and with one hand-over."""
        done: Result = await self._execute(_performed, self._conn, work)  # type: ignore[no-untyped-call]
        return done

    async def commit(self) -> None:
        if self._is_begun():
            await super().commit()

    async def rollback(self) -> None:
        """Nobody waits for it: what comes next on this connection comes after it."""
        if self._is_begun():
            self._tx.put_nowait((None, self._conn.rollback))
            self._is_settled = True

    def _is_begun(self) -> bool:
        self.begins = ""
        return self.in_transaction or not self._is_settled


class Cursor:
    """What SQLAlchemy and LangGraph ask of a cursor. Its rows are there once the statement was made."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: Rows = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def execute(self, statement: str, parameters: Any = ()) -> Self:
        return await self._run(statement, parameters, many=False)

    async def executemany(self, statement: str, parameters: Iterable[Any]) -> Self:
        return await self._run(statement, parameters, many=True)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for row in await self.fetchall():
            yield row

    async def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    async def fetchall(self) -> Sequence[Any]:
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        self._rows = []

    async def _run(self, statement: str, parameters: Any, many: bool) -> Self:
        made, self._rows = await self._connection.run(statement, parameters, many)
        self.description, self.rowcount, self.lastrowid = made.description, made.rowcount, made.lastrowid
        return self


def _run(
    connection: sqlite3.Connection, begins: str, statement: str, parameters: Any, many: bool
) -> tuple[sqlite3.Cursor, Rows]:
    if begins:
        connection.execute(begins)
    if many and not connection.in_transaction:
        return _performed(connection, lambda own: own.executemany(statement, parameters)), []
    cursor = connection.executemany(statement, parameters) if many else connection.execute(statement, parameters)
    return cursor, cursor.fetchall() if cursor.description else []


def _performed(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], Result]) -> Result:
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        return work(connection)
