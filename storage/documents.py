"""The catalog of documents: which version of which file answers, and what was deleted.

One transaction decides: a swap, a deletion or a refusal takes effect at once, and cleaning the store is a later step.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Row,
    and_,
    bindparam,
    delete,
    exists,
    false,
    func,
    insert,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.database import Database
from storage.models import Anchor, Document, DocumentName, DocumentState, Living, Scope, Section, Version, document_id
from storage.schema import clock, documents, position, sections, tombstones

Item = TypeVar("Item")
State = DocumentState
UNCHANGED = "unchanged"
LATE = "a version of this file that was posted later answers already"
NOT_OFFERED = {"label": "No longer available", "document": None, "version": None, "gone": True}

_AT_ONCE = 400  # values in one IN list
_DEAD = (State.SUPERSEDED, State.DELETED)
_COLUMNS = [documents.c[field] for field in Document.__dataclass_fields__]
_STATE = [column.name for column in _COLUMNS].index("state")
_MEANINGLESS = re.compile(
    r"""(image|img|dsc|dcim|pxl|photo|picture|pasted|clipboard|untitled|unnamed|unknown|noname|message|snippet
        |blob|capture|screen[ ]?(shot|cap|grab|recording)?|bildschirmfoto|unbenannt|sans[ ]titre|sin[ ]t[íi]tulo
        |captura([ ]de[ ]pantalla)?|без[ ]имени|снимок[ ]экрана|截图|截屏|屏幕截图|屏幕快照|无标题|未命名
        |無題|名称未設定|スクリーンショット|제목[ ]없음|스크린샷)
        [ ]?(image|file|from|at|of|text|document|am|pm|um|à|a[ ]las|上午|下午|午前|午後|\d|[ ])*""",
    re.VERBOSE,
)


class _PostKey(NamedTuple):
    workspace: str
    channel: str
    message: str
    attachment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePost:
    """One file of one post. `attachment` tells the files of a post apart.

    `twin`: another file of the same post has the same name. A twin that comes later is recognised without being told.
    """

    workspace: str
    channel: str
    audience: str
    name: str
    size: int
    posted_by: str
    posted_at: float
    message: str
    attachment: str
    link: str
    twin: bool = False


class Standing(StrEnum):
    """Where a posted file stands in the catalog."""

    PENDING = "pending"  # to be read, or to be read on
    UNCHANGED = "unchanged"  # the current version has the same content
    SETTLED = "settled"  # this very file of this very post was taken in before
    GONE = "gone"  # the post was deleted, or the document forgotten


@dataclass(frozen=True, slots=True)
class Begun:
    """`document` is the version to go on with; for UNCHANGED the current one; for GONE what is left to remove."""

    standing: Standing
    document: Document | None


@dataclass(frozen=True, slots=True)
class Swapped:
    """What a swap came to. `late`: a version that was posted later answers already, so this one never does."""

    document: Document
    gone: bool = False
    late: bool = False
    replaced: Document | None = None


def means_nothing(name: str) -> bool:
    """Whether a name says nothing about the content: `image.png`, `Untitled`, `Screenshot 2026-03-01 at 9.12.png`."""
    stem, dot, extension = unicodedata.normalize("NFKC", name).casefold().rpartition(".")
    if not dot or len(extension) > 5:
        stem = unicodedata.normalize("NFKC", name).casefold()
    words = " ".join(re.sub(r"[^\w]|_", " ", stem).split())
    return not words or _MEANINGLESS.fullmatch(words) is not None


def opening(name: str) -> str:
    """The first word of a name: whoever names the document, with its extension or without, writes it in some case."""
    word = re.search(r"[^\W_]+", PurePath(name).stem)
    return folded(word[0] if word else name)


def folded(text: str) -> str:
    """In one case, as a comparison that ignores case sees it: it takes the Turkish i with a dot or without for an i."""
    return text.casefold().replace("i\u0307", "i").replace("\u0131", "i")


def identity(post: FilePost, twin: bool = False) -> str:
    """The document that a posted file is a version of.

    A name that means nothing, and a name that another file of the same post has, give a document of its own.
    """
    name = unicodedata.normalize("NFC", post.name)
    if twin or post.twin or means_nothing(name):
        return _own_id(post)
    return document_id(post.workspace, post.audience, name)


def _own_id(post: FilePost) -> str:
    return document_id(post.workspace, post.audience, "\0".join((post.name, post.message, post.attachment)))


class Documents:
    def __init__(self, database: Database) -> None:
        self._database = database

    # reading

    async def get(self, document: str, version: int | None = None) -> Document | None:
        """This version; without a number the current one, else the newest."""
        query = select(*_COLUMNS).where(documents.c.document == document)
        if version is not None:
            query = query.where(documents.c.version == version)
        query = query.order_by((documents.c.state == State.CURRENT).desc(), documents.c.version.desc()).limit(1)
        found = await self._select(query)
        return found[0] if found else None

    async def visible(self, scope: Scope, ids: Collection[str] | None = None) -> list[Document]:
        """The current documents of a scope, by name; with `ids` those of these."""
        current = documents.c.state == State.CURRENT
        wanted = current if ids is None else and_(current, documents.c.document.in_(ids))
        return await self._in_audiences(scope.workspace, scope.audiences, wanted)

    async def named(self, scope: Scope, question: str, ids: Collection[str] = ()) -> list[DocumentName]:
        """The current documents of a scope that a question may name, by how their names begin, and those of `ids`."""
        asked = {"workspace": scope.workspace, "question": folded(question), "documents": list(ids)}
        found: list[DocumentName] = []
        async with self._database.read() as connection:
            for some in _chunks(sorted(scope.audiences)):
                named = await connection.execute(_NAMED, {**asked, "audiences": some})
                found += [DocumentName(document, name) for document, name in named.all()]
        return found

    async def offered(self, scope: Scope, options: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The options of a clarification as they may be shown in this scope now, each in its place: NOT_OFFERED where
        its document is dead or out of it."""
        asked = {str(option["document"]) for option in options if option.get("document")}
        seen = {document.document for document in await self.visible(scope, asked)} if asked else set()
        return [
            dict(NOT_OFFERED if option.get("document") and option["document"] not in seen else option)
            for option in options
        ]

    async def is_empty(self, scope: Scope) -> bool:
        """Whether a scope has no current document."""
        async with self._database.read() as connection:
            for some in _chunks(sorted(scope.audiences)):
                asked = {"workspace": scope.workspace, "audiences": some}
                if await connection.scalar(_ANY, asked) is not None:
                    return False
        return True

    async def listed(self, workspace: str, audiences: Collection[str] | None = None) -> list[Document]:
        """What `docs` shows: the current versions, and the newest ones that were refused."""
        other = documents.alias()
        newest = select(func.max(other.c.version)).where(other.c.document == documents.c.document).scalar_subquery()
        shown = or_(
            documents.c.state == State.CURRENT,
            and_(documents.c.state == State.REFUSED, documents.c.version == newest),
        )
        return await self._in_audiences(workspace, audiences, shown)

    async def living(self, workspace: str, versions: Collection[Version]) -> dict[Version, Living]:
        """Those of the versions that are current."""
        found: dict[Version, Living] = {}
        async with self._database.read() as connection:
            for some in _chunks(sorted({version.document for version in versions})):
                living = await connection.execute(_LIVING, {"workspace": workspace, "documents": some})
                found |= {Version(document, version): Living(*more) for document, version, *more in living}
        return {version: found[version] for version in versions if version in found}

    async def dead(self, workspace: str) -> list[Version]:
        """Superseded or deleted versions that the store may still hold."""
        return await self._versions(documents.c.workspace == workspace, _is_dead())

    async def pending(self, workspace: str) -> list[Version]:
        """Versions that are being read: the store may hold some of their passages, and they don't answer yet."""
        return await self._versions(documents.c.workspace == workspace, documents.c.state == State.PENDING)

    async def begun(self, workspace: str, channel: str, message: str, attachment: str) -> list[Document]:
        """The versions of this file of this post that are being read."""
        return await self._select(
            select(*_COLUMNS).where(
                documents.c.workspace == workspace,
                documents.c.channel == channel,
                documents.c.message == message,
                documents.c.attachment == attachment,
                documents.c.state == State.PENDING,
            )
        )

    async def current(self, workspace: str) -> list[Document]:
        return await self._in_audiences(workspace, None, documents.c.state == State.CURRENT)

    async def workspaces(self) -> list[str]:
        async with self._database.read() as connection:
            return list(await connection.scalars(select(documents.c.workspace).distinct()))

    async def workspaces_with_dead(self) -> list[str]:
        query = select(documents.c.workspace).where(_is_dead()).distinct().order_by(documents.c.workspace)
        async with self._database.read() as connection:
            return list((await connection.execute(query)).scalars())

    async def unembedded(self) -> list[Document]:
        """Current documents of which some passages still wait for their vectors."""
        return await self._select(
            select(*_COLUMNS)
            .where(documents.c.state == State.CURRENT, documents.c.embedded == false())
            .order_by(documents.c.indexed_at, documents.c.document)
        )

    async def sections(self, version: Version, numbers: Collection[int] | None = None) -> list[Section]:
        """The sections of a version in order; none of one that was deleted and cleaned."""
        query = select(sections).where(_of(sections.c, version)).order_by(sections.c.number)
        if numbers is not None:
            query = query.where(sections.c.number.in_(numbers))
        async with self._database.read() as connection:
            return [_section(row) for row in await connection.execute(query)]

    async def sections_at(self, places: Collection[tuple[Version, int]]) -> dict[tuple[Version, int], Section]:
        """These sections, each a version and a number; without those that are gone."""
        key = tuple_(sections.c.document, sections.c.version, sections.c.number)
        found: dict[tuple[Version, int], Section] = {}
        async with self._database.read() as connection:
            for some in _chunks((*version, number) for version, number in places):
                of_these = sections.c.document.in_({document for document, *_ in some})  # else SQLite reads them all
                for row in await connection.execute(select(sections).where(of_these, key.in_(some))):
                    found[Version(row.document, row.version), row.number] = _section(row)
        return found

    async def is_pending(self, version: Version) -> bool:
        """Whether this version is still to be read: False once its post was deleted."""
        return bool(await self._versions(_of(documents.c, version), documents.c.state == State.PENDING))

    async def replaced_by(self, document: Document) -> Document | None:
        """The version that this one took the place of."""
        query = (
            select(*_COLUMNS)
            .where(
                documents.c.document == document.document,
                documents.c.version < document.version,
                documents.c.verdict.in_(("indexed", "superseded")),
                documents.c.state == State.SUPERSEDED,
            )
            .order_by(documents.c.posted_at.desc())
            .limit(1)
        )
        found = await self._select(query)
        return found[0] if found and document.verdict == "superseded" else None

    # taking a file in

    async def begin(self, post: FilePost, content_hash: str) -> Begun:
        """Find or make the version that this posted file becomes. An empty hash equals no other."""
        async with self._database.write() as connection:
            own = await _of_post(connection, post)
            if await _is_tombstoned(connection, post):
                return Begun(Standing.GONE, await _bury(connection, own))
            if own is not None and (begun := await _take_up(connection, own, content_hash)):
                return begun
            document = identity(post, await _is_twin(connection, post))
            current = await _current(connection, document)
            if current is not None and content_hash and current.content_hash == content_hash:
                await _insert(connection, post, content_hash, Version(_own_id(post), 1), repeat=True)
                return Begun(Standing.UNCHANGED, current)
            version = Version(document, await _next_version(connection, document))
            await _insert(connection, post, content_hash, version)
            return Begun(Standing.PENDING, await _one(connection, version))

    async def store_sections(self, version: Version, found: Sequence[Section], pages: int, note: str = "") -> bool:
        """Keep what was read, all of it or nothing. False where the version is no longer to be read.

        `note` is what the person should know about it.
        """
        async with self._database.write() as connection:
            kept = await connection.execute(
                update(documents)
                .where(_of(documents.c, version), documents.c.state == State.PENDING)
                .values(sections=len(found), pages=pages, reason=note)
            )
            if kept.rowcount == 0:
                return False
            await connection.execute(delete(sections).where(_of(sections.c, version)))
            for some in _chunks(found):
                await connection.execute(insert(sections), [_section_row(version, section) for section in some])
            return True

    async def swap(self, version: Version, passages: int, embedded: bool) -> Swapped:
        """Let this version answer, in the place of the current one, unless it is gone or late."""
        async with self._database.write() as connection:
            row = await _one(connection, version, lock=True)
            if row.state is not State.PENDING:
                return Swapped(row, gone=row.state is State.DELETED)
            post = await _post_key(connection, version)
            if await _is_tombstoned(connection, post):
                await _set(connection, version, state=State.DELETED, cleaned=False)
                return Swapped(await _one(connection, version), gone=True)
            current = await _current(connection, version.document)
            late = current is not None and current.posted_at > row.posted_at
            if current is not None and not late:
                await _set(connection, current.key, state=State.SUPERSEDED, cleaned=False)
            await _set(
                connection,
                version,
                state=State.SUPERSEDED if late else State.CURRENT,
                verdict="superseded" if current is not None else "indexed",
                reason=LATE if late else row.reason,
                passages=passages,
                embedded=embedded,
                cleaned=False,
                indexed_at=clock(),
            )
            return Swapped(await _one(connection, version), late=late, replaced=None if late else current)

    async def refuse(self, version: Version, reason: str) -> Document:
        """Give a version that is being read its refusal. One that is gone stays so."""
        async with self._database.write() as connection:
            await connection.execute(
                update(documents)
                .where(_of(documents.c, version), documents.c.state == State.PENDING)
                .values(state=State.REFUSED, verdict="refused", reason=reason, sections=0, passages=0)
            )
            await connection.execute(delete(sections).where(_of(sections.c, version)))
            return await _one(connection, version)

    async def mark_embedded(self, version: Version, embedded: bool = True) -> None:
        async with self._database.write() as connection:
            await _set(connection, version, embedded=embedded)

    async def mark_stored(self, version: Version, passages: int, embedded: bool) -> None:
        """The store holds so many passages of this version again."""
        async with self._database.write() as connection:
            await _set(connection, version, passages=passages, embedded=embedded)

    async def forget_vectors(self) -> None:
        """Every current document is to be embedded anew: the embedding model was changed."""
        async with self._database.write() as connection:
            await connection.execute(
                update(documents).where(documents.c.state == State.CURRENT).values(embedded=false())
            )

    # ending

    async def delete_post(self, workspace: str, channel: str, message: str, attachment: str = "") -> list[Document]:
        """`bury_post`, by itself."""
        async with self._database.write() as connection:
            return await self.bury_post(connection, workspace, channel, message, attachment)

    async def bury_post(
        self, connection: AsyncConnection, workspace: str, channel: str, message: str, attachment: str = ""
    ) -> list[Document]:
        """A post, or one file of it, was deleted: what answered through it answers no more. Returns what ended.

        A step of the caller's transaction. A tombstone stays for an ingestion that comes late. Where the same content
        was posted again in the same place, the document lives on by that post.
        """
        of_post = and_(
            documents.c.workspace == workspace, documents.c.channel == channel, documents.c.message == message
        )
        if attachment:
            of_post = and_(of_post, documents.c.attachment == attachment)
        await self._set_tombstone(connection, _PostKey(workspace, channel, message, attachment))
        await connection.execute(
            update(documents)
            .where(of_post, or_(documents.c.state.in_((State.PENDING, State.REFUSED)), _is_repeat()))
            .values(state=State.DELETED)
        )
        await connection.execute(
            update(documents)
            .where(of_post, documents.c.state == State.SUPERSEDED)
            .values(state=State.DELETED, cleaned=false())
        )
        current = await connection.execute(
            select(*_COLUMNS).where(of_post, documents.c.state == State.CURRENT).with_for_update()
        )
        return [row for row in map(_document, current.all()) if await _end(connection, row)]

    async def forget(self, document: str) -> Document | None:
        """End a document with all its versions, and the posts that repeated it. Returns the one that answered."""
        async with self._database.write() as connection:
            current = await _current(connection, document)
            ending = and_(documents.c.document == document, documents.c.state != State.DELETED)
            newest = await connection.execute(
                select(*_COLUMNS).where(ending).order_by(documents.c.version.desc()).limit(1)
            )
            ended = current or next(map(_document, newest.all()), None)
            if ended is None:
                return None
            repeats = and_(_is_repeat(), _same_place(ended))
            await connection.execute(update(documents).where(repeats).values(state=State.DELETED))
            await connection.execute(update(documents).where(ending).values(state=State.DELETED, cleaned=false()))
            return current

    async def mark_cleaned(self, versions: Collection[Version]) -> None:
        """The store holds nothing of these dead versions any more.

        The sections of a deleted one go too; those of a replaced one stay, for the citations that rest on them.
        """
        async with self._database.write() as connection:
            for version in versions:
                marked = await connection.execute(
                    update(documents)
                    .where(_of(documents.c, version), documents.c.state.in_(_DEAD))
                    .values(cleaned=true())
                )
                if marked.rowcount:
                    gone = exists().where(_of(documents.c, version), documents.c.state == State.DELETED)
                    await connection.execute(delete(sections).where(_of(sections.c, version), gone))

    async def _set_tombstone(self, connection: AsyncConnection, key: _PostKey) -> None:
        into = postgresql.insert if self._database.dialect == "postgresql" else sqlite.insert
        await connection.execute(into(tombstones).values(**key._asdict(), at=clock()).on_conflict_do_nothing())

    async def _in_audiences(
        self, workspace: str, audiences: Collection[str] | None, condition: ColumnElement[bool]
    ) -> list[Document]:
        query = select(*_COLUMNS).where(documents.c.workspace == workspace, condition)
        groups: Iterable[Sequence[str] | None] = [None] if audiences is None else _chunks(sorted(audiences))
        found: list[Document] = []
        for group in groups:
            found += await self._select(query if group is None else query.where(documents.c.audience.in_(group)))
        return sorted(found, key=lambda document: (document.name.casefold(), document.document, document.version))

    async def _select(self, query: Any, values: Mapping[str, Any] | None = None) -> list[Document]:
        async with self._database.read() as connection:
            return [_document(row) for row in (await connection.execute(query, values)).all()]

    async def _versions(self, *conditions: ColumnElement[bool]) -> list[Version]:
        query = select(documents.c.document, documents.c.version).where(*conditions)
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(documents.c.document, documents.c.version))
            return [Version(row.document, row.version) for row in rows]


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    remaining = iter(items)
    while some := list(islice(remaining, _AT_ONCE)):
        yield some


