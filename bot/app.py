"""The composition root: opens, wires and closes everything."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np

from agent.agent import Agent
from agent.context import Parts
from bot.adapters.web import Desk, Web, WebOptions
from bot.claiming import Claiming, Pace
from bot.conversation import Conversation, Rules
from bot.datadir import DataDir, Running
from bot.lanes import Core, Lanes, Widths
from bot.operations import BotOperations
from bot.platform import Platform
from bot.readiness import Probes, Readiness, endpoints
from bot.rows import Stores
from bot.settings import Settings
from bot.upkeep import Upkeep
from ingest.convert import Converter
from ingest.ingestor import Ingestor
from storage.channels import Channels
from storage.checkpoints import open_checkpoints
from storage.clarifications import Clarifications
from storage.database import Database, open_database, sqlite_url
from storage.documents import Documents
from storage.embeddings import (
    BundledEmbedder,
    Embedder,
    Recognised,
    check_fingerprint,
    collection_name,
    fingerprint,
)
from storage.errors import EmbeddingChanged, EmbeddingUnavailable
from storage.facts import Facts
from storage.journal import Heartbeat, Journal
from storage.knowledge import Fusion, KnowledgeStore, Vector
from storage.retrieval import Retriever
from storage.transcript import Transcript

CATALOG = "catalog"  # the fact that names this catalog
EMBEDDING = "embedding"  # the fact that names the collection and the model's fingerprint


@dataclass(frozen=True, slots=True)
class App:
    """A bot that runs. `url` is the page's."""

    url: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Knowledge:
    store: KnowledgeStore
    embedder: Embedder
    retriever: Retriever
    ingestor: Ingestor
    facts: Facts

    async def accept_model(self) -> None:
        """Remember that the stored vectors are this model's, and drop those of any other."""
        await self._accept(await fingerprint(self.embedder))

    async def check_model(self) -> None:
        """Raises EmbeddingChanged where the stored vectors come from another model."""
        known = await self.facts.get(EMBEDDING)
        if known is None:
            await self.accept_model()
            return
        if known["collection"] != collection_name(self.embedder.model):
            raise EmbeddingChanged(
                "The embedding model or its settings changed since the documents were read. "
                "Set EMBEDDING_MODEL back, or run `python -m bot reembed` to embed every passage anew."
            )
        if not isinstance(self.embedder, BundledEmbedder):  # whose files are held to their checksums
            await self.recognise(await fingerprint(self.embedder))

    async def hold_to_model(self) -> None:
        """Raises EmbeddingChanged. Where the model is down, keyword search goes on, and it is asked when it answers."""
        with contextlib.suppress(EmbeddingUnavailable):
            await self.check_model()
        if isinstance(self.embedder, Recognised):
            self.embedder.recognised_by(self.recognise)

    async def recognise(self, mark: Vector) -> None:
        """Raises EmbeddingChanged where this is the fingerprint of another model than the stored vectors'."""
        known = await self.facts.get(EMBEDDING)
        if known is None:
            await self._accept(mark)
        else:
            check_fingerprint(np.array(known["fingerprint"], dtype=np.float32), mark)

    async def _accept(self, mark: Vector) -> None:
        collection = collection_name(self.embedder.model)
        await self.facts.put(EMBEDDING, {"collection": collection, "fingerprint": mark.tolist()})
        await self.store.drop_others()


