"""Where one can go from here: pages, tools, calls and open asks of a session, for the command palette."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from app.sessions import Session
from app.web import render as show
from app.web import views
from app.web.answers import in_json
from app.web.shell import counts, nav

TOOLS: Final = 5_000
CALLS: Final = 100


async def palette(request: Request) -> Response:
    """Everything that the palette offers, the most urgent first; names of the server are text."""
    return in_json({"items": items(request.state.session)})


def items(session: Session) -> list[dict[str, Any]]:
    """Open asks, pages, tools and recent calls, as links."""
    base = f"/s/{session.id}"
    found = [
        _item("ask", ask.params.get("message") or ask.method, ask.method, f"{base}/asks/{ask.id}", "i-req")
        for ask in session.inbox.open
    ]
    pages = nav(session, counts(session))
    found += [_item("page", one.label, one.count, one.href, one.icon) for one in pages]
    found += [
        _item("page", "Inbox", "everything the server asked", f"{base}/inbox", "i-req"),
        _item("page", "Connect", "change the server or the options", f"{base}/connect", "conn"),
        _item("page", "All sessions", "the first page", "/", "up"),
        _item("page", "About", "settings and limits", "/about", "loglist"),
    ]
    links = views.tool_links(session, TOOLS)
    found += [_item("tool", one.name, one.title or one.description, one.href, "tool") for one in links]
    found += [
        _item("call", f"{call.subject}", f"{call.id}, {call.state}", f"{base}/calls/{call.id}", "run")
        for call in views.recent_calls(session)[:CALLS]
    ]
    return found


def _item(kind: str, label: Any, detail: str, href: str, icon: str) -> dict[str, Any]:
    """One place. What a server wrote is one short line here, with nothing invisible in it."""
    return {"kind": kind, "label": _line(str(label), 120), "detail": _line(detail, 160), "href": href, "icon": icon}


def _line(text: str, most: int) -> str:
    flat = " ".join(show.visible(text[: most * 4]).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
