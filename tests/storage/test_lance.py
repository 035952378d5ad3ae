from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from storage.errors import EmbeddingChanged, StoreUnavailable
from storage.knowledge import Entry, Fusion, Mode, Vector
from storage.lance import LanceStore
from storage.models import Version
from tests.storage.knowledge_contract import KnowledgeContract, ask, entry, passage, texts, vector


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LanceStore]:
    opened = await LanceStore.open(tmp_path / "passages", "test")
    yield opened
    await opened.close()


class TestLance(KnowledgeContract):
    pass


async def test_what_was_added_is_there_after_opening_again(tmp_path: Path) -> None:
    first = await LanceStore.open(tmp_path, "test")
    await first.add([entry(passage("notice"), vector(1))])
    await first.close()
    second = await LanceStore.open(tmp_path, "test")
    hits = await second.search(ask("notice", vector(1)))
    assert texts(hits) == ["notice"]
    assert hits[0].cosine == pytest.approx(1)
    await second.close()


async def test_collections_of_two_models_stand_side_by_side(tmp_path: Path) -> None:
    old, new = [await LanceStore.open(tmp_path, name) for name in ("old", "new")]
    await old.add([entry(passage("notice"), vector(1))])
    assert await new.search(ask("notice", vector(1))) == []
    await new.add([Entry(passage("notice"), "d", ["notic"], np.ones(3, dtype=np.float32))])
    assert len(await old.search(ask("notice", vector(1)))) == 1
    await old.close()
    await new.close()


async def test_the_collections_of_other_models_are_dropped_with_their_text(tmp_path: Path) -> None:
    old, new = [await LanceStore.open(tmp_path, name) for name in ("old", "new")]
    for store in (old, new):
        await store.add([entry(passage("notice"), vector(1))])
    await old.remove("acme", [Version("handbook", 1)])
    await old.close()
    await new.drop_others()
    assert [path.name for path in tmp_path.iterdir()] == ["new.lance"]
    assert len(await new.search(ask("notice", vector(1)))) == 1
    await new.close()


async def test_vectors_of_another_dimension_are_refused(store: LanceStore) -> None:
    await store.add([entry(passage("notice"), vector(1))])
    other = np.ones(3, dtype=np.float32)
    with pytest.raises(EmbeddingChanged, match="reembed"):
        await store.add([Entry(passage("other", number=2), "d", ["other"], other)])
    with pytest.raises(EmbeddingChanged, match="reembed"):
        await store.search(ask("notice", other))
    assert await store.count("acme", Version("handbook", 1)) == 1


async def test_another_opened_store_sees_what_was_written(tmp_path: Path) -> None:
    writer, reader = await LanceStore.open(tmp_path, "test"), await LanceStore.open(tmp_path, "test")
    assert await reader.search(ask("notice")) == []
    await writer.add([entry(passage("notice"), vector(1))])
    assert len(await reader.search(ask("notice", vector(1), mode=Mode.DENSE))) == 1
    await writer.remove("acme", [Version("handbook", 1)])
    assert await reader.search(ask("notice")) == []
    await writer.close()
    await reader.close()


def _files(path: Path) -> set[Path]:
    """What holds rows, their indices and the marks on deleted rows."""
    return {
        file for kind in ("data", "_indices", "_deletions") for file in path.rglob(f"{kind}/**/*") if file.is_file()
    }


@pytest.mark.parametrize("share", ["one of many", "most"])
async def test_removed_text_leaves_the_disk_with_the_next_compact(tmp_path: Path, share: str) -> None:
    store = await LanceStore.open(tmp_path, "test")
    rest = [entry(passage(f"notice {n}", document="rest", number=n), vector(1, n)) for n in range(1, 50)]
    await store.add([*rest, entry(passage("a secret", document="secret"), vector(1))])
    await store.compact()
    held = _files(tmp_path)
    await store.compact()
    assert _files(tmp_path) & held  # where nothing was removed, nothing is written anew
    await store.remove("acme", [Version("secret", 1), *([Version("rest", 1)] if share == "most" else [])])
    await store.close()
    store = await LanceStore.open(tmp_path, "test")  # killed before it was compacted
    await store.compact()
    left = _files(tmp_path)
    assert not left & held
    assert not any(file.parent.name == "_deletions" for file in left)
    assert await store.count("acme", Version("rest", 1)) == (0 if share == "most" else 49)
    assert texts(await store.search(ask("secret notice", vector(1)))) == texts(
        await store.search(ask("notice", vector(1)))
    )
    await store.compact()
    assert _files(tmp_path) == left
    await store.close()


async def test_replaced_text_leaves_the_disk_too(tmp_path: Path) -> None:
    store = await LanceStore.open(tmp_path, "test")
    await store.add([entry(passage(f"notice {n}", number=n)) for n in range(1, 40)])
    await store.compact()
    held = _files(tmp_path)
    await store.add([entry(passage("another notice"))])
    await store.compact()
    assert not _files(tmp_path) & held
    assert await store.count("acme", Version("handbook", 1)) == 39
    await store.close()


async def test_compacting_keeps_the_disk_small_and_is_quick_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    store = await LanceStore.open(tmp_path, "test")
    for number in range(1, 40):
        await store.add([entry(passage(f"notice {number}", number=number), vector(1, number))])
    await store.compact()
    files = sum(1 for file in tmp_path.rglob("*") if file.is_file())
    assert files < 60
    started = time.perf_counter()
    for _ in range(5):
        await store.compact()
    assert (time.perf_counter() - started) / 5 < 0.2
    await store.close()


