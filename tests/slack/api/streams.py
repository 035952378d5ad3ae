from __future__ import annotations

import time
from typing import Any

from tests.slack import blocks as block_kit
from tests.slack import posting
from tests.slack.api.call import Request, method
from tests.slack.api.chat import destination, metadata
from tests.slack.errors import SlackError
from tests.slack.posting import Draft
from tests.slack.shapes import message_json
from tests.slack.workspace import Json, Message, Stream


@method("chat.startStream", "chat:write")
def start(request: Request) -> Json:
    channel = destination(request)
    if channel.kind != "im":
        for name in ("recipient_user_id", "recipient_team_id"):
            if not request.has(name):
                raise SlackError(f"missing_{name}")
    stream = Stream(time.monotonic())
    _pieces(request, stream)
    draft = Draft(thread_ts=request.required("thread_ts"), stream=stream)
    message = posting.post(request.slack, channel, request.caller, draft)
    _write(request, message)
    posting.show(request.slack, message)
    return {"channel": channel.id, "ts": message.ts}


@method("chat.appendStream", "chat:write")
def append(request: Request) -> Json:
    message = _running(request)
    if not request.has("markdown_text") and not request.has("chunks"):
        raise SlackError("no_text")
    _write(request, message)
    posting.show(request.slack, message)
    return {"channel": message.channel.id, "ts": message.ts}


@method("chat.stopStream", "chat:write")
def stop(request: Request) -> Json:
    message = _running(request)
    blocks = block_kit.check(request.structure("blocks", "invalid_blocks_format", []))
    message.metadata = metadata(request) or message.metadata
    before = message_json(message, request.slack)
    _write(request, message)
    message.blocks = [*message.blocks, *posting.numbered(blocks, len(message.blocks))]
    _stream(message).state = "completed"
    posting.show(request.slack, message)
    posting.tell_of_change(request.slack, message, before)
    shown = message_json(message, request.slack, request.team)
    return {"channel": message.channel.id, "ts": message.ts, "message": shown}


def _running(request: Request) -> Message:
    message = request.message(request.entered(), request.required("ts"))
    if not posting.written_by(message, request.app):
        raise SlackError("message_not_owned_by_app")
    stream = message.stream
    if stream and stream.state == "in_progress" and time.monotonic() - stream.touched > request.slack.timing.stream:
        stream.state = "expired"
    if stream and stream.state == "stopped":
        raise SlackError("stopped_by_user")
    if stream is None or stream.state != "in_progress":
        raise SlackError("message_not_in_streaming_state")
    return message


def _stream(message: Message) -> Stream:
    assert message.stream is not None
    return message.stream


def _write(request: Request, message: Message) -> None:
    """Everything that the call brings is added to the message."""
    stream = _stream(message)
    pieces = _pieces(request, stream)
    if len(message.text) + sum(len(piece.get("text", "")) for piece in pieces) > block_kit.WHOLE_MESSAGE:
        raise SlackError("msg_too_long")
    for piece in pieces:
        _add(message, piece)
    stream.touched = time.monotonic()


def _pieces(request: Request, stream: Stream) -> list[Json]:
    """A stream that was begun with text takes nothing else, one that was begun with chunks takes only chunks."""
    text = request.text("markdown_text")
    chunks = request.structure("chunks", "invalid_chunks", [])
    if text and chunks or (text and stream.mode == "chunks") or (chunks and stream.mode == "text"):
        raise SlackError("streaming_mode_mismatch")
    stream.mode = "text" if text else "chunks" if chunks else stream.mode
    pieces = [{"type": "markdown_text", "text": text}] if text else chunks
    for piece in pieces:
        _check(piece)
    return list(pieces)


def _check(chunk: Any) -> None:
    kind = chunk.get("type") if isinstance(chunk, dict) else None
    needed = {"markdown_text": ["text"], "task_update": ["id", "title", "status"], "plan_update": ["title"]}
    if kind == "blocks":
        block_kit.check(chunk.get("blocks"))
    elif kind not in needed or any(name not in chunk for name in needed[kind]):
        raise SlackError("invalid_chunks")
    elif len(chunk.get("text", "")) > block_kit.MARKDOWN:
        raise SlackError("msg_too_long")


def _add(message: Message, chunk: Json) -> None:
    match chunk["type"]:
        case "markdown_text":
            message.text += chunk["text"]
            others = [block for block in message.blocks if block["type"] != "markdown"]
            message.blocks = [{"type": "markdown", "block_id": "text", "text": message.text}, *others]
        case "blocks":
            message.blocks = [*message.blocks, *posting.numbered(chunk["blocks"], len(message.blocks))]
        case "task_update":
            message.tasks[chunk["id"]] = message.tasks.get(chunk["id"], {}) | chunk
        case "plan_update":
            message.tasks[""] = chunk
