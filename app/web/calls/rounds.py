"""Rounds: what each one asked, what was sent back, what became of the server's state; and changing them on purpose.

The state is opaque: the page shows how long it is, never what is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.core.calls import Call
from app.web.kit import format, request_bodies

if TYPE_CHECKING:
    from app.sessions import Workspace
from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.calls import StatePlan
from app.core.strict import Closed
from app.sessions import Workspace
from app.web.kit.lookup import call_of
from app.web.kit.responses import done, in_json, wants_json

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
        said = "no state" if size is None else f"state of {format.size(size)}"
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


class StateBody(Closed):
    """Which state goes back: the server's own, none, an older one, or another value."""

    mode: Literal["same", "drop", "older", "change"] = "same"
    value: Any = None

    def plan(self) -> StatePlan | None:
        return None if self.mode == "same" else StatePlan(self.mode, self.value)


class RoundsBody(Closed):
    limit: int | None = Field(default=None, gt=0)
    state: StateBody | None = None


class ResendBody(Closed):
    round: int = Field(gt=0)
    state: StateBody = StateBody()


def _state_of_form(body: request_bodies.Body) -> dict[str, Any]:
    return {"mode": body.text("mode") or "same", "value": body.text("value")}


def _rounds_of_form(body: request_bodies.Body) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if body.text("limit"):
        found["limit"] = body.text("limit")
    if body.text("mode"):
        found["state"] = _state_of_form(body)
    return found


async def change(request: Request) -> Response:
    """Raise the limit of rounds, or say which state the next retry carries."""
    session, call = call_of(request)
    wanted = (await request_bodies.read(request)).read(RoundsBody, _rounds_of_form)
    if wanted.state is not None:
        session.rounds.plan_state(call, wanted.state.plan())
    if wanted.limit is not None:
        session.rounds.raise_limit(call, wanted.limit)
    if wants_json(request):
        return in_json({"id": call.id, "rounds": rounds_json(call), "round_limit": call.round_limit})
    return done(request, f"/s/{session.id}/calls/{call.id}")


async def resend(request: Request) -> Response:
    """Send the retry of an old round again, as a call of its own."""
    session, call = call_of(request)
    body = await request_bodies.read(request)
    wanted = body.read(ResendBody, lambda form: {"round": form.text("round"), "state": _state_of_form(form)})
    again = session.rounds.resend(call, wanted.round, wanted.state.plan(), request.state.identity)
    url = f"/s/{session.id}/calls/{again.id}"
    if wants_json(request):
        return in_json({"id": again.id, "url": url, "state": again.state, "retry_of": call.id}, 202, {"location": url})
    return RedirectResponse(url, 303)
