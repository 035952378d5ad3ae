"""Someone who does things over the HTTP interface of a bot that may die at any time, each until it is taken."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.scenarios.stage import OUTCOMES

Json = dict[str, Any]
PATIENCE = 60.0  # seconds that an outcome may take
PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Post:
    channel: str
    thread: str
    message: str
    user: str


class Client:
    """`repeated` counts the requests whose answer was lost: they were made again until one came."""

    def __init__(self, http: aiohttp.ClientSession, patience: float) -> None:
        self._http = http
        self._patience = patience
        self._keys = itertools.count(1)
        self.repeated = 0

    async def post(
        self, channel: str, text: str = "", files: Mapping[str, str] | None = None, thread: str = "", user: str = "ada"
    ) -> Post:
        fields = {"channel": channel, "user": user, "text": text, **({"thread": thread} if thread else {})}
        _, body = await self._until_taken("POST", "/api/messages", fields, files or {})
        return Post(channel, body["thread"], body["message"], user)

    async def click(self, card: Json, option: int, user: str = "ada") -> Post:
        path = f"/api/clarifications/{card['clarification']['id']}"
        _, body = await self._until_taken("POST", path, {"user": user, "option": option})
        return Post(card["channel"], body["thread"], body["message"], user)

    async def edit(self, post: Post, text: str) -> None:
        await self._until_taken("PATCH", f"/api/messages/{post.message}", {"user": post.user, "text": text})

    async def delete(self, post: Post) -> None:
        """Where the first request's answer was lost, the next one hears that it was done."""
        body = {"user": post.user}
        await self._until_taken("DELETE", f"/api/messages/{post.message}", body, also=(409,))

    async def thread(self, post: Post) -> list[Json]:
        _, body = await self.get(f"/api/threads/{post.thread}", user=post.user)
        messages: list[Json] = body["messages"]
        return messages

    async def get(self, path: str, **params: str) -> tuple[int, Json]:
        while True:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with self._http.get(path, params=params) as response:
                    if response.status < 500:
                        return response.status, await response.json()
            await asyncio.sleep(PAUSE)

    async def search(self, channel: str, words: str, user: str = "ada") -> list[Json]:
        body = {"channel": channel, "user": user, "query": words, "limit": 50}
        async with self._http.post("/api/search", json=body) as response:
            hits: list[Json] = (await response.json())["hits"]
            return hits

    async def outcomes(self, post: Post, count: int = 1) -> list[Json]:
        """What the bot said to this message, once it is so much."""
        async with asyncio.timeout(self._patience):
            while True:
                found = outcomes_of(await self.thread(post), post.message)
                if len(found) >= count:
                    return found
                await asyncio.sleep(PAUSE)

    async def outcome(self, post: Post) -> Json:
        (found,) = await self.outcomes(post)
        return found

    async def _until_taken(
        self, method: str, path: str, fields: Json, files: Mapping[str, str] | None = None, also: tuple[int, ...] = ()
    ) -> tuple[int, Json]:
        headers = {"Idempotency-Key": f"key-{id(self)}-{next(self._keys)}"}
        is_first = True
        async with asyncio.timeout(self._patience):
            while True:
                body = {"json": fields} if files is None else {"data": _form(fields, files)}
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with self._http.request(method, path, headers=headers, **body) as response:
                        answer = await response.json()
                        if response.status in (202, *also):
                            return response.status, answer
                        assert response.status == 503, f"{method} {path} → {response.status} {answer}"
                self.repeated += is_first
                is_first = False
                await asyncio.sleep(PAUSE)


@contextlib.asynccontextmanager
async def client_of(url: str, patience: float = PATIENCE) -> AsyncIterator[Client]:
    timeout = aiohttp.ClientTimeout(total=10)
    connector = aiohttp.TCPConnector(force_close=True)  # a connection to the bot that died serves no more
    async with aiohttp.ClientSession(url, timeout=timeout, connector=connector) as http:
        yield Client(http, patience)


def outcomes_of(messages: list[Json], message: str) -> list[Json]:
    return [
        each
        for each in messages
        if each["author"] == "bot" and each["reply_to"] == message and each["kind"] in OUTCOMES
    ]


def _form(fields: Json, files: Mapping[str, str]) -> aiohttp.FormData:
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        form.add_field(name, value)
    for name, text in files.items():
        form.add_field("files", io.BytesIO(text.encode()), filename=name, content_type="application/octet-stream")
    return form
