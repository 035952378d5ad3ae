"""What is down is done without, in steps and visibly, and is used again when it is back: no restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot import upkeep
from ingest.ingestor import KEYWORDS_ONLY
from storage.endpoint import ANOTHER_MODEL
from storage.retrieval import EMBEDDING_DOWN
from tests.bot.whole import Page, opened
from tests.fake_embeddings import FakeEmbeddings, status

HANDBOOK = "# Handbook\n\nEmployees have 28 days of annual leave.\n"
QUESTION = "How many days of annual leave do employees have?"


class Endpoint(FakeEmbeddings):
    """Refuses while it is `down`; `shift` makes another model of it."""

    down = False
    shift = ""

    def vector(self, text: str) -> list[float]:
        return super().vector(self.shift + text)

    async def answer(self, request: Any) -> Any:
        if self.down:
            return await status(401)([])
        return await super().answer(request)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with Endpoint().serving() as server:
        assert isinstance(server, Endpoint)
        yield server


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done every minute is done at once."""
    monkeypatch.setattr(upkeep, "EMBED_SECONDS", 0.1)


def settings(endpoint: Endpoint) -> dict[str, object]:
    """Its vectors mean nothing: what is found decides nothing about whether it answers."""
    return {"embedding_model": "vectors", "embedding_base_url": endpoint.url, "not_found_threshold": 0}


async def dense(page: Page, question: str = QUESTION) -> tuple[list[str], list[str]]:
    """The names of what is found by vectors alone, and what was down."""
    body = {"query": question, "channel": "general", "mode": "dense"}
    found = (await page.http.post("/api/search", json=body)).json()
    return [hit["name"] for hit in found["hits"]], found["degraded"]


async def found_by_vectors(page: Page, *names: str) -> None:
    async with asyncio.timeout(30):
        while set((await dense(page, "anything, asked anew"))[0]) != set(names):
            await asyncio.sleep(0.1)


async def test_files_that_arrive_while_the_endpoint_is_down_are_found_and_embedded_later(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    async with opened(tmp_path, **settings(endpoint)) as page:
        assert (await page.shares("Gates close at nine.", "gates.md"))["reason"] == ""
        endpoint.down = True
        verdict = await page.shares(HANDBOOK, "handbook.md")
        assert (verdict["verdict"], verdict["reason"]) == ("indexed", KEYWORDS_ONLY)
        turn = await page.asks(QUESTION)
        assert "28 days" in turn["text"]
        assert turn["usage"]["degraded"] == [EMBEDDING_DOWN]
        assert EMBEDDING_DOWN in turn["text"], "the person sees it"
        endpoint.down = False
        await found_by_vectors(page, "gates.md", "handbook.md")
        again = await page.asks(QUESTION)
        assert "28 days" in again["text"]
        assert again["usage"]["degraded"] == []


async def test_an_endpoint_that_is_down_at_the_start_is_used_when_it_answers(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    endpoint.down = True
    async with opened(tmp_path, **settings(endpoint)) as page:
        assert (await page.shares(HANDBOOK, "handbook.md"))["reason"] == KEYWORDS_ONLY
        assert "28 days" in (await page.asks(QUESTION))["text"]
        endpoint.down = False
        await found_by_vectors(page, "handbook.md")
    endpoint.down = True
    endpoint.shift = "another model: "
    async with opened(tmp_path, **settings(endpoint)) as page:
        endpoint.down = False
        await still_by_keywords(page)


async def test_an_endpoint_that_comes_back_as_another_model_gives_no_vectors(
    tmp_path: Path, endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, **settings(endpoint)) as page:
        await page.shares("Gates close at nine.", "gates.md")
        endpoint.down = True
        await page.shares(HANDBOOK, "handbook.md")
        endpoint.down, endpoint.shift = False, "another model: "
        await still_by_keywords(page)
        assert (await page.shares("Lunch is at noon.", "lunch.md"))["reason"] == KEYWORDS_ONLY
        assert ANOTHER_MODEL in caplog.text
        endpoint.shift = ""
        await found_by_vectors(page, "gates.md", "handbook.md", "lunch.md")


async def still_by_keywords(page: Page) -> None:
    turn = await page.asks(QUESTION)
    assert "28 days" in turn["text"]
    assert turn["usage"]["degraded"] == [EMBEDDING_DOWN]
    assert await dense(page, "anything else") == ([], [EMBEDDING_DOWN])
