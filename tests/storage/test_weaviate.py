from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator

import numpy as np
import pytest
import weaviate as library
from weaviate.classes.config import Configure

from storage.errors import EmbeddingChanged, StoreUnavailable
from storage.knowledge import Entry, Fusion, Mode, Vector
from storage.models import Version
from storage.weaviate import Server, WeaviateStore
from tests.storage.knowledge_contract import KnowledgeContract, ask, entry, passage, texts, vector
from tests.weaviate_server import WeaviateServer

NAME = "passages_test"


@pytest.fixture
def owner() -> str:
    """A catalog of its own for each test."""
    return uuid.uuid4().hex[:12]


@pytest.fixture
def server(weaviate: WeaviateServer) -> Server:
    return Server(weaviate.url, weaviate.grpc_port)


@pytest.fixture
async def client(weaviate: WeaviateServer) -> AsyncIterator[library.WeaviateAsyncClient]:
    """The server as an operator sees it."""
    port = int(weaviate.url.rsplit(":", 1)[1])
    opened = library.use_async_with_local("127.0.0.1", port, weaviate.grpc_port, skip_init_checks=True)
    await opened.connect()
    yield opened
    await opened.close()


@pytest.fixture
async def store(server: Server, client: library.WeaviateAsyncClient, owner: str) -> AsyncIterator[WeaviateStore]:
    opened = await WeaviateStore.open(server, NAME, owner=owner)
    yield opened
    await opened.close()
    await client.collections.delete(f"Threadlore_{owner}_{NAME}")


class TestWeaviate(KnowledgeContract):
    pass


def wide(number: int) -> Entry:
    """A passage whose vector is of another model."""
    return Entry(passage(f"wide {number}", number=number), "d", ["wide"], np.ones(3, dtype=np.float32))


async def test_what_was_added_is_there_after_opening_again(store: WeaviateStore, server: Server, owner: str) -> None:
    await store.add([entry(passage("notice"), vector(1))])
    second = await WeaviateStore.open(server, NAME, owner=owner)
    hits = await second.search(ask("notice", vector(1)))
    await second.close()
    assert texts(hits) == ["notice"]
    assert hits[0].cosine == pytest.approx(1)


async def test_an_opened_store_sees_what_another_writes(store: WeaviateStore, server: Server, owner: str) -> None:
    assert await store.search(ask("notice")) == []
    writer = await WeaviateStore.open(server, NAME, owner=owner)
    await writer.add([entry(passage("notice"), vector(1))])
    assert len(await store.search(ask("notice", vector(1), mode=Mode.DENSE))) == 1
    await writer.remove("acme", [Version("handbook", 1)])
    await writer.close()
    assert await store.search(ask("notice")) == []


async def test_several_make_a_collection_and_a_tenant_at_once(server: Server, owner: str) -> None:
    stores = await asyncio.gather(*(WeaviateStore.open(server, NAME, owner=owner) for _ in range(4)))
    await asyncio.gather(
        *(store.add([entry(passage(f"notice {n}", number=n), vector(1))]) for n, store in enumerate(stores, 1))
    )
    assert [await store.count("acme", Version("handbook", 1)) for store in stores] == [4, 4, 4, 4]
    for store in stores:
        await store.close()


async def test_a_workspace_is_a_tenant_that_is_never_made_by_a_search(
    store: WeaviateStore, client: library.WeaviateAsyncClient, owner: str
) -> None:
    await store.add([entry(passage("notice", workspace=name), vector(1)) for name in ("acme", "../globex", "")])
    await store.search(ask("notice", vector(1), workspace="initech"))
    await store.remove("initech", [Version("handbook", 1)])
    assert await store.count("initech", Version("handbook", 1)) == 0
    collection = client.collections.use(f"Threadlore_{owner}_{NAME}")
    assert len(await collection.tenants.get()) == 3
    config = (await collection.config.get()).multi_tenancy_config
    assert config.enabled and not config.auto_tenant_creation


async def test_collections_of_two_models_stand_side_by_side(server: Server, owner: str) -> None:
    old, new = [await WeaviateStore.open(server, name, owner=owner) for name in ("old", "new")]
    await old.add([entry(passage("notice"), vector(1))])
    assert await new.search(ask("notice", vector(1))) == []
    await new.add([wide(1)])
    assert len(await old.search(ask("notice", vector(1)))) == 1
    await old.close()
    await new.close()


