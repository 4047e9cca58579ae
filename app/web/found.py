"""What an address names, or the sentence that says it is not there. Knows sessions and calls; nothing of pages."""

from __future__ import annotations

from starlette.requests import Request

from app.core.model import Call
from app.sessions import Session
from app.web.problems import unknown

LOOK_SECONDS = 2.0
"""How long a page waits for a list that is still being read, or that nobody has looked at yet."""


def call_of(request: Request) -> tuple[Session, Call]:
    """The session and the call that the address of this request names."""
    session: Session = request.state.session
    return session, call_with(session, request.path_params["cid"])


def call_with(session: Session, cid: str) -> Call:
    """The call of this session with this id."""
    found = session.calls.get(cid)
    if found is None:
        raise unknown("There is no such call. The oldest ones are forgotten first.")
    return found
