"""The page behind an answer link: one ask, its form, and what became of it. No account, no script that is needed, and
no way to anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.errors import Conflict, Invalid
from app.core.forms import Entries
from app.sessions.answer_links import AnswerLink
from app.web.asks import words
from app.web.guests.form import PhoneForm, blank, filled
from app.web.kit import request_bodies
from app.web.kit.responses import show_page
from app.web.kit.templates import Context

COOKIE = "parley_answer"
"""The mark of the phone that has answered: it sees what it sent, and others do not."""


@dataclass(slots=True)
class GuestPage(Context):
    """What a guest sees: the form, or why there is none any more."""

    template: ClassVar[str] = "guests/answer.html"
    link: AnswerLink | None
    state: str
    """As `LinkState`; empty for a link that nobody knows."""
    form: PhoneForm | None = None
    mine: bool = False
    """Whether this phone has answered by it."""
    sent: str = ""


def _page(request: Request, link: AnswerLink | None, form: PhoneForm | None = None) -> GuestPage:
    links = request.app.state.registry.links
    if link is None:
        return GuestPage(None, "")
    mine = link.is_marked(request.cookies.get(COOKIE, ""))
    state = links.state(link)
    sent = (words.answer(link.ask) or words.did(link.ask)) if mine else ""
    return GuestPage(link, state, form or blank(link.ask), mine, sent)


async def answer_page(request: Request) -> Response:
    """The form; or, kindly, why it is too late. Looking uses nothing up."""
    link = request.app.state.registry.links.find(request.path_params["guest"])
    page = _page(request, link)
    return await show_page(request, page, 404 if link is None else 200 if page.mine or page.state == "open" else 410)


async def answer_by_link(request: Request) -> Response:
    """What a guest sends. It is checked and sent as what a person of the house says, once."""
    links = request.app.state.registry.links
    link = links.find(request.path_params["guest"])
    if link is None or links.state(link) != "open":
        return await show_page(request, _page(request, link), 404 if link is None else 409)
    shown, said, fits = filled(link.ask, Entries(await request_bodies.pairs(request)))
    if not fits:
        return await show_page(request, _page(request, link, shown), 422)
    try:
        mark = await links.answer(link, said)
    except Invalid as refused:
        shown.errors = [sentence for texts in refused.fields.values() for sentence in texts] or [refused.message]
        return await show_page(request, _page(request, link, shown), 422)
    except Conflict:
        return await show_page(request, _page(request, link, shown), 409)
    here = f"/answer/{request.path_params['guest']}"
    response = RedirectResponse(here, 303)
    secure = "; Secure" if request.app.state.door.origin.startswith("https:") else ""
    response.headers.append("set-cookie", f"{COOKIE}={mark}; HttpOnly; SameSite=Strict; Path={here}{secure}")
    return response
