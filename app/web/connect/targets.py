"""Saved targets: what a connect form or a script names becomes a target, and targets are saved, renamed, deleted.

The values of secrets stay on this side: a form that changes a target names it (`like`), and a secret that was left
blank keeps the value that the target has.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app import secrecy
from app.core.auth import AnyAuth
from app.core.errors import Gone
from app.core.options import Options
from app.core.strict import Closed
from app.core.targets import AnyTarget, HttpTarget, StdioTarget, Target
from app.core.times import wire_time
from app.sessions import SessionRegistry, Workspace
from app.store import Kept
from app.web.connect import mcp_json
from app.web.connect.form import connect_fields
from app.web.connect.home import form_page
from app.web.connect.servers import kept_json
from app.web.door.denied import Denied, unknown
from app.web.kit import request_bodies
from app.web.kit.request_bodies import Body, FormErrors
from app.web.kit.responses import back, show_page, wants_json


class SaveBody(Closed):
    target: Target
    options: Options = Options()
    name: str = Field(default="", max_length=200)


class RenameBody(Closed):
    name: str = Field(max_length=200)


async def save(request: Request) -> Response:
    """Keep a target; of a pasted file, each of its servers."""
    registry: SessionRegistry = request.app.state.registry
    owner = request.state.identity.id
    body = await request_bodies.read(request)
    try:
        wanted = _wanted(request, body)
    except FormErrors as fault:
        return await form_again(request, None, body, fault)
    kept, trouble = [], ""
    changed = registry.store.find(owner, body.text("edit")) if body.is_form else None
    for one in wanted:
        if changed is not None:
            kept.append(await registry.store.change(owner, changed.id, one.target, one.options, one.name))
        else:
            kept.append(await registry.store.save(owner, one.target, one.options, one.name))
        trouble = registry.store.trouble or trouble
    return await back(request, "/", lambda: on_disk(kept[0].id, trouble, kept_json(kept[0])), 201)


async def rename(request: Request) -> Response:
    """Give a target a name; one that was only recent is saved by it."""
    registry: SessionRegistry = request.app.state.registry
    kept = kept_of(request)
    body = await request_bodies.read(request)
    wanted = body.read(RenameBody, lambda form: {"name": form.text("name")})
    kept = await registry.store.rename(kept.owner, kept.id, wanted.name)
    return await back(request, "/", lambda: on_disk(kept.id, registry.store.trouble, kept_json(kept)))


async def delete(request: Request) -> Response:
    """Forget a target. Whoever does so on a page is offered to take it back."""
    registry: SessionRegistry = request.app.state.registry
    kept = kept_of(request)
    await request_bodies.nothing(request)
    await registry.store.delete(kept.owner, kept.id, undo=not wants_json(request))
    async with registry.remembered.alone():
        registry.forget_consent(request.state.identity, kept.target)
    said = {"id": kept.id, "deleted": True, "time": wire_time(registry.wall())}
    return await back(request, "/", lambda: on_disk(kept.id, registry.store.trouble, said))


async def restore(request: Request) -> Response:
    """Bring back a target that was forgotten a moment ago."""
    registry: SessionRegistry = request.app.state.registry
    await request_bodies.nothing(request)
    owner, key = request.state.identity.id, request.path_params["target"]
    if not registry.store.knew(owner, key):
        raise unknown("There is no such target. It may have been deleted.")
    kept = await registry.store.restore(owner, key)
    return await back(request, "/", lambda: on_disk(kept.id, registry.store.trouble, kept_json(kept)))


async def form_again(request: Request, session: Workspace | None, body: Body, fault: FormErrors) -> Response:
    """The connect form with what was typed and what is wrong with it. Raises what is wrong for a script."""
    if wants_json(request):
        raise fault
    state, identity = request.app.state, request.state.identity
    form = connect_fields(state.registry, identity, session, body.data, errors=fault.fields)
    return await show_page(request, form_page(state.registry, identity, form), 422)


def on_disk(key: str, trouble: str, said: dict[str, Any]) -> dict[str, Any]:
    """What is said to a script. Raises Denied when the change ends with the process; people go back to a page that says
    so: Saving is off."""
    if trouble:
        words = f"This holds until Parley ends, but it could not be written: {trouble}"
        raise Denied(507, "not-saved", words, detail={"id": key})
    return said


def kept_of(request: Request) -> Kept:
    """The kept target that an address names; somebody else's does not exist."""
    found: Kept | None = request.app.state.registry.store.find(request.state.identity.id, request.path_params["target"])
    if found is None:
        raise unknown("There is no such target. It may have been deleted.")
    return found


