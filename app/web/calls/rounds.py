"""Rounds: what each one asked, what was sent back, what became of the server's state; and changing them on purpose.

The state is opaque: the page shows how long it is, never what is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.core.asks import Ask
from app.core.calls import Call, Round, StatePlan
from app.core.strict import Closed
from app.sessions import Workspace
from app.web.kit import format, request_bodies
from app.web.kit.lookup import call_of
from app.web.kit.responses import back, done, started

ECHOES = {
    "same": "state echoed",
    "none": "no state to echo",
    "dropped": "state left out, on purpose",
    "older": "an older state sent, on purpose",
    "changed": "another state sent, on purpose",
}
PLANS = (
    ("same", "the server's own"),
    ("drop", "no state"),
    ("older", "the state of the round before"),
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
class RoundLine:
    """One round, as the call's page shows it."""

    session: Workspace
    turn: Round
    outcomes: ClassVar = OUTCOMES
    plans: ClassVar = PLANS

    @property
    def asked(self) -> Iterator[tuple[str, str, Ask | None]]:
        """What it asked: the key, what that is in a word, and the ask while it is kept."""
        for key, method in self.turn.methods.items():
            yield key[:60], WORDS.get(method, method[:60]), self.session.inbox.asks.get(self.turn.asks.get(key, ""))

    @property
    def state_words(self) -> str:
        """How long the state is."""
        size = self.turn.state_bytes
        return "no state" if size is None else f"state {format.size(size)}"

    @property
    def echo(self) -> str:
        """What became of the state when it was sent back; "" before that."""
        echo, size = self.turn.echo, self.turn.state_bytes
        if echo is None:
            return ""
        return f"same {format.size(size)} echoed" if echo == "same" and size is not None else ECHOES[echo]

    @property
    def can_resend(self) -> bool:
        session = self.session
        return self.turn.retry_seq is not None and session.info.state == "ready" and session.wire.rounds


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
    return {"limit": body.text("limit") or None, "state": _state_of_form(body) if body.text("mode") else None}


async def change(request: Request) -> Response:
    """Raise the limit of rounds, or say which state the next retry carries."""
    session, call = call_of(request)
    wanted = (await request_bodies.read(request)).read(RoundsBody, _rounds_of_form)
    if wanted.state is not None:
        session.rounds.plan_state(call, wanted.state.plan())
    if wanted.limit is not None:
        session.rounds.raise_limit(call, wanted.limit)
    return await done(
        request,
        f"{session.base}/calls/{call.id}",
        lambda: {"id": call.id, "rounds": rounds_json(call), "round_limit": call.round_limit},
    )


async def resend(request: Request) -> Response:
    """Send the retry of an old round again, as a call of its own."""
    session, call = call_of(request)
    body = await request_bodies.read(request)
    wanted = body.read(ResendBody, lambda form: {"round": form.text("round"), "state": _state_of_form(form)})
    again = session.rounds.resend(call, wanted.round, wanted.state.plan(), request.state.identity)
    return await started(request, session, again, then=back, retry_of=call.id)
