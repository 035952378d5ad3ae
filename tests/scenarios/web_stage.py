"""The web platform: a person is a client of the HTTP interface, their eyes are one stream of events."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

import aiohttp

from tests.running import RunningBot
from tests.scenarios.stage import (
    SECONDS,
    Channel,
    File,
    NothingHappened,
    Opened,
    Player,
    Post,
    Seen,
    Source,
    Stage,
    TurnedAway,
    Verdict,
)

T = TypeVar("T")
Json = dict[str, Any]

WHY: dict[int, Literal["not allowed", "too late"]] = {403: "not allowed", 409: "too late"}
RECONNECT_SECONDS = 0.05
ESCAPED = re.compile(r"\\([\\`*_\[\]<>])")  # Markdown that the page shows as it is


class WebStage(Stage):
    def __init__(self, bot: RunningBot, tag: str) -> None:
        super().__init__(bot, tag)
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> WebStage:
        if not self._bot.is_running:
            await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def person(self, name: str, *, known: bool = False) -> WebPlayer:
        full_name = name if known else f"{name}-{self._tag}"
        return await self._stack.enter_async_context(WebPlayer(self._bot.url, full_name))

    async def make_channel(
        self, name: str, *, by: Player, members: Sequence[Player] | None = None, knowledge: bool = True
    ) -> Channel:
        channel = Channel(f"{name}-{self._tag}")
        await self.change_channel(channel, by=by, members=members, knowledge=knowledge)
        return channel

    async def change_channel(
        self, channel: Channel, *, by: Player, members: Sequence[Player] | None = None, knowledge: bool = True
    ) -> None:
        assert isinstance(by, WebPlayer)
        body: Json = {"user": by.name, "visibility": "public", "knowledge": knowledge}
        if members is not None:
            body |= {"visibility": "private", "members": [member.name for member in members]}
        await by.call("PUT", f"/api/channels/{channel.id}", json=body)


class WebPlayer(Player):
    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.direct = Channel(f"@{name}")
        self._http = aiohttp.ClientSession(url, timeout=aiohttp.ClientTimeout(total=SECONDS))
        self._eyes = EventStream(self._http, name)

    async def __aenter__(self) -> WebPlayer:
        await self._eyes.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._eyes.close()
        await self._http.close()

    async def call(self, method: str, path: str, **request: Any) -> Json:
        """One request; raises TurnedAway with the text that a person reads."""
        request["params"] = {"user": self.name, **request.get("params", {})}
        async with self._http.request(method, path, **request) as response:
            if response.status == 204:
                return {}
            body: Json = await response.json()
            if response.status >= 400:
                assert response.status < 500, f"{method} {path} → {response.status} {body}"
                raise TurnedAway(WHY.get(response.status, "not taken"), body["error"])
            return body

    async def post(
        self,
        channel: Channel,
        text: str = "",
        files: Sequence[File] = (),
        *,
        thread: Post | None = None,
        to_bot: bool = False,
    ) -> Post:
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("channel", channel.id)
        form.add_field("user", self.name)
        form.add_field("text", text)
        if thread:
            form.add_field("thread", thread.thread)
        for file in files:
            form.add_field(
                "files", io.BytesIO(file.content), filename=file.name, content_type="application/octet-stream"
            )
        return _post(channel, await self.call("POST", "/api/messages", data=form))

    async def click(self, card: Seen, option: str) -> Post:
        body = {"user": self.name, "option": card.options.index(option)}
        channel, _, clarification = card.card.rpartition("\n")
        return _post(Channel(channel), await self.call("POST", f"/api/clarifications/{clarification}", json=body))

    async def edit(self, post: Post, text: str) -> None:
        await self.call("PATCH", f"/api/messages/{post.message}", json={"user": self.name, "text": text})

    async def delete(self, post: Post) -> None:
        await self.call("DELETE", f"/api/messages/{post.message}", json={"user": self.name})

    async def thread(self, of: Post) -> list[Seen]:
        body = await self.call("GET", f"/api/threads/{of.thread}")
        return [_seen(body["channel"], message) for message in body["messages"]]

    async def wait_until(self, of: Post, condition: Callable[[list[Seen]], T | None], seconds: float = SECONDS) -> T:
        thread: list[Seen] = []
        try:
            async with asyncio.timeout(seconds), self._eyes.watch() as changed:
                while True:
                    changed.clear()
                    thread = await self.thread(of)
                    found = condition(thread)
                    if found is not None:
                        return found
                    await changed.wait()
        except TimeoutError:
            shown = "\n".join(f"{'bot' if seen.by_bot else 'user'} {seen.kind}: {seen.text}" for seen in thread)
            raise NothingHappened(f"{self.name} waited {seconds} s at {of} and saw:\n{shown}") from None

    async def sees_progress(self, of: Post) -> str:
        event = await self._eyes.wait_for("status", of.message)
        return str(event["text"])

    async def saw_streamed(self, of: Post) -> list[str]:
        return [event["text"] for event in self._eyes.seen("token", of.message)]

    async def opens(self, source: Source) -> Opened:
        body = await self.call("GET", source.handle)
        return Opened(text=body["text"], deleted=body["deleted"])

    async def follows(self, link: str) -> Seen:
        channel, thread, message = map(unquote, link.partition("#/")[2].split("/"))
        found = await self.thread(Post(Channel(channel), thread, message))
        return next(seen for seen in found if seen.message == message)

    def calling(self, text: str) -> str:
        return f"@bot {text}"

    def mention(self) -> str:
        return f"@{self.name}"


class EventStream:
    """`GET /api/events`, held open as a browser holds it: after a break it goes on where it was."""

    def __init__(self, http: aiohttp.ClientSession, user: str) -> None:
        self._http = http
        self._user = user
        self._last = ""
        self._events: list[tuple[str, Json]] = []
        self._watchers: set[asyncio.Event] = set()
        self._is_open = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._task = asyncio.create_task(self._listen())
        async with asyncio.timeout(SECONDS):
            await self._is_open.wait()

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever there is something new."""
        changed = asyncio.Event()
        self._watchers.add(changed)
        try:
            yield changed
        finally:
            self._watchers.discard(changed)

    def seen(self, kind: str, message: str) -> list[Json]:
        return [event for name, event in self._events if name == kind and event.get("message") == message]

    async def wait_for(self, kind: str, message: str) -> Json:
        async with asyncio.timeout(SECONDS), self.watch() as changed:
            while not (found := self.seen(kind, message)):
                changed.clear()
                await changed.wait()
        return found[0]

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                await self._read()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _read(self) -> None:
        headers = {"Last-Event-ID": self._last} if self._last else {}
        endless = aiohttp.ClientTimeout(total=None)
        params = {"user": self._user}
        async with self._http.get("/api/events", params=params, headers=headers, timeout=endless) as response:
            response.raise_for_status()
            self._is_open.set()
            self._notify()
            async for event in server_sent(response):
                self._last = event.get("id", self._last)
                self._events.append((event.get("event", "message"), json.loads(event["data"])))
                self._notify()

    def _notify(self) -> None:
        for watcher in self._watchers:
            watcher.set()


