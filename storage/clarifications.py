"""Clarifications: the questions that the agent asked back. Whether one is open is decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import Row as SqlRow
from sqlalchemy import bindparam, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.database import Database
from storage.journal import is_alive
from storage.schema import clarifications, clock, journal
from storage.transcript import Place


@dataclass(frozen=True, slots=True)
class Clarification:
    """`question` is the asker's, `text` the bot's. `decided_by` is the journal's row of the click or reply."""

    id: str
    platform: str
    workspace: str
    channel: str
    thread: str
    agent_thread: str
    turn: int
    asker: str
    question: str
    text: str
    options: list[dict[str, Any]]
    state: str
    choice: dict[str, Any] | None
    decided_by: int | None
    expires_at: float

    @property
    def place(self) -> Place:
        return Place(self.platform, self.workspace, self.channel, self.thread)


@dataclass(frozen=True, slots=True)
class Card:
    """A clarification that is about to be shown."""

    id: str
    agent_thread: str
    turn: int
    asker: str
    question: str
    text: str
    options: Sequence[Mapping[str, Any]]


class Clarifications:
    """Methods that take a connection are steps of the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, connection: AsyncConnection, place: Place, card: Card, hours: float) -> None:
        """Open a clarification. One that its thread still had open gives way; shown again, it stays as it is."""
        known = await connection.scalar(select(clarifications.c.id).where(clarifications.c.id == card.id))
        if known is not None:
            return
        await connection.execute(
            update(clarifications)
            .where(clarifications.c.agent_thread == card.agent_thread, clarifications.c.state == "open")
            .values(state="withdrawn")
        )
        await connection.execute(
            insert(clarifications).values(
                id=card.id,
                platform=place.platform,
                workspace=place.workspace,
                channel=place.channel,
                thread=place.thread,
                agent_thread=card.agent_thread,
                turn=card.turn,
                asker=card.asker,
                question=card.question,
                text=card.text,
                options=list(card.options),
                created_at=clock(),
                expires_at=clock() + hours * 3600,
            )
        )

    async def get(self, connection: AsyncConnection, id: str) -> Clarification | None:
        found = await connection.execute(select(clarifications).where(clarifications.c.id == id))
        return _clarification(found.one_or_none())

    async def find(self, id: str) -> Clarification | None:
        async with self._database.read() as connection:
            return await self.get(connection, id)

    async def open_in(self, connection: AsyncConnection, place: Place) -> list[Clarification]:
        """Those that wait in this thread and have not expired, the newest first."""
        found = await connection.execute(_WAITING, asdict(place))
        return [each for each in map(_clarification, found) if each is not None]

    async def decided_by(self, row: int) -> Clarification | None:
        """The clarification that this row of the journal answered."""
        async with self._database.read() as connection:
            found = await connection.execute(_DECIDED, {"row": row})
            return _clarification(found.one_or_none())

    async def agent_threads(self) -> set[str]:
        """In which the agent waits for a choice, or for its turn to go on with one."""
        deciding = select(journal.c.id).where(is_alive(journal))
        waits = or_(clarifications.c.state == "open", clarifications.c.decided_by.in_(deciding))
        async with self._database.read() as connection:
            return set(await connection.scalars(select(clarifications.c.agent_thread).where(waits)))

    async def decide(self, connection: AsyncConnection, id: str, choice: Mapping[str, Any], row: int) -> bool:
        """Take the choice, once: False where it was taken before, has expired or was withdrawn."""
        taken = await connection.execute(
            update(clarifications)
            .where(clarifications.c.id == id, clarifications.c.state == "open", clarifications.c.expires_at > clock())
            .values(state="decided", choice=dict(choice), decided_by=row)
        )
        return taken.rowcount == 1

    async def withdraw(self, connection: AsyncConnection, turns: Sequence[int]) -> list[str]:
        """Those that these turns asked and that still wait are off; their ids."""
        off = await connection.execute(
            update(clarifications)
            .where(clarifications.c.turn.in_(turns), clarifications.c.state == "open")
            .values(state="withdrawn")
            .returning(clarifications.c.id)
        )
        return [id for (id,) in off]

    async def unsay(self, connection: AsyncConnection, turns: Sequence[int]) -> list[str]:
        """The words by which these turns chose are said no more; what they chose stays. Which cards had them."""
        chosen = select(clarifications.c.id, clarifications.c.choice).where(clarifications.c.decided_by.in_(turns))
        said = {id: choice for id, choice in await connection.execute(chosen) if choice and choice.get("text")}
        for id, choice in said.items():
            this = update(clarifications).where(clarifications.c.id == id)
            await connection.execute(this.values(choice={**choice, "text": ""}))
        return list(said)

    async def expire(self, connection: AsyncConnection) -> list[Clarification]:
        """Those whose time is over: each is handed out once."""
        over = await connection.execute(
            update(clarifications)
            .where(clarifications.c.state == "open", clarifications.c.expires_at <= clock())
            .values(state="expired")
            .returning(clarifications)
        )
        return [each for each in map(_clarification, over) if each is not None]


def _clarification(found: SqlRow[Any] | None) -> Clarification | None:
    if found is None:
        return None
    return Clarification(**{name: getattr(found, name) for name in Clarification.__dataclass_fields__})


# Made once: making them takes longer than asking with them, and each turn asks them
_DECIDED = select(clarifications).where(clarifications.c.decided_by == bindparam("row"))
_WAITING = (
    select(clarifications)
    .where(*(clarifications.c[each.name] == bindparam(each.name) for each in fields(Place)))
    .where(clarifications.c.state == "open", clarifications.c.expires_at > clock())
    .order_by(clarifications.c.created_at.desc())
)
