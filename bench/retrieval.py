"""How well what answers is found: `python -m bench.retrieval [--data PATH] [--sets NAME …]`.

Documents are split as the bot splits them, stored in LanceDB, and searched in each mode as the bot searches. Where a
set says which documents answer, a document stands where its best passage stands. Where it says which characters do,
the passages themselves are looked at: whether one of the first five holds the answer's beginning, or how much of what
answers stands in the first five together.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.corpus import SCOPE, Relevant, Vectors, cut_up, headed, load, rows
from bench.table import Figure, Options, detail, main
from ingest.parts import Part
from ingest.split import split
from storage.embeddings import BundledEmbedder
from storage.knowledge import Mode, Query
from storage.lance import LanceStore
from storage.models import Hit, Passage
from storage.terms import content_terms, cut

DEPTH = 100  # passages asked for
FIRST = 5  # passages that a span must stand in

Ranking = Sequence[str]
Measure = Callable[[Ranking, Relevant], float]
Judge = Callable[[Sequence[Hit]], float]


def ndcg_at_10(ranking: Ranking, relevant: Relevant) -> float:
    gain = sum(relevant.get(document, 0) / math.log2(place + 2) for place, document in enumerate(ranking[:10]))
    best = sorted(relevant.values(), reverse=True)[:10]
    return gain / sum(grade / math.log2(place + 2) for place, grade in enumerate(best))


def mrr_at_10(ranking: Ranking, relevant: Relevant) -> float:
    return next((1 / place for place, document in enumerate(ranking[:10], 1) if document in relevant), 0.0)


def recall_at_20(ranking: Ranking, relevant: Relevant) -> float:
    return len(relevant.keys() & set(ranking[:20])) / len(relevant)


@dataclass(frozen=True)
class Expected:
    measure: str
    hybrid: float
    beside: str
    keyword: float | None = None


SETS = {
    "xquad_en": Expected("MRR@10", 0.975, "BM25 .956"),
    "xquad_zh": Expected("MRR@10", 0.945, "FTS5 trigram .791"),
    "anthropic_codebase": Expected("recall@20", 0.865, "BM25 .83"),
    "cranfield": Expected("nDCG@10", 0.425, "MiniLM alone .400"),
    "scifact": Expected("nDCG@10", 0.73, "BGE-base alone .741, BM25 .679", keyword=0.69),
    "covidqa_longdoc": Expected("answer span hit@5", 0.75, "BM25 .722"),
    "chroma_chunking": Expected("character recall@5", 0.85, "BM25 .831"),
}
MEASURES: Mapping[str, Measure] = {"MRR@10": mrr_at_10, "recall@20": recall_at_20, "nDCG@10": ndcg_at_10}


@dataclass(frozen=True)
class Question:
    text: str
    judge: Judge


@dataclass(frozen=True)
class Judged:
    passages: Sequence[Passage]
    questions: Sequence[Question]


def load_judged(name: str, folder: Path) -> Judged:
    if name == "covidqa_longdoc":
        return _with_answers(folder)
    if name == "chroma_chunking":
        return _with_excerpts(folder)
    return _with_documents(folder, MEASURES[SETS[name].measure])


def _with_documents(folder: Path, measure: Measure) -> Judged:
    found = load(folder)
    split_up = {id: cut_up(id, headed(*document)) for id, document in found.documents.items()}
    owner = {passage.document: id for id, some in split_up.items() for passage in some}

    def judge(relevant: Relevant) -> Judge:
        return lambda hits: measure(list(dict.fromkeys(owner[hit.passage.document] for hit in hits)), relevant)

    questions = [Question(text, judge(found.relevant[id])) for id, text in found.questions.items()]
    return Judged([passage for some in split_up.values() for passage in some], questions)


class Spans:
    """Long documents, whose passages are known by the characters that they hold."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self._places: dict[str, tuple[str, int, int]] = {}

    def add(self, id: str, text: str, title: str = "") -> None:
        """The title is put before the text and counts as no character of it."""
        whole = headed(title, text)
        offsets, offset = {}, len(text) - len(whole)
        for section in split([Part(None, "", whole)]):
            offsets[section.number] = offset
            offset += len(section.text)
        for passage in cut_up(id, whole):
            start = offsets[passage.section]
            self._places[passage.id] = id, start + passage.start, start + passage.end
            self.passages.append(passage)

    def covered(self, hits: Sequence[Hit], id: str) -> set[int]:
        """The characters of this document that the first passages hold."""
        return {at for start, end in self._first(hits, id) for at in range(start, end)}

    def holds(self, hits: Sequence[Hit], id: str, character: int) -> bool:
        return any(start <= character < end for start, end in self._first(hits, id))

    def _first(self, hits: Sequence[Hit], id: str) -> list[tuple[int, int]]:
        places = [self._places[hit.passage.id] for hit in hits[:FIRST]]
        return [(start, end) for document, start, end in places if document == id]


