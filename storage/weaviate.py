"""The knowledge store on a server: Weaviate, where a workspace is a tenant.

What filters compare is stored between two bars: Weaviate trims a text before it compares it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
import time
import uuid
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import numpy as np
import weaviate
from grpc import StatusCode
from grpc.aio import AioRpcError
from weaviate.classes.aggregate import GroupByAggregate
from weaviate.classes.config import Configure, DataType, Property, StopwordsPreset, Tokenization, VectorDistances
from weaviate.classes.data import DataObject
from weaviate.classes.init import AdditionalConfig, Auth, GrpcConfig, Timeout
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery
from weaviate.classes.tenants import Tenant
from weaviate.collections import CollectionAsync
from weaviate.collections.classes.filters import _Filters
from weaviate.exceptions import (
    ResponseCannotBeDecodedError,
    UnexpectedStatusCodeError,
    WeaviateBaseError,
    WeaviateConnectionError,
    WeaviateInsertManyAllFailedError,
    WeaviateStartUpError,
    WeaviateTimeoutError,
)

from storage.errors import StoreUnavailable
from storage.fusion import RRF_K, fuse
from storage.knowledge import CANDIDATES, Entry, Fusion, Mode, Query, Vector
from storage.models import Hit, Passage, Version
from storage.passages import cosines, dimension_changed, key, portions, question_terms, ranked, version_of
from storage.terms import digest

log = logging.getLogger(__name__)

Row = dict[str, Any]
Collected = CollectionAsync[Any, Any]

OLDEST_SERVER = (1, 33)
START_SECONDS = 60.0

_OURS = "Threadlore"  # no collection of another name is touched
_SPARE = "-spare"  # ends the name of a tenant that is copied to and back
_NAMED = ["document", "version", "number"]  # make a passage's id
_RETURNED = [field.name for field in fields(Passage) if field.name != "workspace"]
_COMPARED = ("document", "audience", "key", "digest")
_KEPT = {
    "name": DataType.TEXT,
    "place": DataType.TEXT,
    "text": DataType.TEXT,
    "headings": DataType.TEXT_ARRAY,
    "version": DataType.INT,
    "number": DataType.INT,
    "section": DataType.INT,
    "start": DataType.INT,
    "end": DataType.INT,
    "page": DataType.INT,
}
_PROPERTIES = [
    *(
        Property(name=name, data_type=DataType.TEXT, tokenization=Tokenization.FIELD, index_searchable=False)
        for name in _COMPARED
    ),
    *(Property(name=name, data_type=kind, index_filterable=False) for name, kind in _KEPT.items()),
    Property(name="dimension", data_type=DataType.INT),  # of the vector, 0 where there is none
    Property(name="terms", data_type=DataType.TEXT, tokenization=Tokenization.WHITESPACE, index_filterable=False),
]

_AT_ONCE = 200  # objects in one request
_MOST_VALUES = 500  # in one filter
_MOST_VERSIONS = 1_000_000  # of a workspace: the server would stop at 100
_ATTEMPTS = 6
_PAUSE = 0.2  # before the second attempt; each further one waits twice as long
_READ_SECONDS = 10.0
_WRITE_SECONDS = 120.0
_LOOK_SECONDS = 5.0  # at whether the server is there
_CHANNEL = [
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]


@dataclass(frozen=True, slots=True)
class Server:
    """`url` has a host and no path. `patience`: so many seconds it is waited for at the start."""

    url: str
    grpc_port: int = 50051
    api_key: str | None = None
    patience: float = START_SECONDS


class WeaviateStore:
    """The collection of one catalog (`owner`) and one model. Several processes may share it."""

    def __init__(
        self, client: weaviate.WeaviateAsyncClient, server: Server, name: str, family: str, fusion: Fusion
    ) -> None:
        self._client = client
        self._server = server
        self._name = name
        self._family = family
        self._fusion = fusion
        self._collection: Collected = client.collections.use(name)
        self._tenants: set[str] = set()  # that are known to be there
        self._dimensions: dict[str, int] = {}
        self._one_writer = asyncio.Lock()

    @classmethod
    async def open(cls, server: Server, collection: str, *, owner: str = "", fusion: Fusion = Fusion.RELATIVE) -> Self:
        """Waits for the server. Raises StoreUnavailable where it can't be used, and says why."""
        logging.getLogger("weaviate-client").setLevel(logging.CRITICAL)  # it logs objects with their text
        client = _client(server)
        family = f"{_OURS}_{owner}_"
        store = cls(client, server, f"{family}{collection}", family, fusion)
        try:
            await store._wait()
        except BaseException:
            await client.close()
            raise
        return store

    async def add(self, entries: Sequence[Entry]) -> None:
        by_workspace: dict[str, dict[str, Entry]] = {}
        for entry in entries:
            by_workspace.setdefault(entry.passage.workspace, {})[entry.passage.id] = entry
        async with self._one_writer, self._failures(_WRITE_SECONDS):
            for workspace, latest in by_workspace.items():
                tenant = _tenant(workspace)
                await self._make_tenant(tenant)
                dimensions = {len(entry.vector) for entry in latest.values() if entry.vector is not None}
                if dimensions:
                    await self._fitting(tenant, dimensions)
                await self._insert(tenant, [_object(entry) for entry in latest.values()])

    async def remove(self, workspace: str, versions: Collection[Version]) -> None:
        async with self._one_writer, self._failures(_WRITE_SECONDS):
            if not versions or not await self._has_tenant(_tenant(workspace)):
                return
            passages = self._collection.with_tenant(_tenant(workspace))
            for keys in portions([key(version) for version in versions], _MOST_VALUES):
                await self._delete(passages, _among("key", keys))

    async def search(self, query: Query) -> list[Hit]:
        where = _where(query)
        if where is None or query.limit < 1:
            return []
        async with self._failures(_READ_SECONDS):
            tenant = _tenant(query.scope.workspace)
            if not await self._has_tenant(tenant):
                return []
            if query.vector is not None and not await self._fitting(tenant, {len(query.vector)}):
                query = replace(query, vector=None)  # there is nothing to compare it to
            passages = self._collection.with_tenant(tenant)
            scores = await self._scores(passages, query, where)
            return await self._hits(passages, query, dict(list(ranked(scores).items())[: query.limit]))

    async def vectors(self, workspace: str, digests: Collection[str]) -> Mapping[str, Vector]:
        found: dict[str, Vector] = {}
        async with self._failures(_WRITE_SECONDS):
            if not digests or not await self._has_tenant(_tenant(workspace)):
                return {}
            passages = self._collection.with_tenant(_tenant(workspace))
            for some in portions(list(digests), _MOST_VALUES):
                await self._find_vectors(passages, set(some), found)
        return found

    async def count(self, workspace: str, version: Version) -> int:
        async with self._failures(_READ_SECONDS):
            if not await self._has_tenant(_tenant(workspace)):
                return 0
            passages = self._collection.with_tenant(_tenant(workspace))
            counted = await passages.aggregate.over_all(filters=_among("key", [key(version)]), total_count=True)
            return counted.total_count or 0

    async def counts(self, workspace: str) -> Mapping[Version, int]:
        async with self._failures(_WRITE_SECONDS):
            if not await self._has_tenant(_tenant(workspace)):
                return {}
            passages = self._collection.with_tenant(_tenant(workspace))
            counted = await passages.aggregate.over_all(
                group_by=GroupByAggregate(prop="key", limit=_MOST_VERSIONS), total_count=True
            )
            return {version_of(_bare(str(group.grouped_by.value))): group.total_count or 0 for group in counted.groups}

    async def forget_vectors(self) -> None:
        """A tenant keeps the dimension of its first vector for as long as it is there: it is made anew.

        Where that is interrupted, passages are missing until they are embedded again, which writes them whole.
        """
        async with self._one_writer, self._failures(None):
            tenants = [*await self._collection.tenants.get()]
            await self._drop_tenants([tenant for tenant in tenants if tenant.endswith(_SPARE)])
            for tenant in tenants:
                if not tenant.endswith(_SPARE) and await self._read_dimension(tenant):
                    await self._copy(tenant, tenant + _SPARE)
                    await self._copy(tenant + _SPARE, tenant)
                    await self._drop_tenants([tenant + _SPARE])
            self._dimensions.clear()

    async def drop_others(self) -> None:
        async with self._failures(_WRITE_SECONDS):
            for name in await self._client.collections.list_all(simple=True):
                if name.startswith(self._family) and name != self._name:
                    await self._client.collections.delete(name)

    async def compact(self) -> None:
        """The server does it."""

    async def close(self) -> None:
        await self._client.close()

    # at the start

    async def _wait(self) -> None:
        deadline = time.monotonic() + self._server.patience
        said = ""
        while True:
            try:
                async with self._failures(_LOOK_SECONDS):
                    return await self._look()
            except StoreUnavailable as error:
                if isinstance(error, _Refused) or time.monotonic() > deadline:
                    raise
                if str(error) != said:
                    log.warning("waiting up to %.0f s: %s", self._server.patience, error)
                said = str(error)
            await asyncio.sleep(0.5)

    async def _look(self) -> None:
        """Find or make the collection."""
        await self._connect()
        version = str((await self._client.get_meta()).get("version", ""))
        if _numbers(version) < OLDEST_SERVER:
            raise _too_old(self._server)
        if not await self._client.is_ready():
            raise StoreUnavailable(f"Weaviate at {self._server.url} isn't ready yet. See its log if it stays so.")
        if not await self._client.collections.exists(self._name):
            await self._make_collection()
        await self._collection.tenants.get_by_names([_tenant("")])  # by gRPC, as all searches

    async def _connect(self) -> None:
        if self._client.is_connected():
            return
        try:
            await self._client.connect()
        except (UnexpectedStatusCodeError, ResponseCannotBeDecodedError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, UnexpectedStatusCodeError) and error.status_code != HTTPStatus.NOT_FOUND:
                raise
            raise StoreUnavailable(_NOT_WEAVIATE.format(url=self._server.url)) from error
        finally:
            if not self._client.is_connected():
                await self._client.close()  # else what it opened stays open

    async def _make_collection(self) -> None:
        try:
            await self._client.collections.create(
                self._name,
                properties=_PROPERTIES,
                vector_config=Configure.Vectors.self_provided(
                    vector_index_config=Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE),
                    quantizer=Configure.VectorIndex.Quantizer.none(),
                ),
                multi_tenancy_config=Configure.multi_tenancy(
                    enabled=True, auto_tenant_creation=False, auto_tenant_activation=True
                ),
                inverted_index_config=Configure.inverted_index(
                    bm25_k1=1.2, bm25_b=0.75, stopwords_preset=StopwordsPreset.NONE
                ),
            )
        except UnexpectedStatusCodeError:
            if not await self._client.collections.exists(self._name):  # another process may have made it
                raise

    def _failures(self, seconds: float | None) -> contextlib.AbstractAsyncContextManager[None]:
        return _failures(self._server, seconds)

    # tenants

    async def _has_tenant(self, tenant: str) -> bool:
        if tenant not in self._tenants and await self._collection.tenants.get_by_names([tenant]):
            self._tenants.add(tenant)
        return tenant in self._tenants

    async def _make_tenant(self, tenant: str) -> None:
        if tenant not in self._tenants:
            await self._collection.tenants.create([Tenant(name=tenant)])  # changes nothing where it is there
            self._tenants.add(tenant)

    async def _drop_tenants(self, tenants: Sequence[str]) -> None:
        if tenants:
            await self._collection.tenants.remove(tenants)
            self._tenants.difference_update(tenants)

    async def _copy(self, source: str, target: str) -> None:
        """Make `target` anew, with the passages of `source` but without their vectors."""
        await self._drop_tenants([target])
        await self._make_tenant(target)
        some: list[DataObject[Row, None]] = []
        async for each in self._collection.with_tenant(source).iterator(cache_size=_AT_ONCE):
            some.append(DataObject(properties={**each.properties, "dimension": 0}, uuid=each.uuid))
            if len(some) == _AT_ONCE:
                await self._insert(target, some)
                some = []
        await self._insert(target, some)

    async def _fitting(self, tenant: str, dimensions: set[int]) -> int:
        """The dimension of the tenant's vectors, 0 where it has none. Raises EmbeddingChanged."""
        known = self._dimensions.get(tenant, 0)
        if dimensions != {known}:
            known = self._dimensions[tenant] = await self._read_dimension(tenant)
        if len(dimensions) > 1 or (known and dimensions != {known}):
            raise dimension_changed(dimensions, known)
        return known

    async def _read_dimension(self, tenant: str) -> int:
        passages = self._collection.with_tenant(tenant)
        found = await passages.query.fetch_objects(filters=_embedded(), limit=1, return_properties=["dimension"])
        return int(found.objects[0].properties["dimension"]) if found.objects else 0

    # writing

    async def _insert(self, tenant: str, objects: Sequence[DataObject[Row, None]]) -> None:
        for some in portions(objects, _AT_ONCE):
            await self._insert_all(self._collection.with_tenant(tenant), some)

    async def _insert_all(self, passages: Collected, objects: Sequence[DataObject[Row, None]]) -> None:
        """What the server fails to store of a batch is sent again."""
        left = list(objects)
        for attempt in range(_ATTEMPTS):
            await asyncio.sleep(_pause(attempt))
            left = await _insert_once(passages, left)
            if not left:
                return
            log.warning("Weaviate failed to store %s of %s passages", len(left), len(objects))
        raise StoreUnavailable(
            f"Weaviate at {self._server.url} fails to store passages. See its log, its disk and its memory."
        )

    async def _delete(self, passages: Collected, where: _Filters) -> None:
        """The server deletes no more at once than it would find."""
        for attempt in range(_ATTEMPTS):
            await asyncio.sleep(_pause(attempt))
            while (deleted := await passages.data.delete_many(where)).successful:
                pass
            if not deleted.failed:
                return
        raise StoreUnavailable(f"Weaviate at {self._server.url} fails to delete passages. See its log and its disk.")

    # reading

    async def _scores(self, passages: Collected, query: Query, where: _Filters) -> dict[str, float]:
        """The server's fusion; ours for what only one side found, which the server marks as one of two."""
        weight = 0.5 if self._fusion is Fusion.RRF else query.dense_weight
        both = query.mode is Mode.HYBRID and query.vector is not None and bool(query.terms)
        fused = await _hybrid(passages, query, where, self._fusion, weight) if both else {}
        if both and not _may_be_one_sided(fused, weight):
            return fused
        keyword, dense = await asyncio.gather(_keyword(passages, query, where), _dense(passages, query, where))
        if keyword and dense:
            return fused
        return fuse(keyword, dense, fusion=self._fusion, dense_weight=weight)

    async def _hits(self, passages: Collected, query: Query, best: Mapping[str, float]) -> list[Hit]:
        if not best:
            return []
        found = await passages.query.fetch_objects_by_ids(
            [_uuid(id) for id in best],
            limit=len(best),
            include_vector=query.vector is not None,
            return_properties=_RETURNED,
        )
        near = cosines(query.vector, [_vector(each.vector) for each in found.objects])
        hits = {}
        for each, cosine in zip(found.objects, near, strict=True):
            passage = _passage(query.scope.workspace, each.properties)
            hits[passage.id] = Hit(passage, best[passage.id], cosine)
        return [hits[id] for id in best if id in hits]

    async def _find_vectors(self, passages: Collected, wanted: set[str], found: dict[str, Vector]) -> None:
        """Several passages may have the same text: what is found isn't asked for again."""
        while wanted:
            page = await passages.query.fetch_objects(
                filters=_embedded() & _among("digest", sorted(wanted)),
                limit=_MOST_VALUES,
                include_vector=True,
                return_properties=["digest"],
            )
            for each in page.objects:
                if (vector := _vector(each.vector)) is not None:
                    found[_bare(each.properties["digest"])] = vector
            wanted -= found.keys()
            if len(page.objects) < _MOST_VALUES:
                return


