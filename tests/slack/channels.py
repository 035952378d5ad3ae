"""Channels: who comes and goes, and what is done to them."""

from __future__ import annotations

from tests.slack.changes import locked
from tests.slack.errors import SlackError
from tests.slack.events import Happening, announce
from tests.slack.posting import Draft, post
from tests.slack.workspace import Channel, Installation, Json, Kind, Slack, Team, User

LETTERS: dict[Kind, str] = {"public": "C", "private": "G", "im": "D", "mpim": "G"}


@locked
def create(slack: Slack, creator: User, name: str, *, private: bool = False) -> Channel:
    channel = slack.add_channel(creator, name, "private" if private else "public", [creator])
    if not private:
        _tell(slack, channel, {"type": "channel_created", "channel": _brief(channel) | {"creator": creator.id}}, True)
    return channel


@locked
def join(slack: Slack, channel: Channel, user: User, inviter: User | None = None) -> None:
    if channel.is_archived:
        raise SlackError("is_archived")
    if user in channel.members:
        raise SlackError("already_in_channel")
    channel.members.append(user)
    extra = {"inviter": inviter.id} if inviter else {}
    post(slack, channel, user, _notice("channel_join", f"{user.mention} has joined the channel", extra))
    _tell(slack, channel, _membership("member_joined_channel", channel, user) | extra)


@locked
def leave(slack: Slack, channel: Channel, user: User, remover: User | None = None) -> None:
    if user not in channel.members:
        raise SlackError("not_in_channel")
    gone = [installation for installation in slack.installations if installation.bot is user]
    post(slack, channel, user, _notice("channel_leave", f"{user.mention} has left the channel"))
    channel.members.remove(user)
    _tell(slack, channel, _membership("member_left_channel", channel, user), also=tuple(gone))
    left = {"type": "channel_left" if channel.kind == "public" else "group_left", "channel": channel.id}
    for installation in gone:
        _tell_own(slack, channel, installation, left | {"actor_id": (remover or user).id})


@locked
def archive(slack: Slack, channel: Channel, user: User) -> None:
    channel.is_archived = True
    post(slack, channel, user, _notice("channel_archive", f"{user.mention} archived the channel"))
    _tell(
        slack,
        channel,
        {"type": _named("archive", channel), "channel": channel.id, "user": user.id, "is_moved": 0},
        True,
    )


@locked
def unarchive(slack: Slack, channel: Channel, user: User) -> None:
    channel.is_archived = False
    _tell(slack, channel, {"type": _named("unarchive", channel), "channel": channel.id, "user": user.id}, True)


@locked
def rename(slack: Slack, channel: Channel, user: User, name: str) -> None:
    old, channel.name = channel.name, name
    channel.previous_names.insert(0, old)
    notice = _notice("channel_name", f"{user.mention} has renamed the channel", {"old_name": old, "name": name})
    post(slack, channel, user, notice)
    _tell(slack, channel, {"type": _named("rename", channel), "channel": _brief(channel)}, True)


@locked
def delete(slack: Slack, channel: Channel) -> None:
    _tell(slack, channel, {"type": f"{_noun(channel)}_deleted", "channel": channel.id}, True)
    del slack.channels[channel.id]
    slack.changes.notify()


@locked
def convert(slack: Slack, channel: Channel, user: User, kind: Kind) -> None:
    """Slack says so in a message, and in no other event."""
    channel.kind = kind
    ends = {
        "private": "*private*. Now, it can only be viewed or joined by invitation.",
        "public": "*public*. Any member in this workspace can see and join it.",
    }
    notice = _notice(f"channel_convert_to_{kind}", f"made this channel {ends[kind]}")
    post(slack, channel, user, notice)


@locked
def share(slack: Slack, channel: Channel, team: Team) -> None:
    """Slack Connect: the channel stands in both teams, under one id."""
    channel.connected.append(team)
    _tell(slack, channel, {"type": "channel_shared", "connected_team_id": team.id, "channel": channel.id}, True)


@locked
def unshare(slack: Slack, channel: Channel, team: Team) -> None:
    event = {
        "type": "channel_unshared",
        "previously_connected_team_id": team.id,
        "channel": channel.id,
        "is_ext_shared": len(channel.connected) > 1,
    }
    _tell(slack, channel, event, True)
    channel.connected.remove(team)
    channel.members = [user for user in channel.members if user.team in channel.teams]
    slack.changes.notify()


def _noun(channel: Channel) -> str:
    return "channel" if channel.kind == "public" else "group"


def _named(verb: str, channel: Channel) -> str:
    return f"{_noun(channel)}_{verb}"


def _notice(subtype: str, text: str, extra: Json | None = None) -> Draft:
    return Draft(text=text, subtype=subtype, extra=extra or {})


def _brief(channel: Channel) -> Json:
    return {
        "id": channel.id,
        "name": channel.name,
        "name_normalized": channel.name,
        "created": channel.created,
        "is_channel": channel.kind == "public",
        "is_mpim": False,
    }


def _membership(kind: str, channel: Channel, user: User) -> Json:
    return {
        "type": kind,
        "user": user.id,
        "channel": channel.id,
        "channel_type": LETTERS[channel.kind],
        "team": user.team.id,
    }


def _tell(
    slack: Slack, channel: Channel, event: Json, anywhere: bool = False, also: tuple[Installation, ...] = ()
) -> None:
    """Of a public channel apps hear without being in it, of a private one never."""
    happening = Happening(
        event | {"event_ts": slack.clock.ts()},
        event["type"],
        (channel.scope("read"),),
        channel,
        anywhere=anywhere and channel.kind == "public",
        also=also,
    )
    announce(slack, happening)
    slack.changes.notify()


def _tell_own(slack: Slack, channel: Channel, installation: Installation, event: Json) -> None:
    happening = Happening(
        event | {"event_ts": slack.clock.ts()},
        event["type"],
        (channel.scope("read"),),
        channel,
        (installation.team,),
        app=installation.app,
        also=(installation,),
    )
    announce(slack, happening)
