"""The journal: one table that is the queue of everything that people did.

A message is claimed once, by its key. A worker leases the oldest open row of a lane; at most one row of a lane is
running or sending, which a unique index holds for any number of workers. Each lease has a number, and whoever acts on a
row names the number it holds: a worker that stalled past its lease finds it changed, and may neither write nor post.
"""

from __future__ import annotations

import functools
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import (
    ColumnElement,
    Double,
    FromClause,
    and_,
    bindparam,
    create_engine,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy import Row as SqlRow
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from storage.database import Database, tune_sqlite
from storage.errors import LeaseLost
from storage.schema import clock, journal

LEASE_SECONDS = 60
CHECKED_SECONDS = 0.1  # that a worker relies on having found its lease
ATTEMPTS = 3  # then a plain error: what kills the process must not kill it for ever
SUSPECT = 2  # ends of the process that a row was there at, beside others: from then on it runs apart from its like
LEASES = 12  # of one row, whether or not they counted as attempts
LONGEST_PAUSE = 30.0  # seconds between two attempts
ALIVE = ("open", "running", "sending")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewRow:
    platform: str
    workspace: str
    channel: str
    message: str
    kind: str
    thread: str
    lane: str
    user: str
    sent_at: float
    payload: Mapping[str, Any]
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it was leased or read. `lease` is the number that its holder must name."""

    id: int
    platform: str
    workspace: str
    channel: str
    message: str
    kind: str
    revision: str
    thread: str
    lane: str
    parent: int | None
    user: str
    sent_at: float
    payload: dict[str, Any]
    state: str
    lease: int
    attempts: int
    outcome: dict[str, Any] | None
    claimed_at: float
    ended_at: float | None

    @property
    def is_spent(self) -> bool:
        """Whether it was tried often enough."""
        return self.attempts > ATTEMPTS or self.lease > LEASES


class Journal:
    """Methods that take a connection are steps of the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, connection: AsyncConnection, new: NewRow, files: Sequence[NewRow] = ()) -> tuple[Row, bool]:
        """The row of this message, and whether it is new. A message waits for its files' rows."""
        known = await self._known(connection, new)
        if known is not None:
            return known, False
        row = await _insert(connection, new, parent=None)
        for file in files:
            await _insert(connection, file, parent=row.id)
        return row, True

    async def known(self, new: NewRow) -> Row | None:
        async with self._database.read() as connection:
            return await self._known(connection, new)

    async def _known(self, connection: AsyncConnection, new: NewRow) -> Row | None:
        same = {name: getattr(new, name) for name in _SAME}
        return _row((await connection.execute(_KNOWN, same)).one_or_none())

    async def withdraw(self, connection: AsyncConnection, row: Row, files: bool) -> list[int]:
        """Take back every turn of this row's message that has not begun to send; their ids.

        Their leases are over, so a turn that is running can't write or post any more. With `files` its files are taken
        back too and what was said is blanked; without, the files that are still being read belong to this row from now.
        """
        theirs = await self.turns_of(connection, row)
        if files:
            taken = await self._take_back(connection, or_(journal.c.id.in_(theirs), journal.c.parent.in_(theirs)))
            await self._blank(connection, theirs)
            return taken
        taken = await self._take_back(connection, journal.c.id.in_(theirs))
        if taken:
            await connection.execute(update(journal).where(journal.c.parent.in_(theirs)).values(parent=row.id))
        return taken

    async def _blank(self, connection: AsyncConnection, ids: Sequence[int]) -> None:
        """What was said is gone from these rows; that it was said stays known."""
        found = await connection.execute(select(journal.c.id, journal.c.payload).where(journal.c.id.in_(ids)))
        for id, payload in found.all():
            bare = {name: value for name, value in payload.items() if name not in ("text", "attachments")}
            await connection.execute(update(journal).where(journal.c.id == id).values(payload=bare))

    async def withdraw_lane(self, connection: AsyncConnection, row: Row) -> list[int]:
        """Take back what this row's person said before it in its lane and what runs or waits; posts of files apart."""
        before = tuple_(journal.c.sent_at, journal.c.id) < tuple_(row.sent_at, row.id)
        file = journal.alias("file")
        theirs = and_(journal.c.lane == row.lane, journal.c.user == row.user, before)
        return await self._take_back(connection, and_(theirs, ~exists().where(file.c.parent == journal.c.id)))

    async def turns_of(self, connection: AsyncConnection, row: Row) -> list[int]:
        """The other rows of this row's message that are turns."""
        found = await connection.execute(
            select(journal.c.id).where(
                journal.c.platform == row.platform,
                journal.c.workspace == row.workspace,
                journal.c.channel == row.channel,
                journal.c.message == row.message,
                journal.c.kind.in_(("message", "edit", "action")),
                journal.c.id != row.id,
            )
        )
        return [id for (id,) in found]

    async def _take_back(self, connection: AsyncConnection, which: ColumnElement[bool]) -> list[int]:
        taken = await connection.execute(
            update(journal)
            .where(which, journal.c.state.in_(("open", "running")))
            .values(state="withdrawn", lease=journal.c.lease + 1, ended_at=clock())
            .returning(journal.c.id)
        )
        return [id for (id,) in taken]

    async def lease(self, kinds: Collection[str], *, but: Collection[int] = (), only: int | None = None) -> Row | None:
        """Lease the oldest row that may run now: the first of its lane, its files done, or one whose worker is gone."""
        asked: dict[str, Any] = {"kinds": list(kinds), "seconds": LEASE_SECONDS}
        asked |= {"but": list(but)} if only is None else {"only": only}
        try:
            async with self._database.write() as connection:
                return _row((await connection.execute(_lease_statement(only is None), asked)).one_or_none())
        except IntegrityError:  # another worker took a row of this lane meanwhile
            return None

    async def check(self, row: Row) -> None:
        """Raise LeaseLost where this lease is no longer the row's."""
        async with self._database.read() as connection:
            held = await connection.scalar(_CHECK, {"row": row.id, "number": row.lease})
        if held is None:
            raise LeaseLost(f"row {row.id} is no longer leased under number {row.lease}")

    def fence(self, row: Row) -> Callable[[], Awaitable[None]]:
        """`check`, for what is written often: what was found a moment ago holds, as a lease outlasts it by far."""
        found = -math.inf

        async def check() -> None:
            nonlocal found
            now = time.monotonic()
            if now - found >= CHECKED_SECONDS:
                await self.check(row)
                found = now

        return check

    async def step(self, connection: AsyncConnection, row: Row, state: str, outcome: Mapping[str, Any] | None) -> None:
        """Move a leased row on. Raises LeaseLost where the lease is over: the caller's transaction must not be kept."""
        values: dict[str, Any] = {"row": row.id, "number": row.lease, "state": state}
        if outcome is not None:
            values["outcome"] = outcome
        moved = await connection.execute(_STEP if state in ALIVE else _END, values)
        if moved.rowcount == 0:
            raise LeaseLost(f"row {row.id} is no longer leased under number {row.lease}")

    async def end(self, row: Row, state: str = "done", outcome: Mapping[str, Any] | None = None) -> None:
        async with self._database.write() as connection:
            await self.step(connection, row, state, outcome)

    async def release(self, row: Row) -> None:
        """Give a leased row back, unharmed: this attempt doesn't count."""
        async with self._database.write() as connection:
            await connection.execute(
                update(journal)
                .where(journal.c.id == row.id, journal.c.lease == row.lease)
                .values(leased_until=0, attempts=journal.c.attempts - 1)
            )

    async def retry(self, row: Row, charged: bool = True) -> None:
        """Leave a row that failed for another attempt, after a pause that grows; not `charged`, it doesn't count."""
        pause = row.attempts if charged else min(2.0**row.lease, LONGEST_PAUSE)
        async with self._database.write() as connection:
            await connection.execute(
                update(journal)
                .where(journal.c.id == row.id, journal.c.lease == row.lease)
                .values(leased_until=clock() + pause, attempts=journal.c.attempts - (0 if charged else 1))
            )

    async def release_all(self) -> list[int]:
        """At the start of the one process that has this database: whatever is leased lost its worker.

        The row that ran alone is charged with the end of that process; of several none is, and those that were there
        once too often are returned, to be run one at a time. Of these the one that ran at the next end is spent.
        """
        leased = and_(is_alive(journal), journal.c.state.in_(("running", "sending")))
        ran = and_(leased, journal.c.leased_until > 0)
        suspect = journal.c.lease - journal.c.attempts >= SUSPECT
        async with self._database.write() as connection:
            found = (await connection.execute(select(journal.c.id, suspect).where(ran))).all()
            blamed = [id for id, is_suspect in found if is_suspect or len(found) == 1]
            if len(blamed) == 1:
                ran = and_(ran, journal.c.id != blamed[0])
                spent = {"attempts": ATTEMPTS}
                await connection.execute(update(journal).where(journal.c.id == blamed[0], suspect).values(spent))
            await connection.execute(update(journal).where(ran).values(attempts=journal.c.attempts - 1))
            await connection.execute(update(journal).where(leased).values(leased_until=0))
            order = (journal.c.sent_at, journal.c.id)
            return list(await connection.scalars(select(journal.c.id).where(leased, suspect).order_by(*order)))

    async def files_of(self, row: Row) -> list[Row]:
        """The rows of the files that were posted with this row's message."""
        theirs = (journal.c[name] == getattr(row, name) for name in ("platform", "workspace", "channel", "message"))
        async with self._database.read() as connection:
            found = await connection.execute(
                select(journal).where(*theirs, journal.c.kind == "file").order_by(journal.c.id)
            )
            return [each for each in map(_row, found) if each is not None]

    async def alive(self) -> list[Row]:
        """What has no outcome yet, files apart."""
        async with self._database.read() as connection:
            found = await connection.execute(
                select(journal).where(journal.c.kind != "file", is_alive(journal)).order_by(journal.c.id)
            )
            return [each for each in map(_row, found) if each is not None]

    async def references(self) -> set[str]:
        """The attachments whose bytes a row may still need."""
        async with self._database.read() as connection:
            found = await connection.scalars(
                select(journal.c.payload["attachment"]["reference"].as_string()).where(
                    journal.c.kind == "file", is_alive(journal)
                )
            )
            return set(found)

    async def of_message(self, platform: str, workspace: str, message: str) -> list[Row]:
        """Everything that was claimed of one message, oldest first, its files apart."""
        async with self._database.read() as connection:
            found = await connection.execute(
                select(journal)
                .where(journal.c.platform == platform, journal.c.workspace == workspace, journal.c.message == message)
                .where(journal.c.kind != "file")
                .order_by(journal.c.id)
            )
            return [each for each in map(_row, found) if each is not None]

    async def asked_lately(self, connection: AsyncConnection, new: NewRow, seconds: float) -> int:
        """How many messages and edits with words for the bot this person sent in the last `seconds`."""
        person = {"platform": new.platform, "workspace": new.workspace, "user": new.user}
        return await connection.scalar(_ASKED_LATELY, {**person, "seconds": seconds}) or 0

    async def waits(self, row: Row) -> bool:
        """Whether something of its lane stands before this row."""
        async with self._database.read() as connection:
            here = {"lane": row.lane, "row": row.id, "sent_at": row.sent_at}
            return bool(await connection.scalar(_BEFORE, here))

    async def prune(self, days: float) -> None:
        """Drop what ended more than `days` ago."""
        async with self._database.write() as connection:
            await connection.execute(delete(journal).where(journal.c.ended_at < clock() - days * 86400))