def _clusters(count: int, dimension: int, chance: np.random.Generator) -> list[Vector]:
    centres = chance.standard_normal((40, dimension))
    rows = centres[chance.integers(0, 40, count)] + chance.standard_normal((count, dimension))
    return list((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))


async def test_beyond_the_exact_rows_an_index_finds_nearly_the_same_within_the_scope(tmp_path: Path) -> None:
    chance = np.random.default_rng(7)
    vectors = _clusters(6_000, 32, chance)
    audiences = [f"channel:{number % 20}" for number in range(len(vectors))]
    entries = [
        Entry(passage(f"text {n}", number=n, audience=audiences[n]), str(n), ["text"], vectors[n])
        for n in range(len(vectors))
    ]
    entries[17] = Entry(entries[17].passage, "17", ["text"], None)
    store = await LanceStore.open(tmp_path, "test", exact_rows=2_000)
    await store.add(entries)
    await store.compact()
    assert any(index.index_type == "IvfFlat" for index in await store._table.list_indices())
    recall = []
    for question in _clusters(20, 32, chance):
        hits = await store.search(ask("", question, mode=Mode.DENSE, audiences=["channel:3", "channel:17"]))
        mine = [n for n in range(len(vectors)) if n % 20 in (3, 17) and n != 17]
        exact = sorted(mine, key=lambda n: -float(vectors[n] @ question))[:10]
        recall.append(len({hit.passage.number for hit in hits} & set(exact)) / 10)
    assert float(np.mean(recall)) >= 0.95
    await store.add([Entry(passage("late", document="late", audience="channel:3"), "late", ["late"], vectors[3])])
    late = await store.search(ask("", vectors[3], mode=Mode.DENSE, audiences=["channel:3"]))
    assert "late" in texts(late[:2])
    await store.remove("acme", [Version("handbook", 1)])
    await store.compact()
    assert texts(await store.search(ask("", vectors[3], mode=Mode.DENSE, audiences=["channel:3"]))) == ["late"]
    await store.forget_vectors()
    await store.compact()
    assert texts(await store.search(ask("late", audiences=["channel:3"]))) == ["late"]
    await store.close()


async def test_reciprocal_rank_by_setting(tmp_path: Path) -> None:
    store = await LanceStore.open(tmp_path, "test", fusion=Fusion.RRF)
    await store.add([entry(passage("notice " * n, number=n), vector(1, n)) for n in (1, 2, 3)])
    hits = await store.search(ask("notice", vector(1)))
    assert hits[0].score <= 1
    assert {round(hit.score, 4) for hit in hits} <= {
        round((61 / (60 + a) + 61 / (60 + b)) / 2, 4) for a in (1, 2, 3) for b in (1, 2, 3)
    }
    await store.close()


async def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StoreUnavailable):
        await LanceStore.open(tmp_path / "file", "test")


async def test_a_store_whose_files_are_gone_says_so(tmp_path: Path) -> None:
    store = await LanceStore.open(tmp_path / "passages", "test")
    await store.add([entry(passage("notice"), vector(1))])
    for file in (tmp_path / "passages").rglob("*"):
        if file.is_file():
            file.unlink()
    with pytest.raises(StoreUnavailable):
        await store.search(ask("notice", vector(1)))
    with pytest.raises(StoreUnavailable):
        await store.add([entry(passage("notice"), vector(1))])
    await store.close()


async def test_a_search_among_ten_thousand_passages_takes_milliseconds(tmp_path: Path) -> None:
    chance, words = random.Random(3), [f"word{number}" for number in range(4_000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    vectors = _clusters(10_000, 384, np.random.default_rng(3))
    store = await LanceStore.open(tmp_path, "test")
    await store.add(
        [
            Entry(passage("x" * 500, number=n, audience=f"channel:{n % 10}"), str(n), terms, vectors[n])
            for n in range(10_000)
            for terms in [chance.choices(words, weights, k=80)]
        ]
    )
    await store.compact()
    seconds = []
    for n in range(30):
        query = ask(" ".join(chance.choices(words, k=8)), vectors[n], audiences=[f"channel:{c}" for c in range(5)])
        started = time.perf_counter()
        assert len(await store.search(query)) == 10
        seconds.append(time.perf_counter() - started)
    assert sorted(seconds)[len(seconds) // 2] < 0.25  # 15 ms on a quiet machine
    await store.close()


@pytest.mark.timeout(60)
async def test_searches_that_are_broken_off_stop_no_later_one(tmp_path: Path) -> None:
    """Each store is opened anew, as its indices are loaded by the first searches."""
    pauses = random.Random(4)
    first = await LanceStore.open(tmp_path, "test")
    await first.add([entry(passage(f"notice {number}", number=number), vector(1, number)) for number in range(8)])
    await first.close()
    for _ in range(40):
        store = await LanceStore.open(tmp_path, "test")
        broken_off = [asyncio.create_task(store.search(ask("notice", vector(1)))) for _ in range(3)]
        await asyncio.sleep(pauses.random() * 0.02)
        for search in broken_off:
            search.cancel()
        await asyncio.gather(*broken_off, return_exceptions=True)
        assert len(await asyncio.wait_for(store.search(ask("notice", vector(1))), 20)) == 8
        await store.close()
