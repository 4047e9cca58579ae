"""Who is asking: launch codes and their cookies for people, one bearer token for scripts.

A launch code is random, works once and for ten minutes, and becomes an opaque random cookie; the next code is minted
as soon as one is used or expires, and handed to `announce`, which prints it. Of a cookie only its digest is kept, also
over a restart (`app/remembered.py`); a cookie whose digest is not there opens nothing. Codes and tokens are compared by
digest, in constant time. A cookie counts below the root of browsers and nowhere else. Knows no route.
"""

from __future__ import annotations

import hmac
import math
import re
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from app.remembered import Remembered
from app.remembered import digest as _digest
from app.settings import Settings
from app.web.door.denied import Denied
from app.web.door.reader import Reader
from app.web.door.rights import Needs

if TYPE_CHECKING:
    from app.sessions import Identity
    from app.sessions.identity import Level

_LOCAL = "local"
"""The one person of local mode. Logins of others would end with the process."""
_COOKIE_CHARACTERS = 64 * 1024
"""How much of the cookies of a request is looked at; the server takes no longer header anyway."""
_OWN_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path on this server: printable ASCII, no backslash, and not the beginning of another host's name."""


@dataclass(slots=True, frozen=True)
class Visitor:
    """Somebody we know: who, and by which browser (None: a script)."""

    identity: Identity
    browser: str | None
    renewal: str = ""
    """The cookie with a new date, when it is time for one."""
    read_only: bool = False
    """By a token that is for looking alone."""
    token: str = ""
    """The id of the token that a script of a team sent."""


class WrongAgain(Denied):
    """A wrong code or token beyond the limit: its answer is held back."""


