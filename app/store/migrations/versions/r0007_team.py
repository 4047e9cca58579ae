"""What a team keeps: its people, how they come in, its catalogue and who did what."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_MOMENT: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "people",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("door", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("made", _MOMENT, nullable=False),
        sa.Column("seen", _MOMENT, nullable=False),
        sa.Column("off", _MOMENT),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "invitations",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("made", _MOMENT, nullable=False),
        sa.Column("expires", _MOMENT, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("used", _MOMENT),
        sa.Column("revoked", sa.Integer, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "logins",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("made", _MOMENT, nullable=False),
        sa.Column("rotated", _MOMENT, nullable=False),
        sa.Column("seen", _MOMENT, nullable=False),
        sa.Column("expires", _MOMENT, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("made", _MOMENT, nullable=False),
        sa.Column("expires", _MOMENT, nullable=False),
        sa.Column("seen", _MOMENT, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "catalogue",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("changed", _MOMENT, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", _MOMENT, nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("act", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("refused", sa.Integer, nullable=False),
        sqlite_strict=True,
    )
    op.create_index("audit_at", "audit", ["at"])
