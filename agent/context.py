"""What the nodes of a turn work with. None of it is stored."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from agent.budget import Budget
from agent.grading import Grade, grade
from agent.limits import TurnLimits
from agent.outcomes import Emit, Status
from agent.rerank import Reranker
from storage.documents import Documents
from storage.models import Document, DocumentName, Hit, Scope
from storage.retrieval import Retrieved, Retriever
from storage.terms import content_terms
from storage.transcript import Place, Said, Transcript

if TYPE_CHECKING:  # a turn without a model doesn't wait for the clients of models
    from agent.models import ModelCalls, Models

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


SEARCHES_SPENT = "not all was looked for: the searches of one turn were used up"


@dataclass(frozen=True)
class Narrowed:
    """What to search for, and the documents to look in first; none: in all of them; `only`: and in no others.

    `rest` is the question without the names of documents.
    """

    query: str
    documents: tuple[str, ...] = ()
    only: bool = False
    rest: str = ""


class Search:
    """The searches of one turn, each made once: analyze looks at what the knowledge holds, research goes on from it."""

    def __init__(self, parts: Parts, scope: Scope, attached: Sequence[str]) -> None:
        self._parts = parts
        self._scope = scope
        self._attached = tuple(attached)
        self._made: dict[tuple[str, frozenset[str]], Retrieved] = {}
        self._narrowed: dict[tuple[str, frozenset[str]], Narrowed] = {}
        self._is_empty: bool | None = None
        self._graded: dict[tuple[str, tuple[str, ...]], Grade] = {}

    async def is_empty(self) -> bool:
        """Whether there is no document that this turn may draw on."""
        if self._is_empty is None:
            self._is_empty = await self._parts.documents.is_empty(self._scope)
        return self._is_empty

    async def documents(self, ids: Collection[str]) -> list[Document]:
        """Those of these that this turn may draw on, by name."""
        return await self._parts.documents.visible(self._scope, ids) if ids else []

    async def attached_names(self) -> list[str]:
        return [document.name for document in await self.documents(self._attached)]

    async def narrowed(self, question: str, spoken_of: Collection[str] = ()) -> Narrowed:
        """Where to look: in the files that came with the question or that it names in full, and nowhere else; first in
        those that it names otherwise, or, where it names none, in those that the thread speaks of."""
        key = (question, frozenset(spoken_of))
        if key not in self._narrowed:
            self._narrowed[key] = await self._narrow(question, spoken_of)
        return self._narrowed[key]

    async def _narrow(self, question: str, spoken_of: Collection[str]) -> Narrowed:
        possible = await self._parts.documents.named(self._scope, question, {*self._attached, *spoken_of})
        possible.sort(key=_by_name)
        attached = [document for document in possible if document.document in self._attached]
        names = _in_full({document.name for document in possible}, question)
        whole = [document for document in possible if document.name in names]
        only = attached + [document for document in whole if document not in attached]
        named = only or [document for document in possible if _naming(document.name, question)]
        if not named:
            return Narrowed(question, tuple(each.document for each in possible if each.document in spoken_of))
        rest = question
        for document in sorted(named, key=lambda document: -len(document.name)):
            rest = _without(document.name, rest)
        query = rest if content_terms(rest) else question
        return Narrowed(query, tuple(document.document for document in named), bool(only), rest)

    def grade(self, question: str, hits: Sequence[Hit]) -> Grade:
        """Whether these passages answer the question; each verdict is given once."""
        key = (question, tuple(hit.passage.id for hit in hits))
        if key not in self._graded:
            self._graded[key] = grade(question, hits, self._parts.threshold)
        return self._graded[key]

    async def passages(self, question: str, documents: Collection[str] = ()) -> Retrieved:
        key = (question, frozenset(documents))
        if await self.is_empty():
            return Retrieved(())
        if key not in self._made and len(self._made) >= self._parts.limits.searches:
            return Retrieved((), degraded=(SEARCHES_SPENT,))
        if key not in self._made:
            self._made[key] = await self._parts.retriever.search(
                question, self._scope, limit=CANDIDATES, documents=list(documents) or None
            )
        return self._made[key]


def _by_name(document: DocumentName) -> tuple[str, str]:
    return document.name.casefold(), document.document


def _naming(name: str, question: str) -> re.Match[str] | None:
    """Where the question names this document: with its extension, or by a stem that is no everyday word."""
    whole = _whole(name, question)
    words = re.findall(r"[^\W_]+", PurePath(name).stem)
    telling = len(words) > 1 or any(character.isdigit() for character in "".join(words))
    if whole or not telling:
        return whole
    stem = r"[\W_]+".join(map(re.escape, words))
    return re.search(rf"(?<![^\W_]){stem}(?![^\W_])", question, re.IGNORECASE)


def _in_full(names: Collection[str], question: str) -> set[str]:
    """The names that the question holds in full, none of them a part of another."""
    found: set[str] = set()
    for length in sorted({len(name) for name in names}, reverse=True):
        held = {name for name in names if len(name) == length and _whole(name, question)}
        for name in held:
            question = _without(name, question)
        found |= held
    return found


def _whole(name: str, question: str) -> re.Match[str] | None:
    """Where the question holds a name in full, and not as the end of a longer one."""
    return re.search(rf"(?<![A-Za-z0-9_.-]){re.escape(name)}(?![A-Za-z0-9])", question, re.IGNORECASE)


def _without(name: str, question: str) -> str:
    found = _naming(name, question)
    return f"{question[: found.start()]} {question[found.end() :]}" if found else question
