"""What the page shows of a sign-in: the card in the inbox column, the line of a session that is signed in, the steps.

An address becomes a link only when it is one that may be opened; everything that a server wrote is text. Knows the
sign-in as data; knows no route.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from app import bounds
from app.core import links
from app.core.json.text import parse
from app.core.sign_in import ATTEMPTS, Check, SignIn, SignInState, Step, StepState, TokenFacts, Trip
from app.core.targets import HttpTarget
from app.core.times import moment
from app.web.kit import format, html
from app.web.kit.format import duration

if TYPE_CHECKING:
    from app.sessions import Workspace

STATES: Final[dict[SignInState, tuple[str, str, str]]] = {
    "needed": ("wait", "waiting", "Sign-in needed"),
    "preparing": ("busy", "running", "Reading metadata"),
    "waiting": ("wait", "waiting", "Waiting for you"),
    "exchanging": ("busy", "running", "Getting a token"),
    "signed_in": ("ok", "done", "Signed in"),
    "failed": ("x", "failed", "Sign-in failed"),
}
"""The sign, the look and the words of each state."""
STEP_STATES: Final[dict[StepState, tuple[str, str, str]]] = {
    "todo": ("todo", "dim", "not yet"),
    "running": ("busy", "ours", "running"),
    "done": ("ok", "ok", "done"),
    "failed": ("x", "bad", "failed"),
    "skipped": ("skip", "dim", "skipped"),
}
_HEADINGS: Final = {
    "unauthorized": "Sign in to this server",
    "scope": "More scopes needed",
    "expired": "Sign in again",
    "asked": "Sign in to this server",
}
_REGISTRATIONS: Final = {
    None: "",
    "pre-registered": "pre-registered",
    "metadata-document": "client ID metadata document",
    "dynamic": "dynamic registration",
}
_TIMES: Final = frozenset({"exp", "iat", "nbf", "auth_time"})
_OWN_CLIENT: Final = frozenset({"no-registration", "registration-refused", "wrong-redirect", "client-refused"})
"""Failures against which a client id of one's own is the likely remedy."""
_FORM: Final = "application/x-www-form-urlencoded"


class Fact(NamedTuple):
    """One name with its value."""

    name: str
    value: str
    note: str = ""


class Side(NamedTuple):
    """A request or a response, ready to be read."""

    line: str
    headers: tuple[tuple[str, str], ...]
    pairs: list[tuple[str, str]]
    """What a form says, by field; empty for another body."""
    text: str
    """Any other body."""


class Trips(NamedTuple):
    """One HTTP request of a step with what came back."""

    request: Side
    response: Side | None
    error: str
    where: str
    """The rest of the address at which the log has it; "" when it is no longer there."""


@dataclass(slots=True, frozen=True)
class StepRow:
    """One step, as the list has it."""

    step: Step
    waits: bool
    """Whether it is the person's turn."""
    logged: Mapping[int, str]
    """Where the log has its exchanges, by their seqs."""

    @property
    def look(self) -> tuple[str, str, str]:
        """Its sign, its colour and its word."""
        return ("wait", "theirs", "waiting for you") if self.waits else STEP_STATES[self.step.state]

    @property
    def open(self) -> bool:
        """What needs to be looked at stands open."""
        return self.step.state == "failed" or self.waits

    @property
    def line(self) -> str:
        """What happened, in one line."""
        step, trip = self.step, self.step.trip
        if step.state in ("failed", "skipped") and step.sentence:
            return step.sentence
        if self.waits:
            return "Open the sign-in page in a browser."
        if step.state == "todo" or trip is None:
            return ""
        return f"{trip.method} {trip.url.partition('?')[0]}"  # the query stands below it

    @property
    def is_wire(self) -> bool:
        """Whether the line is a request and not a sentence."""
        return bool(self.line) and self.step.trip is not None and self.line.startswith(f"{self.step.trip.method} ")

    @property
    def figures(self) -> str:
        """Status and time, at the end of the line."""
        trip = self.step.trip
        status = "" if trip is None or trip.status is None else str(trip.status)
        took = "" if self.step.took_ms is None else duration(self.step.took_ms)
        return ", ".join(filter(None, [status, took]))

    @property
    def checks(self) -> list[tuple[str, str, str, Check]]:
        """What was looked at: sign, colour, the word for those who listen."""
        looks = {True: ("ok", "ok", "holds"), False: ("x", "bad", "does not hold"), None: ("should", "dim", "noted")}
        return [(*looks[check.ok], check) for check in self.step.checks]

    @property
    def trips(self) -> list[Trips]:
        return [_trips(one, self.logged.get(one.exchange or 0, "")) for one in self.step.trips]

    @property
    def again(self) -> str:
        """What the button that runs it says."""
        return "Run" if self.step.state == "todo" else "Run again"


