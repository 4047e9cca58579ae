"""Sessions and their connections: open, connect, disconnect, close.

The dangerous verb is *connect*: a command that a person has not started before is shown in full and confirmed first
(R5-71), and every start is logged (R5-73). Nothing here waits for the server at the other end.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import Conflict, Gone
from app.core.options import Options
from app.core.targets import AnyTarget, DemoTarget, StdioTarget, target_digest
from app.sessions import Identity, Session, SessionRegistry, Workspace
from app.sessions.identity import LOCAL
from app.web.calls.result import values
from app.web.connect import mcp_json, targets
from app.web.connect.consent import consent
from app.web.connect.form import connect_fields, connect_json, connect_page
from app.web.connect.preview import preview
from app.web.door.denied import Denied
from app.web.kit import request_bodies
from app.web.kit.lookup import client
from app.web.kit.request_bodies import Body, FormErrors
from app.web.kit.responses import done, go, show, show_page, wants_json
from app.web.live.page import page
from app.web.session.overview import overview_json

spawns = logging.getLogger("parley.spawn")

_OLD_LIST = "That list is too old, or Parley was started anew. Paste it again."
_OLD_QUESTION = "That question is too old, or Parley was started anew. Connect again."


# --------------------------------------------------------------------------------------------------------- sessions


async def open_session(request: Request) -> Response:
    """A new session, and at once its connection when the body names a target."""
    registry: SessionRegistry = request.app.state.registry
    body = await request_bodies.read(request)
    plan = await _wanted(request, body, None) if body else None
    if isinstance(plan, Response):
        return plan
    session = registry.open(request.state.identity)
    if plan is not None:
        try:
            _start(registry, session, plan, request.state.identity)
        except Exception:
            await registry.close(session)
            raise
    url = f"/s/{session.id}"
    return await go(request, url, lambda: {"id": session.id, "url": url}, 201, {"location": url})


async def close(request: Request) -> Response:
    """End the connection and forget the session."""
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    await request.app.state.registry.close(session)
    values.closed(session.id)
    return await go(request, "/", lambda: {"id": session.id, "closed": True})


# ---------------------------------------------------------------------------------------------------------- connect


@dataclass(slots=True, frozen=True)
class _Plan:
    """What to connect to, how, and whether the person has just said yes to it, or wants to see all of it first."""

    target: AnyTarget
    options: Options
    confirmed: bool = False
    probe: bool = False
    """Find out anew which era it speaks."""
    reveal: bool = False


@page("connect", notice=False)
async def form(request: Request) -> Response:
    """The connect form of a session; `target` is a kept one to fill it with."""
    values = {"like": request.query_params.get("target", "")}
    fields = connect_fields(request.app.state.registry, request.state.identity, request.state.session, values)
    return await show(request, lambda: connect_page(fields), lambda: connect_json(fields))


async def connect(request: Request) -> Response:
    """Begin to connect. The page says that it closes the connection that is open; a script has to do so itself."""
    session = client(request)
    body = await request_bodies.read(request)
    plan = await _wanted(request, body, session)
    if isinstance(plan, Response):
        return plan
    if body.is_form and session.info.state in {"connecting", "ready"}:
        await session.disconnect()
    _start(request.app.state.registry, session, plan, request.state.identity)
    return await go(request, f"/s/{session.id}", lambda: overview_json(session), 202)


async def disconnect(request: Request) -> Response:
    """Close the connection, or stop connecting; the session and its history stay."""
    session = client(request)
    await request_bodies.nothing(request)
    await session.disconnect()
    return await done(request, f"/s/{session.id}", lambda: overview_json(session))


def begin(app: Starlette, target: AnyTarget) -> Session:
    """A session for the person at the terminal. Having typed the command is consent to start it."""
    registry: SessionRegistry = app.state.registry
    session = registry.open(LOCAL)
    # The parade of the demo is about servers that ask by requests and by tasks, which only 2025-11-25 has.
    options = Options(era="legacy") if isinstance(target, DemoTarget) else Options()
    _start(registry, session, _Plan(target, options), LOCAL)
    return session


async def _wanted(request: Request, body: Body, session: Workspace | None) -> _Plan | Response:
    """What a body names to connect to. Else what a person sees first: what is wrong with the form, which of several
    servers it may be, or the command in full."""
    if (looked := preview(body)) is not None:
        return await show_page(request, looked)
    try:
        plan = _plan(request, body, session)
    except FormErrors as fault:
        return await targets.form_again(request, session, body, fault)
    except _Choose as choice:
        return await _choices(request, session, body, choice)
    if isinstance(plan.target, StdioTarget) and _must_ask(request, plan.target, plan, body):
        return await _ask(request, session, plan.target, plan)
    return plan


def _plan(request: Request, body: Body, session: Workspace | None) -> _Plan:
    """Read a connect body: a target in full, one seen before, or the yes to one that was shown."""
    if body.is_form and body.text("again"):
        if session is None or session.target is None:
            raise Conflict("There is no former connection to repeat. Choose a target.")
        return _Plan(session.target, session.options, probe=body.text("again") == "probe")
    if body.is_form and body.text("recent"):
        return _plan_of_kept(request.app.state.registry, request.state.identity, body)
    if body.is_form and body.text("choose"):
        return _Plan(*_proposed(request, body.text("choose"), _OLD_LIST))
    if body.is_form and body.text("transport") == "mcpjson":
        options = targets.options_of(body)
        entries = mcp_json.read(body.text("mcp_json"))
        if len(entries) > 1 or entries[0].target is None:
            raise _Choose(entries, options)
        return _Plan(entries[0].target, options)
    if body.is_form and body.text("reveal"):
        target, options = _proposed(request, body.text("reveal"))
        if not isinstance(target, StdioTarget):
            raise Gone(_OLD_QUESTION)
        return _Plan(target, options, reveal=True)
    if body.text("confirm") and not body.data.keys() & {"transport", "target"}:
        return _Plan(*_proposed(request, body.text("confirm")), confirmed=True)
    confirm = {"confirm": body.text("confirm")} if body.is_form and body.text("confirm") else {}
    wanted = body.read(request_bodies.ConnectBody, lambda form: targets.connect_of_form(request, form) | confirm)
    targets.refuse_masks(wanted.target, is_form=body.is_form)
    confirmed = wanted.confirm == target_digest(wanted.target)
    return _Plan(wanted.target, wanted.options, confirmed, wanted.probe)


def _proposed(request: Request, digest: str, words: str = _OLD_QUESTION) -> tuple[AnyTarget, Options]:
    """What was shown to this person and has this digest, once. Raises Gone when it is not waiting any more."""
    found: tuple[AnyTarget, Options] | None = request.app.state.proposals.take(request.state.identity, digest)
    if found is None:
        raise Gone(words)
    return found


class _Choose(Exception):
    """Several servers were pasted: a person says which."""

    def __init__(self, entries: list[mcp_json.Entry], options: Options) -> None:
        super().__init__()
        self.entries, self.options = entries, options


def _plan_of_kept(registry: SessionRegistry, identity: Identity, body: Body) -> _Plan:
    """A target of the list, by its id or its digest. What was left out on disk has to be typed first."""
    wanted = body.text("recent")
    listed = registry.store.of(identity.id)
    kept = next((one for one in listed if wanted in {one.id, target_digest(one.target)}), None)
    if kept is None:
        raise Gone("That target is no longer remembered. Type it again.")
    if kept.missing:
        body.data["like"] = kept.id
        raise FormErrors({"": [f"Type again what is not kept on disk: {', '.join(kept.missing)}."]})
    said = any(name.startswith("option.") for name in body.data)
    return _Plan(kept.target, targets.options_of(body) if said else kept.options)


async def _choices(request: Request, session: Workspace | None, body: Body, choice: _Choose) -> Response:
    """What was pasted, as a list to choose from. The targets stay here, with their secrets."""
    state, identity = request.app.state, request.state.identity
    keep = state.proposals.keep
    lines = [(one, keep(identity, one.target, choice.options) if one.target else "") for one in choice.entries]
    form = connect_fields(state.registry, identity, session, body.data, choices=lines)
    return await show(request, lambda: connect_page(form), lambda: connect_json(form))


def _must_ask(request: Request, target: StdioTarget, plan: _Plan, body: Body) -> bool:
    """Whether a person has to see this command first. A script that sends JSON has said what it wants."""
    if plan.confirmed:
        return False
    if plan.reveal:
        return True
    identity: Identity = request.state.identity
    if identity.kind == "script" and not body.is_form:
        return False
    return not request.app.state.registry.consented(identity, target)


async def _ask(request: Request, session: Workspace | None, target: StdioTarget, plan: _Plan) -> Response:
    """The card that shows a command in full before its first start (R5-71)."""
    digest = request.app.state.proposals.keep(request.state.identity, target, plan.options)
    if wants_json(request):
        argv, env = list(target.shown_argv), sorted(target.env)
        shown = {"digest": digest, "argv": argv, "cwd": target.cwd, "env_names": env}
        message = "This command was not started before. Post its digest as `confirm` to start it."
        raise Denied(409, "consent", message, detail=shown)
    return await show_page(request, consent(session, target, reveal=plan.reveal))


def _start(registry: SessionRegistry, session: Session, plan: _Plan, by: Identity) -> None:
    target = plan.target
    session.connect(target, plan.options, by=by, probe=plan.probe)
    registry.consent(by, target)
    if isinstance(target, StdioTarget):
        # Arguments and values may be secrets: how many, and the names, are enough to know what ran.
        spawns.info(
            "session %d starts %r with %d arguments, environment %s, in %r, asked by a %s",
            session.number,
            target.command,
            len(target.args),
            sorted(target.env),
            target.cwd or "the directory of Parley",
            by.kind,
        )
    elif isinstance(target, DemoTarget):
        spawns.info("session %d starts the demo server, asked by a %s", session.number, by.kind)
