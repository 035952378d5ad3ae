"""How fast the bot starts, and what it holds at rest: `python -m bench.start`.

Time from `python -m bot run` to the first page that is answered, beside a Python that does nothing but import the
third-party modules which the bot has loaded by then; the two take turns. Then the memory of the bot at rest with its
children: resident (shared pages counted in each of them) and proportional (counted once).
"""

from __future__ import annotations

import contextlib
import http.client
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from bench.table import ROOT, Figure, Options, detail, main
from ingest.convert import WARM_AFTER_SECONDS
from ingest.warm import REST_AFTER_SECONDS

REPEATS = 7
PATIENCE = 60.0
REST = 0.05  # of a core, under which the bot is at rest
UNTIL_ALL_IS_THERE = WARM_AFTER_SECONDS + REST_AFTER_SECONDS + 2  # what reads files imports the last of it
MEGABYTE = 1024 * 1024
HELPS: tuple[list[str], ...] = ([], ["run"], ["add"], ["ask"], ["search"], ["docs"], ["doctor"])
IMPORT = """
import importlib, os, sys
for name in open(sys.argv[1]).read().split():
    importlib.import_module(name)
os._exit(0)
"""


class Bot:
    """`python -m bot run` on a directory; `seconds` after which its page answered."""

    def __init__(self, home: Path, program: Sequence[str] = ("-m", "bot")) -> None:
        self._port = _free_port()
        settings = {"PYTHONPATH": str(ROOT), "DATA_DIR": str(home / "data"), "PORT": str(self._port)}
        began = time.perf_counter()
        self.child = subprocess.Popen(
            [sys.executable, *program, "run"], cwd=home, env=settings, stderr=subprocess.DEVNULL
        )
        while not self._answers():
            if self.child.poll() is not None or time.perf_counter() - began > PATIENCE:
                raise RuntimeError("the bot doesn't start")
            time.sleep(0.005)
        self.seconds = time.perf_counter() - began
        self.processor = sum(psutil.Process(self.child.pid).cpu_times()[:2])  # without its children

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        with contextlib.closing(connection), contextlib.suppress(ConnectionError):
            connection.request("GET", "/")
            return connection.getresponse().status == 200
        return False

    def end(self) -> None:
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(PATIENCE)

    def memory(self) -> list[tuple[float, float]]:
        """Resident and proportional megabytes of the bot and each of its children, once nothing runs any more."""
        time.sleep(UNTIL_ALL_IS_THERE)
        parent = psutil.Process(self.child.pid)
        while (family := [parent, *parent.children(recursive=True)]) and _busy(family) > REST:
            pass
        return [(found.rss / MEGABYTE, found.pss / MEGABYTE) for found in (each.memory_full_info() for each in family)]


def _busy(family: Sequence[psutil.Process], seconds: float = 2.0) -> float:
    before = sum(sum(each.cpu_times()[:2]) for each in family)
    time.sleep(seconds)
    return float(sum(sum(each.cpu_times()[:2]) for each in family) - before) / seconds


@contextlib.contextmanager
def started(home: Path, program: Sequence[str] = ("-m", "bot")) -> Iterator[Bot]:
    bot = Bot(home, program)
    try:
        yield bot
    finally:
        bot.end()


def loaded_when_it_answers(home: Path) -> list[str]:
    names = home / "names"
    with started(home, ["-m", "bench.loaded", str(names)]) as bot:
        bot.child.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + PATIENCE
        while not names.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return names.read_text().split()


def loaded_by_help(home: Path, commands: Sequence[list[str]]) -> list[str]:
    names = home / "names-of-help"
    found: set[str] = set()
    for command in commands:
        program = [sys.executable, "-m", "bench.loaded", str(names), *command, "--help"]
        subprocess.run(program, cwd=home, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, check=True)
        found.update(names.read_text().split())
    return sorted(found)


def bare_import(home: Path, names: Path) -> tuple[float, float]:
    """Seconds, and seconds of the processor."""
    began, processor = time.perf_counter(), _of_children()
    subprocess.run([sys.executable, "-c", IMPORT, str(names)], cwd=home, env={}, check=True)
    return time.perf_counter() - began, _of_children() - processor


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def heaviest(home: Path, names: Path, most: int = 25) -> list[tuple[str, float]]:
    """The packages that take longest to import, each without what it imports of others; in milliseconds."""
    program = [sys.executable, "-X", "importtime", "-c", IMPORT, str(names)]
    told = subprocess.run(program, cwd=home, env={}, check=True, capture_output=True, text=True).stderr
    spent: Counter[str] = Counter()
    for line in told.splitlines():
        own, _, name = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            spent[name.strip().split(".")[0]] += int(own)
    return [(name, microseconds / 1000) for name, microseconds in spent.most_common(most)]


async def measure(options: Options) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        modules = loaded_when_it_answers(home)
        names = home / "modules"
        names.write_text("\n".join(modules))
        times = _take_turns(home, names, 1) if options.quick else [*_take_turns(home, names, REPEATS), _first_start()]
        helped = _help(loaded_by_help(home, HELPS[:1] if options.quick else HELPS))
        if options.quick:
            return [*times, helped]
        packages = sorted({name.split(".")[0] for name in modules})
        detail(f"loaded, {len(modules)} modules: {', '.join(packages)}")
        for name, milliseconds in heaviest(home, names):
            detail(f"{milliseconds:8.1f} ms  {name}")
        with started(home) as bot:
            return [*times, helped, *_memory(bot.memory())]


def _take_turns(home: Path, names: Path, repeats: int) -> list[Figure]:
    whole, bare = [], []
    for _ in range(repeats):
        with started(home) as bot:
            whole.append((bot.seconds, bot.processor))
        bare.append(bare_import(home, names))
    wall, processor = (
        statistics.median(one[at] / other[at] for one, other in zip(whole, bare, strict=True)) for at in (0, 1)
    )
    imported = statistics.median(seconds for seconds, _ in bare)
    beside = f"bare import of the same modules {imported:.2f} s; by processor time {processor:.2f} ×; {repeats} pairs"
    return [
        Figure("start to a page that answers, to bare import", wall, "×", most=1.5, note=beside),
        Figure("start to a page that answers", statistics.median(seconds for seconds, _ in whole), "s"),
    ]


def _first_start() -> Figure:
    seconds = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as fresh, started(Path(fresh)) as bot:
            seconds.append(bot.seconds)
    return Figure("first start: the database is made", statistics.median(seconds), "s")


def _memory(found: Sequence[tuple[float, float]]) -> list[Figure]:
    each = " + ".join(f"{resident:.0f}" for resident, _ in found)
    shared = sum(proportional for _, proportional in found)
    note = f"{each}; {shared:.0f} MB where what they share is counted once"
    return [Figure("resident at rest, children included", sum(one for one, _ in found), "MB", most=600, note=note)]


def _help(modules: Sequence[str]) -> Figure:
    return Figure("third-party modules that `--help` imports", len(modules), most=0, note=", ".join(modules[:5]))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main("start", __doc__, measure)
