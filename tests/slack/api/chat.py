from __future__ import annotations

from tests.slack import blocks as block_kit
from tests.slack import posting
from tests.slack.api.call import Request, method
from tests.slack.errors import SlackError
from tests.slack.posting import Draft
from tests.slack.shapes import message_json
from tests.slack.wording import as_sent
from tests.slack.workspace import Channel, Json, Message

LONGEST_TEXT = 40_000
LONGEST_EDIT = 4_000


@method("chat.postMessage", "chat:write")
def post_message(request: Request) -> Json:
    channel = destination(request)
    message = posting.post(request.slack, channel, request.caller, draft(request))
    shown = message_json(message, request.slack, request.team)
    return {"channel": channel.id, "ts": message.ts, "message": shown}


@method("chat.postEphemeral", "chat:write")
def post_ephemeral(request: Request) -> Json:
    channel = destination(request)
    reader = request.user()
    if reader not in channel.members:
        raise SlackError("user_not_in_channel")
    message = posting.whisper(request.slack, channel, request.caller, reader, draft(request))
    return {"message_ts": message.ts}


@method("chat.update", "chat:write")
def update(request: Request) -> Json:
    message = _own(request, "cant_update_message")
    if message.stream and message.stream.state == "in_progress":
        raise SlackError("streaming_state_conflict")
    if len(request.text("text")) > LONGEST_EDIT:
        raise SlackError("msg_too_long")
    new = draft(request)
    if "blocks" not in request.call.arguments and not request.has("markdown_text"):
        new.blocks = message.blocks
    if "attachments" not in request.call.arguments:
        new.attachments = message.attachments
    posting.rewrite(request.slack, message, request.caller.bot, new)
    shown = message_json(message, request.slack, request.team)
    return {"channel": message.channel.id, "ts": message.ts, "text": message.text, "message": shown}


@method("chat.delete", "chat:write")
def delete(request: Request) -> Json:
    message = _own(request, "cant_delete_message")
    posting.erase(request.slack, message)
    return {"channel": message.channel.id, "ts": message.ts}


@method("chat.getPermalink")
def get_permalink(request: Request) -> Json:
    channel = request.channel()
    message = request.message(channel, request.required("message_ts"))
    return {"channel": channel.id, "permalink": request.slack.permalink(message, request.team)}


def destination(request: Request) -> Channel:
    """Where the bot may post: by id, by name, or to a person."""
    channel = _addressed(request, request.required("channel"))
    if channel is None or request.team not in channel.teams:
        raise SlackError("channel_not_found")
    if request.caller.bot not in channel.members:
        raise SlackError("channel_not_found" if channel.is_private else "not_in_channel")
    if channel.is_archived:
        raise SlackError("is_archived")
    return channel


def draft(request: Request) -> Draft:
    """What the arguments say is to be posted."""
    written = request.text("markdown_text")
    text = request.text("text")
    if written and (text or request.has("blocks")):
        raise SlackError("markdown_text_conflict")
    if len(written) > block_kit.MARKDOWN or len(text) > LONGEST_TEXT:
        raise SlackError("msg_too_long")
    given = block_kit.check(request.structure("blocks", "invalid_blocks_format", []))
    attachments = request.structure("attachments", "invalid_attachments", [])
    if not (text or written or given or attachments):
        raise SlackError("no_text")
    return Draft(
        text=as_sent(text or written),
        thread_ts=request.text("thread_ts"),
        blocks=[{"type": "markdown", "text": written}] if written else given,
        attachments=attachments,
        metadata=metadata(request),
        broadcast=request.flag("reply_broadcast"),
    )


def metadata(request: Request) -> Json | None:
    found: Json | None = request.structure("metadata", "invalid_metadata_format")
    if found is not None and not {"event_type", "event_payload"} <= found.keys():
        raise SlackError("invalid_metadata_format")
    return found


def _addressed(request: Request, name: str) -> Channel | None:
    if name in request.slack.channels:
        return request.slack.channels[name]
    user = request.slack.users.get(name)
    if user is not None:
        return request.slack.direct(request.caller.bot, user)
    named = (found for found in request.slack.channels.values() if found.name == name.removeprefix("#") and found.name)
    return next((found for found in named if request.team in found.teams), None)


def _own(request: Request, otherwise: str) -> Message:
    channel = request.channel()
    message = request.message(channel, request.required("ts"))
    if not posting.written_by(message, request.app):
        raise SlackError(otherwise)
    if channel.is_archived:
        raise SlackError("is_archived")
    return message
