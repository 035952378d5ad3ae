from __future__ import annotations

from tests.slack import posting
from tests.slack.api.call import Request, method
from tests.slack.errors import SlackError
from tests.slack.shapes import message_json
from tests.slack.workspace import Json, Message

MOST_EMOJI = 23
NAME = "abcdefghijklmnopqrstuvwxyz0123456789_+-':"


@method("reactions.add", "reactions:write")
def add(request: Request) -> Json:
    message = _message(request)
    name = _name(request)
    if name not in message.reactions and len(message.reactions) >= MOST_EMOJI:
        raise SlackError("too_many_emoji")
    posting.react(request.slack, message, request.caller.bot, name)
    return {}


@method("reactions.remove", "reactions:write")
def remove(request: Request) -> Json:
    posting.unreact(request.slack, _message(request), request.caller.bot, _name(request))
    return {}


@method("reactions.get", "reactions:read")
def get(request: Request) -> Json:
    message = _message(request)
    shown = message_json(message, request.slack, request.team)
    return {"type": "message", "channel": message.channel.id, "message": shown}


def _message(request: Request) -> Message:
    channel = request.entered()
    if channel.is_archived and request.call.method != "reactions.get":
        raise SlackError("is_archived")
    return request.message(channel, request.required("timestamp"))


def _name(request: Request) -> str:
    name = request.required("name").strip(":")
    if not name or set(name) - set(NAME):
        raise SlackError("invalid_name")
    return name