async def server_sent(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, str]]:
    """The events of a `text/event-stream`, as their fields; heartbeats are none."""
    fields: dict[str, str] = {}
    async for raw in response.content:
        line = raw.decode().rstrip("\r\n")
        if not line and "data" in fields:
            yield fields
        if not line:
            fields = {}
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data" and "data" in fields:
            value = f"{fields['data']}\n{value}"
        if name:
            fields[name] = value


def _post(channel: Channel, body: Json) -> Post:
    return Post(channel, thread=body["thread"], message=body["message"])


def _seen(channel: str, message: Json) -> Seen:
    card = message["clarification"] or {}
    return Seen(
        message=message["message"],
        by_bot=message["author"] == "bot",
        kind=message.get("kind") or "",
        text=ESCAPED.sub(r"\1", message["text"]),
        reply_to=message.get("reply_to") or "",
        sources=tuple(_source(citation) for citation in message["citations"]),
        options=tuple(option["label"] for option in message["options"]),
        files=tuple(Verdict(file["name"], file["verdict"], file["reason"]) for file in message["files"]),
        edited=bool(message["edited"]),
        deleted=bool(message["deleted"]),
        card=f"{channel}\n{card.get('id', '')}",
        chosen=(card.get("choice") or {}).get("text", ""),
    )


def _source(citation: Json) -> Source:
    return Source(
        number=citation["number"],
        name=citation["name"],
        version=citation["version"],
        page=citation["page"],
        place=citation["place"],
        quote=citation["quote"],
        link=citation["link"],
        handle=f"/api/documents/{citation['document']}/sections/{citation['section']}?version={citation['version']}",
    )