def collect_seldom() -> None:
    """For a process that serves: what was there before it is not looked through again, and new garbage less often.

    A tenth of a turn's time went into that.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@contextlib.asynccontextmanager
async def open_app(settings: Settings, *, port: int | None = None, any_model: bool = False) -> AsyncIterator[App]:
    """A whole bot. `port` overrides the setting (0: any that is free); `any_model`: for re-embedding.

    Raises StorageError or WebNotStarted, whose texts say what to do.
    """
    async with AsyncExitStack() as stack:
        directory = DataDir(settings.data_dir)
        stack.enter_context(directory.held())
        url = sqlite_url(directory.database)
        database = await stack.enter_async_context(open_database(url))
        stores = _stores(database)
        knowledge = await _open_knowledge(settings, directory, stores, stack)
        if not any_model:
            await knowledge.hold_to_model()
        stack.enter_context(_warming(knowledge.embedder))
        agent = await _open_agent(settings, directory, stores, knowledge, stack)
        platforms: dict[str, Platform] = {}
        conversation = Conversation(stores, agent, knowledge.ingestor, platforms, _rules(settings, directory))
        operations = BotOperations(stores, conversation, knowledge.ingestor, directory, knowledge.accept_model)
        probes = Probes(endpoints(settings))
        stack.push_async_callback(probes.close)
        desk = Desk(
            transcript=stores.transcript,
            channels=stores.channels,
            clarifications=stores.clarifications,
            documents=stores.documents,
            retriever=knowledge.retriever,
            operations=operations,
            living=stores.journal.references,
            readiness=Readiness(
                knowledge.facts,
                knowledge.store,
                knowledge.retriever,
                probes,
                restoring=lambda: knowledge.ingestor.restoring,
                lacking=knowledge.ingestor.lacking,
            ),
        )
        if settings.slack_bot_token is not None:
            platforms["slack"] = _slack(settings, stores)
        web = platforms["web"] = Web(_web_options(settings, directory, port), desk)
        heartbeat = stack.enter_context(Heartbeat(url))
        widths = Widths(settings.turns_at_once, settings.files_at_once)
        core = Core(Claiming(stores, _pace(settings)), conversation)
        lanes = Lanes(stores, core, platforms, heartbeat, widths)
        upkeep = Upkeep(stores, lanes, knowledge.ingestor, settings.retention_days, restores=not any_model)
        await _run(stack, platforms, lanes, upkeep)
        token = settings.web_token.get_secret_value() if settings.web_token else None
        directory.announce(Running(os.getpid(), web.url, token))
        yield App(web.url, token)


async def _run(stack: AsyncExitStack, platforms: Mapping[str, Platform], lanes: Lanes, upkeep: Upkeep) -> None:
    """Begin to work and to listen; at the end first nothing more is taken, then what runs is given back."""
    for platform in platforms.values():
        stack.push_async_callback(platform.close)
    await stack.enter_async_context(lanes.running())
    await stack.enter_async_context(upkeep.running())
    for platform in platforms.values():
        await platform.start(lanes.receive)
        stack.push_async_callback(platform.stop_listening)


def _stores(database: Database) -> Stores:
    return Stores(
        database=database,
        journal=Journal(database),
        transcript=Transcript(database),
        channels=Channels(database),
        clarifications=Clarifications(database),
        documents=Documents(database),
    )


async def _open_knowledge(settings: Settings, directory: DataDir, stores: Stores, stack: AsyncExitStack) -> Knowledge:
    embedder = _embedder(settings)
    stack.push_async_callback(embedder.close)
    facts = Facts(stores.database)
    collection = collection_name(embedder.model)
    store = await _open_store(settings, directory, facts, collection)
    stack.push_async_callback(store.close)
    converter = await stack.enter_async_context(Converter(settings.file_limits))
    retriever = Retriever(store, embedder, stores.documents, dense_weight=settings.dense_weight)
    ingestor = Ingestor(stores.documents, store, embedder, converter, settings.file_limits)
    return Knowledge(store, embedder, retriever, ingestor, facts)


async def _open_store(settings: Settings, directory: DataDir, facts: Facts, collection: str) -> KnowledgeStore:
    """Imports the one that is used: each takes a second."""
    fusion = Fusion(settings.fusion)
    if settings.weaviate_url is None:
        from storage.lance import LanceStore

        return await LanceStore.open(directory.passages, collection, fusion=fusion)
    from storage.weaviate import Server, WeaviateStore

    key = settings.weaviate_api_key.get_secret_value() if settings.weaviate_api_key else None
    server = Server(settings.weaviate_url, settings.weaviate_grpc_port, key)
    return await WeaviateStore.open(server, collection, owner=await _catalog(facts), fusion=fusion)


async def _catalog(facts: Facts) -> str:
    """A name for this catalog, so that several on one server share no collection."""
    if (name := await facts.get(CATALOG)) is None:
        name = secrets.token_hex(6)
        await facts.put(CATALOG, name)
    return str(name)


@contextlib.contextmanager
def _warming(embedder: Embedder) -> Iterator[None]:
    """Load the model in the background, so that the first question doesn't wait for it."""

    async def warm() -> None:
        with contextlib.suppress(EmbeddingUnavailable):
            await embedder.embed_question("warm")

    task = asyncio.create_task(warm(), name="warming")
    try:
        yield
    finally:
        task.cancel()