def _of(columns: Any, version: Version) -> ColumnElement[bool]:
    return and_(columns.document == version.document, columns.version == version.version)


# Made once: making them takes longer than asking with them, and each turn asks them several times
_OF_WORKSPACE = and_(documents.c.workspace == bindparam("workspace"), documents.c.state == State.CURRENT)
_OF_THESE = documents.c.document.in_(bindparam("documents", expanding=True))
_LIVING = select(documents.c.document, documents.c.version, *(documents.c[each] for each in Living._fields)).where(
    _OF_WORKSPACE, _OF_THESE
)
_OF_AUDIENCES = and_(_OF_WORKSPACE, documents.c.audience.in_(bindparam("audiences", expanding=True)))
_ANY = select(documents.c.document).where(_OF_AUDIENCES).limit(1)
_NAMED = select(documents.c.document, documents.c.name).where(
    _OF_AUDIENCES, or_(position(bindparam("question"), documents.c.opening) > 0, _OF_THESE)
)


def _is_dead() -> ColumnElement[bool]:
    return and_(documents.c.state.in_(_DEAD), documents.c.cleaned == false())


def _is_repeat() -> ColumnElement[bool]:
    """A row that stands for a post of content that was known already: it keeps the document alive, and no more."""
    return and_(documents.c.verdict == UNCHANGED, documents.c.state == State.SUPERSEDED)