def is_alive(rows: FromClause) -> ColumnElement[bool]:
    """In the very words of the index: so, of a journal of a month, those few rows alone are looked at."""
    return rows.c.state.in_([literal_column(f"'{state}'") for state in ALIVE])


@functools.cache
def _lease_statement(any_row: bool) -> ReturningUpdate[Any]:
    """Making it takes longer than asking with it."""
    of_all, of_one = journal.c.id.not_in(bindparam("but", expanding=True)), journal.c.id == bindparam("only")
    which = of_all if any_row else of_one
    earlier = journal.alias("earlier")
    file = journal.alias("file")
    first = and_(
        journal.c.state == "open",
        ~exists().where(
            earlier.c.lane == journal.c.lane,
            is_alive(earlier),
            or_(
                earlier.c.state.in_(("running", "sending")),
                and_(
                    earlier.c.state == "open",
                    tuple_(earlier.c.sent_at, earlier.c.id) < tuple_(journal.c.sent_at, journal.c.id),
                ),
            ),
        ),
        ~exists().where(file.c.parent == journal.c.id, is_alive(file)),
    )
    orphaned = and_(journal.c.state.in_(("running", "sending")), journal.c.leased_until < clock())
    oldest = (
        select(journal.c.id)
        .where(is_alive(journal), journal.c.kind.in_(bindparam("kinds", expanding=True)), which, or_(first, orphaned))
        .order_by(journal.c.sent_at, journal.c.id)
        .limit(1)
        .scalar_subquery()
    )
    return (
        update(journal)
        .where(journal.c.id == oldest)
        .values(
            state=func.replace(journal.c.state, "open", "running"),
            lease=journal.c.lease + 1,
            attempts=journal.c.attempts + 1,
            leased_until=clock() + bindparam("seconds", type_=Double),
        )
        .returning(journal)
    )


