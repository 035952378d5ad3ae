"""Whether the bot asks back when it should, and only then: `python -m bench.ambiguity`.

The cases in `ambiguity.jsonl` are small collections of documents, each with a question and the documents between which
it doesn't decide, none where it does. Those that are `held` were written after the rules, which were not changed
for them: to change a rule for one of them, give up its mark.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from agent.grading import NOT_FOUND_THRESHOLD, ambiguous, grade
from bench.retrieval import DEPTH, Vectors
from ingest.parts import Part
from ingest.split import passages, split
from storage.embeddings import BundledEmbedder
from storage.knowledge import Entry, Query
from storage.lance import LanceStore
from storage.models import Document, DocumentState, Hit, Scope
from storage.terms import cut, digest, indexed_text

CASES = Path(__file__).with_name("ambiguity.jsonl")
_AUDIENCE = "channel:bench"


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
    entries = [entry for number, case in enumerate(cases) for entry in _entries(str(number), case)]
    found = await vectors.of([indexed_text(entry.passage) for entry in entries])
    await store.add(
        [Entry(entry.passage, entry.digest, entry.terms, vector) for entry, vector in zip(entries, found, strict=True)]
    )
    await store.compact()
    asked = await vectors.of([case.question for case in cases])
    outcomes = []
    for number, (case, vector) in enumerate(zip(cases, asked, strict=True)):
        scope = Scope(str(number), frozenset([_AUDIENCE]))
        hits = await store.search(Query(scope, cut(case.question), vector, limit=DEPTH, dense_weight=0.5))
        outcomes.append(_outcome(case, hits))
    await store.close()
    return outcomes


def _outcome(case: Case, hits: Sequence[Hit]) -> Outcome:
    options = tuple(option.label for option in ambiguous(case.question, hits))
    return Outcome(case, options, grade(case.question, hits, NOT_FOUND_THRESHOLD).found)


def _entries(workspace: str, case: Case) -> list[Entry]:
    return [
        Entry(passage, digest(indexed_text(passage)), cut(indexed_text(passage)), None)
        for name, text in case.documents.items()
        for passage in passages(
            _document(workspace, name, text), split([Part(None, "", text, markup=PurePath(name).suffix == ".md")])
        )
    ]


def _document(workspace: str, name: str, text: str) -> Document:
    return Document(
        document=digest(workspace + name)[:20],
        version=1,
        workspace=workspace,
        channel="bench",
        audience=_AUDIENCE,
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


async def run(cache: Path) -> None:
    embedder = BundledEmbedder()
    with tempfile.TemporaryDirectory() as directory:
        outcomes = await play(load_cases(), Vectors(embedder, cache), Path(directory))
    await embedder.close()
    for outcome in outcomes:
        if not outcome.right or not outcome.found:
            print(f"{outcome.case.question}: asked {outcome.options}, wanted {outcome.case.ambiguous}")
            print(f"    found {outcome.found}{', held' if outcome.case.held else ''}")
    for name, some in (("all", outcomes), ("held", [outcome for outcome in outcomes if outcome.case.held])):
        measured = score(some)
        print(
            f"{name}: {len(some)} cases, precision {measured.precision:.2f}, recall {measured.recall:.2f}, "
            f"exactly right {measured.exact:.2f}, found {sum(outcome.found for outcome in some)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ambiguity", description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "bench-vectors.npz")
    asyncio.run(run(parser.parse_args().cache))


if __name__ == "__main__":
    main()
