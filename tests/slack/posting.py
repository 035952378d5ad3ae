"""Messages: posted, edited, deleted, reacted to. Each tells the apps that may hear of it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from tests.slack import rendering
from tests.slack.changes import locked
from tests.slack.errors import SlackError
from tests.slack.events import Happening, announce
from tests.slack.shapes import message_json, rich_text
from tests.slack.workspace import (
    SCOPE_NAMES,
    App,
    Channel,
    File,
    Installation,
    Json,
    Message,
    Slack,
    Stream,
    Team,
    User,
)

UNTHREADED = ("channel_join", "channel_leave")


@dataclass
class Draft:
    """What is to be posted."""

    text: str = ""
    thread_ts: str = ""
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    metadata: Json | None = None
    broadcast: bool = False
    subtype: str = ""
    stream: Stream | None = None
    extra: Json = field(default_factory=dict)


@locked
def post(slack: Slack, channel: Channel, author: User | Installation, draft: Draft) -> Message:
    message = _written(slack, channel, author, draft)
    root = thread_root(slack, channel, draft.thread_ts)
    before = message_json(root, slack) if root else {}
    message.thread_ts = root.ts if root else ""
    if root and draft.broadcast:
        message.subtype = "thread_broadcast"
    channel.messages[message.ts] = message
    _share_files(message)
    _clear_status(message)
    show(slack, message)
    _tell(slack, message)
    if root:
        _tell_of_reply(slack, root, before)
    return message


@locked
def post_by_webhook(slack: Slack, channel: Channel, name: str, text: str) -> Message:
    """A message without a user, as incoming webhooks write it."""
    nobody = User(slack.ids.new("U"), channel.team, name, is_bot=True)
    extra = {"bot_id": slack.ids.new("B"), "username": name}
    return post(slack, channel, nobody, Draft(text, subtype="bot_message", extra=extra))


@locked
def whisper(slack: Slack, channel: Channel, author: Installation, to: User, draft: Draft) -> Message:
    """An ephemeral message: it stands nowhere, and no app hears of it."""
    message = _written(slack, channel, author, draft)
    message.thread_ts = draft.thread_ts
    message.only_for = to
    channel.ephemerals.append(message)
    show(slack, message)
    return message


@locked
def rewrite(slack: Slack, message: Message, editor: User, draft: Draft) -> None:
    """An edit, by who wrote it."""
    before = message_json(message, slack)
    message.text = draft.text
    message.blocks = numbered(draft.blocks)
    message.attachments = draft.attachments
    message.metadata = draft.metadata or message.metadata
    message.edited = {"user": editor.id, "ts": f"{slack.clock.ts().split('.')[0]}.000000"}
    show(slack, message)
    tell_of_change(slack, message, before)
    for installation in _mentioned(slack, message):
        if installation.bot.mention not in before["text"]:
            _tell_mentioned(slack, message, installation)


@locked
def erase(slack: Slack, message: Message) -> None:
    """What has replies leaves a gravestone."""
    before = message_json(message, slack)
    if message.channel.replies(message.ts):
        message.subtype = "tombstone"
        show(slack, message)
        tell_of_change(slack, message, before)
        return
    message.deleted = True
    root = message.channel.messages.get(message.thread_ts)
    _announce_message(slack, message.channel, _deletion(slack, message, before))
    if root and root.subtype == "tombstone" and not message.channel.replies(root.ts):
        root.deleted = True
    slack.changes.notify()


@locked
def unfurl(slack: Slack, message: Message, attachment: Json) -> None:
    """Slack shows what a link leads to: a change that nobody made."""
    before = message_json(message, slack)
    message.attachments = [*message.attachments, attachment]
    show(slack, message)
    tell_of_change(slack, message, before)


@locked
def react(slack: Slack, message: Message, user: User, name: str) -> None:
    users = message.reactions.setdefault(name, [])
    if user.id in users:
        raise SlackError("already_reacted")
    users.append(user.id)
    _tell_of_reaction(slack, message, user, {"type": "reaction_added", "reaction": name})


@locked
def unreact(slack: Slack, message: Message, user: User, name: str) -> None:
    users = message.reactions.get(name, [])
    if user.id not in users:
        raise SlackError("no_reaction")
    users.remove(user.id)
    if not users:
        del message.reactions[name]
    _tell_of_reaction(slack, message, user, {"type": "reaction_removed", "reaction": name})


def thread_root(slack: Slack, channel: Channel, ts: str) -> Message | None:
    """What a thread hangs on. A reply's timestamp means its thread; a deleted root comes back as a gravestone."""
    if not ts:
        return None
    found = channel.messages.get(ts)
    if found is None:
        raise SlackError("thread_not_found")
    root = channel.messages.get(found.thread_ts, found)
    if root.deleted:
        root.deleted, root.subtype = False, "tombstone"
    if root.subtype in UNTHREADED:
        raise SlackError("cannot_reply_to_message")
    return root