# searches


async def _hybrid(
    passages: Collected, query: Query, where: _Filters, fusion: Fusion, weight: float
) -> dict[str, float]:
    assert query.vector is not None
    found = await passages.query.hybrid(
        query=" ".join(question_terms(query.terms)),
        query_properties=["terms"],
        vector=query.vector.tolist(),
        alpha=weight,
        fusion_type=HybridFusion.RANKED if fusion is Fusion.RRF else HybridFusion.RELATIVE_SCORE,
        limit=max(CANDIDATES, query.limit),
        filters=where,
        return_metadata=MetadataQuery(score=True),
        return_properties=_NAMED,
    )
    scale = RRF_K if fusion is Fusion.RRF else 1  # the server gives a first place 1 / k
    return {_id(each.properties): min((each.metadata.score or 0.0) * scale, 1.0) for each in found.objects}


def _may_be_one_sided(scores: Mapping[str, float], weight: float) -> bool:
    """The server weighs a side that found everything as one of two: its best gets that side's weight."""
    best = max(scores.values(), default=weight)
    return any(math.isclose(best, share, abs_tol=1e-5) for share in (weight, 1 - weight))


async def _keyword(passages: Collected, query: Query, where: _Filters) -> dict[str, float]:
    if query.mode is Mode.DENSE or not query.terms:
        return {}
    found = await passages.query.bm25(
        query=" ".join(question_terms(query.terms)),
        query_properties=["terms"],
        limit=max(CANDIDATES, query.limit),
        filters=where,
        return_metadata=MetadataQuery(score=True),
        return_properties=_NAMED,
    )
    return ranked({_id(each.properties): each.metadata.score or 0.0 for each in found.objects})


