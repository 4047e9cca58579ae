"""The tables, as a new file gets them. What changes here needs a migration beside it; a test compares the two."""

from __future__ import annotations

from sqlalchemy import REAL, Column, Double, MetaData, PrimaryKeyConstraint, String, Table, Text

metadata = MetaData()

_MOMENT: Double[float] = Double().with_variant(REAL(), "sqlite")
"""Seconds since 1970. SQLite's REAL has eight bytes; elsewhere that name means four, which is no moment any more."""

targets = Table(
    "targets",
    metadata,
    Column("id", Text, primary_key=True, nullable=True),  # as the first version made it, without NOT NULL
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("missing", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("used", _MOMENT, nullable=False),
    sqlite_strict=True,
)

eras = Table(
    "eras",
    metadata,
    Column("command", Text, primary_key=True),
    Column("era", Text, nullable=False),
    Column("at", _MOMENT, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

revisions = Table(
    "alembic_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table, as Alembic would make it: a new file needs no Alembic to be up to date."""
