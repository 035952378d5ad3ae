"""A bot's core over real stores that hold a team's files, with a platform in memory that notes the times."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.context import Parts
from agent.outcomes import Event
from bench.ambiguity import load_cases
from bench.clock import Clock
from bench.corpus import Vectors, headed, load
from bench.table import Options
from bot.app import collect_seldom
from bot.messages import Reply
from bot.platform import Turn
from ingest.parts import Part
from ingest.split import passages, split
from storage.database import open_database, sqlite_url
from storage.documents import Documents, FilePost
from storage.embeddings import BundledEmbedder
from storage.knowledge import Query, Vector
from storage.lance import LanceStore
from storage.models import Hit, Passage
from storage.retrieval import Retriever
from storage.transcript import Transcript
from tests.agent.library import CHANNEL, PUBLIC, WORKSPACE, Library
from tests.bot.core import Core, MemoryPlatform, open_core

SETS = ("xquad_en", "scifact", "covidqa_longdoc", "cranfield")  # until there are passages enough
ARTICLES = 10  # of one file


@dataclass(frozen=True)
class Knowledge:
    """Files, as name and text, and questions that they answer."""

    files: Sequence[tuple[str, str]]
    questions: Sequence[str]


def knowledge(options: Options) -> Knowledge | None:
    """Real articles; the project's own small cases in a quick run; None where there are no sets."""
    if options.quick:
        cases = load_cases()[:12]
        texts = [file for case in cases for file in case.documents.items()]
        return Knowledge([(f"{at}-{name}", text) for at, (name, text) in enumerate(texts)], [c.question for c in cases])
    if not all((options.data / name / "corpus.jsonl").exists() for name in SETS):
        return None
    articles = [article for name in SETS for article in load(options.data / name).documents.values()]
    together = [articles[start : start + ARTICLES] for start in range(0, len(articles), ARTICLES)]
    files = [
        (
            f"{number}.md",
            "\n\n".join(headed(title or f"Article {at}", text) for at, (title, text) in enumerate(some, 1)),
        )
        for number, some in enumerate(together, 1)
    ]
    return Knowledge(files, list(load(options.data / SETS[0]).questions.values()))


class TimedStore(LanceStore):
    clock: Clock

    async def search(self, query: Query) -> list[Hit]:
        with self.clock.running():
            return await super().search(query)


class TimedEmbedder(BundledEmbedder):
    clock: Clock

    async def embed_question(self, text: str) -> Vector:
        with self.clock.running():
            return await super().embed_question(text)


@dataclass
class TimedPlatform(MemoryPlatform):
    """Notes when each message was first told of, and tells when its reply stands."""

    first: dict[str, float] = field(default_factory=dict)
    stood: dict[str, asyncio.Future[None]] = field(default_factory=dict)

    async def tell(self, turn: Turn, event: Event) -> None:
        self.first.setdefault(turn.message, time.perf_counter())

    async def send(self, turn: Turn, part: int, reply: Reply) -> str:
        posted = await super().send(turn, part, reply)
        standing = self.stood[turn.message]
        if not standing.done():
            standing.set_result(None)
        return posted


@dataclass(frozen=True)
class Taken:
    """How long a turn took, to its first event and in all; `inside` is what search and embedding took of it."""

    first: float
    whole: Clock
    inside: Clock


@dataclass
class Stage:
    core: Core
    platform: TimedPlatform
    searching: Clock
    folder: Path
    passages: int
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def ask(self, question: str, thread: str) -> Taken:
        """One turn, to its reply. The clocks hold only where no other turn runs."""
        message = f"m{next(self._numbers)}"
        standing = self.platform.stood[message] = asyncio.get_running_loop().create_future()
        before, whole, began = replace(self.searching), Clock(), time.perf_counter()
        with whole.running():
            await self.core.say(question, message, thread, user=f"user of {thread}")
            await standing
        return Taken(self.platform.first[message] - began, whole, self.searching.since(before))

    async def settle(self) -> None:
        """Until all that was asked is done."""
        asked = list(self.platform.stood)
        await self.core.settled(*asked, seconds=600)
        for message in asked:
            del self.platform.stood[message]


@contextlib.asynccontextmanager
async def stage(folder: Path, known: Knowledge, size: int, cache: Path) -> AsyncIterator[Stage]:
    """As many files as have so many passages; one file more or less makes no difference."""
    embedder = TimedEmbedder()
    async with open_database(sqlite_url(folder / "app.sqlite")) as database:
        documents, transcript = Documents(database), Transcript(database)
        store = await TimedStore.open(folder / "lance", "bench")
        searching = store.clock = embedder.clock = Clock()
        posted = await _post(known, size, documents)
        vectors = Vectors(embedder, cache)
        for start in range(0, len(posted), 2000):
            await store.add(await vectors.entries(posted[start : start + 2000]))
        await store.compact()
        parts = Parts(Retriever(store, embedder, documents), documents, transcript, embedder.not_found_threshold)
        library = Library(database, documents, transcript, store, embedder, parts)
        platform = TimedPlatform()
        async with open_core(library, folder, embedder, platform) as core:
            collect_seldom()
            yield Stage(core, platform, searching, folder, len(posted))
        await store.close()
        await embedder.close()


async def _post(known: Knowledge, most: int, documents: Documents) -> list[Passage]:
    posted: list[Passage] = []
    for number, (name, text) in enumerate(known.files, 1):
        if len(posted) >= most:
            break
        sections = split([Part(None, "", text)])
        post = FilePost(
            workspace=WORKSPACE,
            channel=CHANNEL,
            audience=PUBLIC,
            name=name,
            size=len(text),
            posted_by="ann",
            posted_at=float(number),
            message=f"post-{number}",
            attachment="1",
            link=f"https://chat.example/post-{number}",
        )
        begun = await documents.begin(post, name)
        assert begun.document is not None
        await documents.store_sections(begun.document.key, sections, 0)
        found = passages(begun.document, sections)
        await documents.swap(begun.document.key, len(found), True)
        posted += found
    return posted
