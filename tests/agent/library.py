"""A team's files as the ingestor would have left them, and an agent on them: all parts real."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.agent import Agent, Choice, TurnRequest
from agent.context import Parts
from agent.outcomes import Answer, Clarification, Event, Token
from storage.checkpoints import Checkpoints, open_checkpoints
from storage.database import Database, open_database, sqlite_url
from storage.documents import Documents, FilePost
from storage.embeddings import Embedder
from storage.knowledge import Entry
from storage.lance import LanceStore
from storage.models import Anchor, Passage, Scope, Section, Version, channel_audience
from storage.retrieval import Retriever
from storage.terms import cut, digest, indexed_text
from storage.transcript import Part, Place, Said, Transcript

WORKSPACE, CHANNEL = "acme", "general"
PUBLIC = channel_audience(CHANNEL)


@dataclass
class Library:
    database: Database
    documents: Documents
    transcript: Transcript
    store: LanceStore
    embedder: Embedder
    parts: Parts
    _posts: int = 0

    async def add(self, name: str, sections: Sequence[str] | Mapping[str, str], audience: str = PUBLIC) -> Version:
        """Post a file. Each text is a section and one passage, on a page of its own; keys are headings."""
        self._posts += 1
        post = FilePost(
            workspace=WORKSPACE,
            channel=audience.split(":")[1],
            audience=audience,
            name=name,
            size=1,
            posted_by="ann",
            posted_at=float(self._posts),
            message=f"post-{self._posts}",
            attachment="1",
            link=f"https://chat.example/post-{self._posts}",
        )
        begun = await self.documents.begin(post, digest(name + str(sections)))
        assert begun.document is not None
        version = begun.document.key
        headed = sections.items() if isinstance(sections, Mapping) else [("", text) for text in sections]
        found = [
            Section(number, (heading,) if heading else (), text, (Anchor(0, number, f"page {number}"),))
            for number, (heading, text) in enumerate(headed, 1)
        ]
        await self.documents.store_sections(version, found, len(found))
        passages = [self._passage(begun.document.key, name, audience, section) for section in found]
        texts = [indexed_text(passage) for passage in passages]
        vectors = await self.embedder.embed(texts)
        entries = [
            Entry(passage, digest(text), cut(text), vector if self.embedder.knows(text) else None)
            for passage, text, vector in zip(passages, texts, vectors, strict=True)
        ]
        await self.store.add(entries)
        await self.documents.swap(version, len(passages), True)
        return version

    def _passage(self, version: Version, name: str, audience: str, section: Section) -> Passage:
        return Passage(
            document=version.document,
            version=version.version,
            number=section.number,
            workspace=WORKSPACE,
            audience=audience,
            name=name,
            section=section.number,
            start=0,
            end=len(section.text),
            headings=section.headings,
            page=section.number,
            place=f"page {section.number}",
            text=section.text,
        )

    async def say(self, author: str, text: str, kind: str = "", thread: str = "t", **more: object) -> None:
        """Write a line of the thread down."""
        self._posts += 1
        place = Place("web", WORKSPACE, CHANNEL, thread)
        async with self.database.write() as connection:
            if author == "user":
                said = Said("user", "ann", text, kind or "question", f"m{self._posts}")
                await self.transcript.add_question(connection, place, said, float(self._posts), [])
            else:
                part = Part(text=text, kind=kind or "answer", **more)  # type: ignore[arg-type]
                await self.transcript.add_reply(connection, place, self._posts, "", [part])
                await self.transcript.delivered(connection, self._posts, 0, f"m{self._posts}")


@contextlib.asynccontextmanager
async def open_library(folder: Path, embedder: Embedder, **parts: object) -> AsyncIterator[Library]:
    async with open_database(sqlite_url(folder / "app.sqlite")) as database:
        documents, transcript = Documents(database), Transcript(database)
        store = await LanceStore.open(folder / "lance", "test")
        retriever = Retriever(store, embedder, documents)
        made = Parts(retriever, documents, transcript, embedder.not_found_threshold)
        yield Library(database, documents, transcript, store, embedder, replace(made, **parts))  # type: ignore[arg-type]
        await store.close()


@dataclass
class Heard:
    """Takes a turn's events."""

    events: list[Event] = field(default_factory=list)

    async def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Token))

    def named(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


def asked(text: str, turn: str = "1", **more: object) -> TurnRequest:
    given: dict[str, object] = {
        "turn": turn,
        "agent_thread": "web:acme:general:t",
        "platform": "web",
        "workspace": WORKSPACE,
        "channel": CHANNEL,
        "thread": "t",
        "message": f"message-{turn}",
        "user": "ann",
        "text": text,
        "scope_audiences": (PUBLIC,),
    }
    return TurnRequest.model_validate({**given, **more})


def chosen(turn: str, text: str = "", option: int | None = None) -> TurnRequest:
    return asked(text, turn, choice=Choice(text=text, option=option))


@dataclass
class Asking:
    """One agent on one checkpoint file."""

    library: Library
    checkpoints: Checkpoints
    agent: Agent
    heard: Heard = field(default_factory=Heard)

    async def answer(self, request: TurnRequest | str) -> Answer:
        outcome = await self.run(request)
        assert isinstance(outcome, Answer), outcome
        return outcome

    async def clarification(self, request: TurnRequest | str) -> Clarification:
        outcome = await self.run(request)
        assert isinstance(outcome, Clarification), outcome
        return outcome

    async def run(self, request: TurnRequest | str) -> Answer | Clarification:
        self.heard.events.clear()
        given = asked(request) if isinstance(request, str) else request
        return await self.agent.run(given, self.heard)


@contextlib.asynccontextmanager
async def open_agent(library: Library, folder: Path, **parts: object) -> AsyncIterator[Asking]:
    async with open_checkpoints(folder / "checkpoints.sqlite") as checkpoints:
        changed = replace(library.parts, **parts)  # type: ignore[arg-type]
        yield Asking(library, checkpoints, Agent(checkpoints, changed))


def scope(*audiences: str) -> Scope:
    return Scope(WORKSPACE, frozenset(audiences or (PUBLIC,)))
