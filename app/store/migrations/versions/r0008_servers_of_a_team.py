"""The order of the catalogue, and secrets of people for its servers, encrypted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column and make the table."""
    op.add_column("catalogue", sa.Column("position", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "sealed",
        sa.Column("person", sa.Text, primary_key=True),
        sa.Column("entry", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("changed", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
