"""The first page: open sessions, a way to a new one, targets that were saved or used before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.times import wire_time
from app.sessions import Identity, SessionRegistry, Workspace
from app.settings import Settings
from app.web.connect.form import (
    ConnectFields,
    TargetLine,
    connect_fields,
    kept_json,
    target_lines,
)
from app.web.kit import format
from app.web.kit.responses import show
from app.web.kit.templates import Context
from app.web.kit.words import STATE_WORDS, target_json

# -------------------------------------------------------------------------------------------------------------- home


@dataclass(slots=True, frozen=True)
class SessionLine:
    """One open session on the home page."""

    id: str
    href: str
    label: str
    state: str
    target: str
    detail: str
    open_asks: int


@dataclass(slots=True)
class Home(Context):
    """Open sessions, a way to a new one, and how to read Parley."""

    template: ClassVar[str] = "connect/home.html"

    sessions: list[SessionLine]
    saved: list[TargetLine]
    recent: list[TargetLine]
    form: ConnectFields
    sessions_json: list[dict[str, Any]]
    targets_json: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {"sessions": self.sessions_json, "targets": self.targets_json}


def _session_line(session: Workspace) -> SessionLine:
    log = session.messages
    detail = STATE_WORDS[session.info.state]
    if session.open_asks:
        detail += f", {session.open_asks} waiting"
    if log.count:
        detail += f", {format.plural(log.count, 'message')}"
    target = session.target.label if session.target is not None else "no server yet"
    return SessionLine(
        session.id, f"/s/{session.id}", session.label, session.info.state, target, detail, session.open_asks
    )


def home_page(registry: SessionRegistry, identity: Identity, settings: Settings, *, target: str = "") -> Home:
    """The first page; `target` is a kept one to begin the form with."""
    sessions = sorted(registry.of(identity), key=lambda one: one.number, reverse=True)
    lines = target_lines(registry, identity)
    return Home(
        sessions=[_session_line(session) for session in sessions],
        saved=[one for one in lines if one.name],
        recent=[one for one in lines if not one.name],
        form=connect_fields(None, {"like": target} if target else None, None, registry=registry, identity=identity),
        sessions_json=[
            {
                "id": session.id,
                "url": f"/s/{session.id}",
                "label": session.label,
                "state": session.info.state,
                "target": target_json(session.target),
                "open_asks": session.open_asks,
                "seq": session.events.seq,
                "created_at": wire_time(session.created_at),
            }
            for session in sessions
        ],
        targets_json=[kept_json(one) for one in registry.store.of(identity.id)],
    )


async def home(request: Request) -> Response:
    state = request.app.state
    await state.registry.store.loaded()
    target = request.query_params.get("target", "")
    return await show(request, home_page(state.registry, request.state.identity, state.settings, target=target))
