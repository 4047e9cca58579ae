"""The composer: any request or notification, written by hand, with suggestions from the specification.

Parameters are checked as JSON while they are typed. A method whose capability the server did not declare is sent all
the same, because somebody asked for it, and the call says that it was forced (R5-04).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.rules import stateless
from app.sessions import Workspace
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


@dataclass(slots=True)
class Checked(Context):
    """What is to be said about a request while it is written."""

    template: ClassVar[str] = "calls/_compose_check.html"
    part: ClassVar[str | None] = "calls/_compose_check.html"

    base: str
    method: str
    problem: str
    forced: str
    sample: str
    known: bool
    notification: bool

    def values(self) -> dict[str, Any]:
        return {"check": self}


@dataclass(slots=True)
class Composer(Context):
    """A request, written by hand."""

    template: ClassVar[str] = "calls/compose.html"
    part: ClassVar[str | None] = "calls/_compose_form.html"

    shell: Shell
    method: str
    params: str
    as_notification: bool
    timeout: str
    default_timeout: int
    check: Checked
    errors: dict[str, str]
    filled_from: str
    methods: list[tuple[str, str]]
    connected: bool


def _methods(session: Workspace) -> list[tuple[str, str]]:
    """Every method of the specification, and what speaks against it on this connection."""
    known = METHODS | NOTIFICATIONS | (MODERN if session.wire.listens else {})
    return [(name, "not offered" if forced(session, name) else "") for name in known]


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


def check_of(session: Workspace, method: str, params: str, notification: bool) -> Checked:
    """What is wrong with the parameters, and what the server did not promise."""
    problem = ""
    if params.strip():
        try:
            value = request_bodies.strict_json(params)
            problem = "" if isinstance(value, dict) else "The parameters of a request are a JSON object, like {}."
        except Denied as fault:
            problem = fault.message
    known = METHODS | NOTIFICATIONS | MODERN
    sample = known.get(method)
    return Checked(
        base=f"/s/{session.id}",
        method=method,
        problem=problem,
        forced=forced(session, method),
        sample=format.pretty(sample) if sample else "",
        known=method in known,
        notification=notification or method.startswith("notifications/"),
    )


def _page(
    session: Workspace,
    *,
    method: str,
    params: str,
    notification: bool = False,
    timeout: str = "",
    errors: dict[str, list[str]] | None = None,
    filled_from: str = "",
) -> Composer:
    return Composer(
        shell=shell(session, "compose", "Compose a request"),
        method=method,
        params=params,
        as_notification=notification,
        timeout=timeout,
        default_timeout=session.options.request_timeout_ms,
        check=check_of(session, method, params, notification),
        errors={pointer: " ".join(texts) for pointer, texts in (errors or {}).items()},
        filled_from=filled_from,
        methods=_methods(session),
        connected=session.info.state == "ready",
    )


@page("compose")
async def compose(request: Request) -> Response:
    """The composer: empty, with a method to start from, or as an earlier call was sent (`from`)."""
    session: Workspace = request.state.session
    query = request.query_params
    if query.get("from"):
        call = call_with(session, query["from"])
        params = format.pretty(call.params) if call.params is not None else ""
        page = _page(
            session,
            method=call.method,
            params=params,
            notification=call.notification,
            filled_from=call.id.lstrip("c"),
        )
        return await _shown(request, page)
    method = query.get("method", "")[:1000]
    sample = (METHODS | NOTIFICATIONS | MODERN).get(method)
    page = _page(
        session,
        method=method,
        params=format.pretty(sample) if sample else "",
        notification=method.startswith("notifications/"),
    )
    return await _shown(request, page)


async def _shown(request: Request, page: Composer) -> Response:
    methods = [name for name, _ in page.methods]
    return await show(request, page, lambda: {"method": page.method, "params": page.params, "methods": methods})


async def check(request: Request) -> Response:
    """What is to be said about the request as it stands now."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    method, notification = body.text("method").strip()[:1000], body.text("as") == "notification"
    said = check_of(session, method, body.text("params"), notification)
    return await show(
        request, said, lambda: {"problem": said.problem or None, "forced": said.forced or None, "known": said.known}
    )


async def send(request: Request) -> Response:
    """Send what was written; on to the page of the call."""
    session: Workspace = request.state.session
    if not request_bodies.is_form(request):
        raise invalid({"": ["Scripts send a request by POST /s/{sid}/calls."]})
    body = await request_bodies.read(request)
    notification = body.text("as") == "notification"
    try:
        fields = request_bodies.Body({**body.data, "notification": "true" if notification else ""}, is_form=True)
        wanted = fields.read(request_bodies.CallBody, request_bodies.call_of_form)
    except request_bodies.FormErrors as fault:
        if wants_json(request):
            raise
        page = _page(
            session,
            method=body.text("method").strip(),
            params=body.text("params"),
            notification=notification,
            timeout=body.text("timeout_ms"),
            errors=fault.fields,
        )
        return await show_page(request, page, 422)
    # An empty box means no `params` at all, which is not the same as an empty object.
    params = wanted.params if body.text("params").strip() else None
    call = session.start_call(
        wanted.method,
        params,
        timeout_ms=wanted.timeout_ms,
        notification=wanted.notification,
        by=request.state.identity,
    )
    return await started(request, session, call, then=go)
