"""on the page the bot answers always until it is told otherwise: the setting had no effect there"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE channels SET answer = 'always'")
    with op.batch_alter_table("channels") as channels:
        channels.alter_column("answer", server_default="always")