# Made once: making them takes longer than asking with them, and each turn asks them
_SAME = ("platform", "workspace", "channel", "message", "kind", "revision")
_KNOWN = select(journal).where(*(journal.c[name] == bindparam(name) for name in _SAME))
_INSERT = insert(journal).values(claimed_at=clock()).returning(journal)
_HELD = and_(journal.c.id == bindparam("row"), journal.c.lease == bindparam("number"))
_CHECK = select(journal.c.id).where(_HELD)
_STEP = update(journal).where(_HELD)
_END = _STEP.values(ended_at=clock())
_ASKED_LATELY = (
    select(func.count())
    .select_from(journal)
    .where(*(journal.c[name] == bindparam(name) for name in ("platform", "workspace", "user")))
    .where(journal.c.kind.in_(("message", "edit")))
    .where(journal.c.claimed_at > clock() - bindparam("seconds", type_=Double))
    .where(journal.c.payload["text"].as_string().is_not(None))
    .where(journal.c.payload["addressed"].as_string().is_(None))  # it stands there where they spoke to others
)
_BEFORE = (
    select(func.count())
    .select_from(journal)
    .where(journal.c.lane == bindparam("lane"), is_alive(journal), journal.c.id != bindparam("row"))
    .where(tuple_(journal.c.sent_at, journal.c.id) < tuple_(bindparam("sent_at"), bindparam("row")))
)


