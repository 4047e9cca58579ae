"""What an address names, or the sentence that says it is not there. Knows sessions and calls; not pages."""

from __future__ import annotations

from starlette.requests import Request

from app.core.calls import Call
from app.core.errors import Conflict
from app.sessions import Session, Workspace
from app.web.door.denied import unknown


def client(request: Request) -> Session:
    """The session that this request names, in the role of a client. Raises Conflict when it only shows frames."""
    session = request.state.session
    if not isinstance(session, Session):
        raise Conflict("This session shows what was recorded, and connects to nothing. Open a new session for that.")
    return session


def call_of(request: Request) -> tuple[Workspace, Call]:
    """The session and the call that the address of this request names."""
    session: Workspace = request.state.session
    return session, call_with(session, request.path_params["cid"])


def call_with(session: Workspace, cid: str) -> Call:
    """The call of this session with this id."""
    found = session.calls.get(cid)
    if found is None:
        raise unknown("There is no such call. The oldest ones are forgotten first.")
    return found
