from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from storage.database import open_database, sqlite_url
from storage.documents import Documents, FilePost
from storage.embeddings import BundledEmbedder, Embedder, is_latin
from storage.errors import EmbeddingUnavailable, StoreUnavailable
from storage.knowledge import Entry, Mode, Query, Vector
from storage.lance import LanceStore
from storage.models import Hit, Passage, Scope, Section, Version, channel_audience
from storage.retrieval import EMBEDDING_DOWN, Retriever
from storage.terms import cut, digest, indexed_text

WORKSPACE = "acme"
SCOPE = Scope(WORKSPACE, frozenset([channel_audience("general")]))


class Letters:
    """An embedder whose vectors count letters, and that can be switched off."""

    model = "letters"
    dimension = 26
    dense_weight = 0.5
    not_found_threshold = 0.5

    def __init__(self) -> None:
        self.down = False
        self.questions: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._count(text) for text in texts]

    async def embed_question(self, text: str) -> Vector:
        self.questions.append(text)
        if self.down:
            raise EmbeddingUnavailable("switched off")
        return self._count(text)

    def knows(self, text: str) -> bool:
        return is_latin(text)

    async def close(self) -> None: ...

    def _count(self, text: str) -> Vector:
        counts = np.array([text.lower().count(chr(97 + n)) + 0.01 for n in range(26)], dtype=np.float32)
        unit: Vector = counts / np.linalg.norm(counts)
        return unit


class Watched(LanceStore):
    """Remembers what it was asked."""

    queries: list[Query]

    async def search(self, query: Query) -> list[Hit]:
        self.queries.append(query)
        return await super().search(query)


@dataclass
class Knowledge:
    documents: Documents
    store: Watched
    embedder: Letters
    retriever: Retriever
    posts: int = 0

    async def post(
        self,
        name: str,
        texts: Sequence[str],
        *,
        channel: str = "general",
        swap: bool = True,
        embedder: Embedder | None = None,
    ) -> Version:
        self.posts += 1
        post = FilePost(
            workspace=WORKSPACE,
            channel=channel,
            audience=channel_audience(channel),
            name=name,
            size=1,
            posted_by="ann",
            posted_at=float(self.posts),
            message=f"post-{self.posts}",
            attachment="1",
            link="",
        )
        begun = await self.documents.begin(post, digest(f"{name}{texts}"))
        assert begun.document is not None
        version = begun.document.key
        await self.documents.store_sections(version, [Section(1, (), "\n".join(texts))], 0)
        passages = [
            Passage(*version, n, WORKSPACE, post.audience, name, 1, 0, len(text), (), None, "", text)
            for n, text in enumerate(texts, 1)
        ]
        seen = [indexed_text(passage) for passage in passages]
        using = embedder or self.embedder
        vectors = await using.embed(seen)
        await self.store.add(
            [
                Entry(passage, digest(text), cut(text), vector if using.knows(text) else None)
                for passage, text, vector in zip(passages, seen, vectors, strict=True)
            ]
        )
        if swap:
            await self.documents.swap(version, len(passages), True)
        return version


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with open_database(sqlite_url(tmp_path / "bot.sqlite")) as database:
        documents, embedder = Documents(database), Letters()
        store = await Watched.open(tmp_path / "passages", "letters")
        store.queries = []
        yield Knowledge(documents, store, embedder, Retriever(store, embedder, documents))
        await store.close()


def names(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.name for hit in hits]


async def test_the_best_passage_of_a_living_document_comes_first(knowledge: Knowledge) -> None:
    await knowledge.post("contract.md", ["The notice period is thirty days.", "Lunch is at noon."])
    found = await knowledge.retriever.search("What is the notice period?", SCOPE)
    assert found.hits[0].passage.text == "The notice period is thirty days."
    assert found.hits[0].cosine is not None
    assert found.degraded == () and found.limits == ()


async def test_only_the_current_version_answers_though_the_store_still_holds_the_old(knowledge: Knowledge) -> None:
    old = await knowledge.post("contract.md", [f"The notice period is {n} days." for n in range(40)])
    new = await knowledge.post("contract.md", ["A notice period of ninety days, as agreed by both sides in writing."])
    assert new == Version(old.document, 2)
    found = await knowledge.retriever.search("notice period days", SCOPE, limit=10)
    assert {hit.passage.key for hit in found.hits} == {new}
    assert len(knowledge.store.queries) == 1  # the catalog named the dead before the search


