"""What was said: every message of a thread with its citations, and what people thought of it.

The page reads its threads from here. Each new or changed line is numbered in `changes`, so that a reader who comes back
gets what it missed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Result, Select, Text, and_, bindparam, cast, delete, func, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.database import Database
from storage.models import Scope, Version
from storage.schema import changes, clarifications, clock, documents, feedback, messages

START_OVER = "start over"  # the kind of a message that drops what was said before it
ASIDE = "aside"  # the kind of what people said to each other
RECALLED = 40  # messages of a thread that a turn may know


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a thread as a later turn may know it. `citations` and `options` are dumped outcomes."""

    author: str
    user: str
    text: str
    kind: str
    message: str
    citations: tuple[dict[str, object], ...] = ()
    options: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One message as it stands. The clarification's fields are empty where the message is none."""

    id: int
    platform: str
    workspace: str
    channel: str
    thread: str
    message: str
    author: str
    user: str
    text: str
    kind: str
    reply_to: str
    citations: list[dict[str, Any]]
    options: list[dict[str, Any]]
    files: list[dict[str, Any]]
    clarification: str
    clarification_state: str
    asker: str
    choice: dict[str, Any] | None
    sent_at: float
    edited: bool
    deleted: bool


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """A thread in a list: its first message, how many there are, and when something last happened."""

    thread: str
    channel: str
    text: str
    user: str
    messages: int
    last: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a reply, on its way to the platform."""

    text: str
    kind: str
    citations: Sequence[Mapping[str, Any]] = ()
    options: Sequence[Mapping[str, Any]] = ()
    clarification: str = ""
    files: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Place:
    platform: str
    workspace: str
    channel: str
    thread: str


class Transcript:
    """Methods that take a connection are steps of the caller's transaction; `announce` after it wakes the readers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = asyncio.Condition()
        self._newest = 0

    async def add_question(
        self, connection: AsyncConnection, place: Place, said: Said, sent_at: float, files: Sequence[Mapping[str, Any]]
    ) -> None:
        """Write down what a person said. Known already, it stays as it is."""
        known = await connection.scalar(select(messages.c.id).where(_message(place, said.message)))
        if known is None:
            line = {**asdict(place), "author": "user", "user": said.user, "text": said.text, "kind": said.kind}
            more = {"citations": [], "options": [], "files": list(files), "sent_at": sent_at, "message": said.message}
            await self._note(connection, await connection.execute(_ADD_QUESTION, {**line, **more}))

    async def edit_question(self, connection: AsyncConnection, place: Place, message: str, text: str) -> None:
        await self._change(connection, _message(place, message), {"text": text, "edited_at": clock()})

    async def delete_question(self, connection: AsyncConnection, place: Place, message: str) -> None:
        """What was said is gone; that something was said stays, so that the thread keeps its shape."""
        await self._change(connection, _message(place, message), {"text": "", "files": [], "deleted": True})

    async def add_reply(
        self, connection: AsyncConnection, place: Place, turn: int, reply_to: str, parts: Sequence[Part]
    ) -> None:
        """Write down a reply that is about to be sent; `delivered` makes it visible. Parts from before are replaced."""
        await connection.execute(delete(messages).where(messages.c.turn == turn, messages.c.message.is_(None)))
        for number, part in enumerate(parts):
            values = {
                **asdict(place),
                "author": "bot",
                "user": "",
                "text": part.text,
                "kind": part.kind,
                "reply_to": reply_to,
                "turn": turn,
                "part": number,
                "citations": list(part.citations),
                "options": list(part.options),
                "clarification": part.clarification,
                "files": list(part.files),
            }
            await connection.execute(_ADD_REPLY, values)

    async def delivered(self, connection: AsyncConnection, turn: int, part: int, message: str) -> None:
        """A part of a reply stands in its thread, under this id."""
        await self._note(connection, await connection.execute(_DELIVER, {"of": turn, "at": part, "message": message}))

    async def revise(self, connection: AsyncConnection, place: Place, message: str, text: str) -> None:
        """One of the bot's messages says no more than this now."""
        said = {"text": text, "kind": "notice", "citations": [], "edited_at": clock()}
        await self._change(connection, _message(place, message), said)

    async def touch_clarification(self, connection: AsyncConnection, clarification: str) -> None:
        """The card of a clarification has changed."""
        await self._change(connection, messages.c.clarification == clarification, {})

    async def citing(self, platform: str, workspace: str, new: Version, days: float) -> set[tuple[Place, int]]:
        """The threads where an answer of the last `days` cites an older version of this document, and which."""
        lines = await self._lines(
            messages.c.platform == platform,
            messages.c.workspace == workspace,
            messages.c.author == "bot",
            messages.c.message.is_not(None),
            messages.c.sent_at > clock() - days * 86400,
            cast(messages.c.citations, Text).contains(new.document, autoescape=True),
        )
        return {
            (Place(line.platform, line.workspace, line.channel, line.thread), version)
            for line in lines
            for source, version in map(_key, line.citations)
            if source == new.document and version < new.version
        }

    async def set_files(
        self, connection: AsyncConnection, place: Place, message: str, files: Sequence[Mapping[str, Any]]
    ) -> None:
        """What became of the files of a post."""
        await self._change(connection, _message(place, message), {"files": list(files)})

    async def cards(self, clarification: str) -> list[Line]:
        """The lines that show a clarification."""
        return await self._lines(messages.c.clarification == clarification, messages.c.message.is_not(None))

    async def parts_of(self, turn: int) -> list[Line]:
        """The delivered parts of one turn's reply."""
        return await self._lines(messages.c.turn == turn, messages.c.message.is_not(None))

    async def has_asked(self, connection: AsyncConnection, place: Place, user: str, *, others: bool = False) -> bool:
        """Whether this person, or somebody else, has spoken to the bot in this thread."""
        query = _OTHERS_ASKED if others else _ASKED
        return await connection.scalar(query, {**asdict(place), "asker": user}) is not None

    async def replies_to(self, place: Place, message: str) -> list[Line]:
        return await self._read(_REPLIES, {**asdict(place), "answered": message})

    async def thread(self, platform: str, workspace: str, thread: str) -> list[Line]:
        """What stands in a thread, in order."""
        return await self._lines(
            messages.c.platform == platform,
            messages.c.workspace == workspace,
            messages.c.thread == thread,
            messages.c.message.is_not(None),
        )

    async def channels_of(self, platform: str, workspace: str, thread: str) -> list[str]:
        """Where a thread of this id stands."""
        async with self._database.read() as connection:
            asked = {"platform": platform, "workspace": workspace, "thread": thread}
            return list(await connection.scalars(_CHANNELS_OF, asked))

    async def threads(self, platform: str, workspace: str, channel: str) -> list[ThreadLine]:
        """The threads of a channel, the one where something happened last first."""
        first = func.min(messages.c.id).label("first")
        grouped = (
            select(first, func.count().label("count"), func.max(messages.c.sent_at).label("last"))
            .where(messages.c.platform == platform, messages.c.workspace == workspace, messages.c.channel == channel)
            .where(messages.c.message.is_not(None))
            .group_by(messages.c.thread)
            .subquery()
        )
        shown = (
            select(messages, grouped.c.count, grouped.c.last)
            .join(grouped, messages.c.id == grouped.c.first)
            .order_by(grouped.c.last.desc())
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(shown)).mappings().all()
        return [
            ThreadLine(row["thread"], row["channel"], _title(row), row["user"], row["count"], row["last"])
            for row in rows
        ]

    async def find(self, platform: str, workspace: str, message: str) -> Line | None:
        found = await self._lines(
            messages.c.platform == platform, messages.c.workspace == workspace, messages.c.message == message
        )
        return found[0] if found else None

    async def recall(self, place: Place, scope: Scope, before: str = "") -> list[Said]:
        """What a turn may know of its thread, oldest first.

        Left out is what was deleted, what cites a document that is dead or out of this scope, and what stands before
        a person said "start over".
        """
        lines = await self._read(_SAID, asdict(place))
        if before:
            until = next((line.id for line in lines if line.message == before), None)
            lines = [line for line in lines if until is None or line.id < until]
        anew = max((number + 1 for number, line in enumerate(lines) if line.kind == START_OVER), default=0)
        lines = lines[max(anew, len(lines) - RECALLED) :]
        living = await self._living(scope, {str(each["document"]) for line in lines for each in _sources(line)})
        return [_said(line) for line in lines if all(_key(each) in living for each in _sources(line))]

    async def changes(self, platform: str, after: int, limit: int = 200) -> list[tuple[int, Line]]:
        """Lines that are new or have changed since change `after`, each under its newest change, in order."""
        newest = func.max(changes.c.id).label("change")
        async with self._database.read() as connection:
            found = await connection.execute(
                select(newest, changes.c.row)
                .join(messages, messages.c.id == changes.c.row)
                .where(changes.c.id > after, messages.c.platform == platform)
                .group_by(changes.c.row)
                .order_by(newest)
                .limit(limit)
            )
            numbers = {row: change for change, row in found}
        lines = await self._lines(messages.c.id.in_(numbers), messages.c.message.is_not(None))
        return sorted((numbers[line.id], line) for line in lines) if lines else []

    async def newest_change(self) -> int:
        async with self._database.read() as connection:
            return await connection.scalar(_NEWEST_CHANGE) or 0

    async def wait(self, after: int, seconds: float) -> None:
        """Return when there may be a change newer than `after`, or after `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self._newest > after)

    async def announce(self) -> None:
        """Wake who waits for changes: their transaction is on disk."""
        self._newest = await self.newest_change()
        async with self._changed:
            self._changed.notify_all()

    async def rate(self, workspace: str, channel: str, message: str, user: str, value: int) -> None:
        """What a person thinks of an answer: 1 or -1; the last word counts."""
        key = {"workspace": workspace, "channel": channel, "message": message, "user": user}
        async with self._database.write() as connection:
            await connection.execute(delete(feedback).where(*(feedback.c[name] == each for name, each in key.items())))
            await connection.execute(insert(feedback).values({**key, "value": value, "at": clock()}))

    async def _change(self, connection: AsyncConnection, where: ColumnElement[bool], values: Mapping[str, Any]) -> None:
        changed = update(messages).where(where).values(values).returning(messages.c.id)
        await self._note(
            connection, await connection.execute(changed if values else select(messages.c.id).where(where))
        )

    async def _note(self, connection: AsyncConnection, changed: Result[Any]) -> None:
        for (id,) in changed.all():
            await connection.execute(_NOTE, {"row": id})

    async def _lines(self, *where: ColumnElement[bool]) -> list[Line]:
        return await self._read(_SHOWN.where(*where), {})

    async def _read(self, query: Select[Any], values: Mapping[str, Any]) -> list[Line]:
        async with self._database.read() as connection:
            rows = (await connection.execute(query, values)).mappings().all()
        return [_as_line(row) for row in rows]

    async def _living(self, scope: Scope, ids: Collection[str]) -> set[tuple[str, int]]:
        if not ids:
            return set()
        async with self._database.read() as connection:
            found = await connection.execute(
                select(documents.c.document, documents.c.version).where(
                    documents.c.workspace == scope.workspace,
                    documents.c.document.in_(ids),
                    documents.c.audience.in_(scope.audiences),
                    documents.c.state == "current",
                )
            )
            return {(document, version) for document, version in found}


def _message(place: Place, message: str) -> ColumnElement[bool]:
    return and_(
        messages.c.platform == place.platform,
        messages.c.workspace == place.workspace,
        messages.c.channel == place.channel,
        messages.c.message == message,
    )


def _as_line(row: RowMapping) -> Line:
    values = {name: row[name] for name in Line.__dataclass_fields__ if name in row}
    values.update(
        edited=row["edited_at"] is not None,
        clarification_state=row["clarification_state"] or "",
        asker=row["asker"] or "",
    )
    return Line(**values)


def _title(row: RowMapping) -> str:
    if row["deleted"]:
        return "(deleted)"
    return str(row["text"]) or ", ".join(str(file["name"]) for file in row["files"])


def _sources(line: Line) -> list[dict[str, Any]]:
    """The documents that a line rests on: what it cites, and what its options stand for."""
    return line.citations + [option for option in line.options if option.get("document")]


def _key(source: Mapping[str, Any]) -> tuple[str, int]:
    return str(source["document"]), int(source["version"])


def _said(line: Line) -> Said:
    return Said(line.author, line.user, line.text, line.kind, line.message, tuple(line.citations), tuple(line.options))


# Made once: making them takes longer than asking with them, and each turn asks them
_NEWEST_CHANGE = select(func.max(changes.c.id))
_NOTE = insert(changes)
_ADD_QUESTION = insert(messages).returning(messages.c.id)
_ADD_REPLY = insert(messages).values(sent_at=clock())
_DELIVER = (
    update(messages)
    .where(messages.c.turn == bindparam("of"), messages.c.part == bindparam("at"), messages.c.message.is_(None))
    .values(sent_at=clock())
    .returning(messages.c.id)
)
_CARD = clarifications.c
_SHOWN = (
    select(messages, _CARD.state.label("clarification_state"), _CARD.asker, _CARD.choice)
    .outerjoin(clarifications, and_(messages.c.clarification == _CARD.id, messages.c.clarification != ""))
    .order_by(messages.c.id)
)
_OF_THREAD = and_(
    *(messages.c[each.name] == bindparam(each.name) for each in fields(Place)), messages.c.message.is_not(None)
)
_CHANNELS_OF = (
    select(messages.c.channel)
    .where(*(messages.c[name] == bindparam(name) for name in ("platform", "workspace", "thread")))
    .distinct()
)
_SAID = _SHOWN.where(_OF_THREAD, messages.c.deleted.is_(False))
_SPOKEN = select(messages.c.id).where(_OF_THREAD, messages.c.author == "user", messages.c.kind != ASIDE).limit(1)
_ASKED = _SPOKEN.where(messages.c.user == bindparam("asker"))
_OTHERS_ASKED = _SPOKEN.where(messages.c.user != bindparam("asker"))
_REPLIES = _SHOWN.where(_OF_THREAD, messages.c.reply_to == bindparam("answered"))
