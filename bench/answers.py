"""How good the answers are without a model: `python -m bench.answers --data PATH [--sets NAME …] [--sample N]`.

Each question is asked twice: of the whole set, and with the document that answers it taken out, its neighbours left in.
`right` is the share of quotations, among the questions that were answered, that hold the answer word for word.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.grading import NOT_FOUND_THRESHOLD, ambiguous, grade
from agent.quoting import quote
from bench.retrieval import DEPTH, SCOPE, Vectors, load, passages_of
from storage.embeddings import BundledEmbedder
from storage.knowledge import Entry, Query
from storage.lance import LanceStore
from storage.models import Hit, Version
from storage.terms import cut, digest, indexed_text

SETS = ("xquad_en", "xquad_zh", "cmrc2018_trial", "covidqa_longdoc", "scifact", "anthropic_codebase")
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_DOCUMENTS = 1500  # of a set; those that answer, and some of the others


@dataclass(frozen=True)
class Asked:
    """What became of one question. `right` is None where the set has no answers that could be quoted."""

    there: float  # the confidence
    away: float  # the same, where the document that answers is taken out
    right: bool | None
    in_first: bool
    asked_back: bool


@dataclass(frozen=True)
class AnswerSet:
    documents: dict[str, tuple[str, str]]
    questions: dict[str, str]
    relevant: dict[str, frozenset[str]]
    answers: dict[str, list[str]] = field(default_factory=dict)


def load_answers(path: Path, sample: int) -> AnswerSet:
    whole = load(path)
    chosen = random.Random(1).sample(sorted(whole.questions), min(sample, len(whole.questions)))
    relevant = {id: frozenset(whole.relevant[id]) for id in chosen}
    wanted = frozenset().union(*relevant.values())
    others = [id for id in whole.documents if id not in wanted][: max(0, _DOCUMENTS - len(wanted))]
    rows = (json.loads(line) for line in (path / "queries.jsonl").read_text().split("\n") if line)
    answers = {
        row["_id"]: row.get("answers") or ([row["answer"].strip()] if "answer_start" in row else []) for row in rows
    }
    return AnswerSet(
        documents={id: whole.documents[id] for id in (*sorted(wanted), *others)},
        questions={id: whole.questions[id] for id in chosen},
        relevant=relevant,
        answers={id: answers[id] for id in chosen},
    )


async def ask_all(name: str, some: AnswerSet, vectors: Vectors) -> list[Asked]:
    split_up = {id: passages_of(id, *document) for id, document in some.documents.items()}
    key = {id: found[0].key for id, found in split_up.items() if found}
    everything = [passage for found in split_up.values() for passage in found]
    texts = [indexed_text(passage) for passage in everything]
    known = await vectors.of(texts)
    entries = [
        Entry(each, digest(text), cut(text), vector)
        for each, text, vector in zip(everything, texts, known, strict=True)
    ]
    asked = list(some.questions)
    question_vectors = await vectors.of([some.questions[id] for id in asked])
    with tempfile.TemporaryDirectory() as directory:
        store = await LanceStore.open(Path(directory), name)
        await store.add(entries)
        await store.compact()
        outcomes = []
        for id, vector in zip(asked, question_vectors, strict=True):
            gold = frozenset(key[document] for document in some.relevant[id] if document in key)
            query = Query(SCOPE, cut(some.questions[id]), vector, limit=DEPTH, dense_weight=0.5)
            there = await store.search(query)
            away = await store.search(Query(SCOPE, query.terms, vector, limit=DEPTH, dead=gold, dense_weight=0.5))
            outcomes.append(_outcome(some.questions[id], some.answers[id], gold, there, away))
        await store.close()
    return outcomes


def _outcome(
    question: str, answers: Sequence[str], gold: frozenset[Version], there: Sequence[Hit], away: Sequence[Hit]
) -> Asked:
    quotes = [each.text for each in quote(question, there)]
    return Asked(
        there=grade(question, there).confidence,
        away=grade(question, away).confidence,
        right=any(answer in text for answer in answers for text in quotes) if answers else None,
        in_first=bool(there) and there[0].passage.key in gold,
        asked_back=bool(ambiguous(question, there)),
    )


def area_under_curve(there: Sequence[float], away: Sequence[float]) -> float:
    """How often a question whose answer is there is graded above one whose answer is not."""
    better = sum((one > other) + (one == other) / 2 for one in there for other in away)
    return better / (len(there) * len(away))


def share(of: Sequence[bool]) -> float:
    return sum(of) / len(of) if of else 0.0


def report(name: str, outcomes: Sequence[Asked]) -> None:
    there, away = [each.there for each in outcomes], [each.away for each in outcomes]
    quoted = [each for each in outcomes if each.right is not None]
    print(
        f"{name}: {len(outcomes)} questions, right document first {share([each.in_first for each in outcomes]):.2f}, "
        f"AUC {area_under_curve(there, away):.3f}, asked back {share([each.asked_back for each in outcomes]):.3f}"
    )
    if quoted:
        first = [bool(each.right) for each in quoted if each.in_first]
        print(
            f"  quotations that hold the answer: {share([bool(each.right) for each in quoted]):.3f} of all, "
            f"{share(first):.3f} where the right document is first"
        )
    for threshold in THRESHOLDS:
        answered = [bool(each.right) for each in quoted if each.there >= threshold]
        print(
            f"  at {threshold:.1f}{'*' if threshold == NOT_FOUND_THRESHOLD else ' '} found "
            f"{share([each >= threshold for each in there]):.3f}, answered though absent "
            f"{share([each >= threshold for each in away]):.3f}, right among answered "
            + (f"{share(answered):.3f}" if answered else "-")
        )


async def run(arguments: argparse.Namespace) -> None:
    embedder = BundledEmbedder()
    vectors = Vectors(embedder, arguments.cache)
    for name in arguments.sets:
        report(name, await ask_all(name, load_answers(arguments.data / name, arguments.sample), vectors))
    await embedder.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.answers", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="directory of the question sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--sample", type=int, default=300, help="questions of each set")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "bench-vectors.npz", help="file for the vectors"
    )
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
