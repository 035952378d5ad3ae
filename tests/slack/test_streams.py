"""Answers that are shown while they are written."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.hearing import kinds, told
from tests.slack.people import Person
from tests.slack.server import SlackServer
from tests.slack.workspace import App, Channel, Installation, Message


@pytest.fixture
async def question(ada: Person, team: Channel) -> Message:
    return await ada.posts(team, "how long?")


@pytest.fixture
def recipient(ada: Person) -> dict[str, str]:
    return {"recipient_team_id": ada.team.id, "recipient_user_id": ada.id}


async def test_in_a_channel_a_stream_needs_its_recipients(
    client: AsyncWebClient, question: Message, recipient: dict[str, str]
) -> None:
    for name in recipient:
        others = {each: value for each, value in recipient.items() if each != name}
        with pytest.raises(SlackApiError, match=f"missing_{name}"):
            await client.chat_startStream(channel=question.channel.id, thread_ts=question.ts, **others)  # type: ignore[arg-type]


async def test_in_a_direct_message_it_needs_none(client: AsyncWebClient, ada: Person, installed: Installation) -> None:
    question = await ada.posts(ada.direct(installed), "how long?")
    stream = await client.chat_stream(channel=question.channel.id, thread_ts=question.ts)
    await stream.stop(markdown_text="Four weeks.")
    assert (await ada.gets_reply(question)).text == "Four weeks."


async def test_a_stream_grows_and_then_stands(
    slack: SlackServer, app: App, client: AsyncWebClient, ada: Person, question: Message, recipient: dict[str, Any]
) -> None:
    place: dict[str, Any] = {"channel": question.channel.id}
    started = await client.chat_startStream(**place, thread_ts=question.ts, markdown_text="Four ", **recipient)
    place["ts"] = started["ts"]
    assert ada.thread(question)[1].is_streaming
    await client.chat_appendStream(**place, markdown_text="weeks")
    stopped = await client.chat_stopStream(
        **place, markdown_text=".", metadata={"event_type": "a", "event_payload": {}}
    )
    assert stopped["message"]["text"] == "Four weeks."
    (_, reply) = ada.thread(question)
    assert (reply.text, reply.is_streaming) == ("Four weeks.", False)
    assert kinds(told(slack, app)) == ["message", "message", "message_changed", "message_changed"]
    await client.chat_update(**place, text="Five weeks.", blocks=[])
    assert ada.thread(question)[1].text == "Five weeks."


async def test_a_stream_of_chunks_shows_what_is_being_done(
    client: AsyncWebClient, ada: Person, question: Message, recipient: dict[str, Any]
) -> None:
    task = {"type": "task_update", "id": "1", "title": "Searching", "status": "in_progress"}
    stream = await client.chat_stream(channel=question.channel.id, thread_ts=question.ts, **recipient)
    await stream.append(chunks=[task])
    assert ada.thread(question)[1].text == "Searching"
    await stream.append(chunks=[{**task, "title": "Searched", "status": "complete"}], markdown_text="Found.")
    await stream.stop()
    assert ada.thread(question)[1].text == "Found.\nSearched"


async def test_text_and_chunks_do_not_mix(client: AsyncWebClient, question: Message, recipient: dict[str, Any]) -> None:
    place: dict[str, Any] = {"channel": question.channel.id}
    started = await client.chat_startStream(**place, thread_ts=question.ts, markdown_text="Four ", **recipient)
    with pytest.raises(SlackApiError, match="streaming_mode_mismatch"):
        await client.chat_appendStream(**place, ts=started["ts"], chunks=[{"type": "markdown_text", "text": "weeks"}])


async def start(client: AsyncWebClient, question: Message, recipient: dict[str, Any]) -> dict[str, Any]:
    started = await client.chat_startStream(
        channel=question.channel.id, thread_ts=question.ts, markdown_text="Four ", **recipient
    )
    return {"channel": question.channel.id, "ts": started["ts"]}


async def test_a_stream_that_ended_takes_no_more(
    client: AsyncWebClient, question: Message, recipient: dict[str, Any]
) -> None:
    place = await start(client, question, recipient)
    await client.chat_stopStream(**place)
    with pytest.raises(SlackApiError, match="message_not_in_streaming_state"):
        await client.chat_appendStream(**place, markdown_text="weeks")


async def test_a_stream_dies_when_nothing_comes(
    slack: SlackServer, client: AsyncWebClient, ada: Person, question: Message, recipient: dict[str, Any]
) -> None:
    place = await start(client, question, recipient)
    slack.expire_stream(ada.thread(question)[1].message)
    with pytest.raises(SlackApiError, match="message_not_in_streaming_state"):
        await client.chat_stopStream(**place, markdown_text="weeks")
    await client.chat_update(**place, text="Four weeks.", blocks=[])
    assert ada.thread(question)[1].text == "Four weeks."


async def test_a_stream_dies_by_the_clock_too(
    slack: SlackServer, client: AsyncWebClient, question: Message, recipient: dict[str, Any]
) -> None:
    place = await start(client, question, recipient)
    slack.timing.stream = 0.0
    with pytest.raises(SlackApiError, match="message_not_in_streaming_state"):
        await client.chat_appendStream(**place, markdown_text="weeks")


async def test_a_person_can_stop_it(
    client: AsyncWebClient, ada: Person, question: Message, recipient: dict[str, Any]
) -> None:
    place = await start(client, question, recipient)
    await ada.stops(ada.thread(question)[1].message)
    with pytest.raises(SlackApiError, match="stopped_by_user"):
        await client.chat_appendStream(**place, markdown_text="weeks")


async def test_what_is_being_written_cannot_be_edited(
    client: AsyncWebClient, question: Message, recipient: dict[str, Any]
) -> None:
    place = await start(client, question, recipient)
    with pytest.raises(SlackApiError, match="streaming_state_conflict"):
        await client.chat_update(**place, text="Five weeks.")


async def test_a_stream_has_its_limits(client: AsyncWebClient, question: Message, recipient: dict[str, Any]) -> None:
    place = await start(client, question, recipient)
    with pytest.raises(SlackApiError, match="msg_too_long"):
        await client.chat_appendStream(**place, markdown_text="x" * 12_001)
    with pytest.raises(SlackApiError, match="invalid_blocks"):
        await client.chat_stopStream(**place, blocks=[{"type": "divider"}] * 51)
    await client.chat_stopStream(**place, blocks=[{"type": "divider"}] * 50)
