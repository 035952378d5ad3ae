"""What is Slack's alone: tokens that it refuses, events that come again, calls that fail, members that change."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from bot.adapters.slack.platform import SlackNotStarted
from bot.app import App, open_app
from bot.settings import Settings
from tests.scenarios.slack_stage import Workspace
from tests.slack.faults import Lost, Status, TooMany
from tests.slack.people import Person
from tests.slack.seeing import Shown
from tests.slack.server import SlackServer
from tests.slack.uploads import Upload
from tests.slack.workspace import Channel, Timing

HANDBOOK = Upload("handbook.md", b"# Handbook\n\nEmployees have 28 days of annual leave.\n")
QUESTION = "How many days of annual leave do employees have?"


@pytest.fixture
def here() -> Iterator[Workspace]:
    with SlackServer(Timing(ack=1.0, retries=(0.0, 0.1, 0.2))) as server:
        yield Workspace.founded(server, "Acme")


@pytest.fixture
def ada(here: Workspace) -> Person:
    return here.server.person(here.installation.team, "ada")


@contextlib.asynccontextmanager
async def running(folder: Path, here: Workspace, **changed: str) -> AsyncIterator[App]:
    given = {name.lower(): value for name, value in here.settings.items()} | changed
    async with open_app(Settings.model_validate({"data_dir": folder / "data", "port": 0, **given})) as app:
        yield app


@pytest.fixture
async def bot(tmp_path: Path, here: Workspace) -> AsyncIterator[App]:
    async with running(tmp_path, here) as app:
        await here.server.until_connected(here.installation.app)
        yield app


@pytest.fixture
async def team(here: Workspace, bot: App, ada: Person) -> Channel:
    """A channel of Ada's where the bot has learnt the handbook."""
    channel = here.server.channel("team", by=ada)
    await ada.invites(channel, here.installation)
    hello = await ada.waits_in_channel(channel, lambda shown: next((each for each in shown if each.buttons), None))
    await ada.clicks(hello, "Yes, learn them")
    await ada.gets_reply(hello.message)
    await ada.gets_reply(await ada.posts(channel, files=[HANDBOOK]))
    return channel


def asks(here: Workspace, text: str = QUESTION) -> str:
    return f"{here.installation.bot.mention} {text}"


def answers(thread: list[Shown]) -> list[Shown]:
    return [shown for shown in thread if shown.by_app and not shown.only_for_me]


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("slack_bot_token", "xoxb-wrong", "SLACK_BOT_TOKEN"),
        ("slack_app_token", "xapp-wrong", "SLACK_APP_TOKEN"),
    ],
)
async def test_a_token_that_slack_refuses_is_named(
    tmp_path: Path, here: Workspace, setting: str, value: str, told: str
) -> None:
    with pytest.raises(SlackNotStarted, match=told):
        async with running(tmp_path, here, **{setting: value}):
            pass


async def test_half_of_what_slack_needs_is_refused(tmp_path: Path) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "port": 0, "slack_bot_token": "xoxb-1"})
    with pytest.raises(SlackNotStarted, match="set both"):
        async with open_app(settings):
            pass


async def test_a_slack_that_cannot_be_reached_is_told(tmp_path: Path, here: Workspace) -> None:
    with pytest.raises(SlackNotStarted, match="can't be reached"):
        async with running(tmp_path, here, slack_api_url="http://127.0.0.1:9/api/"):
            pass


async def test_an_id_in_a_file_does_not_tell_what_a_private_channel_is_called(
    here: Workspace, ada: Person, team: Channel
) -> None:
    hidden = here.server.channel("merger", by=here.owner, members=[here.installation], private=True)
    note = Upload("codes.md", f"The code of the northern gate is {hidden.id} since May.".encode())
    await ada.gets_reply(await ada.posts(team, files=[note]))
    shown = await ada.gets_reply(await ada.posts(team, asks(here, "What is the code of the northern gate?")))
    assert hidden.id in shown.text and "merger" not in shown.text


