"""The composer: any request or notification, written by hand, with suggestions from the specification.

Parameters are checked as JSON while they are typed. A method whose capability the server did not declare is sent all
the same, because somebody asked for it, and the call says that it was forced (R5-04).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import Invalid
from app.core.rules import stateless
from app.sessions import Workspace
from app.store import SavedRequest
from app.web.calls.again import sent
from app.web.door.denied import Denied, invalid
from app.web.kit import format, request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.lookup import call_with
from app.web.kit.responses import go, show, show_page, started, wants_json
from app.web.kit.templates import Context
from app.web.live.page import page

_CURSOR: dict[str, Any] = {}
METHODS: dict[str, dict[str, Any]] = {
    "ping": {},
    "tools/list": _CURSOR,
    "tools/call": {"name": "", "arguments": {}},
    "resources/list": _CURSOR,
    "resources/templates/list": _CURSOR,
    "resources/read": {"uri": ""},
    "resources/subscribe": {"uri": ""},
    "resources/unsubscribe": {"uri": ""},
    "prompts/list": _CURSOR,
    "prompts/get": {"name": "", "arguments": {}},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": ""},
        "argument": {"name": "", "value": ""},
        "context": {"arguments": {}},
    },
    "logging/setLevel": {"level": "info"},
    "tasks/list": _CURSOR,
    "tasks/get": {"taskId": ""},
    "tasks/result": {"taskId": ""},
    "tasks/cancel": {"taskId": ""},
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "", "version": ""}},
}
"""The requests that a client sends in the revisions up to 2025-11-25, and what their parameters look like."""
NOTIFICATIONS: dict[str, dict[str, Any]] = {
    "notifications/initialized": {},
    "notifications/cancelled": {"requestId": 0, "reason": ""},
    "notifications/progress": {"progressToken": 0, "progress": 0.5, "total": 1},
    "notifications/roots/list_changed": {},
}
MODERN: dict[str, dict[str, Any]] = {
    "server/discover": {},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
    "tasks/update": {"taskId": "", "inputResponses": {}},
}
"""What 2026-07-28 adds."""


KNOWN = METHODS | NOTIFICATIONS | MODERN


@dataclass(slots=True, frozen=True)
class Draft:
    """A request as it is written, and what is to be said about it."""

    session: Workspace
    method: str
    params: str
    notification: bool = False
    timeout: str = ""
    errors: dict[str, list[str]] = field(default_factory=dict)
    """Why it was not sent, by pointer."""
    filled_from: str = ""
    """What it repeats: `call 7`, `message 9`."""
    saved: SavedRequest | None = None
    """The saved request that it begins with."""
    said: str = ""
    """What became of saving it."""

    @property
    def methods(self) -> list[tuple[str, str]]:
        """Every method of the specification, and what speaks against it on this connection."""
        known = KNOWN if self.session.wire.listens else METHODS | NOTIFICATIONS
        return [(name, "not offered" if forced(self.session, name) else "") for name in known]

    @property
    def known(self) -> bool:
        return self.method in KNOWN

    @property
    def sample(self) -> str:
        return _sample(self.method)

    @property
    def problem(self) -> str:
        """What is wrong with the parameters."""
        try:
            value = request_bodies.strict_json(self.params) if self.params.strip() else {}
        except Denied as fault:
            return fault.message
        return "" if isinstance(value, dict) else "The parameters of a request are a JSON object, like {}."

    @property
    def forced(self) -> str:
        """What the server did not promise."""
        return forced(self.session, self.method)


def _sample(method: str) -> str:
    """What the parameters of a method look like; "" when it has none."""
    return format.pretty(KNOWN[method]) if KNOWN.get(method) else ""


def forced(session: Workspace, method: str) -> str:
    """Why a method goes beyond what the server declared; "" when it does not, or nobody can know."""
    if session.info.state != "ready":
        return ""
    if not session.wire.server_asks and method in stateless.GONE_METHODS:
        return f"{stateless.VERSION} has no such method any more."
    capability = session.info.undeclared(method)
    if capability is not None:
        return f"The server did not declare `{capability}`."
    if method in {"resources/subscribe", "resources/unsubscribe"} and not session.resources.offered:
        return "The server did not declare `resources.subscribe`."
    return ""


@dataclass(slots=True)
class Checked(Context):
    """What is to be said about a request while it is written."""

    template: ClassVar[str] = "calls/_compose_check.html"

    draft: Draft


@dataclass(slots=True)
class Composer(Context):
    """A request, written by hand."""

    template: ClassVar[str] = "calls/compose.html"
    part: ClassVar[str | None] = "calls/_compose_form.html"

    shell: Shell
    draft: Draft


def _page(draft: Draft) -> Composer:
    return Composer(shell(draft.session, "compose", "Compose a request"), draft)


@page("compose")
async def compose(request: Request) -> Response:
    """The composer: empty, with a method to start from, as an earlier call was sent (`from`), or a message (`seq`), or
    as a request was saved (`saved`)."""
    session: Workspace = request.state.session
    query = request.query_params
    if (kept := session.saved.find(query.get("saved", ""))) is not None:
        params = "" if kept.params is None else format.pretty(kept.params)
        draft = Draft(session, kept.method, params, kept.method.startswith("notifications/"), saved=kept)
    elif query.get("from"):
        call = call_with(session, query["from"])
        params = "" if call.params is None else format.pretty(call.params)
        draft = Draft(session, call.method, params, call.notification, filled_from=f"call {call.id[1:]}")
    elif query.get("seq"):
        again = sent(session, request_bodies.whole_number(request, "seq") or 0)
        params = "" if again.params is None else format.pretty(again.params)
        words = f"message {again.number}"
        draft = Draft(session, again.method, params, again.notification, filled_from=words)
    else:
        method = query.get("method", "")[:1000]
        draft = Draft(session, method, _sample(method), method.startswith("notifications/"))
    return await show(
        request,
        lambda: _page(draft),
        lambda: {"method": draft.method, "params": draft.params, "methods": [name for name, _ in draft.methods]},
    )


async def check(request: Request) -> Response:
    """What is to be said about the request as it stands now."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    draft = Draft(session, body.text("method").strip()[:1000], body.text("params"))
    return await show(
        request,
        Checked(draft),
        lambda: {"problem": draft.problem or None, "forced": draft.forced or None, "known": draft.known},
    )