async def test_only_this_catalogs_collections_of_other_models_are_dropped(
    store: WeaviateStore, server: Server, client: library.WeaviateAsyncClient, owner: str
) -> None:
    foreign = f"Shop_{owner}"
    await client.collections.create(foreign, vector_config=Configure.Vectors.self_provided())
    others = [
        await WeaviateStore.open(server, name, owner=catalog)
        for catalog, name in ((owner, "old"), (f"{owner}0", NAME), ("", NAME))
    ]
    for each in (store, *others):
        await each.add([entry(passage("notice"), vector(1))])
    await store.drop_others()
    for each in others:
        await each.close()
    left = [name for name in await client.collections.list_all() if owner in name]
    assert sorted(left) == sorted([foreign, f"Threadlore_{owner}_{NAME}", f"Threadlore_{owner}0_{NAME}"])
    assert await client.collections.exists(f"Threadlore__{NAME}")
    assert texts(await store.search(ask("notice", vector(1)))) == ["notice"]


async def test_vectors_of_another_dimension_are_refused(store: WeaviateStore, server: Server, owner: str) -> None:
    await store.add([entry(passage("notice"), vector(1))])
    another = await WeaviateStore.open(server, NAME, owner=owner)
    for each in (store, another):
        with pytest.raises(EmbeddingChanged, match="reembed"):
            await each.add([wide(2)])
        with pytest.raises(EmbeddingChanged, match="reembed"):
            await each.search(ask("notice", np.ones(3, dtype=np.float32)))
    with pytest.raises(EmbeddingChanged, match="reembed"):
        await store.add([entry(passage("x", number=3, workspace="new"), vector(1)), wide(4)])
    await another.close()
    assert await store.count("acme", Version("handbook", 1)) == 1


async def test_forgetting_keeps_every_passage_and_leaves_no_second_copy(
    store: WeaviateStore, client: library.WeaviateAsyncClient, owner: str
) -> None:
    whole = [passage(f"notice {n}", number=n, workspace=name) for name in ("acme", "globex") for n in range(1, 451)]
    await store.add([entry(each, vector(1, each.number)) for each in whole])
    collection = client.collections.use(f"Threadlore_{owner}_{NAME}")
    before = set(await collection.tenants.get())
    await collection.tenants.create([f"{next(iter(before))}-spare"])  # of a bot that was killed meanwhile
    await store.forget_vectors()
    assert set(await collection.tenants.get()) == before
    for name in ("acme", "globex"):
        found = await store.search(ask("notice", vector(1), workspace=name, limit=450))
        assert {hit.passage for hit in found} == {each for each in whole if each.workspace == name}
        assert {hit.cosine for hit in found} == {None}


class Objections:
    """Makes the server refuse what is written, as it does when its disk is almost full, and stops doing so."""

    def __init__(self, client: library.WeaviateAsyncClient, name: str) -> None:
        self._collection = client.collections.use(name)

    async def set(self, status: str) -> None:
        for shard in await self._collection.config.get_shards():
            await self._collection.config.update_shards(status, shard_names=shard.name)  # type: ignore[arg-type]


async def test_passages_that_the_server_fails_to_store_are_sent_again(
    store: WeaviateStore, client: library.WeaviateAsyncClient, owner: str, caplog: pytest.LogCaptureFixture
) -> None:
    await store.add([entry(passage("the first"), vector(1))])
    server_side = Objections(client, f"Threadlore_{owner}_{NAME}")
    caplog.set_level(logging.INFO, "storage.weaviate")
    await server_side.set("READONLY")
    adding = asyncio.create_task(store.add([entry(passage(f"notice {n}", number=n), vector(1)) for n in range(2, 9)]))
    while "failed to store 7 of 7" not in caplog.text:
        assert not adding.done()
        await asyncio.sleep(0.01)
    await server_side.set("READY")
    await adding
    assert await store.count("acme", Version("handbook", 1)) == 8
    assert "notice" not in caplog.text, "what is in a document is not for a log"


