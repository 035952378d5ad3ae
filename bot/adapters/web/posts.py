"""What people do on the page: post, edit, delete, answer a clarification, rate an answer."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiohttp import BodyPartReader, web
from pydantic import ValidationError

from agent.understanding import BOT_NAMES
from bot.adapters.web import bodies
from bot.adapters.web.bodies import Caller, ChoiceBody, DeleteBody, EditBody, FeedbackBody, PostBody
from bot.adapters.web.desk import PLATFORM, Desk
from bot.adapters.web.errors import WebError, reply
from bot.adapters.web.names import digest, is_blank, link, message_id, new_id
from bot.adapters.web.sight import Sight
from bot.adapters.web.uploads import Upload, Uploads
from bot.messages import Attachment, Incoming, Kind, ThreadRef
from bot.platform import Claim, OnMessage
from storage.channels import DIRECT
from storage.transcript import Line

MOST_FILES = 100
LARGEST_FIELD = 256 * 1024
NOT_CLAIMED = 0.0  # the time of a message is that of its claim
_MENTION = re.compile(r"(?<![\w@.])@([\w\-]+)")


@dataclass(slots=True)
class Draft:
    """A post as it is read from its request."""

    fields: dict[str, str] = field(default_factory=dict)
    uploads: list[Upload] = field(default_factory=list)


class Posts:
    def __init__(self, desk: Desk, sight: Sight, uploads: Uploads) -> None:
        self._desk = desk
        self._sight = sight
        self._uploads = uploads
        self._on_message: OnMessage | None = None
        self._latest = 0.0
        self._one_claim = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/messages", self.post),
            web.patch("/api/messages/{message}", self.edit),
            web.delete("/api/messages/{message}", self.delete),
            web.post("/api/clarifications/{clarification}", self.choose),
            web.post("/api/feedback", self.rate),
        ]

    def open(self, on_message: OnMessage) -> None:
        self._on_message = on_message

    def close(self) -> None:
        self._on_message = None

    async def post(self, request: web.Request) -> web.Response:
        if not request.content_type.startswith("multipart/"):
            return await self._post(request, await bodies.read(request, PostBody), [])
        draft = Draft()
        try:
            await self._read_form(request, draft)
            return await self._post(request, _post_body(draft.fields), draft.uploads)
        except Exception:  # but not where the bot ends meanwhile: the claim may be on the disk, the next start knows
            await self._drop_unclaimed(draft.uploads)
            raise

    async def edit(self, request: web.Request) -> web.Response:
        body = await bodies.read(request, EditBody)
        who = bodies.caller(request, body)
        line = await self._own(who, bodies.path_id(request, "message"))
        if is_blank(body.text) and not line.files:
            raise WebError(400, "There is nothing left in this message: write something, or delete it.")
        return await self._claim(_change(Kind.EDIT, line, who, body.text))

    async def delete(self, request: web.Request) -> web.Response:
        who = bodies.caller(request, await bodies.read(request, DeleteBody))
        line = await self._own(who, bodies.path_id(request, "message"))
        return await self._claim(_change(Kind.DELETE, line, who))

    async def choose(self, request: web.Request) -> web.Response:
        body = await bodies.read(request, ChoiceBody)
        who = bodies.caller(request, body)
        card = await self._sight.card(who, bodies.path_id(request, "clarification"))
        message = message_id(bodies.idempotency_key(request), "choice", who.workspace, card.channel, who.user)
        return await self._claim(
            Incoming(
                kind=Kind.ACTION,
                where=_where(who, card.channel, card.thread),
                message=message,
                user=who.user,
                text=_choice(body),
                option=body.option,
                clarification=card.id,
                sent_at=NOT_CLAIMED,
                direct=card.channel.startswith(DIRECT),
                mentions_bot=True,
                link=link(card.channel, card.thread, message),
                digest=digest(card.id, body.option, body.text),
            )
        )

    async def rate(self, request: web.Request) -> web.Response:
        body = await bodies.read(request, FeedbackBody)
        who = bodies.caller(request, body)
        line = await self._sight.line(who, body.message)
        if line.author != "bot":
            raise WebError(400, "Only what the bot said can be rated.")
        await self._desk.transcript.rate(who.workspace, line.channel, line.message, who.user, body.value)
        return reply({"message": line.message, "value": body.value})

    async def _post(self, request: web.Request, body: PostBody, uploads: Sequence[Upload]) -> web.Response:
        who = bodies.caller(request, body)
        await self._sight.channel(who, body.channel)
        if is_blank(body.text) and not uploads:
            raise WebError(400, "There is nothing in this message: write something, or attach a file.")
        message = message_id(bodies.idempotency_key(request), "post", who.workspace, body.channel, who.user)
        thread = body.thread or message
        await self._uploads.keep(uploads)
        return await self._claim(
            Incoming(
                kind=Kind.MESSAGE,
                where=_where(who, body.channel, thread),
                message=message,
                user=who.user,
                text=body.text,
                attachments=tuple(Attachment(name=u.name, size=u.size, reference=u.reference) for u in uploads),
                sent_at=NOT_CLAIMED,
                direct=body.channel.startswith(DIRECT),
                **_mentions(body.text),
                link=link(body.channel, thread, message),
                model=body.model,
                digest=digest(body.channel, who.user, body.text, body.thread, body.model, _contents(uploads)),
            ),
            uploads,
        )

    async def _claim(self, incoming: Incoming, uploads: Sequence[Upload] = ()) -> web.Response:
        if self._on_message is None:
            raise WebError(503, "The bot is ending or starting. Send it again in a moment.")
        async with self._one_claim:  # or a message could be answered before one that is older and not claimed yet
            if incoming.kind is Kind.MESSAGE:
                await self._check_thread(incoming)
            claim: Claim = await self._on_message(incoming.model_copy(update={"sent_at": self._now()}))
        if not claim.new:
            await self._uploads.drop(uploads)
        if claim.incoming.digest != incoming.digest:
            raise WebError(409, "This Idempotency-Key was used for another message. Use a new key for each message.")
        return reply({"message": claim.incoming.message, "thread": claim.incoming.where.thread}, status=202)

    async def _drop_unclaimed(self, uploads: Sequence[Upload]) -> None:
        """What went wrong may have come after the claim: then its files are waited for."""
        living = await self._desk.living()
        await self._uploads.drop(upload for upload in uploads if upload.reference not in living)

    async def _read_form(self, request: web.Request, draft: Draft) -> None:
        try:
            await self._read_parts(request, draft)
        except ValueError:
            raise WebError(400, "The multipart body can't be read. Send it again as multipart/form-data.") from None

    async def _read_parts(self, request: web.Request, draft: Draft) -> None:
        reader = await request.multipart()
        while (part := await reader.next()) is not None:
            if not isinstance(part, BodyPartReader) or not part.name:
                raise WebError(400, "Each part of the body needs a name: a field, or files.")
            if part.name == "files":
                if len(draft.uploads) == MOST_FILES:
                    raise WebError(400, f"A post takes at most {MOST_FILES} files. Send the others in another one.")
                draft.uploads.append(await self._uploads.take(part))
            elif part.name in draft.fields:
                raise WebError(400, f'The field "{part.name[:100]}" is there twice.')
            else:
                draft.fields[part.name] = await _field(part)

    async def _check_thread(self, incoming: Incoming) -> None:
        """A thread belongs to one channel, as far as its author sees; an id that they don't know begins one."""
        where, who = incoming.where, Caller(incoming.where.workspace, incoming.user)
        channels = await self._desk.transcript.channels_of(PLATFORM, where.workspace, where.thread)
        if where.channel not in channels:
            for channel in channels:
                if await self._sight.sees(who, channel):
                    raise WebError(404, f"There is no such thread in {where.channel}.")

    async def _own(self, who: Caller, message: str) -> Line:
        line = await self._sight.line(who, message)
        if line.author != "user" or line.user != who.user:
            raise WebError(403, "Only who posted a message can change it.")
        if line.deleted:
            raise WebError(409, "This message was deleted.")
        return line

    def _now(self) -> float:
        """The platform's time: it gives the order, so it never stands still or goes back."""
        self._latest = max(time.time(), self._latest + 1e-6)
        return self._latest


