"""The phones of a room: a question in large type, its form, *Send*; then thanks, or kindly that it is too late.

A phone is known by a signed cookie of its room and by nothing else. What another phone sent is not here, but for what
the presenter shows. Every page is whole without a script, and a phone that comes back finds where it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from app.core.errors import Conflict
from app.core.forms import Entries
from app.core.room import Ballot, line, texts_of
from app.sessions.polls import Poll
from app.web.door.addresses import address_of
from app.web.guests.form import PhoneForm, blank, filled
from app.web.kit import request_bodies
from app.web.kit.html import Html, page_bytes
from app.web.kit.templates import Context, fragment

if TYPE_CHECKING:
    from app.sessions.room import Room

COOKIE = "parley_room"


@dataclass(slots=True)
class PhonePage(Context):
    """What one phone sees."""

    template: ClassVar[str] = "guests/room.html"
    now: str
    """`ask`, `vote`, `thanks`, `late`, `wait`, `gone`, or `full` and `slow` for who comes too much."""
    seen: str
    poll: Poll | None = None
    form: PhoneForm | None = None
    sent: str = ""
    """What this phone sent, or would have."""
    label: str = ""
    names: bool = False
    candidates: list[Ballot] = field(default_factory=list)
    note: str = ""


def _room(request: Request) -> Room | None:
    found: Room | None = request.app.state.registry.rooms.get(request.path_params["guest"].lower())
    return found


def _path(room: Room) -> str:
    return f"/j/{room.code}"


async def room_door(request: Request) -> Response:
    """Whoever typed no more than the address: the one room there is."""
    rooms = list(request.app.state.registry.rooms)
    return RedirectResponse(f"/j/{rooms[0]}", 303) if len(rooms) == 1 else _answer(PhonePage("gone", "gone"), 404)


def nowhere(status: int) -> Response:
    """What is said where there is nothing."""
    return _answer(PhonePage("gone", "gone"), status)


async def phone(request: Request) -> Response:
    """Where a phone is: the question that is before the room, or what became of it."""
    room = _room(request)
    if room is None:
        return _answer(PhonePage("gone", "gone"), 404)
    known, given = room.phone(request.cookies.get(COOKIE, "")), ""
    if known is None and request.method == "GET":
        try:
            given = room.cookie(address_of(request))
        except Conflict:
            return _answer(PhonePage("full", room.seen), 503, {"retry-after": "2", "refresh": "3"})
    response = _seen(room, known)
    if given:
        secure = "; Secure" if room.address.startswith("https:") else ""
        cookie = f"{COOKIE}={given}; HttpOnly; SameSite=Lax; Path={_path(room)}{secure}"
        response.headers.append("set-cookie", cookie)
    return response


async def now(request: Request) -> Response:
    """Waits until there is something else to see, and says what. No phone learns anything here but that."""
    room = _room(request)
    if room is None or room.phone(request.cookies.get(COOKIE, "")) is None:
        return JSONResponse({"seen": "gone"}, 404)
    await room.changed(request.query_params.get("seen", "")[:100])
    return JSONResponse({"seen": "gone"} if room.closed else {"seen": room.seen}, 404 if room.closed else 200)


async def send(request: Request) -> Response:
    """What a phone sends: one answer to each question."""
    room = _room(request)
    if room is None:
        return _answer(PhonePage("gone", "gone"), 404)
    who = room.phone(request.cookies.get(COOKIE, ""))
    if who is None:
        note = "Your browser sent no cookie of this room. Allow cookies for this page, and load it again."
        return _answer(PhonePage("wait", room.seen, note=note), 409)
    if not room.may_send(who):
        return _answer(PhonePage("slow", room.seen), 429, {"retry-after": "60"})
    entries = Entries(await request_bodies.pairs(request))
    key = (entries.first("seen") or "")[:100]
    poll = room.polls.get(key.partition("-")[0])
    if poll is None:
        return _seen(room, who, 409)
    if poll.voting:
        return _became(room, who, poll, room.take(who, key, {}, entries.first("vote") or ""), None, "")
    form, said, fits = filled(poll.ask, entries, "respond" if poll.ask.kind == "sampling" else "accept")
    mine = form.text or line(said.get("content") or {}, texts_of(poll.ask.schema))
    if not fits and poll.state == "collecting":
        return _answer(_asking(room, poll, form), 422)
    took = room.take(who, key, said.get("content", {}), form.text, form.name)
    return _became(room, who, poll, took, form, mine)


def _became(room: Room, who: str, poll: Poll, took: str, form: PhoneForm | None, mine: str) -> Response:
    if took == "late":
        return _answer(PhonePage("late", room.seen, poll, None, mine), 409)
    if took == "unfit" and form is not None:
        form.errors = ["That is too long to send."]
        return _answer(_asking(room, poll, form), 422)
    return _seen(room, who)


def _seen(room: Room, who: str | None, status: int = 200) -> Response:
    """The page of a phone as it stands."""
    poll = room.current or room.last
    sent = "" if poll is None or who is None else room.sent(who, poll)
    if poll is not None and poll.state == "collecting" and not sent:
        if status == 200:
            return _drawn_once(room, poll)
        return _answer(_asking(room, poll, blank(poll.ask)), status)
    if sent:
        return _answer(PhonePage("thanks", room.seen, poll, None, sent), status)
    late = poll is not None and poll.state == "stopped"
    return _answer(PhonePage("late" if late else "wait", room.seen, poll), status)


def _asking(room: Room, poll: Poll, form: PhoneForm) -> PhonePage:
    way = "vote" if poll.voting else "ask"
    candidates = poll.candidates if poll.voting else []
    label = room.session.label
    return PhonePage(way, poll.key, poll, form, label=label, names=room.settings.names, candidates=candidates)


_pages: dict[tuple[str, str, float | None, bool], bytes] = {}
"""The last questions as they look to whoever has not touched them: three hundred phones ask for the same page."""


def _drawn_once(room: Room, poll: Poll) -> Response:
    key = (room.code, poll.key, poll.until, room.settings.names)
    if key not in _pages:
        while len(_pages) >= 4:
            del _pages[next(iter(_pages))]
        _pages[key] = page_bytes(_html(_asking(room, poll, blank(poll.ask))))
    return _response(_pages[key])


def _html(page: PhonePage) -> Html:
    return fragment(page.template, **page.values())


def _answer(page: PhonePage, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return _response(page_bytes(_html(page)), status, headers)


def _response(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, "text/html; charset=utf-8")