def _with_answers(folder: Path) -> Judged:
    """The answer's first character stands in one of the first passages, which are those of all documents."""
    spans = Spans()
    for row in rows(folder / "corpus.jsonl"):
        spans.add(row["_id"], row["text"], row["title"])

    def judge(document: str, start: int) -> Judge:
        return lambda hits: float(spans.holds(hits, document, start))

    asked = [Question(row["text"], judge(row["doc"], row["answer_start"])) for row in rows(folder / "queries.jsonl")]
    return Judged(spans.passages, asked)


def _with_excerpts(folder: Path) -> Judged:
    """The share of the excerpts' characters that stands in the first passages."""
    spans = Spans()
    for path in sorted((folder / "corpora").iterdir()):
        spans.add(path.name, path.read_text())

    def judge(document: str, wanted: frozenset[int]) -> Judge:
        return lambda hits: len(wanted & spans.covered(hits, document)) / len(wanted)

    asked = []
    for row in rows(folder / "queries.jsonl"):
        ranges = [range(each["start_index"], each["end_index"]) for each in row["references"]]
        asked.append(Question(row["text"], judge(f"{row['corpus_id']}.md", frozenset().union(*ranges))))
    return Judged(spans.passages, asked)


@dataclass(frozen=True)
class Measured:
    scores: Mapping[Mode, float]
    milliseconds: float
    passages: int
    questions: int


async def measure_set(name: str, judged: Judged, vectors: Vectors, dense_weight: float) -> Measured:
    entries = await vectors.entries(judged.passages)
    question_vectors = await vectors.of([question.text for question in judged.questions])
    with tempfile.TemporaryDirectory() as directory:
        store = await LanceStore.open(Path(directory), name)
        await store.add(entries)
        await store.compact()
        scores: dict[Mode, float] = {}
        seconds: list[float] = []
        for mode in Mode:
            found: list[float] = []
            for question, vector in zip(judged.questions, question_vectors, strict=True):
                started = time.perf_counter()
                terms = content_terms(question.text) or cut(question.text)
                hits = await store.search(Query(SCOPE, terms, vector, mode, DEPTH, dense_weight=dense_weight))
                seconds.append(time.perf_counter() - started)
                found.append(question.judge(hits))
            scores[mode] = statistics.fmean(found)
        await store.close()
    return Measured(scores, statistics.median(seconds) * 1000, len(entries), len(judged.questions))


async def measure(options: Options) -> list[Figure]:
    embedder = BundledEmbedder()
    vectors = Vectors(embedder, options.cache)
    found: list[Figure] = []
    for name in options.sets:
        expected = SETS[name]
        if not (options.data / name / "queries.jsonl").exists():
            found.append(Figure(f"{name}, {expected.measure}", None, note="the set is not there"))
            continue
        measured = await measure_set(name, load_judged(name, options.data / name), vectors, embedder.dense_weight)
        detail(f"{name}: {measured.passages:,} passages, {measured.milliseconds:.1f} ms a search")
        found += _figures(name, expected, measured)
    await embedder.close()
    return found


def _figures(name: str, expected: Expected, measured: Measured) -> list[Figure]:
    scores = measured.scores
    what = f"{name}, {expected.measure}"
    note = f"dense alone {scores[Mode.DENSE]:.3f}; {expected.beside}; {measured.questions:,} questions"
    return [
        Figure(f"{what}, hybrid", scores[Mode.HYBRID], least=expected.hybrid, note=note),
        Figure(f"{what}, keyword", scores[Mode.KEYWORD], least=expected.keyword),
    ]


if __name__ == "__main__":
    main("retrieval", __doc__, measure, list(SETS))
