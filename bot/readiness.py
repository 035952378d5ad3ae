"""Whether each part that the bot stands on works, and what is wrong with the one that doesn't."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from sqlalchemy.exc import SQLAlchemyError

from bot.settings import Settings
from storage.database import is_disk_full
from storage.embeddings import BundledEmbedder
from storage.errors import StoreUnavailable
from storage.facts import Facts
from storage.knowledge import KnowledgeStore
from storage.models import Version
from storage.retrieval import Retriever

OK = "ok"
NOT_CONFIGURED = "not configured"
NOT_YET = "not known yet"
WRITTEN = "readiness"  # the fact that is written to see whether there is room
OPENAI = "https://api.openai.com/v1"
COHERE = "https://api.cohere.com"
PROBE_SECONDS = 4.0
COUNTED_SECONDS = 20.0  # that counting all passages may take
DOCTOR_SECONDS = 5.0  # that an endpoint has to answer who wants to know what is wrong
READY_SECONDS = 0.3
WRITTEN_SECONDS = 1.0  # that a write is taken for: who asks more often doesn't wear out the disk
KNOWN_SECONDS = 30.0  # that an endpoint's answer is taken for


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A service elsewhere. `listing` is the address that lists its models; `key` and `base` are the settings' names."""

    name: str
    model: str
    listing: str
    secret: str
    key: str
    base: str


class Probes:
    """Asks endpoints whether they are there. Who can't wait gets what is known, and finds the rest the next time."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = {each.name: each for each in endpoints}
        self._known: dict[str, str] = {}
        self._asked = -KNOWN_SECONDS
        self._asking: asyncio.Task[None] | None = None

    async def states(self, seconds: float) -> dict[str, str]:
        if time.monotonic() - self._asked >= KNOWN_SECONDS and self._asking is None:
            self._asking = asyncio.create_task(self._ask_all(), name="asking endpoints")
        if self._asking is not None:
            await asyncio.wait([self._asking], timeout=seconds)
        return {name: self._known.get(name, NOT_YET) for name in self._endpoints}

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._asking

    async def _ask_all(self) -> None:
        try:
            async with httpx.AsyncClient(timeout=PROBE_SECONDS) as http:
                found = await asyncio.gather(*(_ask(http, each) for each in self._endpoints.values()))
            self._known = dict(zip(self._endpoints, found, strict=True))
            self._asked = time.monotonic()
        finally:
            self._asking = None


async def _ask(http: httpx.AsyncClient, endpoint: Endpoint) -> str:
    headers = {"Authorization": f"Bearer {endpoint.secret}"} if endpoint.secret else {}
    where = urlsplit(endpoint.listing).hostname or endpoint.listing
    try:
        status = (await http.get(endpoint.listing, headers=headers)).status_code
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError):
        return f"{where} can't be reached; check {endpoint.base}"
    if status in (401, 403):
        return f"{where} refuses the key; check {endpoint.key}"
    if status >= 500:
        return f"{where} answers with status {status}"
    return f"{OK}: {endpoint.model}"  # some list no models: that they answer is enough


def endpoints(settings: Settings) -> list[Endpoint]:
    """Those that are configured."""
    found = []
    base = settings.openai_base_url or OPENAI
    key = settings.openai_api_key
    if settings.models:
        secret = key.get_secret_value() if key else ""
        names = ", ".join(settings.models)
        found.append(Endpoint("model", names, _listing(base), secret, "OPENAI_API_KEY", "OPENAI_BASE_URL"))
    if settings.embedding_model:
        own = settings.embedding_api_key or key
        secret = own.get_secret_value() if own else ""
        listing = _listing(settings.embedding_base_url or base)
        name = settings.embedding_model
        found.append(Endpoint("embeddings", name, listing, secret, "EMBEDDING_API_KEY", "EMBEDDING_BASE_URL"))
    if settings.cohere_api_key:
        listing = _listing((settings.cohere_base_url or COHERE).rstrip("/") + "/v1")
        secret = settings.cohere_api_key.get_secret_value()
        found.append(Endpoint("rerank", settings.cohere_model, listing, secret, "COHERE_API_KEY", "COHERE_BASE_URL"))
    return found


def _listing(base: str) -> str:
    return base.rstrip("/") + "/models"


@dataclass(slots=True)
class Readiness:
    """Asks each part whether it works: in short, or `thoroughly`, which waits for endpoints and counts what is stored.

    `restoring` says how many documents are stored again just now.
    """

    facts: Facts
    store: KnowledgeStore
    retriever: Retriever
    probes: Probes
    restoring: Callable[[], int]
    lacking: Callable[[], Awaitable[int]]
    _written: float = -WRITTEN_SECONDS

    async def __call__(self, *, thoroughly: bool) -> dict[str, str]:
        own = {"database": await self._database(), "passages": await self._passages(thoroughly)}
        elsewhere = {"model": NOT_CONFIGURED, "embeddings": f"{OK}: {BundledEmbedder.model}", "rerank": NOT_CONFIGURED}
        return own | elsewhere | await self.probes.states(DOCTOR_SECONDS if thoroughly else READY_SECONDS)

    async def _database(self) -> str:
        if time.monotonic() - self._written < WRITTEN_SECONDS:
            return OK
        try:
            await self.facts.put(WRITTEN, time.time())
        except SQLAlchemyError as error:
            if is_disk_full(error):
                return "the disk is full; free space under DATA_DIR"
            return "the database can't be written; check DATA_DIR, its owner and its disk"
        self._written = time.monotonic()
        return OK

    async def _passages(self, thoroughly: bool) -> str:
        try:
            async with asyncio.timeout(COUNTED_SECONDS if thoroughly else PROBE_SECONDS):
                if thoroughly or self.retriever.has_failed:
                    lacking = await self.lacking()
                    self.retriever.has_failed = False
                else:
                    await self.store.count("", Version("", 0))
                    lacking = 0
        except StoreUnavailable as error:
            return str(error)
        except TimeoutError:
            return "the knowledge store doesn't answer in time"
        if restoring := self.restoring():
            return f"the knowledge store lacks passages of {restoring} documents; they are stored again"
        if lacking:
            return f"the knowledge store lacks passages of {lacking} documents; a restart stores them again"
        return OK
