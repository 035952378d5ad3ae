from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest
from aiohttp import web

from storage.embeddings import (
    BundledEmbedder,
    check_fingerprint,
    collection_name,
    fingerprint,
    is_latin,
    script_of,
)
from storage.endpoint import EndpointEmbedder
from storage.errors import EmbeddingChanged, EmbeddingUnavailable
from storage.knowledge import Vector
from tests.fake_embeddings import DIMENSION, FakeEmbeddings, body, hang, status, vectors


@pytest.fixture
async def bundled() -> AsyncIterator[BundledEmbedder]:
    embedder = BundledEmbedder()
    yield embedder
    await embedder.close()


@pytest.fixture
async def server() -> AsyncIterator[FakeEmbeddings]:
    async with FakeEmbeddings().serving() as serving:
        yield serving


@pytest.fixture
async def endpoint(server: FakeEmbeddings) -> AsyncIterator[EndpointEmbedder]:
    embedder = EndpointEmbedder("fake", api_key="key-1", base_url=server.url, patience=3, question_patience=1)
    yield embedder
    await embedder.close()


def expected(server: FakeEmbeddings, text: str) -> Vector:
    row = np.array(server.vector(text), dtype=np.float32)
    unit: Vector = row / np.linalg.norm(row)
    return unit


# the bundled model


async def test_the_bundled_model_puts_near_what_means_the_same(bundled: BundledEmbedder) -> None:
    same, other, question = await bundled.embed(
        ["Employees get thirty days of holiday a year.", "The compiler emits bytecode.", "How much vacation do I have?"]
    )
    assert same.shape == (bundled.dimension,) and same.dtype == np.float32
    assert float(same @ same) == pytest.approx(1, abs=1e-5)
    assert float(question @ same) > float(question @ other) + 0.3


async def test_the_order_of_texts_and_their_neighbours_change_no_vector(bundled: BundledEmbedder) -> None:
    texts = ["short", "a longer text about clauses " * 30, "", "mid size text here", "y" * 5000] * 5
    together = await bundled.embed(texts)
    for text, vector in zip(texts[:5], together[:5], strict=True):
        alone = await bundled.embed_question(text)
        assert float(alone @ vector) == pytest.approx(1, abs=1e-4)
        assert np.isfinite(vector).all()
    assert await bundled.embed([]) == []


async def test_hostile_text_is_embedded(bundled: BundledEmbedder) -> None:
    for text in ("\ud800 half a pair", "\0\0", "[CLS] [SEP] [PAD]", "\u202e\u200b", "🙂" * 3000):
        assert np.isfinite(await bundled.embed_question(text)).all()


async def test_a_question_goes_in_between_passages(bundled: BundledEmbedder) -> None:
    await bundled.embed_question("load the model first")
    passages = asyncio.create_task(bundled.embed([f"passage {number} " + "words of it " * 60 for number in range(60)]))
    await asyncio.sleep(0.05)
    started = time.perf_counter()
    await bundled.embed_question("How long is the notice period?")
    asked = time.perf_counter() - started
    assert not passages.done()
    await passages
    assert asked < (time.perf_counter() - started) / 3


async def test_embedding_leaves_the_event_loop_free(bundled: BundledEmbedder) -> None:
    longest, last = 0.0, time.perf_counter()
    passages = asyncio.create_task(bundled.embed(["words of it " * 60] * 12))
    while not passages.done():
        await asyncio.sleep(0.005)
        longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
    assert longest < 0.5  # the twelve together take longer, and so does loading the model


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("What is the notice period?", True),
        ("Wie lang ist die Kündigungsfrist für Straßenbahnfahrer?", True),
        ("Où se trouve l'hôtel ?", True),
        ("What does 合同 mean in clause 7?", True),
        ("42 + 7 = ?", True),
        ("", True),
        ("合同的通知期限是多少天？", False),
        ("BERT 模型的最大序列长度是多少", False),
        ("Какой срок уведомления?", False),
        ("ما هي مدة الإشعار؟", False),
        ("해지 통지 기간은 얼마입니까?", False),
        ("これは何ですか", False),
        ("ระยะเวลาแจ้งล่วงหน้า", False),
    ],
)
def test_the_bundled_model_knows_latin_script_alone(text: str, known: bool) -> None:
    assert is_latin(text) is known


