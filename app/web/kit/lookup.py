"""What an address names, or the sentence that says it is not there. Knows sessions, calls and lists; not pages."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from app.core.calls import Call
from app.core.errors import Conflict
from app.sessions import Session, Workspace
from app.sessions.lists import ListName
from app.web.kit.errors import Denied, unknown
from app.web.kit.frame import find_tool, key_at

LOOK_SECONDS = 2.0
"""How long a page waits for a list that is still being read, or that nobody has looked at yet."""
_ITEMS: dict[ListName, str] = {"tools": "tool", "prompts": "prompt", "templates": "resource template"}


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


async def listed(session: Workspace, name: ListName, key: str) -> tuple[str, dict[str, Any]]:
    """The item of a list that a key stands for, with the key that is its own; waited for where the list may be on its
    way. An item that is no object counts as an empty one."""
    listing = session.lists[name]
    index = find_tool(listing, key)
    if index is None:
        listing = await session.lists.known(name, LOOK_SECONDS)
        index = find_tool(listing, key)
    if index is None:
        raise not_listed(name)
    item = listing.items[index]
    return key_at(listing, index), item if isinstance(item, dict) else {}


def not_listed(name: ListName) -> Denied:
    """The server has nothing of that name."""
    return unknown(f"The server has no {_ITEMS[name]} of that name. The list may have changed since.")
