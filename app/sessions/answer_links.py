"""Answer links: somebody without an account answers one ask, once, and reaches nothing else.

A link is a random code, of which only the digest is kept. It ends with its first answer, when its time is up, when it
is taken back, and with its ask; for a while it can still say why it is over. Knows sessions and asks; knows no page.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from app import guest_bounds as bounds
from app.core.asks import Ask
from app.core.errors import Conflict, Gone, Invalid
from app.sessions.identity import Identity

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace

LinkState = Literal["open", "used", "expired", "revoked", "over"]
"""`over`: its ask was answered otherwise, taken back or lost, or its session is closed."""


@dataclass(slots=True)
class AnswerLink:
    """The way to one ask for whoever has its address."""

    key: bytes
    """The digest of its code."""
    session: Workspace
    ask: Ask
    made_by: str
    made_at: float
    expires_at: float
    name: str = ""
    """For whom it was made, when somebody said so."""
    state: Literal["open", "used", "revoked"] = "open"
    mark: bytes = b""
    """The digest of what the phone was given that used it."""

    def is_marked(self, mark: str) -> bool:
        """Whether this is the phone that used it."""
        return bool(self.mark) and hmac.compare_digest(self.mark, _digest(mark))

    @property
    def identity(self) -> Identity:
        """Who answers by it."""
        return Identity(f"guest-{self.key.hex()[:12]}", self.name or "by an answer link", "guest")


class AnswerLinks:
    """All links of this process, those that are over for a while too. Bounded: the oldest are forgotten first."""

    def __init__(self, wall: Callable[[], float], mark: str = "") -> None:
        self._wall, self._mark = wall, mark
        """`mark` begins every code: by it the proxy of a team finds the replica that has the ask."""
        self._links: OrderedDict[bytes, AnswerLink] = OrderedDict()

    def make(
        self, session: Workspace, ask: Ask, by: Identity, seconds: float, name: str = ""
    ) -> tuple[AnswerLink, str]:
        """A new link to an ask, and its code, which is said this once; one that there was is taken back. Raises Gone
        for what is not open, Invalid for what is not for guests."""
        if ask.kind == "roots":
            raise Invalid(
                "Roots are not for guests.", {"": ["Only forms, links and sampling can be answered by link."]}
            )
        if ask.state != "open" or session.read_only:
            raise Gone(ask.words())
        self.revoke(session, ask)
        code, now = self._mark + secrets.token_urlsafe(16), self._wall()
        until = now + min(seconds, bounds.LINK_SECONDS)
        made = AnswerLink(_digest(code), session, ask, by.name, now, min(until, ask.expires_at or until), name)
        self._links[made.key] = made
        while len(self._links) > bounds.LINKS:
            self._links.popitem(last=False)
        return made, code

    def find(self, code: str) -> AnswerLink | None:
        """The link with this code, also one that is over."""
        return self._links.get(_digest(code))

    def of(self, session: Workspace, ask: Ask) -> AnswerLink | None:
        """The newest link to an ask."""
        own = [link for link in self._links.values() if link.session is session and link.ask is ask]
        return own[-1] if own else None

    def state(self, link: AnswerLink) -> LinkState:
        """How a link stands now."""
        if link.state != "open":
            return link.state
        if link.session.closed or link.ask.state != "open":
            return "over"
        return "expired" if self._wall() >= link.expires_at else "open"

    def revoke(self, session: Workspace, ask: Ask) -> bool:
        """Take the link to an ask back; False when there was none that worked."""
        link = self.of(session, ask)
        if link is None or link.state != "open":
            return False
        link.state = "revoked"
        return True

    async def answer(self, link: AnswerLink, said: dict[str, Any]) -> str:
        """Send what a guest says, once; the mark of their phone. Raises Gone when the link is over, Invalid for what
        does not fit."""
        if self.state(link) != "open":
            raise Gone(link.ask.words())
        mark = secrets.token_urlsafe(16)
        link.state, link.mark = "used", _digest(mark)
        try:
            await link.session.asks.answer(link.ask, said, link.identity)
        except (Invalid, Conflict):
            link.state, link.mark = "open", b""  # nothing has left: it may be tried again
            raise
        return mark


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).digest()
