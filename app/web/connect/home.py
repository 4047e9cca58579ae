"""The first page: my servers, open sessions, a way to a new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from app.sessions import Identity, SessionRegistry, Workspace
from app.web.connect.form import ConnectFields, ConnectForm, connect_fields, connect_page
from app.web.connect.servers import (
    ServerRow,
    SessionRow,
    kept_json,
    newest,
    server_rows,
    session_json,
    session_rows,
)
from app.web.door.denied import Denied
from app.web.kit import request_bodies
from app.web.kit.request_bodies import Body
from app.web.kit.responses import back, show, show_page, wants_json
from app.web.kit.templates import Context
from app.web.recordings.rows import Row as RecordingRow
from app.web.recordings.rows import earlier


@dataclass(slots=True)
class Home(Context):
    """My servers, open sessions, the form for a new one, and how to read Parley."""

    template: ClassVar[str] = "connect/home.html"
    part: ClassVar[str | None] = "connect/_lists.html"

    servers: list[ServerRow]
    sessions: list[SessionRow]
    counted: int
    """How many of the sessions count."""
    limit: int
    form: ConnectFields
    closed: list[Closed]
    """What was closed on a page a moment ago, and may come back."""
    login_trouble: str
    """Why logins end with Parley; "" while they do not."""

    earlier: list[RecordingRow]
    """The newest recordings."""
    recordings: int
    """How many there are."""

    fault: str
    """Why nothing could be begun, apart from the form."""

    @property
    def is_new(self) -> bool:
        """Whether there is nothing to list yet."""
        return not self.servers and not self.sessions and not self.recordings

    def values(self) -> dict[str, Any]:
        return {
            "servers": self.servers,
            "sessions": self.sessions,
            "counted": self.counted,
            "limit": self.limit,
            "form": self.form,
            "fault": self.fault,
            "is_new": self.is_new,
            "failed": self.form.failed,
            "lost": sum(one.lost for one in self.sessions),
            "closed": self.closed,
            "earlier": self.earlier,
            "recordings": self.recordings,
            "login_trouble": self.login_trouble,
        }


class Closed(NamedTuple):
    """A closed session that may come back, and for how long."""

    id: str
    label: str
    left: float


def closed_sessions(registry: SessionRegistry, identity: Identity, *, shown: bool = False) -> list[Closed]:
    """The closed sessions of somebody, the last one first; with `shown` those that the first page offers."""
    shelf = registry.closed
    kept = [one for one in shelf.of(identity.id) if one.shown or not shown]
    return [Closed(one.session.id, one.session.label, round(shelf.left(one), 1)) for one in kept]


def home_page(registry: SessionRegistry, identity: Identity, form: ConnectFields, fault: str = "") -> Home:
    """The first page with a form."""
    recorded, many = earlier(registry, identity)
    return Home(
        earlier=recorded,
        recordings=many,
        servers=server_rows(registry, identity),
        sessions=session_rows(registry, identity),
        counted=sum(one.counts for one in registry.of(identity)),
        limit=registry.settings.limits.sessions_per_identity,
        form=form,
        fault=fault,
        closed=closed_sessions(registry, identity, shown=True),
        login_trouble=registry.remembered.trouble,
    )


def form_page(registry: SessionRegistry, identity: Identity, form: ConnectFields) -> Home | ConnectForm:
    """The form where it belongs: on the first page, or in the session that it changes."""
    session = form.session
    if session is None or session.never_connected:
        return home_page(registry, identity, form)
    return connect_page(form)


async def full(request: Request, body: Body, why: str) -> Response:
    """There is no room for another session: the first page, where one can be closed, with what was typed."""
    state, identity = request.app.state, request.state.identity
    form = connect_fields(state.registry, identity, None, body.data)
    return await show_page(request, home_page(state.registry, identity, form, why), 403)


def home_json(registry: SessionRegistry, identity: Identity) -> dict[str, Any]:
    """Open sessions and kept targets, for scripts."""
    return {
        "run": registry.run,
        "sessions": [session_json(one) for one in newest(registry, identity)],
        "targets": [kept_json(one) for one in registry.store.of(identity.id)],
        "closed": [
            {"id": one.id, "label": one.label, "reopen": f"/s/{one.id}/reopen", "reopen_seconds": one.left}
            for one in closed_sessions(registry, identity)
        ],
    }


async def home(request: Request) -> Response:
    """The first page; `target` is a kept one to begin the form with, `session` one whose first connection failed."""
    registry: SessionRegistry = request.app.state.registry
    identity: Identity = request.state.identity
    await registry.store.loaded()
    failed = registry.find(identity, request.query_params.get("session", ""))
    session = failed if failed is not None and failed.never_connected else None

    def page() -> Home:
        values = {"like": request.query_params.get("target", "")}
        return home_page(registry, identity, connect_fields(registry, identity, session, values, edit=True))

    return await show(request, page, lambda: home_json(registry, identity))


async def close_lost(request: Request) -> Response:
    """End every session whose connection was lost."""
    registry: SessionRegistry = request.app.state.registry
    await request_bodies.nothing(request)
    lost: list[Workspace] = [one for one in registry.of(request.state.identity) if one.info.state == "lost"]
    for one in lost:
        await registry.close(one)
    return await back(request, "/", lambda: {"closed": [one.id for one in lost]})


async def start_again(request: Request) -> Response:
    """Somebody reloads the address that a form went to: there is nothing to see, so they begin anew."""
    if wants_json(request):
        raise Denied(405, "method", "This address does not take that method.", headers={"allow": "POST"})
    return await back(request, "/", dict)
