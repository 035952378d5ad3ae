"""The same server as npm's @slack/bolt meets it: a client that shares no line with slack-bolt for Python."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.slack.bolt_bot import Transport
from tests.slack.node_bot import NodeBot, skip_if_missing
from tests.slack.people import Person, ViewRefused
from tests.slack.server import SlackServer
from tests.slack.uploads import Upload
from tests.slack.workspace import App, Channel, Installation, Timing

BLOCKED = "invalid_blocks: [ERROR] unsupported type: poem [json-pointer:/blocks/0/type]"


@pytest.fixture
async def mention(slack: SlackServer, installed: Installation, transport: Transport) -> AsyncIterator[str]:
    """How a bot on npm's @slack/bolt is mentioned, which runs."""
    skip_if_missing()
    slack.timing = Timing()
    async with NodeBot(slack, installed, transport):
        yield installed.bot.mention


async def test_a_bot_on_node_lives_here_as_well(
    slack: SlackServer, mention: str, app: App, ada: Person, team: Channel, installed: Installation
) -> None:
    """One start of the process for all that it does."""
    await answers_mentions(mention, ada, team)
    await streams_and_takes_clicks(mention, ada, team)
    await reads_and_uploads_files(ada, team)
    await opens_forms(app, ada, installed)
    await slack.until_settled(app)
    assert [delivery.event for delivery in slack.delivered(app) if delivery.given_up] == []


async def answers_mentions(mention: str, ada: Person, team: Channel) -> None:
    for asked, answered in {"post": "Hello @ada", "count": "4 messages", "fail": BLOCKED}.items():
        question = await ada.posts(team, f"{mention} {asked}")
        if asked == "post":
            await ada.posts(team, "one more")
            await ada.posts(team, "and another")
        assert (await ada.gets_reply(question)).text == answered
    await ada.runs("/ask", team, "what is new?")
    assert ada.channel(team)[-1].text == "You asked: what is new?"


async def streams_and_takes_clicks(mention: str, ada: Person, team: Channel) -> None:
    reply = await ada.gets_reply(await ada.posts(team, f"{mention} stream"))
    assert (reply.text, reply.options) == ("Four weeks.\nShall I learn the files?", ("Yes", "No"))
    assert [text for text in reply.message.shown if text] == ["Four ", "Four weeks", reply.text]
    await ada.clicks(reply, "Yes")
    await ada.waits_for(lambda: ada.sees(reply.message).text == "ada chose Yes" or None)


async def reads_and_uploads_files(ada: Person, team: Channel) -> None:
    post = await ada.posts(team, files=[Upload("handbook.md", b"# handbook")])
    thread = await ada.waits_in_thread(post, lambda thread: thread if thread[-1].text == "done" else None)
    assert thread[1].text == "handbook.md has 10 characters"
    assert thread[1].files[0].content == b"# HANDBOOK"
    assert ada.sees(post).reactions == {"eyes": 1}


async def opens_forms(app: App, ada: Person, installed: Installation) -> None:
    await ada.opens_home(app)
    await ada.waits_for(lambda: ada.home(app))
    await ada.uses_shortcut("help")
    form = await ada.waits_for(lambda: ada.modal(app))
    with pytest.raises(ViewRefused, match="Say something"):
        await ada.submits(form)
    await ada.submits(form, {"text": "the milk"})
    direct = ada.direct(installed)
    await ada.waits_in_channel(direct, lambda shown: shown and shown[-1].text == "Kept: the milk" or None)
