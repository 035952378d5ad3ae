"""How good the answers are without a model: `python -m bench.answers [--data PATH] [--sets NAME …]`.

Each question is asked twice: of the whole set, and with the document that answers it taken out, its neighbours left in.
`right` is the share of quotations, among the questions that were answered, that hold the answer word for word.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.grading import NOT_FOUND_THRESHOLD, ambiguous, grade
from agent.quoting import quote
from bench.corpus import SCOPE, Vectors, cut_up, headed, load, rows
from bench.table import Figure, Options, detail, main
from storage.embeddings import BundledEmbedder
from storage.knowledge import CANDIDATES, Query
from storage.lance import LanceStore
from storage.models import Hit, Version
from storage.terms import cut

SETS = ("xquad_en", "xquad_zh", "cmrc2018_trial", "covidqa_longdoc", "scifact", "anthropic_codebase")
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
SAMPLE = 300  # questions of a set
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
    answers = {
        row["_id"]: row.get("answers") or ([row["answer"].strip()] if "answer_start" in row else [])
        for row in rows(path / "queries.jsonl")
    }
    return AnswerSet(
        documents={id: whole.documents[id] for id in (*sorted(wanted), *others)},
        questions={id: whole.questions[id] for id in chosen},
        relevant=relevant,
        answers={id: answers[id] for id in chosen},
    )


async def ask_all(name: str, some: AnswerSet, vectors: Vectors) -> list[Asked]:
    split_up = {id: cut_up(id, headed(*document)) for id, document in some.documents.items()}
    key = {id: found[0].key for id, found in split_up.items() if found}
    asked = list(some.questions)
    question_vectors = await vectors.of([some.questions[id] for id in asked])
    with tempfile.TemporaryDirectory() as directory:
        store = await LanceStore.open(Path(directory), name)
        await store.add(await vectors.entries([passage for found in split_up.values() for passage in found]))
        await store.compact()
        outcomes = []
        for id, vector in zip(asked, question_vectors, strict=True):
            gold = frozenset(key[document] for document in some.relevant[id] if document in key)
            query = Query(
                SCOPE, cut(some.questions[id]), vector, limit=CANDIDATES, dense_weight=BundledEmbedder.dense_weight
            )
            there = await store.search(query)
            away = await store.search(
                Query(
                    SCOPE, query.terms, vector, limit=CANDIDATES, dead=gold, dense_weight=BundledEmbedder.dense_weight
                )
            )
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


def figures(name: str, outcomes: Sequence[Asked]) -> list[Figure]:
    there, away = [each.there for each in outcomes], [each.away for each in outcomes]
    quoted = [each for each in outcomes if each.right is not None]
    found = [
        Figure(
            f"{name}: found where the answer is there",
            share([each >= NOT_FOUND_THRESHOLD for each in there]),
            note=f"{len(outcomes)} questions, right document first {share([each.in_first for each in outcomes]):.2f}",
        ),
        Figure(
            f"{name}: honest “not found” where it is away",
            share([each < NOT_FOUND_THRESHOLD for each in away]),
            note=f"AUC {area_under_curve(there, away):.3f}",
        ),
    ]
    if not quoted:
        return found
    first = [bool(each.right) for each in quoted if each.in_first]
    note = f"{share(first):.3f} where the right document is first"
    return [Figure(f"{name}: quotations that hold the answer", _right(quoted), note=note), *found]


def _right(quoted: Sequence[Asked]) -> float:
    return share([bool(each.right) for each in quoted])


def tell_curve(name: str, outcomes: Sequence[Asked]) -> None:
    """What each threshold would come to."""
    detail(f"{name}: asked back {share([each.asked_back for each in outcomes]):.3f}")
    for threshold in THRESHOLDS:
        answered = [each for each in outcomes if each.right is not None and each.there >= threshold]
        detail(
            f"  at {threshold:.1f}{'*' if threshold == NOT_FOUND_THRESHOLD else ' '} found "
            f"{share([each.there >= threshold for each in outcomes]):.3f}, answered though absent "
            f"{share([each.away >= threshold for each in outcomes]):.3f}, right among answered {_right(answered):.3f}"
        )


async def measure(options: Options) -> list[Figure]:
    embedder = BundledEmbedder()
    vectors = Vectors(embedder, options.cache)
    found: list[Figure] = []
    for name in options.sets:
        if not (options.data / name / "queries.jsonl").exists():
            found.append(Figure(f"{name}: answers", None, note="the set is not there"))
            continue
        outcomes = await ask_all(name, load_answers(options.data / name, 5 if options.quick else SAMPLE), vectors)
        tell_curve(name, outcomes)
        found += figures(name, outcomes)
    await embedder.close()
    return found


if __name__ == "__main__":
    main("answers", __doc__, measure, SETS)
