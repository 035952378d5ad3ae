"""Figures, each beside its limit or its peer, and the one way in which every module of the bench prints them."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

REAL = Path(__file__).parents[2] / "shared" / "data"  # where the project's neighbours have them
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Figure:
    """`value` is None where it could not be measured: `note` then says why."""

    what: str
    value: float | None
    unit: str = ""
    least: float | None = None
    most: float | None = None
    note: str = ""  # the peer's figure, or what else it stands beside

    @property
    def holds(self) -> bool | None:
        """None where there is no limit, or nothing was measured."""
        if self.value is None or (self.least is None and self.most is None):
            return None
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    @property
    def limit(self) -> str:
        return " ".join(f"{sign} {shown(x)}" for sign, x in (("≥", self.least), ("≤", self.most)) if x is not None)


@dataclass(frozen=True)
class Options:
    """`quick`: as little as shows that it works; its figures say nothing."""

    data: Path
    files: Path
    cache: Path
    quick: bool
    sets: Sequence[str]

    def of(self, sets: Sequence[str]) -> Options:
        return replace(self, sets=sets)


Measure = Callable[[Options], Coroutine[None, None, Sequence[Figure]]]


def shown(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def markdown(rows: Sequence[tuple[str, Figure]]) -> str:
    """A table; the first of each row is the command that measures it."""
    lines = ["| what | figure | limit | holds | beside | command |", "|---|---|---|---|---|---|"]
    for command, figure in rows:
        value = "–" if figure.value is None else f"{shown(figure.value)} {figure.unit}".strip()
        holds = {True: "yes", False: "**no**", None: "–" if figure.limit else ""}[figure.holds]
        lines.append(f"| {figure.what} | {value} | {figure.limit} | {holds} | {figure.note} | `{command}` |")
    return "\n".join(lines)


def machine() -> str:
    """What the figures were measured on."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"{os.cpu_count()} cores, {_processor()}, Python {platform.python_version()}, load average {load}"


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def detail(text: str) -> None:
    """What stands behind a figure, for who watches."""
    print(text, file=sys.stderr)


def common() -> argparse.ArgumentParser:
    """The options that every command of the bench has."""
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("--data", type=Path, default=REAL / "qa", help="directory of the question sets")
    made.add_argument("--files", type=Path, default=REAL / "files", help="directory of the files")
    made.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "bench-vectors.npz", help="file for the vectors"
    )
    made.add_argument("--quick", action="store_true", help="as little as shows that it works")
    made.add_argument("--json", action="store_true", help="a figure a line, as JSON")
    return made


def main(name: str, description: str | None, measure: Measure, sets: Sequence[str] = ()) -> None:
    """The command line of one module. Exit status 1 where a figure misses its limit."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=description, parents=[common()])
    if sets:
        parser.add_argument("--sets", nargs="+", choices=sets, default=list(sets))
    arguments = parser.parse_args()
    options = Options(arguments.data, arguments.files, arguments.cache, arguments.quick, arguments.sets if sets else ())
    figures = asyncio.run(measure(options))
    if arguments.json:
        for figure in figures:
            print(json.dumps(figure.as_json()))
    else:
        print(markdown([(f"python -m bench.{name}", figure) for figure in figures]))
        print(f"\n{machine()}")
    raise SystemExit(1 if not options.quick and any(figure.holds is False for figure in figures) else 0)