class Heartbeat:
    """Renews the leases of this process from a thread of its own, whatever the event loop is doing."""

    def __init__(self, url: str) -> None:
        sync = make_url(url)
        self._engine = create_engine(sync.set(drivername=sync.drivername.partition("+")[0]))
        if self._engine.dialect.name == "sqlite":
            tune_sqlite(self._engine, begin="BEGIN IMMEDIATE")
        self._held: dict[int, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._engine.dispose()

    def hold(self, row: Row) -> None:
        self._held[row.id] = row.lease

    def drop(self, row: Row) -> None:
        self._held.pop(row.id, None)

    def _run(self) -> None:
        while not self._ended.wait(LEASE_SECONDS / 4):
            try:
                self._renew(list(self._held.items()))
            except SQLAlchemyError:
                log.exception("the leases could not be renewed; trying again")

    def _renew(self, held: list[tuple[int, int]]) -> None:
        if not held:
            return
        with self._engine.begin() as connection:
            for id, lease in held:
                connection.execute(
                    update(journal)
                    .where(journal.c.id == id, journal.c.lease == lease)
                    .values(leased_until=clock() + LEASE_SECONDS)
                )


async def _insert(connection: AsyncConnection, new: NewRow, parent: int | None) -> Row:
    values = {name: getattr(new, name) for name in NewRow.__dataclass_fields__}
    row = _row((await connection.execute(_INSERT, {**values, "parent": parent})).one())
    assert row is not None
    return row


def _row(found: SqlRow[Any] | None) -> Row | None:
    if found is None:
        return None
    return Row(**{name: getattr(found, name) for name in Row.__dataclass_fields__})
