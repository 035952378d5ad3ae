"""What the nodes of a turn work with. None of it is stored."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from agent.budget import Budget
from agent.limits import TurnLimits
from agent.models import ModelCalls, Models
from agent.outcomes import Emit, Status
from agent.rerank import Reranker
from storage.documents import Documents
from storage.models import Document, Scope
from storage.retrieval import Retrieved, Retriever
from storage.transcript import Place, Said, Transcript

CANDIDATES = 100  # passages that a grade is made on


@dataclass(frozen=True)
class Parts:
    """What an agent is built from. `threshold` is the confidence below which nothing was found."""

    retriever: Retriever
    documents: Documents
    transcript: Transcript
    threshold: float
    limits: TurnLimits = field(default_factory=TurnLimits)
    models: Models | None = None
    reranker: Reranker | None = None


@dataclass(frozen=True)
class Context:
    parts: Parts
    place: Place
    message: str
    scope: Scope
    text: str
    search: Search
    budget: Budget
    calls: ModelCalls | None
    emit: Emit

    async def status(self, text: str) -> None:
        await self.emit(Status(text=text))

    async def recall(self) -> list[Said]:
        return await self.parts.transcript.recall(self.place, self.scope, before=self.message)


class Search:
    """The searches of one turn, each made once: analyze looks at what the knowledge holds, research goes on from it."""

    def __init__(self, parts: Parts, scope: Scope, attached: Sequence[str]) -> None:
        self._parts = parts
        self._scope = scope
        self._attached = tuple(attached)
        self._made: dict[tuple[str, frozenset[str]], Retrieved] = {}
        self._visible: list[Document] | None = None

    async def visible(self) -> list[Document]:
        """The documents that this turn may draw on."""
        if self._visible is None:
            self._visible = await self._parts.documents.visible(self._scope)
        return self._visible

    async def attached_names(self) -> list[str]:
        return [document.name for document in await self.visible() if document.document in self._attached]

    async def narrowed(self, question: str) -> list[str]:
        """The documents to look in first: those that came with the question, or that it names; else [] for all."""
        visible = await self.visible()
        attached = [document.document for document in visible if document.document in self._attached]
        return attached or [document.document for document in visible if _names(question, document.name)]

    async def passages(self, question: str, documents: Collection[str] = ()) -> Retrieved:
        key = (question, frozenset(documents))
        if not await self.visible():
            return Retrieved(())
        if key not in self._made:
            self._made[key] = await self._parts.retriever.search(
                question, self._scope, limit=CANDIDATES, documents=list(documents) or None
            )
        return self._made[key]


def _names(question: str, name: str) -> bool:
    """Whether the question names this document: with its extension, or by a stem that is no everyday word."""
    asked = f" {_words(question)} "
    stem = _words(PurePath(name).stem)
    telling = len(stem.split()) > 1 or any(character.isdigit() for character in stem)
    return name.casefold() in question.casefold() or (telling and f" {stem} " in asked)


def _words(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))