def _same_place(document: Document) -> ColumnElement[bool]:
    return and_(
        documents.c.workspace == document.workspace,
        documents.c.audience == document.audience,
        documents.c.name == document.name,
    )


def _document(row: Row[Any]) -> Document:
    values: list[Any] = [*row]
    values[_STATE] = State(values[_STATE])
    return Document(*values)


def _section(row: Row[Any]) -> Section:
    anchors = tuple(Anchor(offset, page, place) for offset, page, place in row.anchors)
    return Section(row.number, tuple(row.headings), row.text, anchors)


def _section_row(version: Version, section: Section) -> dict[str, object]:
    return {
        "document": version.document,
        "version": version.version,
        "number": section.number,
        "headings": list(section.headings),
        "anchors": [[anchor.offset, anchor.page, anchor.place] for anchor in section.anchors],
        "text": section.text,
    }


async def _one(connection: AsyncConnection, version: Version, lock: bool = False) -> Document:
    query = select(*_COLUMNS).where(_of(documents.c, version))
    return _document((await connection.execute(query.with_for_update() if lock else query)).one())


async def _set(connection: AsyncConnection, version: Version, **values: object) -> None:
    await connection.execute(update(documents).where(_of(documents.c, version)).values(**values))


async def _current(connection: AsyncConnection, document: str) -> Document | None:
    query = select(*_COLUMNS).where(documents.c.document == document, documents.c.state == State.CURRENT)
    row = (await connection.execute(query.with_for_update())).one_or_none()
    return _document(row) if row is not None else None


