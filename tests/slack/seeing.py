"""What one person sees."""

from __future__ import annotations

from dataclasses import dataclass

from tests.slack import rendering
from tests.slack.rendering import Button
from tests.slack.workspace import Channel, File, Message, Slack, User


@dataclass(frozen=True)
class Shown:
    """A message as it stands before somebody."""

    message: Message
    ts: str
    author: User
    by_app: bool
    text: str
    buttons: tuple[Button, ...]
    files: tuple[File, ...]
    reactions: dict[str, int]
    edited: bool
    deleted: bool  # a gravestone
    only_for_me: bool
    is_streaming: bool

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(button.text for button in self.buttons)


def look(slack: Slack, message: Message) -> Shown:
    return Shown(
        message=message,
        ts=message.ts,
        author=message.user,
        by_app=message.installation is not None,
        text=rendering.plain(message, slack),
        buttons=tuple(rendering.buttons(message.blocks)) if message.subtype != "tombstone" else (),
        files=tuple(file for file in message.files if not file.deleted),
        reactions={name: len(users) for name, users in message.reactions.items()},
        edited=message.edited is not None,
        deleted=message.subtype == "tombstone",
        only_for_me=message.only_for is not None,
        is_streaming=message.stream is not None and message.stream.state == "in_progress",
    )


def thread(slack: Slack, channel: Channel, ts: str, reader: User) -> list[Shown]:
    own = [message for message in _whispered(channel, reader) if message.thread_ts == ts]
    return _in_order(slack, [*channel.thread(ts), *own])


def channel_itself(slack: Slack, channel: Channel, reader: User) -> list[Shown]:
    own = [message for message in _whispered(channel, reader) if not message.thread_ts]
    return _in_order(slack, [*(message for message in channel.standing() if message.in_channel), *own])


def _whispered(channel: Channel, reader: User) -> list[Message]:
    return [message for message in channel.ephemerals if message.only_for is reader and not message.deleted]


def _in_order(slack: Slack, messages: list[Message]) -> list[Shown]:
    return [look(slack, message) for message in sorted(messages, key=lambda message: message.ts)]
