"""A real server on loopback that speaks OpenAI's embeddings API, and fails when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
from aiohttp import web

DIMENSION = 16
Answer = Callable[[list[str]], Awaitable[web.Response]]


class FakeEmbeddings:
    """`enqueue` what the next requests meet; the rest is answered as it should be."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.largest_batch = 10_000
        self.longest_text = 1_000_000
        self._next: deque[Answer] = deque()

    @property
    def batches(self) -> list[int]:
        return [len(request["input"]) for request in self.requests]

    def enqueue(self, *answers: Answer) -> None:
        self._next.extend(answers)

    def vector(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        return [float(value) for value in np.random.default_rng(seed).standard_normal(DIMENSION)]

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("Authorization", ""))
        texts: list[str] = body["input"]
        if self._next:
            return await self._next.popleft()(texts)
        if len(texts) > self.largest_batch or any(len(text) > self.longest_text for text in texts):
            return web.json_response({"error": {"message": "too large"}}, status=400)
        return vectors([self.vector(text) for text in texts])

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[FakeEmbeddings]:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/embeddings", self.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            yield self
        finally:
            await runner.cleanup()


def vectors(rows: list[Any], reverse: bool = False) -> web.Response:
    items = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    items = items[::-1] if reverse else items
    return web.json_response({"object": "list", "model": "fake", "data": items, "usage": {"prompt_tokens": 1}})


def status(code: int, **headers: str) -> Answer:
    async def answer(_: list[str]) -> web.Response:
        return web.json_response({"error": {"message": "no"}}, status=code, headers=headers)

    return answer


def body(response: Callable[[list[str]], web.Response]) -> Answer:
    async def answer(texts: list[str]) -> web.Response:
        return response(texts)

    return answer


async def hang(_: list[str]) -> web.Response:
    await asyncio.sleep(60)
    return web.Response()
