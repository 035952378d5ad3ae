"""Real documents, most of them nasty, through `add`: each gets a verdict that is true, and what is indexed is there."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from ingest.limits import FileLimits
from tests.bot.shell import SETTINGS, Shell
from tests.fake_embeddings import FakeEmbeddings
from tests.running import RunningBot

FILES = Path(__file__).parents[3] / "shared" / "data" / "files"
MANIFEST = FILES / "MANIFEST.tsv"
LONGEST = 60.0  # seconds
MANY_PASSAGES = 5000  # whose vectors take their time
TELLING = 12  # characters of a phrase that can be searched for
NOT_READ = ("aud", "doc0", "img", "msg", "odp", "odt", "pages", "ppt0", "rtf", "zip01", "zip02")
FALLS_SHORT = {
    "csv02_semicolon.csv": "the manifest's row goes over two lines of the file",
    "pdf24_merged_cells.pdf": "needs text recognition",
    "pdf51_redp_2col_sampled.pdf": "tables of a PDF are read as lines",
}
ADVICE = r"^it (is|has|unpacks|took|needs) .*: (save|post|unpack|export|remove|split|run|open|convert)"


@dataclass(frozen=True)
class Real:
    name: str
    expect: str
    phrases: tuple[tuple[str, ...], ...]
    forbidden: tuple[str, ...]
    row: str


@dataclass
class Added:
    shell: Shell
    log: str
    verdicts: dict[str, dict[str, Any]]
    largest: int  # resident bytes of a child that read a file, at most
    _texts: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """As `docs DOCUMENT --text` prints it."""
        if name not in self._texts:
            self._texts[name] = self.shell.says("docs", self.verdicts[name]["document"], "--text")
        return self._texts[name]


def real_files() -> Iterator[Real]:
    if not MANIFEST.exists():
        return
    with MANIFEST.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            phrases = tuple(tuple(each.split("||")) for each in row["must_contain"].split(" && ") if each)
            forbidden = tuple(each for each in row["must_not_contain"].split(" && ") if each)
            yield Real(row["file"], row["expect"], phrases, forbidden, row["table_row"])


REAL = list(real_files())

pytestmark = [
    pytest.mark.timeout(400),  # the first of them waits for all files
    pytest.mark.skipif(not REAL, reason="the real files are not on this machine"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def added(tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]) -> AsyncIterator[Added]:
    """Every file, posted at once to one bot. An endpoint embeds, so that the tests don't wait for vectors."""
    home = tmp_path_factory.mktemp("real")
    async with FakeEmbeddings().serving() as server:
        settings = {**SETTINGS, "EMBEDDING_MODEL": "fake", "EMBEDDING_BASE_URL": server.url}
        bot = RunningBot(home, free_port(), settings)
        await asyncio.to_thread(bot.start)
        shell = Shell(home)
        adding = asyncio.create_task(asyncio.to_thread(shell.apart, "add", "--json", *_paths()))
        largest = 0
        while not adding.done():
            largest = max(largest, _largest_child(bot.pid))
            await asyncio.sleep(0.1)
        done = await adding
        verdicts = {each["name"]: each for each in map(json.loads, done.stdout.splitlines())}
        assert done.returncode == 1, "some are refused"
        yield Added(shell, bot.log(), verdicts, largest)
        assert await asyncio.to_thread(bot.stop) == 0


def _paths() -> list[str]:
    return [str(FILES / real.name) for real in REAL]


def _largest_child(pid: int) -> int:
    sizes = [0]
    for child in psutil.Process(pid).children(recursive=True):
        try:
            sizes.append(child.memory_info().rss)
        except psutil.Error:
            continue
    return max(sizes)


def _matches(reason: str) -> bool:
    return re.match(ADVICE, reason) is not None


def spaced(text: str) -> str:
    return " ".join(text.split())


def test_every_file_has_its_verdict_in_time_and_within_its_memory(added: Added) -> None:
    assert set(added.verdicts) == {real.name for real in REAL}
    slow = [each for each in added.verdicts.values() if each["seconds"] > LONGEST]
    assert [each["name"] for each in slow if each["passages"] < MANY_PASSAGES] == []
    assert added.largest < FileLimits().memory * 1.1
    assert "Traceback" not in added.log
    assert [line for line in added.log.splitlines() if " ERROR " in line] == []


@pytest.mark.parametrize("real", REAL, ids=lambda real: real.name)
def test_a_real_file_is_taken_in_as_its_manifest_says(added: Added, real: Real) -> None:
    found = added.verdicts[real.name]
    if found["verdict"] == "refused":
        assert real.expect in ("refuse", "any") or real.name.startswith(NOT_READ) or real.name in FALLS_SHORT
        assert found["passages"] == 0
        return
    assert real.expect != "refuse"
    text = added.text(real.name)
    assert found["passages"] > 0
    assert text.strip()
    assert [phrase for phrase in real.forbidden if phrase in text] == []
    if real.name in FALLS_SHORT:
        return
    flat = spaced(text)
    assert [each for each in real.phrases if not any(spaced(phrase) in flat for phrase in each)] == []
    assert real.row in text


@pytest.mark.parametrize("real", [real for real in REAL if real.expect == "refuse"], ids=lambda real: real.name)
def test_what_must_be_refused_is_refused(added: Added, real: Real) -> None:
    assert added.verdicts[real.name]["verdict"] == "refused"


def test_every_refusal_says_what_it_is_and_what_to_do(added: Added) -> None:
    reasons = {name: each["reason"] for name, each in added.verdicts.items() if each["verdict"] == "refused"}
    assert [(name, reason) for name, reason in reasons.items() if not _matches(reason)] == []


def test_what_is_indexed_is_found(added: Added) -> None:
    """By a phrase that its manifest says is in it."""
    asked = {
        phrase[0]: real.name
        for real in REAL
        for phrase in real.phrases[:1]
        if added.verdicts[real.name]["verdict"] != "refused"
        and real.name not in FALLS_SHORT
        and len(phrase[0]) >= TELLING
    }
    assert len(asked) > 40
    said = "\n".join(map(spaced, asked))
    found = added.shell.json("search", "--mode", "keyword", "--limit", "20", said=said)
    missed = [
        name
        for name, hits in zip(asked.values(), found, strict=True)
        if added.verdicts[name]["document"] not in {hit["document"] for hit in hits["hits"]}
    ]
    assert missed == []
