"""Rounds on the page: what each one asked, what was sent back, and what became of the server's state.

The state is opaque: the page shows how long it is, never what is in it. Knows calls; knows no route.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.core.calls import Call
from app.web.kit import html as show

if TYPE_CHECKING:
    from app.sessions import Workspace

ECHOES = {
    "same": "the same bytes went back",
    "none": "the server gave none, so none went back",
    "dropped": "left out, on purpose",
    "older": "an older one went back, on purpose",
    "changed": "another one went back, on purpose",
}
PLANS = (
    ("same", "the server's own, as it must be"),
    ("drop", "none"),
    ("older", "that of the round before"),
    ("change", "another text"),
)
OUTCOMES = {
    "asking": "waits for you",
    "sent": "sent back",
    "abandoned": "abandoned",
    "stopped": "not answered",
}
WORDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


@dataclass(slots=True, frozen=True)
class Asked:
    """One request of a round."""

    key: str
    word: str
    state: str
    href: str
    waits: bool


@dataclass(slots=True, frozen=True)
class RoundLine:
    """One round, as the call's page shows it."""

    number: int
    outcome: str
    outcome_word: str
    asked: list[Asked]
    state: str
    """How long the state is, and what became of it."""
    odd: bool
    """It was not sent back as it came."""
    same: bool
    reply_seq: int
    retry_seq: int | None
    can_resend: bool


@dataclass(slots=True, frozen=True)
class RoundsView:
    """The rounds of one call."""

    lines: list[RoundLine]
    limit: int
    at_limit: bool
    waits: bool
    """A retry will follow, so what it carries can be chosen."""
    plan: str
    plan_value: str
    plans: tuple[tuple[str, str], ...]
    abandoned: bool


def rounds_view(session: Workspace, call: Call) -> RoundsView | None:
    """What the page shows; None for a call without rounds."""
    if not call.rounds:
        return None
    lines = []
    for turn in call.rounds:
        asked = []
        for key, method in turn.methods.items():
            ask = session.inbox.asks.get(turn.asks.get(key, ""))
            waits = ask is not None and ask.state == "open"
            state = "no longer kept" if ask is None else ask.state
            href = f"/s/{session.id}/asks/{ask.id}" if ask is not None else ""
            asked.append(Asked(key[:60], WORDS.get(method, method[:60]), state, href, waits))
        size = turn.state_bytes
        said = "no state" if size is None else f"state of {show.size(size)}"
        lines.append(
            RoundLine(
                number=turn.number,
                outcome=turn.outcome,
                outcome_word=OUTCOMES[turn.outcome],
                asked=asked,
                state=f"{said}, {ECHOES[turn.echo]}" if turn.echo is not None else said,
                odd=turn.echo in ("dropped", "older", "changed"),
                same=turn.echo == "same",
                reply_seq=turn.reply_seq,
                retry_seq=turn.retry_seq,
                can_resend=turn.retry_seq is not None and session.info.state == "ready" and session.wire.rounds,
            )
        )
    plan = call.state_plan
    return RoundsView(
        lines=lines,
        limit=call.round_limit,
        at_limit=call.at_limit,
        waits=not call.settled and call.rounds[-1].outcome == "asking",
        plan="same" if plan is None else plan.mode,
        plan_value=plan.value if plan is not None and isinstance(plan.value, str) else "",
        plans=PLANS,
        abandoned=call.abandoned,
    )


def rounds_json(call: Call) -> list[dict[str, Any]]:
    """The rounds of a call, as scripts read them."""
    return [
        {
            "number": turn.number,
            "outcome": turn.outcome,
            "requests": [
                {"key": key, "method": method, "ask_id": turn.asks.get(key)} for key, method in turn.methods.items()
            ],
            "state": {"given": turn.has_state, "bytes": turn.state_bytes, "echo": turn.echo},
            "reply_seq": turn.reply_seq,
            "retry_seq": turn.retry_seq,
        }
        for turn in call.rounds
    ]