def _embedder(settings: Settings) -> Embedder:
    if settings.embedding_model is None:
        return BundledEmbedder()
    from storage.endpoint import EndpointEmbedder

    key = settings.embedding_api_key or settings.openai_api_key
    return EndpointEmbedder(
        settings.embedding_model,
        api_key=key.get_secret_value() if key else "none",
        base_url=settings.embedding_base_url or settings.openai_base_url,
    )


async def _open_agent(
    settings: Settings, directory: DataDir, stores: Stores, knowledge: Knowledge, stack: AsyncExitStack
) -> Agent:
    checkpoints = await stack.enter_async_context(open_checkpoints(directory.checkpoints))
    models = reranker = None
    if settings.models:
        from agent.models import Models

        key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
        models = Models(settings.models, settings.openai_base_url, key, settings.turn_limits)
        stack.push_async_callback(models.close)
    if settings.cohere_api_key is not None:
        from agent.cohere import CohereReranker

        key = settings.cohere_api_key.get_secret_value()
        reranker = CohereReranker(key, settings.cohere_model, settings.cohere_base_url)
        stack.push_async_callback(reranker.close)
    threshold = settings.not_found_threshold
    return Agent(
        checkpoints,
        Parts(
            retriever=knowledge.retriever,
            documents=stores.documents,
            transcript=stores.transcript,
            threshold=knowledge.embedder.not_found_threshold if threshold is None else threshold,
            limits=settings.turn_limits,
            models=models,
            reranker=reranker,
        ),
    )


def _rules(settings: Settings, directory: DataDir) -> Rules:
    return Rules(
        clarification_hours=settings.clarification_hours,
        work=directory.work,
        admins=frozenset(name.strip() for name in settings.admins.split(",") if name.strip()),
    )


def _pace(settings: Settings) -> Pace:
    return Pace(settings.question_characters, settings.questions_per_minute)


def _slack(settings: Settings, stores: Stores) -> Platform:
    """Raises NotStarted where half of what Slack needs is set."""
    from bot.adapters.slack.platform import API, Slack, SlackDesk, SlackNotStarted, SlackOptions

    if settings.slack_bot_token is None or settings.slack_app_token is None:
        raise SlackNotStarted("Slack needs SLACK_BOT_TOKEN and SLACK_APP_TOKEN; set both, or neither.")
    options = SlackOptions(
        bot_token=settings.slack_bot_token.get_secret_value(),
        app_token=settings.slack_app_token.get_secret_value(),
        api_url=settings.slack_api_url or API,
        largest_file=settings.file_limits.size,
    )
    return Slack(options, SlackDesk(stores.channels, stores.transcript))


def _web_options(settings: Settings, directory: DataDir, port: int | None) -> WebOptions:
    return WebOptions(
        host=settings.host,
        port=settings.port if port is None else port,
        token=settings.web_token.get_secret_value() if settings.web_token else None,
        uploads=directory.uploads,
        largest_upload=settings.file_limits.size,
    )
