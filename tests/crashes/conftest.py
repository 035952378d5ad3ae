from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.crashes.client import Client, client_of
from tests.crashes.crashing import CrashingBot
from tests.crashes.remains import SECONDS, astray, settled, unclosed
from tests.crashes.steps import Stop
from tests.fake_openai import FakeOpenAI, fake_openai


@dataclass
class Stage:
    """A bot that is stopped at steps, and a person who goes on whatever happens to it."""

    bot: CrashingBot
    person: Client

    async def recovers(self) -> None:
        """The bot comes to the step where it is stopped, and is started again."""
        await asyncio.to_thread(self.bot.wait_for_the_crash)
        await self.starts()

    async def crashes_again(self) -> None:
        """The bot comes to the step, and is started again to come there once more: maybe before it is ready."""
        await asyncio.to_thread(self.bot.wait_for_the_crash)
        await asyncio.to_thread(self.bot.launch)

    async def starts(self) -> None:
        await asyncio.to_thread(self.bot.start)

    async def settles(self) -> None:
        await settled(self.bot.data)

    async def is_tidy(self) -> None:
        """Nothing is left of what has ended, a moment after it did."""
        deadline = time.monotonic() + SECONDS
        while (left := unclosed(self.bot.data)) and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        assert left == []

    async def is_clean(self, seconds: float = SECONDS) -> None:
        """The store holds what the catalog says, and no more, as soon as it was cleaned."""
        async with asyncio.timeout(seconds):
            while await astray(self.bot.data):
                await asyncio.sleep(0.1)

    def stop_at(self, step: str, when: str, *words: str, each_time: bool = False) -> None:
        self.bot.stop_at(Stop(step, "before" if when == "before" else "after", words, each_time))


@contextlib.asynccontextmanager
async def staged(home: Path, port: int, settings: Mapping[str, str]) -> AsyncIterator[Stage]:
    bot = CrashingBot(home, port, settings)
    async with client_of(bot.url) as person:
        stage = Stage(bot, person)
        await stage.starts()
        try:
            yield stage
        finally:
            await asyncio.to_thread(bot.kill)
    assert "Traceback" not in bot.log(), bot.log()[-4000:]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]) -> AsyncIterator[Stage]:
    """One bot for the tests of a module; it has no model."""
    async with staged(tmp_path_factory.mktemp("bot"), free_port(), {}) as stage:
        yield stage


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def modelled(
    tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int], openai: FakeOpenAI
) -> AsyncIterator[Stage]:
    """One bot for the tests of a module; its model is `openai`."""
    settings = {"OPENAI_BASE_URL": openai.url, "OPENAI_API_KEY": "secret"}
    async with staged(tmp_path_factory.mktemp("bot"), free_port(), settings) as stage:
        yield stage


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def openai() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai() as fake:
        yield fake
