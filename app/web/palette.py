"""Where one can go from here: pages, tools, calls and open asks of a session, for the command palette."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

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
from app.web.kit.words import text_of
from app.web.lists.keys import keys_of
from app.web.resources.routes import resource_href
from app.web.tools.links import tool_links

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
        _item("tool", one.name, one.title or one.description, one.href, "tool")
        for one in tool_links(session, TOOLS, brief=True)
    ]
    calls = [
        _item("call", call.subject, f"{call.id}, {call.state}", f"{base}/calls/{call.id}", "run")
        for call in recent_calls(session)[:CALLS]
    ]
    prompts = _listed(session, "prompts", "prompt", f"{base}/prompts", "prompt")
    templates = _listed(session, "templates", "template", f"{base}/resources/templates", "res")
    return [*asks, *pages, *tools, *prompts, *templates, *_resources(session), *calls]


_LISTS: Final[tuple[ListName, ...]] = ("resources", "templates", "prompts")


def _listed(session: Workspace, name: ListName, kind: str, base: str, icon: str) -> Iterator[dict[str, Any]]:
    """Prompts or templates, as far as they are known."""
    listing = session.lists[name]
    for key, one in zip(keys_of(listing), listing.items[:RESOURCES], strict=False):
        item = one if isinstance(one, dict) else {}
        label = text_of(item.get("name")) or text_of(item.get("uriTemplate")) or key
        detail = text_of(item.get("title")) or text_of(item.get("uriTemplate")) or text_of(item.get("description"))
        yield _item(kind, label, detail, f"{base}/{quote(key, safe='~')}", icon)


def _resources(session: Workspace) -> Iterator[dict[str, Any]]:
    for one in session.lists["resources"].items[:RESOURCES]:
        if isinstance(one, dict) and isinstance(one.get("uri"), str):
            detail = text_of(one.get("title")) or text_of(one.get("name"))
            yield _item("resource", one["uri"], detail, resource_href(session, one["uri"]), "res")


def _item(kind: str, label: Any, detail: str, href: str, icon: str) -> dict[str, Any]:
    """One place. What a server wrote is one short line here, with nothing invisible in it."""
    return {"kind": kind, "label": _line(str(label), 120), "detail": _line(detail, 160), "href": href, "icon": icon}


def _line(text: str, most: int) -> str:
    flat = " ".join(html.visible(text[: most * 4], strict=True).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
