"""How well the right document is found: `python -m bench.retrieval --data PATH [--sets NAME …]`.

Each set is a directory with `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl` and `qrels.tsv`, as BEIR has them.
Documents are split as the bot splits them, stored in LanceDB, and searched in each mode; a document stands where its
best passage stands. Vectors are kept in `--cache`, so that only the first run takes long.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.parts import Part
from ingest.split import passages, split
from storage.embeddings import BundledEmbedder, Embedder
from storage.knowledge import Entry, Mode, Query, Vector
from storage.lance import LanceStore
from storage.models import Document, DocumentState, Passage, Scope
from storage.terms import content_terms, cut, digest, indexed_text

SCOPE = Scope("bench", frozenset(["channel:bench"]))
DEPTH = 100  # passages asked for

Relevant = Mapping[str, int]
Measure = Callable[[Sequence[str], Relevant], float]


def ndcg_at_10(ranking: Sequence[str], relevant: Relevant) -> float:
    gain = sum(relevant.get(document, 0) / math.log2(place + 2) for place, document in enumerate(ranking[:10]))
    best = sorted(relevant.values(), reverse=True)[:10]
    return gain / sum(grade / math.log2(place + 2) for place, grade in enumerate(best))


def mrr_at_10(ranking: Sequence[str], relevant: Relevant) -> float:
    return next((1 / place for place, document in enumerate(ranking[:10], 1) if document in relevant), 0.0)


def recall_at_20(ranking: Sequence[str], relevant: Relevant) -> float:
    return len(relevant.keys() & set(ranking[:20])) / len(relevant)


@dataclass(frozen=True)
class Expected:
    measure: Measure
    keyword: float | None
    hybrid: float
    beside: str


SETS = {
    "xquad_en": Expected(mrr_at_10, None, 0.975, "BM25 .956"),
    "xquad_zh": Expected(mrr_at_10, 0.945, 0.945, "FTS5 trigram .791"),
    "anthropic_codebase": Expected(recall_at_20, None, 0.865, "BM25 .83"),
    "cranfield": Expected(ndcg_at_10, None, 0.425, "MiniLM alone .400"),
    "scifact": Expected(ndcg_at_10, 0.69, 0.73, "BGE-base alone .741, BM25 .679"),
}


@dataclass(frozen=True)
class QuestionSet:
    documents: Mapping[str, tuple[str, str]]  # title and text
    questions: Mapping[str, str]
    relevant: Mapping[str, Relevant]


def load(path: Path) -> QuestionSet:
    relevant: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for line in (path / "qrels.tsv").read_text().splitlines()[1:]:
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            relevant[question][document] = int(grade)
    rows = [json.loads(line) for line in (path / "corpus.jsonl").read_text().splitlines()]
    asked = [json.loads(line) for line in (path / "queries.jsonl").read_text().splitlines()]
    return QuestionSet(
        documents={row["_id"]: (row.get("title", ""), row["text"]) for row in rows},
        questions={row["_id"]: row["text"] for row in asked if row["_id"] in relevant},
        relevant=relevant,
    )


def passages_of(id: str, title: str, text: str) -> list[Passage]:
    whole = f"# {title}\n\n{text}" if title else text  # as `add --jsonl` has it
    document = Document(
        document=digest(id)[:20],
        version=1,
        workspace=SCOPE.workspace,
        channel="bench",
        audience="channel:bench",
        name=id,
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
        message=id,
        link="",
    )
    return passages(document, split([Part(None, "", whole)]))


class Vectors:
    """Vectors of texts, kept in a file."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self._path = path
        self._known: dict[str, Vector] = {}
        if path.exists():
            with np.load(path) as stored:
                self._known = dict(zip(stored["digests"].tolist(), stored["vectors"], strict=True))

    async def of(self, texts: Sequence[str]) -> list[Vector | None]:
        """None for a text whose script the model doesn't know."""
        wanted = {digest(text): text for text in texts if self._embedder.knows(text)}
        missing = [name for name in wanted if name not in self._known]
        for start in range(0, len(missing), 512):
            some = missing[start : start + 512]
            self._known.update(zip(some, await self._embedder.embed([wanted[name] for name in some]), strict=True))
            self._save()
        return [self._known[name] if (name := digest(text)) in wanted else None for text in texts]

    def _save(self) -> None:
        partial = self._path.with_suffix(".part.npz")
        np.savez(partial, digests=np.array(list(self._known)), vectors=np.array(list(self._known.values())))
        partial.replace(self._path)


@dataclass(frozen=True)
class Measured:
    scores: Mapping[Mode, float]
    milliseconds: float
    passages: int


async def measure(name: str, questions: QuestionSet, vectors: Vectors, dense_weight: float) -> Measured:
    split_up = {id: passages_of(id, *document) for id, document in questions.documents.items()}
    owner = {passage.document: id for id, found in split_up.items() for passage in found}
    everything = [passage for found in split_up.values() for passage in found]
    texts = [indexed_text(passage) for passage in everything]
    entries = [
        Entry(passage, digest(text), cut(text), vector)
        for passage, text, vector in zip(everything, texts, await vectors.of(texts), strict=True)
    ]
    asked = list(questions.questions)
    question_vectors = await vectors.of([questions.questions[id] for id in asked])
    with tempfile.TemporaryDirectory() as directory:
        store = await LanceStore.open(Path(directory), name)
        await store.add(entries)
        await store.compact()
        scores: dict[Mode, float] = {}
        seconds: list[float] = []
        for mode in Mode:
            found: list[float] = []
            for id, vector in zip(asked, question_vectors, strict=True):
                started = time.perf_counter()
                text = questions.questions[id]
                terms = content_terms(text) or cut(text)
                query = Query(SCOPE, terms, vector, mode, DEPTH, dense_weight=dense_weight)
                hits = await store.search(query)
                seconds.append(time.perf_counter() - started)
                ranking = list(dict.fromkeys(owner[hit.passage.document] for hit in hits))
                found.append(SETS[name].measure(ranking, questions.relevant[id]))
            scores[mode] = statistics.fmean(found)
        await store.close()
    return Measured(scores, statistics.median(seconds) * 1000, len(entries))


async def run(arguments: argparse.Namespace) -> bool:
    embedder = BundledEmbedder()
    weight = embedder.dense_weight if arguments.dense_weight is None else arguments.dense_weight
    vectors = Vectors(embedder, arguments.cache)
    print(f"{'set':20}{'measure':14}{'keyword':>9}{'dense':>9}{'hybrid':>9}{'target':>9}{'ms':>6}  beside")
    reached = True
    for name in arguments.sets:
        expected = SETS[name]
        measured = await measure(name, load(arguments.data / name), vectors, weight)
        scores = measured.scores
        reached &= scores[Mode.HYBRID] >= expected.hybrid and scores[Mode.KEYWORD] >= (expected.keyword or 0)
        print(
            f"{name:20}{expected.measure.__name__:14}{scores[Mode.KEYWORD]:9.3f}{scores[Mode.DENSE]:9.3f}"
            f"{scores[Mode.HYBRID]:9.3f}{expected.hybrid:9.3f}{measured.milliseconds:6.1f}  {expected.beside}"
        )
    await embedder.close()
    return reached


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="directory of the question sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--dense-weight", type=float, help="of the vectors; the model's own without it")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "bench-vectors.npz", help="file for the vectors"
    )
    raise SystemExit(0 if asyncio.run(run(parser.parse_args())) else 1)


if __name__ == "__main__":
    main()
