"""What passes between the core and a platform, in words that no platform owns."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.outcomes import Citation, Nearest, Option


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ThreadRef(Message):
    """One thread of one platform. A message outside a thread starts one that has its id."""

    platform: str
    workspace: str
    channel: str
    thread: str

    def __str__(self) -> str:
        return f"{self.platform}:{self.workspace}:{self.channel}:{self.thread}"


class Attachment(Message):
    """A file as posted. `reference` is the platform's own way to its bytes."""

    name: str
    size: int
    reference: str
    link: str = ""


class Kind(StrEnum):
    MESSAGE = "message"
    EDIT = "edit"
    DELETE = "delete"
    ACTION = "action"
    COMMAND = "command"
    FILE = "file"  # one attachment of a message, made by the core
    JOIN = "join"  # the bot was invited to a channel
    NOTICE = "notice"  # a line that the bot says by itself, made by the core


class Incoming(Message):
    """Something that a person did. `message` and `revision` name it once and for ever, however often it is delivered.

    `sent_at` is the platform's time, in seconds since the epoch. `direct`: this person and the bot alone read it.
    """

    kind: Kind
    where: ThreadRef
    message: str
    revision: str = ""
    user: str
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    sent_at: float
    direct: bool = False
    mentions_bot: bool = False
    mentions_others: bool = False
    addressed: bool = Field(default=True, description="spoken to the bot: decided by the core when it is claimed")
    link: str = ""
    model: str = ""
    digest: str = Field(default="", description="of the whole body, to tell a repeat from another message with its key")
    clarification: str = Field(default="", description="of an action: the clarification that was answered")
    option: int | None = Field(default=None, description="of an action: the option that was clicked, from 0")
    attachment: str = Field(default="", description="of a deletion: the file, '' for the whole post")
    document: str = Field(default="", description="of a notice: the document that has changed")


class Shortcut(Message):
    """A button that says a command for whoever clicks it."""

    label: str
    command: str


class FileLine(Message):
    """What became of one file of a post."""

    name: str
    verdict: str
    reason: str = ""
    text: str = Field(default="", description="the line as a person reads it")


ReplyKind = Literal["answer", "clarification", "not_found", "chat", "help", "error", "report", "notice"]


class Reply(Message):
    """What the bot says, as Markdown with [n] for citations. Each platform renders it within its limits."""

    kind: ReplyKind
    text: str
    citations: tuple[Citation, ...] = ()
    nearest: tuple[Nearest, ...] = ()
    options: tuple[Option, ...] = ()
    clarification: str = ""
    files: tuple[FileLine, ...] = ()
    shortcuts: tuple[Shortcut, ...] = ()
    feedback: bool = False


class Posted(Message):
    """A reply, or a part of it, where it stands on the platform."""

    message: str
    part: int = 0
