"""A Slack workspace as a platform: events are claimed before they are acknowledged, replies are posted once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from agent.outcomes import Event, Status
from bot.adapters.slack import events, files
from bot.adapters.slack.blocks import CHARACTERS, MOST_SOURCES, blocks_of, fallback
from bot.adapters.slack.directory import Directory
from bot.adapters.slack.events import PLATFORM, RATE, Me
from bot.messages import Attachment, Incoming, Posted, Reply, ThreadRef
from bot.platform import NotStarted, OnMessage, PlatformDown, Refused, Turn, Undeliverable, Why
from storage.channels import Channels
from storage.transcript import Transcript

API = "https://slack.com/api/"
CALL_SECONDS = 10
STATUS_SECONDS = 3.0
MARK = "threadlore"
WHISPERED = 500  # messages of which it is remembered that their author was told something
LATELY = 200  # messages of a page
WAITS = 5  # times that a call waits where Slack says that there were too many
TOLD = frozenset({Why.NOT_ASKER, Why.DECIDED, Why.TOO_MANY, Why.TOO_LONG, Why.INVALID})
CONVERTED = frozenset({"channel_convert_to_private", "channel_convert_to_public"})
MEMBERSHIP = frozenset({"member_joined_channel", "member_left_channel", "channel_shared", "channel_unshared"})

DOWN = (SlackApiError, aiohttp.ClientError, TimeoutError)
NO_WAY = frozenset(
    {
        "channel_not_found",
        "not_in_channel",
        "is_archived",
        "restricted_action",
        "thread_not_found",
        "cannot_reply_to_message",
    }
)
GONE = NO_WAY | {"message_not_found", "cant_update_message"}  # nothing to be revised

Json = Mapping[str, Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SlackOptions:
    """`settle_seconds`: after a crash a reply may still be on its way; so long it is waited for."""

    bot_token: str
    app_token: str
    api_url: str = API
    largest_file: int = 100 * 1024 * 1024
    settle_seconds: float = CALL_SECONDS + 2.0


@dataclass(frozen=True, slots=True)
class SlackDesk:
    channels: Channels
    transcript: Transcript


class SlackNotStarted(NotStarted):
    """Slack doesn't take the tokens as they are set."""


