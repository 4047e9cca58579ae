"""Calls on a page, as they live: cards of some of them, lines of all, one alone; and what is said of them aloud."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from app.core.calls import Call
from app.core.events import Event, EventKind
from app.web.calls.card import CARDS, CallCard, call_lines, cards_of, recent_calls, unfolded
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
    if event.kind.startswith("ask."):
        ask = view.session.inbox.asks.get(event.subject)
        return None if ask is None else calls.get(ask.call_id or "")
    if event.kind.startswith("task."):
        return None if task is None else calls.get(task.call_id or "")
    return calls.get(event.subject)


def _each(
    concerns: Concerns,
    one: Callable[[View, Call], Html],
    whole: Callable[[View], Html],
    others: Callable[[View, Call], Html] = lambda *_: NOTHING,
) -> Each:
    """The calls that a page shows, the newest first, each drawn by itself; `others` is what changes besides when one of
    them ends."""

    def subject(view: View, event: Event) -> str | None:
        call = call_of(view, event)
        return call.id if call is not None and concerns(view, call) else None

    def draw(view: View, cid: str, happened: tuple[EventKind, ...]) -> Html:
        call = view.session.calls[cid]
        html = one(view, call)
        also = others(view, call) if "call.settled" in happened else NOTHING
        if "call.added" not in happened:
            return partial(f"#call-{cid}", html) + also
        # Deleted first: a tab that comes back may hear of the same call twice.
        return partial(f"#call-{cid}", NOTHING, "delete") + partial("#calls", html, "afterbegin") + also

    return Each((*ON, "ask.stepped"), subject, draw, lambda view: partial("#calls", whole(view)))


def cards(concerns: Concerns, of: Callable[[View], list[Call]] | None = None) -> Each:
    """The calls that concern a page: those that run and the last result as cards, the others as lines; `of` says which
    those are, where they are not the newest."""

    def recent(view: View) -> list[Call]:
        return of(view) if of else [call for call in recent_calls(view.session) if concerns(view, call)][:CARDS]

    def whole(view: View) -> Html:
        return fragment("calls/_cards.html", cards=cards_of(view.session, recent(view)))

    def drawn(view: View, call: Call, *, folded: bool) -> Html:
        return fragment("calls/_card.html", card=CallCard(view.session, call, folded=folded))

    def one(view: View, call: Call) -> Html:
        return drawn(view, call, folded=call.settled and call.id not in unfolded(recent(view)))

    def others(view: View, call: Call) -> Html:
        """Whoever ended last before this one was a card until now, and becomes a line."""
        known = recent(view)
        ended = [other for other in known if other.id != call.id and other.ended_at is not None]
        before = max(ended, key=lambda other: other.ended_at or 0.0, default=None)
        if before is None or before.id in unfolded(known):
            return NOTHING
        return partial(f"#call-{before.id}", drawn(view, before, folded=True))

    return _each(concerns, one, whole, others)


LINES: Final = _each(
    lambda _, call: not call.quiet,
    lambda view, call: fragment("calls/_line.html", card=CallCard(view.session, call)),
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


# What it asks is part of its page, when it asks in rounds.
ALONE: Final = Each(
    (*ON, "ask.added", "ask.changed", "ask.stepped", "ask.reopened", "ask.settled", "ask.withdrawn"),
    _this,
    _alone,
    lambda view: _alone(view, view.of),
)
"""The call that the page is about, whole, with its drawing."""


def _settled(view: View, events: Sequence[Event]) -> str:
    calls = [call for event in events if (call := view.session.calls.get(event.subject)) is not None]
    loud = [call for call in calls if not call.quiet]
    return f"Call {loud[-1].id.lstrip('c')}: {CALL_WORDS[loud[-1].state][1].lower()}" if loud else ""


CALLS_SAID: Final = Said(["call.settled"], _settled)
