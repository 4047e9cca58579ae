"""Asks on a page, as they live. A card that is open is never drawn anew: somebody may be typing in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.events import Event, EventKind
from app.web.asks.card import FOLDED_ABOVE, AskCard, inbox_view, summary
from app.web.kit.html import NOTHING, Html, markup
from app.web.kit.templates import fragment
from app.web.live.parts import Each, Said, View, partial

ON: Final = ("ask.added", "ask.changed", "ask.reopened", "ask.settled", "ask.withdrawn")


def _draw(view: View, aid: str, happened: tuple[EventKind, ...]) -> Html:
    session, ask = view.session, view.session.inbox.asks.get(aid)
    if ask is None:
        return NOTHING
    here = f"#ask-{aid}"
    if not ask.settled and ("ask.added" in happened or "ask.reopened" in happened):
        # Deleted first: a tab that comes back may hear of the same ask twice.
        card = AskCard(session, ask, folded=session.open_asks > FOLDED_ABOVE)
        html = fragment("asks/_card.html", card=card)
        return partial(here, NOTHING, "delete") + partial("#asks", html, "beforeend")
    card = AskCard(session, ask, folded=ask.settled)
    if set(happened) == {"ask.claimed"}:
        # Somebody may have the keyboard in the rest of the card, which is as it was.
        return (
            NOTHING if ask.settled else partial(f"{here}-state", fragment("asks/_state.html", card=card), "innerHTML")
        )
    if ask.settled and ("ask.added" in happened or ask.recorded):
        # Nobody saw it open here, so there is no card to settle: it goes straight to the others.
        html = fragment("asks/_card.html", card=card)
        return partial(here, NOTHING, "delete") + partial("#settled", html, "afterbegin")
    state = partial(f"{here}-state", fragment("asks/_state.html", card=card), "innerHTML")
    # Who has an ask in hand may have the keyboard in the rest of its card, which is as it was.
    if ask.kind == "sampling" and ask.state == "open" and set(happened) != {"ask.claimed"}:
        state += partial(f"{here}-request", fragment("asks/_request.html", card=card), "innerHTML")
        state += partial(f"{here}-flow", fragment("asks/_flow.html", card=card), "innerMorph")
    return state


def _whole(view: View) -> Html:
    """The whole column. Cards that are open on the page stay as they are, with what was typed in them."""
    inbox = inbox_view(view.session)
    opened = markup(fragment("asks/_card.html", card=card) for card in inbox.open)
    settled = markup(fragment("asks/_card.html", card=card) for card in inbox.settled)
    return partial("#asks", opened, "innerMorph") + partial("#settled", settled, "innerMorph")


ASKS: Final = Each((*ON, "ask.claimed"), lambda _, event: event.subject, _draw, _whole, everywhere=True)
"""The inbox, which is in every page."""
INBOX: Final = Each(["inbox.cleared"], lambda *_: "", lambda view, *_: _whole(view), lambda _: NOTHING, everywhere=True)
"""It was cleared."""


def _asked(view: View, events: Sequence[Event]) -> str:
    """Words for a new ask; one that was taken back and is open again is no news."""
    reopened = {event.subject for event in events if event.kind == "ask.reopened"}
    added = [event for event in events if event.kind == "ask.added" and event.subject not in reopened]
    return f"The server asks something, {summary(view.session)}" if added else ""


ASKS_SAID: Final = Said(["ask.added", "ask.reopened"], _asked)
