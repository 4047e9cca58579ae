"""What people of a team share with each other."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_MOMENT: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "shares",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("thing", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("may", sa.Text, nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("link", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("made", _MOMENT, nullable=False),
        sa.Column("expires", _MOMENT),
        sa.Column("revoked", _MOMENT),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
