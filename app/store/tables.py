"""The tables, as a new file gets them. What changes here needs a migration beside it; a test compares the two."""

from __future__ import annotations

from sqlalchemy import (
    REAL,
    BigInteger,
    Column,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

metadata = MetaData()

_MOMENT: Double[float] = Double().with_variant(REAL(), "sqlite")
"""Seconds since 1970. SQLite's REAL has eight bytes; elsewhere that name means four, which is no moment any more."""

_SIZE: BigInteger = BigInteger().with_variant(Integer(), "sqlite")
"""Bytes. SQLite's integers have eight bytes anyway."""

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

requests = Table(
    "requests",
    metadata,
    Column("id", Text, primary_key=True),
    Column("target", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("params", Text, nullable=False),
    Column("missing", Text, nullable=False),
    Column("changed", _MOMENT, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

rules = Table(
    "rules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("target", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("rule", Text, nullable=False),
    Column("missing", Text, nullable=False),
    Column("changed", _MOMENT, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

servers = Table(
    "servers",
    metadata,
    Column("target", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("tools", Integer),
    Column("revision", Text, nullable=False),
    Column("seen", _MOMENT, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

recordings = Table(
    "recordings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("began", _MOMENT, nullable=False),
    Column("ended", _MOMENT),
    Column("size", _SIZE, nullable=False),
    Column("facts", Text, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
"""Recordings; `facts` is JSON: the target, counts, notes, tags, what was masked."""

recording_chunks = Table(
    "recording_chunks",
    metadata,
    Column("recording", Text, nullable=False),
    Column("start", _SIZE, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("recording", "start"),
    sqlite_strict=True,
)
"""The bytes of recordings that are kept in the database, each chunk with its place."""

revisions = Table(
    "alembic_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table, as Alembic would make it: a new file needs no Alembic to be up to date."""
