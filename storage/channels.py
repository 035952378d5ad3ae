"""Channels: who may read them, whether their files are knowledge, and how the bot behaves there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, and_, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.database import Database
from storage.models import Scope, channel_audience, thread_audience
from storage.schema import channels, clock, members

DIRECT = "@"  # a person's own direct channel on the page is named after them


@dataclass(frozen=True, slots=True)
class Channel:
    """`shared`: another organisation or guests read it too, so it draws on its own documents alone."""

    platform: str
    workspace: str
    channel: str
    visibility: str = "public"
    knowledge: bool = True
    quiet: bool = False
    answer: str = "threads"
    model: str = ""
    created_by: str = ""
    members: frozenset[str] = field(default=frozenset())

    def sees(self, user: str) -> bool:
        return self.visibility == "public" or user in self.members


class Channels:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, platform: str, workspace: str, channel: str) -> Channel | None:
        async with self._database.read() as connection:
            found = await _select(connection, _is(platform, workspace, channel))
        return found[0] if found else None

    async def ensure(self, platform: str, workspace: str, channel: str, user: str) -> Channel:
        """The channel, made with its defaults where it is new: public, its files are knowledge."""
        found = await self.get(platform, workspace, channel)
        if found is not None:
            return found
        direct = channel.startswith(DIRECT)
        new = Channel(
            platform,
            workspace,
            channel,
            visibility="direct" if direct else "public",
            created_by=channel.removeprefix(DIRECT) if direct else user,
            members=frozenset({channel.removeprefix(DIRECT)} if direct else ()),
        )
        return await self.put(new)

    async def put(self, channel: Channel) -> Channel:
        """Store the channel with its members, as it is here."""
        where = _is(channel.platform, channel.workspace, channel.channel)
        values = {
            "visibility": channel.visibility,
            "knowledge": channel.knowledge,
            "quiet": channel.quiet,
            "answer": channel.answer,
            "model": channel.model,
        }
        key = {"platform": channel.platform, "workspace": channel.workspace, "channel": channel.channel}
        async with self._database.write() as connection:
            changed = await connection.execute(update(channels).where(where).values(values))
            if changed.rowcount == 0:
                new = {**key, **values, "created_by": channel.created_by, "created_at": clock()}
                await connection.execute(insert(channels).values(new))
            await connection.execute(delete(members).where(*(members.c[name] == value for name, value in key.items())))
            if channel.members:
                rows = [{**key, "user": user} for user in sorted(channel.members)]
                await connection.execute(insert(members), rows)
        return channel

    async def visible(self, platform: str, workspace: str, user: str) -> list[Channel]:
        """The channels that this person may read, by name."""
        theirs = select(members.c.channel).where(
            members.c.platform == platform, members.c.workspace == workspace, members.c.user == user
        )
        where = and_(
            channels.c.platform == platform,
            channels.c.workspace == workspace,
            or_(channels.c.visibility == "public", channels.c.channel.in_(theirs)),
        )
        async with self._database.read() as connection:
            return await _select(connection, where)

    async def scope(self, platform: str, workspace: str, channel: str, user: str, thread: str = "") -> Scope:
        """What a reply in this channel may draw on: what everyone who will see it may read."""
        here = await self.ensure(platform, workspace, channel, user)
        allowed = {channel}
        if here.visibility == "direct":
            allowed.update(each.channel for each in await self.visible(platform, workspace, user))
        elif here.visibility in ("public", "private"):
            allowed.update(each.channel for each in await self.visible(platform, workspace, user=""))
        audiences = {channel_audience(each) for each in allowed}
        if thread:
            audiences.add(thread_audience(channel, thread))
        return Scope(workspace, frozenset(audiences))


def _is(platform: str, workspace: str, channel: str) -> ColumnElement[bool]:
    return and_(channels.c.platform == platform, channels.c.workspace == workspace, channels.c.channel == channel)


async def _select(connection: AsyncConnection, where: ColumnElement[bool]) -> list[Channel]:
    rows = (await connection.execute(select(channels).where(where).order_by(channels.c.channel))).mappings().all()
    if not rows:
        return []
    first = rows[0]
    found = await connection.execute(
        select(members.c.channel, members.c.user).where(
            members.c.platform == first["platform"],
            members.c.workspace == first["workspace"],
            members.c.channel.in_([row["channel"] for row in rows]),
        )
    )
    people = _grouped(found)
    return [
        Channel(
            **{name: row[name] for name in ("platform", "workspace", "channel", "visibility", "knowledge", "quiet")},
            answer=row["answer"],
            model=row["model"],
            created_by=row["created_by"],
            members=frozenset(people.get(row["channel"], ())),
        )
        for row in rows
    ]


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    people: dict[str, list[str]] = {}
    for channel, user in pairs:
        people.setdefault(channel, []).append(user)
    return people
