from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.page.desk import Desk, private_channel
from tests.running import RunningBot

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = {"QUESTIONS_PER_MINUTE": "1000"}
SEEN_SECONDS = 20  # until the page shows what it should
_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """For this package alone: its event loop would be in the way of asynchronous tests."""
    if not CHROMIUM.exists():
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    expect.set_options(timeout=SEEN_SECONDS * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]) -> Iterator[RunningBot]:
    bot = RunningBot(tmp_path_factory.mktemp("page"), free_port(), SETTINGS)
    bot.start()
    yield bot
    bot.stop()


@pytest.fixture
def channel(bot: RunningBot) -> str:
    """A channel that Ada and Ben alone can read: what other tests have posted serves no question in it."""
    return private_channel(bot, f"team-{next(_numbers)}")


@pytest.fixture
def desk(browser: Browser, bot: RunningBot) -> Iterator[Desk]:
    """People in front of the page. No browser may complain, of a blocked script or of anything else."""
    desk = Desk(browser, bot.url)
    yield desk
    desk.leave()
    assert desk.complaints == []
