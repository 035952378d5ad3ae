"""Channels: who may read them, whether their files are knowledge, and how the bot behaves there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from typing import Any

from sqlalchemy import Select, and_, bindparam, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.database import Database
from storage.models import Scope, channel_audience, thread_audience
from storage.schema import channels, clock, members

PAGE = "web"
DIRECT = "@"  # a person's own direct channel on the page is named after them


@dataclass(frozen=True, slots=True)
class Channel:
    """`shared`: another organisation or guests read it too, so it draws on its own documents alone.

    `answer`: to whom it is spoken to by a mention, also who goes on in a thread where it answered them, or always.
    """

    platform: str
    workspace: str
    channel: str
    visibility: str = "public"
    knowledge: bool = True
    quiet: bool = False
    answer: str = "always"
    model: str = ""
    created_by: str = ""
    members: frozenset[str] = field(default=frozenset())

    def sees(self, user: str) -> bool:
        return self.visibility == "public" or user in self.members


class Channels:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.changes = 0  # that were made here, in this process

    async def get(self, platform: str, workspace: str, channel: str) -> Channel | None:
        async with self._database.read() as connection:
            found = await _select(connection, _ONE, platform=platform, workspace=workspace, channel=channel)
        return found[0] if found else None

    async def ensure(self, platform: str, workspace: str, channel: str, user: str) -> Channel:
        """The channel, made with its defaults where it is new."""
        found = await self.get(platform, workspace, channel)
        return found or await self.change(platform, workspace, channel, user, lambda new: new)

    async def put(self, channel: Channel) -> Channel:
        """Store the channel with its members, as it is here."""
        return await self.change(channel.platform, channel.workspace, channel.channel, "", lambda _: channel)

    async def change(
        self, platform: str, workspace: str, channel: str, user: str, edit: Callable[[Channel], Channel]
    ) -> Channel:
        """Read, edit and store a channel in one transaction; where it is new, this user makes it."""
        async with self._database.write() as connection:
            found = await _select(connection, _ONE, platform=platform, workspace=workspace, channel=channel)
            before = found[0] if found else unborn(platform, workspace, channel, user)
            after = edit(before)
            if not found or after != before:
                await _store(connection, after, is_new=not found)
        self.changes += 1
        return after

    async def known(self, platform: str, workspace: str) -> list[Channel]:
        """All of a workspace, by name."""
        async with self._database.read() as connection:
            return await _select(connection, _ALL, platform=platform, workspace=workspace)

    async def visible(self, platform: str, workspace: str, user: str) -> list[Channel]:
        """The channels that this person may read, by name."""
        async with self._database.read() as connection:
            return await _select(connection, _SEEN, platform=platform, workspace=workspace, user=user)

    async def scope(self, platform: str, workspace: str, channel: str, user: str, thread: str = "") -> Scope:
        """What a reply in this channel may draw on: what everyone who will see it may read."""
        here = await self.get(platform, workspace, channel) or unborn(platform, workspace, channel, user)
        return await self.scope_of(here, user, thread)

    async def scope_of(self, here: Channel, user: str, thread: str = "") -> Scope:
        """The same, of a channel that was read."""
        allowed = {here.channel}
        if here.visibility == "direct":
            allowed.update(await self._names(here, user))
        elif here.visibility in ("public", "private"):
            allowed.update(await self._names(here, user=""))
        audiences = {channel_audience(each) for each in allowed}
        if thread:
            audiences.add(thread_audience(here.channel, thread))
        return Scope(here.workspace, frozenset(audiences))

    async def _names(self, here: Channel, user: str) -> list[str]:
        asked = {"platform": here.platform, "workspace": here.workspace, "user": user}
        async with self._database.read() as connection:
            return list(await connection.scalars(_NAMES_SEEN, asked))


def unborn(platform: str, workspace: str, channel: str, user: str) -> Channel:
    """A channel as this user would begin it. On the page nobody has to mention the bot or ask it to learn."""
    new = Channel(platform, workspace, channel, created_by=user)
    if platform != PAGE:
        return replace(new, knowledge=False, answer="threads")
    if not channel.startswith(DIRECT):
        return new
    owner = channel.removeprefix(DIRECT)
    return replace(new, visibility="direct", created_by=owner, members=frozenset({owner}))


async def _store(connection: AsyncConnection, channel: Channel, is_new: bool) -> None:
    key = {"platform": channel.platform, "workspace": channel.workspace, "channel": channel.channel}
    values = {name: getattr(channel, name) for name in ("visibility", "knowledge", "quiet", "answer", "model")}
    if is_new:
        new = {**key, **values, "created_by": channel.created_by, "created_at": clock()}
        await connection.execute(insert(channels).values(new))
    else:
        this = and_(*(channels.c[name] == value for name, value in key.items()))
        await connection.execute(update(channels).where(this).values(values))
    await connection.execute(delete(members).where(*(members.c[name] == value for name, value in key.items())))
    if channel.members:
        await connection.execute(insert(members), [{**key, "user": user} for user in sorted(channel.members)])


async def _select(connection: AsyncConnection, query: Select[Any], **values: str) -> list[Channel]:
    rows = (await connection.execute(query, values)).all()
    return [
        Channel(**dict(zip(_FIELDS, found, strict=True)), members=frozenset(user for *_, user in theirs if user))
        for found, theirs in groupby(rows, key=lambda row: tuple(row[:-1]))
    ]


# Made once: making them takes longer than asking with them, and each turn asks them several times
_FIELDS = [field.name for field in fields(Channel) if field.name != "members"]
_OF_CHANNEL = and_(*(members.c[name] == channels.c[name] for name in ("platform", "workspace", "channel")))
_WITH_MEMBERS = (
    select(*(channels.c[name] for name in _FIELDS), members.c.user)
    .outerjoin(members, _OF_CHANNEL)
    .order_by(channels.c.channel)
)
_OF_WORKSPACE = and_(*(channels.c[name] == bindparam(name) for name in ("platform", "workspace")))
_THEIRS = select(members.c.channel).where(
    *(members.c[name] == bindparam(name) for name in ("platform", "workspace", "user"))
)
_SEEN_BY_USER = and_(_OF_WORKSPACE, or_(channels.c.visibility == "public", channels.c.channel.in_(_THEIRS)))
_ONE = _WITH_MEMBERS.where(_OF_WORKSPACE, channels.c.channel == bindparam("channel"))
_ALL = _WITH_MEMBERS.where(_OF_WORKSPACE)
_SEEN = _WITH_MEMBERS.where(_SEEN_BY_USER)
_NAMES_SEEN = select(channels.c.channel).where(_SEEN_BY_USER)
