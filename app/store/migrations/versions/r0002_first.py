"""What the first version had: targets, and since some later release eras.

It is 0002 because the number of a migration is also the `user_version` of the file, and the first version wrote 1.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = None


def upgrade() -> None:
    """Make what is missing, and leave what is there as it is."""
    moment: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")
    known = sa.inspect(op.get_bind()).get_table_names()
    if "targets" not in known:
        op.create_table(
            "targets",
            sa.Column("id", sa.Text, primary_key=True, nullable=True),
            sa.Column("owner", sa.Text, nullable=False),
            sa.Column("name", sa.Text, nullable=False),
            sa.Column("target", sa.Text, nullable=False),
            sa.Column("missing", sa.Text, nullable=False),
            sa.Column("options", sa.Text, nullable=False),
            sa.Column("used", moment, nullable=False),
            sqlite_strict=True,
        )
    if "eras" not in known:
        op.create_table(
            "eras",
            sa.Column("command", sa.Text, primary_key=True),
            sa.Column("era", sa.Text, nullable=False),
            sa.Column("at", moment, nullable=False),
            sqlite_strict=True,
            sqlite_with_rowid=False,
        )