class Slack:
    name = PLATFORM
    characters = CHARACTERS

    def __init__(self, options: SlackOptions, desk: SlackDesk) -> None:
        self._options = options
        self._desk = desk
        self._client = _client(options)
        self._me: Me | None = None
        self._directory: Directory | None = None
        self._socket: AsyncSocketModeHandler | None = None
        self._http: aiohttp.ClientSession | None = None
        self._on_message: OnMessage | None = None
        self._whispered: deque[tuple[str, str]] = deque(maxlen=WHISPERED)
        self._ready = asyncio.Event()  # rows from before are worked on before it listens
        self._shown: dict[int, float] = {}  # when a turn last gave a sign
        self._telling: set[asyncio.Task[None]] = set()

    async def start(self, on_message: OnMessage) -> None:
        """Raises SlackNotStarted where Slack refuses the tokens."""
        self._http = aiohttp.ClientSession()
        self._me = await self._introduce()
        await self._try_app_token()
        self._directory = Directory(self._client, self._me, self._desk.channels)
        self._on_message = on_message
        self._ready.set()
        app = AsyncApp(client=self._client, ignoring_self_events_enabled=False)
        app.middleware(self._take)
        self._socket = AsyncSocketModeHandler(app, self._options.app_token)
        await self._socket.connect_async()  # type: ignore[no-untyped-call]

    async def stop_listening(self) -> None:
        if self._socket is not None:
            socket, self._socket = self._socket, None
            await socket.close_async()  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        await self.stop_listening()
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)
        if self._http is not None:
            await self._http.close()

    async def look(self, where: ThreadRef, user: str) -> None:
        try:
            await asyncio.wait_for(self._ready.wait(), CALL_SECONDS)
            assert self._directory is not None
            await self._directory.refresh(where.channel, user)
        except DOWN as error:
            raise PlatformDown(_named(error)) from error

    async def tell(self, turn: Turn, event: Event) -> None:
        if isinstance(event, Status) and self._is_due(turn):
            task = asyncio.create_task(self._show(turn, event.text), name="slack status")
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def _is_due(self, turn: Turn) -> bool:
        """A sign at once, then one now and then: each is a call."""
        now = time.monotonic()
        if now - self._shown.get(turn.row, -STATUS_SECONDS) < STATUS_SECONDS:
            return False
        self._shown[turn.row] = now
        return True

    async def send(self, turn: Turn, part: int, reply: Reply) -> str:
        assert self._directory is not None
        self._shown.pop(turn.row, None)
        try:
            reply = reply.model_copy(update={"text": await self._directory.named(reply.text)})
            posted = await self._client.chat_postMessage(
                channel=turn.where.channel,
                thread_ts=_thread(turn),
                text=fallback(reply),
                blocks=blocks_of(reply, _mark(turn, part)),
                metadata=_told(turn, reply),
                unfurl_links=False,
                unfurl_media=False,
            )
        except DOWN as error:
            if isinstance(error, SlackApiError) and error.response.get("error") in NO_WAY:
                raise Undeliverable(_named(error)) from error
            raise PlatformDown(_named(error)) from error
        return str(posted["ts"])

    async def find(self, turn: Turn) -> list[Posted]:
        await asyncio.sleep(self._options.settle_seconds)
        found: dict[int, Posted] = {}
        marks = f"{MARK}.{turn.row}."
        try:
            async for message in self._standing(turn):
                for block in message.get("blocks") or ():
                    if str(block.get("block_id", "")).startswith(marks):
                        part = int(block["block_id"].removeprefix(marks))
                        found.setdefault(part, Posted(message=message["ts"], part=part))
        except DOWN as error:
            if _named(error) not in NO_WAY:
                raise PlatformDown(_named(error)) from error
        return [*found.values()]

    async def _standing(self, turn: Turn) -> AsyncIterator[Json]:
        """What stands where this turn's reply belongs: in its thread, or lately in the channel itself."""
        channel, thread, cursor = turn.where.channel, _thread(turn), ""
        if thread is None:
            for message in (await self._client.conversations_history(channel=channel, limit=LATELY))["messages"]:
                yield message
            return
        while True:
            page = await self._client.conversations_replies(channel=channel, ts=thread, limit=LATELY, cursor=cursor)
            for message in page["messages"]:
                yield message
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return

    async def revise(self, where: ThreadRef, message: str, reply: Reply) -> None:
        try:
            await self._client.chat_update(
                channel=where.channel, ts=message, text=fallback(reply), blocks=blocks_of(reply, MARK)
            )
        except DOWN as error:
            if _named(error) not in GONE:
                raise PlatformDown(_named(error)) from error

    async def whisper(self, where: ThreadRef, user: str, text: str) -> None:
        with contextlib.suppress(*DOWN):
            await self._client.chat_postEphemeral(channel=where.channel, user=user, thread_ts=where.thread, text=text)

    async def fetch(self, attachment: Attachment, target: Path) -> None:
        assert self._http is not None
        await files.fetch(self._client, self._http, attachment.reference, target, self._options.largest_file)

    async def discard(self, attachment: Attachment) -> None:
        """Nothing to do: the bytes are Slack's."""

    async def _introduce(self) -> Me:
        try:
            found = await self._client.auth_test()
        except DOWN as error:
            raise SlackNotStarted(_refusal(error, "SLACK_BOT_TOKEN")) from None
        return Me(found["team_id"], found["user_id"], found["bot_id"], found["url"])

    async def _try_app_token(self) -> None:
        """The client of Socket Mode tries a wrong one for ever."""
        try:
            await self._client.apps_connections_open(app_token=self._options.app_token)
        except DOWN as error:
            raise SlackNotStarted(_refusal(error, "SLACK_APP_TOKEN")) from None

    async def _take(self, body: dict[str, Any]) -> BoltResponse:
        """Everything comes here before it is acknowledged; what raises is not, and comes again."""
        match body.get("type"):
            case "event_callback":
                await self._take_event(body["event"])
            case "block_actions":
                for action in body["actions"]:
                    await self._take_action(body, action)
        return BoltResponse(status=200, body="")

    async def _take_event(self, event: Json) -> None:
        assert self._me is not None and self._directory is not None
        kind = event["type"]
        if kind in ("message", "app_mention"):
            if event.get("subtype") in CONVERTED:
                await self._directory.hide(event["channel"])
            incoming = events.said(event, self._me)
            if incoming is not None:
                await self._claim(incoming)
        elif kind in MEMBERSHIP:
            self._directory.doubt(event["channel"])
            if kind == "member_joined_channel" and (invited := events.joined(event, self._me)):
                await self._claim(invited)
        elif kind == "user_change":
            self._directory.doubt_person(event["user"]["id"])

    async def _take_action(self, payload: Json, action: Json) -> None:
        assert self._me is not None
        if (click := events.clicked(payload, action, self._me)) is not None:
            await self._claim(click)
        elif str(action["action_id"]).startswith(RATE):
            where, user = payload["container"], payload["user"]["id"]
            value = int(action["value"])
            await self._desk.transcript.rate(self._me.workspace, where["channel_id"], where["message_ts"], user, value)

    async def _claim(self, incoming: Incoming) -> None:
        assert self._on_message is not None
        try:
            await self._on_message(incoming)
        except Refused as refused:
            key = incoming.where.channel, incoming.message
            if refused.why in TOLD and key not in self._whispered:  # a mention comes as two events
                self._whispered.append(key)
                await self.whisper(incoming.where, incoming.user, refused.text)

    async def _show(self, turn: Turn, text: str) -> None:
        try:
            await self._client.assistant_threads_setStatus(
                channel_id=turn.where.channel, thread_ts=turn.where.thread, status=text
            )
        except DOWN:
            log.debug("a status was not shown", exc_info=True)


def _client(options: SlackOptions) -> AsyncWebClient:
    client = AsyncWebClient(token=options.bot_token, base_url=options.api_url, timeout=CALL_SECONDS)
    client.retry_handlers = [AsyncRateLimitErrorRetryHandler(max_retry_count=WAITS)]
    return client


def _thread(turn: Turn) -> str | None:
    """What is said by itself begins a thread."""
    return None if turn.where.thread.startswith("join.") else turn.where.thread


def _mark(turn: Turn, part: int) -> str:
    return f"{MARK}.{turn.row}.{part}"


def _told(turn: Turn, reply: Reply) -> dict[str, Any]:
    """What a reply is, for programs that read the channel."""
    cited = [each.model_dump(include={"number", "document", "version", "section", "page"}) for each in reply.citations]
    payload = {"kind": reply.kind, "reply_to": turn.message, "citations": cited[:MOST_SOURCES]}
    return {"event_type": "threadlore_reply", "event_payload": payload}


def _named(error: Exception) -> str:
    return str(error.response.get("error")) if isinstance(error, SlackApiError) else type(error).__name__


def _refusal(error: Exception, setting: str) -> str:
    if not isinstance(error, SlackApiError):
        return f"Slack can't be reached ({_named(error)}). Check the network, or start again without {setting}."
    name = error.response.get("error")
    if name == "missing_scope":
        return f"Slack: the app lacks the scope {error.response.get('needed')}; add it and install the app again."
    return f"Slack refuses {setting} ({name}). Copy it anew from the app's settings."
