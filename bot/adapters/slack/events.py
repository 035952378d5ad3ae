"""What happened on Slack, in the core's words. Pure: a payload in, a message or None out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.messages import Attachment, Incoming, Kind, ThreadRef

PLATFORM = "slack"
CHOOSE = "choose"  # the action of a clarification's button, with the clarification's id and the option's number
RATE = "rate"
COMMAND = "command"  # of a button that says a command

_SAID_BY_PEOPLE = frozenset({"", "file_share", "thread_broadcast", "me_message"})
_LINK = re.compile(r"<(?P<to>(?:https?|mailto|tel):[^|>]+)(?:\|(?P<label>[^>]*))?>")
_CHANNEL = re.compile(r"<#[A-Z0-9]+\|(?P<name>[^>]*)>")
_PERSON = re.compile(r"<@(?P<user>[A-Z0-9]+)(?:\|[^>]*)?>")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Me:
    """The bot as one workspace knows it. `url` is the workspace's own address, with a slash at its end."""

    team: str
    user: str
    bot: str
    url: str

    @property
    def workspace(self) -> str:
        """As nobody can name one on the page: else who is there could read what was posted here."""
        return f"{PLATFORM}:{self.team}"

    def link(self, channel: str, message: str, thread: str) -> str:
        """To a message, as Slack's own menu copies it."""
        link = f"{self.url}archives/{channel}/p{message.replace('.', '')}"
        return link if message == thread else f"{link}?thread_ts={thread}&cid={channel}"


def said(event: Json, me: Me) -> Incoming | None:
    """What a `message` or `app_mention` event says; None where that is nothing for the bot."""
    match event.get("subtype", ""):
        case "message_changed":
            return _changed(event, me)
        case "message_deleted":
            return _deleted(event, event.get("previous_message") or {}, me)
        case subtype if subtype in _SAID_BY_PEOPLE and is_of_person(event, me):
            return _posted(event, me)
    return None


def clicked(payload: Json, action: Json, me: Me) -> Incoming | None:
    """What a button says for who clicked it: an option of a clarification, or a command."""
    name = str(action["action_id"]).partition(":")[0]
    container, user = payload["container"], payload["user"]["id"]
    thread = container.get("thread_ts") or payload.get("message", {}).get("thread_ts") or container["message_ts"]
    click = Incoming(
        kind=Kind.COMMAND,
        where=_where(me, container["channel_id"], thread),
        message=f"{user}.{action['action_ts']}",
        user=user,
        sent_at=float(action["action_ts"]),
        mentions_bot=True,
    )
    if name == COMMAND:
        return click.model_copy(update={"text": str(action["value"])})
    if name != CHOOSE:
        return None
    clarification, _, option = str(action["value"]).rpartition(":")
    chosen = {"kind": Kind.ACTION, "clarification": clarification, "option": int(option)}
    return click.model_copy(update=chosen)


def joined(event: Json, me: Me) -> Incoming | None:
    """The bot is in a channel now; None where somebody else is."""
    if event["user"] != me.user:
        return None
    at = event.get("event_ts") or event["channel"]
    return Incoming(
        kind=Kind.JOIN,
        where=_where(me, event["channel"], f"join.{at}"),
        message=f"join.{at}",
        user=event.get("inviter") or "",
        sent_at=float(event.get("event_ts") or 0),
    )


def is_of_person(message: Json, me: Me) -> bool:
    """Not of a bot, and least of all of this one."""
    return not message.get("bot_id") and bool(message.get("user")) and message.get("user") != me.user


def plain(text: str) -> str:
    """Slack's text as it was typed: links by their labels, channels by their names. Mentions of people stay marked."""
    text = _LINK.sub(lambda link: link["label"] or link["to"], text)
    text = _CHANNEL.sub(lambda channel: f"#{channel['name']}", text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _posted(event: Json, me: Me) -> Incoming:
    text = event.get("text") or ""
    mentioned = {found["user"] for found in _PERSON.finditer(text)}
    return Incoming(
        kind=Kind.MESSAGE,
        where=_where(me, event["channel"], event.get("thread_ts") or event["ts"]),
        message=event["ts"],
        user=event["user"],
        text=plain(text),
        attachments=tuple(_attachments(event.get("files") or ())),
        sent_at=float(event["ts"]),
        direct=event.get("channel_type") == "im",
        mentions_bot=me.user in mentioned or event.get("type") == "app_mention",
        mentions_others=text.lstrip().startswith("<@") and bool(mentioned - {me.user}),
        link=me.link(event["channel"], event["ts"], event.get("thread_ts") or event["ts"]),
    )


def _changed(event: Json, me: Me) -> Incoming | None:
    """An edit by a person. Unfurled links and replies in the thread change a message as well."""
    message, before = event["message"], event.get("previous_message") or {}
    if message.get("subtype") == "tombstone":  # what stays of a deleted message that has replies
        return _deleted(event, before, me)
    if not is_of_person(message, me) or message.get("text", "") == before.get("text", ""):
        return None
    edited = (message.get("edited") or {}).get("ts") or event["event_ts"]
    posted = _posted({**message, "channel": event["channel"], "channel_type": event.get("channel_type")}, me)
    return posted.model_copy(
        update={"kind": Kind.EDIT, "revision": edited, "sent_at": float(edited), "attachments": ()}
    )


def _deleted(event: Json, before: Json, me: Me) -> Incoming | None:
    if not is_of_person(before, me):
        return None
    return Incoming(
        kind=Kind.DELETE,
        where=_where(me, event["channel"], before.get("thread_ts") or before["ts"]),
        message=before["ts"],
        user=before["user"],
        sent_at=float(event["event_ts"]),
        direct=event.get("channel_type") == "im",
    )


def _attachments(files: Iterable[Json]) -> Iterable[Attachment]:
    for file in files:
        if file.get("mode") in ("tombstone", "hidden_by_limit"):
            continue
        name = file.get("name") or file.get("title") or "Untitled"
        yield Attachment(name=name, size=int(file.get("size") or 0), reference=file["id"])


def _where(me: Me, channel: str, thread: str) -> ThreadRef:
    return ThreadRef(platform=PLATFORM, workspace=me.workspace, channel=channel, thread=thread)