async def test_what_is_delivered_again_is_answered_once(here: Workspace, ada: Person, team: Channel) -> None:
    asked = await ada.posts(team, asks(here))
    await ada.gets_reply(asked)
    for delivery in here.server.delivered(here.installation.app, "message")[-3:]:
        here.server.repeat(delivery)
        here.server.duplicate(delivery)
    await here.server.until_settled(here.installation.app)
    last = await ada.posts(team, "thanks", thread=asked)
    await ada.gets_reply(last)
    assert len(answers(ada.thread(asked))) == 2


async def test_a_short_turn_takes_few_calls(here: Workspace, ada: Person, team: Channel) -> None:
    await ada.gets_reply(await ada.posts(team, asks(here)))
    before = len(here.server.calls())
    await ada.gets_reply(await ada.posts(team, asks(here)))
    made = [call.method for call in here.server.calls()[before:]]
    assert made.count("chat.postMessage") == 1
    assert len(made) <= 3, made


async def test_a_call_that_must_wait_is_made_later(here: Workspace, ada: Person, team: Channel) -> None:
    here.server.faults.enqueue("chat.postMessage", TooMany(1))
    assert "28 days" in (await ada.gets_reply(await ada.posts(team, asks(here)))).text


@pytest.mark.parametrize("fault", [Status(500), Lost()])
async def test_a_post_that_failed_or_only_seemed_to_stands_once(
    tmp_path: Path, here: Workspace, ada: Person, team: Channel, fault: Status | Lost
) -> None:
    here.server.faults.enqueue("chat.postMessage", fault)
    asked = await ada.posts(team, asks(here))
    shown = await ada.waits_in_thread(asked, lambda thread: answers(thread) or None, 40)
    assert "28 days" in shown[0].text
    await here.server.wait_for_calls("conversations.replies", 1, 40)
    await ada.gets_reply(await ada.posts(team, "thanks", thread=asked), 40)
    assert len([each for each in answers(ada.thread(asked)) if "28 days" in each.text]) == 1


async def test_a_reply_waits_until_slack_takes_it(here: Workspace, ada: Person, team: Channel) -> None:
    here.server.faults.always("chat.postMessage", Status(503))
    asked = await ada.posts(team, asks(here))
    await here.server.wait_for_calls("chat.postMessage", 2, 60)
    assert answers(ada.thread(asked)) == []
    here.server.faults.heal("chat.postMessage")
    assert "28 days" in (await ada.gets_reply(asked, 60)).text
    assert len(answers(ada.thread(asked))) == 1


async def test_a_guest_in_the_channel_hears_of_its_own_documents_alone(
    here: Workspace, ada: Person, team: Channel
) -> None:
    guest = here.server.person(here.installation.team, "guest", is_restricted=True)
    other = here.server.channel("other", by=ada)
    await ada.invites(other, here.installation)
    assert "28 days" in (await ada.gets_reply(await ada.posts(other, asks(here)))).text
    await ada.invites(other, guest)
    assert "28 days" not in (await ada.gets_reply(await ada.posts(other, asks(here)))).text


async def test_nobody_on_the_page_can_name_the_workspace(here: Workspace, bot: App, team: Channel) -> None:
    async with aiohttp.ClientSession(bot.url) as page:
        for workspace in (here.installation.team.id, f"slack:{here.installation.team.id}"):
            who = {"user": "eve", "workspace": workspace}
            async with page.get("/api/documents", params={**who, "channel": team.id}) as response:
                assert "handbook" not in await response.text()
            body = {"query": QUESTION, "channel": team.id, **who}
            async with page.post("/api/search", json=body) as response:
                assert "28 days" not in await response.text()


async def test_what_a_file_says_calls_nobody(here: Workspace, ada: Person, team: Channel) -> None:
    note = Upload("rota.md", b"The night shift calls <!channel> and @here and <@U0A0000005> at nine.")
    await ada.gets_reply(await ada.posts(team, files=[note]))
    shown = await ada.gets_reply(await ada.posts(team, asks(here, "Whom does the night shift call at nine?")))
    (said,) = [block["text"] for block in shown.message.blocks if block["type"] == "markdown"]
    assert "<!channel>" not in said and "<@U" not in said and "@here" not in said
