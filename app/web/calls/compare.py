"""One call in two eras: begin a comparison, and two conversations side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from app.core.calls import Call
from app.core.revisions import HANDSHAKE
from app.core.wire import Message
from app.sessions import Workspace
from app.sessions.compare import Comparison, messages_of
from app.web.asks.card import asks_of
from app.web.door.denied import unknown
from app.web.kit import json_tree, request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.lookup import call_of
from app.web.kit.responses import back, show
from app.web.kit.templates import Context
from app.web.live.page import page
from app.web.live.parts import Each, View, refetch

ERAS = {"legacy": "2025-11-25", "modern": "2026-07-28"}


@dataclass(slots=True, frozen=True)
class Side:
    """One of the two conversations."""

    session: Workspace
    call: Call
    rows: list[Message]
    asks: list[tuple[str, str, str, bool]]
    result: Html | None


async def _side(session: Workspace, call: Call) -> Side:
    result = await session.result(call)
    tree = None if result is None else json_tree.tree(result, open_depth=2, max_nodes=300, label="Result")
    asks = asks_of(session, [ask.id for ask in session.inbox.asks.values() if ask.call_id == call.id])
    return Side(session, call, messages_of(session, call), asks, tree)


def compare_json(session: Workspace, call: Call) -> dict[str, Any]:
    """A comparison, as scripts read it."""
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


@dataclass(slots=True)
class ComparePage(Context):
    """Two conversations side by side, and what differs."""

    template: ClassVar[str] = "calls/compare.html"
    part: ClassVar[str | None] = "calls/_compare.html"

    shell: Shell
    comparison: Comparison
    version: str
    """The revision of the other session."""
    left: Side
    right: Side | None


async def compare_page(session: Workspace, call: Call, found: Comparison) -> ComparePage:
    """The comparison of a call, as far as it has come."""
    other = found.open
    twin = other.calls.get(found.other_call or "") if other is not None else None
    return ComparePage(
        shell(session, "compare", f"{call.subject} in two eras", of=call.id),
        found,
        ERAS[found.era],
        await _side(session, call),
        None if other is None or twin is None else await _side(other, twin),
    )


async def begin(request: Request) -> Response:
    """Open the other session, and run the call there."""
    session, call = call_of(request)
    await request_bodies.nothing(request)
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
    found = session.comparisons.by_call.get(call.id)
    if found is None:
        raise unknown("This call was not compared yet. Its page has a button for that.")
    return await show(request, lambda: compare_page(session, call, found), lambda: compare_json(session, call))
