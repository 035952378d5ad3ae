"""what every turn looks up is found without reading whole tables"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("asked", "journal", ["user", "claimed_at"], unique=False)
    op.create_index("decisions", "clarifications", ["decided_by"], unique=False)
