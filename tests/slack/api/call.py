"""One call of the Web API: who calls, with what, and what that lets them do."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from tests.slack.errors import SlackError, invalid_arguments
from tests.slack.workspace import App, Channel, Installation, Json, Message, Slack, Team, User

T = TypeVar("T")
Handler = Callable[["Request"], Json]


@dataclass(eq=False)
class Call:
    method: str
    arguments: Json
    token: str
    at: float = field(default_factory=time.monotonic)
    answer: Json | None = None
    status: int = 0

    @property
    def ok(self) -> bool:
        return bool(self.answer and self.answer.get("ok"))

    @property
    def error(self) -> str:
        return str(self.answer.get("error", "")) if self.answer else ""


@dataclass(eq=False)
class Request:
    """A call by somebody that Slack knows."""

    slack: Slack
    call: Call
    app: App
    by: Installation | None

    @property
    def caller(self) -> Installation:
        if self.by is None:
            raise SlackError("not_allowed_token_type")
        return self.by

    @property
    def team(self) -> Team:
        return self.caller.team

    def has(self, name: str) -> bool:
        return self.call.arguments.get(name) not in (None, "")

    def text(self, name: str, default: str = "") -> str:
        return str(self.call.arguments[name]) if self.has(name) else default

    def required(self, name: str) -> str:
        if not self.has(name):
            raise invalid_arguments(f"missing required field: {name}")
        return self.text(name)

    def flag(self, name: str, default: bool = False) -> bool:
        return self.text(name).lower() in ("1", "true") if self.has(name) else default

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.text(name) or default)
        except ValueError:
            raise SlackError(f"invalid_{name}") from None

    def structure(self, name: str, error: str, default: Any = None) -> Any:
        """An argument that may be JSON or JSON in a string."""
        value = self.call.arguments.get(name)
        if not isinstance(value, str):
            return default if value is None else value
        try:
            return json.loads(value) if value else default
        except ValueError:
            raise SlackError(error) from None

    def needs(self, *scopes: str) -> None:
        if not self.caller.may(*scopes):
            raise missing_scope(self.caller.scopes, scopes)

    def user(self, name: str = "user") -> User:
        user = self.slack.users.get(self.required(name))
        if user is None or not self._knows(user):
            raise SlackError("user_not_found")
        return user

    def channel(self, name: str = "channel") -> Channel:
        """A channel that the caller can see."""
        channel = self.slack.channels.get(self.required(name))
        if channel is None or not self._sees(channel):
            raise SlackError("channel_not_found")
        return channel

    def entered(self, name: str = "channel") -> Channel:
        """A channel that the caller's bot is in."""
        channel = self.channel(name)
        if self.caller.bot not in channel.members:
            raise SlackError("not_in_channel")
        return channel

    def message(self, channel: Channel, ts: str) -> Message:
        message = channel.messages.get(ts)
        if message is None or message.deleted or message.subtype == "tombstone":
            raise SlackError("message_not_found")
        return message

    def page(self, items: Sequence[T], default: int, most: int) -> tuple[list[T], str]:
        """The items that were asked for, and the cursor of the next page."""
        start = _position(self.text("cursor"))
        limit = self.number("limit", default)
        if limit < 1:
            raise SlackError("invalid_limit")
        end = start + min(limit, most)
        return list(items[start:end]), _cursor(end) if end < len(items) else ""

    def _knows(self, user: User) -> bool:
        """People of the team, and those that share a channel with it."""
        shared = (channel for channel in self.slack.channels.values() if self.team in channel.teams)
        return user.team is self.team or any(user in channel.members for channel in shared)

    def _sees(self, channel: Channel) -> bool:
        if self.team not in channel.teams:
            return False
        return channel.kind == "public" or self.caller.bot in channel.members


@dataclass(frozen=True)
class Method:
    """`token` says by what the caller is known: a bot's token, the app's own, or the client's id and secret."""

    handle: Handler
    scopes: tuple[str, ...]
    token: Literal["bot", "app", "client"]


METHODS: dict[str, Method] = {}


def method(name: str, *scopes: str, token: Literal["bot", "app", "client"] = "bot") -> Callable[[Handler], Handler]:
    """One of the scopes is needed."""

    def register(handle: Handler) -> Handler:
        METHODS[name] = Method(handle, scopes, token)
        return handle

    return register


def missing_scope(provided: Iterable[str], needed: Iterable[str]) -> SlackError:
    return SlackError("missing_scope", needed=",".join(needed), provided=",".join(sorted(provided)))


def next_page(cursor: str) -> Json:
    return {"response_metadata": {"next_cursor": cursor}}


def _cursor(position: int) -> str:
    return base64.b64encode(f"next:{position}".encode()).decode()


def _position(cursor: str) -> int:
    if not cursor:
        return 0
    try:
        return int(base64.b64decode(cursor, validate=True).decode().removeprefix("next:"))
    except ValueError:
        raise SlackError("invalid_cursor") from None
