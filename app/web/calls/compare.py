"""Two calls side by side: of one session or of two, or one that is run in the other era; both again; same answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from app import bounds
from app.core.calls import Call
from app.core.errors import Invalid
from app.core.events import Event
from app.core.json.lines import IGNORED
from app.core.revisions import HANDSHAKE
from app.core.strict import Closed
from app.sessions import SessionRegistry, Workspace
from app.sessions.compare import Comparison
from app.web.calls.given import differs
from app.web.calls.pair import Pair, View, answered_as, pair_json, pair_of
from app.web.door.denied import unknown
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.lookup import call_of, call_with
from app.web.kit.responses import back, done, go, in_json, show
from app.web.kit.templates import Context
from app.web.live import parts
from app.web.live.page import page
from app.web.live.parts import Each, refetch

ERAS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
ASKS = ("ask.added", "ask.changed", "ask.reopened", "ask.settled", "ask.withdrawn")


# ------------------------------------------------------------------------------------------------- run in another era


def compare_json(session: Workspace, call: Call) -> dict[str, Any]:
    """A comparison of eras, as scripts read it."""
    found = session.comparisons.by_call[call.id]
    return {
        "call": call.id,
        "other_session": found.other_id,
        "other_call": found.other_call,
        "other_era": found.era,
        "failed": found.failed,
        "words": found.words,
        "differences": found.differences,
    }


def can_compare(session: Workspace, call: Call) -> str:
    """The revision that a call could be run in too; "" when it cannot."""
    info = session.info
    possible = info.state == "ready" and info.transport != "sse" and info.era is not None
    if not possible or not call.settled or call.notification or call.quiet:
        return ""
    return ERAS["modern" if session.wire is HANDSHAKE else "legacy"]


async def begin(request: Request) -> Response:
    """Open the other session, and run the call there."""
    session, call = call_of(request)
    await request_bodies.nothing(request)
    session.comparisons.begin(call, request.state.identity)
    url = f"{session.base}/calls/{call.id}/compare"
    return await back(request, url, lambda: compare_json(session, call), 202, {"location": url})


async def end(request: Request) -> Response:
    """Close the session that was opened to compare this call."""
    session, call = call_of(request)
    await request_bodies.nothing(request)
    if call.id not in session.comparisons.by_call:
        raise unknown("This call was not compared yet. Its page has a button for that.")
    await session.comparisons.end(call)
    return await go(request, f"{session.base}/calls/{call.id}", lambda: compare_json(session, call))


# ---------------------------------------------------------------------------------------------------------- addresses


def ref_of(here: Workspace, session: Workspace, call: Call) -> str:
    """What stands for a call in an address: its id, after that of its session when it is another one."""
    return call.id if session is here else f"{session.id}:{call.id}"


def compare_url(here: Workspace, left: str, right: str, **more: str) -> str:
    return f"{here.base}/compare?{urlencode({'left': left, 'right': right, **more})}"


def _named(request: Request, ref: str) -> tuple[Workspace, Call, bool]:
    """The call that an address names, and whether it is still to come: `c12~c13` is call 12 once more, which is sent
    when call 13 is settled, and until then call 12 as it was."""
    here: Workspace = request.state.session
    sid, colon, cid = ref.rpartition(":")
    session = _registry(request).find(request.state.identity, sid) if colon else here
    if session is None:
        raise unknown("The session of this call is closed, and its calls with it.")
    before, tilde, after = cid.partition("~")
    if not tilde:
        return session, call_with(session, cid), False
    late = [one for one in session.calls.newest if one.retry_of == before and _number(one.id) > _number(after)]
    return session, late[-1] if late else call_with(session, before), not late


def _number(cid: str) -> int:
    return int(cid[1:]) if cid[1:].isdecimal() and len(cid) < 12 else 0


def _registry(request: Request) -> SessionRegistry:
    registry: SessionRegistry = request.app.state.registry
    return registry


def _view(here: Workspace, session: Workspace, call: Call) -> View:
    here.comparisons.watch(session, call)
    return View(session, call, own=session is here, ref=ref_of(here, session, call))


def _alike(one: Call, other: Call) -> bool:
    return other.method == one.method and not other.quiet and not other.notification


def before(session: Workspace, call: Call) -> Call | None:
    """What a call is compared with when nobody says: the newest other call of the same tool."""
    same = [
        one for one in session.calls.newest if one is not call and _alike(call, one) and one.subject == call.subject
    ]
    older = [one for one in same if _number(one.id) < _number(call.id)]
    return next(iter(older or same), None)


def others(session: Workspace, call: Call, most: int) -> list[Call]:
    """Other calls of the same tool, prompt or resource, the newest first."""
    alike = (one for one in session.calls.newest if one is not call and _alike(call, one))
    return list(islice((one for one in alike if one.subject == call.subject), most))


class Beside(NamedTuple):
    """Another call that a call can be compared with."""

    call: Call
    href: str
    differs: str
    """How its arguments differ, in words."""


def beside(session: Workspace, call: Call, other: Call) -> Beside:
    """The comparison of two calls of a session: the older one left, as one reads."""
    left, right = sorted((call, other), key=lambda one: _number(one.id))
    return Beside(other, compare_url(session, left.id, right.id), differs(call, other))


# --------------------------------------------------------------------------------------------------------------- page


@dataclass(slots=True)
class Choice:
    """One line of a picker."""

    call: Call
    href: str
    session: str
    """The name of its session, where it is another one."""
    current: bool
    differs: str
    """How its arguments differ from those of the other side, in words."""


@dataclass(slots=True)
class ComparePage(Context):
    """Two calls side by side, and what differs."""

    template: ClassVar[str] = "calls/compare.html"
    part: ClassVar[str | None] = "calls/_compare.html"

    shell: Shell
    left: View
    pair: Pair | None
    """None while there is only one."""
    waits: str
    """Why the other one is not there yet, or will not be."""
    comparison: Comparison | None
    version: str
    """The revision of the other session, when a call was run in the other era."""
    url: str
    """Where this page is, without how it is looked at."""
    choices: list[list[Choice]]
    ignored: str = IGNORED
    other_era: str = ""
    """The revision in which the left one could be run too."""
    answered_as: Any = field(default=answered_as)

    def values(self) -> dict[str, Any]:
        refs = ("", "") if self.pair is None else (self.pair.left.ref, self.pair.right.ref)
        swapped, export = refs[::-1], {"export": "1"}
        more = {
            "swapped": compare_url(self.shell.session, *swapped),
            "export": compare_url(self.shell.session, *refs, **export),
        }
        return {**Context.values(self), **more}


def _choices(request: Request, pair: Pair) -> list[list[Choice]]:
    """For each side what else could stand there: calls of this session, then of others with the same subject."""
    here: Workspace = request.state.session
    offered: list[tuple[Workspace, Call]] = []
    for session in [here, *(one for one in _registry(request).of(request.state.identity) if one is not here)]:
        alike = [one for one in session.calls.newest if _alike(pair.left.call, one)]
        alike.sort(key=lambda one: one.subject != pair.left.call.subject)
        offered += [(session, one) for one in alike if session is here or one.subject == pair.left.call.subject][
            : bounds.COMPARED_CALLS
        ]
    made: list[list[Choice]] = []
    for side, other in ((pair.left, pair.right), (pair.right, pair.left)):
        line: list[Choice] = []
        for session, call in offered[: 3 * bounds.COMPARED_CALLS]:
            ref = ref_of(here, session, call)
            if ref == other.ref:
                continue
            refs = (ref, other.ref) if side is pair.left else (other.ref, ref)
            name = "" if session is here else session.label
            differing = differs(other.call, call)
            line.append(Choice(call, compare_url(here, *refs), name, ref == side.ref, differing))
        made.append(line)
    return made


def _ignores(request: Request) -> bool:
    return request.query_params.get("ids") != "1"


async def _page(
    request: Request,
    frame: Shell,
    url: str,
    left: View,
    right: View | None,
    *,
    waits: str = "",
    found: Comparison | None = None,
) -> ComparePage:
    pair = None if right is None else await pair_of(left, right, ignore=_ignores(request))
    return ComparePage(
        frame,
        left,
        pair,
        waits,
        found,
        "" if found is None else ERAS[found.era],
        url,
        [] if pair is None else _choices(request, pair),
        other_era=can_compare(left.session, left.call),
    )


def _one(request: Request, session: Workspace, call: Call, found: Comparison) -> tuple[View, View | None]:
    other = found.open
    twin = other.calls.get(found.other_call or "") if other is not None else None
    here: Workspace = request.state.session
    right = None if other is None or twin is None else _view(here, other, twin)
    return _view(here, session, call), right


def _compared(view: parts.View) -> Html:
    url = f"{view.base}/calls/{quote(view.of, safe='')}/compare"
    return refetch(url, "#compare", "#compare-view")


COMPARED = Each(
    ("comparison.changed", "call.changed", "call.settled", *ASKS),
    lambda *_: "",
    lambda view, *_: _compared(view),
    _compared,
)
"""Two conversations, one of them of another session: the tab fetches both."""


@page("compare", COMPARED)
async def comparison(request: Request) -> Response:
    """A call, and the same call in the other era."""
    session, call = call_of(request)
    found = session.comparisons.by_call.get(call.id)
    if found is None:
        raise unknown("This call was not compared yet. Its page has a button for that.")
    closed = "" if found.open else "The other session was closed. Compare again to see both calls."

    async def make() -> ComparePage:
        left, right = _one(request, session, call, found)
        waits = closed or ("" if right is not None else found.words)
        url = f"{session.base}/calls/{call.id}/compare"
        frame = shell(session, "compare", f"Compare {call.subject}", of=call.id)
        return await _page(request, frame, url, left, right, waits=waits, found=found)

    return await show(request, make, lambda: compare_json(session, call))


# ---- any two


def _split(of: str) -> tuple[str, str]:
    left, _, right = of.partition(" ")
    return left, right


def _fetched(view: parts.View) -> Html:
    left, right = _split(view.of)
    return refetch(f"{view.base}/compare?{urlencode({'left': left, 'right': right})}", "#compare", "#compare-view")


def _concerns(view: parts.View, event: Event) -> str | None:
    """Whether an event is about one of the two calls."""
    if event.kind == "comparison.changed":
        return ""
    ask = view.session.inbox.asks.get(event.subject)
    cid = event.subject if ask is None else ask.call_id or ""
    refs = [part for ref in _split(view.of) for part in ref.split("~")]
    call = view.session.calls.get(cid)
    return "" if cid in refs or (call is not None and call.retry_of in refs) else None


PAIR = Each(("comparison.changed", "call.*", *ASKS), _concerns, lambda view, *_: _fetched(view), _fetched)
"""Two calls, perhaps of two sessions: the tab fetches both."""


@page("pair", PAIR)
async def pair(request: Request) -> Response:
    """Two calls side by side. Without `right`, the call before of the same tool."""
    here: Workspace = request.state.session
    left_ref, right_ref = request.query_params.get("left", ""), request.query_params.get("right", "")
    if not left_ref:
        raise unknown("Say which call to compare, like ?left=c9&right=c12.")
    session, call, _ = _named(request, left_ref)
    left, waits = _view(here, session, call), ""
    right: View | None = None
    if right_ref:
        there, other, pending = _named(request, right_ref)
        right = _view(here, there, other)
        waits = f"Call {right.number} is called again once call {left.number} is settled." if pending else ""
    elif (newest := before(session, call)) is not None:
        right = _view(here, session, newest)
        left, right = right, left  # the older one first, as one reads
    if right is not None and right.call.method != left.call.method:
        words = f"These are calls of different methods: {left.call.method} and {right.call.method}."
        raise Invalid(words, {"/right": ["A call of the same method."]})
    of = f"{left.ref} {right_ref if '~' in right_ref or right is None else right.ref}".strip()
    url = compare_url(here, left.ref, "" if right is None else right.ref)

    async def both() -> dict[str, Any]:
        if right is None:
            raise unknown("There is no other call of this to compare with.")
        return {**pair_json(await pair_of(left, right, ignore=_ignores(request))), "pending": bool(waits)}

    if "export" in request.query_params:
        name = f'attachment; filename="compare-{left.call.id}-{"" if right is None else right.call.id}.json"'
        return await in_json(both, headers={"content-disposition": name})
    title = f"Compare {left.call.subject}"
    return await show(
        request, lambda: _page(request, shell(here, "pair", title, of=of), url, left, right, waits=waits), both
    )


# --------------------------------------------------------------------------------------------------------------- deeds


class PairBody(Closed):
    """Two calls."""

    left: str
    right: str


class SameBody(PairBody):
    """On which side the same answers are given, and whether later asks get them too."""

    side: Literal["left", "right"] = "right"
    later: bool = False


def _pair_of_form(form: request_bodies.Body) -> dict[str, Any]:
    return {"left": form.text("left"), "right": form.text("right")}


def _same_of_form(form: request_bodies.Body) -> dict[str, Any]:
    return {**_pair_of_form(form), "side": form.text("side") or "right", "later": bool(form.text("later"))}


def _two(request: Request, wanted: PairBody) -> tuple[View, View]:
    here: Workspace = request.state.session
    found: list[View] = []
    for ref in (wanted.left, wanted.right):
        session, call, _ = _named(request, ref)
        found.append(_view(here, session, call))
    return found[0], found[1]


async def again(request: Request) -> Response:
    """Call both once more, and compare what comes."""
    here: Workspace = request.state.session
    wanted = (await request_bodies.read(request)).read(PairBody, _pair_of_form)
    left, right = _two(request, wanted)
    first, second = here.comparisons.again(left, right, request.state.identity)
    late = f"{right.ref}~{first.id}"
    refs = ref_of(here, left.session, first), late if second is None else ref_of(here, right.session, second)
    url = compare_url(here, *refs)
    said = {"left": refs[0], "right": refs[1], "url": url}
    return await go(request, url, lambda: said, 202, {"location": url})


async def same(request: Request) -> Response:
    """Give the answers of one call to the same asks of the other that are open; and, if wished for, to later ones."""
    wanted = (await request_bodies.read(request)).read(SameBody, _same_of_form)
    left, right = _two(request, wanted)
    mine, other = (left, right) if wanted.side == "left" else (right, left)
    if wanted.later:
        mine.answer_later_as(other, request.state.identity)
    else:
        mine.session.asks.repeats.end(mine.call.id)
    given = await mine.answer_as(other, request.state.identity)
    here: Workspace = request.state.session
    here.changed("comparison.changed", mine.ref)
    said = {"answered": [ask.id for ask in given], "open": [ask.id for ask in mine.open], "later": wanted.later}
    return await done(request, compare_url(here, left.ref, right.ref), lambda: said)