def _wanted(request: Request, body: Body) -> list[SaveBody]:
    if body.is_form and (digests := body.data.get("save")):
        return _chosen(request, digests)
    if not body.is_form or body.text("transport") != "mcpjson":
        wanted = body.read(SaveBody, lambda form: {**connect_of_form(request, form), "name": form.text("name")})
        refuse_masks(wanted.target, is_form=body.is_form)
        return [wanted]
    options = options_of(body)
    entries = mcp_json.read(body.text("mcp_json"))
    usable = [SaveBody(target=one.target, options=options, name=one.name[:200]) for one in entries if one.target]
    if not usable:
        raise FormErrors({mcp_json.FIELD: [f"{one.name[:60]}: {one.problem}" for one in entries]})
    return usable


def _chosen(request: Request, digests: list[str]) -> list[SaveBody]:
    """Every server of a paste that was shown to choose from."""
    proposals, identity = request.app.state.proposals, request.state.identity
    found = [proposals.take_all(identity, digest) for digest in digests]
    named = [SaveBody(target=one[0], options=one[1], name=one[2][:200]) for one in found if one is not None]
    if not named:
        raise Gone("That list is too old, or Parley was started anew. Paste it again.")
    return named


def options_of(body: Body) -> Options:
    """The connection options in a form that names no target."""
    wanted = body.read(request_bodies.OptionsBody, lambda form: {"options": request_bodies.options_of_form(form)})
    return wanted.options


# --------------------------------------------------------------------------------------------- what a form leaves out


def connect_of_form(request: Request, form: Body) -> dict[str, Any]:
    """The connect form in the shape of the JSON body, with the secrets that it left as they are."""
    data = request_bodies.connect_of_form(form)
    data.pop("confirm", None)
    return _with_secrets(data, *like(request, form.text("like")))


def like(request: Request, name: str) -> tuple[AnyTarget | None, tuple[str, ...]]:
    """The target that a form began with, of a session or a kept one, and what is missing in it."""
    registry: SessionRegistry = request.app.state.registry
    identity = request.state.identity
    if name and (session := registry.find(identity, name)) is not None:
        return session.target, ()
    kept = registry.store.find(identity.id, name) if name else None
    return (None, ()) if kept is None else (kept.target, kept.missing)


def _with_secrets(data: dict[str, Any], base: AnyTarget | None, missing: tuple[str, ...]) -> dict[str, Any]:
    """What was left as it is gets its value: a variable or header that is blank, and `•••` in a line or an address."""
    target = data["target"]
    known: dict[str, str] = {}
    if isinstance(base, StdioTarget | HttpTarget):
        values = base.env if isinstance(base, StdioTarget) else base.headers
        known = {name: values[name] for name in base.secret_names}
    key = "env" if target["transport"] == "stdio" else "headers"
    rows = target.get(key, {})
    for name, value in rows.items():
        if not value and name in known:
            rows[name] = known[name]
        elif not value and name in missing:
            raise FormErrors({f"/target/{key}": [f"Type {name} again: secrets are not kept on disk."]})
    if isinstance(base, StdioTarget) and target["transport"] == "stdio":
        argv = (target["command"], *target["args"])
        made, marks = secrecy.filled(argv, secrecy.in_arguments(argv), base.argv, base.places)
        target["command"], *target["args"] = made
        target["secret_args"] = [(at - 1, start, end) for at, start, end in marks if at]
    elif isinstance(base, HttpTarget) and "url" in target:
        _with_proof(target.get("auth", {}), base.auth)
        texts, places = [target["url"]], [secrecy.in_url(target["url"])]
        (target["url"],), marks = secrecy.filled(texts, places, [base.url], base.places)
        target["secret_url"] = [mark[1:] for mark in marks]
    return data


def _with_proof(auth: dict[str, Any], base: AnyAuth | None) -> None:
    """What proves who one is and was left blank stays, for the same kind and the same client."""
    if base is None or auth.get("kind") != base.kind or auth.get("client_id", "") != getattr(base, "client_id", ""):
        return
    if auth.get("client_secret") or auth.get("private_key"):
        return
    for name in ("token", "client_secret", "private_key"):
        if value := getattr(base, name, ""):
            auth.setdefault(name, value)


def refuse_masks(target: AnyTarget, *, is_form: bool) -> None:
    """A target that says `•••` where a secret should stand was read from Parley, which never tells a secret."""
    words = f"Type what {secrecy.MASK} stands for: a secret is neither shown again nor kept on disk."
    fields: dict[str, list[str]] = {}
    if isinstance(target, StdioTarget) and secrecy.has_mask(target.argv, secrecy.in_arguments(target.argv)):
        fields = {"/target/command_line" if is_form else "/target/args": [words]}
    elif isinstance(target, HttpTarget) and secrecy.has_mask([target.url], [secrecy.in_url(target.url)]):
        fields = {"/target/url": [words]}
    if fields:
        raise FormErrors(fields)
