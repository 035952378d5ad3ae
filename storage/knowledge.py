"""The port of the knowledge store, which holds passages with their vectors and terms.

Every store passes `tests/storage/knowledge_contract.py`. The catalog decides what lives; a store proposes: it filters
by scope and leaves out the versions it is told are dead, before it ranks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from storage.models import Hit, Passage, Scope, Version

Vector = npt.NDArray[np.float32]

CANDIDATES = 100  # of each side, before fusion


class Mode(StrEnum):
    HYBRID = "hybrid"
    DENSE = "dense"
    KEYWORD = "keyword"


class Fusion(StrEnum):
    RELATIVE = "relative"  # min-max over the candidates of each side, weighted
    RRF = "rrf"  # reciprocal rank, k = 60


@dataclass(frozen=True, slots=True)
class Query:
    """One search. `terms` are cut by `storage.terms`; `vector` is None where the text can't or shan't be embedded.

    `documents` narrows the search to these documents (None: all of the scope). `dense_weight` is the share of the
    vectors in a hybrid search.
    """

    scope: Scope
    terms: Sequence[str]
    vector: Vector | None
    mode: Mode = Mode.HYBRID
    limit: int = 10
    dead: Collection[Version] = ()
    documents: Collection[str] | None = None
    dense_weight: float = 0.5


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage as it is stored. `digest` names the embedded text, so that a vector is found again by content."""

    passage: Passage
    digest: str
    terms: Sequence[str]
    vector: Vector | None


class KnowledgeStore(Protocol):
    """Raises `storage.errors.StoreUnavailable` where the store can't be reached."""

    async def add(self, entries: Sequence[Entry]) -> None:
        """Store or replace these entries, by the passages' ids: doing it again changes nothing."""

    async def remove(self, workspace: str, versions: Collection[Version]) -> None:
        """Remove every passage of these versions, and their text from the disk with the next `compact`."""

    async def search(self, query: Query) -> list[Hit]:
        """The best `query.limit` passages within the scope, the best first; equal scores in a stable order."""

    async def vectors(self, workspace: str, digests: Collection[str]) -> Mapping[str, Vector]:
        """The vectors that are stored for these digests in this workspace."""

    async def count(self, workspace: str, version: Version) -> int:
        """How many passages of this version are stored."""

    async def counts(self, workspace: str) -> Mapping[Version, int]:
        """How many passages are stored of each version of this workspace; a version without any is left out."""

    async def forget_vectors(self) -> None:
        """Drop every vector, of every workspace: those of another model, of any dimension, will be added."""

    async def drop_others(self) -> None:
        """Drop the collections of other models, with their text, once this one holds everything."""

    async def compact(self) -> None:
        """Merge small files and drop what was removed. Safe at any time, quick where there is nothing to do."""

    async def close(self) -> None: ...