async def _of_post(connection: AsyncConnection, post: FilePost) -> Document | None:
    """The newest version that this file of this post became."""
    query = (
        select(*_COLUMNS)
        .where(_same_post(post), documents.c.attachment == post.attachment, documents.c.name == post.name)
        .order_by(documents.c.version.desc())
        .limit(1)
    )
    row = (await connection.execute(query)).one_or_none()
    return _document(row) if row is not None else None


def _same_post(post: FilePost) -> ColumnElement[bool]:
    return and_(
        documents.c.workspace == post.workspace,
        documents.c.channel == post.channel,
        documents.c.message == post.message,
    )


async def _is_twin(connection: AsyncConnection, post: FilePost) -> bool:
    query = select(documents.c.version).where(
        _same_post(post), documents.c.name == post.name, documents.c.attachment != post.attachment
    )
    return (await connection.execute(query.limit(1))).first() is not None


async def _post_key(connection: AsyncConnection, version: Version) -> _PostKey:
    query = select(documents.c.workspace, documents.c.channel, documents.c.message, documents.c.attachment).where(
        _of(documents.c, version)
    )
    return _PostKey(*(await connection.execute(query)).one())


async def _is_tombstoned(connection: AsyncConnection, post: FilePost | _PostKey) -> bool:
    query = select(tombstones.c.at).where(
        tombstones.c.workspace == post.workspace,
        tombstones.c.channel == post.channel,
        tombstones.c.message == post.message,
        tombstones.c.attachment.in_(("", post.attachment)),
    )
    return (await connection.execute(query.limit(1))).first() is not None