def test_scripts_are_called_as_people_call_them() -> None:
    names = {"合同": "Chinese", "これは何": "Japanese", "해지": "Korean", "срок": "Cyrillic script", "مدة": "Arabic"}
    assert {text: script_of(text) for text in names} == names
    assert script_of("plain") == "Latin script"


# an endpoint


async def test_an_endpoint_is_asked_in_batches_of_64(server: FakeEmbeddings, endpoint: EndpointEmbedder) -> None:
    texts = [f"text {number}" for number in range(150)]
    found = await endpoint.embed(texts)
    assert server.batches == [64, 64, 22]
    assert server.requests[0]["model"] == "fake" and server.requests[0]["encoding_format"] == "float"
    assert server.keys[0] == "Bearer key-1"
    assert endpoint.dimension == DIMENSION
    for text, vector in zip(texts, found, strict=True):
        assert float(vector @ expected(server, text)) == pytest.approx(1, abs=1e-5)
    assert await endpoint.embed([]) == []


async def test_vectors_are_taken_by_their_index(server: FakeEmbeddings, endpoint: EndpointEmbedder) -> None:
    server.enqueue(body(lambda texts: vectors([server.vector(text) for text in texts], reverse=True)))
    first, second = await endpoint.embed(["one", "two"])
    assert float(first @ expected(server, "one")) == pytest.approx(1, abs=1e-5)
    assert float(second @ expected(server, "two")) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_what_passes_is_tried_again(server: FakeEmbeddings, endpoint: EndpointEmbedder, code: int) -> None:
    server.enqueue(status(code), status(code))
    assert len(await endpoint.embed(["one"])) == 1
    assert len(server.requests) == 3


async def test_the_endpoint_says_how_long_to_wait(server: FakeEmbeddings, endpoint: EndpointEmbedder) -> None:
    server.enqueue(status(429, **{"Retry-After": "1"}))
    started = time.perf_counter()
    await endpoint.embed(["one"])
    assert 1 <= time.perf_counter() - started < 2


async def test_a_longer_wait_than_the_patience_is_not_waited(
    server: FakeEmbeddings, endpoint: EndpointEmbedder
) -> None:
    server.enqueue(status(429, **{"Retry-After": "3600"}))
    started = time.perf_counter()
    with pytest.raises(EmbeddingUnavailable, match="status 429"):
        await endpoint.embed(["one"])
    assert time.perf_counter() - started < 1


async def test_an_endpoint_that_stays_down_is_named(server: FakeEmbeddings, endpoint: EndpointEmbedder) -> None:
    server.enqueue(*[status(500)] * 100)
    with pytest.raises(EmbeddingUnavailable, match="status 500"):
        await endpoint.embed(["one"])
    assert len(server.requests) > 2


async def test_a_question_gives_up_early_on_an_endpoint_that_hangs(
    server: FakeEmbeddings, endpoint: EndpointEmbedder
) -> None:
    server.enqueue(hang)
    started = time.perf_counter()
    with pytest.raises(EmbeddingUnavailable, match="time-out"):
        await endpoint.embed_question("one")
    assert time.perf_counter() - started < 2
    assert len(await endpoint.embed_question("two")) == DIMENSION


async def test_an_endpoint_that_is_not_there(free_port: Callable[[], int]) -> None:
    embedder = EndpointEmbedder(
        "fake", api_key="k", base_url=f"http://127.0.0.1:{free_port()}/v1", patience=0.5, question_patience=0.5
    )
    with pytest.raises(EmbeddingUnavailable):
        await embedder.embed_question("one")
    await embedder.close()


async def test_a_batch_that_is_too_large_is_halved(server: FakeEmbeddings, endpoint: EndpointEmbedder) -> None:
    server.largest_batch = 10
    texts = [f"text {number}" for number in range(64)]
    found = await endpoint.embed(texts)
    assert max(size for size in server.batches if size <= 10) == 8
    for text, vector in zip(texts, found, strict=True):
        assert float(vector @ expected(server, text)) == pytest.approx(1, abs=1e-5)


async def test_a_single_text_that_is_too_long_is_shortened(server: FakeEmbeddings, endpoint: EndpointEmbedder) -> None:
    server.longest_text = 30
    vector = await endpoint.embed_question("x" * 100)
    assert float(vector @ expected(server, "x" * 25)) == pytest.approx(1, abs=1e-5)


