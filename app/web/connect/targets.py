"""Saved targets: what a connect form or a script names becomes a target, and targets are saved, renamed, deleted.

The values of secrets stay on this side: a form that changes a target names it (`like`), and a secret that was left
blank keeps the value that the target has.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app import secrecy
from app.core.options import Options
from app.core.strict import Closed
from app.core.targets import AnyTarget, HttpTarget, StdioTarget, Target
from app.core.times import wire_time
from app.sessions import SessionRegistry
from app.store import Kept
from app.web.connect import mcp_json as mcpjson
from app.web.connect.form import connect_form, kept_json
from app.web.door.denied import Denied, unknown
from app.web.kit import request_bodies
from app.web.kit.request_bodies import Body, FormErrors
from app.web.kit.responses import in_json, show, wants_json


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
        if wants_json(request):
            raise
        identity = request.state.identity
        form = connect_form(None, registry, identity, values=body.data, errors=fault.fields)
        return await show(request, form, 422)
    kept, trouble = [], ""
    for one in wanted:
        kept.append(await registry.store.save(owner, one.target, one.options, one.name))
        trouble = registry.store.trouble or trouble
    if wants_json(request):
        _on_disk(kept[0], trouble)
        return in_json(kept_json(kept[0]), 201)
    return RedirectResponse("/", 303)


async def rename(request: Request) -> Response:
    """Give a target a name; one that was only recent is saved by it."""
    registry: SessionRegistry = request.app.state.registry
    kept = _kept(request)
    body = await request_bodies.read(request)
    wanted = body.read(RenameBody, lambda form: {"name": form.text("name")})
    kept = await registry.store.rename(kept.owner, kept.id, wanted.name)
    if wants_json(request):
        _on_disk(kept, registry.store.trouble)
        return in_json(kept_json(kept))
    return RedirectResponse("/", 303)


async def delete(request: Request) -> Response:
    """Forget a target."""
    registry: SessionRegistry = request.app.state.registry
    kept = _kept(request)
    body = await request_bodies.read(request)
    body.read(request_bodies.Nothing, lambda form: {})
    await registry.store.delete(kept.owner, kept.id)
    if wants_json(request):
        _on_disk(kept, registry.store.trouble)
        return in_json({"id": kept.id, "deleted": True, "time": wire_time(registry.wall())})
    return RedirectResponse("/", 303)


def _on_disk(kept: Kept, trouble: str) -> None:
    """A script hears of a change that ends with the process. People go back to a page that says so: Saving is off."""
    if trouble:
        words = f"This holds until Parley ends, but it could not be written: {trouble}"
        raise Denied(507, "not-saved", words, detail={"id": kept.id})


def _kept(request: Request) -> Kept:
    found: Kept | None = request.app.state.registry.store.find(request.state.identity.id, request.path_params["target"])
    if found is None:
        raise unknown("There is no such target. It may have been deleted.")
    return found


def _wanted(request: Request, body: Body) -> list[SaveBody]:
    if not body.is_form or body.text("transport") != "mcpjson":
        wanted = body.read(SaveBody, lambda form: {**connect_of_form(request, form), "name": form.text("name")})
        refuse_masks(wanted.target, is_form=body.is_form)
        return [wanted]
    options = body.read(
        request_bodies.OptionsBody, lambda form: {"options": request_bodies.options_of_form(form)}
    ).options
    entries = mcpjson.read(body.text("mcp_json"))
    usable = [SaveBody(target=one.target, options=options, name=one.name[:200]) for one in entries if one.target]
    if not usable:
        raise FormErrors({mcpjson.FIELD: [f"{one.name[:60]}: {one.problem}" for one in entries]})
    return usable


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
        hidden, base_hidden = secrecy.in_arguments(argv), secrecy.in_arguments(base.argv)
        target["command"], *target["args"] = secrecy.filled(argv, hidden, base.argv, base_hidden)
    elif isinstance(base, HttpTarget) and "url" in target:
        texts, places = [target["url"]], [secrecy.in_url(target["url"])]
        (target["url"],) = secrecy.filled(texts, places, [base.url], [secrecy.in_url(base.url)])
    return data


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
