from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.database import open_database, sqlite_url
from tests.agent.conftest import embedder, empty_database
from tests.bot.web_stage import Served, serving

__all__ = ["embedder", "empty_database"]


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its schema and nothing in it: making one takes longer than most tests."""
    path = tmp_path_factory.mktemp("blank") / "threadlore.sqlite"

    async def make() -> None:
        async with open_database(sqlite_url(path)):
            pass

    asyncio.run(make())
    return path


@pytest.fixture
async def page(tmp_path: Path, blank: Path) -> AsyncIterator[Served]:
    shutil.copy(blank, tmp_path)
    async with serving(tmp_path) as served:
        yield served
