from __future__ import annotations

import contextlib
import gc
import json
import logging
import socket
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from bot.__main__ import OURS
from tests.weaviate_server import WeaviateServer

REAL = Path(__file__).parents[2] / "shared" / "data"


def pytest_configure() -> None:
    gc.set_threshold(50_000, 20, 20)  # as in a bot that serves: a tenth of a test's time went into looking for garbage


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips", action="store_true", help="a skipped test fails: for CI, where nothing may be missing"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and item.config.getoption("--no-skips") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped: {report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def log_levels() -> None:
    """The command line sets them for its process: a test begins as if none had run in it."""
    for name in OURS:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def free_port(worker_id: str) -> Callable[[], int]:
    """Of ports that no system gives to an outgoing connection, so that one that was free stays so until it is bound.

    Each worker has its own, and each is named once.
    """
    worker = int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 0
    ports = iter(range(20_000 + worker * 1_500, 20_000 + (worker + 1) * 1_500))

    def find() -> int:
        for port in ports:
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
                return port
        pytest.fail("no free port is left")

    return find


@pytest.fixture(scope="session")
def weaviate(tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]) -> Iterator[WeaviateServer]:
    """One server for all tests. Who stops it, or shuts it off, starts one of their own."""
    server = WeaviateServer(tmp_path_factory.mktemp("weaviate"), free_port)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def real_file() -> Callable[[str], bytes]:
    """The content of a real document that doesn't come with the project."""

    def read(name: str) -> bytes:
        return _real(Path("files") / name).read_bytes()

    return read


@pytest.fixture(scope="session")
def real_corpus() -> Callable[[str], list[str]]:
    """The texts of a retrieval set that doesn't come with the project."""

    def read(name: str) -> list[str]:
        lines = _real(Path("qa") / name / "corpus.jsonl").read_text().splitlines()
        return [str(json.loads(line)["text"]) for line in lines]

    return read


def _real(path: Path) -> Path:
    if not (REAL / path).exists():
        pytest.skip(f"{path} is not on this machine")
    return REAL / path
