"""One posted file, from its bytes to passages that answer: convert, split, embed, store, swap.

Each step can be repeated. A file that was interrupted goes on where it was: what is read stays read, what is embedded
stays embedded, and the version answers only once all of it is there.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ingest.convert import Converter, Refused
from ingest.limits import MEGABYTE, FileLimits
from ingest.split import passages, split
from storage.documents import LATE, Documents, FilePost, Standing, Swapped
from storage.embeddings import Embedder
from storage.errors import EmbeddingUnavailable, StoreUnavailable
from storage.knowledge import Entry, KnowledgeStore, Vector
from storage.models import Document, DocumentState, Passage, Version
from storage.terms import cut, digest, indexed_text

log = logging.getLogger(__name__)

BATCH = 64

POST_DELETED = "the post was deleted"
KEYWORDS_ONLY = "found by keywords until the embedding endpoint answers"
_TOO_LARGE = "it is larger than {megabytes:g} MB: split it and post the parts"
_TOO_MANY = "it makes {passages:,} passages, more than {limit:,}: split it and post the parts"
_EMPTY = "it is empty: post it again with its content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload(FilePost):
    """A posted file whose bytes lie at `path`."""

    path: Path


class Verdict(BaseModel):
    """What became of a posted file. `reason` is for the person: why not, or what to know about it.

    `superseded`: this version took the place of `replaces_version`, which was posted at `replaces`. Where these are
    None, the place was taken already by a version that was posted later.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    verdict: Literal["indexed", "unchanged", "superseded", "refused"]
    reason: str = ""
    document: str = ""
    version: int = 0
    sections: int = 0
    passages: int = 0
    pages: int = 0
    seconds: float = 0
    replaces: float | None = None
    replaces_version: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` pages, slides or sheets while converting, of passages while embedding."""

    stage: Literal["converting", "embedding"]
    done: int
    total: int


Tell = Callable[[Progress], Awaitable[None]]
Stands = Callable[[Version], Awaitable[bool]]


class _Gone(Exception):
    """The post was deleted while its file was taken in."""


class Ingestor:
    def __init__(
        self,
        documents: Documents,
        store: KnowledgeStore,
        embedder: Embedder,
        converter: Converter,
        limits: FileLimits,
    ) -> None:
        self._documents = documents
        self._store = store
        self._embedder = embedder
        self._converter = converter
        self._limits = limits
        self.restoring = 0  # documents whose passages are missing in the store

    async def ingest(self, upload: Upload, progress: Tell) -> Verdict:
        """Take a file in. Doing it again, after any interruption, comes to the same.

        Raises StoreUnavailable or ConverterDown where trying again later may work.
        """
        began = time.monotonic()
        verdict = await self._ingest(upload, progress)
        return verdict.model_copy(update={"seconds": round(time.monotonic() - began, 3)})

    async def give_up(self, workspace: str, channel: str, message: str, attachment: str, reason: str) -> None:
        """Refuse a file that can't be taken in, and remove what is stored of it."""
        for document in await self._documents.begun(workspace, channel, message, attachment):
            await self._store.remove(workspace, [document.key])
            await self._documents.refuse(document.key, reason)

    async def clean(self, workspace: str | None = None) -> None:
        """Remove what is dead from the store, then from the catalog. Can be repeated at any time."""
        cleaned: list[Version] = []
        for each in await self._documents.workspaces_with_dead() if workspace is None else [workspace]:
            if dead := await self._documents.dead(each):
                await self._store.remove(each, dead)
                cleaned += dead
        await self._store.compact()
        await self._documents.mark_cleaned(cleaned)

    async def restore(self) -> None:
        """Make the store hold what the catalog says, where it doesn't: a crash came between them, or one of them is
        from an older backup. Can be repeated at any time."""
        for workspace in await self._documents.workspaces():
            stored = await self._store.counts(workspace)
            pending = await self._documents.pending(workspace)
            current = await self._documents.current(workspace)
            await self._store.remove(workspace, stored.keys() - {each.key for each in current} - set(pending))
            await self._restore(_lacking(stored, current))

    async def lacking(self) -> int:
        """How many documents the store holds other passages of than the catalog says. Raises StoreUnavailable."""
        lacking = 0
        for workspace in await self._documents.workspaces():
            stored = await self._store.counts(workspace)
            for document in _lacking(stored, await self._documents.current(workspace)):
                now = await self._store.count(workspace, document.key)  # it may have changed between the two
                lacking += now != document.passages and await self._lives(document.key)
        return lacking

    async def embed_missing(self) -> int:
        """Embed what was stored without vectors, as far as the endpoint answers. Returns how many passages it was."""
        embedded = 0
        for document in await self._documents.unembedded():
            try:
                embedded += await self._embed_document(document)
            except EmbeddingUnavailable as down:
                log.info("passages wait for their vectors: %s", down)
                break
        return embedded

    async def reembed(self, report: Callable[[int, int], Awaitable[None]]) -> int:
        """Embed every passage anew, for another model; `report` is told how many of how many are done.

        Returns how many got a vector. Raises EmbeddingUnavailable: done again, it goes on with what is left.
        """
        await self._documents.forget_vectors()
        await self._store.forget_vectors()
        waiting = await self._documents.unembedded()
        total = sum(document.passages for document in waiting)
        done = embedded = 0
        for document in waiting:
            await report(done, total)
            embedded += await self._embed_document(document)
            done += document.passages
        await report(total, total)
        return embedded

    async def _ingest(self, upload: Upload, progress: Tell) -> Verdict:
        too_large = await self._too_large(upload)
        content_hash = "" if too_large else await asyncio.to_thread(_hash, upload.path)
        begun = await self._documents.begin(upload, content_hash)
        document = begun.document
        if begun.standing is Standing.GONE or document is None:
            return await self._withdraw(upload, document)
        if begun.standing is Standing.UNCHANGED:
            return _verdict(upload, document, verdict="unchanged", reason="")
        if begun.standing is Standing.SETTLED:
            return await self._as_settled(upload, document)
        if too_large:
            return await self._refuse(upload, document, too_large)
        try:
            return await self._take_in(upload, document, progress)
        except Refused as refused:
            return await self._refuse(upload, document, refused.reason)
        except _Gone:
            return await self._withdraw(upload, document)

    async def _too_large(self, upload: Upload) -> str:
        stat = await asyncio.to_thread(upload.path.stat)
        if stat.st_size > self._limits.size:
            return _TOO_LARGE.format(megabytes=self._limits.size / MEGABYTE)
        return "" if stat.st_size else _EMPTY

    async def _take_in(self, upload: Upload, document: Document, progress: Tell) -> Verdict:
        await self._read(upload, document, progress)
        found = await self._passages(document)
        if len(found) > self._limits.passages:
            raise Refused(_TOO_MANY.format(passages=len(found), limit=self._limits.passages))
        embedded = await self._store_passages(document, found, self._documents.is_pending, progress)
        swapped = await self._documents.swap(document.key, len(found), embedded)
        if swapped.gone:
            raise _Gone
        await self._clean_after(swapped)
        notes = [swapped.document.reason, "" if embedded else KEYWORDS_ONLY]
        return _of_swap(upload, swapped, "; ".join(filter(None, notes)))

    async def _read(self, upload: Upload, document: Document, progress: Tell) -> None:
        """Convert and split, unless that was done before."""
        if document.sections and await self._documents.sections(document.key, [1]):
            return

        async def tell(done: int, total: int) -> None:
            await progress(Progress("converting", done, total))

        converted = await self._converter.convert(upload.path, upload.name, tell)
        found = await asyncio.to_thread(split, converted.parts)
        if not await self._documents.store_sections(document.key, found, converted.pages, converted.note):
            raise _Gone

    async def _passages(self, document: Document) -> list[Passage]:
        sections = await self._documents.sections(document.key)
        return await asyncio.to_thread(passages, document, sections)

    async def _restore(self, missing: Sequence[Document]) -> None:
        if missing:
            log.warning("the store lacks passages of %s documents: they are stored again", len(missing))
        try:
            for done, document in enumerate(missing):
                self.restoring = len(missing) - done
                await self._restore_document(document)
        finally:
            self.restoring = 0

    async def _restore_document(self, document: Document) -> None:
        if await self._store.count(document.workspace, document.key) == document.passages:
            return  # it was taken in only now
        found = await self._passages(document)
        try:
            embedded = await self._store_passages(document, found, self._lives, _say_nothing)
        except _Gone:
            await self._remove(document.workspace, document.key)
        else:
            await self._documents.mark_stored(document.key, len(found), embedded)

    async def _lives(self, version: Version) -> bool:
        found = await self._documents.get(version.document, version.version)
        return found is not None and found.state is DocumentState.CURRENT

    async def _store_passages(
        self, document: Document, found: Sequence[Passage], stands: Stands, progress: Tell
    ) -> bool:
        """Store the passages with their vectors; False where some must wait for theirs."""
        if await self._store.count(document.workspace, document.key) > len(found):
            await self._store.remove(document.workspace, [document.key])  # another release cut it otherwise
        embedded = True
        await progress(Progress("embedding", 0, len(found)))
        for start in range(0, len(found), BATCH):
            batch = found[start : start + BATCH]
            texts = [indexed_text(passage) for passage in batch]
            vectors, complete = await self._vectors(document.workspace, texts, give_up=not embedded)
            embedded = embedded and complete
            await self._store.add(await asyncio.to_thread(_entries, batch, texts, vectors))
            if not await stands(document.key):
                raise _Gone
            await progress(Progress("embedding", start + len(batch), len(found)))
        return embedded

    async def _vectors(
        self, workspace: str, texts: Sequence[str], *, give_up: bool = False
    ) -> tuple[Mapping[str, Vector], bool]:
        """The vectors by digest, and whether each text that can have one has it. None is made twice."""
        known = {digest(text): text for text in texts if self._embedder.knows(text)}
        vectors = dict(await self._store.vectors(workspace, known))
        missing = {key: text for key, text in known.items() if key not in vectors}
        if not missing:
            return vectors, True
        if give_up:
            return vectors, False
        try:
            vectors.update(zip(missing, await self._embedder.embed(list(missing.values())), strict=True))
        except EmbeddingUnavailable as down:
            log.warning("passages are stored without vectors for now: %s", down)
            return vectors, False
        return vectors, True

    async def _embed_document(self, document: Document) -> int:
        found = await self._passages(document)
        embedded = 0
        for start in range(0, len(found), BATCH):
            batch = found[start : start + BATCH]
            texts = [indexed_text(passage) for passage in batch]
            vectors, complete = await self._vectors(document.workspace, texts)
            if not complete:
                raise EmbeddingUnavailable("the embedding endpoint is down")
            await self._store.add(await asyncio.to_thread(_entries, batch, texts, vectors))
            embedded += len(vectors)
            if not await self._documents.living(document.workspace, [document.key]):
                await self._remove(document.workspace, document.key)
                return embedded
        await self._documents.mark_embedded(document.key)
        return embedded

    async def _clean_after(self, swapped: Swapped) -> None:
        """What no longer answers leaves the store. Where that fails, the next `clean` does it."""
        dead = swapped.document if swapped.late else swapped.replaced
        if dead is None:
            return
        try:
            await self._remove(dead.workspace, dead.key)
        except StoreUnavailable:
            log.warning("the store can't be reached: the replaced version is removed later")

    async def _remove(self, workspace: str, version: Version) -> None:
        await self._store.remove(workspace, [version])
        await self._documents.mark_cleaned([version])

    async def _withdraw(self, upload: Upload, document: Document | None) -> Verdict:
        if document is not None:
            await self._remove(document.workspace, document.key)
        return Verdict(name=upload.name, verdict="refused", reason=POST_DELETED)

    async def _refuse(self, upload: Upload, document: Document, reason: str) -> Verdict:
        refused = await self._documents.refuse(document.key, reason)
        if refused.state is DocumentState.DELETED:
            return await self._withdraw(upload, refused)
        return _verdict(upload, refused, verdict="refused", reason=reason)

    async def _as_settled(self, upload: Upload, document: Document) -> Verdict:
        """The verdict that this upload was given before."""
        is_late = document.reason == LATE
        replaced = None if is_late else await self._documents.replaced_by(document)
        return _of_swap(upload, Swapped(document, late=is_late, replaced=replaced), document.reason)


async def _say_nothing(_: Progress) -> None: ...


def _lacking(stored: Mapping[Version, int], current: Sequence[Document]) -> list[Document]:
    return [document for document in current if stored.get(document.key, 0) != document.passages]


def _of_swap(upload: Upload, swapped: Swapped, reason: str) -> Verdict:
    verdict = _verdict(upload, swapped.document, verdict=swapped.document.verdict, reason=reason)
    if swapped.replaced is None:
        return verdict
    replaced = {"replaces": swapped.replaced.posted_at, "replaces_version": swapped.replaced.version}
    return verdict.model_copy(update=replaced)


def _verdict(upload: Upload, document: Document, *, verdict: str, reason: str) -> Verdict:
    return Verdict.model_validate(
        {
            "name": upload.name,
            "verdict": verdict,
            "reason": reason,
            "document": document.document,
            "version": document.version,
            "sections": document.sections,
            "passages": document.passages,
            "pages": document.pages,
        }
    )


def _entries(batch: Sequence[Passage], texts: Sequence[str], vectors: Mapping[str, Vector]) -> list[Entry]:
    return list(_made_entries(batch, texts, vectors))


def _made_entries(batch: Sequence[Passage], texts: Sequence[str], vectors: Mapping[str, Vector]) -> Iterator[Entry]:
    for passage, text in zip(batch, texts, strict=True):
        key = digest(text)
        yield Entry(passage, key, cut(text), vectors.get(key))


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
