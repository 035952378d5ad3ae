from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.conftest import embedder, empty_database
from tests.bot.web_stage import Served, serving

__all__ = ["embedder", "empty_database"]


@pytest.fixture
async def page(tmp_path: Path, empty_database: Path) -> AsyncIterator[Served]:
    shutil.copy(empty_database, tmp_path / "threadlore.sqlite")
    async with serving(tmp_path) as served:
        yield served