async def test_a_version_that_is_still_being_read_hides_nothing(knowledge: Knowledge) -> None:
    await knowledge.post("contract.md", ["One notice among many other words in a longer sentence."])
    pending = await knowledge.post("big.md", [f"notice notice {n}" for n in range(250)], swap=False)
    found = await knowledge.retriever.search("notice", SCOPE, limit=5)
    assert names(found.hits) == ["contract.md"]
    assert pending not in {hit.passage.key for hit in found.hits}


async def test_many_unfinished_documents_hide_nothing(knowledge: Knowledge) -> None:
    for number in range(30):
        await knowledge.post(f"pending {number}.md", [f"notice notice {number}"] * 4, swap=False)
    for number in range(3):
        await knowledge.post(f"contract {number}.md", ["One notice among many other words in a longer sentence."])
    found = await knowledge.retriever.search("notice", SCOPE, limit=3)
    assert sorted(names(found.hits)) == ["contract 0.md", "contract 1.md", "contract 2.md"]


async def test_a_deleted_post_answers_nothing_from_then_on(knowledge: Knowledge) -> None:
    await knowledge.post("contract.md", ["The notice period is thirty days."])
    await knowledge.documents.delete_post(WORKSPACE, "general", "post-1")
    assert (await knowledge.retriever.search("notice period", SCOPE)).hits == ()


async def test_a_document_that_the_catalog_does_not_know_never_answers(knowledge: Knowledge) -> None:
    stray = Passage("stray", 1, 1, WORKSPACE, channel_audience("general"), "s", 1, 0, 6, (), None, "", "notice")
    await knowledge.store.add([Entry(stray, "d", ["notic"], None)])
    assert (await knowledge.retriever.search("notice", SCOPE)).hits == ()


async def test_a_passage_stored_under_a_wider_audience_than_its_document_is_not_shown(knowledge: Knowledge) -> None:
    version = await knowledge.post("secret.md", ["The notice of the board."], channel="board")
    leaked = Passage(*version, 1, WORKSPACE, channel_audience("general"), "secret.md", 1, 0, 6, (), None, "", "notice")
    await knowledge.store.add([Entry(leaked, "d", ["notic"], None)])
    assert (await knowledge.retriever.search("notice", SCOPE)).hits == ()


async def test_other_audiences_are_not_searched(knowledge: Knowledge) -> None:
    await knowledge.post("secret.md", ["The notice period of the board."], channel="board")
    assert (await knowledge.retriever.search("notice period", SCOPE)).hits == ()
    board = Scope(WORKSPACE, frozenset([channel_audience("board")]))
    assert names((await knowledge.retriever.search("notice period", board)).hits) == ["secret.md"]


async def test_only_these_documents(knowledge: Knowledge) -> None:
    await knowledge.post("one.md", ["notice notice"])
    two = await knowledge.post("two.md", ["one notice among words"])
    found = await knowledge.retriever.search("notice", SCOPE, documents=[two.document])
    assert names(found.hits) == ["two.md"]


async def test_an_embedding_model_that_is_down_leaves_keyword_search_and_says_so(knowledge: Knowledge) -> None:
    await knowledge.post("contract.md", ["The notice period is thirty days."])
    knowledge.embedder.down = True
    for mode in (Mode.HYBRID, Mode.DENSE):
        found = await knowledge.retriever.search("notice period", SCOPE, mode=mode)
        assert names(found.hits) == ["contract.md"]
        assert found.degraded == (EMBEDDING_DOWN,)
        assert found.limits == ()
    knowledge.embedder.down = False
    assert (await knowledge.retriever.search("notice period", SCOPE)).degraded == ()


async def test_a_script_that_the_model_does_not_know_is_searched_by_keyword_and_the_limit_named(
    knowledge: Knowledge,
) -> None:
    await knowledge.post("合同.md", ["合同的通知期限为三十天。", "今天天气很好。"])
    found = await knowledge.retriever.search("通知期限是多少天？", SCOPE)
    assert found.hits[0].passage.text == "合同的通知期限为三十天。"
    assert found.limits == ("the embedding model doesn't know Chinese: keyword search only",)
    assert found.degraded == ()
    assert knowledge.embedder.questions == []


