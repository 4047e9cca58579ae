"""Where one can go from here: pages, tools, calls and open asks of a session, for the command palette."""

from __future__ import annotations

from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.responses import Response

from app.sessions import Workspace
from app.sessions.lists import ListName
from app.web.asks.card import gist_of
from app.web.calls.card import recent_calls
from app.web.kit import html
from app.web.kit.frame import counts, nav
from app.web.kit.responses import in_json
from app.web.lists.item import Item
from app.web.prompts.routes import Prompt
from app.web.resources.routes import Resource
from app.web.resources.template import Template
from app.web.tools.tool import Tool

TOOLS: Final = 5_000
RESOURCES: Final = 2_000
_LOOK_SECONDS: Final = 1.0
CALLS: Final = 100


async def palette(request: Request) -> Response:
    """Everything that the palette offers, the most urgent first; names of the server are text."""
    session: Workspace = request.state.session
    # Looking is what has these lists read; what is not there within a moment is offered the next time.
    async with anyio.create_task_group() as group:
        for name in _LISTS:
            group.start_soon(session.lists.known, name, _LOOK_SECONDS)
    return await in_json(lambda: {"items": items(session)})


def items(session: Workspace) -> list[dict[str, Any]]:
    """Open asks, pages, tools, what else the server lists, and recent calls, as links."""
    base = f"/s/{session.id}"
    asks = [
        _item("ask", gist_of(ask) or ask.method, ask.method, f"{base}/asks/{ask.id}", "i-req")
        for ask in session.inbox.open
    ]
    pages = [_item("page", one.label, one.count, one.href, one.icon) for one in nav(session, counts(session))]
    pages += [
        _item("page", "Inbox", "everything the server asked", f"{base}/inbox", "i-req"),
        _item("page", "Resource templates", "addresses with variables", f"{base}/resources/templates", "res"),
        _item("page", "Compose a request", "any method, by hand", f"{base}/compose", "run"),
        _item("page", "Connect", "change the server or the options", f"{base}/connect", "conn"),
        _item("page", "All sessions", "the first page", "/", "up"),
        _item("page", "About", "settings and limits", "/about", "loglist"),
    ]
    tools = [
        _item("tool", one.label, one.title or one.description, one.href(), "tool") for one in Tool.first(session, TOOLS)
    ]
    calls = [
        _item("call", call.subject, f"{call.id}, {call.state}", f"{base}/calls/{call.id}", "run")
        for call in recent_calls(session)[:CALLS]
    ]
    return [*asks, *pages, *tools, *_offered(session), *calls]


_LISTS: Final[tuple[ListName, ...]] = ("resources", "templates", "prompts")


def _offered(session: Workspace) -> list[dict[str, Any]]:
    """Prompts, templates and resources, as far as they are known."""
    found: list[dict[str, Any]] = []
    kinds: tuple[tuple[type[Item], str], ...] = ((Prompt, "prompt"), (Template, "res"))
    for of, icon in kinds:
        for one in of.first(session, RESOURCES):
            uri = one.text("uriTemplate")
            detail = one.text("title") or uri or one.description
            found.append(_item(of.list_name[:-1], one.name or uri or one.key, detail, one.href(), icon))
    for one in Resource.first(session, RESOURCES):
        if isinstance(one.said.get("uri"), str):
            found.append(_item("resource", one.key, one.title, one.href(), "res"))
    return found


def _item(kind: str, label: Any, detail: str, href: str, icon: str) -> dict[str, Any]:
    """One place. What a server wrote is one short line here, with nothing invisible in it."""
    return {"kind": kind, "label": _line(str(label), 120), "detail": _line(detail, 160), "href": href, "icon": icon}


def _line(text: str, most: int) -> str:
    flat = " ".join(html.visible(text[: most * 4], strict=True).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
