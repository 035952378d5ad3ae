"""A server that speaks Cohere's rerank API: it ranks by the words that a document shares with the question."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

HANG = "hang"


@dataclass
class FakeCohere:
    """`enqueue` makes the next request fail: a status, a body as it is, or HANG."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    _queue: deque[int | bytes | str | dict[str, Any]] = field(default_factory=deque)

    def enqueue(self, *faults: int | bytes | str | dict[str, Any]) -> None:
        self._queue.extend(faults)

    async def rerank(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        fault = self._queue.popleft() if self._queue else None
        match fault:
            case int():
                return web.json_response({"message": "no"}, status=fault)
            case bytes():
                return web.Response(body=fault, content_type="application/json")
            case dict():
                return web.json_response(fault)
            case str():
                await asyncio.sleep(3600)
        return web.json_response(_ranked(body))


def _ranked(body: dict[str, Any]) -> dict[str, Any]:
    asked = set(body["query"].casefold().split())
    shares = [len(asked & set(text.casefold().split())) / max(1, len(asked)) for text in body["documents"]]
    order = sorted(range(len(shares)), key=lambda index: -shares[index])[: body.get("top_n")]
    return {
        "id": "1",
        "results": [{"index": index, "relevance_score": shares[index]} for index in order],
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    }


@contextlib.asynccontextmanager
async def fake_cohere() -> AsyncIterator[FakeCohere]:
    fake = FakeCohere()
    app = web.Application()
    app.router.add_post("/v2/rerank", fake.rerank)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()