async def _dense(passages: Collected, query: Query, where: _Filters) -> dict[str, float]:
    if query.mode is Mode.KEYWORD or query.vector is None:
        return {}
    found = await passages.query.near_vector(
        near_vector=query.vector.tolist(),
        limit=max(CANDIDATES, query.limit),
        filters=where,
        return_metadata=MetadataQuery(distance=True),
        return_properties=_NAMED,
    )
    return ranked({_id(each.properties): 1 - (each.metadata.distance or 0.0) for each in found.objects})


# filters


def _where(query: Query) -> _Filters | None:
    """None where nothing can be found."""
    if not query.scope.audiences or (query.documents is not None and not query.documents):
        return None
    conditions = [_among("audience", sorted(query.scope.audiences))]
    if query.documents is not None:
        conditions.append(_among("document", sorted(query.documents)))
    if query.dead:
        dead = [_barred(key(version)) for version in sorted(query.dead)]
        conditions.append(Filter.by_property("key").contains_none(dead))
    return Filter.all_of(conditions)


def _among(name: str, values: Sequence[str]) -> _Filters:
    return Filter.by_property(name).contains_any([_barred(value) for value in values])


def _embedded() -> _Filters:
    return Filter.by_property("dimension").greater_than(0)


# objects


def _tenant(workspace: str) -> str:
    """A tenant's name is letters and digits, 64 at most."""
    return digest(workspace)[:40]


