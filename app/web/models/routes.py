"""Routes of models: the list, one more for this session, and the draft that one writes for an ask.

A key goes in and never out: no answer of these has one, nor a part of one.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app import bounds
from app.core.asks import Ask
from app.core.errors import Conflict, Invalid, NotAllowed
from app.core.forms import Entries
from app.core.strict import Closed
from app.models.base import Model
from app.sessions import Workspace
from app.sessions.identity import LOCAL
from app.web.asks.card import ask_json
from app.web.asks.routes import ask_page, find, flat, typed_of
from app.web.asks.sampling import edited, typed_edits
from app.web.door.denied import Fields, unknown
from app.web.kit import request_bodies
from app.web.kit.html import Html
from app.web.kit.request_bodies import Body, FormErrors
from app.web.kit.responses import back, done, in_json, show
from app.web.kit.templates import fragment
from app.web.live.page import page
from app.web.live.parts import Part, View
from app.web.models.page import FIELDS, listed, models_json, models_page, of_form, typed_of_model


class AddBody(Model):
    """A model of this session, with its key, which stays in memory."""

    name: str = Field(min_length=1, max_length=bounds.MODEL_NAME, pattern=r"^[^/]+$")
    key: str = Field(default="", max_length=bounds.MODEL_URL, repr=False)


class DraftBody(Closed):
    """Which model is to write; the one that fits best when none is named. `request` is what it works from, when that
    was edited; null is the one that came."""

    model: str | None = None
    request: dict[str, Any] | None = None


def _list(view: View) -> Html:
    return fragment("models/_list.html", models=listed(view.session), base=view.base)


@page("models", Part("#models", ["models.changed"], _list), notice=False)
async def models(request: Request) -> Response:
    """The models of this session; with `name` the form has what one of them is, but for its key."""
    session: Workspace = request.state.session
    typed, local = typed_of_model(session, request.query_params.get("name", "")), _is_local(request)
    return await show(request, lambda: models_page(session, typed, local=local), lambda: models_json(session))


def _is_local(request: Request) -> bool:
    return bool(request.state.identity.id == LOCAL.id)


async def add(request: Request) -> Response:
    """One more model for this session; the same name again changes it, and an empty key keeps the one that is known, as
    long as it goes to the same address."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    try:
        wanted = body.read(AddBody, of_form)
        if wanted.key_env and not _is_local(request):
            raise NotAllowed("Variables of the machine that Parley runs on are for its owner. Type the key.")
        gate = request.app.state.registry.gate
        if wanted.base_url is not None and gate is not None:
            gate.dials(request.state.identity, wanted.base_url)
        model = Model.model_validate(wanted.model_dump(exclude={"name", "key"}))
        session.models.add(wanted.name, model, wanted.key)
    except FormErrors as fault:
        return await _shown_again(request, session, body, fault.fields, 422)
    except Conflict as fault:
        if not body.is_form:
            raise
        return await _shown_again(request, session, body, {"/name": [str(fault)]}, 409)
    return await back(request, f"/s/{session.id}/models", lambda: models_json(session), 201)


async def _shown_again(request: Request, session: Workspace, body: Body, errors: Fields, status: int) -> Response:
    """The form with what was typed, but for the key: that is never shown again."""
    typed = {name: text for name in FIELDS if (text := body.text(name))}
    again = models_page(session, typed, errors, local=_is_local(request))
    return await show(request, again, lambda: models_json(session), status)


async def delete(request: Request) -> Response:
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    session.models.remove(request.path_params["name"])
    return await back(request, f"/s/{session.id}/models", lambda: models_json(session))


async def draft(request: Request) -> Response:
    """Let a model write; the draft grows with the ask, and nothing leaves."""
    session, found = find(request)
    if request_bodies.is_form(request):
        return await _draft_of_form(request, session, found)
    wanted = (await request_bodies.read(request)).read(DraftBody, _as_it_is)
    if "request" in wanted.model_fields_set:
        session.asks.edit(found, wanted.request)
    session.models.begin(found, wanted.model)
    return await in_json(lambda: ask_json(found), 202)


async def _draft_of_form(request: Request, session: Workspace, found: Ask) -> Response:
    """The same by the card: the request with what was typed into it, to the model that was chosen or asked before."""
    form = Entries(await request_bodies.pairs(request))
    try:
        changed, wrong = edited(found.request, typed_edits(form), found.params)
        if wrong:
            raise Invalid("Please fix the marked fields.", wrong)
        if changed != found.request:
            session.asks.edit(found, changed)
        session.models.begin(found, form.first("again") or form.first("by") or None)
    except Invalid as refused:
        again = {"errors": flat(refused), "typed": typed_of(form) | {"as": "model"}}
        return await show(request, lambda: ask_page(request, session, found, **again), dict, 422)
    return await done(request, f"/s/{session.id}/asks/{found.id}", lambda: ask_json(found), 202)


async def stop(request: Request) -> Response:
    """Let it write no further; what is written stays."""
    session, found = find(request)
    if not request_bodies.is_form(request):
        await request_bodies.nothing(request)
    session.models.stop(found)
    return await done(request, f"/s/{session.id}/asks/{found.id}", lambda: ask_json(found))


async def choices(request: Request) -> Response:
    """The models for an ask, the best first, each with the reason, and the hints that none answers to (R3-10)."""
    session, found = find(request)
    if found.kind != "sampling":
        raise unknown(f"A model does not answer a {found.kind}.")
    return await in_json(lambda: choices_json(session, found))


def _as_it_is(body: Body) -> dict[str, Any]:
    return body.data


def choices_json(session: Workspace, ask: Ask) -> dict[str, Any]:
    """What fits an ask, for scripts."""
    fitting, unmatched = session.models.fitting(ask)
    named = [{"name": one.name, "model": one.model.label, "reason": one.reason} for one in fitting]
    return {"models": named, "hints_without_model": unmatched}
