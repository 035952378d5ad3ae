from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.library import Asking, Library, open_agent, open_library
from tests.fake_openai import FakeOpenAI, fake_openai


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with open_library(tmp_path) as opened:
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
