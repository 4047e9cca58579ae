"""A sign-in on a page, as it lives: the card of the inbox column, the word in the header, and what is said aloud."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.events import Event
from app.web.kit.templates import fragment
from app.web.live.parts import Part, Said, View
from app.web.sign_in.card import STATES, card_of

ON: Final = ("sign_in.changed",)

CARD: Final = Part(
    "#sign-in", ON, lambda view: fragment("sign_in/_card.html", card=card_of(view.session)), everywhere=True
)
"""The card, which is in every page that has an inbox."""


def _words(view: View, _: Sequence[Event]) -> str:
    """What those who listen are told: when it is their turn, and how it ended."""
    found = view.session.sign_in.current
    if found is None or found.state in ("preparing", "exchanging"):
        return ""
    if found.state == "failed" and found.failed_step is not None:
        return f"Sign-in failed. {found.failed_step.sentence}"
    where = f" at {found.issuer}" if found.issuer and found.state == "signed_in" else ""
    return f"Sign-in: {STATES[found.state][2].lower()}{where}"


SAID: Final = Said(
    ON, _words, version=lambda view: None if (found := view.session.sign_in.current) is None else found.state
)