async def test_a_text_that_is_refused_however_short_ends(server: FakeEmbeddings, endpoint: EndpointEmbedder) -> None:
    server.longest_text = 0
    with pytest.raises(EmbeddingUnavailable, match="status 400"):
        await endpoint.embed(["some text"] * 64)
    assert len(server.requests) <= 12


@pytest.mark.parametrize("code", [401, 403, 404])
async def test_a_refusal_is_not_repeated(server: FakeEmbeddings, endpoint: EndpointEmbedder, code: int) -> None:
    server.enqueue(status(code))
    with pytest.raises(EmbeddingUnavailable, match=f"status {code}"):
        await endpoint.embed(["one"])
    assert len(server.requests) == 1


GOOD = [1.0] * DIMENSION
WRONG: dict[str, Callable[[list[str]], web.Response]] = {
    "too few": lambda _: vectors([GOOD]),
    "too many": lambda _: vectors([GOOD] * 3),
    "none": lambda _: vectors([]),
    "not a number": lambda _: web.Response(
        text='{"object":"list","data":[{"index":0,"embedding":[NaN,1]},{"index":1,"embedding":[1,2]}]}',
        content_type="application/json",
    ),
    "nothing in it": lambda _: vectors([[0.0] * DIMENSION] * 2),
    "two sizes": lambda _: vectors([GOOD, GOOD[:-1]]),
    "words": lambda _: vectors([["a", "b"], ["c", "d"]]),
    "no data": lambda _: web.json_response({"object": "list"}),
    "data is no list": lambda _: web.json_response({"data": "text"}),
    "no JSON": lambda _: web.Response(text="<html>login</html>", content_type="text/html"),
    "broken JSON": lambda _: web.Response(text='{"data": [', content_type="application/json"),
    "a list": lambda _: web.json_response([1, 2]),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_wrong_answer_is_refused(server: FakeEmbeddings, endpoint: EndpointEmbedder, what: str) -> None:
    server.enqueue(body(WRONG[what]))
    with pytest.raises(EmbeddingUnavailable):
        await endpoint.embed(["one", "two"])
    assert len(await endpoint.embed(["one", "two"])) == 2


async def test_another_dimension_than_before_is_refused(server: FakeEmbeddings, endpoint: EndpointEmbedder) -> None:
    await endpoint.embed(["one"])
    server.enqueue(body(lambda _: vectors([[1.0, 2.0]])))
    with pytest.raises(EmbeddingUnavailable, match="2 dimensions instead of 16"):
        await endpoint.embed(["one"])


async def test_an_error_does_not_carry_the_text_or_the_key(server: FakeEmbeddings, endpoint: EndpointEmbedder) -> None:
    server.enqueue(status(403))
    with pytest.raises(EmbeddingUnavailable) as caught:
        await endpoint.embed(["a private sentence"])
    assert "private" not in str(caught.value) and "key-1" not in str(caught.value)


# a model is known again


async def test_the_same_model_is_known_again(bundled: BundledEmbedder) -> None:
    check_fingerprint(await fingerprint(bundled), await fingerprint(bundled))


async def test_another_model_under_the_same_name_is_found_out(
    bundled: BundledEmbedder, server: FakeEmbeddings, endpoint: EndpointEmbedder
) -> None:
    stored = await fingerprint(endpoint)
    with pytest.raises(EmbeddingChanged, match="python -m bot reembed"):
        check_fingerprint(stored, await fingerprint(bundled))
    server.enqueue(body(lambda texts: vectors([server.vector("another model") for _ in texts])))
    with pytest.raises(EmbeddingChanged, match="python -m bot reembed"):
        check_fingerprint(stored, await fingerprint(endpoint))


def test_no_two_models_share_a_collection() -> None:
    models = ("text-embedding-3-small", "text_embedding_3_small", "org/model:latest", "模型", "")
    names = {collection_name(model) for model in models}
    assert len(names) == len(models)
    assert all(name.replace("_", "").isalnum() and name.isascii() for name in names)


async def test_the_collection_is_the_same_before_and_after_the_endpoint_first_answered(
    endpoint: EndpointEmbedder,
) -> None:
    before = collection_name(endpoint.model)
    await fingerprint(endpoint)
    assert collection_name(endpoint.model) == before
