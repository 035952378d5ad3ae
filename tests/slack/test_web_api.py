"""Tokens, scopes, membership, limits and pages of the Web API, as Slack's own client meets them."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.people import Person
from tests.slack.server import SlackServer
from tests.slack.workspace import App, Channel, Installation, Timing


async def refused(call: Any) -> SlackApiError:
    with pytest.raises(SlackApiError) as refusal:
        await call
    return refusal.value


async def error(call: Any) -> str:
    return str((await refused(call)).response["error"])


async def test_a_bot_learns_who_it_is(client: AsyncWebClient, installed: Installation) -> None:
    who = await client.auth_test()
    assert (who["user_id"], who["bot_id"]) == (installed.bot.id, installed.bot_id)
    assert (who["team_id"], who["team"]) == (installed.team.id, "Acme")
    assert "chat:write" in who.headers["x-oauth-scopes"].split(",")


async def test_arguments_come_in_the_query_in_a_form_and_as_json(
    slack: SlackServer, installed: Installation, team: Channel
) -> None:
    url = f"{slack.api_url}chat.postMessage"
    block = '[{"type": "divider"}]'
    headers = {"Authorization": f"Bearer {installed.token}"}
    async with aiohttp.ClientSession() as http:
        for sent in (
            {"params": {"channel": team.id, "blocks": block}},
            {"data": {"channel": team.id, "blocks": block}},
            {"json": {"channel": team.id, "blocks": [{"type": "divider"}]}},
            {"params": {"channel": team.id}, "json": {"blocks": block}},
        ):
            async with http.post(url, headers=headers, **sent) as response:
                answer = await response.json()
            assert answer["message"]["blocks"] == [{"block_id": "b0", "type": "divider"}]
        form = {"token": installed.token, "channel": team.id, "text": "hi"}
        async with http.post(url, data=form) as response:
            assert (await response.json())["ok"]


async def test_a_token_that_nobody_knows_is_refused(slack: SlackServer, app: App, client: AsyncWebClient) -> None:
    assert await error(client.auth_test(token="xoxb-unknown")) == "invalid_auth"
    assert await error(client.auth_test(token=app.app_token)) == "not_allowed_token_type"
    assert await error(AsyncWebClient(base_url=slack.api_url).auth_test()) == "not_authed"


async def test_a_revoked_token_is_worth_nothing(client: AsyncWebClient) -> None:
    assert (await client.auth_revoke())["revoked"]
    assert await error(client.auth_test()) == "token_revoked"


async def test_after_the_app_is_uninstalled_its_token_is_worth_nothing(
    client: AsyncWebClient, app: App, ada: Person
) -> None:
    await ada.uninstalls(app)
    assert await error(client.auth_test()) == "account_inactive"


async def test_only_an_app_token_opens_connections(client: AsyncWebClient, app: App) -> None:
    opened = await client.apps_connections_open(app_token=app.app_token)
    assert opened["url"].startswith("ws://127.0.0.1:")
    assert await error(client.apps_connections_open(app_token=client.token or "")) == "not_allowed_token_type"
    app.app_token_scopes = frozenset({"authorizations:read"})
    refusal = await refused(client.apps_connections_open(app_token=app.app_token))
    assert (refusal.response["error"], refusal.response["needed"]) == ("missing_scope", "connections:write")


async def test_a_missing_scope_is_named(
    slack: SlackServer, client: AsyncWebClient, installed: Installation, team: Channel
) -> None:
    slack.grant(installed, without=["channels:history"])
    refusal = await refused(client.conversations_history(channel=team.id))
    assert refusal.response["error"] == "missing_scope"
    assert refusal.response["needed"] == "channels:history"
    assert "chat:write" in refusal.response["provided"]


@pytest.mark.parametrize(
    ("scope", "call"),
    [
        ("chat:write", lambda client, channel: client.chat_postMessage(channel=channel, text="hi")),
        ("channels:read", lambda client, channel: client.conversations_info(channel=channel)),
        ("channels:read", lambda client, channel: client.conversations_list()),
        ("users:read", lambda client, channel: client.users_list()),
        ("files:read", lambda client, channel: client.files_info(file="F1")),
        ("files:write", lambda client, channel: client.files_getUploadURLExternal(filename="a", length=1)),
        ("reactions:write", lambda client, channel: client.reactions_add(channel=channel, name="eyes", timestamp="1")),
        ("team:read", lambda client, channel: client.team_info()),
        ("im:write", lambda client, channel: client.conversations_open(users=["U1"])),
    ],
)
async def test_each_method_needs_its_scope(
    slack: SlackServer, client: AsyncWebClient, installed: Installation, team: Channel, scope: str, call: Any
) -> None:
    slack.grant(installed, without=[scope])
    assert (await refused(call(client, team.id))).response["error"] in ("missing_scope", "user_not_found")


async def test_a_bot_cannot_post_where_it_is_not(slack: SlackServer, client: AsyncWebClient, ada: Person) -> None:
    open_channel = slack.channel("open", by=ada)
    secret = slack.channel("secret", by=ada, private=True)
    assert await error(client.chat_postMessage(channel=open_channel.id, text="hi")) == "not_in_channel"
    assert await error(client.chat_postMessage(channel=secret.id, text="hi")) == "channel_not_found"
    assert await error(client.conversations_history(channel=open_channel.id)) == "not_in_channel"
    assert await error(client.conversations_history(channel=secret.id)) == "channel_not_found"
    assert await error(client.conversations_info(channel=secret.id)) == "channel_not_found"
    assert (await client.conversations_info(channel=open_channel.id))["channel"]["is_member"] is False


async def test_nobody_posts_to_an_archived_channel(client: AsyncWebClient, ada: Person, team: Channel) -> None:
    await ada.archives(team)
    assert await error(client.chat_postMessage(channel=team.id, text="hi")) == "is_archived"


async def test_a_message_to_a_person_opens_a_direct_one(
    client: AsyncWebClient, ada: Person, installed: Installation
) -> None:
    posted = await client.chat_postMessage(channel=ada.id, text="hi")
    opened = await client.conversations_open(users=[ada.id])
    assert posted["channel"] == opened["channel"]["id"] == ada.direct(installed).id
    assert posted["channel"].startswith("D")


async def test_a_name_of_a_channel_is_as_good_as_its_id(client: AsyncWebClient, team: Channel) -> None:
    assert (await client.chat_postMessage(channel="#team", text="hi"))["channel"] == team.id


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "no_text"),
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"markdown_text": "x", "text": "x"}, "markdown_text_conflict"),
        ({"text": "x", "thread_ts": "1.000001"}, "thread_not_found"),
        ({"blocks": "{"}, "invalid_blocks_format"),
        ({"metadata": {"event_type": "x"}, "text": "x"}, "invalid_metadata_format"),
    ],
)
async def test_what_is_not_a_message_is_refused(
    client: AsyncWebClient, team: Channel, arguments: dict[str, Any], why: str
) -> None:
    assert await error(client.api_call("chat.postMessage", json={"channel": team.id, **arguments})) == why


async def test_an_edit_has_less_room_than_a_message(client: AsyncWebClient, team: Channel) -> None:
    posted = await client.chat_postMessage(channel=team.id, text="x" * 40_000)
    assert await error(client.chat_update(channel=team.id, ts=posted["ts"], text="x" * 4_001)) == "msg_too_long"
    await client.chat_update(channel=team.id, ts=posted["ts"], text="x" * 4_000)


async def test_a_bot_changes_only_what_it_has_written(client: AsyncWebClient, ada: Person, team: Channel) -> None:
    message = await ada.posts(team, "mine")
    assert await error(client.chat_update(channel=team.id, ts=message.ts, text="yours")) == "cant_update_message"
    assert await error(client.chat_delete(channel=team.id, ts=message.ts)) == "cant_delete_message"
    assert await error(client.chat_delete(channel=team.id, ts="1.000001")) == "message_not_found"


async def test_what_is_edited_gets_ids_like_what_is_posted(client: AsyncWebClient, team: Channel) -> None:
    posted = await client.chat_postMessage(channel=team.id, text="one")
    button = {"type": "button", "text": {"type": "plain_text", "text": "Yes"}}
    blocks = [{"type": "actions", "elements": [button]}]
    edited = await client.chat_update(channel=team.id, ts=posted["ts"], text="two", blocks=blocks)
    (block,) = edited["message"]["blocks"]
    assert block["block_id"] and block["elements"][0]["action_id"]


async def test_an_edit_without_blocks_keeps_them(client: AsyncWebClient, ada: Person, team: Channel) -> None:
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "one"}}
    posted = await client.chat_postMessage(channel=team.id, text="one", blocks=[section])
    await client.chat_update(channel=team.id, ts=posted["ts"], text="two")
    assert [shown.text for shown in ada.channel(team)] == ["one"]
    await client.chat_update(channel=team.id, ts=posted["ts"], text="two", blocks=[])
    assert [(shown.text, shown.edited) for shown in ada.channel(team)] == [("two", True)]


async def test_a_long_list_comes_in_pages(slack: SlackServer, client: AsyncWebClient, ada: Person) -> None:
    for number in range(7):
        slack.channel(f"room-{number}", by=ada)
    names: list[str] = []
    async for page in await client.conversations_list(limit=3):
        names += [channel["name"] for channel in page["channels"]]
    assert names == [f"room-{number}" for number in range(7)]
    assert await error(client.conversations_list(cursor="nonsense")) == "invalid_cursor"


async def test_a_channel_is_read_backwards_and_a_thread_forwards(
    client: AsyncWebClient, ada: Person, team: Channel
) -> None:
    first = await ada.posts(team, "first")
    second = await ada.posts(team, "second")
    await ada.posts(team, "reply", thread=first)
    await ada.posts(team, "loud reply", thread=first, broadcast=True)
    history = await client.conversations_history(channel=team.id)
    assert [message["text"] for message in history["messages"]] == ["loud reply", "second", "first"]
    assert (history["messages"][2]["reply_count"], history["messages"][2]["thread_ts"]) == (2, first.ts)
    thread = await client.conversations_replies(channel=team.id, ts=first.ts)
    assert [message["text"] for message in thread["messages"]] == ["first", "reply", "loud reply"]
    later = await client.conversations_history(channel=team.id, oldest=second.ts, inclusive=True, limit=1)
    assert [message["text"] for message in later["messages"]] == ["loud reply"]
    assert later["has_more"]


async def test_a_distributed_app_reads_little_and_seldom(
    slack: SlackServer, client: AsyncWebClient, app: App, ada: Person, team: Channel
) -> None:
    app.distributed = True
    slack.timing = Timing(history=60)
    for number in range(20):
        await ada.posts(team, str(number))
    assert len((await client.conversations_history(channel=team.id, limit=200))["messages"]) == 15
    limited = await refused(client.conversations_history(channel=team.id))
    assert limited.response.status_code == 429
    assert int(limited.response.headers["Retry-After"]) in range(50, 61)


async def test_people_are_what_they_are(slack: SlackServer, client: AsyncWebClient, ada: Person) -> None:
    guest = slack.person(ada.team, "gus", is_ultra_restricted=True)
    gone = slack.person(ada.team, "gone", deleted=True)
    members = {user["name"]: user for user in (await client.users_list())["members"]}
    assert members["ada"]["is_admin"] and not members["ada"]["is_bot"]
    assert members["threadlore"]["is_bot"]
    assert members["gus"]["is_restricted"] and members["gus"]["is_ultra_restricted"]
    assert members["gone"]["deleted"]
    assert (await client.users_info(user=guest.id))["user"]["name"] == guest.name
    assert (await client.users_info(user=gone.id))["user"]["deleted"]
    assert await error(client.users_info(user="U1")) == "user_not_found"


async def test_a_permalink_leads_to_the_message(client: AsyncWebClient, ada: Person, team: Channel) -> None:
    root = await ada.posts(team, "root")
    reply = await ada.posts(team, "reply", thread=root)
    link = (await client.chat_getPermalink(channel=team.id, message_ts=reply.ts))["permalink"]
    place = f"https://acme.slack.com/archives/{team.id}/p{reply.ts.replace('.', '')}"
    assert link == f"{place}?thread_ts={root.ts}&cid={team.id}"


async def test_a_reaction_stands_once(client: AsyncWebClient, ada: Person, team: Channel) -> None:
    message = await ada.posts(team, "hello")
    await client.reactions_add(channel=team.id, timestamp=message.ts, name="eyes")
    assert await error(client.reactions_add(channel=team.id, timestamp=message.ts, name="eyes")) == "already_reacted"
    assert await error(client.reactions_add(channel=team.id, timestamp=message.ts, name="!")) == "invalid_name"
    assert ada.sees(message).reactions == {"eyes": 1}
    await client.reactions_remove(channel=team.id, timestamp=message.ts, name="eyes")
    assert await error(client.reactions_remove(channel=team.id, timestamp=message.ts, name="eyes")) == "no_reaction"
    assert ada.sees(message).reactions == {}


async def test_every_call_is_written_down(slack: SlackServer, client: AsyncWebClient, team: Channel) -> None:
    await client.chat_postMessage(channel=team.id, text="one")
    await error(client.chat_postMessage(channel="C1", text="two"))
    good, bad = slack.calls("chat.postMessage")
    assert (good.arguments["text"], good.ok, good.token) == ("one", True, client.token)
    assert (bad.error, bad.status) == ("channel_not_found", 200)
    assert good.at < bad.at


async def test_a_method_that_does_not_exist_is_refused(client: AsyncWebClient) -> None:
    assert await error(client.api_call("chat.shout")) == "unknown_method"