def _uuid(id: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_OID, id)


def _barred(text: str) -> str:
    return f"|{text}|"


def _bare(text: str) -> str:
    return text[1:-1]


def _object(entry: Entry) -> DataObject[Row, None]:
    passage = entry.passage
    row = {name: getattr(passage, name) for name in _KEPT}
    row |= {
        "document": _barred(passage.document),
        "audience": _barred(passage.audience),
        "key": _barred(key(passage.key)),
        "digest": _barred(entry.digest),
        "headings": list(passage.headings),
        "terms": " ".join(entry.terms),
        "dimension": 0 if entry.vector is None else len(entry.vector),
    }
    vector = None if entry.vector is None else entry.vector.tolist()
    return DataObject(properties=row, uuid=_uuid(passage.id), vector=vector)


def _id(row: Row) -> str:
    return f"{_bare(row['document'])}.{row['version']}.{row['number']}"


def _passage(workspace: str, row: Row) -> Passage:
    kept = {name: row[name] for name in _RETURNED}
    kept |= {"document": _bare(row["document"]), "audience": _bare(row["audience"])}
    return Passage(**kept | {"workspace": workspace, "headings": tuple(row["headings"] or ())})


def _vector(stored: Any) -> Vector | None:
    values = stored.get("default")
    return np.array(values, dtype=np.float32) if values else None


