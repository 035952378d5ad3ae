"""a turn reads the names that its question may hold, where it read all

A row from before matches every question, as nothing tells it apart: it is read each time, as it was.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("opening", sa.Text(), server_default="", nullable=False))
