"""The application's tables: one schema for SQLite and PostgreSQL.

Times are seconds since the epoch, by the database's clock.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

RowId = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts rows by INTEGER alone


class clock(GenericFunction[float]):
    """The database's time in seconds since the epoch."""

    type = Double()
    inherit_cache = True


@compiles(clock, "sqlite")
def _clock_sqlite(element: clock, compiler: SQLCompiler, **_: object) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(clock, "postgresql")
def _clock_postgresql(element: clock, compiler: SQLCompiler, **_: object) -> str:
    return "extract(epoch from clock_timestamp())"


class position(GenericFunction[int]):
    """Where the first text holds the second, counted from 1; 0 where it doesn't."""

    type = Integer()
    inherit_cache = True


@compiles(position, "sqlite")
def _position_sqlite(element: position, compiler: SQLCompiler, **more: Any) -> str:
    return f"instr({compiler.process(element.clauses, **more)})"


@compiles(position, "postgresql")
def _position_postgresql(element: position, compiler: SQLCompiler, **more: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **more)})"


journal = Table(
    "journal",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("platform", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("revision", Text, nullable=False, server_default=""),
    Column("thread", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("parent", RowId, comment="the message that waits for this file"),
    Column("user", Text, nullable=False),
    Column("sent_at", Double, nullable=False, comment="by the platform: the order in a lane"),
    Column("claimed_at", Double, nullable=False, server_default="0"),
    Column("payload", JSON, nullable=False),
    Column("state", Text, nullable=False, server_default="open"),
    Column("lease", Integer, nullable=False, server_default="0", comment="counts up with each lease"),
    Column("leased_until", Double, nullable=False, server_default="0"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("outcome", JSON, comment="what is sent, from the step running to sending on"),
    Column("ended_at", Double),
    UniqueConstraint("platform", "workspace", "channel", "message", "kind", "revision"),
    CheckConstraint("state in ('open', 'running', 'sending', 'done', 'failed', 'withdrawn')", name="state"),
    sqlite_autoincrement=True,
)
Index(
    "one_at_a_time",
    journal.c.lane,
    unique=True,
    sqlite_where=journal.c.state.in_(("running", "sending")),
    postgresql_where=journal.c.state.in_(("running", "sending")),
)
Index(
    "waiting",
    journal.c.lane,
    journal.c.sent_at,
    journal.c.id,
    sqlite_where=journal.c.state.in_(("open", "running", "sending")),
    postgresql_where=journal.c.state.in_(("open", "running", "sending")),
)
Index("children", journal.c.parent)
Index("asked", journal.c.user, journal.c.claimed_at)

channels = Table(
    "channels",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("workspace", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("visibility", Text, nullable=False),
    Column("knowledge", Boolean, nullable=False),
    Column("quiet", Boolean, nullable=False, server_default=false()),
    Column("answer", Text, nullable=False, server_default="always"),
    Column("model", Text, nullable=False, server_default=""),
    Column("created_by", Text, nullable=False, server_default=""),
    Column("created_at", Double, nullable=False),
    CheckConstraint("visibility in ('public', 'private', 'direct', 'shared')", name="visibility"),
    CheckConstraint("answer in ('mention', 'threads', 'always')", name="answer"),
)

members = Table(
    "members",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("workspace", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("user", Text, primary_key=True),
)

documents = Table(
    "documents",
    metadata,
    Column("document", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("workspace", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("audience", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column(
        "opening",
        Text,
        nullable=False,
        server_default="",
        comment="what a question that names the document holds, case-folded; empty: unknown",
    ),
    Column("state", Text, nullable=False),
    Column("verdict", Text, nullable=False, server_default=""),
    Column("reason", Text, nullable=False, server_default=""),
    Column("content_hash", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("pages", Integer, nullable=False, server_default="0"),
    Column("sections", Integer, nullable=False, server_default="0"),
    Column("passages", Integer, nullable=False, server_default="0"),
    Column("posted_by", Text, nullable=False),
    Column("posted_at", Double, nullable=False),
    Column("message", Text, nullable=False, comment="the post"),
    Column("attachment", Text, nullable=False, comment="which file of the post"),
    Column("link", Text, nullable=False),
    Column("indexed_at", Double),
    Column(
        "embedded",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="every passage that can have a vector has it",
    ),
    Column("cleaned", Boolean, nullable=False, server_default=false(), comment="dead, and gone from the store"),
    CheckConstraint("state in ('pending', 'current', 'superseded', 'deleted', 'refused')", name="state"),
)
Index(
    "one_current_version",
    documents.c.document,
    unique=True,
    sqlite_where=documents.c.state == "current",
    postgresql_where=documents.c.state == "current",
)
Index("documents_by_audience", documents.c.workspace, documents.c.audience, documents.c.state)
Index("documents_by_post", documents.c.workspace, documents.c.channel, documents.c.message)
Index(
    "dead_versions",
    documents.c.workspace,
    sqlite_where=documents.c.state.in_(("superseded", "deleted")) & (documents.c.cleaned == false()),
    postgresql_where=documents.c.state.in_(("superseded", "deleted")) & (documents.c.cleaned == false()),
)

sections = Table(
    "sections",
    metadata,
    Column("document", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("headings", JSON, nullable=False),
    Column("anchors", JSON, nullable=False, comment="[[offset, page, place], …]"),
    Column("text", Text, nullable=False),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("message", Text, primary_key=True),
    Column("attachment", Text, primary_key=True, comment="'' for the whole post"),
    Column("at", Double, nullable=False),
    comment="posts and files that were deleted: a late ingestion meets them",
)

messages = Table(
    "messages",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("platform", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("thread", Text, nullable=False),
    Column("message", Text, comment="the platform's id; null until a reply is delivered"),
    Column("author", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("reply_to", Text, nullable=False, server_default=""),
    Column("turn", RowId, comment="the journal's row that this replies to"),
    Column("part", Integer, nullable=False, server_default="0"),
    Column("citations", JSON, nullable=False),
    Column("options", JSON, nullable=False),
    Column("clarification", Text, nullable=False, server_default=""),
    Column("files", JSON, nullable=False),
    Column("sent_at", Double, nullable=False),
    Column("edited_at", Double),
    Column("deleted", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("platform", "workspace", "channel", "message"),
    UniqueConstraint("turn", "part"),
    CheckConstraint("author in ('user', 'bot')", name="author"),
    sqlite_autoincrement=True,
)
Index(
    "messages_by_thread",
    messages.c.platform,
    messages.c.workspace,
    messages.c.channel,
    messages.c.thread,
    messages.c.id,
)

changes = Table(
    "changes",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("row", RowId, nullable=False, comment="the row of messages that is new or has changed"),
    comment="what an event reader has not seen yet",
    sqlite_autoincrement=True,
)

clarifications = Table(
    "clarifications",
    metadata,
    Column("id", Text, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("thread", Text, nullable=False),
    Column("agent_thread", Text, nullable=False, comment="the LangGraph thread that waits"),
    Column("turn", RowId, nullable=False),
    Column("asker", Text, nullable=False),
    Column("question", Text, nullable=False, comment="of the asker"),
    Column("text", Text, nullable=False, comment="of the bot"),
    Column("options", JSON, nullable=False),
    Column("state", Text, nullable=False, server_default="open"),
    Column("choice", JSON, comment="what resumed it"),
    Column("decided_by", RowId, comment="the journal's row of the click or reply"),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    UniqueConstraint("turn"),
    CheckConstraint("state in ('open', 'decided', 'expired', 'withdrawn')", name="state"),
)
Index("decisions", clarifications.c.decided_by)
Index(
    "one_open_clarification",
    clarifications.c.agent_thread,
    unique=True,
    sqlite_where=clarifications.c.state == "open",
    postgresql_where=clarifications.c.state == "open",
)

feedback = Table(
    "feedback",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("message", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("value", Integer, nullable=False),
    Column("at", Double, nullable=False),
    CheckConstraint("value in (-1, 1)", name="value"),
)

facts = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", JSON, nullable=False),
    comment="what this installation must remember of itself: the embedding model's fingerprint, …",
)
