"""The app's home, modals, menus and shortcuts."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.bolt_bot import BoltBot, Event
from tests.slack.hearing import told
from tests.slack.people import NotThere, Person, ViewRefused
from tests.slack.server import SlackServer
from tests.slack.workspace import App, Channel, Installation

Json = dict[str, Any]
HOME: Json = {
    "type": "home",
    "blocks": [
        {
            "type": "actions",
            "block_id": "settings",
            "elements": [
                {"type": "button", "action_id": "quiet", "text": {"type": "plain_text", "text": "Be quiet"}},
                {
                    "type": "static_select",
                    "action_id": "model",
                    "options": [{"text": {"type": "plain_text", "text": name}, "value": name} for name in ("a", "b")],
                },
            ],
        }
    ],
}
NOTE: Json = {
    "type": "modal",
    "callback_id": "note",
    "title": {"type": "plain_text", "text": "A note"},
    "submit": {"type": "plain_text", "text": "Keep"},
    "private_metadata": "C1",
    "blocks": [
        {
            "type": "input",
            "block_id": "words",
            "label": {"type": "plain_text", "text": "What?"},
            "element": {"type": "plain_text_input", "action_id": "text"},
        }
    ],
}


async def test_who_opens_the_home_sees_what_the_app_publishes(bot: BoltBot, app: App, ada: Person) -> None:
    @bot.bolt.event("app_home_opened")
    async def publish(event: Event, client: AsyncWebClient) -> None:
        await client.views_publish(user_id=event["user"], view=HOME)

    await bot.connects()
    await ada.opens_home(app)
    home = await ada.waits_for(lambda: ada.home(app))
    assert home.content["blocks"][0]["elements"][0]["text"]["text"] == "Be quiet"


async def test_a_home_can_be_clicked_and_chosen_in(bot: BoltBot, app: App, ada: Person) -> None:
    used: list[Event] = []

    @bot.bolt.action("quiet")
    @bot.bolt.action("model")
    async def use(ack: Any, body: Event) -> None:
        await ack()
        used.append(body)

    await bot.connects()
    await bot.client.views_publish(user_id=ada.id, view=HOME)
    home = ada.home(app)
    assert home
    await ada.clicks_in_view(home, "Be quiet")
    await ada.chooses_in_view(home, "model", "b")
    click, choice = used
    assert click["container"] == {"type": "view", "view_id": home.id}
    assert click["view"]["hash"] == home.hash
    assert "response_url" not in click
    assert choice["actions"][0]["selected_option"]["value"] == "b"
    assert choice["view"]["state"]["values"]["settings"]["model"]["selected_option"]["value"] == "b"


async def test_a_home_that_has_changed_meanwhile_is_not_overwritten(client: AsyncWebClient, ada: Person) -> None:
    first = await client.views_publish(user_id=ada.id, view=HOME)
    await client.views_publish(user_id=ada.id, view=HOME)
    with pytest.raises(SlackApiError, match="hash_conflict"):
        await client.views_publish(user_id=ada.id, view=HOME, hash=first["view"]["hash"])


@pytest.fixture
async def answers() -> list[Json]:
    """What the app answers to submissions, one after the other; with nothing left the form is closed."""
    return []


@pytest.fixture
async def notes(bot: BoltBot, answers: list[Json]) -> list[Event]:
    """A bot that opens a form by the shortcut `help` and keeps what is submitted."""
    kept: list[Event] = []

    @bot.bolt.shortcut("help")
    async def open_form(ack: Any, body: Event, client: AsyncWebClient) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=NOTE)

    @bot.bolt.view("note")
    async def keep(ack: Any, body: Event) -> None:
        kept.append(body)
        await ack(**(answers.pop(0) if answers else {}))

    await bot.connects()
    return kept


async def test_a_form_is_opened_filled_in_and_closed(notes: list[Event], app: App, ada: Person) -> None:
    await ada.uses_shortcut("help")
    form = await ada.waits_for(lambda: ada.modal(app))
    await ada.submits(form, {"text": "remember the milk"})
    (note,) = notes
    assert note["view"]["state"]["values"] == {
        "words": {"text": {"type": "plain_text_input", "value": "remember the milk"}}
    }
    assert (note["view"]["private_metadata"], note["user"]["id"]) == ("C1", ada.id)
    assert ada.modal(app) is None
    with pytest.raises(NotThere):
        await ada.submits(form)


async def test_a_form_can_come_back_with_what_is_wrong(
    notes: list[Event], answers: list[Json], app: App, ada: Person
) -> None:
    answers.append({"response_action": "errors", "errors": {"words": "Say something."}})
    await ada.uses_shortcut("help")
    form = await ada.waits_for(lambda: ada.modal(app))
    with pytest.raises(ViewRefused) as refusal:
        await ada.submits(form)
    assert refusal.value.errors == {"words": "Say something."}
    await ada.submits(form, {"text": "something"})
    assert ada.modal(app) is None


async def test_a_form_can_become_another_one(notes: list[Event], answers: list[Json], app: App, ada: Person) -> None:
    thanks = {**NOTE, "title": {"type": "plain_text", "text": "Thanks"}}
    answers += [{"response_action": "update", "view": thanks}, {"response_action": "push", "view": NOTE}]
    answers.append({"response_action": "clear"})
    await ada.uses_shortcut("help")
    form = await ada.waits_for(lambda: ada.modal(app))
    await ada.submits(form, {"text": "one"})
    assert form.content["title"]["text"] == "Thanks"
    await ada.submits(form, {"text": "two"})
    above = ada.modal(app)
    assert above and (above.previous_id, above.root_id) == (form.id, form.id)
    await ada.submits(above, {"text": "three"})
    assert ada.modal(app) is None


async def test_a_form_is_opened_within_moments_and_once(slack: SlackServer, bot: BoltBot, ada: Person) -> None:
    triggers: list[str] = []

    @bot.bolt.shortcut("help")
    async def keep(ack: Any, body: Event) -> None:
        await ack()
        triggers.append(body["trigger_id"])

    await bot.connects()
    await ada.uses_shortcut("help")
    await ada.uses_shortcut("help")
    once, late = triggers
    await bot.client.views_open(trigger_id=once, view=NOTE)
    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await bot.client.views_open(trigger_id=once, view=NOTE)
    slack.timing.trigger = 0.0
    with pytest.raises(SlackApiError, match="expired_trigger_id"):
        await bot.client.views_open(trigger_id=late, view=NOTE)
    with pytest.raises(SlackApiError, match="invalid_trigger_id"):
        await bot.client.views_open(trigger_id="1.2", view=NOTE)


async def test_a_shortcut_on_a_message_brings_the_message(
    bot: BoltBot, ada: Person, ben: Person, team: Channel
) -> None:
    used: list[Event] = []

    @bot.bolt.shortcut("learn")
    async def learn(ack: Any, body: Event, respond: Any) -> None:
        await ack()
        used.append(body)
        await respond("Learned.")

    await bot.connects()
    message = await ben.posts(team, "the notice period is four weeks")
    await ada.uses_shortcut("learn", message)
    await ada.waits_in_channel(team, lambda shown: shown[-1].text == "Learned." or None)
    assert len(ben.channel(team)) == 1
    (shortcut,) = used
    assert (shortcut["type"], shortcut["message"]["text"]) == ("message_action", message.text)
    assert shortcut["message_ts"] == message.ts


async def test_what_no_app_offers_cannot_be_used(ada: Person, team: Channel) -> None:
    with pytest.raises(NotThere):
        await ada.uses_shortcut("fly")
    with pytest.raises(NotThere):
        await ada.runs("/fly", team)


async def test_a_view_that_is_none_is_refused(client: AsyncWebClient, ada: Person) -> None:
    with pytest.raises(SlackApiError, match="invalid_arguments"):
        await client.views_publish(user_id=ada.id, view=NOTE)
    with pytest.raises(SlackApiError, match="invalid_arguments"):
        await client.views_publish(user_id=ada.id, view={"type": "home", "blocks": [{"type": "divider"}] * 101})


async def test_the_assistant_is_opened_beside_a_channel(
    slack: SlackServer, client: AsyncWebClient, app: App, ada: Person, team: Channel, installed: Installation
) -> None:
    root = await ada.opens_assistant(app, looking_at=team)
    direct = ada.direct(installed)
    started = next(event for event in told(slack, app) if event["type"] == "assistant_thread_started")
    assert started["assistant_thread"] == {
        "user_id": ada.id,
        "context": {"channel_id": team.id, "team_id": ada.team.id},
        "channel_id": direct.id,
        "thread_ts": root.ts,
    }
    prompts = [{"title": "News", "message": "What is new?"}]
    await client.assistant_threads_setSuggestedPrompts(channel_id=direct.id, thread_ts=root.ts, prompts=prompts)
    await client.assistant_threads_setTitle(channel_id=direct.id, thread_ts=root.ts, title="News")
    assert (direct.prompts[root.ts], direct.titles[root.ts]) == (prompts, "News")
    await ada.posts(direct, "What is new?", thread=root)
    assert told(slack, app)[-2]["thread_ts"] == root.ts
