"""What a turn comes to, and what it tells on the way. All of it is plain JSON when dumped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Outcome(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Citation(Outcome):
    """A pointer from a statement to its source. `number` is the [n] in the text; `quote` stands word for word in the
    section `section` of that version; `link` opens the post."""

    number: int
    document: str
    version: int
    name: str
    section: int
    page: int | None = None
    place: str = ""
    quote: str
    link: str = ""


class Nearest(Outcome):
    """A document that came near where nothing was found."""

    document: str
    version: int
    name: str
    link: str = ""


class Option(Outcome):
    """A choice that a clarification offers. `document` is the one that it stands for, None for a choice in words."""

    label: str
    document: str | None = None
    version: int | None = None


class Usage(Outcome):
    """`model` is None where no model wrote the reply. `degraded` names what was down, in words for a person."""

    model: str | None = None
    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    degraded: tuple[str, ...] = ()


class Answer(Outcome):
    """`text` is Markdown with [n] after each statement. For `not_found`, `nearest` are the documents that came near."""

    kind: Literal["answer", "not_found", "chat"]
    text: str
    citations: tuple[Citation, ...] = ()
    nearest: tuple[Nearest, ...] = ()
    usage: Usage = Usage()
    trace: tuple[dict[str, object], ...] = Field(default=(), description="what each step did, for `ask --trace`")


class Clarification(Outcome):
    """The agent's question back. Without options it is an open question."""

    kind: Literal["clarification"] = "clarification"
    text: str
    options: tuple[Option, ...] = ()
    usage: Usage = Usage()
    trace: tuple[dict[str, object], ...] = ()


class Status(Outcome):
    """What the turn is doing, in a few words for a person."""

    text: str


class Step(Outcome):
    """A node that ended, for those who want to look inside."""

    name: str
    detail: dict[str, object] = Field(default_factory=dict)


class Token(Outcome):
    """A piece of the answer that has passed its citation check. The pieces in order are the answer's text."""

    text: str


Event = Status | Step | Token
Emit = Callable[[Event], Awaitable[None]]
