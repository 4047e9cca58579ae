"""Recordings, and the bytes of those that are kept in the database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make both tables."""
    moment: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")
    size: sa.BigInteger = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "recordings",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("began", moment, nullable=False),
        sa.Column("ended", moment),
        sa.Column("size", size, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "recording_chunks",
        sa.Column("recording", sa.Text, nullable=False),
        sa.Column("start", size, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("recording", "start"),
        sqlite_strict=True,
    )
