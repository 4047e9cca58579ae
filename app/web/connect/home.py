"""The first page: open sessions, a way to a new one, targets that were saved or used before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.targets import DemoTarget
from app.core.times import wire_time
from app.sessions import Identity, SessionRegistry, Workspace
from app.store import Kept
from app.web.connect.form import ConnectFields, connect_fields
from app.web.connect.targets import kept_json
from app.web.kit.responses import show
from app.web.kit.templates import Context
from app.web.kit.words import target_json


@dataclass(slots=True)
class Home(Context):
    """Open sessions, a way to a new one, and how to read Parley."""

    template: ClassVar[str] = "connect/home.html"

    sessions: list[Workspace]
    saved: list[Kept]
    recent: list[Kept]
    """The last used first. The demo server, unless it was saved, has a button of its own."""
    now: float
    form: ConnectFields


def home_page(registry: SessionRegistry, identity: Identity, *, target: str = "") -> Home:
    """The first page; `target` is a kept one to begin the form with."""
    kept = registry.store.of(identity.id)
    return Home(
        sessions=_newest(registry, identity),
        saved=[one for one in kept if one.saved],
        recent=[one for one in kept if not one.saved and not isinstance(one.target, DemoTarget)],
        now=registry.wall(),
        form=connect_fields(registry, identity, None, {"like": target}),
    )


def _newest(registry: SessionRegistry, identity: Identity) -> list[Workspace]:
    return sorted(registry.of(identity), key=lambda one: one.number, reverse=True)


def home_json(registry: SessionRegistry, identity: Identity) -> dict[str, Any]:
    """Open sessions and kept targets, for scripts."""
    return {
        "sessions": [
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
            for session in _newest(registry, identity)
        ],
        "targets": [kept_json(one) for one in registry.store.of(identity.id)],
    }


async def home(request: Request) -> Response:
    registry: SessionRegistry = request.app.state.registry
    identity: Identity = request.state.identity
    await registry.store.loaded()
    target = request.query_params.get("target", "")
    return await show(
        request, lambda: home_page(registry, identity, target=target), lambda: home_json(registry, identity)
    )
