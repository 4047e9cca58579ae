"""The route of the timeline, and what of it is live: one call at a time, and all of it when the scale changes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.core import timeline
from app.core.events import Event, EventKind
from app.sessions import Workspace
from app.web.kit.frame import shell
from app.web.kit.html import NOTHING, Html
from app.web.kit.responses import show
from app.web.kit.templates import fragment
from app.web.live.page import page
from app.web.live.parts import Each, Part, View, kinds, partial
from app.web.timeline.view import LEGEND, TimelinePage, TimelineView, drawn, polls_of, timeline_json, view_of

_ON: Final = ("call.*", "ask.*", "task.*", "inbox.cleared")


def _now(view: View) -> TimelineView:
    """The timeline at this moment, once for all parts of a message."""
    return view.once("timeline", view.session.events.seq, lambda: view_of(view.session))


def _whole(view: View) -> Html:
    return fragment("timeline/_timeline.html", view=_now(view), legend=LEGEND)


def _kept(view: View) -> tuple[float, float, int]:
    """What the places of all rows hang on."""
    found = _now(view)
    return found.scale.start, found.scale.seconds, found.left_out


def _head(view: View) -> Html:
    return fragment("timeline/_head.html", view=_now(view))


def _subject(view: View, event: Event) -> str | None:
    """The call that an event means, by itself, by its ask or by its task; an ask that no call caused."""
    session = view.session
    theirs, ours = session.client_tasks.tasks.get(event.subject), session.asks.tasks.get(event.subject)
    asks = session.inbox.asks
    ask = asks.get(event.subject)
    if ask is None and ours is not None:
        ask = next((one for one in asks.values() if one.task_id == ours.id), None)
    call = session.calls.get(event.subject if theirs is None else theirs.call_id or "")
    if ask is not None:
        call = session.calls.get(ask.call_id or "")
        return ask.id if call is None or call.quiet else call.id
    return None if call is None or call.quiet else call.id


def _one(view: View, gid: str, happened: tuple[EventKind, ...]) -> Html:
    session, now, scale = view.session, view.session.wall(), _now(view).scale
    call, ask = session.calls.get(gid), session.inbox.asks.get(gid)
    if call is not None:
        group = timeline.group_of(call, session.inbox.asks, lambda one: polls_of(session, one), now)
    elif ask is not None:
        group = timeline.alone(ask, lambda one: polls_of(session, one), now)
    else:
        return partial(f"#tl-{gid}", NOTHING, "delete")
    html = fragment("timeline/_group.html", group=drawn(session, group, scale), base=view.base)
    if ("ask.added" if call is None else "call.added") not in happened:
        return partial(f"#tl-{gid}", html)
    # Deleted first: a tab that comes back may hear of the same call twice.
    return partial(f"#tl-{gid}", NOTHING, "delete") + partial("#tl-rows", html, "beforeend")


class _Bars:
    """All of it when the places of the rows are other ones; else the head, and the calls that something happened to.

    Never both: what is added to a table must not meet a table that is being exchanged."""

    on = kinds(*_ON)

    def changed(self, view: View, events: Sequence[Event], seen: dict[object, Hashable]) -> Html:
        """What became of it."""
        if seen.get(self) != _kept(view):
            return self.whole(view, seen)
        return HEAD.changed(view, events, seen) + ROWS.changed(view, events, seen)

    def whole(self, view: View, seen: dict[object, Hashable]) -> Html:
        """Everything."""
        seen[self] = _kept(view)
        return view.once(self, view.session.events.seq, lambda: partial("#timeline", _whole(view)))


HEAD: Final = Part("#tl-head", _ON, _head)
ROWS: Final = Each(_ON, _subject, _one, lambda view: NOTHING)
BARS: Final = _Bars()


@page("timeline", BARS)
async def show_timeline(request: Request) -> Response:
    """Calls and asks in time, and who was waited for."""
    session: Workspace = request.state.session
    return await show(
        request,
        lambda: TimelinePage(shell(session, "timeline", "Timeline"), view_of(session)),
        lambda: timeline_json(session),
    )
