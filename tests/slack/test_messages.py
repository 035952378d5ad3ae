"""What apps hear of messages, and how it looks."""

from __future__ import annotations

from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.hearing import kinds, told
from tests.slack.people import Person
from tests.slack.server import SlackServer
from tests.slack.uploads import Upload
from tests.slack.workspace import App, Channel, Installation

Event = dict[str, Any]


async def test_a_message_comes_in_the_documented_envelope(
    slack: SlackServer, app: App, ada: Person, team: Channel, installed: Installation
) -> None:
    message = await ada.posts(team, "hello")
    (delivery,) = slack.delivered(app)
    payload = delivery.payload
    assert payload["type"] == "event_callback"
    assert (payload["team_id"], payload["api_app_id"]) == (ada.team.id, app.id)
    assert payload["event_id"].startswith("Ev") and isinstance(payload["event_time"], int)
    (authorization,) = payload["authorizations"]
    assert (authorization["team_id"], authorization["user_id"]) == (ada.team.id, installed.bot.id)
    assert payload["event"] == {
        "type": "message",
        "client_msg_id": message.client_msg_id,
        "user": ada.id,
        "team": ada.team.id,
        "text": "hello",
        "ts": message.ts,
        "event_ts": message.ts,
        "channel": team.id,
        "channel_type": "channel",
        "blocks": [
            {
                "type": "rich_text",
                "block_id": "rich",
                "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "hello"}]}],
            }
        ],
    }


async def test_what_people_type_is_escaped_and_linked(
    slack: SlackServer, app: App, ada: Person, ben: Person, team: Channel
) -> None:
    typed = f"{ben.mention} a < b & c, see https://example.com/x and handbook.md or ada@acme.com."
    message = await ada.posts(team, typed)
    assert told(slack, app)[0]["text"] == (
        f"<@{ben.id}> a &lt; b &amp; c, see <https://example.com/x> and <http://handbook.md|handbook.md>"
        " or <mailto:ada@acme.com|ada@acme.com>."
    )
    assert ada.sees(message).text == typed.replace(ben.mention, "@ben")


async def test_a_reply_names_its_thread_and_changes_the_root(
    slack: SlackServer, app: App, ada: Person, ben: Person, team: Channel
) -> None:
    root = await ada.posts(team, "root")
    reply = await ben.posts(team, "reply", thread=root)
    _, heard, changed = told(slack, app)
    assert (heard["ts"], heard["thread_ts"], heard["parent_user_id"]) == (reply.ts, root.ts, ada.id)
    assert (changed["subtype"], changed["hidden"]) == ("message_changed", True)
    assert changed["message"]["text"] == changed["previous_message"]["text"] == "root"
    assert (changed["message"]["reply_count"], changed["message"]["latest_reply"]) == (1, reply.ts)
    assert "reply_count" not in changed["previous_message"]


async def test_slack_may_also_tell_of_a_reply_as_such(slack: SlackServer, app: App, ada: Person, team: Channel) -> None:
    slack.slack.habits.replies_change_roots = False
    slack.slack.habits.replies_are_told = True
    root = await ada.posts(team, "root")
    await ada.posts(team, "reply", thread=root)
    assert kinds(told(slack, app)) == ["message", "message", "message_replied"]


async def test_a_reply_may_be_sent_to_the_channel_too(slack: SlackServer, app: App, ada: Person, team: Channel) -> None:
    root = await ada.posts(team, "root")
    await ada.posts(team, "reply", thread=root, broadcast=True)
    broadcast = told(slack, app)[1]
    assert (broadcast["subtype"], broadcast["root"]["ts"]) == ("thread_broadcast", root.ts)
    assert [shown.text for shown in ada.channel(team)] == ["root", "reply"]


async def test_an_edit_brings_both_versions(slack: SlackServer, app: App, ada: Person, team: Channel) -> None:
    message = await ada.posts(team, "before")
    await ada.edits(message, "after")
    changed = told(slack, app)[1]
    assert (changed["subtype"], changed["channel"], changed["channel_type"]) == ("message_changed", team.id, "channel")
    assert (changed["message"]["text"], changed["previous_message"]["text"]) == ("after", "before")
    assert changed["message"]["ts"] == changed["previous_message"]["ts"] == message.ts
    assert changed["message"]["edited"]["user"] == ada.id
    assert changed["ts"] == changed["event_ts"] != message.ts
    assert ada.sees(message).edited


async def test_a_mention_that_is_added_later_is_a_mention_too(
    slack: SlackServer, app: App, ada: Person, team: Channel, installed: Installation
) -> None:
    message = await ada.posts(team, "hello")
    await ada.edits(message, f"{installed.bot.mention} hello")
    await ada.edits(message, f"{installed.bot.mention} hello!")
    assert kinds(told(slack, app)) == ["message", "message_changed", "app_mention", "message_changed"]


async def test_an_unfurl_changes_a_message_that_nobody_edited(
    slack: SlackServer, app: App, ada: Person, team: Channel
) -> None:
    message = await ada.posts(team, "see https://example.com/x")
    slack.unfurl(message, "An example", "https://example.com/x")
    changed = told(slack, app)[1]
    assert changed["message"]["text"] == changed["previous_message"]["text"]
    assert changed["message"]["attachments"][0]["title"] == "An example"
    assert "edited" not in changed["message"]


async def test_a_deleted_message_is_told_of_and_gone(slack: SlackServer, app: App, ada: Person, team: Channel) -> None:
    message = await ada.posts(team, "hello")
    await ada.deletes(message)
    deleted = told(slack, app)[1]
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", message.ts)
    assert deleted["previous_message"]["text"] == "hello"
    assert ada.channel(team) == []


