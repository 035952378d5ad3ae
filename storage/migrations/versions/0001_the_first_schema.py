"""the first schema"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column(
            "row",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
            comment="the row of messages that is new or has changed",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
        comment="what an event reader has not seen yet",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "channels",
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("visibility", sa.Text(), nullable=False),
        sa.Column("knowledge", sa.Boolean(), nullable=False),
        sa.Column("quiet", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("answer", sa.Text(), server_default="threads", nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("created_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.CheckConstraint("answer in ('mention', 'threads', 'always')", name=op.f("ck_channels_answer")),
        sa.CheckConstraint(
            "visibility in ('public', 'private', 'direct', 'shared')", name=op.f("ck_channels_visibility")
        ),
        sa.PrimaryKeyConstraint("platform", "workspace", "channel", name=op.f("pk_channels")),
    )
    op.create_table(
        "clarifications",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("agent_thread", sa.Text(), nullable=False, comment="the LangGraph thread that waits"),
        sa.Column("turn", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("asker", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False, comment="of the asker"),
        sa.Column("text", sa.Text(), nullable=False, comment="of the bot"),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("choice", sa.JSON(), nullable=True, comment="what resumed it"),
        sa.Column(
            "decided_by",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=True,
            comment="the journal's row of the click or reply",
        ),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "state in ('open', 'decided', 'expired', 'withdrawn')", name=op.f("ck_clarifications_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clarifications")),
        sa.UniqueConstraint("turn", name=op.f("uq_clarifications_turn")),
    )
    with op.batch_alter_table("clarifications", schema=None) as batch_op:
        batch_op.create_index(
            "one_open_clarification",
            ["agent_thread"],
            unique=True,
            sqlite_where=sa.text("state = 'open'"),
            postgresql_where=sa.text("state = 'open'"),
        )

    op.create_table(
        "documents",
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("pages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("sections", sa.Integer(), server_default="0", nullable=False),
        sa.Column("passages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("posted_by", sa.Text(), nullable=False),
        sa.Column("posted_at", sa.Double(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False, comment="the post"),
        sa.Column("attachment", sa.Text(), nullable=False, comment="which file of the post"),
        sa.Column("link", sa.Text(), nullable=False),
        sa.Column("indexed_at", sa.Double(), nullable=True),
        sa.Column(
            "embedded",
            sa.Boolean(),
            server_default=sa.text("0"),
            nullable=False,
            comment="every passage that can have a vector has it",
        ),
        sa.Column(
            "cleaned",
            sa.Boolean(),
            server_default=sa.text("0"),
            nullable=False,
            comment="dead, and gone from the store",
        ),
        sa.CheckConstraint(
            "state in ('pending', 'current', 'superseded', 'deleted', 'refused')", name=op.f("ck_documents_state")
        ),
        sa.PrimaryKeyConstraint("document", "version", name=op.f("pk_documents")),
    )
    with op.batch_alter_table("documents", schema=None) as batch_op:
        batch_op.create_index(
            "dead_versions",
            ["workspace"],
            unique=False,
            sqlite_where=sa.text("state IN ('superseded', 'deleted') AND cleaned = 0"),
            postgresql_where=sa.text("state IN ('superseded', 'deleted') AND cleaned = 0"),
        )
        batch_op.create_index("documents_by_audience", ["workspace", "audience", "state"], unique=False)
        batch_op.create_index("documents_by_post", ["workspace", "channel", "message"], unique=False)
        batch_op.create_index(
            "one_current_version",
            ["document"],
            unique=True,
            sqlite_where=sa.text("state = 'current'"),
            postgresql_where=sa.text("state = 'current'"),
        )

    op.create_table(
        "facts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_facts")),
        comment="what this installation must remember of itself: the embedding model's fingerprint, …",
    )
    op.create_table(
        "feedback",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.CheckConstraint("value in (-1, 1)", name=op.f("ck_feedback_value")),
        sa.PrimaryKeyConstraint("workspace", "channel", "message", "user", name=op.f("pk_feedback")),
    )
    op.create_table(
        "idempotency",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False, comment="of the body that came with the key"),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "channel", "user", "key", name=op.f("pk_idempotency")),
    )
    op.create_table(
        "journal",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("revision", sa.Text(), server_default="", nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column(
            "parent",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=True,
            comment="the message that waits for this file",
        ),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("sent_at", sa.Double(), nullable=False, comment="by the platform: the order in a lane"),
        sa.Column("claimed_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("lease", sa.Integer(), server_default="0", nullable=False, comment="counts up with each lease"),
        sa.Column("leased_until", sa.Double(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("outcome", sa.JSON(), nullable=True, comment="what is sent, from the step running to sending on"),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "state in ('open', 'running', 'sending', 'done', 'failed', 'withdrawn')", name=op.f("ck_journal_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_journal")),
        sa.UniqueConstraint(
            "platform",
            "workspace",
            "channel",
            "message",
            "kind",
            "revision",
            name=op.f("uq_journal_platform_workspace_channel_message_kind_revision"),
        ),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("journal", schema=None) as batch_op:
        batch_op.create_index("children", ["parent"], unique=False)
        batch_op.create_index(
            "one_at_a_time",
            ["lane"],
            unique=True,
            sqlite_where=sa.text("state IN ('running', 'sending')"),
            postgresql_where=sa.text("state IN ('running', 'sending')"),
        )
        batch_op.create_index(
            "waiting",
            ["lane", "sent_at", "id"],
            unique=False,
            sqlite_where=sa.text("state IN ('open', 'running', 'sending')"),
            postgresql_where=sa.text("state IN ('open', 'running', 'sending')"),
        )

    op.create_table(
        "members",
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("platform", "workspace", "channel", "user", name=op.f("pk_members")),
    )
    op.create_table(
        "messages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True, comment="the platform's id; null until a reply is delivered"),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("reply_to", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "turn",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=True,
            comment="the journal's row that this replies to",
        ),
        sa.Column("part", sa.Integer(), server_default="0", nullable=False),
        sa.Column("citations", sa.JSON(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("clarification", sa.Text(), server_default="", nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("sent_at", sa.Double(), nullable=False),
        sa.Column("edited_at", sa.Double(), nullable=True),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint("author in ('user', 'bot')", name=op.f("ck_messages_author")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
        sa.UniqueConstraint(
            "platform", "workspace", "channel", "message", name=op.f("uq_messages_platform_workspace_channel_message")
        ),
        sa.UniqueConstraint("turn", "part", name=op.f("uq_messages_turn_part")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("messages", schema=None) as batch_op:
        batch_op.create_index("messages_by_thread", ["platform", "workspace", "channel", "thread", "id"], unique=False)

    op.create_table(
        "sections",
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("headings", sa.JSON(), nullable=False),
        sa.Column("anchors", sa.JSON(), nullable=False, comment="[[offset, page, place], …]"),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("document", "version", "number", name=op.f("pk_sections")),
    )
    op.create_table(
        "tombstones",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attachment", sa.Text(), nullable=False, comment="'' for the whole post"),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "channel", "message", "attachment", name=op.f("pk_tombstones")),
        comment="posts and files that were deleted: a late ingestion meets them",
    )


def downgrade() -> None:
    op.drop_table("tombstones")
    op.drop_table("sections")
    with op.batch_alter_table("messages", schema=None) as batch_op:
        batch_op.drop_index("messages_by_thread")

    op.drop_table("messages")
    op.drop_table("members")
    with op.batch_alter_table("journal", schema=None) as batch_op:
        batch_op.drop_index(
            "waiting",
            sqlite_where=sa.text("state IN ('open', 'running', 'sending')"),
            postgresql_where=sa.text("state IN ('open', 'running', 'sending')"),
        )
        batch_op.drop_index(
            "one_at_a_time",
            sqlite_where=sa.text("state IN ('running', 'sending')"),
            postgresql_where=sa.text("state IN ('running', 'sending')"),
        )
        batch_op.drop_index("children")

    op.drop_table("journal")
    op.drop_table("idempotency")
    op.drop_table("feedback")
    op.drop_table("facts")
    with op.batch_alter_table("documents", schema=None) as batch_op:
        batch_op.drop_index(
            "one_current_version",
            sqlite_where=sa.text("state = 'current'"),
            postgresql_where=sa.text("state = 'current'"),
        )
        batch_op.drop_index("documents_by_post")
        batch_op.drop_index("documents_by_audience")
        batch_op.drop_index(
            "dead_versions",
            sqlite_where=sa.text("state IN ('superseded', 'deleted') AND cleaned = 0"),
            postgresql_where=sa.text("state IN ('superseded', 'deleted') AND cleaned = 0"),
        )

    op.drop_table("documents")
    with op.batch_alter_table("clarifications", schema=None) as batch_op:
        batch_op.drop_index(
            "one_open_clarification", sqlite_where=sa.text("state = 'open'"), postgresql_where=sa.text("state = 'open'")
        )

    op.drop_table("clarifications")
    op.drop_table("channels")
    op.drop_table("changes")
