"""What on the first page of a team is about time: which servers somebody used lately, and who is near them now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.core.catalogue import Entry
from app.sessions import Identity, SessionRegistry
from app.store.audit import plain
from app.web.team.house import House


def found_by(entry: Entry, query: str) -> bool:
    """Whether somebody who typed this looks for it."""
    return query.casefold() in f"{entry.name} {entry.description}".casefold()


def lately(entries: Sequence[Entry], used: Sequence[str] | None) -> list[Entry]:
    """Those of these names, in their order; all of them without."""
    if used is None:
        return list(entries)
    order = {name: at for at, name in reversed(list(enumerate(used)))}
    return sorted((one for one in entries if plain(one.name) in order), key=lambda one: order[plain(one.name)])


class Near(NamedTuple):
    """Somebody else who is in a session that one knows of."""

    name: str
    words: str
    label: str
    url: str


def near(house: House, registry: SessionRegistry, me: Identity) -> list[Near]:
    """Who is in my sessions, and in those that are shared with me: nobody learns more than the session itself says."""
    found = []
    for session in registry.everybodys():
        mine = session.owner == me.id
        if mine or house.shares.may(me.id, session.id) is not None:
            for one in house.together.here(session):
                if one.id != me.id:
                    whose = "your" if mine else "their" if one.level == "own" else f"{house.together.owner(session)}'s"
                    found.append(Near(one.name, f"in {whose}", session.label, session.base))
    return sorted(found, key=lambda one: one.name.casefold())