async def test_a_keyword_search_embeds_nothing(knowledge: Knowledge) -> None:
    await knowledge.post("contract.md", ["The notice period is thirty days."])
    found = await knowledge.retriever.search("notice", SCOPE, mode=Mode.KEYWORD)
    assert names(found.hits) == ["contract.md"]
    assert knowledge.embedder.questions == []


async def test_the_same_question_is_embedded_once(knowledge: Knowledge) -> None:
    await knowledge.post("contract.md", ["The notice period is thirty days."])
    for _ in range(3):
        await knowledge.retriever.search("notice period", SCOPE)
    assert knowledge.embedder.questions == ["notice period"]


async def test_function_words_alone_are_searched_as_they_are(knowledge: Knowledge) -> None:
    await knowledge.post("song.md", ["To be or not to be"])
    assert names((await knowledge.retriever.search("to be or not to be", SCOPE, mode=Mode.KEYWORD)).hits) == ["song.md"]


@pytest.mark.parametrize("question", ["", "   ", "?!", "\ud800", "'; DROP TABLE passages; --", "a" * 4000])
async def test_any_question_is_survived(knowledge: Knowledge, question: str) -> None:
    await knowledge.post("contract.md", ["The notice period is thirty days."])
    await knowledge.retriever.search(question, SCOPE)


async def test_the_dense_weight_is_the_models_own_unless_it_is_set(knowledge: Knowledge) -> None:
    await knowledge.retriever.search("notice", SCOPE)
    other = Retriever(knowledge.store, knowledge.embedder, knowledge.documents, dense_weight=0.0)
    await other.search("notice", SCOPE)
    assert [query.dense_weight for query in knowledge.store.queries] == [0.5, 0.0]


async def test_a_store_that_cannot_be_reached_is_not_an_empty_one(knowledge: Knowledge, tmp_path: Path) -> None:
    await knowledge.post("contract.md", ["The notice period is thirty days."])
    for file in (tmp_path / "passages").rglob("*.lance"):
        if file.is_file():
            file.unlink()
    for file in (tmp_path / "passages").rglob("*.manifest"):
        file.unlink()
    with pytest.raises(StoreUnavailable):
        await knowledge.retriever.search("notice", SCOPE)


async def test_searches_beside_a_swap_show_one_version_or_the_other(knowledge: Knowledge) -> None:
    await knowledge.post("contract.md", ["The notice period is one day."])
    done = asyncio.Event()

    async def swap() -> None:
        for number in range(2, 8):
            await knowledge.post("contract.md", [f"The notice period is {number} days."])
        done.set()

    async def ask() -> int:
        asked = 0
        while not done.is_set():
            found = await knowledge.retriever.search("notice period", SCOPE)
            assert len({hit.passage.version for hit in found.hits}) <= 1
            asked += 1
        return asked

    _, asked = await asyncio.gather(swap(), ask())
    assert asked > 0
    last = await knowledge.retriever.search("notice period", SCOPE)
    assert [hit.passage.text for hit in last.hits] == ["The notice period is 7 days."]


async def test_the_bundled_model_finds_what_shares_no_word(tmp_path: Path) -> None:
    embedder = BundledEmbedder()
    async with open_database(sqlite_url(tmp_path / "bot.sqlite")) as database:
        documents = Documents(database)
        store = await Watched.open(tmp_path / "passages", "bundled")
        store.queries = []
        whole = Knowledge(documents, store, Letters(), Retriever(store, embedder, documents))
        await whole.post("leave.md", ["Every employee gets thirty days of annual leave."], embedder=embedder)
        await whole.post("kitchen.md", ["The coffee machine is cleaned on Fridays."], embedder=embedder)
        found = await whole.retriever.search("How much vacation do I have?", SCOPE)
        assert names(found.hits)[0] == "leave.md"
        assert names((await whole.retriever.search("vacation", SCOPE, mode=Mode.KEYWORD)).hits) == []
        await store.close()
    await embedder.close()