class Visitors:
    """The state behind the entrance of one process."""

    def __init__(
        self,
        settings: Settings,
        *,
        root: str = "",
        remembered: Remembered | None = None,
        announce: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root = root
        """The path below which browsers live and their cookies count; "" where that is every path."""
        self.cookie_name = f"parley_{settings.port}"
        self._limits = settings.limits
        self._token = None if settings.token is None else _digest(settings.token)
        self._clock = clock
        self._announce = announce or (lambda code: None)
        self.remembered = remembered or Remembered(None, logins=settings.limits.logins)
        self._visitors: OrderedDict[bytes, Visitor] = OrderedDict()
        """Who came since the process began, by the digest of their cookie."""
        self._entered: OrderedDict[bytes, bytes] = OrderedDict()
        """Each code that was used, and the mark of the browser that used it."""
        self._failures: deque[float] = deque(maxlen=settings.limits.login_failures_per_minute)
        self._held = 0
        self._closing = anyio.Event()
        self.code = ""
        """The launch code that works now."""
        self._mint()

    # ------------------------------------------------------------------------------------------------ launch codes

    def login(self, code: str) -> tuple[str, str]:
        """Exchange the launch code for the cookie and the mark of a new browser. Denied when it is not the one that
        works now."""
        if self._clock() >= self._expires:
            self._renew()
        if not _same(_digest(code), _digest(self.code)):
            raise self._failed("That launch code is not valid: each works once, and for ten minutes. "
                               "The terminal that runs Parley shows a fresh address.")  # fmt: skip
        from app.sessions.identity import LOCAL

        cookie, mark = self.admit(LOCAL), secrets.token_urlsafe(32)
        self._entered[_digest(code)] = _digest(mark)
        while len(self._entered) > self._limits.logins:
            self._entered.popitem(last=False)
        self._renew()
        return cookie, mark

    def came_in_by(self, code: str, headers: Headers) -> bool:
        """Whether the browser that asks is the one that used this code. Its cookie is not sent to `/login`, so it has a
        mark there, which is worth nothing without the code."""
        mark = self._entered.get(_digest(code))
        return mark is not None and any(_same(_digest(one), mark) for one in self._cookies(headers, self._mark_name))

    def admit(self, identity: Identity) -> str:
        """Let a new browser in; the value of its cookie."""
        cookie = secrets.token_urlsafe(32)
        key = _digest(cookie)
        if identity.id == _LOCAL:
            self.remembered.admit(key, self.cookie_name)
        self._met(key, Visitor(identity, browser=secrets.token_hex(8)))
        return cookie

    def _met(self, key: bytes, visitor: Visitor) -> Visitor:
        self._visitors[key] = visitor
        while len(self._visitors) > self._limits.logins:
            self._visitors.popitem(last=False)
        return visitor

    def sign_out(self, headers: Headers, *, everywhere: bool = False) -> int:
        """Forget the browser that asks, or every one; how many. Their cookies open nothing from now on."""
        if everywhere:
            return self.remembered.end(None)
        self.remembered.look()
        return sum(self.remembered.end(_digest(one)) for one in self._cookies(headers, self.cookie_name))

    def gone(self) -> set[str]:
        """Browsers that came in here and are signed out since, perhaps by another Parley."""
        self.remembered.look()
        gone = {key: one.browser for key, one in self._visitors.items() if not self._counts(key, one)}
        for key in gone:
            del self._visitors[key]
        return {browser for browser in gone.values() if browser is not None}

    def _counts(self, key: bytes, visitor: Visitor) -> bool:
        return visitor.identity.id != _LOCAL or self.remembered.knows(key, self.cookie_name)

    async def keep_fresh(self) -> None:
        """Replace the launch code whenever it expires. Runs until cancelled."""
        while True:
            left = self._expires - self._clock()
            if left > 0:
                await anyio.sleep(left)
            else:
                self._renew()

    def _renew(self) -> None:
        self._mint()
        self._announce(self.code)

    def _mint(self) -> None:
        self.code = secrets.token_urlsafe(24)
        self._expires = self._clock() + self._limits.launch_code_seconds

    # ----------------------------------------------------------------------------------------------------- visitors

    async def known(self, headers: Headers, root: str) -> Visitor:
        """Who sent a request, as `recognise` says; whoever has to look further than into memory does that here."""
        return self.recognise(headers, root)

    async def not_here(self, scope: Scope, visitor: Visitor, sid: str) -> None:
        """Somebody asks for a session that this process does not hold. Raises Denied when more is known of it."""

    def recognise(self, headers: Headers, root: str) -> Visitor:
        """Who sent a request with these headers, below this root. Denied when nobody we know."""
        if presents_token(headers):
            return self._by_token(headers)
        visitor = self._by_cookie(headers) if root == self.root else None
        if visitor is not None:
            return visitor
        stale = self.has_cookie(headers)
        raise Denied(
            401,
            "signed-out",
            "Parley does not know this browser. Open the address that its terminal shows.",
            headers={"set-cookie": self.cleared(root)} if stale else {},
        )

    def _by_cookie(self, headers: Headers) -> Visitor | None:
        """The browser with this cookie. Another program on this machine may set cookies of the same name (cookies
        ignore ports), so each one is tried."""
        self.remembered.look()
        for value in self._cookies(headers, self.cookie_name):
            key = _digest(value)
            visitor = self._visitors.get(key)
            if visitor is None and self.remembered.knows(key, self.cookie_name):
                from app.sessions.identity import LOCAL

                visitor = self._met(key, Visitor(LOCAL, browser=secrets.token_hex(8)))
            if visitor is not None and self._counts(key, visitor):
                self._visitors.move_to_end(key)
                if self.remembered.use(key):
                    return replace(visitor, renewal=self._lasting(value))
                return visitor
        return None

    def _by_token(self, headers: Headers) -> Visitor:
        sent = headers.getlist("authorization")
        token = sent[0][7:].strip() if len(sent) == 1 else ""
        if self._token is not None and _same(_digest(token), self._token):
            from app.sessions.identity import SCRIPT

            return Visitor(SCRIPT, browser=None)
        why = "That token is not the one Parley was started with."
        if self._token is None:
            why = "Script access is off: Parley was started without PARLEY_TOKEN or --token-file."
        raise self._failed(why, headers={"www-authenticate": "Bearer"})

    def allow(self, visitor: Visitor, needs: Needs, method: str, level: Level = "own") -> None:
        """Raise Denied when somebody we know may not have what a route needs; `level` is what they have of the session
        in its path. One person has every right."""

    def reader(self, visitor: Visitor, level: Level) -> Reader:
        """For whom the answer is written."""
        return Reader()

    def still(self, visitor: Visitor) -> bool:
        """Whether somebody who was let in a moment ago would be now, as the same. Of one person nobody takes that."""
        return True

    def has_cookie(self, headers: Headers) -> bool:
        """Whether a cookie of our name came along, known or not."""
        return bool(self._cookies(headers, self.cookie_name))

    def give(self, response: Response, cookie: str, mark: str) -> None:
        """Put a new browser's cookie and mark into a response."""
        response.headers.append("set-cookie", self._lasting(cookie))
        response.headers.append("set-cookie", self._cookie(self._mark_name, mark, "/login"))

    def cleared(self, root: str) -> str:
        """The header that takes the cookie away."""
        return self._cookie(self.cookie_name, "", f"{root}/", age=0)

    def _lasting(self, cookie: str) -> str:
        """The header that gives a cookie. It outlives the browser when the login outlives Parley."""
        age = int(self.remembered.login_seconds) if self.remembered.lasts else None
        return self._cookie(self.cookie_name, cookie, f"{self.root}/", age)

    @property
    def _mark_name(self) -> str:
        return f"{self.cookie_name}_in"

    def _cookies(self, headers: Headers, wanted: str) -> list[str]:
        found, left = [], _COOKIE_CHARACTERS
        for line in headers.getlist("cookie"):
            for pair in line[:left].split(";"):
                name, _, value = pair.partition("=")
                if name.strip() == wanted:
                    found.append(value.strip())
            left = max(0, left - len(line))
        return found

    def _cookie(self, name: str, value: str, path: str, age: int | None = None) -> str:
        end = "" if age is None else f"; Max-Age={age}"
        return f"{name}={value}; HttpOnly; SameSite=Strict; Path={path}{end}"

    # ----------------------------------------------------------------------------------------------------- failures

    def _failed(self, why: str, headers: dict[str, str] | None = None) -> Denied:
        """Count a wrong code or token. Only wrong ones are ever slowed down: the right one still enters."""
        now = self._clock()
        while self._failures and now - self._failures[0] >= 60:
            self._failures.popleft()
        if len(self._failures) == self._failures.maxlen:
            wait = max(1, math.ceil(60 - (now - self._failures[0])))
            return WrongAgain(
                429,
                "slow-down",
                f"Too many wrong codes or tokens. Try again in {wait} seconds.",
                headers={"retry-after": str(wait)},
            )
        self._failures.append(now)
        return Denied(401, "signed-out", why, headers=headers)

    async def hold_back(self, refusal: WrongAgain) -> None:
        """Let whoever guesses wait for the answer. So many at a time and no more, for a wait holds a connection; who
        comes then pays with theirs, and guesses on by a new one."""
        if self._held >= self._limits.login_waiting:
            refusal.headers["connection"] = "close"
            return
        self._held += 1
        try:
            with anyio.move_on_after(self._limits.login_pause_seconds):
                await self._closing.wait()
        finally:
            self._held -= 1

    def close(self) -> None:
        """The process ends: nobody waits any more."""
        self._closing.set()


def presents_token(headers: Headers) -> bool:
    """Whether this request comes with a bearer token, right or wrong. Then cookies mean nothing."""
    return headers.get("authorization", "")[:7].lower() == "bearer "


def own_path(text: str) -> str:
    """Where to go after the login: a path of this server, else the home page (S18)."""
    return text if _OWN_PATH.fullmatch(text) else "/"


def _same(one: bytes, other: bytes) -> bool:
    return hmac.compare_digest(one, other)
