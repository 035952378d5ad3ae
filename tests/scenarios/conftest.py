from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.running import RunningBot
from tests.scenarios.papers import CONTRACTS, MEGABYTE, paper
from tests.scenarios.slack_stage import SlackStage, Workspace
from tests.scenarios.stage import Channel, Player, Post, Stage
from tests.scenarios.web_stage import WebStage
from tests.slack.server import SlackServer
from tests.weaviate_server import WeaviateServer

SIDES = [("web", "lance"), ("web", "weaviate"), ("slack", "lance")]
LARGEST_FILE = 4 * MEGABYTE
UNPACKED_MEGABYTES = 50
_tags = itertools.count(1)


@pytest.fixture(scope="session", params=SIDES, ids="-".join)
def side(request: pytest.FixtureRequest) -> tuple[str, str]:
    side: tuple[str, str] = request.param
    return side


@pytest.fixture(scope="session")
def platform(side: tuple[str, str]) -> str:
    return side[0]


@pytest.fixture(scope="session")
def store(side: tuple[str, str]) -> str:
    return side[1]


@pytest.fixture
def settings(store: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """What a bot is started with."""
    known = {
        "FILE_MEGABYTES": str(LARGEST_FILE / MEGABYTE),
        "FILE_UNPACKED_MEGABYTES": str(UNPACKED_MEGABYTES),
    }
    if store == "weaviate":
        server: WeaviateServer = request.getfixturevalue("weaviate")
        known |= {"WEAVIATE_URL": server.url, "WEAVIATE_GRPC_PORT": str(server.grpc_port)}
    return known


class Bots:
    """Bots that run side by side, each with a data directory of its own, started when they are needed first."""

    def __init__(
        self, make_home: Callable[[], Path], free_port: Callable[[], int], slack: Callable[[], SlackServer]
    ) -> None:
        self._make_home = make_home
        self._free_port = free_port
        self._slack = slack
        self._running: dict[str, RunningBot] = {}
        self._workspaces: dict[RunningBot, Workspace] = {}

    def called(self, name: str, settings: Mapping[str, str]) -> RunningBot:
        """Where `slack` is in the name, with a workspace of its own."""
        if name not in self._running:
            workspace = Workspace.founded(self._slack(), name) if "slack" in name else None
            known = {**settings, **(workspace.settings if workspace else {})}
            bot = self._running[name] = RunningBot(self._make_home(), self._free_port(), known)
            if workspace is not None:
                self._workspaces[bot] = workspace
            bot.start()
        return self._running[name]

    def workspace_of(self, bot: RunningBot) -> Workspace:
        return self._workspaces[bot]

    def stop(self) -> None:
        for bot in self._running.values():
            bot.stop()


@pytest.fixture(scope="session")
def bots(
    tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int], request: pytest.FixtureRequest
) -> Iterator[Bots]:
    bots = Bots(lambda: tmp_path_factory.mktemp("bot"), free_port, lambda: request.getfixturevalue("slack"))
    yield bots
    bots.stop()


@pytest.fixture
def bot(bots: Bots, platform: str, store: str, settings: dict[str, str]) -> RunningBot:
    """One bot for the suite on each store. A module whose documents everyone can read takes some of its own."""
    return bots.called(f"{platform} {store}", settings)


@pytest.fixture(scope="session")
def slack() -> Iterator[SlackServer]:
    with SlackServer() as server:
        yield server


@pytest.fixture
def stage_of(platform: str, bots: Bots, bot: RunningBot) -> Stage:
    tag = str(next(_tags))
    return WebStage(bot, tag) if platform == "web" else SlackStage(bot, tag, bots.workspace_of(bot))


@pytest.fixture
async def stage(stage_of: Stage, bot: RunningBot) -> AsyncIterator[Stage]:
    before = len(bot.log())
    async with stage_of as stage:
        yield stage
    assert "Traceback" not in bot.log()[before:], bot.log()[before:][-4000:]


@pytest.fixture
async def ada(stage: Stage) -> Player:
    return await stage.person("ada")


@pytest.fixture
async def ben(stage: Stage) -> Player:
    return await stage.person("ben")


@pytest.fixture
async def team(stage: Stage, ada: Player, ben: Player) -> Channel:
    """A knowledge channel that Ada and Ben alone can read. It knows nothing yet."""
    return await stage.make_channel("team", by=ada, members=[ada, ben])


class Shelves:
    """Channels that are stocked once for a bot and only read from then on."""

    def __init__(self) -> None:
        self._stocked: dict[str, Channel] = {}

    async def open(self, stage: Stage, name: str, papers: Sequence[str], readers: Sequence[Player]) -> Channel:
        librarian = await stage.person("librarian", known=True)
        members = [librarian, *readers]
        if name in self._stocked:
            await stage.change_channel(self._stocked[name], by=librarian, members=members)
        else:
            self._stocked[name] = await stage.make_channel(name, by=librarian, members=members)
            await librarian.share(self._stocked[name], *map(paper, papers))
        return self._stocked[name]


@pytest.fixture(scope="session")
def shelves_by_bot() -> dict[RunningBot, Shelves]:
    return defaultdict(Shelves)


@pytest.fixture
def shelves(bot: RunningBot, shelves_by_bot: dict[RunningBot, Shelves]) -> Shelves:
    return shelves_by_bot[bot]


@pytest.fixture
async def library(stage: Stage, shelves: Shelves, ada: Player, ben: Player) -> Channel:
    """A channel of Ada and Ben that knows the handbook. Nothing is posted to it or taken from it."""
    return await shelves.open(stage, "library", ["handbook.md"], [ada, ben])


@pytest.fixture
async def archive(stage: Stage, shelves: Shelves, ada: Player, ben: Player) -> Channel:
    """A channel of Ada and Ben that knows three contracts, each with a notice period of its own."""
    return await shelves.open(stage, "archive", CONTRACTS, [ada, ben])


@pytest.fixture
async def handbook(ada: Player, team: Channel) -> Post:
    """Ada has posted the handbook to the team's channel."""
    post, _ = await ada.shares(team, paper("handbook.md"))
    return post


@pytest.fixture
async def contracts(ada: Player, team: Channel) -> Post:
    """Ada has posted three contracts, each with a notice period of its own."""
    post, _ = await ada.shares(team, *map(paper, CONTRACTS))
    return post
