"""Drafts of models in the cards of asks, as they grow.

The words go to the end of what is there, so nothing else of a card moves; each step of a draft draws its part of the
card anew, and never what somebody types. A tab that knows nothing of a draft gets all of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from app.core.asks import Ask
from app.core.events import Event
from app.web.asks.card import AskCard
from app.web.asks.drafting import drafted
from app.web.kit.html import NOTHING, Html, markup, shown
from app.web.kit.templates import fragment
from app.web.live.parts import Said, View, kinds, partial


class _Drafts:
    """The three places of a card that tell of a draft: its steps, its words, its buttons."""

    on = kinds("ask.draft", "models.changed")

    def changed(self, view: View, events: Sequence[Event], seen: dict[object, Hashable]) -> Html:
        """What was written since, or the next step. When the models are others, those to choose from."""
        here = view.anywhere()
        asks = here.session.inbox.asks
        touched = dict.fromkeys(event.subject for event in events if event.kind == "ask.draft")
        said = [self._one(here, asks[aid], seen) for aid in touched if aid in asks]
        if any(event.kind == "models.changed" for event in events):
            version = ("models", here.session.events.seq)
            said.append(here.once(self, version, lambda: markup(_picker(here, ask) for ask in here.session.inbox.open)))
        return markup(said)

    def whole(self, view: View, seen: dict[object, Hashable]) -> Html:
        """Every draft of an open ask: its card stays as it is in the page."""
        here = view.anywhere()
        for ask in here.session.inbox.open:
            seen.pop((self, ask.id), None)
        return markup(self._one(here, ask, seen) for ask in here.session.inbox.open)

    def _one(self, view: View, ask: Ask, seen: dict[object, Hashable]) -> Html:
        draft, key = drafted(ask), (self, ask.id)
        if draft is None or ask.state != "open":
            seen.pop(key, None)
            return NOTHING
        known = seen.pop(key, None)
        if draft.state == "streaming":
            seen[key] = (draft.number, len(draft.text))
            if isinstance(known, tuple) and known[0] == draft.number:
                had: int = known[1]
                place = f"#ask-{ask.id}-draft"
                grown = draft.text[had:]
                return partial(place, shown(grown), "beforeend") if grown else NOTHING
        version = (ask.id, draft.number, draft.state, len(draft.text))
        return view.once(self, version, lambda: _card(view, ask))


def _card(view: View, ask: Ask) -> Html:
    card, here = AskCard(view.session, ask), f"#ask-{ask.id}"
    parts = (("flow", "asks/_flow.html"), ("model", "asks/_model.html"), ("acts", "asks/_model_acts.html"))
    return markup(partial(f"{here}-{name}", fragment(file, card=card), "innerMorph") for name, file in parts)


def _picker(view: View, ask: Ask) -> Html:
    if ask.kind != "sampling" or ask.state != "open" or drafted(ask) is not None:
        return NOTHING
    card = AskCard(view.session, ask)
    return partial(f"#ask-{ask.id}-model", fragment("asks/_model.html", card=card), "innerMorph")


def _words(view: View, events: Sequence[Event]) -> str:
    """That a draft is ready, or will not be: once, and nothing while it is written."""
    for aid in dict.fromkeys(event.subject for event in events):
        ask = view.session.inbox.asks.get(aid)
        draft = None if ask is None or ask.state != "open" else drafted(ask)
        if draft is not None and draft.state == "ready":
            return "Draft ready"
        if draft is not None and draft.state == "failed" and draft.fault != "stopped":
            return "The model failed, the ask is still open"
    return ""


DRAFTS: Final = _Drafts()
DRAFTS_SAID: Final = Said(["ask.draft"], _words)
