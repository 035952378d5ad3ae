from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.bolt_bot import BoltBot, Transport
from tests.slack.people import Person
from tests.slack.server import SlackServer
from tests.slack.workspace import App, Channel, Installation, Team, Timing


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with SlackServer(Timing(ack=0.5, retries=(0.0, 0.05, 0.1))) as server:
        yield server


@pytest.fixture
def acme(slack: SlackServer) -> Team:
    return slack.team("Acme")


@pytest.fixture
def ada(slack: SlackServer, acme: Team) -> Person:
    return slack.person(acme, "ada", is_admin=True)


@pytest.fixture
def ben(slack: SlackServer, acme: Team) -> Person:
    return slack.person(acme, "ben")


@pytest.fixture
def app(slack: SlackServer) -> App:
    return slack.app("Threadlore", commands=("/ask",), shortcuts=("learn", "help"))


@pytest.fixture
def installed(slack: SlackServer, app: App, ada: Person) -> Installation:
    return slack.install(app, by=ada)


@pytest.fixture
def team(slack: SlackServer, ada: Person, ben: Person, installed: Installation) -> Channel:
    """A public channel of Ada, Ben and the bot."""
    return slack.channel("team", by=ada, members=[ben, installed])


@pytest.fixture
def client(slack: SlackServer, installed: Installation) -> AsyncWebClient:
    return AsyncWebClient(installed.token, base_url=slack.api_url)


@pytest.fixture(params=["socket", "http"])
def transport(request: pytest.FixtureRequest) -> Transport:
    """A test that is about one of the two overrides it."""
    transport: Transport = request.param
    return transport


@pytest.fixture
async def bot(slack: SlackServer, installed: Installation, transport: Transport) -> AsyncIterator[BoltBot]:
    """It hears nothing until it connects, when its listeners are there."""
    bot = BoltBot(slack, installed, transport)
    yield bot
    await bot.close()
