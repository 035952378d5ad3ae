"""The command line's way to a bot: its HTTP interface, whether it runs elsewhere or in this process."""

from __future__ import annotations

import asyncio
import io
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import aiohttp

ATTEMPTS = 4
PAUSE_SECONDS = 0.5  # before a bot that ends or starts is asked again
WAIT_SECONDS = 25  # of one look at a turn
ENDED = frozenset({"done", "failed", "withdrawn"})
ENDLESS = aiohttp.ClientTimeout(total=None, sock_connect=5)

Json = dict[str, Any]


class ClientError(Exception):
    """
    ├── NotDone      the bot said no; the text is its reason
    └── Unreachable  no bot answers
    """


class NotDone(ClientError):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Unreachable(ClientError): ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a bot listens. `stays`: it runs by itself, so its links work when the command is over."""

    url: str
    token: str | None = field(default=None, repr=False)
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Who:
    workspace: str
    channel: str
    user: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A file to post: one on the disk, or words."""

    name: str
    content: Path | bytes


class Client:
    """Every call may be repeated without harm, so one that broke off is: with the bot that is to be found then."""

    def __init__(self, find: Callable[[], Awaitable[Endpoint]], who: Who) -> None:
        self._find = find
        self._who = who
        self._http = aiohttp.ClientSession(timeout=ENDLESS)
        self._endpoint: Endpoint | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def endpoint(self) -> Endpoint:
        if self._endpoint is None:
            self._endpoint = await self._find()
        return self._endpoint

    async def get(self, *path: str, **parameters: str) -> Json:
        return await self._call("GET", path, parameters=parameters)

    async def delete(self, *path: str) -> Json:
        return await self._call("DELETE", path)

    async def put(self, *path: str, **body: object) -> Json:
        return await self._call("PUT", path, body=body)

    async def send(self, *path: str, **body: object) -> Json:
        return await self._call("POST", path, body=body)

    async def post(self, text: str, thread: str = "", model: str = "", files: Iterable[Sent] = ()) -> Json:
        """Post a message; {"message", "thread"}."""
        fields = {"channel": self._who.channel, "text": text, "thread": thread, "model": model}
        files = list(files)
        return await self._call("POST", ("messages",), body=fields, files=files, key=secrets.token_hex(16))

    async def outcome(self, message: str) -> Json:
        """What became of a message, as soon as it has become something."""
        while True:
            turn = await self.get("messages", message, "turn", wait=str(WAIT_SECONDS))
            if turn["state"] in ENDED:
                return turn

    async def lines(self, *path: str, **body: object) -> AsyncIterator[Json]:
        """The JSON objects, one a line, that a long piece of work tells."""
        endpoint = await self.endpoint()
        request = self._request(endpoint, {"workspace": self._who.workspace, "user": self._who.user, **body})
        try:
            async with self._http.post(_url(endpoint, path), **request) as response:
                await _check(response)
                async for line in response.content:
                    yield json.loads(line)
        except aiohttp.ClientError as error:
            raise Unreachable("The bot ended while it worked on this. Start it, and try again.") from error

    async def events(self) -> AsyncIterator[tuple[str, Json]]:
        """What the turns are doing, as long as the bot is there."""
        endpoint = await self.endpoint()
        parameters = {"workspace": self._who.workspace, "user": self._who.user}
        name = ""
        with suppress(aiohttp.ClientError):
            async with self._http.get(
                _url(endpoint, ("events",)), params=parameters, headers=_headers(endpoint)
            ) as response:
                async for raw in response.content:
                    kind, _, value = raw.decode("utf-8", "replace").rstrip("\n").partition(": ")
                    if kind == "event":
                        name = value
                    elif kind == "data":
                        yield name, json.loads(value)

    async def _call(
        self,
        method: str,
        path: Iterable[str],
        parameters: Mapping[str, str] | None = None,
        body: Json | None = None,
        files: Iterable[Sent] = (),
        key: str = "",
    ) -> Json:
        who = {"workspace": self._who.workspace, "user": self._who.user}
        for attempt in range(1, ATTEMPTS + 1):
            endpoint = await self.endpoint()
            try:
                request = self._request(endpoint, None if body is None else {**who, **body}, files, key)
                params = who | dict(parameters or {}) if body is None else {}
                async with self._http.request(method, _url(endpoint, path), params=params, **request) as response:
                    return await _check(response)
            except aiohttp.ClientConnectionError:
                self._endpoint = None
            except NotDone as refusal:
                if refusal.status != 503 or attempt == ATTEMPTS:
                    raise
                self._endpoint = None
            await asyncio.sleep(PAUSE_SECONDS * (attempt - 1))
        raise Unreachable("The bot can't be reached. `doctor` tells more.")

    def _request(
        self, endpoint: Endpoint, body: Json | None, files: Iterable[Sent] = (), key: str = ""
    ) -> dict[str, Any]:
        headers = _headers(endpoint) | ({"Idempotency-Key": key} if key else {})
        if body is None:
            return {"headers": headers}
        if not files:
            return {"headers": headers, "json": body}
        form = aiohttp.FormData({name: str(value) for name, value in body.items()}, default_to_multipart=True)
        for file in files:
            content = io.BytesIO(file.content) if isinstance(file.content, bytes) else file.content.open("rb")
            form.add_field("files", content, filename=file.name, content_type="application/octet-stream")
        return {"headers": headers, "data": form}


async def _check(response: aiohttp.ClientResponse) -> Json:
    """The reply's JSON, but of a stream, whose lines come later. Raises NotDone with the bot's own words."""
    if response.status >= 400:
        try:
            text = str((await response.json())["error"])
        except (aiohttp.ContentTypeError, ValueError, KeyError, TypeError):
            text = f"What answered at {response.url.origin()} is no Threadlore (status {response.status})."
        raise NotDone(response.status, text)
    if response.content_type == "application/x-ndjson":
        return {}
    found: Json = await response.json()
    return found


def _url(endpoint: Endpoint, path: Iterable[str]) -> str:
    return "/".join((endpoint.url, "api", *(quote(part, safe="") for part in path)))


def _headers(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}