async def _insert_once(passages: Collected, objects: Sequence[DataObject[Row, None]]) -> list[DataObject[Row, None]]:
    """Those that the server failed to store."""
    if not objects:
        return []
    try:
        stored = await passages.data.insert_many(objects)
    except WeaviateInsertManyAllFailedError:
        return list(objects)
    return [objects[at] for at in sorted(stored.errors)]


def _pause(attempt: int) -> float:
    return _PAUSE * 2**attempt if attempt else 0.0


# the server


def _client(server: Server) -> weaviate.WeaviateAsyncClient:
    at = urlsplit(server.url)
    host, secure = at.hostname or "", at.scheme == "https"
    return weaviate.use_async_with_custom(
        http_host=f"[{host}]" if ":" in host else host,
        http_port=at.port or (443 if secure else 80),
        http_secure=secure,
        grpc_host=f"[{host}]" if ":" in host else host,
        grpc_port=server.grpc_port,
        grpc_secure=secure,
        auth_credentials=Auth.api_key(server.api_key) if server.api_key else None,
        additional_config=AdditionalConfig(
            timeout=Timeout(init=_LOOK_SECONDS, query=_READ_SECONDS, insert=60),
            grpc_config=GrpcConfig(channel_options=_CHANNEL),
        ),
        skip_init_checks=True,  # one of them asks PyPI for a newer client
    )


