"""Opening a session in a team: with a server of the catalogue, or by its address."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from app import team_bounds as bounds
from app.core.catalogue import Entry
from app.core.errors import NotAllowed
from app.core.options import Options
from app.core.strict import Closed
from app.core.targets import AnyTarget, HttpTarget
from app.web.door.denied import Denied, unknown
from app.web.kit import request_bodies
from app.web.kit.errors import field_errors
from app.web.kit.responses import back, show_page, wants_json
from app.web.kit.starting import start
from app.web.team.house import role_of
from app.web.team.pages import home_of, house_of
from app.web.team.resuming import in_place_of, owned


class PickBody(Closed):
    variables: dict[str, str] = Field(default_factory=dict, max_length=bounds.ENTRY_VARIABLES)
    options: Options = Options()
    keep: bool = False
    """Keep the secret ones, encrypted, for the next time."""
    lost: str = ""
    """A session that was lost and is reconnected by this one."""


async def pick(request: Request) -> Response:
    """Open a session with a server of the catalogue. What is kept of one's secrets need not be given again."""
    house, identity = house_of(request), request.state.identity
    entry = house.catalogue().find(role_of(identity), request.path_params["entry"])
    if entry is None:
        raise unknown("There is no such server in the catalogue.")
    body = await request_bodies.read(request)
    wanted = body.read(
        PickBody,
        lambda form: {
            "variables": _filled(entry, form.data),
            "keep": bool(form.text("keep")),
            "lost": form.text("lost"),
        },
    )
    kept = house.sealed.values(identity.id, entry.id, entry.leads_to)
    kept = {name: value for name, value in kept.items() if _is_secret(entry, name)}
    values = {**kept, **{name: value for name, value in wanted.variables.items() if value or name not in kept}}
    wrong = entry.misfits(values)
    if wrong and body.is_form:
        given = {key: value for key, value in wanted.variables.items() if not _is_secret(entry, key)}
        return await show_page(request, home_of(request, entry.id, wrong, {**given, "/lost": wanted.lost}), 422)
    target = entry.target(values)
    if wanted.keep:
        new = {name: value for name, value in values.items() if _is_secret(entry, name) and value != kept.get(name)}
        await house.sealed.put(identity.id, entry.id, new, entry.leads_to)
    return await begin(request, target, wanted.options, wanted.lost)


class DialBody(Closed):
    url: str = ""
    options: Options = Options()
    lost: str = ""
    """As when a server is picked."""


async def dial(request: Request) -> Response:
    """Open a session with a server by its address. Where that leads is decided when it is dialled."""
    body = await request_bodies.read(request)
    wanted = body.read(DialBody, lambda form: {"url": form.text("url").strip(), "lost": form.text("lost")})
    try:
        target = HttpTarget(transport="http", url=wanted.url)
    except ValidationError as fault:
        wrong = field_errors(fault)
        if not body.is_form:
            raise Denied(422, "invalid", "Some values cannot be used.", fields=wrong) from None
        words = [words for found in wrong.values() for words in found]
        return await show_page(
            request, home_of(request, wrong={"/url": words}, given={"url": wanted.url, "/lost": wanted.lost}), 422
        )
    return await begin(request, target, wanted.options, wanted.lost)


async def begin(request: Request, target: AnyTarget, options: Options, lost: str = "") -> Response:
    """Open a session; `lost` is one of the same server in whose place it is."""
    registry, identity = request.app.state.registry, request.state.identity
    replicas = request.app.state.keeper.replicas
    held = await owned(replicas, identity.id, lost)
    try:
        session = registry.open(identity)
        async with registry.remembered.alone():
            try:
                start(registry, session, target, options, identity)
            except NotAllowed:
                await registry.close(session)
                raise
    except NotAllowed as fault:
        if wants_json(request):
            raise
        return await show_page(request, home_of(request, fault=fault.message), 403)
    await in_place_of(house_of(request), replicas, held, session)
    url = f"/s/{session.id}"
    return await back(request, url, lambda: {"id": session.id, "url": url}, 201)


def _filled(entry: Entry, data: dict[str, Any]) -> dict[str, str]:
    """What of a form belongs to the entry."""
    return {one.name: str(data[f"var.{one.name}"]) for one in entry.wanted if data.get(f"var.{one.name}")}


def _is_secret(entry: Entry, name: str) -> bool:
    return any(one.secret for one in entry.wanted if one.name == name)
