"""A question to the passages that answer it: embedded, cut into terms, searched, and checked against the catalog."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, replace

from storage.documents import Documents
from storage.embeddings import Embedder, script_of
from storage.errors import EmbeddingUnavailable, StoreUnavailable
from storage.knowledge import KnowledgeStore, Mode, Query, Vector
from storage.models import Hit, Scope, versions_of
from storage.terms import content_terms, cut

EMBEDDING_DOWN = "the embedding model is down: keyword search only"

_ROUNDS = 16  # of a search that meets versions which don't live
_WIDEST = 1_000  # passages of one round
_REMEMBERED = 256


@dataclass(frozen=True)
class Retrieved:
    """`degraded` names what was down, `limits` what this set-up can't do; both in words for a person."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Embedded:
    vector: Vector | None
    degraded: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


class Retriever:
    def __init__(
        self,
        store: KnowledgeStore,
        embedder: Embedder,
        documents: Documents,
        *,
        dense_weight: float | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._documents = documents
        self._dense_weight = embedder.dense_weight if dense_weight is None else dense_weight
        self._remembered: OrderedDict[str, Vector] = OrderedDict()
        self.has_failed = False  # a search, since who checks the store last set this back

    async def search(
        self,
        question: str,
        scope: Scope,
        *,
        limit: int = 10,
        mode: Mode = Mode.HYBRID,
        documents: Collection[str] | None = None,
    ) -> Retrieved:
        """The best passages of living documents within the scope. Raises StoreUnavailable."""
        embedded, dead = await asyncio.gather(self._embed(question, mode), self._documents.dead(scope.workspace))
        query = Query(
            scope=scope,
            terms=content_terms(question) or cut(question),  # without function words: better on every set measured
            vector=embedded.vector,
            mode=mode if embedded.vector is not None else Mode.KEYWORD,
            limit=limit,
            dead=frozenset(dead),
            documents=documents,
            dense_weight=self._dense_weight,
        )
        try:
            return Retrieved(await self._living(query), embedded.degraded, embedded.limits)
        except StoreUnavailable:
            self.has_failed = True
            raise

    async def _living(self, query: Query) -> tuple[Hit, ...]:
        """What turns out not to live is left out of the next, wider round, so that it hides nothing."""
        wanted, living = query.limit, list[Hit]()
        for _ in range(_ROUNDS):
            hits = await self._store.search(query)
            now = await self._documents.living(query.scope.workspace, versions_of(hits))
            seen = {version for version, found in now.items() if found.audience in query.scope.audiences}
            living = [hit for hit in hits if hit.passage.key in seen]
            if len(living) >= wanted or len(hits) < query.limit:
                break
            dead = frozenset(query.dead) | (versions_of(hits) - versions_of(living))
            query = replace(query, dead=dead, limit=min(query.limit * 4, _WIDEST))
        return tuple(living[:wanted])

    async def _embed(self, question: str, mode: Mode) -> _Embedded:
        if mode is Mode.KEYWORD:
            return _Embedded(None)
        if not self._embedder.knows(question):
            limit = f"the embedding model doesn't know {script_of(question)}: keyword search only"
            return _Embedded(None, limits=(limit,))
        try:
            return _Embedded(await self._vector(question))
        except EmbeddingUnavailable:
            return _Embedded(None, degraded=(EMBEDDING_DOWN,))

    async def _vector(self, question: str) -> Vector:
        vector = self._remembered.get(question)
        if vector is None:
            vector = await self._embedder.embed_question(question)
        self._remembered[question] = vector
        self._remembered.move_to_end(question)
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return vector
