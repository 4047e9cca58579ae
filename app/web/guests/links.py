"""Answer links, for whoever is asked: make one, look at it, take it back. Its address is shown once, when made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app import guest_bounds as bounds
from app.core.links import is_loopback
from app.core.strict import Closed
from app.core.times import wire_time
from app.sessions.answer_links import AnswerLink, AnswerLinks
from app.web.asks.routes import find
from app.web.kit import qr, request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.html import NOTHING, Html
from app.web.kit.request_bodies import Body
from app.web.kit.responses import in_json, show_page, wants_json
from app.web.kit.templates import Context


class LinkBody(Closed):
    """For how long an answer link works, and for whom it is."""

    seconds: float = Field(default=bounds.LINK_USUAL_SECONDS, ge=10, le=bounds.LINK_SECONDS)
    name: str = Field(default="", max_length=bounds.LINK_NAME)


@dataclass(slots=True)
class LinkPage(Context):
    """The answer link of one ask."""

    template: ClassVar[str] = "guests/link.html"
    part: ClassVar[str | None] = "guests/_link.html"
    shell: Shell
    here: str
    """The address of this page."""
    link: AnswerLink | None
    state: str
    url: str = ""
    """Where it leads, just after it was made."""
    code: Html = NOTHING
    only_here: bool = False
    """The address leads to this machine and to no other."""


def outside(request: Request) -> str:
    """How somebody elsewhere calls this Parley: its public address, else the one that whoever asks has used."""
    state = request.app.state
    return state.door.origin or state.settings.public_url or f"http://{request.headers['host'].lower()}"


def _links(request: Request) -> AnswerLinks:
    found: AnswerLinks = request.app.state.registry.links
    return found


def _page(request: Request, url: str = "") -> LinkPage:
    session, ask = find(request)
    link = _links(request).of(session, ask)
    state = "" if link is None else _links(request).state(link)
    host = outside(request).partition("://")[2].partition("/")[0].rpartition(":")[0] or ""
    return LinkPage(
        shell(session, "ask", "Answer link", of=ask.id),
        f"{session.base}/asks/{ask.id}/link",
        link,
        state,
        url,
        qr.drawn(url) if url else NOTHING,
        is_loopback(host),
    )


def _json(request: Request, url: str = "") -> dict[str, Any]:
    session, ask = find(request)
    link = _links(request).of(session, ask)
    told = {
        "state": None if link is None else _links(request).state(link),
        "expires_at": None if link is None else wire_time(link.expires_at),
        "name": None if link is None else link.name,
    }
    return told | ({"url": url} if url else {})


async def link(request: Request) -> Response:
    """How the answer link of an ask stands. Its address is not said again."""
    find(request)
    if wants_json(request):
        return await in_json(lambda: _json(request))
    return await show_page(request, lambda: _page(request))


async def make(request: Request) -> Response:
    """Make an answer link; one that there was works no longer. The address stands in this answer and nowhere else."""
    session, ask = find(request)
    wanted = (await request_bodies.read(request)).read(LinkBody, _of_form)
    _, code = _links(request).make(session, ask, request.state.identity, wanted.seconds, wanted.name.strip())
    url = f"{outside(request)}/answer/{code}"
    if wants_json(request):
        return await in_json(lambda: _json(request, url), 201)
    return await show_page(request, lambda: _page(request, url))


async def revoke(request: Request) -> Response:
    """Take the answer link of an ask back."""
    session, ask = find(request)
    await request_bodies.nothing(request)
    _links(request).revoke(session, ask)
    if wants_json(request):
        return await in_json(lambda: _json(request))
    return await show_page(request, lambda: _page(request))


def _of_form(form: Body) -> dict[str, Any]:
    minutes = form.text("minutes").strip()
    given: dict[str, Any] = {"name": form.text("name")}
    if minutes:
        given["seconds"] = int(minutes) * 60 if minutes.isdecimal() and len(minutes) < 6 else minutes
    return given
