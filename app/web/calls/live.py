"""Calls on a page, as they live: cards of some of them, lines of all, one alone; and what is said of them aloud."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from app.core.calls import Call
from app.core.events import Event, EventKind
from app.web.calls.card import CARDS, CallCard, call_lines, recent_calls
from app.web.calls.result import is_large
from app.web.kit.html import NOTHING, Html
from app.web.kit.templates import fragment
from app.web.kit.words import CALL_WORDS
from app.web.live.parts import Each, Said, View, partial, refetch

ON: Final = ("call.*", "finding.raised", "task.*")
Concerns = Callable[[View, Call], bool]


def call_of(view: View, event: Event) -> Call | None:
    """The call that an event means: by itself, or by the task that it made on the server."""
    calls, task = view.session.calls, view.session.client_tasks.tasks.get(event.subject)
    if event.kind.startswith("task."):
        return None if task is None else calls.get(task.call_id or "")
    return calls.get(event.subject)


def _each(concerns: Concerns, template: str, whole: Callable[[View], Html]) -> Each:
    """The calls that a page shows, the newest first, each by a template."""

    def subject(view: View, event: Event) -> str | None:
        call = call_of(view, event)
        return call.id if call is not None and concerns(view, call) else None

    def draw(view: View, cid: str, happened: tuple[EventKind, ...]) -> Html:
        html = fragment(template, card=CallCard(view.session, view.session.calls[cid]))
        if "call.added" not in happened:
            return partial(f"#call-{cid}", html)
        # Deleted first: a tab that comes back may hear of the same call twice.
        return partial(f"#call-{cid}", NOTHING, "delete") + partial("#calls", html, "afterbegin")

    return Each(ON, subject, draw, lambda view: partial("#calls", whole(view)))


def cards(concerns: Concerns, of: Callable[[View], list[Call]] | None = None) -> Each:
    """The cards of those calls that concern a page; `of` says which those are, where they are not the newest."""

    def whole(view: View) -> Html:
        recent = of(view) if of else [call for call in recent_calls(view.session) if concerns(view, call)][:CARDS]
        return fragment("calls/_cards.html", cards=[CallCard(view.session, call) for call in recent])

    return _each(concerns, "calls/_card.html", whole)


LINES: Final = _each(
    lambda _, call: not call.quiet,
    "calls/_line.html",
    lambda view: fragment("calls/_lines.html", lines=call_lines(view.session)),
)
"""Every call, a line each."""


def _alone(view: View, cid: str, _: tuple[EventKind, ...] = ()) -> Html:
    call = view.session.calls.get(cid)
    if call is None:
        return NOTHING
    card = CallCard(view.session, call, alone=True)
    drawn = partial("#sequence", fragment("tasks/_sequence.html", card=card))
    if is_large(call):
        # The page shows it whole, and a large one is read in a thread: the tab fetches it by itself.
        return refetch(f"{view.base}/calls/{cid}", f"#call-{cid}") + drawn
    return partial(f"#call-{cid}", fragment("calls/_card.html", card=card)) + drawn


def _this(view: View, event: Event) -> str | None:
    call = call_of(view, event)
    return call.id if call is not None and call.id == view.of and not call.quiet else None


ALONE: Final = Each(ON, _this, _alone, lambda view: _alone(view, view.of))
"""The call that the page is about, whole, with its drawing."""


def _settled(view: View, events: Sequence[Event]) -> str:
    calls = [call for event in events if (call := view.session.calls.get(event.subject)) is not None]
    loud = [call for call in calls if not call.quiet]
    return f"Call {loud[-1].id.lstrip('c')}: {CALL_WORDS[loud[-1].state][1].lower()}" if loud else ""


CALLS_SAID: Final = Said(["call.settled"], _settled)
