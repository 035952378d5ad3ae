"""Who reads a channel, as Slack says: kept in the catalog, asked again where an event or time makes it doubtful."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.adapters.slack.events import PLATFORM, Me
from storage.channels import Channel, Channels

FRESH_SECONDS = 60.0
PERSON_SECONDS = 600.0
PAGE = 200  # of what is listed

_ID = re.compile(r"(?<![\w/])[UWC][A-Z0-9]{8,}(?![\w/])")
_LIST = ""  # in the place of a channel: the list of them

Json = Mapping[str, Any]
Method = Callable[..., Awaitable[AsyncSlackResponse]]


class Directory:
    """Of one workspace. Raises SlackApiError where Slack doesn't answer: what isn't known isn't guessed."""

    def __init__(self, client: AsyncWebClient, me: Me, channels: Channels) -> None:
        self._client = client
        self._me = me
        self._channels = channels
        self._known_until: dict[str, float] = {}
        self._one_at_a_time: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._names: dict[str, str] = {}
        self._outsiders: dict[str, tuple[bool, float]] = {}

    async def refresh(self, channel: str, user: str) -> None:
        """See to it that the catalog knows this channel and all that its replies may draw on, as they are now."""
        await self._once(channel, self._read, channel)
        await self._once(_LIST, self._read_list)
        here = await self._channels.get(PLATFORM, self._me.workspace, channel)
        if here is not None and here.visibility == "direct":
            await self._once(user, self._read_memberships, user)

    async def named(self, text: str) -> str:
        """The same text with people and public channels by their names, where it has their ids."""
        for id in dict.fromkeys(_ID.findall(text)):
            with contextlib.suppress(SlackApiError):
                text = text.replace(id, await self._name(id))
        return text

    async def _name(self, id: str) -> str:
        if id not in self._names:
            if id.startswith("C"):  # what a private channel is called is nobody's business who only has its id
                info: Json = (await self._client.conversations_info(channel=id))["channel"]
                self._names[id] = id if info.get("is_private") else f"#{info['name']}"
            else:
                self._names[id] = (await self._client.users_info(user=id))["user"]["name"]
        return self._names[id]

    async def _once(self, what: str, read: Callable[..., Awaitable[None]], *given: str) -> None:
        """Read where it isn't known, or no longer."""
        async with self._one_at_a_time[what]:
            if self._known_until.get(what, 0.0) < time.monotonic():
                await read(*given)
                self._known_until[what] = time.monotonic() + FRESH_SECONDS

    def doubt(self, channel: str) -> None:
        """Something changed there: it is read again before it is used."""
        self._known_until.pop(channel, None)

    def doubt_person(self, user: str) -> None:
        """Whether they are a guest may have changed, and with it every channel that they are in."""
        self._outsiders.pop(user, None)
        self._known_until.clear()

    async def _read(self, channel: str) -> None:
        info: Json = (await self._client.conversations_info(channel=channel))["channel"]
        people = frozenset([user async for user in self._people(channel)])
        visibility = await self._visibility(info, people)
        members = people if visibility != "public" else frozenset()
        creator = str(info.get("creator") or info.get("user") or "")

        def as_it_is(known: Channel) -> Channel:
            return replace(known, visibility=visibility, members=members, created_by=creator or known.created_by)

        await self._channels.change(PLATFORM, self._me.workspace, channel, creator, as_it_is)

    async def _read_list(self) -> None:
        """Channels that were public and are no more, and those that the bot is no longer in."""
        kinds = "public_channel,private_channel,mpim"
        listed = {info["id"]: info async for info in self._paged(self._client.conversations_list, types=kinds)}
        for known in await self._channels.known(PLATFORM, self._me.workspace):
            info = listed.get(known.channel)
            if known.visibility == "public" and (info is None or info.get("is_private") or info.get("is_ext_shared")):
                await self.hide(known.channel)
            elif known.visibility == "private" and info is None:
                await self.hide(known.channel)

    async def hide(self, channel: str) -> None:
        """It serves nobody until it is read again: who may read it isn't known."""
        self.doubt(channel)
        await self._channels.change(
            PLATFORM,
            self._me.workspace,
            channel,
            "",
            lambda known: replace(known, visibility="private", members=frozenset()),
        )

    async def _read_memberships(self, user: str) -> None:
        """The private channels that this person is in."""
        theirs = {
            info["id"]
            async for info in self._paged(self._client.users_conversations, user=user, types="private_channel,mpim")
        }
        for known in await self._channels.known(PLATFORM, self._me.workspace):
            if known.visibility == "private" and (user in known.members) != (known.channel in theirs):
                await self._once(known.channel, self._read, known.channel)

    async def _visibility(self, info: Json, people: frozenset[str]) -> str:
        if info.get("is_ext_shared") or info.get("is_pending_ext_shared"):
            return "shared"
        if await self._has_outsider(people):
            return "shared"
        if info.get("is_im"):
            return "direct"
        return "private" if info.get("is_private") or info.get("is_mpim") else "public"

    async def _people(self, channel: str) -> AsyncIterator[str]:
        async for user in self._paged(self._client.conversations_members, key="members", channel=channel):
            if user != self._me.user:
                yield user

    async def _paged(self, method: Method, *, key: str = "channels", **arguments: str) -> AsyncIterator[Any]:
        cursor = ""
        while True:
            page = await method(limit=PAGE, cursor=cursor, **arguments)
            for each in page[key]:
                yield each
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return

    async def _has_outsider(self, people: frozenset[str]) -> bool:
        for user in sorted(people):
            if await self._is_outsider(user):
                return True
        return False

    async def _is_outsider(self, user: str) -> bool:
        """A guest, or somebody of another organisation."""
        known, until = self._outsiders.get(user, (False, 0.0))
        if until > time.monotonic():
            return known
        person: Json = (await self._client.users_info(user=user))["user"]
        is_guest = bool(person.get("is_restricted") or person.get("is_ultra_restricted") or person.get("is_stranger"))
        is_outsider = is_guest or person.get("team_id", self._me.team) != self._me.team
        self._outsiders[user] = is_outsider, time.monotonic() + PERSON_SECONDS
        return is_outsider