class _Refused(StoreUnavailable):
    """Waiting doesn't help."""


@contextlib.asynccontextmanager
async def _failures(server: Server, seconds: float | None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except (WeaviateBaseError, httpx.HTTPError, AioRpcError, OSError) as error:
        raise _explained(error, server) from error


_KEY_REFUSED = "Weaviate at {url} refuses the key. Check WEAVIATE_API_KEY."
_NO_GRPC = (
    "Weaviate at {url} can't be reached by gRPC on port {port}. Check that it runs, that this port is open, and "
    "WEAVIATE_GRPC_PORT."
)
_NOT_WEAVIATE = "What answers at {url} isn't Weaviate. Check WEAVIATE_URL."
_AWAY = "Weaviate can't be reached at {url}. Check that it runs, and WEAVIATE_URL."
_SLOW = "Weaviate at {url} doesn't answer in time. See its log, and whether it has too much to do."
_TOO_OLD = "Weaviate at {url} is too old: it must be {oldest} or newer."
_FAILED = "Weaviate at {url} fails. See its log."
_TRANSPORT = (WeaviateConnectionError, httpx.TransportError, OSError)


def _explained(error: BaseException, server: Server) -> StoreUnavailable:
    """The libraries' own words stay in the cause."""
    causes = list(_causes(error))
    statuses = {each.status_code for each in causes if isinstance(each, UnexpectedStatusCodeError)}
    codes = {each.code() for each in causes if isinstance(each, AioRpcError)}
    if statuses & {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN} or codes & {
        StatusCode.UNAUTHENTICATED,
        StatusCode.PERMISSION_DENIED,
    }:
        return _Refused(_KEY_REFUSED.format(url=server.url))
    if StatusCode.UNAVAILABLE in codes:
        return StoreUnavailable(_NO_GRPC.format(url=server.url, port=server.grpc_port))
    if isinstance(error, (TimeoutError, WeaviateTimeoutError)) or StatusCode.DEADLINE_EXCEEDED in codes:
        return StoreUnavailable(_SLOW.format(url=server.url))
    if any(isinstance(each, _TRANSPORT) for each in causes):
        return StoreUnavailable(_AWAY.format(url=server.url))
    if isinstance(error, WeaviateStartUpError):  # what else the client refuses is a version
        return _too_old(server)
    return StoreUnavailable(_FAILED.format(url=server.url))


def _too_old(server: Server) -> StoreUnavailable:
    return _Refused(_TOO_OLD.format(url=server.url, oldest=".".join(map(str, OLDEST_SERVER))))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
