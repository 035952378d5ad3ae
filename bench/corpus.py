"""Question sets, their documents as the bot would hold them, and vectors that are kept in a file."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ingest.parts import Part
from ingest.split import passages, split
from storage.embeddings import Embedder
from storage.knowledge import Entry, Vector
from storage.models import Document, DocumentState, Passage, Scope, channel_audience
from storage.terms import cut, digest, indexed_text

CHANNEL = "bench"
WORKSPACE = "bench"
AUDIENCE = channel_audience(CHANNEL)
SCOPE = Scope(WORKSPACE, frozenset([AUDIENCE]))

Relevant = Mapping[str, int]


@dataclass(frozen=True)
class QuestionSet:
    documents: Mapping[str, tuple[str, str]]  # title and text
    questions: Mapping[str, str]
    relevant: Mapping[str, Relevant]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def load(path: Path) -> QuestionSet:
    """A directory with `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl` and `qrels.tsv`, as BEIR has them."""
    relevant: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for line in (path / "qrels.tsv").read_text().splitlines()[1:]:
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            relevant[question][document] = int(grade)
    return QuestionSet(
        documents={row["_id"]: (row.get("title", ""), row["text"]) for row in rows(path / "corpus.jsonl")},
        questions={row["_id"]: row["text"] for row in rows(path / "queries.jsonl") if row["_id"] in relevant},
        relevant=relevant,
    )


def document(name: str, text: str, workspace: str = WORKSPACE) -> Document:
    return Document(
        document=digest(workspace + name)[:20],
        version=1,
        workspace=workspace,
        channel=CHANNEL,
        audience=AUDIENCE,
        name=name,
        state=DocumentState.CURRENT,
        verdict="indexed",
        reason="",
        content_hash=digest(text),
        size=len(text),
        pages=0,
        sections=0,
        passages=0,
        posted_by="bench",
        posted_at=0,
        message=name,
        link="",
    )


def headed(title: str, text: str) -> str:
    """As `add --jsonl` has it."""
    return f"# {title}\n\n{text}" if title else text


def cut_up(name: str, text: str, workspace: str = WORKSPACE, markup: bool = True) -> list[Passage]:
    """As the bot splits it."""
    return passages(document(name, text, workspace), split([Part(None, "", text, markup=markup)]))


class Vectors:
    """Vectors of texts, kept in a file."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self._path = path
        self._known = self._stored()

    async def of(self, texts: Sequence[str]) -> list[Vector | None]:
        """None for a text whose script the model doesn't know."""
        wanted = {digest(text): text for text in texts if self._embedder.knows(text)}
        missing = [name for name in wanted if name not in self._known]
        for start in range(0, len(missing), 512):
            some = missing[start : start + 512]
            self._known.update(zip(some, await self._embedder.embed([wanted[name] for name in some]), strict=True))
            self._save()
        return [self._known[name] if (name := digest(text)) in wanted else None for text in texts]

    async def entries(self, found: Sequence[Passage]) -> list[Entry]:
        texts = [indexed_text(passage) for passage in found]
        return [
            Entry(passage, digest(text), cut(text), vector)
            for passage, text, vector in zip(found, texts, await self.of(texts), strict=True)
        ]

    def _stored(self) -> dict[str, Vector]:
        if not self._path.exists():
            return {}
        with np.load(self._path) as stored:
            return dict(zip(stored["digests"].tolist(), stored["vectors"], strict=True))

    def _save(self) -> None:
        """With what others have kept there meanwhile."""
        self._known = self._stored() | self._known
        partial = self._path.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, digests=np.array(list(self._known)), vectors=np.array(list(self._known.values())))
        partial.replace(self._path)
