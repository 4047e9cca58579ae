"""Who is asking, in the public demo: nobody in particular. A signed cookie holds one visit together, for half an hour.

Nothing of a visitor is kept: what their cookie says is checked by its signature, with a key that ends with the process.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection

from starlette.datastructures import Headers

from app import guest_bounds as bounds
from app.core.rate import Rate
from app.remembered import Remembered
from app.sessions.identity import Identity
from app.settings import Settings
from app.web.door.denied import Denied
from app.web.door.visitors import Visitor, Visitors, presents_token

_OVER = "Your half hour is over, or this page is from an earlier visit. Begin again on the first page."


class PublicVisitors(Visitors):
    """The state behind the entrance of a public demo."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(settings, remembered=Remembered(None, logins=1), clock=clock)
        self._secure = (settings.public_url or "").startswith("https:")
        self.cookie_name = "__Host-parley_visit" if self._secure else f"parley_visit_{settings.port}"
        self._signing = secrets.token_bytes(32)
        self._begun: deque[float] = deque(maxlen=bounds.VISITS_PER_MINUTE)
        self._places = settings.limits.sessions
        self._rate = Rate(bounds.VISITS_PER_MINUTE // 2, 60, clock)
        self._from: dict[str, str] = {}
        """Of those who have a place: where they come from."""

    def begin(self, address: str, here: Collection[str]) -> tuple[Identity, str]:
        """A new visitor, and their cookie; `here` are those who have a place. Denied when too many come at once, or
        from one address: whoever throws their cookie away is counted there, and leaves half of the places to others."""
        now = self._clock()
        if address:
            for gone in self._from.keys() - here:
                del self._from[gone]
            if sum(where == address for where in self._from.values()) >= self._places // 2:
                words = "Many people try this from where you are. One of them has to leave before you can begin."
                raise Denied(429, "slow-down", words, headers={"retry-after": "60"})
            if wait := self._rate.take(address):
                words = f"Many people try this from where you are. Try again in {wait} seconds."
                raise Denied(429, "slow-down", words, headers={"retry-after": str(wait)})
        if len(self._begun) == self._begun.maxlen and now - self._begun[0] < 60:
            wait = max(1, math.ceil(60 - (now - self._begun[0])))
            words = f"Many people try this at the moment. Try again in {wait} seconds."
            raise Denied(429, "slow-down", words, headers={"retry-after": str(wait)})
        self._begun.append(now)
        said = f"{secrets.token_urlsafe(12)}.{int(now)}"
        identity = self._identity(said)
        if address:
            self._from[identity.id] = address
        return identity, self._cookie(self.cookie_name, f"{said}.{self._signed(said)}", "/")

    def recognise(self, headers: Headers, root: str) -> Visitor:
        """Whose visit this is. Denied when it is over, or never began."""
        if presents_token(headers):
            raise Denied(401, "signed-out", "There is no script access to a public demo.")
        for value in self._cookies(headers, self.cookie_name):
            said, _, signature = value.rpartition(".")
            began = said.rpartition(".")[2]
            right = hmac.compare_digest(signature.encode("utf-8", "replace"), self._signed(said).encode())
            if right and self._clock() - int(began) < bounds.VISIT_SECONDS:
                identity = self._identity(said)
                return Visitor(identity, browser=identity.id)
        stale = {"set-cookie": self.cleared("")} if self.has_cookie(headers) else {}
        raise Denied(401, "signed-out", _OVER, headers=stale)

    def gone(self) -> set[str]:
        """Nobody is signed out before their time; sessions end by themselves."""
        return set()

    @staticmethod
    def _identity(said: str) -> Identity:
        return Identity(f"visitor-{said}", "you")

    def _signed(self, said: str) -> str:
        return hmac.new(self._signing, said.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]

    def _cookie(self, name: str, value: str, path: str, age: int | None = None) -> str:
        return super()._cookie(name, value, "/", age) + ("; Secure" if self._secure else "")
