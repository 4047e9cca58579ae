"""Requests that people saved of a server."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table."""
    moment: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")
    op.create_table(
        "requests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("missing", sa.Text, nullable=False),
        sa.Column("changed", moment, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
