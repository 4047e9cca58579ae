"""A server of the catalogue as one person finds it on the first page: what it needs of them, what its button says."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.catalogue import ROLES, Entry, Variable


@dataclass(slots=True)
class Offered:
    """A server of the catalogue as one person finds it."""

    entry: Entry
    whom: str
    saved: frozenset[str]
    asks: tuple[Variable, ...]
    """What they are asked for before they connect: what is not kept, and what is no secret."""
    needs: str
    act: str
    """The word on its button."""


def offered(entry: Entry, saved: frozenset[str]) -> Offered:
    asks = tuple(one for one in entry.wanted if one.name not in saved)
    missing = [one for one in asks if one.required]
    if not asks:
        needs = "ready to use" if not saved else "your values are saved" if len(saved) > 1 else "your value is saved"
        return Offered(entry, for_whom(entry), saved, asks, needs, "Connect")
    needs = f"needs {', '.join(one.name for one in missing)}" if missing else "takes " + ", ".join(o.name for o in asks)
    only_secret = len(missing) == len(asks) == 1 and missing[0].secret
    act = f"Add {'token' if entry.transport != 'stdio' else 'key'}…" if only_secret else "Connect…"
    return Offered(entry, for_whom(entry), saved, asks, needs, act)


def for_whom(entry: Entry) -> str:
    """Who may use it, in words."""
    if not entry.roles:
        return "for nobody"
    if entry.roles == ROLES:
        return "for everyone"
    return "for " + " and ".join(f"{role}s" for role in entry.roles)
