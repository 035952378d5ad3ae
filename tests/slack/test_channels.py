"""Channels and what apps hear of them; several workspaces, and channels that two of them share."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.bolt_bot import BoltBot, Transport
from tests.slack.errors import SlackError
from tests.slack.hearing import kinds, told
from tests.slack.people import NotThere, Person
from tests.slack.server import SlackServer
from tests.slack.workspace import App, Channel, Installation


@pytest.fixture
def transport() -> Transport:
    return "socket"


@pytest.fixture
def gil(slack: SlackServer) -> Person:
    """Somebody of another team."""
    return slack.person(slack.team("Globex"), "gil")


async def test_a_bot_that_is_invited_hears_of_it(
    slack: SlackServer, bot: BoltBot, app: App, ada: Person, installed: Installation
) -> None:
    await bot.connects()
    channel = slack.channel("new", by=ada)
    await ada.invites(channel, installed)
    await slack.until_settled(app)
    joined = next(event for event in told(slack, app) if event["type"] == "member_joined_channel")
    assert (joined["user"], joined["inviter"], joined["channel"]) == (installed.bot.id, ada.id, channel.id)
    assert (joined["channel_type"], joined["team"]) == ("C", ada.team.id)
    assert "member_joined_channel" in {event["type"] for event in bot.heard}


async def test_a_bot_that_is_removed_hears_of_that_and_of_nothing_more(
    slack: SlackServer, app: App, ada: Person, team: Channel, installed: Installation
) -> None:
    await ada.removes(team, installed)
    await ada.posts(team, "we are alone")
    assert kinds(told(slack, app)) == ["channel_leave", "member_left_channel", "channel_left"]


async def test_people_come_and_go(slack: SlackServer, app: App, ada: Person, ben: Person, team: Channel) -> None:
    cid = slack.newcomer(ada.team, "cid")
    await cid.joins(team)
    await ben.leaves(team)
    assert kinds(told(slack, app)) == [
        "team_join",
        "channel_join",
        "member_joined_channel",
        "channel_leave",
        "member_left_channel",
    ]
    assert [user.name for user in team.members] == ["ada", "threadlore", "cid"]


async def test_what_is_done_to_a_channel_is_told_of(
    slack: SlackServer, app: App, client: AsyncWebClient, ada: Person, team: Channel
) -> None:
    await ada.renames(team, "crew")
    await ada.archives(team)
    await ada.unarchives(team)
    events = [event for event in told(slack, app) if event["type"] != "message"]
    assert [event["type"] for event in events] == ["channel_rename", "channel_archive", "channel_unarchive"]
    assert events[0]["channel"]["name"] == "crew"
    assert (await client.conversations_info(channel=team.id))["channel"]["previous_names"] == ["team"]


async def test_of_a_private_channel_other_names_are_told(
    slack: SlackServer, app: App, ada: Person, installed: Installation
) -> None:
    secret = slack.channel("secret", by=ada, members=[installed], private=True)
    await ada.archives(secret)
    assert kinds(told(slack, app)) == ["channel_archive", "group_archive"]


async def test_a_new_public_channel_is_told_of_and_a_private_one_is_not(
    slack: SlackServer, app: App, ada: Person, installed: Installation
) -> None:
    await ada.creates_channel("secret", private=True)
    await ada.creates_channel("open")
    (created,) = told(slack, app)
    assert (created["type"], created["channel"]["name"]) == ("channel_created", "open")


async def test_a_channel_that_becomes_private_says_so_in_a_message(
    slack: SlackServer, app: App, client: AsyncWebClient, ada: Person, team: Channel
) -> None:
    before = team.id
    await ada.converts(team, "private")
    (converted,) = told(slack, app)
    assert (converted["type"], converted["subtype"]) == ("message", "channel_convert_to_private")
    assert (converted["channel"], converted["channel_type"]) == (before, "group")
    assert (await client.conversations_info(channel=team.id))["channel"]["is_private"]
    await ada.converts(team, "public")
    assert kinds(told(slack, app))[-1] == "channel_convert_to_public"


async def test_nobody_sees_or_writes_where_they_are_not(slack: SlackServer, ada: Person, ben: Person) -> None:
    secret = slack.channel("secret", by=ada, private=True)
    message = await ada.posts(secret, "hush")
    with pytest.raises(NotThere):
        ben.thread(message)
    with pytest.raises(SlackError, match="not_in_channel"):
        await ben.posts(secret, "hello")
    with pytest.raises(SlackError):
        await ben.joins(secret)


async def test_a_guest_sees_only_the_channels_they_are_in(slack: SlackServer, ada: Person, team: Channel) -> None:
    guest = slack.person(ada.team, "gus", is_ultra_restricted=True)
    with pytest.raises(NotThere):
        guest.channel(team)
    with pytest.raises(SlackError, match="user_is_restricted"):
        await guest.joins(team)
    await ada.invites(team, guest)
    assert [shown.text for shown in guest.channel(team)] == ["@gus has joined the channel"]


async def test_members_are_listed(client: AsyncWebClient, ada: Person, ben: Person, team: Channel) -> None:
    members = (await client.conversations_members(channel=team.id, limit=2))["members"]
    assert members == [ada.id, ben.id]
    mine = await client.users_conversations(types="public_channel,private_channel")
    assert [channel["id"] for channel in mine["channels"]] == [team.id]


async def test_a_change_of_a_person_is_told_of(slack: SlackServer, app: App, ben: Person, team: Channel) -> None:
    await ben.changes(is_restricted=True)
    (changed,) = told(slack, app)
    assert (changed["type"], changed["user"]["id"], changed["user"]["is_restricted"]) == ("user_change", ben.id, True)


async def test_two_workspaces_know_nothing_of_each_other(
    slack: SlackServer, app: App, client: AsyncWebClient, gil: Person, team: Channel
) -> None:
    elsewhere = slack.install(app, by=gil)
    theirs = slack.channel("theirs", by=gil, members=[elsewhere])
    await gil.posts(theirs, "hello")
    (delivery,) = slack.delivered(app)
    assert delivery.payload["team_id"] == gil.team.id
    other = AsyncWebClient(elsewhere.token, base_url=slack.api_url)
    assert (await other.auth_test())["team"] == "Globex"
    assert [channel["name"] for channel in (await other.conversations_list())["channels"]] == ["theirs"]
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await other.conversations_info(channel=team.id)
    with pytest.raises(SlackApiError, match="user_not_found"):
        await client.users_info(user=gil.id)


async def test_a_shared_channel_stands_in_both_teams_under_one_id(
    slack: SlackServer, app: App, client: AsyncWebClient, ada: Person, gil: Person, team: Channel
) -> None:
    await ada.shares(team, gil.team)
    await ada.invites(team, gil)
    shared = next(event for event in told(slack, app) if event["type"] == "channel_shared")
    assert (shared["connected_team_id"], shared["channel"]) == (gil.team.id, team.id)
    shape = (await client.conversations_info(channel=team.id))["channel"]
    assert (shape["is_ext_shared"], shape["connected_team_ids"]) == (True, [gil.team.id])
    await gil.posts(team, "hello from outside")
    heard = slack.delivered(app)[-1].payload
    assert heard["is_ext_shared_channel"]
    assert (heard["event"]["user_team"], heard["event"]["source_team"]) == (gil.team.id, gil.team.id)
    assert (await client.users_info(user=gil.id))["user"]["team_id"] == gil.team.id
    await ada.unshares(team, gil.team)
    assert kinds(told(slack, app))[-1] == "channel_unshared"
    assert gil.user not in team.members


async def both_installed(slack: SlackServer, app: App, ada: Person, gil: Person, team: Channel) -> Installation:
    elsewhere = slack.install(app, by=gil)
    await ada.shares(team, gil.team)
    await ada.invites(team, gil, elsewhere)
    return elsewhere


async def test_a_message_comes_through_each_installation_in_a_shared_channel(
    slack: SlackServer, app: App, ada: Person, gil: Person, team: Channel
) -> None:
    await both_installed(slack, app, ada, gil, team)
    message = await gil.posts(team, "hello")
    payloads = [each.payload for each in slack.delivered(app, "message") if each.event["ts"] == message.ts]
    assert {payload["team_id"] for payload in payloads} == {ada.team.id, gil.team.id}
    assert len({payload["event_id"] for payload in payloads}) == 2
    assert {payload["event"]["channel"] for payload in payloads} == {team.id}


async def test_or_it_comes_once_and_the_app_asks_who_may_hear_it(
    slack: SlackServer, app: App, client: AsyncWebClient, ada: Person, gil: Person, team: Channel
) -> None:
    app.one_event_for_all = True
    await both_installed(slack, app, ada, gil, team)
    message = await gil.posts(team, "hello")
    (payload,) = [each.payload for each in slack.delivered(app, "message") if each.event["ts"] == message.ts]
    answer: Any = await client.api_call(
        "apps.event.authorizations.list",
        json={"event_context": payload["event_context"], "token": app.app_token},
    )
    assert {each["team_id"] for each in answer["authorizations"]} == {ada.team.id, gil.team.id}