async def test_passages_that_are_never_stored_are_no_success(
    store: WeaviateStore, monkeypatch: pytest.MonkeyPatch, client: library.WeaviateAsyncClient, owner: str
) -> None:
    monkeypatch.setattr("storage.weaviate._PAUSE", 0.001)
    await store.add([entry(passage("the first"), vector(1))])
    server_side = Objections(client, f"Threadlore_{owner}_{NAME}")
    await server_side.set("READONLY")
    with pytest.raises(StoreUnavailable, match="fails to store"):
        await store.add([entry(passage("notice", number=2), vector(1))])
    with pytest.raises(StoreUnavailable, match="fails"):
        await store.remove("acme", [Version("handbook", 1)])
    await server_side.set("READY")
    assert await store.count("acme", Version("handbook", 1)) == 1


async def test_one_passage_that_fails_keeps_no_other_from_being_stored(
    store: WeaviateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.weaviate._PAUSE", 0.001)
    await store.add([entry(passage("the first"), vector(1))])
    monkeypatch.setattr(store, "_fitting", accept)  # as for two bots that add the first vectors at once
    good = [entry(passage(f"notice {n}", number=n), vector(1, n)) for n in range(2, 5)]
    with pytest.raises(StoreUnavailable, match="fails to store"):
        await store.add([wide(9), *good])
    assert len(await store.vectors("acme", [each.digest for each in good])) == 3


async def accept(tenant: str, dimensions: set[int]) -> int:
    return 0


async def test_what_holds_more_than_the_server_deletes_at_once_is_removed(store: WeaviateStore) -> None:
    many = [Entry(passage("x", number=n), str(n), ["x"], None) for n in range(1, 10_102)]  # 10,000 is its default
    await store.add([*many, entry(passage("notice", version=2))])
    await store.remove("acme", [Version("handbook", 1)])
    assert await store.count("acme", Version("handbook", 1)) == 0
    assert await store.count("acme", Version("handbook", 2)) == 1


async def test_a_vector_is_found_though_many_passages_share_its_text(store: WeaviateStore) -> None:
    same = [Entry(passage("same", number=n), "same", ["same"], vector(1)) for n in range(1, 1_200)]
    await store.add([*same, *(entry(passage(f"text {n}", number=n + 2_000), vector(1, n)) for n in range(3))])
    wanted = ["same", *(entry(passage(f"text {n}")).digest for n in range(3))]
    assert set(await store.vectors("acme", wanted)) == set(wanted)


def _clusters(count: int, dimension: int, chance: np.random.Generator) -> list[Vector]:
    centres = chance.standard_normal((40, dimension))
    rows = centres[chance.integers(0, 40, count)] + chance.standard_normal((count, dimension))
    return list((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))


async def test_a_dense_search_within_the_scope_compares_every_vector(store: WeaviateStore) -> None:
    chance = np.random.default_rng(7)
    vectors = _clusters(3_000, 32, chance)
    await store.add(
        [
            Entry(passage(f"text {n}", number=n, audience=f"channel:{n % 20}"), str(n), ["text"], each)
            for n, each in enumerate(vectors)
        ]
    )
    for question in _clusters(10, 32, chance):
        hits = await store.search(ask("", question, mode=Mode.DENSE, audiences=["channel:3", "channel:17"]))
        mine = [n for n in range(len(vectors)) if n % 20 in (3, 17)]
        exact = sorted(mine, key=lambda n: -float(vectors[n] @ question))[:10]
        assert [hit.passage.number for hit in hits] == exact


async def test_reciprocal_rank_by_setting(store: WeaviateStore, server: Server, owner: str) -> None:
    ranks = await WeaviateStore.open(server, NAME, owner=owner, fusion=Fusion.RRF)
    await ranks.add([entry(passage("notice " * n, number=n), vector(1, n)) for n in (1, 2, 3)])
    scores = {hit.score for hit in await ranks.search(ask("notice", vector(1)))}
    alone = [hit.score for hit in await ranks.search(ask("", vector(1), mode=Mode.DENSE))]
    await ranks.close()
    shares = {(60 / (60 + a) + 60 / (60 + b)) / 2 for a in range(3) for b in range(3)}
    assert all(any(score == pytest.approx(share) for share in shares) for score in scores)
    assert alone == pytest.approx([1, 61 / 62, 61 / 63])


async def test_the_passages_of_many_versions_are_counted(store: WeaviateStore) -> None:
    named = [f"document-{number}" for number in range(300)]
    await store.add([entry(passage(name, document=name)) for name in named])
    assert await store.counts("acme") == {Version(name, 1): 1 for name in named}
