"""How long a search takes, and how that grows: `python -m bench.search`.

LanceDB with 1,000, 10,000 and 100,000 passages, hybrid, within one of ten channels. Terms and vectors are those of
real passages; where more are wanted than there are, they come again, the vector a little moved and words left out.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.clock import Clock, percentile
from bench.corpus import WORKSPACE, Vectors, cut_up
from bench.stage import Knowledge, knowledge
from bench.table import Figure, Options, detail, main
from storage.embeddings import BundledEmbedder
from storage.knowledge import CANDIDATES, Entry, Query, Vector
from storage.lance import LanceStore
from storage.models import Scope, channel_audience
from storage.terms import content_terms, cut

SIZES = (1_000, 10_000, 100_000)
CHANNELS = 10
QUESTIONS = 200
WARM = 20
AT_ONCE = 2_000
MOVED = 0.1  # the length of the noise, to a vector of length 1
KEPT = 0.9  # of the words


@dataclass(frozen=True)
class Searched:
    passages: int
    wall: Sequence[float]  # milliseconds
    processor: float


def multiplied(real: Sequence[Entry], most: int) -> Iterator[Entry]:
    """As they are at first, then again as other documents that are much alike."""
    chance = np.random.default_rng(1)
    for number in range(most):
        entry, again = real[number % len(real)], number // len(real)
        document = f"{entry.passage.document}{again}"
        audience = channel_audience(str(number % CHANNELS))
        passage = replace(entry.passage, document=document, audience=audience)
        if not again:
            yield replace(entry, passage=passage)
            continue
        terms = [term for term, kept in zip(entry.terms, chance.random(len(entry.terms)) < KEPT, strict=True) if kept]
        vector = entry.vector
        if vector is not None:
            noise = chance.standard_normal(len(vector)).astype(np.float32)
            vector = vector + MOVED * noise / np.linalg.norm(noise)
            vector = vector / np.linalg.norm(vector)
        yield Entry(passage, f"{entry.digest}{again}", terms, vector)


async def search(real: Sequence[Entry], questions: Sequence[tuple[str, Vector | None]], size: int) -> Searched:
    with tempfile.TemporaryDirectory() as directory:
        store = await LanceStore.open(Path(directory), "bench")
        waiting = list(multiplied(real, size))
        for start in range(0, size, AT_ONCE):
            await store.add(waiting[start : start + AT_ONCE])
        await store.compact()
        wall, processor = [], []
        for number, (text, vector) in enumerate(questions):
            scope = Scope(WORKSPACE, frozenset([channel_audience(str(number % CHANNELS))]))
            terms = content_terms(text) or cut(text)
            clock = Clock()
            with clock.running():
                hits = await store.search(Query(scope, terms, vector, limit=CANDIDATES))
            assert hits
            wall.append(1000 * clock.wall)
            processor.append(1000 * clock.processor)
        await store.close()
    return Searched(size, wall[WARM:] or wall, statistics.median(processor))


async def measure(options: Options) -> list[Figure]:
    known = knowledge(options)
    if known is None:
        return [Figure("search", None, note="the question sets are not there")]
    embedder = BundledEmbedder()
    vectors = Vectors(embedder, options.cache)
    sizes = (50, 500) if options.quick else SIZES
    real = await _entries(known, vectors, 10 if options.quick else SIZES[1])
    asked = known.questions[: 10 if options.quick else QUESTIONS + WARM]
    questions = list(zip(asked, await vectors.of(asked), strict=True))
    await embedder.close()
    found = []
    for size in sizes:
        found.append(await search(real, questions, size))
        detail(f"{size:,}: p50 {statistics.median(found[-1].wall):.1f} ms, processor {found[-1].processor:.1f} ms")
    return [figure for at, each in enumerate(found) for figure in _figures(each, found[at - 1] if at else None)]


async def _entries(known: Knowledge, vectors: Vectors, most: int) -> list[Entry]:
    passages = []
    for name, text in known.files:
        passages += cut_up(name, text)
        if len(passages) >= most:
            break
    return await vectors.entries(passages[:most])


def _figures(searched: Searched, before: Searched | None) -> list[Figure]:
    where = f"search at {searched.passages:,} passages"
    median = statistics.median(searched.wall)
    note = f"of the processor {searched.processor:.1f} ms"
    if before is not None:
        note += f"; {median / statistics.median(before.wall):.1f} × for {searched.passages / before.passages:.0f} ×"
    return [
        Figure(f"{where}, p50", median, "ms", note=note),
        Figure(f"{where}, p95", percentile(searched.wall, 95), "ms"),
    ]


if __name__ == "__main__":
    main("search", __doc__, measure)
