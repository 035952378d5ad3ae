"""Files: uploaded, shared with a message, deleted."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass

from tests.slack.changes import locked
from tests.slack.events import Happening, announce
from tests.slack.posting import show, tell_of_change
from tests.slack.shapes import message_json
from tests.slack.workspace import File, Json, Message, Slack, User

FILETYPES = {"txt": "text", "md": "markdown", "py": "python", "jpeg": "jpg", "htm": "html"}


@dataclass(frozen=True)
class Upload:
    """A file on somebody's desk."""

    name: str
    content: bytes
    mimetype: str = ""
    mode: str = "hosted"
    external_url: str = ""
    must_be_looked_up: bool = False


@locked
def upload(slack: Slack, owner: User, what: Upload) -> File:
    ending = what.name.rpartition(".")[2].lower()
    file = File(
        id=slack.ids.new("F"),
        owner=owner,
        name=what.name,
        content=what.content,
        mimetype=what.mimetype or mimetypes.guess_type(what.name)[0] or "application/octet-stream",
        filetype=FILETYPES.get(ending, ending) or "binary",
        mode="external" if what.external_url else what.mode,
        external_url=what.external_url,
        must_be_looked_up=what.must_be_looked_up,
    )
    slack.files[file.id] = file
    _tell(slack, file, {"type": "file_created", "user_id": owner.id})
    return file


@locked
def tell_of_shared(slack: Slack, message: Message) -> None:
    for file in message.files:
        event = {"type": "file_shared", "user_id": file.owner.id, "channel_id": message.channel.id}
        _tell(slack, file, event)


@locked
def delete(slack: Slack, file: File) -> None:
    """It disappears from every message that it was shared with."""
    before = {message: message_json(message, slack) for message in _shared_with(slack, file)}
    file.deleted = True
    for message, was in before.items():
        show(slack, message)
        tell_of_change(slack, message, was)
    _tell(slack, file, {"type": "file_deleted", "channel_ids": list(file.channels)}, brief=False)


def _shared_with(slack: Slack, file: File) -> list[Message]:
    channels = [slack.channels[ident] for ident in file.channels if ident in slack.channels]
    return [message for channel in channels for message in channel.standing() if file in message.files]


def _tell(slack: Slack, file: File, event: Json, brief: bool = True) -> None:
    own = {"file_id": file.id, "event_ts": slack.clock.ts()} | ({"file": {"id": file.id}} if brief else {})
    channels = [slack.channels[ident] for ident in file.channels if ident in slack.channels]
    for installation in slack.installations:
        if any(installation.bot in channel.members for channel in channels):
            happening = Happening(
                event | own, event["type"], ("files:read",), teams=(installation.team,), app=installation.app
            )
            announce(slack, happening)
    slack.changes.notify()
