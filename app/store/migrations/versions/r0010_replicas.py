"""A team on several machines: its replicas, the sessions that each holds, and what tells the others of a change."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_MOMENT: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "replicas",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("began", _MOMENT, nullable=False),
        sa.Column("renewed", _MOMENT, nullable=False),
        sa.Column("sessions", sa.Integer, nullable=False),
        sa.Column("wanted", sa.Text, nullable=False, server_default=""),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("replica", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("missing", sa.Text, nullable=False),
        sa.Column("recording", sa.Text, nullable=False),
        sa.Column("asks", sa.Integer, nullable=False),
        sa.Column("calls", sa.Integer, nullable=False),
        sa.Column("messages", sa.Integer, nullable=False),
        sa.Column("began", _MOMENT, nullable=False),
        sa.Column("changed", _MOMENT, nullable=False),
        sa.Column("lost", _MOMENT),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_index("sessions_owner", "sessions", ["owner"])
    op.create_table(
        "counters",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Integer, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "forms",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("needs", sa.Integer, nullable=False),
        sqlite_strict=True,
    )
