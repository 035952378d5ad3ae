"""What the page reads: channels, threads, documents; and how a channel is set."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from aiohttp import web

from bot.adapters.web import bodies, shapes
from bot.adapters.web.bodies import Caller, ChannelBody
from bot.adapters.web.desk import PLATFORM, Desk
from bot.adapters.web.errors import WebError, reply
from bot.adapters.web.sight import NOT_A_MEMBER, Sight
from ingest import split
from storage.channels import Channel
from storage.models import Document, DocumentState, Section, channel_audience

READABLE = (DocumentState.CURRENT, DocumentState.SUPERSEDED)
LARGEST_VERSION = 10**9


class Reading:
    def __init__(self, desk: Desk, sight: Sight) -> None:
        self._desk = desk
        self._sight = sight

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/channels", self.channels),
            web.put("/api/channels/{channel}", self.set_channel),
            web.get("/api/threads", self.threads),
            web.get("/api/threads/{thread}", self.thread),
            web.get("/api/documents", self.documents),
            web.get("/api/documents/{document}/sections/{section}", self.section),
            web.get("/api/documents/{document}/text", self.text),
            web.get("/api/documents/{document}/passages", self.passages),
        ]

    async def channels(self, request: web.Request) -> web.Response:
        found = await self._sight.channels(bodies.caller(request))
        return reply({"channels": [shapes.channel(each) for each in found]})

    async def set_channel(self, request: web.Request) -> web.Response:
        body = await bodies.read(request, ChannelBody)
        who = bodies.caller(request, body)
        name = bodies.path_name(request, "channel")
        await self._sight.channel(who, name)
        changed = await self._desk.channels.change(
            PLATFORM, who.workspace, name, who.user, lambda now: _changed(now, body, who)
        )
        return reply(shapes.channel(changed))

    async def threads(self, request: web.Request) -> web.Response:
        who = bodies.caller(request)
        channel = bodies.channel_of(request)
        if not channel:
            raise WebError(400, "Name the channel: /api/threads?channel=…")
        await self._sight.channel(who, channel)
        found = await self._desk.transcript.threads(PLATFORM, who.workspace, channel)
        return reply({"threads": [shapes.thread(each) for each in found]})

    async def thread(self, request: web.Request) -> web.Response:
        who = bodies.caller(request)
        thread = bodies.path_id(request, "thread")
        lines = await self._sight.thread(who, thread)
        shown = [await self._sight.message(line) for line in lines]
        return reply({"thread": thread, "channel": lines[0].channel, "messages": shown})

    async def documents(self, request: web.Request) -> web.Response:
        """A channel's own documents; with `scope=yes` all that a question there may draw on; without a channel all
        that this person sees."""
        who = bodies.caller(request)
        channel = bodies.channel_of(request)
        if channel:
            await self._sight.channel(who, channel)
        if not channel:
            audiences = await self._sight.audiences(who)
        elif request.query.get("scope"):
            scope = await self._desk.channels.scope(PLATFORM, who.workspace, channel, who.user)
            audiences = set(scope.audiences)
        else:
            audiences = {channel_audience(channel)}
        found = await self._desk.documents.listed(who.workspace, audiences)
        return reply({"documents": [shapes.document(each) for each in found]})

    async def section(self, request: web.Request) -> web.Response:
        found = await self._document(request)
        number = bodies.path_number(request, "section")
        if found.state is DocumentState.DELETED:
            return reply(shapes.section(found, number, None))
        sections = await self._desk.documents.sections(found.key, [number]) if found.state in READABLE else []
        if not sections and not await self._is_given_up(found):
            raise WebError(404, "There is no such section.")
        current = await self._desk.documents.get(found.document)
        shown = shapes.section(found, number, sections[0] if sections else None)
        return reply({**shown, "current": current.version if current else found.version})

    async def text(self, request: web.Request) -> web.Response:
        found = await self._document(request)
        text = shapes.whole_text(await self._sections(found))
        return reply({"document": found.document, "version": found.version, "name": found.name, "text": text})

    async def passages(self, request: web.Request) -> web.Response:
        found = await self._document(request)
        cut = await asyncio.to_thread(split.passages, found, await self._sections(found))
        return reply({"passages": [shapes.passage(each) for each in cut]})

    async def _document(self, request: web.Request) -> Document:
        version = int(bodies.number(request, "version", 0, LARGEST_VERSION))
        return await self._sight.document(bodies.caller(request), bodies.path_id(request, "document"), version or None)

    async def _is_given_up(self, document: Document) -> bool:
        """Whether this version was replaced and its text is no longer kept."""
        return document.state is DocumentState.SUPERSEDED and not await self._desk.documents.sections(document.key, [1])

    async def _sections(self, document: Document) -> list[Section]:
        sections = await self._desk.documents.sections(document.key) if document.state in READABLE else []
        if not sections:
            raise WebError(404, f"There is no text: this document is {document.state.value}.")
        return sections


def _changed(now: Channel, body: ChannelBody, who: Caller) -> Channel:
    """The channel as it is wished. Without members a private channel has the one who made it so."""
    if not now.sees(who.user):
        raise WebError(403, NOT_A_MEMBER)
    if body.visibility is not None or body.members is not None:
        if now.visibility == "direct":
            raise WebError(400, "A person's own channel stays theirs alone. Make another channel private instead.")
        now = _with_readers(now, body, who)
    knowledge = now.knowledge if body.knowledge is None else body.knowledge
    quiet = now.quiet if body.quiet is None else body.quiet
    return replace(now, knowledge=knowledge, quiet=quiet)


def _with_readers(now: Channel, body: ChannelBody, who: Caller) -> Channel:
    visibility = body.visibility or now.visibility
    if visibility == "public":
        if body.members:
            raise WebError(400, 'Everyone reads a public channel: leave out "members", or make it private.')
        return replace(now, visibility=visibility, members=frozenset())
    members = now.members if body.members is None else frozenset(body.members)
    return replace(now, visibility=visibility, members=members or frozenset({who.user}))
