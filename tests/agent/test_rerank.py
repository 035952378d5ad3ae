from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from agent.cohere import CohereReranker
from agent.rerank import RerankUnavailable
from storage.models import Hit, Passage
from tests.fake_cohere import HANG, FakeCohere, fake_cohere

TEXTS = ["the office is in Bonn", "coffee is free", "notice period of three months", "parking costs five euros"]


def hits(count: int = 4) -> list[Hit]:
    return [
        Hit(
            Passage("d", 1, number, "w", "a", "a.txt", 1, 0, 9, (), None, "", TEXTS[number % 4]),
            1 - number / count,
            cosine=0.5,
        )
        for number in range(count)
    ]


@pytest.fixture
async def cohere() -> AsyncIterator[FakeCohere]:
    async with fake_cohere() as fake:
        yield fake


@pytest.fixture
async def reranker(cohere: FakeCohere) -> AsyncIterator[CohereReranker]:
    reranker = CohereReranker("secret", "rerank-v3.5", cohere.url)
    yield reranker
    await reranker.close()


async def test_orders_by_relevance_and_asks_as_cohere_wants_it(cohere: FakeCohere, reranker: CohereReranker) -> None:
    ranked = await reranker.rerank("notice period of", hits(), 5)
    assert [hit.passage.number for hit in ranked][0] == 2
    assert sorted(hit.passage.number for hit in ranked) == [0, 1, 2, 3]
    assert ranked[0].score == 1.0 and ranked[0].cosine == 0.5
    request = cohere.requests[0]
    assert request["top_n"] == 4 and request["model"] == "rerank-v3.5" and "top_k" not in request
    assert cohere.headers[0]["Authorization"] == "Bearer secret"


async def test_what_is_beyond_the_candidates_follows_in_its_order(cohere: FakeCohere, reranker: CohereReranker) -> None:
    ranked = await reranker.rerank("coffee", hits(60), 5)
    assert len(cohere.requests[0]["documents"]) == 50
    assert [hit.passage.number for hit in ranked[50:]] == list(range(50, 60))


@pytest.mark.parametrize("fault", [401, 404, 429, 500, 503, b"not json", b"", b"[]", {"results": None}])
async def test_every_failure_is_one_error_and_is_not_repeated(
    cohere: FakeCohere, reranker: CohereReranker, fault: int | bytes | dict[str, object]
) -> None:
    cohere.enqueue(fault)
    with pytest.raises(RerankUnavailable):
        await reranker.rerank("coffee", hits(), 5)
    assert len(cohere.requests) == 1


@pytest.mark.parametrize(
    "result",
    [
        b'{"index": "a", "relevance_score": 0.5}',
        b'{"index": null, "relevance_score": 0.5}',
        b'{"index": [1], "relevance_score": 0.5}',
        b'{"index": 1}',
        b'{"index": 1, "relevance_score": "NaN"}',
        b'{"index": 1, "relevance_score": NaN}',
        b'{"index": 1, "relevance_score": 1e999}',
        b'{"index": 1, "relevance_score": 1%s}' % (b"0" * 400),
        b'{"index": 1, "relevance_score": {}}',
        b'"text"',
        b"null",
        b"[" * 100_000,
    ],
)
async def test_a_ranking_that_is_none_is_the_same_error(
    cohere: FakeCohere, reranker: CohereReranker, result: bytes
) -> None:
    cohere.enqueue(b'{"id": "1", "results": [{"index": 0, "relevance_score": 0.9}, %s]}' % result)
    with pytest.raises(RerankUnavailable):
        await reranker.rerank("coffee", hits(), 5)


async def test_a_server_that_hangs_is_left_in_time(cohere: FakeCohere, reranker: CohereReranker) -> None:
    cohere.enqueue(HANG)
    started = time.monotonic()
    with pytest.raises(RerankUnavailable):
        await reranker.rerank("coffee", hits(), 0.3)
    assert time.monotonic() - started < 2


async def test_an_unreachable_server_is_the_same_error() -> None:
    reranker = CohereReranker("k", "m", "http://127.0.0.1:9")
    with pytest.raises(RerankUnavailable):
        await reranker.rerank("coffee", hits(), 5)
    await reranker.close()


async def test_numbers_that_name_nothing_and_gaps_lose_no_passage(cohere: FakeCohere, reranker: CohereReranker) -> None:
    results = [{"index": 99, "relevance_score": 1.0}, {"index": 3, "relevance_score": 0.7}]
    cohere.enqueue({"id": "1", "results": results, "meta": {}})
    assert [hit.passage.number for hit in await reranker.rerank("coffee", hits(), 5)] == [3, 0, 1, 2]


async def test_one_passage_needs_no_server() -> None:
    reranker = CohereReranker("k", "m", "http://127.0.0.1:9")
    assert len(await reranker.rerank("coffee", hits(1), 5)) == 1
    await reranker.close()
