"""Everything that is measured, one module after the other, as one table: `python -m bench`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from bench.table import ROOT, Figure, common, detail, machine, markdown

MODULES = ("retrieval", "answers", "ambiguity", "turn", "growth", "files", "start", "search")


def run(name: str, given: list[str]) -> list[Figure]:
    """The figures of one module, measured in a child."""
    began = time.monotonic()
    program = [sys.executable, "-m", f"bench.{name}", "--json", *given]
    child = subprocess.run(program, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    figures = [Figure(**json.loads(line)) for line in child.stdout.splitlines() if line.startswith("{")]
    detail(f"— {name}: {time.monotonic() - began:.0f} s")
    return figures or [Figure(name, None, note=f"ended with exit status {child.returncode}")]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, parents=[common()])
    parser.add_argument("--only", nargs="+", choices=MODULES, default=list(MODULES), help="these modules alone")
    parser.add_argument("--out", type=Path, help="a file for the table, beside standard output")
    arguments = parser.parse_args()
    given = [f"--{name}={getattr(arguments, name).resolve()}" for name in ("data", "files", "cache")]
    before = machine()
    rows = [
        (f"python -m bench.{name}", figure)
        for name in arguments.only
        for figure in run(name, [*given, *(["--quick"] if arguments.quick else [])])
    ]
    lines = [json.dumps({"command": command, **figure.as_json()}) for command, figure in rows]
    table = f"{markdown(rows)}\n\nBefore: {before}.\nAfter: {machine()}.\n"
    print("\n".join(lines) if arguments.json else table)
    if arguments.out:
        arguments.out.write_text(table)
    missed = [figure for _, figure in rows if figure.holds is False or (figure.value is None and figure.limit)]
    raise SystemExit(1 if missed and not arguments.quick else 0)


if __name__ == "__main__":
    main()
