from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from storage.database import open_database, sqlite_url
from storage.embeddings import BundledEmbedder
from tests.agent.library import Asking, Library, open_agent, open_library
from tests.fake_openai import FakeOpenAI, fake_openai


@pytest.fixture(scope="package")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its schema, made once: bringing it up takes longer than a test."""
    path = tmp_path_factory.mktemp("empty") / "app.sqlite"

    async def make() -> None:
        async with open_database(sqlite_url(path)):
            pass

    asyncio.run(make())
    return path


@pytest.fixture(scope="package")
def embedder() -> Iterator[BundledEmbedder]:
    embedder = BundledEmbedder()
    yield embedder
    asyncio.run(embedder.close())


@pytest.fixture
async def library(tmp_path: Path, empty_database: Path, embedder: BundledEmbedder) -> AsyncIterator[Library]:
    shutil.copy(empty_database, tmp_path / "app.sqlite")
    async with open_library(tmp_path, embedder) as opened:
        yield opened


@pytest.fixture
async def asking(library: Library, tmp_path: Path) -> AsyncIterator[Asking]:
    """An agent without a model."""
    async with open_agent(library, tmp_path) as opened:
        yield opened


@pytest.fixture
async def openai() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai() as fake:
        yield fake
