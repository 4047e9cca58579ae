"""Routes of signing in to a server: how far it is, and what a person or a script can do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import anyio
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app import bounds
from app.core.errors import Invalid
from app.core.sign_in import ORDER, SETTLED, StepId
from app.core.strict import Closed
from app.core.targets import HttpTarget
from app.sessions import Workspace
from app.web.door.denied import unknown
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.request_bodies import Body, waiting_seconds
from app.web.kit.responses import by_htmx, done, in_html, show
from app.web.kit.templates import Context, fragment
from app.web.live.page import page
from app.web.live.parts import Part
from app.web.sign_in.card import SignInCard, card_of
from app.web.sign_in.live import ON
from app.web.sign_in.shown import sign_in_json


class SignInBody(Closed):
    """Where the person's browser was sent in the end, in full; without it, the sign-in begins, or begins anew: as the
    client, and for the scopes, that are named."""

    callback_url: str | None = Field(default=None, max_length=bounds.CALLBACK_URL)
    client_id: str = Field(default="", max_length=bounds.OAUTH_NAME)
    client_secret: str = Field(default="", max_length=bounds.OAUTH_NAME, repr=False)
    scopes: tuple[str, ...] = Field(default=(), max_length=bounds.OAUTH_SCOPES)


class StepBody(Closed):
    go_on: bool = False
    """Take the steps after it too."""


@dataclass(slots=True)
class SignInPage(Context):
    """Every step of signing in."""

    template: ClassVar[str] = "sign_in/page.html"
    part: ClassVar[str | None] = "sign_in/_view.html"

    shell: Shell
    card: SignInCard | None
    base: str
    http: bool
    """Whether the server is one that can be signed in to at all."""


def _page(session: Workspace, card: SignInCard | None) -> SignInPage:
    http = session.target is None or isinstance(session.target, HttpTarget)
    return SignInPage(shell(session, "sign-in", "Sign-in"), card, f"/s/{session.id}", http)


_HEAD = Part("#sign-in-head", ON, lambda view: fragment("sign_in/_head.html", card=card_of(view.session)))
_VIEW = Part(
    "#signing-in",
    ON,
    lambda view: fragment(
        "sign_in/_view.html",
        card=card_of(view.session),
        base=view.base,
        http=view.session.target is None or isinstance(view.session.target, HttpTarget),
    ),
)


@page("sign-in", _HEAD, _VIEW, notice=False)
async def sign_in(request: Request) -> Response:
    """How far it is; with `wait` not before it has come to rest."""
    session: Workspace = request.state.session
    with anyio.move_on_after(waiting_seconds(request)):
        while (found := session.sign_in.current) is not None and found.state not in SETTLED and not session.closed:
            await session.events.next_of("sign-in")
    return await show(request, lambda: _page(session, card_of(session)), lambda: sign_in_json(session))


async def act(request: Request) -> Response:
    """Begin, or hand in the address that the authorization server sent the person's browser to."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    wanted = body.read(SignInBody, _of_form)
    if wanted.callback_url is None:
        session.sign_in.begin(wanted.client_id.strip(), wanted.client_secret.strip(), wanted.scopes)
        return await _done(request, session, 202)
    try:
        session.sign_in.callback(wanted.callback_url.strip())
    except Invalid as refused:
        if not body.is_form:
            raise
        card = card_of(session, [refused.message])
        if not by_htmx(request):
            return await show(request, lambda: _page(session, card), dict, 422)
        return in_html(fragment("sign_in/_paste.html", card=card, at="card"), 422)
    return await _done(request, session, 202)


def _of_form(form: Body) -> dict[str, Any]:
    """The fields of the card: scopes are typed in one line."""
    said = {"callback_url": form.text("callback_url") or None, "scopes": tuple(form.text("scopes").split())}
    return said | {"client_id": form.text("client_id"), "client_secret": form.text("client_secret")}


async def step(request: Request) -> Response:
    """Run one step, alone or with those after it."""
    session: Workspace = request.state.session
    which = request.path_params["step"]
    if which not in ORDER:
        raise unknown("There is no such step.")
    body = await request_bodies.read(request)
    wanted = body.read(StepBody, lambda form: {"go_on": bool(form.text("go_on"))})
    session.sign_in.run(cast(StepId, which), go_on=wanted.go_on)
    return await _done(request, session, 202)


async def refresh(request: Request) -> Response:
    """Get a new token by the refresh token, now."""
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    session.sign_in.refresh()
    return await _done(request, session, 202)


async def revoke(request: Request) -> Response:
    """Tell the authorization server that the token is to be worth nothing, and forget it."""
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    session.sign_in.revoke()
    return await _done(request, session, 202)


async def forget(request: Request) -> Response:
    """Let go of the token here; the authorization server hears nothing of it."""
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    session.sign_in.forget()
    return await _done(request, session)


async def _done(request: Request, session: Workspace, status: int = 200) -> Response:
    return await done(request, f"/s/{session.id}/sign-in", lambda: sign_in_json(session), status)