def _change(kind: Kind, line: Line, who: Caller, text: str = "") -> Incoming:
    return Incoming(
        kind=kind,
        where=_where(who, line.channel, line.thread),
        message=line.message,
        revision=new_id(),
        user=who.user,
        text=text,
        sent_at=NOT_CLAIMED,
        direct=line.channel.startswith(DIRECT),
        link=link(line.channel, line.thread, line.message),
        **_mentions(text),
    )


def _mentions(text: str) -> dict[str, bool]:
    mentioned = {name.lower() for name in _MENTION.findall(text)}
    return {
        "mentions_bot": not mentioned.isdisjoint(BOT_NAMES),
        "mentions_others": text.lstrip().startswith("@") and bool(mentioned.difference(BOT_NAMES)),
    }


def _choice(body: ChoiceBody) -> str:
    """The words; those of an option are the card's."""
    if (body.option is None) == is_blank(body.text):
        raise WebError(400, 'Answer with either "option", counted from 0, or "text".')
    return body.text if body.option is None else ""


def _where(who: Caller, channel: str, thread: str) -> ThreadRef:
    return ThreadRef(platform=PLATFORM, workspace=who.workspace, channel=channel, thread=thread)


def _contents(uploads: Sequence[Upload]) -> list[list[str]]:
    return [[upload.name, upload.digest] for upload in uploads]


async def _field(part: BodyPartReader) -> str:
    value = bytearray()
    while chunk := await part.read_chunk(64 * 1024):
        value += chunk
        if len(value) > LARGEST_FIELD:
            raise WebError(413, f'The field "{(part.name or "")[:100]}" is too long.')
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise WebError(400, f'The field "{(part.name or "")[:100]}" is not UTF-8.') from None


def _post_body(fields: dict[str, str]) -> PostBody:
    try:
        return PostBody.model_validate({name: value for name, value in fields.items() if value or name == "text"})
    except ValidationError as error:
        raise WebError(400, bodies.explain(error)) from None
