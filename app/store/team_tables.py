"""The tables of a team, beside those of everybody. A file of local mode has them too, empty."""

from __future__ import annotations

from sqlalchemy import REAL, Column, Double, Index, Integer, Table, Text

from app.store.tables import metadata

MOMENT: Double[float] = Double().with_variant(REAL(), "sqlite")
"""As in the other tables."""

people = Table(
    "people",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("door", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("made", MOMENT, nullable=False),
    Column("seen", MOMENT, nullable=False),
    Column("off", MOMENT),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

invitations = Table(
    "invitations",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("made", MOMENT, nullable=False),
    Column("expires", MOMENT, nullable=False),
    Column("by", Text, nullable=False),
    Column("used", MOMENT),
    Column("revoked", Integer, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

logins = Table(
    "logins",
    metadata,
    Column("id", Text, primary_key=True),
    Column("person", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("made", MOMENT, nullable=False),
    Column("rotated", MOMENT, nullable=False),
    Column("seen", MOMENT, nullable=False),
    Column("expires", MOMENT, nullable=False),
    Column("agent", Text, nullable=False),
    Column("before", Text, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("made", MOMENT, nullable=False),
    Column("expires", MOMENT, nullable=False),
    Column("seen", MOMENT, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

catalogue = Table(
    "catalogue",
    metadata,
    Column("id", Text, primary_key=True),
    Column("entry", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("changed", MOMENT, nullable=False),
    Column("position", Integer, nullable=False, server_default="0"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

sealed = Table(
    "sealed",
    metadata,
    Column("person", Text, primary_key=True),
    Column("entry", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("sealed", Text, nullable=False),
    Column("changed", MOMENT, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

replicas = Table(
    "replicas",
    metadata,
    Column("name", Text, primary_key=True),
    Column("run", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("began", MOMENT, nullable=False),
    Column("renewed", MOMENT, nullable=False),
    Column("sessions", Integer, nullable=False),
    Column("wanted", Text, nullable=False, server_default=""),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
"""Processes that serve this team. One that has not renewed its row for a while is dead."""

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("replica", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("missing", Text, nullable=False),
    Column("recording", Text, nullable=False),
    Column("asks", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("messages", Integer, nullable=False),
    Column("began", MOMENT, nullable=False),
    Column("changed", MOMENT, nullable=False),
    Column("lost", MOMENT),
    Column("unfinished", Text, nullable=False, server_default=""),
    Column("taken", Text, nullable=False, server_default=""),
    Index("sessions_owner", "owner"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
"""Open sessions, and those that their replica lost, until somebody closes them. Their targets have no secrets.
What was under way is sealed, and `taken` says what of it goes on elsewhere."""

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Integer, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
"""How often things of a kind were changed: a replica that finds another number reads them again."""

used = Table(
    "used",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("replica", Text, primary_key=True),
    Column("slot", Integer, primary_key=True),
    Column("many", Integer, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
"""How often somebody did something on each replica, in slots of some seconds by the clock of the store."""

spent = Table(
    "spent",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("at", MOMENT, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
"""Digests of what counts once, on whichever replica it comes first; until nobody can come with it any more."""

forms = Table(
    "forms",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("needs", Integer, nullable=False),
    sqlite_strict=True,
)
"""The oldest version that can work with these tables, where several versions may."""

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", MOMENT, nullable=False),
    Column("person", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("refused", Integer, nullable=False),
    Index("audit_at", "at"),
    sqlite_strict=True,
)

shares = Table(
    "shares",
    metadata,
    Column("id", Text, primary_key=True),
    Column("thing", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("may", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("link", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("made", MOMENT, nullable=False),
    Column("expires", MOMENT),
    Column("revoked", MOMENT),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
