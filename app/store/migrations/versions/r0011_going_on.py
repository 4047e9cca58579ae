"""What can go on after a replica died, what people used up on each replica, and answers that count once for all of
them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_MOMENT: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Only adds: replicas of the version before go on beside this one."""
    op.add_column("sessions", sa.Column("unfinished", sa.Text, nullable=False, server_default=""))
    op.add_column("sessions", sa.Column("taken", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "used",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("replica", sa.Text, primary_key=True),
        sa.Column("slot", sa.Integer, primary_key=True),
        sa.Column("many", sa.Integer, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "spent",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("at", _MOMENT, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
