"""Routes of rounds: raise the limit, send another state on purpose, send an old round again, take an answer back."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core.calls import StatePlan
from app.core.strict import Closed
from app.sessions import Workspace
from app.web.calls.rounds import rounds_json
from app.web.kit import request_bodies as bodies
from app.web.kit.errors import unknown, wants_json
from app.web.kit.lookup import call_of
from app.web.kit.responses import in_json


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


def _state_of_form(body: bodies.Body) -> dict[str, Any]:
    return {"mode": body.text("mode") or "same", "value": body.text("value")}


def _rounds_of_form(body: bodies.Body) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if body.text("limit"):
        found["limit"] = body.text("limit")
    if body.text("mode"):
        found["state"] = _state_of_form(body)
    return found


async def change(request: Request) -> Response:
    """Raise the limit of rounds, or say which state the next retry carries."""
    session, call = call_of(request)
    wanted = (await bodies.read(request)).read(RoundsBody, _rounds_of_form)
    if wanted.state is not None:
        session.rounds.plan_state(call, wanted.state.plan())
    if wanted.limit is not None:
        session.rounds.raise_limit(call, wanted.limit)
    if wants_json(request):
        return in_json({"id": call.id, "rounds": rounds_json(call), "round_limit": call.round_limit})
    return _back(request, f"/s/{session.id}/calls/{call.id}")


async def resend(request: Request) -> Response:
    """Send the retry of an old round again, as a call of its own."""
    session, call = call_of(request)
    body = await bodies.read(request)
    wanted = body.read(ResendBody, lambda form: {"round": form.text("round"), "state": _state_of_form(form)})
    again = session.rounds.resend(call, wanted.round, wanted.state.plan(), request.state.identity)
    url = f"/s/{session.id}/calls/{again.id}"
    if wants_json(request):
        return in_json({"id": again.id, "url": url, "state": again.state, "retry_of": call.id}, 202, {"location": url})
    return RedirectResponse(url, 303)


async def reopen(request: Request) -> Response:
    """Take back an answer that waits for the others of its round."""
    session: Workspace = request.state.session
    ask = session.inbox.asks.get(request.path_params["aid"])
    if ask is None:
        raise unknown("There is no such ask. Settled ones are forgotten after a while.")
    (await bodies.read(request)).read(bodies.Nothing, lambda _: {})
    session.rounds.reopen(ask)
    if wants_json(request):
        return in_json({"id": ask.id, "state": ask.state})
    return _back(request, f"/s/{session.id}/asks/{ask.id}")


def _back(request: Request, url: str) -> Response:
    return Response(status_code=204) if "hx-request" in request.headers else RedirectResponse(url, 303)