async def send(request: Request) -> Response:
    """Send what was written; on to the page of the call."""
    session: Workspace = request.state.session
    if not request_bodies.is_form(request):
        raise invalid({"": ["Scripts send a request by POST /s/{sid}/calls."]})
    body = await request_bodies.read(request)
    notification = body.text("as") == "notification"
    if body.text("_save"):
        return await _save(request, session, body, notification)
    method, params, timeout = body.text("method").strip(), body.text("params"), body.text("timeout_ms")
    try:
        fields = request_bodies.Body({**body.data, "notification": "true" if notification else ""}, is_form=True)
        wanted = fields.read(request_bodies.CallBody, request_bodies.call_of_form)
    except request_bodies.FormErrors as fault:
        if wants_json(request):
            raise
        return await show_page(request, _page(Draft(session, method, params, notification, timeout, fault.fields)), 422)
    call = session.start_call(
        wanted.method,
        # An empty box means no `params` at all, which is not the same as an empty object.
        wanted.params if params.strip() else None,
        timeout_ms=wanted.timeout_ms,
        notification=wanted.notification,
        by=request.state.identity,
    )
    return await started(request, session, call, then=go)


async def _save(request: Request, session: Workspace, body: request_bodies.Body, notification: bool) -> Response:
    """Save what was written, with its server; the composer comes back with it."""
    method, params = body.text("method").strip(), body.text("params")
    draft = Draft(session, method, params, notification, body.text("timeout_ms"))
    try:
        wanted = body.read(request_bodies.CallBody, request_bodies.call_of_form)
        made = await session.saved.save(body.text("save-name"), method, wanted.params if params.strip() else None)
    except (request_bodies.FormErrors, Invalid) as fault:
        return await show_page(request, _page(replace(draft, errors=dict(fault.fields))), 422)
    without = f", without {', '.join(made.missing)}" if made.missing else ""
    said = f"Saved as {made.name}{without}."
    if session.saved.trouble:
        said = f"Saved until Parley ends, but it could not be written: {session.saved.trouble}"
    return await show_page(request, _page(replace(draft, said=said)))