def _trips(trip: Trip, where: str) -> Trips:
    request = _side(f"{trip.method} {trip.url}", trip.request_headers, trip.request_body)
    response = None
    if trip.status is not None:
        response = _side(str(trip.status), trip.response_headers, trip.response_body)
    return Trips(request, response, trip.error, where)


def _side(line: str, headers: tuple[tuple[str, str], ...], body: str) -> Side:
    text = html.cut(body, bounds.SIGN_IN_BODY)
    media = next((value for name, value in headers if name.lower() == "content-type"), "")
    if text and (media.startswith(_FORM) or not headers):  # without headers it is what a browser sends
        return Side(line, headers, [_pair(one) for one in text.splitlines()], "")
    if text[:1] in ("{", "[") and text == body:
        read = parse(body.encode(errors="replace"))
        text = text if read.problem is not None or read.unread is not None else format.pretty(read.value)
    return Side(line, headers, [], text)


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition("=")
    return name, value


@dataclass
class SignInCard:
    """A sign-in of a session, as pages show it."""

    session: Workspace
    found: SignIn
    errors: list[str]
    """What was wrong with what somebody typed."""

    @property
    def base(self) -> str:
        return f"/s/{self.session.id}"

    @property
    def look(self) -> tuple[str, str, str]:
        return STATES[self.found.state]

    @property
    def heading(self) -> str:
        return self.look[2] if self.found.state == "failed" else _HEADINGS[self.found.reason]

    @property
    def why(self) -> str:
        """Why it is wanted, in one sentence."""
        found = self.found
        if found.reason == "scope":
            return f"The server answered 403: it wants more scopes. Attempt {found.attempt or 1} of {ATTEMPTS}."
        if found.reason == "expired":
            return "The server does not take the old token any more."
        return "" if found.reason == "asked" else "The server answered 401: it wants a token."

    @property
    def held(self) -> str:
        """What waits for it and then goes on by itself."""
        many = self.found.held
        return "" if not many else "One request waits." if many == 1 else f"{many} requests wait."

    @cached_property
    def link(self) -> links.Link | None:
        """Where the person's browser goes; None for what must not be opened (S17)."""
        return links.read(self.found.authorization_url) if self.found.state == "waiting" else None

    @property
    def warns(self) -> bool:
        """Whether it leads to this machine although the server is elsewhere."""
        server = links.read(self.found.server)
        return self.link is not None and self.link.loopback and not (server is not None and server.loopback)

    @property
    def issuer(self) -> str:
        """Who issues tokens, without the scheme."""
        return self.found.issuer.partition("://")[2] or self.found.issuer

    @property
    def registered(self) -> str:
        return _REGISTRATIONS[self.found.registration]

    @property
    def failed(self) -> Step | None:
        return self.found.failed_step

    @property
    def wants_client(self) -> bool:
        """Whether a client that somebody registers by hand is what helps."""
        return self.failed is not None and self.failed.code in _OWN_CLIENT

    @property
    def by_browser(self) -> bool:
        return self.found.grant == "authorization_code"

    @property
    def takes_token(self) -> bool:
        """Whether a token that somebody has may take its place."""
        return isinstance(self.session.target, HttpTarget)

    @property
    def rows(self) -> list[StepRow]:
        waits, known = self.found.state == "waiting", self.session.messages.exchanges()
        # One that carried a message is shown with it; the others stand together above the log.
        logged = {
            one.seq: f"/log/{one.message_seqs[0]}" if one.message_seqs else f"/log#http-{one.seq}" for one in known
        }
        return [StepRow(one, waits and one.id == "authorization", logged) for one in self.found.steps]

    # ---- the token

    @property
    def token(self) -> TokenFacts | None:
        return self.found.token

    @property
    def claims(self) -> list[Fact]:
        """What a JWT says of itself, one line each."""
        token, found = self.found.token, self.found
        if token is None or token.claims is None:
            return []
        return [Fact(name, *_claim(name, value, found)) for name, value in token.claims.items()]


def _claim(name: str, value: Any, found: SignIn) -> tuple[str, str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text, note = html.cut(text, bounds.SIGN_IN_CLAIM), ""
    if name in _TIMES and isinstance(value, int | float) and 0 < value < 1e11:
        note = f"{moment(value):%Y-%m-%d %H:%M:%S} UTC"
    elif name == "aud":
        named = value if isinstance(value, list) else [value]
        note = "this server" if found.resource in named else "another server than this one"
    elif name == "iss":
        note = "the issuer" if value == found.issuer else "another issuer than the one asked"
    return text, note


def card_of(session: Workspace, errors: list[str] | None = None) -> SignInCard | None:
    """The sign-in of a session; None where no server wanted one."""
    found = session.sign_in.current
    return None if found is None else SignInCard(session, found, errors or [])