def show(slack: Slack, message: Message) -> None:
    """Keep what people see of it from now on."""
    seen = rendering.plain(message, slack)
    if not message.shown or message.shown[-1] != seen:
        message.shown.append(seen)
    slack.changes.notify()


def tell_of_change(slack: Slack, message: Message, before: Json) -> None:
    event = {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "message": message_json(message, slack),
        "previous_message": before,
    }
    _announce_message(slack, message.channel, event | {"ts": slack.clock.ts()})


def _written(slack: Slack, channel: Channel, author: User | Installation, draft: Draft) -> Message:
    by_app = author if isinstance(author, Installation) else None
    user = author.bot if isinstance(author, Installation) else author
    return Message(
        channel=channel,
        ts=slack.clock.ts(),
        user=user,
        text=draft.text,
        subtype=draft.subtype,
        blocks=numbered(draft.blocks) if by_app else (rich_text(draft.text) if draft.text else []),
        attachments=draft.attachments,
        files=draft.files,
        installation=by_app,
        metadata=draft.metadata,
        client_msg_id="" if by_app or draft.files or draft.subtype else str(uuid.uuid4()),
        stream=draft.stream,
        extra=draft.extra,
    )


def numbered(blocks: list[Json], first: int = 0) -> list[Json]:
    """Blocks and elements that were given no id get one."""
    return [_with_ids(block, str(number)) for number, block in enumerate(blocks, first)]


def _with_ids(block: Json, ident: str) -> Json:
    named = {"block_id": f"b{ident}", **block}
    if "elements" in named and named["type"] == "actions":
        elements = named["elements"]
        named["elements"] = [{"action_id": f"a{ident}{index}", **each} for index, each in enumerate(elements)]
    if "accessory" in named:
        named["accessory"] = {"action_id": f"a{ident}", **named["accessory"]}
    return named


def _share_files(message: Message) -> None:
    for file in message.files:
        if message.channel.id not in file.channels:
            file.channels.append(message.channel.id)


def _clear_status(message: Message) -> None:
    if message.installation:
        message.channel.statuses.pop(message.root_ts, None)


def _tell(slack: Slack, message: Message) -> None:
    event = message_json(message, slack)
    if message.files and not message.subtype:
        event["subtype"] = "file_share"
    if message.subtype == "thread_broadcast":
        event["root"] = message_json(message.channel.messages[message.thread_ts], slack)
    _announce_message(slack, message.channel, event, message)
    for installation in _mentioned(slack, message):
        if not message.files or installation.app.mentions_with_files:
            _tell_mentioned(slack, message, installation)


def _tell_of_reply(slack: Slack, root: Message, before: Json) -> None:
    """The number of replies is part of the root."""
    if slack.habits.replies_change_roots:
        tell_of_change(slack, root, before)
    if slack.habits.replies_are_told:
        event = {"type": "message", "subtype": "message_replied", "hidden": True, "message": message_json(root, slack)}
        _announce_message(slack, root.channel, event | {"ts": slack.clock.ts()})


def _mentioned(slack: Slack, message: Message) -> list[Installation]:
    if message.channel.kind == "im" or message.subtype not in ("", "thread_broadcast"):
        return []
    return [found for found in slack.installations if found.bot.mention in message.text]


def _tell_mentioned(slack: Slack, message: Message, installation: Installation) -> None:
    event = message_json(message, slack) | {"type": "app_mention", "channel": message.channel.id}
    happening = Happening(
        event | {"event_ts": message.ts},
        "app_mention",
        ("app_mentions:read",),
        message.channel,
        (installation.team,),
        app=installation.app,
    )
    announce(slack, happening)


def _deletion(slack: Slack, message: Message, before: Json) -> Json:
    return {
        "type": "message",
        "subtype": "message_deleted",
        "hidden": True,
        "deleted_ts": message.ts,
        "previous_message": before,
        "ts": slack.clock.ts(),
    }


def _announce_message(slack: Slack, channel: Channel, event: Json, message: Message | None = None) -> None:
    announce(slack, *(_as_seen_by(slack, team, channel, event, message) for team in channel.teams))


def _as_seen_by(slack: Slack, team: Team, channel: Channel, event: Json, message: Message | None) -> Happening:
    own = event | {"channel": channel.id, "channel_type": channel.type, "event_ts": event["ts"]}
    if message and message.files:
        own["files"] = message_json(message, slack, team)["files"]
    scopes = (channel.scope("history"),)
    return Happening(own, f"message.{SCOPE_NAMES[channel.kind]}", scopes, channel, (team,))


def _tell_of_reaction(slack: Slack, message: Message, user: User, event: Json) -> None:
    own = {
        "user": user.id,
        "item_user": message.user.id,
        "item": {"type": "message", "channel": message.channel.id, "ts": message.ts},
        "event_ts": slack.clock.ts(),
    }
    announce(slack, Happening(event | own, event["type"], ("reactions:read",), message.channel))
    slack.changes.notify()


def written_by(message: Message, app: App) -> bool:
    return message.installation is not None and message.installation.app is app
