"""What each target led to the last time: the server's name, its tools, its revision, when it was seen."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table. Nobody wrote down which of the targets once led to a server: all of them are taken for such, so
    that none is missing from the list of somebody who comes with an older file."""
    moment: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")
    op.create_table(
        "servers",
        sa.Column("target", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("tools", sa.Integer),
        sa.Column("revision", sa.Text, nullable=False),
        sa.Column("seen", moment, nullable=False),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.execute(
        "INSERT INTO servers (target, name, tools, revision, seen)"
        " SELECT id, '', NULL, '', used FROM targets WHERE id IS NOT NULL"
    )