async def _bury(connection: AsyncConnection, own: Document | None) -> Document | None:
    """A version whose post turns out to be deleted is dead, and to be cleaned once more."""
    if own is None or own.state is State.SUPERSEDED:
        return None
    await _set(connection, own.key, state=State.DELETED, cleaned=False)
    return await _one(connection, own.key)


async def _take_up(connection: AsyncConnection, own: Document, content_hash: str) -> Begun | None:
    """Go on with what this file of this post became before; None where its content is another one now."""
    if own.state is State.DELETED:
        return Begun(Standing.GONE, own)
    if own.state in (State.PENDING, State.REFUSED):
        if own.content_hash != content_hash:
            await connection.execute(delete(sections).where(_of(sections.c, own.key)))
        await _set(connection, own.key, state=State.PENDING, verdict="", reason="", content_hash=content_hash)
        return Begun(Standing.PENDING, await _one(connection, own.key))
    if own.content_hash != content_hash:
        return None
    if own.verdict == UNCHANGED:
        named = document_id(own.workspace, own.audience, unicodedata.normalize("NFC", own.name))
        return Begun(Standing.UNCHANGED, await _current(connection, named) or own)
    return Begun(Standing.SETTLED, own)


async def _next_version(connection: AsyncConnection, document: str) -> int:
    """Versions count what answered: a refused one makes room for the next."""
    query = select(func.coalesce(func.max(documents.c.version), 0)).where(
        documents.c.document == document, documents.c.state != State.REFUSED
    )
    newest: int = (await connection.execute(query)).scalar_one()
    for table in (sections, documents):
        refused = and_(table.c.document == document, table.c.version > newest)
        await connection.execute(delete(table).where(refused))
    return newest + 1


