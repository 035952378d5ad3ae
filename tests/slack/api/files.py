from __future__ import annotations

import uuid

from tests.slack import posting, uploads
from tests.slack.api.call import Request, method
from tests.slack.api.chat import destination
from tests.slack.errors import SlackError
from tests.slack.posting import Draft
from tests.slack.shapes import file_json
from tests.slack.uploads import Upload
from tests.slack.wording import as_sent
from tests.slack.workspace import Channel, File, Json


@method("files.info", "files:read")
def info(request: Request) -> Json:
    file = request.slack.files.get(request.required("file"))
    if file is None or not is_visible(request, file):
        raise SlackError("file_not_found")
    if file.deleted:
        raise SlackError("file_deleted")
    return {"file": file_json(file, request.slack), "comments": [], "response_metadata": {"next_cursor": ""}}


@method("files.delete", "files:write")
def delete(request: Request) -> Json:
    file = request.slack.files.get(request.required("file"))
    if file is None or file.deleted:
        raise SlackError("file_not_found" if file is None else "file_deleted")
    if file.owner is not request.caller.bot:
        raise SlackError("cant_delete_file")
    uploads.delete(request.slack, file)
    return {}


@method("files.getUploadURLExternal", "files:write")
def get_upload_url(request: Request) -> Json:
    if request.number("length", 0) < 1:
        raise SlackError("invalid_arguments")
    file = uploads.upload(request.slack, request.caller.bot, Upload(request.required("filename"), b""))
    ticket = uuid.uuid4().hex
    request.slack.uploads[ticket] = (request.caller, file)
    return {"upload_url": f"{request.slack.url}/upload/v1/{ticket}", "file_id": file.id}


@method("files.completeUploadExternal", "files:write")
def complete_upload(request: Request) -> Json:
    named = request.structure("files", "invalid_arguments", [])
    files = [_uploaded(request, each) for each in named]
    if not files:
        raise SlackError("invalid_arguments")
    if request.has("channel_id"):
        _share(request, files)
    return {"files": [file_json(file, request.slack) for file in files]}


def is_visible(request: Request, file: File) -> bool:
    """Whether the bot is in a channel that the file was shared with."""
    if file.owner is request.caller.bot:
        return True
    shared = [request.slack.channels[ident] for ident in file.channels if ident in request.slack.channels]
    return any(_reaches(request, channel) for channel in shared)


def _reaches(request: Request, channel: Channel) -> bool:
    return request.caller.bot in channel.members or (channel.kind == "public" and request.team in channel.teams)


def _uploaded(request: Request, named: Json) -> File:
    file = request.slack.files.get(named.get("id", ""))
    if file is None or file.owner is not request.caller.bot:
        raise SlackError("file_not_found")
    file.title = named.get("title") or file.title
    return file


def _share(request: Request, files: list[File]) -> None:
    request.call.arguments.setdefault("channel", request.text("channel_id"))
    draft = Draft(as_sent(request.text("initial_comment")), request.text("thread_ts"), files=files)
    posting.post(request.slack, destination(request), request.caller, draft)
