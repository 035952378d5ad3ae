"""Whether the bot asks back when it should, and only then: `python -m bench.ambiguity`.

The cases in `ambiguity.jsonl` are small collections of documents, each with a question and the documents between which
it doesn't decide, none where it does. Those that are `held` were written after the rules, which were not changed
for them: to change a rule for one of them, give up its mark.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from agent.grading import NOT_FOUND_THRESHOLD, ambiguous, grade
from bench.corpus import AUDIENCE, Vectors, cut_up
from bench.table import Figure, Options, detail, main
from storage.embeddings import BundledEmbedder
from storage.knowledge import CANDIDATES, Query
from storage.lance import LanceStore
from storage.models import Hit, Passage, Scope
from storage.terms import cut

CASES = Path(__file__).with_name("ambiguity.jsonl")


@dataclass(frozen=True)
class Case:
    question: str
    documents: dict[str, str]
    ambiguous: list[str]
    held: bool
    note: str = ""


@dataclass(frozen=True)
class Outcome:
    case: Case
    options: tuple[str, ...]
    found: bool

    @property
    def right(self) -> bool:
        return sorted(self.options) == self.case.ambiguous


def load_cases() -> list[Case]:
    return [Case(**json.loads(line)) for line in CASES.read_text().splitlines()]


async def play(cases: Sequence[Case], vectors: Vectors, directory: Path) -> list[Outcome]:
    """Each case in a workspace of its own, searched as the bot searches."""
    store = await LanceStore.open(directory, "ambiguity")
    await store.add(await vectors.entries([each for at, case in enumerate(cases) for each in _passages(str(at), case)]))
    await store.compact()
    asked = await vectors.of([case.question for case in cases])
    outcomes = []
    for number, (case, vector) in enumerate(zip(cases, asked, strict=True)):
        scope = Scope(str(number), frozenset([AUDIENCE]))
        hits = await store.search(
            Query(scope, cut(case.question), vector, limit=CANDIDATES, dense_weight=BundledEmbedder.dense_weight)
        )
        outcomes.append(_outcome(case, hits))
    await store.close()
    return outcomes


def _outcome(case: Case, hits: Sequence[Hit]) -> Outcome:
    options = tuple(option.label for option in ambiguous(case.question, hits))
    return Outcome(case, options, grade(case.question, hits, NOT_FOUND_THRESHOLD).found)


def _passages(workspace: str, case: Case) -> list[Passage]:
    return [
        passage
        for name, text in case.documents.items()
        for passage in cut_up(name, text, workspace, markup=PurePath(name).suffix == ".md")
    ]


@dataclass(frozen=True)
class Score:
    precision: float
    recall: float
    exact: float  # with exactly the right documents


def score(outcomes: Sequence[Outcome]) -> Score:
    asked = [outcome for outcome in outcomes if outcome.options]
    wanted = [outcome for outcome in outcomes if outcome.case.ambiguous]
    both = [outcome for outcome in asked if outcome.case.ambiguous]
    return Score(
        precision=len(both) / len(asked) if asked else 1.0,
        recall=len(both) / len(wanted) if wanted else 1.0,
        exact=sum(outcome.right for outcome in outcomes) / len(outcomes),
    )


async def measure(options: Options) -> list[Figure]:
    embedder = BundledEmbedder()
    cases = load_cases()
    with tempfile.TemporaryDirectory() as directory:
        outcomes = await play(cases[:6] if options.quick else cases, Vectors(embedder, options.cache), Path(directory))
    await embedder.close()
    for outcome in outcomes:
        if not outcome.right or not outcome.found:
            detail(f"{outcome.case.question}: asked {outcome.options}, wanted {outcome.case.ambiguous}")
            detail(f"    found {outcome.found}{', held' if outcome.case.held else ''}")
    held = [outcome for outcome in outcomes if outcome.case.held]
    return [*_figures("own cases", outcomes, least=0.9), *_figures("held back from the rules", held)]


def _figures(name: str, outcomes: Sequence[Outcome], least: float | None = None) -> list[Figure]:
    """Of a dozen cases one is a twelfth: they stand beside the others, and aren't held to a limit."""
    if not outcomes:
        return []
    measured = score(outcomes)
    found = sum(outcome.found for outcome in outcomes)
    note = f"{len(outcomes)} cases; exactly the right documents {measured.exact:.2f}, found {found}"
    return [
        Figure(f"asked back rightly, {name}, precision", measured.precision, least=least, note=note),
        Figure(f"asked back rightly, {name}, recall", measured.recall, least=least, note=note),
    ]


if __name__ == "__main__":
    main("ambiguity", __doc__, measure)