async def _insert(
    connection: AsyncConnection, post: FilePost, content_hash: str, version: Version, repeat: bool = False
) -> None:
    columns = ("workspace", "channel", "audience", "name", "size", "posted_by", "posted_at", "message", "attachment")
    await connection.execute(
        insert(documents).values(
            **{column: getattr(post, column) for column in columns},
            document=version.document,
            version=version.version,
            opening=opening(post.name),
            link=post.link,
            content_hash=content_hash,
            state=State.SUPERSEDED if repeat else State.PENDING,
            verdict=UNCHANGED if repeat else "",
            cleaned=repeat,
        )
    )


async def _end(connection: AsyncConnection, current: Document) -> bool:
    """End a current version whose post was deleted; False where another post of the same content takes it over."""
    query = (
        select(documents.c.document, documents.c.version)
        .where(_same_place(current), _is_repeat(), documents.c.content_hash == current.content_hash)
        .order_by(documents.c.posted_at.desc())
        .limit(1)
    )
    heir = (await connection.execute(query)).one_or_none()
    if heir is None:
        await _set(connection, current.key, state=State.DELETED, cleaned=False)
        return True
    columns = [documents.c[name] for name in ("channel", "message", "attachment", "posted_by", "posted_at", "link")]
    inherited = await connection.execute(select(*columns).where(_of(documents.c, Version(*heir))))
    await _set(connection, current.key, **inherited.one()._mapping)
    await connection.execute(delete(documents).where(_of(documents.c, Version(*heir))))
    return False
