"""The lists of the home page: servers that are kept, and sessions that are open; each row in words, and for scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.core.targets import DemoTarget, target_digest
from app.core.times import wire_time
from app.sessions import Identity, SessionRegistry, Workspace
from app.store import Kept
from app.web.kit import format
from app.web.kit.words import STATE_WORDS, target_json


@dataclass(slots=True, frozen=True)
class ServerRow:
    """One server that once was there, or that somebody saved."""

    kept: Kept
    name: str
    label: str
    """The command or the address; "" when the name says it already."""
    facts: str
    seen: str
    session: Workspace | None = None
    """The session in which it is open now."""
    undo_ms: int = 0
    """It was forgotten; for so long it can be brought back."""


@dataclass(slots=True, frozen=True)
class SessionRow:
    """One session that is open."""

    session: Workspace
    facts: str
    seen: str
    lost: bool
    signs_in: bool
    """Its server waits until a person has signed in."""


def server_rows(registry: SessionRegistry, identity: Identity) -> list[ServerRow]:
    """My servers, the last used first; what was just forgotten stays in its place for a moment. The demo server, unless
    it was saved, has a button of its own. A target that never led anywhere is no server."""
    store, now = registry.store, registry.wall()
    live = [one for one in registry.of(identity) if one.info.state == "ready" and one.target is not None]
    open_of: dict[str, Workspace] = {}
    for one in live:
        if one.target is not None and (kept := store.same(identity.id, one.target)) is not None:
            open_of[kept.id] = one
    rows = [(kept, 0.0) for kept in store.of(identity.id)]
    rows += [(kept, left) for left, kept in store.forgotten(identity.id)]
    return [
        _server_row(kept, open_of.get(kept.id), left, now)
        for kept, left in sorted(rows, key=lambda row: -row[0].used)
        if kept.saved or (kept.server is not None and not isinstance(kept.target, DemoTarget))
    ]


def _server_row(kept: Kept, session: Workspace | None, left: float, now: float) -> ServerRow:
    server, label = kept.server, kept.target.label
    given = "" if kept.name == label else kept.name
    name = given or (server.name if server is not None else "") or label
    facts = []
    if server is not None and server.tools is not None:
        facts.append(format.plural(server.tools, "tool"))
    if server is not None and server.revision:
        facts.append(f"MCP {server.revision}")  # alone it reads like a day
    seen = "open now" if session is not None else "never connected" if server is None else format.day(server.seen, now)
    return ServerRow(
        kept=kept,
        name=name,
        label="" if name == label else label,
        facts=", ".join(facts),
        seen=seen,
        session=session,
        undo_ms=round(left * 1000),
    )


def session_rows(registry: SessionRegistry, identity: Identity) -> list[SessionRow]:
    """Open sessions, the newest first. One that never came to a connection is used again by the next attempt."""
    now = registry.wall()
    return [_session_row(one, now) for one in newest(registry, identity) if not one.never_connected]


def _session_row(session: Workspace, now: float) -> SessionRow:
    info, lost = session.info, session.info.state == "lost"
    facts = STATE_WORDS[info.state] if session.target is not None else "no server yet"
    signs_in = session.sign_in.current is not None and session.sign_in.current.open
    if lost and signs_in:
        facts = "not connected"
    elif lost and info.trouble is not None:
        facts = info.trouble.message.rstrip(".")
    elif session.messages.count:
        facts += f", {format.plural(session.messages.count, 'message')}"
    idle = session.idle_for()
    if lost and info.ended_at is not None:
        seen = format.day(info.ended_at, now)
    else:
        seen = f"{format.span(idle)} idle" if idle >= 60 else ""
    return SessionRow(session, facts, seen, lost, signs_in)


def newest(registry: SessionRegistry, identity: Identity) -> list[Workspace]:
    """Every session of an identity, the newest first."""
    return sorted(registry.of(identity), key=lambda one: one.number, reverse=True)


# ------------------------------------------------------------------------------------------------------- for scripts


def session_json(session: Workspace) -> dict[str, Any]:
    """A session in the list of open ones. One that never came to a connection is not on the page."""
    return {
        "id": session.id,
        "url": session.base,
        "label": session.label,
        "state": session.info.state,
        "target": target_json(session.target),
        "open_asks": session.open_asks,
        "seq": session.events.seq,
        "created_at": wire_time(session.created_at),
        "messages": session.messages.count,
        "listed": not session.never_connected,
        "counts": session.counts,
    }


def kept_json(kept: Kept) -> dict[str, Any]:
    """A kept target for scripts; of secrets, variables and headers only the names."""
    server = kept.server
    return {
        "id": kept.id,
        "name": kept.name or None,
        "digest": target_digest(kept.target),
        "key": kept.key,
        "label": kept.target.label,
        **(target_json(kept.target) or {}),
        "options": kept.options.model_dump(mode="json", exclude_defaults=True, exclude={"meta"}),
        "used_at": wire_time(kept.used),
        "missing": list(kept.missing),
        "server": None
        if server is None
        else {
            "name": server.name or None,
            "tools": server.tools,
            "revision": server.revision or None,
            "seen_at": wire_time(server.seen),
        },
    }