async def test_a_deleted_root_leaves_a_gravestone_until_its_last_reply_is_gone(
    slack: SlackServer, app: App, client: AsyncWebClient, ada: Person, team: Channel
) -> None:
    root = await ada.posts(team, "root")
    reply = await ada.posts(team, "reply", thread=root)
    await ada.deletes(root)
    changed = told(slack, app)[-1]
    assert (changed["subtype"], changed["message"]["subtype"]) == ("message_changed", "tombstone")
    assert changed["previous_message"]["text"] == "root"
    thread = await client.conversations_replies(channel=team.id, ts=root.ts)
    assert [message.get("subtype") for message in thread["messages"]] == ["tombstone", None]
    await ada.deletes(reply)
    assert ada.channel(team) == []


async def test_what_a_bot_writes_and_changes_is_told_of_as_well(
    slack: SlackServer, app: App, client: AsyncWebClient, installed: Installation, team: Channel
) -> None:
    posted = await client.chat_postMessage(channel=team.id, text="one")
    await client.chat_update(channel=team.id, ts=posted["ts"], text="two")
    written, changed = told(slack, app)
    assert (written["user"], written["bot_id"]) == (installed.bot.id, installed.bot_id)
    assert written["bot_profile"]["app_id"] == app.id
    assert changed["message"]["bot_id"] == installed.bot_id
    assert (changed["message"]["text"], changed["previous_message"]["text"]) == ("two", "one")


async def test_a_webhook_writes_as_nobody(slack: SlackServer, app: App, ada: Person, team: Channel) -> None:
    slack.webhook(team, "Builds", "all green")
    (written,) = told(slack, app)
    assert (written["subtype"], written["username"], written["text"]) == ("bot_message", "Builds", "all green")
    assert written["bot_id"].startswith("B") and "user" not in written
    assert ada.channel(team)[0].text == "all green"


async def test_another_bot_is_heard_with_its_own_id(
    slack: SlackServer, app: App, ada: Person, team: Channel, installed: Installation
) -> None:
    other = slack.install(slack.app("Other"), by=ada)
    await ada.invites(team, other)
    client = AsyncWebClient(other.token, base_url=slack.api_url)
    await client.chat_postMessage(channel=team.id, text=f"{installed.bot.mention} hello")
    written, mention = told(slack, app)[-2:]
    assert (written["type"], mention["type"]) == ("message", "app_mention")
    assert written["bot_id"] == mention["bot_id"] == other.bot_id != installed.bot_id


async def test_in_a_direct_message_there_are_no_mentions(
    slack: SlackServer, app: App, ada: Person, installed: Installation
) -> None:
    await ada.posts(ada.direct(installed), f"{installed.bot.mention} hello")
    (heard,) = told(slack, app)
    assert (heard["type"], heard["channel_type"]) == ("message", "im")


async def test_a_bot_hears_only_where_it_is(slack: SlackServer, app: App, ada: Person, installed: Installation) -> None:
    elsewhere = slack.channel("elsewhere", by=ada)
    await ada.posts(elsewhere, f"{installed.bot.mention} hello")
    assert told(slack, app) == []


async def test_a_bot_hears_only_what_its_scopes_and_subscriptions_allow(
    slack: SlackServer, app: App, ada: Person, installed: Installation, team: Channel
) -> None:
    private = slack.channel("private", by=ada, members=[installed], private=True)
    slack.grant(installed, without=["groups:history"])
    app.events = app.events - {"reaction_added"}
    message = await ada.posts(private, f"{installed.bot.mention} hello")
    await ada.reacts(message, "eyes")
    await ada.posts(team, "hello")
    assert kinds(told(slack, app)) == ["app_mention", "message"]


async def test_reactions_are_told_of(slack: SlackServer, app: App, ada: Person, ben: Person, team: Channel) -> None:
    message = await ada.posts(team, "hello")
    await ben.reacts(message, "white_check_mark")
    await ben.unreacts(message, "white_check_mark")
    _, added, removed = told(slack, app)
    assert (added["type"], added["reaction"]) == ("reaction_added", "white_check_mark")
    assert (added["user"], added["item_user"]) == (ben.id, ada.id)
    assert added["item"] == {"type": "message", "channel": team.id, "ts": message.ts}
    assert removed["type"] == "reaction_removed"


async def test_a_mention_with_a_file_can_come_as_app_mention_too(
    slack: SlackServer, app: App, ada: Person, installed: Installation, team: Channel
) -> None:
    app.mentions_with_files = True
    await ada.posts(team, f"{installed.bot.mention} read", files=[Upload("a.txt", b"a")])
    assert kinds(told(slack, app)) == ["file_share", "app_mention", "file_shared"]


async def test_the_status_below_a_thread_is_gone_once_the_bot_has_posted(
    slack: SlackServer, client: AsyncWebClient, ada: Person, team: Channel
) -> None:
    question = await ada.posts(team, "how long?")
    await client.assistant_threads_setStatus(channel_id=team.id, thread_ts=question.ts, status="is thinking…")
    assert ada.status(question) == "is thinking…"
    await client.chat_postMessage(channel=team.id, thread_ts=question.ts, text="Four weeks.")
    assert ada.status(question) == ""
    assert [status.text for _, _, status in slack.statuses] == ["is thinking…"]


async def test_metadata_comes_back_where_it_is_asked_for(client: AsyncWebClient, team: Channel) -> None:
    metadata = {"event_type": "answer", "event_payload": {"turn": "7"}}
    await client.chat_postMessage(channel=team.id, text="x", metadata=metadata)
    with_it = await client.conversations_history(channel=team.id, include_all_metadata=True)
    assert with_it["messages"][0]["metadata"] == metadata
    assert "metadata" not in (await client.conversations_history(channel=team.id))["messages"][0]
