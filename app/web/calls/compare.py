"""One call in two eras: begin a comparison, and two conversations side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from app.core.calls import Call
from app.core.revisions import HANDSHAKE
from app.sessions import Workspace
from app.sessions.compare import messages_of
from app.web.asks.card import asks_of
from app.web.door.denied import unknown
from app.web.kit import format, json_tree, request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.lookup import call_of
from app.web.kit.responses import back, show
from app.web.kit.templates import Context
from app.web.live.page import page
from app.web.live.parts import Each, View, refetch

ERAS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
_ROWS = 60


@dataclass(slots=True, frozen=True)
class Row:
    """One message of a conversation."""

    seq: int
    out: bool
    kind: str
    method: str
    gist: str
    size: str


@dataclass(slots=True, frozen=True)
class SideView:
    """One of the two conversations."""

    base: str
    version: str
    era_word: str
    state: str
    tool_error: bool
    call_id: str
    number: str
    rows: list[Row]
    more: int
    asks: list[tuple[str, str, str, bool]]
    error: str
    result: Html | None


@dataclass(slots=True, frozen=True)
class CompareView:
    """Both, and what differs."""

    base: str
    call_id: str
    subject: str
    method: str
    words: str
    failed: bool
    closed: bool
    """Whether the other session is gone."""
    left: SideView
    right: SideView | None
    other_version: str
    differences: list[str]


async def compare_view(session: Workspace, call: Call) -> CompareView | None:
    """The comparison of a call; None when there is none."""
    found = session.comparisons.by_call.get(call.id)
    if found is None:
        return None
    other = found.open
    twin = other.calls.get(found.other_call or "") if other is not None else None
    right = None if other is None or twin is None else await _side(other, twin)
    words = found.words
    if other is None:
        words = "The other session was closed, and its conversation with it. Compare again to see both."
    return CompareView(
        base=f"/s/{session.id}",
        call_id=call.id,
        subject=call.subject,
        method=call.method,
        words=words,
        failed=found.failed,
        closed=other is None,
        left=await _side(session, call),
        right=right,
        other_version=ERAS[found.era],
        differences=found.differences,
    )


async def _side(session: Workspace, call: Call) -> SideView:
    rows = messages_of(session, call)
    result = await session.result(call)
    return SideView(
        base=f"/s/{session.id}",
        version=session.info.protocol_version or "",
        era_word="handshake" if session.wire is HANDSHAKE else "no handshake",
        state=call.state,
        tool_error=call.tool_error,
        call_id=call.id,
        number=call.id[1:],
        rows=[
            Row(each.seq, each.direction == "out", each.kind, each.method or "", each.gist, format.size(each.size))
            for each in rows[:_ROWS]
        ],
        more=max(0, len(rows) - _ROWS),
        asks=asks_of(session, [ask.id for ask in session.inbox.asks.values() if ask.call_id == call.id]),
        error="" if call.error is None else f"{call.error.code or ''} {call.error.message}".strip(),
        result=None if result is None else json_tree.tree(result, open_depth=2, max_nodes=300, label="Result"),
    )


async def compare_json(session: Workspace, call: Call) -> dict[str, Any]:
    """A comparison, as scripts read it."""
    found = session.comparisons.by_call[call.id]
    view = await compare_view(session, call)
    return {
        "call": call.id,
        "other_session": found.other_id,
        "other_call": found.other_call,
        "other_era": found.era,
        "failed": found.failed,
        "words": found.words,
        "differences": [] if view is None else view.differences,
    }


def can_compare(session: Workspace, call: Call) -> str:
    """The revision that a call could be run in too; "" when it cannot."""
    info = session.info
    possible = info.state == "ready" and info.transport != "sse" and info.era is not None
    if not possible or not call.settled or call.notification or call.quiet:
        return ""
    return ERAS["modern" if session.wire is HANDSHAKE else "legacy"]


@dataclass(slots=True)
class ComparePage(Context):
    """Two conversations side by side."""

    template: ClassVar[str] = "calls/compare.html"
    part: ClassVar[str | None] = "calls/_compare.html"
    shell: Shell
    compare: CompareView


async def begin(request: Request) -> Response:
    """Open the other session, and run the call there."""
    session, call = call_of(request)
    (await request_bodies.read(request)).read(request_bodies.Nothing, lambda _: {})
    session.comparisons.begin(call, request.state.identity)
    url = f"/s/{session.id}/calls/{call.id}/compare"
    return await back(request, url, lambda: compare_json(session, call), 202, {"location": url})


def _compared(view: View) -> Html:
    return refetch(f"{view.base}/calls/{quote(view.of, safe='')}/compare", "#compare")


COMPARED = Each(
    ("comparison.changed", "call.changed", "call.settled"), lambda *_: "", lambda view, *_: _compared(view), _compared
)
"""Two conversations, one of them of another session: the tab fetches both."""


@page("compare", COMPARED)
async def comparison(request: Request) -> Response:
    session, call = call_of(request)
    view = await compare_view(session, call)
    if view is None:
        raise unknown("This call was not compared yet. Its page has a button for that.")
    return await show(
        request,
        lambda: ComparePage(shell(session, "compare", f"{call.subject} in two eras", of=call.id), view),
        lambda: compare_json(session, call),
    )
