"""A sign-in for scripts: the same steps that the page draws, by the names that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.core.sign_in import ATTEMPTS, SignIn, Step, TokenFacts, Trip
from app.core.times import wire_time

if TYPE_CHECKING:
    from app.sessions import Workspace


def sign_in_json(session: Workspace) -> dict[str, Any]:
    """`GET /s/{sid}/sign-in`: how far it is, with every step. `state` is `none` where no server wanted it."""
    found = session.sign_in.current
    return {"state": "none", "steps": []} if found is None else whole_json(found)


def whole_json(found: SignIn) -> dict[str, Any]:
    """A sign-in with its steps."""
    return {**brief_json(found), "steps": [_step(one) for one in found.steps]}


def open_json(session: Workspace) -> dict[str, Any] | None:
    """What the inbox says of it: `sign_in` in `GET /s/{sid}/inbox`; None when nobody has to do anything."""
    found = session.sign_in.current
    return None if found is None or not found.open else brief_json(found)


def brief_json(found: SignIn) -> dict[str, Any]:
    """A sign-in without its steps."""
    failed = found.failed_step
    return {
        "state": found.state,
        "reason": found.reason,
        "grant": found.grant,
        "server": found.server,
        "resource": found.resource or None,
        "issuer": found.issuer or None,
        "scopes": list(found.scopes),
        "client_id": found.client_id or None,
        "registration": found.registration,
        "redirect_uri": found.redirect_uri or None,
        "authorization_url": found.authorization_url or None,
        "waits_until": _time(found.waits_until),
        "attempt": found.attempt,
        "attempts": ATTEMPTS,
        "held": found.held,
        "token": None if found.token is None else _token(found.token),
        "failure": None
        if failed is None
        else {"step": failed.id, "code": failed.code, "sentence": failed.sentence, "fix": failed.fix},
    }


def _token(facts: TokenFacts) -> dict[str, Any]:
    return {
        "scopes": list(facts.scopes),
        "obtained_at": _time(facts.obtained_at),
        "expires_at": _time(facts.expires_at),
        "refreshable": facts.refreshable,
        "revocable": facts.revocable,
        "claims": facts.claims,
        "stored": facts.stored,
    }


def _step(one: Step) -> dict[str, Any]:
    trip = one.trip
    return {
        "id": one.id,
        "name": one.name,
        "state": one.state,
        "runnable": one.runnable,
        "began_at": _time(one.began_at),
        "took_ms": one.took_ms,
        "request": None if trip is None else _request(trip),
        "response": None if trip is None else _response(trip),
        "exchange": None if trip is None else trip.exchange,
        "trips": [{"request": _request(each), "response": _response(each), "exchange": each.exchange}
                  for each in one.trips],
        "checks": [{"what": check.what, "ok": check.ok, "detail": check.detail} for check in one.checks],
        "sentence": one.sentence or None,
        "fix": one.fix or None,
        "code": one.code or None,
    }  # fmt: skip


def _request(trip: Trip) -> dict[str, Any]:
    headers = [list(pair) for pair in trip.request_headers]
    return {"method": trip.method, "url": trip.url, "headers": headers, "body": trip.request_body or None}


def _response(trip: Trip) -> dict[str, Any] | None:
    if trip.status is None:
        return {"status": None, "headers": [], "body": None, "error": trip.error} if trip.error else None
    headers = [list(pair) for pair in trip.response_headers]
    return {"status": trip.status, "headers": headers, "body": trip.response_body or None, "error": trip.error or None}


def _time(at: float | None) -> str | None:
    return None if at is None else wire_time(at)
