"""An endpoint that speaks the OpenAI chat completions API, with a queue of what to reply."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Text:
    """The reply's words, streamed in pieces of `size` characters."""

    text: str
    size: int = 7
    pause: float = 0


@dataclass(frozen=True)
class Call:
    """A tool call with these arguments."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Status:
    """An error, with the body that servers send with it."""

    status: int
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """A body as it is, with status 200."""

    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True)
class Cut:
    """The stream breaks off after these words."""

    text: str


@dataclass(frozen=True)
class Hang:
    """Not a word; `after`: these words first."""

    after: str = ""


@dataclass(frozen=True)
class Endless:
    """These words, over and over."""

    text: str


Behaviour = Text | Call | Status | Raw | Cut | Hang | Endless


@dataclass
class FakeOpenAI:
    """`requests` are the bodies in the order in which they came. An empty queue is an error of the test: status 418."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refuse_json_schema: bool = False
    refuse_tools: bool = False
    by_model: dict[str, Behaviour] = field(default_factory=dict)
    _queue: deque[Behaviour] = field(default_factory=deque)

    def enqueue(self, *replies: Behaviour | str | dict[str, Any]) -> None:
        for reply in replies:
            if isinstance(reply, dict):
                self._queue.append(Text(json.dumps(reply)))
            else:
                self._queue.append(Text(reply) if isinstance(reply, str) else reply)

    @property
    def left(self) -> int:
        return len(self._queue)

    def prompt(self, number: int) -> str:
        """All the text that request `number` sent."""
        return "\n".join(str(message["content"]) for message in self.requests[number]["messages"])

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        if self.refuse_json_schema and "response_format" in body:
            return _error(Status(400, "response_format is not supported"))
        if self.refuse_tools and "tools" in body:
            return _error(Status(400, "tools are not supported"))
        if body["model"] in self.by_model:
            reply = self.by_model[body["model"]]
        else:
            reply = self._queue.popleft() if self._queue else Status(418, "nothing was enqueued")
        return await _respond(request, body, reply)


async def _respond(request: web.Request, body: dict[str, Any], reply: Behaviour) -> web.StreamResponse:
    if isinstance(reply, Status):
        return _error(reply)
    if isinstance(reply, Raw):
        return web.Response(body=reply.body, content_type=reply.content_type)
    if isinstance(reply, Hang) and not reply.after:
        await asyncio.sleep(3600)
    if not body.get("stream"):
        return web.json_response(_whole(body, reply))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    with contextlib.suppress(ConnectionResetError):
        await _stream(response, request, body, reply)
    return response


async def _stream(response: web.StreamResponse, request: web.Request, body: dict[str, Any], reply: Behaviour) -> None:
    match reply:
        case Call(name, arguments):
            call = {"index": 0, "id": "call_1", "type": "function"}
            written = {"name": name, "arguments": json.dumps(arguments)}
            await _event(response, body, {"role": "assistant", "tool_calls": [{**call, "function": written}]})
        case Endless(text):
            await _for_ever(response, body, text)
        case Hang(after):
            await _event(response, body, {"content": after})
            await asyncio.sleep(3600)
        case Cut(text):
            await _event(response, body, {"content": text})
            assert request.transport is not None
            request.transport.abort()
            return
        case Text():
            await _in_pieces(response, body, reply)
    await _event(response, body, {}, "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        await _send(response, {**_chunk(body), "choices": [], "usage": _usage(body)})
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()


async def _for_ever(response: web.StreamResponse, body: dict[str, Any], text: str) -> None:
    while True:
        await _event(response, body, {"content": text})
        await asyncio.sleep(0)


async def _in_pieces(response: web.StreamResponse, body: dict[str, Any], reply: Text) -> None:
    await _event(response, body, {"role": "assistant", "content": ""})
    for start in range(0, len(reply.text), reply.size):
        await _event(response, body, {"content": reply.text[start : start + reply.size]})
        await asyncio.sleep(reply.pause)


async def _event(
    response: web.StreamResponse, body: dict[str, Any], delta: dict[str, Any], finish: str | None = None
) -> None:
    await _send(response, {**_chunk(body), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


async def _send(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(f"data: {json.dumps(event)}\n\n".encode())


def _chunk(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}


def _whole(body: dict[str, Any], reply: Behaviour) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": getattr(reply, "text", None)}
    if isinstance(reply, Call):
        function = {"name": reply.name, "arguments": json.dumps(reply.arguments)}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**_chunk(body), "object": "chat.completion", "choices": [choice], "usage": _usage(body)}


def _usage(body: dict[str, Any]) -> dict[str, int]:
    prompt = len(json.dumps(body["messages"])) // 4
    return {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}


def _error(reply: Status) -> web.Response:
    error = {"message": reply.message, "type": "error", "param": None, "code": None}
    return web.json_response({"error": error}, status=reply.status, headers=reply.headers)


@contextlib.asynccontextmanager
async def fake_openai() -> AsyncIterator[FakeOpenAI]:
    fake = FakeOpenAI()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", fake.complete)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield fake
    finally:
        await runner.cleanup()
