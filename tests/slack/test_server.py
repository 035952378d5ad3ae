"""What a bot on slack-bolt meets, over Socket Mode and over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.bolt_bot import BoltBot, Event
from tests.slack.people import AppDidNotRespond, NotThere, Person
from tests.slack.server import SlackServer
from tests.slack.uploads import Upload
from tests.slack.workspace import App, Channel, Installation

BUTTONS: list[dict[str, Any]] = [
    {"type": "section", "text": {"type": "mrkdwn", "text": "Shall I learn the files?"}},
    {
        "type": "actions",
        "elements": [
            {"type": "button", "action_id": "learn_yes", "text": {"type": "plain_text", "text": "Yes"}, "value": "y"},
            {"type": "button", "action_id": "learn_no", "text": {"type": "plain_text", "text": "No"}, "value": "n"},
        ],
    },
]


async def test_a_mention_is_answered_in_its_thread(bot: BoltBot, ada: Person, team: Channel) -> None:
    @bot.bolt.event("app_mention")
    async def answer(event: Event, say: Any) -> None:
        await say(f"<@{event['user']}>: four weeks & more", thread_ts=event["ts"])

    await bot.connects()
    question = await ada.posts(team, f"{bot.mention} what is the notice period?")
    reply = await ada.gets_reply(question)
    assert reply.text == "@ada: four weeks & more"
    assert reply.message.text == f"{ada.mention}: four weeks &amp; more"
    assert reply.message.thread_ts == question.ts


async def test_a_mention_comes_as_app_mention_and_as_message(
    slack: SlackServer, bot: BoltBot, ada: Person, team: Channel, app: App
) -> None:
    await bot.connects()
    question = await ada.posts(team, f"{bot.mention} hello")
    deliveries = await slack.until_settled(app)
    assert sorted(event["type"] for event in bot.heard) == ["app_mention", "message"]
    assert {event["ts"] for event in bot.heard} == {question.ts}
    assert {event["client_msg_id"] for event in bot.heard} == {question.client_msg_id}
    assert len({delivery.payload["event_id"] for delivery in deliveries}) == 2


async def test_a_mention_with_a_file_comes_as_file_share_alone(
    slack: SlackServer, bot: BoltBot, ada: Person, team: Channel, app: App
) -> None:
    await bot.connects()
    await ada.posts(team, f"{bot.mention} read this", files=[Upload("handbook.pdf", b"%PDF-1.7")])
    await slack.until_settled(app)
    (shared,) = [event for event in bot.heard if event["type"] != "file_shared"]
    assert (shared["type"], shared["subtype"]) == ("message", "file_share")
    assert shared["files"][0]["name"] == "handbook.pdf"


async def test_a_posted_file_can_be_downloaded(
    client: AsyncWebClient, ada: Person, team: Channel, installed: Installation
) -> None:
    message = await ada.posts(team, files=[Upload("handbook.md", b"# Handbook")])
    history = await client.conversations_history(channel=team.id)
    file = history["messages"][0]["files"][0]
    assert file["id"] == message.files[0].id
    assert file["mimetype"] == "text/markdown"
    headers = {"Authorization": f"Bearer {installed.token}"}
    async with aiohttp.ClientSession() as http, http.get(file["url_private_download"], headers=headers) as response:
        assert await response.read() == b"# Handbook"


async def test_who_clicks_a_button_reaches_the_app_and_the_card_changes(
    bot: BoltBot, ada: Person, team: Channel
) -> None:
    clicked: list[Event] = []

    @bot.bolt.action("learn_yes")
    async def learn(ack: Any, body: Event, respond: Any) -> None:
        await ack()
        clicked.append(body)
        await respond("Learning.", replace_original=True)

    await bot.connects()
    posted = await bot.client.chat_postMessage(channel=team.id, text="Shall I?", blocks=BUTTONS)
    (card,) = ada.channel(team)
    assert (card.text, card.options) == ("Shall I learn the files?", ("Yes", "No"))
    await ada.clicks(card, "Yes")
    await ada.waits_in_channel(team, lambda shown: shown[-1].text == "Learning." or None)
    assert ada.sees(card.message).options == ()
    (click,) = clicked
    assert (click["user"]["id"], click["actions"][0]["value"]) == (ada.id, "y")
    assert click["container"]["message_ts"] == click["message"]["ts"] == posted["ts"]


async def test_a_button_that_is_not_there_cannot_be_clicked(ada: Person, team: Channel, client: AsyncWebClient) -> None:
    await client.chat_postMessage(channel=team.id, text="Shall I?", blocks=BUTTONS)
    with pytest.raises(NotThere, match="Maybe"):
        await ada.clicks(ada.channel(team)[-1], "Maybe")


async def test_a_click_that_nobody_takes_is_seen_as_such(ada: Person, team: Channel, client: AsyncWebClient) -> None:
    await client.chat_postMessage(channel=team.id, text="Shall I?", blocks=BUTTONS)
    with pytest.raises(AppDidNotRespond):
        await ada.clicks(ada.channel(team)[-1], "Yes")


async def test_who_clicks_before_their_screen_has_changed_still_reaches_the_app(
    bot: BoltBot, ada: Person, team: Channel
) -> None:
    clicked: list[Event] = []

    @bot.bolt.action("learn_no")
    async def take(ack: Any, body: Event) -> None:
        await ack()
        clicked.append(body)

    await bot.connects()
    posted = await bot.client.chat_postMessage(channel=team.id, text="Shall I?", blocks=BUTTONS)
    (card,) = ada.channel(team)
    await bot.client.chat_update(channel=team.id, ts=posted["ts"], text="Learning.", blocks=[])
    with pytest.raises(NotThere):
        await ada.clicks(card, "No")
    await ada.clicks(card, "No", late=True)
    assert clicked[0]["message"]["text"] == "Learning."


async def test_an_ephemeral_message_is_seen_by_one_person_alone(
    ada: Person, ben: Person, team: Channel, client: AsyncWebClient
) -> None:
    question = await ada.posts(team, "hello")
    await client.chat_postEphemeral(channel=team.id, user=ben.id, text="for Ben", thread_ts=question.ts)
    assert [shown.text for shown in ben.thread(question)] == ["hello", "for Ben"]
    assert [shown.text for shown in ada.thread(question)] == ["hello"]
    replies = await client.conversations_replies(channel=team.id, ts=question.ts)
    assert [message["text"] for message in replies["messages"]] == ["hello"]


async def test_a_slash_command_is_answered_to_who_typed_it(
    bot: BoltBot, ada: Person, ben: Person, team: Channel
) -> None:
    @bot.bolt.command("/ask")
    async def ask(ack: Any, command: Event) -> None:
        await ack(f"You asked: {command['text']}")

    await bot.connects()
    await ada.runs("/ask", team, "what is new?")
    assert [shown.text for shown in ada.channel(team)] == ["You asked: what is new?"]
    assert ben.channel(team) == []


async def test_a_person_watches_an_answer_being_written(bot: BoltBot, ada: Person, team: Channel) -> None:
    @bot.bolt.event("app_mention")
    async def answer(event: Event, client: AsyncWebClient) -> None:
        stream = await client.chat_stream(
            channel=event["channel"],
            thread_ts=event["ts"],
            recipient_team_id=event["team"],
            recipient_user_id=event["user"],
            buffer_size=1,
        )
        await stream.append(markdown_text="Four ")
        await stream.append(markdown_text="weeks.")
        await stream.stop(blocks=BUTTONS)

    await bot.connects()
    reply = await ada.gets_reply(await ada.posts(team, f"{bot.mention} how long?"))
    assert reply.text == "Four weeks.\nShall I learn the files?"
    assert reply.options == ("Yes", "No")
    assert [text for text in reply.message.shown if text] == ["Four ", "Four weeks.", reply.text]


async def test_a_link_leads_to_its_message(
    slack: SlackServer, client: AsyncWebClient, ada: Person, team: Channel
) -> None:
    root = await ada.posts(team, "root")
    reply = await ada.posts(team, "reply", thread=root)
    link = (await client.chat_getPermalink(channel=team.id, message_ts=reply.ts))["permalink"]
    assert slack.message_at(link) is reply
    await ada.deletes(reply)
    assert slack.message_at(link) is None


def test_the_server_outlives_the_event_loops_of_its_tests(slack: SlackServer, ada: Person, team: Channel) -> None:
    async def look() -> int:
        await ada.posts(team, "hello")
        return await ada.waits_in_channel(team, lambda shown: len(shown) or None)

    assert [asyncio.run(look()), asyncio.run(look())] == [1, 2]
