"""aiosqlite with less handing over to its thread, which costs more than most statements.

What waits for the disk or for others is made in the thread: a commit, many rows, a transaction that another process is
in the way of. A single statement of a transaction, which touches memory alone, is made on the spot.
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

BUSY_SECONDS = 30  # that a transaction waits for another's
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
    _given = _made = 0  # what the thread was given, and what it has made: each is counted by one thread alone
    _before = 0  # rows that were changed before this transaction

    def cursor(self) -> Cursor:  # type: ignore[override]
        return Cursor(self)

    async def run(self, statement: str, parameters: Any, many: bool) -> tuple[sqlite3.Cursor, Rows]:
        begins, self.begins = self.begins, ""
        self._is_settled = False
        if begins:
            self._before = self._conn.total_changes
        if not many and self._may_be_made_here(statement, begins) and (not begins or self._begin_here(begins)):
            made = _run(self._conn, "", statement, parameters, many)
        else:
            made = await self._execute(_run, self._conn, begins, statement, parameters, many)
        self._is_settled = True
        return made

    @property
    def _is_idle(self) -> bool:
        return self._given == self._made

    def _may_be_made_here(self, statement: str, begins: str) -> bool:
        """Whether nothing is left to the thread, and no commit comes with the statement."""
        return self._is_idle and bool(begins or self._conn.in_transaction or statement.startswith("SELECT"))

    def _begin_here(self, begins: str) -> bool:
        """False where one must wait for it."""
        self._conn.execute("PRAGMA busy_timeout = 0")
        try:
            self._conn.execute(begins)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        finally:
            self._conn.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        return True

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await super()._execute(self._counted(partial(fn, *args, **kwargs)))  # type: ignore[no-untyped-call]

    def _counted(self, work: Callable[[], Result]) -> Callable[[], Result]:
        self._given += 1

        def counted() -> Result:
            try:
                return work()
            finally:
                self._made += 1

        return counted

    @contextmanager
    async def execute(self, statement: str, parameters: Any = ()) -> Cursor:  # type: ignore[override]
        return await self.cursor().execute(statement, parameters)

    async def perform(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Several statements, as one transaction and with one hand-over."""
        done: Result = await self._execute(_performed, self._conn, work)
        return done

    async def commit(self) -> None:
        if not self._is_begun():
            return
        if self._is_idle and self._conn.total_changes == self._before:
            self._conn.commit()
        else:
            await super().commit()

    async def rollback(self) -> None:
        """Nobody waits for it: what comes next on this connection comes after it."""
        if self._is_begun():
            if self._is_idle:
                self._conn.rollback()
            else:
                self._tx.put_nowait((None, self._counted(self._conn.rollback)))
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
