"""How long a turn takes without a model: `python -m bench.turn`.

A turn goes the whole way, from a message that is received to the reply that stands: journal, lane, graph with its
checkpoints, store, delivery. What searching and embedding the question take inside it is measured by itself and left
out of the first figure. Then fifty threads ask at once, search included, beside a bare LangGraph graph with as many
nodes on the same saver; the two take turns.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench.bare import NODES, bare
from bench.clock import percentile
from bench.stage import Knowledge, Stage, Taken, knowledge, stage
from bench.table import Figure, Options, detail, main

PASSAGES, PASSAGES_AT_ONCE = 10_000, 1_000
WARM = 20  # turns before those that count
TURNS = 200
THREADS, EACH = 50, 4
ROUNDS = 3


async def one_by_one(staged: Stage, known: Knowledge, turns: int) -> list[Taken]:
    taken = []
    for number in range(-min(WARM, turns), turns):
        taken.append(await staged.ask(known.questions[number % len(known.questions)], f"t{number % 20}"))
        await staged.settle()
    return taken[-turns:]


async def at_once(staged: Stage, known: Knowledge, threads: int, again: int) -> float:
    """Turns a second."""

    async def talk(number: int) -> None:
        for turn in range(EACH):
            question = known.questions[(number * EACH + turn) % len(known.questions)]
            await staged.ask(question, f"round {again} thread {number}")

    began = time.perf_counter()
    await asyncio.gather(*(talk(number) for number in range(threads)))
    await staged.settle()
    return threads * EACH / (time.perf_counter() - began)


async def bare_at_once(folder: Path, threads: int, again: int) -> float:
    async with bare(folder / f"bare{again}.sqlite") as ask:

        async def talk(number: int) -> None:
            for _ in range(EACH):
                await ask(f"t{number}")

        began = time.perf_counter()
        await asyncio.gather(*(talk(number) for number in range(threads)))
        return threads * EACH / (time.perf_counter() - began)


async def _latency(known: Knowledge, options: Options) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        async with stage(Path(directory), known, 50 if options.quick else PASSAGES, options.cache) as staged:
            taken = await one_by_one(staged, known, 5 if options.quick else TURNS)
            where = f"a turn at {staged.passages:,} passages"
    beside, processor, whole, inside, first = (
        [1000 * seconds for seconds in column]
        for column in zip(
            *(
                (
                    each.whole.wall - each.inside.wall,
                    each.whole.processor - each.inside.processor,
                    each.whole.wall,
                    each.inside.wall,
                    each.first,
                )
                for each in taken
            ),
            strict=True,
        )
    )
    median = statistics.median
    note = f"p95 {percentile(beside, 95):.0f} ms; of the processor {median(processor):.0f} ms; {len(taken)} turns"
    searched = f"p95 {percentile(whole, 95):.0f} ms; search and embedding {median(inside):.0f} ms of it"
    return [
        Figure(f"{where}, beside search and embedding, p50", median(beside), "ms", most=60, note=note),
        Figure(f"{where}, p50", median(whole), "ms", note=searched),
        Figure(f"{where}, first event, p95", percentile(first, 95), "ms", most=100, note=f"p50 {median(first):.0f} ms"),
    ]


async def _throughput(known: Knowledge, options: Options) -> list[Figure]:
    threads, rounds = (3, 1) if options.quick else (THREADS, ROUNDS)
    ours, peer = [], []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        async with stage(folder, known, 50 if options.quick else PASSAGES_AT_ONCE, options.cache) as staged:
            for again in range(rounds):
                ours.append(await at_once(staged, known, threads, again))
                peer.append(await bare_at_once(folder, threads, again))
                detail(f"{threads} threads: {ours[-1]:.1f} turns a second, bare {peer[-1]:.1f}")
            size = staged.passages
    ratio = statistics.median(one / other for one, other in zip(ours, peer, strict=True))
    note = (
        f"{statistics.median(ours):.1f} turns a second against {statistics.median(peer):.1f} of {NODES} bare nodes; "
        f"{rounds} rounds at {size:,} passages"
    )
    return [Figure(f"{threads} threads × {EACH} turns at once, to bare LangGraph", ratio, "×", least=0.3, note=note)]


async def measure(options: Options) -> list[Figure]:
    known = knowledge(options)
    if known is None:
        return [Figure("a turn", None, note="the question sets are not there")]
    return [*await _throughput(known, options), *await _latency(known, options)]


if __name__ == "__main__":
    main("turn", __doc__, measure)
