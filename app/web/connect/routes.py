"""Sessions and their connections: open, connect, disconnect, close.

The dangerous verb is *connect*: a command that a person has not started before is shown in full and confirmed first
(R5-71), and every start is logged (R5-73). Nothing here waits for the server at the other end.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from app import bounds, secrecy
from app.core import placeholders
from app.core.errors import Conflict, Full, Gone
from app.core.options import Options
from app.core.targets import AnyTarget, DemoTarget, StdioTarget, Target, target_digest
from app.sessions import Identity, Session, SessionRegistry, Workspace
from app.sessions.identity import LOCAL
from app.store import Kept
from app.web.calls.result import values
from app.web.connect import mcp_json, targets
from app.web.connect.consent import Proposals, consent, unstartable
from app.web.connect.form import Blanks, connect_fields, connect_json, connect_page
from app.web.connect.home import form_page, full
from app.web.connect.preview import preview
from app.web.connect.remedies import remedy
from app.web.door.denied import Denied, unknown
from app.web.kit import request_bodies, typed
from app.web.kit.errors import field_errors
from app.web.kit.lookup import client
from app.web.kit.request_bodies import Body, FormErrors
from app.web.kit.responses import back, done, go, in_json, show, show_page, wants_json
from app.web.kit.starting import start
from app.web.live.page import page
from app.web.session.overview import overview_json

_target: TypeAdapter[AnyTarget] = TypeAdapter(Target)

_OLD_LIST = "That list is too old, or Parley was started anew. Paste it again."
_OLD_QUESTION = "That question is too old, or Parley was started anew. Connect again."


# --------------------------------------------------------------------------------------------------------- sessions


async def open_session(request: Request) -> Response:
    """A new session, and at once its connection when the body names a target."""
    return await open_with(request, await request_bodies.read(request))


async def open_with(request: Request, body: Body) -> Response:
    """The same with a body that somebody else has read, or made."""
    registry: SessionRegistry = request.app.state.registry
    plan = await _wanted(request, body, None) if body else None
    if isinstance(plan, Response):
        return plan
    try:
        session = registry.open(request.state.identity)
    except Full as fault:
        if wants_json(request):
            raise
        return await full(request, body, fault.message)
    if plan is not None:
        try:
            await _start(registry, session, plan, request.state.identity)
        except Exception:
            await registry.close(session)
            raise
    url = session.base
    return await go(
        request, await _seen_at(request, session), lambda: {"id": session.id, "url": url}, 201, {"location": url}
    )


async def _seen_at(request: Request, session: Workspace) -> str:
    """Where a person sees what becomes of a connection. One that fails at once, and is the first, leads back to the
    form; a slower one is watched, and the page leads back."""
    if not wants_json(request):
        await session.wait_connection(bounds.QUICK_SECONDS)
    return f"/?session={session.id}" if session.never_connected else session.base


async def close(request: Request) -> Response:
    """End the connection and forget the session. For a moment that can be taken back; whoever closed it on a page is
    offered that on the first one."""
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    await request.app.state.registry.close(session, undo=True, shown=not wants_json(request))
    values.closed(session.id)
    # The home page shows its lists anew, and nothing that is typed beside them is lost.
    then = back if request.query_params.get("to") == "lists" else go
    return await then(request, "/", lambda: {"id": session.id, "closed": True})


async def reopen(request: Request) -> Response:
    """Bring back a session that was closed a moment ago, with all that it knew and without its connection."""
    await request_bodies.nothing(request)
    sid = request.path_params["sid"]
    session = await request.app.state.registry.reopen(request.state.identity, sid)
    if session is None:
        raise unknown("This session was closed, and it is too late to bring it back.")
    url = f"/s/{sid}"
    return await go(request, url, lambda: {"id": sid, "url": url}, 200, {"location": url})


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
    kept: AnyTarget | None = None
    """What is remembered in the place of a target that has something of this session alone."""
    saved: Kept | None = None
    """The kept target that it came from."""
    as_it_stands: bool = False
    """Placeholders in it are meant."""


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
    await _start(request.app.state.registry, session, plan, request.state.identity)
    stay = body.is_form and body.text("stay")
    if stay:  # a banner reconnects on whichever page it stands
        return await done(request, session.base, lambda: overview_json(session), 202)
    return await go(request, await _seen_at(request, session), lambda: overview_json(session), 202)


async def disconnect(request: Request) -> Response:
    """Close the connection, or stop connecting; the session and its history stay."""
    session = client(request)
    await request_bodies.nothing(request)
    await session.disconnect()
    return await done(request, session.base, lambda: overview_json(session))


def begin(app: Starlette, target: AnyTarget) -> Session:
    """A session for the person at the terminal. Having typed the command is consent to start it."""
    registry: SessionRegistry = app.state.registry
    session = registry.open(LOCAL)
    # The parade of the demo is about servers that ask by requests and by tasks, which only 2025-11-25 has.
    options = Options(era="legacy") if isinstance(target, DemoTarget) else Options()
    start(registry, session, target, options, LOCAL)
    return session


async def _wanted(request: Request, body: Body, session: Workspace | None) -> _Plan | Response:
    """What a body names to connect to. Else what a person sees first: what is wrong with the form, which of several
    servers it may be, or the command in full."""
    if (gate := request.app.state.registry.gate) is not None:
        gate.typed(request.state.identity, body.data)
    if body.is_form and body.text("_preview") == "form":
        return await _checked(request, body, session)
    if (looked := preview(body)) is not None:
        return await show_page(request, looked)
    try:
        plan = _plan(request, body, session)
        if body.is_form and body.text("fill"):
            plan = await _filled(request, body, plan)
    except FormErrors as fault:
        return await targets.form_again(request, session, body, fault)
    except _Choose as choice:
        return await _choices(request, session, body, choice)
    if body.is_form and not plan.as_it_stands and (blanks := _blanks(request, plan)) is not None:
        form = connect_fields(request.app.state.registry, request.state.identity, session, body.data, blanks=blanks)
        page = form_page(request.app.state.registry, request.state.identity, form)
        return await show(request, page, lambda: connect_json(form))
    if isinstance(plan.target, StdioTarget) and _must_ask(request, plan.target, plan, body):
        if wrong := _unstartable(request, plan, body):
            return await targets.form_again(request, session, body, FormErrors(wrong))
        return await _ask(request, session, plan.target, plan)
    return plan


def _plan(request: Request, body: Body, session: Workspace | None) -> _Plan:
    """Read a connect body: a target in full, one seen before, or the yes to one that was shown."""
    if body.is_form and body.text("again"):
        if session is None or session.target is None:
            raise Conflict("There is no former connection to repeat. Choose a target.")
        return _Plan(session.target, session.options, probe=body.text("again") == "probe", as_it_stands=True)
    if session is not None and (found := remedy(session, body)) is not None:
        return _Plan(found.target, session.options, kept=found.kept, as_it_stands=True)
    if body.is_form and body.text("fill"):
        kept = request.app.state.registry.store.find(request.state.identity.id, body.text("kept"))
        return replace(_proposed(request, body.text("fill")), saved=kept, as_it_stands=True)
    if body.is_form and body.text("recent"):
        return _plan_of_kept(request.app.state.registry, request.state.identity, body)
    if body.is_form and body.text("choose"):
        return _proposed(request, body.text("choose"), _OLD_LIST)
    if body.is_form and body.text("transport") == "mcpjson":
        options = targets.options_of(body)
        entries = mcp_json.read(body.text("mcp_json"))
        if len(entries) > 1 or entries[0].target is None:
            raise _Choose(entries, options)
        return _Plan(entries[0].target, options)
    if body.is_form and body.text("reveal"):
        shown = _proposed(request, body.text("reveal"))
        if not isinstance(shown.target, StdioTarget):
            raise Gone(_OLD_QUESTION)
        return replace(shown, reveal=True, as_it_stands=True)
    if body.text("confirm") and not body.data.keys() & {"transport", "target"}:
        return replace(_proposed(request, body.text("confirm")), confirmed=True, as_it_stands=True)
    confirm = {"confirm": body.text("confirm")} if body.is_form and body.text("confirm") else {}
    wanted = body.read(request_bodies.ConnectBody, lambda form: targets.connect_of_form(request, form) | confirm)
    targets.refuse_masks(wanted.target, is_form=body.is_form)
    confirmed = wanted.confirm == target_digest(wanted.target)
    return _Plan(wanted.target, wanted.options, confirmed, wanted.probe)


def _proposed(request: Request, digest: str, words: str = _OLD_QUESTION) -> _Plan:
    """What was shown to this person and has this digest, once. Raises Gone when it is not waiting any more."""
    proposals: Proposals = request.app.state.proposals
    found = proposals.take_all(request.state.identity, digest)
    if found is None:
        raise Gone(words)
    target, options, _, lasting = found
    return _Plan(target, options, kept=lasting)


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
    # What led to a server as it stands may do so again. Where a secret belongs, it was typed, and is not kept.
    options = targets.options_of(body) if said else kept.options
    as_it_stands = kept.server is not None and not placeholders.asks_secret(kept.target)
    return _Plan(kept.target, options, saved=kept, as_it_stands=as_it_stands)


async def _choices(request: Request, session: Workspace | None, body: Body, choice: _Choose) -> Response:
    """What was pasted, as a list to choose from. The targets stay here, with their secrets."""
    state, identity = request.app.state, request.state.identity
    keep = state.proposals.keep
    lines = [
        (one, keep(identity, one.target, choice.options, one.name) if one.target else "") for one in choice.entries
    ]
    form = connect_fields(state.registry, identity, session, body.data, choices=lines)
    return await show(request, lambda: form_page(state.registry, identity, form), lambda: connect_json(form))


async def _checked(request: Request, body: Body, session: Workspace | None) -> Response:
    """What is wrong with a form, by the field at which the page says it; and what a line for a shell comes to. Nothing
    is started, and nothing that was typed stays here."""
    wrong: dict[str, str] = {}
    try:
        plan = _plan(request, body, session)
        asks = isinstance(plan.target, StdioTarget) and _must_ask(request, plan.target, plan, body)
        if asks and not body.text("_saves") and (missing := _unstartable(request, plan, body, page=True)):
            raise FormErrors(missing)
    except FormErrors as fault:
        state, identity = request.app.state, request.state.identity
        wrong = connect_fields(state.registry, identity, session, body.data, errors=fault.fields).wrong
    except _Choose:
        pass
    offer = typed.shell_offer(body.text("command_line")) if body.text("transport") == "stdio" else None
    usable = None
    if offer is not None and offer.command:
        usable = {"command_line": offer.command_line, "cwd": offer.cwd, "env": [list(one) for one in offer.env]}
    return await in_json(lambda: {"wrong": wrong, "offer": usable}, headers={"cache-control": "no-store"})


# ------------------------------------------------------------------------------------------------------ placeholders


def _blanks(request: Request, plan: _Plan) -> Blanks | None:
    """What another program would have filled in, when there is any; the target waits here for it."""
    own = request.state.identity.id == LOCAL.id  # what stands in the environment of Parley is for nobody else
    known = {name: value for name, value in os.environ.items() if own and not secrecy.is_secret_variable(name, value)}
    each = placeholders.blanks(plan.target, str(Path.cwd()), typed.home(), known)
    if not each:
        return None
    kept = plan.saved
    digest = request.app.state.proposals.keep(request.state.identity, plan.target, plan.options)
    return Blanks(each, digest, "" if kept is None else kept.id, "" if kept is None else kept.name)


async def _filled(request: Request, body: Body, plan: _Plan) -> _Plan:
    """The same target with what a person typed for its placeholders. A kept one is kept with it, but for secrets that
    stand where nothing would hide them."""
    keeps = set(body.data.get("fill_keep", ()))
    values = {name: value for name, value in body.rows("fill_name", "fill_value") if name not in keeps}
    try:
        target = _target.validate_python(placeholders.filled(plan.target, values))
        lasting = _target.validate_python(placeholders.lasting(plan.target, values))
    except ValidationError as fault:
        raise FormErrors({"": [text for texts in field_errors(fault).values() for text in texts]}) from None
    except ValueError as fault:
        raise FormErrors({"": [str(fault)]}) from None
    if plan.saved is not None:
        store = request.app.state.registry.store
        await store.change(plan.saved.owner, plan.saved.id, lasting, plan.options, plan.saved.name)
    return replace(plan, target=target, kept=None if lasting == target else lasting)


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


def _unstartable(request: Request, plan: _Plan, body: Body, *, page: bool = False) -> dict[str, list[str]]:
    """Why nobody has to be asked about a command: there is none of that name. Said at the field in which it was typed;
    a script, and whoever chose from a list, hears of it by the attempt."""
    if not isinstance(plan.target, StdioTarget) or plan.reveal or (wants_json(request) and not page):
        return {}
    if not plan.as_it_stands and placeholders.blanks(plan.target, "", "", {}):
        return {}
    pasted = body.text("transport") == "mcpjson"
    if not (pasted or body.text("command_line")) or body.text("choose") or body.text("recent") or body.text("fill"):
        return {}
    found = unstartable(plan.target)
    return {mcp_json.FIELD if pasted else f"/target/{part}": [words] for part, words in found.items()}


async def _ask(request: Request, session: Workspace | None, target: StdioTarget, plan: _Plan) -> Response:
    """The card that shows a command in full before its first start (R5-71)."""
    proposals: Proposals = request.app.state.proposals
    digest = proposals.keep(request.state.identity, target, plan.options, lasting=plan.kept)
    if wants_json(request):
        argv, env = list(target.shown_argv), sorted(target.env)
        shown = {"digest": digest, "argv": argv, "cwd": target.cwd, "env_names": env}
        message = "This command was not started before. Post its digest as `confirm` to start it."
        raise Denied(409, "consent", message, detail=shown)
    return await show_page(request, consent(session, target, reveal=plan.reveal))


async def _start(registry: SessionRegistry, session: Session, plan: _Plan, by: Identity) -> None:
    async with registry.remembered.alone():
        start(registry, session, plan.target, plan.options, by, probe=plan.probe, kept=plan.kept)
