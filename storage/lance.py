"""The knowledge store without a server: LanceDB, a library that keeps its tables as files.

Filters are built as expressions, never as SQL text: LanceDB's SQL reads a backslash as an escape.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import operator
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.expr import Expr, col, lit
from lancedb.index import FTS, Bitmap, BTree, IvfFlat
from lancedb.query import MatchQuery

from storage.errors import StoreUnavailable
from storage.fusion import fuse
from storage.knowledge import CANDIDATES, Entry, Fusion, Mode, Query, Vector
from storage.models import Hit, Passage, Version
from storage.passages import cosines, dimension_changed, key, portions, question_terms, ranked, version_of

Result = TypeVar("Result")
Row = dict[str, Any]

_PASSAGE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("workspace", pa.string(), nullable=False),
        pa.field("audience", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("section", pa.int64(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("headings", pa.list_(pa.string()), nullable=False),
        pa.field("page", pa.int64()),
        pa.field("place", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("terms", pa.string(), nullable=False),
    ]
)
_PASSAGE_FIELDS = [field.name for field in fields(Passage)]
_VECTOR = "vector"  # a column that comes with the first vector: only then is its dimension known
_TERMS_INDEX = FTS(
    base_tokenizer="whitespace",
    lower_case=False,
    stem=False,
    remove_stop_words=False,
    ascii_folding=False,
    max_token_length=None,
)
_INDICES: dict[str, FTS | BTree | Bitmap] = {
    "terms": _TERMS_INDEX,
    "id": BTree(),
    "digest": BTree(),
    "key": BTree(),
    "audience": Bitmap(),
}
_VECTOR_INDEX = IvfFlat(distance_type="cosine")
_PROBES = 32  # partitions, of 8,192 rows each

_ATTEMPTS = 5
_ROWS_BEFORE_INDEXING = 2_000  # until then they are searched one by one
_AT_ONCE = 500  # values in one filter
_OLD = timedelta(milliseconds=1)


class LanceStore:
    """One collection: a table in the directory `path`. Serves one process.

    `exact_rows`: up to so many rows the vectors are read for each search; beyond, they are partitioned and kept in
    memory. Both compare every vector, up to a quarter of a million rows; then the nearest partitions.
    """

    def __init__(
        self, path: Path, collection: str, *, fusion: Fusion = Fusion.RELATIVE, exact_rows: int = 1_000
    ) -> None:
        self._path = path
        self._collection = collection
        self._fusion = fusion
        self._exact_rows = exact_rows
        self._one_writer = asyncio.Lock()
        self._waiting_rows = 0  # that no index covers yet
        self._dimension = 0

    @classmethod
    async def open(
        cls, path: Path, collection: str, *, fusion: Fusion = Fusion.RELATIVE, exact_rows: int = 1_000
    ) -> Self:
        """Raises StoreUnavailable where the directory can't be used."""
        store = cls(path, collection, fusion=fusion, exact_rows=exact_rows)
        with _named_failures(path, _DAMAGED):
            await store._open()
        return store

    async def _open(self) -> None:
        await asyncio.to_thread(self._path.mkdir, parents=True, exist_ok=True)
        self._connection = await lancedb.connect_async(self._path, read_consistency_interval=timedelta(0))
        try:
            self._table = await self._connection.open_table(self._collection)
        except ValueError:  # there is none yet
            self._table = await self._connection.create_table(self._collection, schema=_PASSAGE)
        known = {column for index in await self._table.list_indices() for column in index.columns}
        for column, config in _INDICES.items():
            if column not in known:
                await self._table.create_index(column, config=config)
        await self._read_dimension()

    async def add(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        latest = {(entry.passage.workspace, entry.passage.id): entry for entry in entries}
        async with self._one_writer:
            await self._write(functools.partial(self._merge, list(latest.values())))
            self._waiting_rows += len(latest)
            if self._waiting_rows >= _ROWS_BEFORE_INDEXING:
                await self._write(self._optimize)

    async def remove(self, workspace: str, versions: Collection[Version]) -> None:
        if not versions:
            return
        async with self._one_writer:
            await asyncio.to_thread(self._unpurged.touch)
            for keys in portions([key(version) for version in versions], _AT_ONCE):
                await self._write(
                    functools.partial(self._table.delete, _in("workspace", [workspace]) & _in("key", keys))
                )

    async def search(self, query: Query) -> list[Hit]:
        where = _where(query)
        if where is None or query.limit < 1:
            return []
        candidates = max(CANDIDATES, query.limit)
        keyword, dense = await asyncio.gather(
            self._keyword(query, where, candidates), self._dense(query, where, candidates)
        )
        scores = fuse(keyword, dense, fusion=self._fusion, dense_weight=query.dense_weight)
        best = list(ranked(scores))[: query.limit]
        return await self._hits(query, best, scores)

    async def vectors(self, workspace: str, digests: Collection[str]) -> Mapping[str, Vector]:
        if not await self._read_dimension():
            return {}
        found: dict[str, Vector] = {}
        for some in portions(list(digests), _AT_ONCE):
            where = _in("workspace", [workspace]) & _in("digest", some)
            rows = await self._read(self._table.query().where(where).select(["digest", _VECTOR]))
            vectors = _vectors(rows)
            found.update((name, vectors[at]) for at, name in enumerate(rows["digest"].to_pylist()) if at in vectors)
        return found

    async def count(self, workspace: str, version: Version) -> int:
        where = _in("workspace", [workspace]) & _in("key", [key(version)])
        return int((await self._read(self._table.query().where(where).select(["number"]))).num_rows)

    async def counts(self, workspace: str) -> Mapping[Version, int]:
        rows = await self._read(self._table.query().where(_in("workspace", [workspace])).select(["key"]))
        counted = rows.group_by("key").aggregate([("key", "count")])
        return {version_of(row["key"]): row["key_count"] for row in counted.to_pylist()}

    async def forget_vectors(self) -> None:
        async with self._one_writer:
            if await self._read_dimension():
                await self._write(functools.partial(self._table.drop_columns, [_VECTOR]))
                self._dimension = 0

    async def drop_others(self) -> None:
        with self._named_failures():
            for name in (await self._connection.list_tables(limit=_AT_ONCE)).tables:
                if name != self._collection:
                    await self._connection.drop_table(name)
            for mark in self._path.glob("*.unpurged"):
                if mark != self._unpurged:
                    mark.unlink()

    async def compact(self) -> None:
        async with self._one_writer:
            unpurged = await asyncio.to_thread(self._unpurged.exists)
            if unpurged:
                await self._write(self._rewrite)
            await self._write(self._optimize)
            if unpurged:
                await asyncio.to_thread(self._unpurged.unlink, missing_ok=True)

    async def close(self) -> None:
        self._table.close()  # type: ignore[no-untyped-call]
        self._connection.close()  # type: ignore[no-untyped-call]

    def _named_failures(self) -> contextlib.AbstractContextManager[None]:
        return _named_failures(self._path, _FAILED)

    # writing

    @property
    def _unpurged(self) -> Path:
        """A file that is there while removed text may still stand on the disk."""
        return self._path / f"{self._collection}.unpurged"

    async def _write(self, action: Callable[[], Awaitable[object]]) -> None:
        with self._named_failures():
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    await _unbroken(action(), to_its_end=True)
                except (RuntimeError, OSError) as error:
                    if attempt == _ATTEMPTS or "conflict" not in str(error).lower():
                        raise
                    await asyncio.sleep(0.02 * 2**attempt)
                else:
                    return

    async def _merge(self, entries: list[Entry]) -> None:
        await self._grow_vector_column(entries)
        schema = await self._table.schema()
        rows = pa.Table.from_pylist([_row(entry) for entry in entries], schema=schema)
        merge = self._table.merge_insert(["workspace", "id"]).when_matched_update_all().when_not_matched_insert_all()
        result = await merge.execute(rows, on_bad_vectors="null")
        if result.num_updated_rows:
            await asyncio.to_thread(self._unpurged.touch)

    async def _grow_vector_column(self, entries: list[Entry]) -> None:
        dimensions = {len(entry.vector) for entry in entries if entry.vector is not None}
        if not dimensions:
            return
        known = await self._read_dimension()
        if not known and len(dimensions) == 1:
            known = dimensions.pop()
            await self._table.add_columns(pa.field(_VECTOR, pa.list_(pa.float32(), known)))
        elif dimensions != {known}:
            raise dimension_changed(dimensions, known)

    async def _rewrite(self) -> None:
        """Write the rows and their indices anew: a plain optimization keeps deleted rows until they are many."""
        await self._table.update(where="true", updates_sql={"place": "place"})
        for index in await self._table.list_indices():
            (column,) = index.columns
            await self._table.create_index(column, config=_INDICES.get(column, _VECTOR_INDEX), replace=True)

    async def _index_vectors(self) -> None:
        """Build the vectors' index where one pays, and anew where it has fallen into parts."""
        if not await self._read_dimension() or await self._table.count_rows() <= self._exact_rows:
            return
        names = [index.name for index in await self._table.list_indices() if index.columns == [_VECTOR]]
        stats = await self._table.index_stats(names[0]) if names else None
        if stats is None or (stats.num_indices or 0) > 1:
            await self._table.create_index(_VECTOR, config=_VECTOR_INDEX, replace=True)

    async def _optimize(self) -> None:
        await self._table.optimize()
        await self._index_vectors()
        await self._table.optimize(cleanup_older_than=_OLD)
        self._waiting_rows = 0

    # reading

    async def _read(self, query: Any) -> pa.Table:
        """A read that meets a compaction may miss a file: the next one sees the new version."""
        with self._named_failures():
            for _ in range(_ATTEMPTS - 1):
                with contextlib.suppress(RuntimeError, OSError):
                    return await _unbroken(query.to_arrow())
            return await _unbroken(query.to_arrow())

    async def _read_dimension(self) -> int:
        """0 while no vector was stored."""
        if not self._dimension:
            with self._named_failures():
                schema = await _unbroken(self._table.schema())
            self._dimension = schema.field(_VECTOR).type.list_size if _VECTOR in schema.names else 0
        return self._dimension

    async def _keyword(self, query: Query, where: Expr, candidates: int) -> dict[str, float]:
        terms = question_terms(query.terms)
        if query.mode is Mode.DENSE or not terms:
            return {}
        search = self._table.query().nearest_to_text(MatchQuery(" ".join(terms), "terms"))  # type: ignore[call-arg]
        rows = await self._read(search.where(where).select(["id", "_score"]).limit(candidates))
        return ranked(dict(zip(rows["id"].to_pylist(), rows["_score"].to_pylist(), strict=True)))

    async def _dense(self, query: Query, where: Expr, candidates: int) -> dict[str, float]:
        if query.mode is Mode.KEYWORD or query.vector is None or not await self._read_dimension():
            return {}
        if len(query.vector) != self._dimension:
            raise dimension_changed([len(query.vector)], self._dimension)
        search = self._table.query().nearest_to(query.vector).distance_type("cosine")
        search = search.maximum_nprobes(0).minimum_nprobes(_PROBES)  # in this order
        rows = await self._read(search.where(where).select(["id", "_distance"]).limit(candidates))
        distances = zip(rows["id"].to_pylist(), rows["_distance"].to_pylist(), strict=True)
        return ranked({id: 1 - distance for id, distance in distances})

    async def _hits(self, query: Query, best: list[str], scores: Mapping[str, float]) -> list[Hit]:
        if not best:
            return []
        wanted = [*_PASSAGE_FIELDS, "id", *([_VECTOR] if self._dimension else [])]
        where = _in("workspace", [query.scope.workspace]) & _in("id", best)
        rows = await self._read(self._table.query().where(where).select(wanted))
        vectors = _vectors(rows)
        near = cosines(query.vector, [vectors.get(at) for at in range(rows.num_rows)])
        ids = rows["id"].to_pylist()
        found = {
            id: Hit(passage, scores[id], each) for id, passage, each in zip(ids, _passages(rows), near, strict=True)
        }
        return [found[id] for id in best if id in found]


async def _unbroken(work: Awaitable[Result], *, to_its_end: bool = False) -> Result:
    """The result of this work, which goes on where its caller is cancelled; `to_its_end`: the caller waits for that.

    A query that is broken off while it loads an index leaves a lock behind, and every later one waits for it for ever
    (lancedb 0.40).
    """
    doing = asyncio.ensure_future(work)
    doing.add_done_callback(lambda done: done.cancelled() or done.exception())  # heard, though nobody waits any more
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        if to_its_end:
            await asyncio.wait([doing])
        raise


# filters


def _where(query: Query) -> Expr | None:
    """None where nothing can be found."""
    if not query.scope.audiences or (query.documents is not None and not query.documents):
        return None
    conditions = [_in("workspace", [query.scope.workspace]), _in("audience", sorted(query.scope.audiences))]
    if query.documents is not None:
        conditions.append(_in("document", sorted(query.documents)))
    if query.dead:
        conditions.append(~_in("key", sorted(key(version) for version in query.dead)))
    return functools.reduce(operator.and_, conditions)


def _in(column: str, values: Sequence[str]) -> Expr:
    return col(column).isin([lit(value) for value in values])


# rows


def _row(entry: Entry) -> Row:
    passage = entry.passage
    row = {name: getattr(passage, name) for name in _PASSAGE_FIELDS}
    row.update(id=passage.id, key=key(passage.key), digest=entry.digest, terms=" ".join(entry.terms))
    row["headings"] = list(passage.headings)
    if entry.vector is not None:
        row[_VECTOR] = entry.vector
    return row


def _passages(rows: pa.Table) -> list[Passage]:
    columns = {name: rows[name].to_pylist() for name in _PASSAGE_FIELDS}
    columns["headings"] = [*map(tuple, columns["headings"])]
    return [*map(Passage, *columns.values())]


def _vectors(rows: pa.Table) -> dict[int, Vector]:
    """The vectors by their rows' places; rows without one are left out."""
    if _VECTOR not in rows.column_names:
        return {}
    column = rows[_VECTOR].combine_chunks()
    places = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    vectors = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    return dict(zip(places.tolist(), vectors.reshape(-1, column.type.list_size), strict=True))


_OUTSIDE = "The knowledge store in {path} can't be read or written: {why}. Check the folder, its owner and its disk."
_DAMAGED = (
    "The knowledge store in {path} can't be opened: it is damaged. Move the folder {path} away and run "
    "`python -m bot reembed`, or restore a backup."
)
_FAILED = (
    "The knowledge store in {path} can't be read or written. Check the folder, its owner and its disk; where it "
    "is damaged, move it away and run `python -m bot reembed`, or restore a backup."
)
_OUTER_CAUSES = ((errno.ENOSPC, "no space left"), (errno.EACCES, "permission denied"), (errno.EROFS, "read-only file"))
_NO_DIRECTORY = (errno.EEXIST, errno.ENOTDIR)


@contextlib.contextmanager
def _named_failures(path: Path, text: str) -> Iterator[None]:
    """The library's own words are of its source files: they stay in the cause."""
    try:
        yield
    except (RuntimeError, OSError, ValueError) as error:
        place = path.absolute()
        if isinstance(error, OSError) and error.errno in _NO_DIRECTORY:
            raise StoreUnavailable(
                f"{place} is a file where the knowledge store's folder should be. Move it away and run "
                "`python -m bot reembed`, or restore a backup."
            ) from error
        why = _outer_cause(error)
        text = _OUTSIDE if why else text
        raise StoreUnavailable(text.format(path=place, why=why)) from error


def _outer_cause(error: Exception) -> str:
    """What is wrong with the disk or the folder, rather than with what is stored; "" where that isn't known."""
    said = str(error).lower()
    for number, words in _OUTER_CAUSES:
        if words in said or (isinstance(error, OSError) and error.errno == number):
            return os.strerror(number)
    return ""
