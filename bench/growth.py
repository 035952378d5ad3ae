"""What a turn leaves on the disk: `python -m bench.growth`.

A hundred turns are asked of the real core, without a model, and the pages of its databases are counted by `dbstat`
after every tenth: the slope is what one turn leaves in journal, replies and checkpoints together, once all that is
swept is swept. Beside it a bare LangGraph graph with as many nodes and as much evidence, on LangGraph's own saver.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.bare import EVIDENCE, NODES, bare
from bench.stage import Knowledge, Stage, knowledge, stage
from bench.table import Figure, Options, detail, main

PASSAGES = 1_000
KILOBYTE = 1024
DATABASES = ("app.sqlite", "checkpoints.sqlite")


def pages(folder: Path) -> Counter[str]:
    """Bytes of the pages that each table and each of its keys holds."""
    found: Counter[str] = Counter()
    for name in DATABASES:
        connection = sqlite3.connect(folder / name)
        for table, size in connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"):
            found[f"{name.removesuffix('.sqlite')}.{table}"] = size
        connection.close()
    return found


def slope(counts: Sequence[tuple[int, float]]) -> float:
    turns, sizes = zip(*counts, strict=True)
    return float(np.polyfit(turns, sizes, 1)[0])


async def grow(stage: Stage, known: Knowledge, turns: int, threads: int) -> dict[str, float]:
    """Bytes a turn by table, each question in the next of so many threads."""
    counted: list[tuple[int, Counter[str]]] = []
    step = max(1, turns // 10)
    for turn in range(turns + 1):
        await stage.ask(known.questions[turn % len(known.questions)], f"t{turn % threads}")
        if turn % step == 0:
            await stage.settle()
            counted.append((turn, pages(stage.folder)))
    tables = sorted(counted[-1][1])
    return {table: slope([(turn, found[table]) for turn, found in counted]) for table in tables}


async def _measure(known: Knowledge, options: Options, threads: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        async with stage(Path(directory), known, 50 if options.quick else PASSAGES, options.cache) as staged:
            found = await grow(staged, known, 5 if options.quick else 100, threads)
            kinds = Counter(reply.kind for _, reply in staged.platform.sent)
    detail(f"replies in {threads} threads: {dict(kinds)}")
    for table, size in sorted(found.items(), key=lambda item: -item[1]):
        if size > 1:
            detail(f"{size:9,.0f} bytes a turn  {table}")
    return found


async def _bare_growth(turns: int) -> float:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        sqlite3.connect(folder / "app.sqlite").close()
        counted = []
        async with bare(folder / "checkpoints.sqlite") as ask:
            for turn in range(turns + 1):
                await ask("t")
                if turn % max(1, turns // 10) == 0:
                    counted.append((turn, float(pages(folder).total())))
        return slope(counted)


def _share(found: Mapping[str, float]) -> str:
    parts = {"checkpoints": 0.0, "journal": 0.0, "messages": 0.0, "the rest": 0.0}
    for table, size in found.items():
        name = next((part for part in parts if part in table), "the rest")
        parts[name] += size / KILOBYTE
    return ", ".join(f"{name} {size:.1f}" for name, size in parts.items())


async def measure(options: Options) -> list[Figure]:
    known = knowledge(options)
    if known is None:
        return [Figure("what a turn leaves", None, note="the question sets are not there")]
    one = await _measure(known, options, threads=1)
    many = await _measure(known, options, threads=100)
    peer = await _bare_growth(5 if options.quick else 100) / KILOBYTE
    beside = f"bare LangGraph, {NODES} nodes and {EVIDENCE / 1000:.0f} KB of evidence: {peer:.0f} KB"
    return [
        Figure(
            "what a turn leaves, 100 turns in one thread",
            sum(one.values()) / KILOBYTE,
            "KB",
            most=6,
            note=f"{_share(one)}; {beside}",
        ),
        Figure("what a turn leaves, a thread each", sum(many.values()) / KILOBYTE, "KB", note=_share(many)),
    ]


if __name__ == "__main__":
    main("growth", __doc__, measure)
