"""Where one can go from here: pages, tools, calls and open asks of a session, for the command palette."""

from __future__ import annotations

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
from app.web.lists.keys import item_keys
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
    return in_json({"items": items(session)})


def items(session: Workspace) -> list[dict[str, Any]]:
    """Open asks, pages, tools and recent calls, as links."""
    base = f"/s/{session.id}"
    found = [
        _item("ask", gist_of(ask) or ask.method, ask.method, f"{base}/asks/{ask.id}", "i-req")
        for ask in session.inbox.open
    ]
    pages = nav(session, counts(session))
    found += [_item("page", one.label, one.count, one.href, one.icon) for one in pages]
    found += [
        _item("page", "Inbox", "everything the server asked", f"{base}/inbox", "i-req"),
        _item("page", "Resource templates", "addresses with variables", f"{base}/resources/templates", "res"),
        _item("page", "Compose a request", "any method, by hand", f"{base}/compose", "run"),
        _item("page", "Connect", "change the server or the options", f"{base}/connect", "conn"),
        _item("page", "All sessions", "the first page", "/", "up"),
        _item("page", "About", "settings and limits", "/about", "loglist"),
    ]
    links = tool_links(session, TOOLS)
    found += [_item("tool", one.name, one.title or one.description, one.href, "tool") for one in links]
    found += _offered(session)
    found += [
        _item("call", f"{call.subject}", f"{call.id}, {call.state}", f"{base}/calls/{call.id}", "run")
        for call in recent_calls(session)[:CALLS]
    ]
    return found


_LISTS: Final[tuple[ListName, ...]] = ("resources", "templates", "prompts")


def _offered(session: Workspace) -> list[dict[str, Any]]:
    """Prompts, templates and resources, as far as they are known."""
    base, found = f"/s/{session.id}", []
    for name, kind, path in (("prompts", "prompt", "prompts"), ("templates", "template", "resources/templates")):
        listed = session.lists[name].items[:RESOURCES]  # type: ignore[index]
        for key, one in zip(item_keys(listed), listed, strict=True):
            item = one if isinstance(one, dict) else {}
            label = text_of(item.get("name")) or text_of(item.get("uriTemplate")) or key
            detail = text_of(item.get("title")) or text_of(item.get("uriTemplate")) or text_of(item.get("description"))
            found.append(
                _item(
                    kind,
                    label,
                    detail,
                    f"{base}/{path}/{quote(key, safe='~')}",
                    "prompt" if kind == "prompt" else "res",
                )
            )
    for one in session.lists["resources"].items[:RESOURCES]:
        if isinstance(one, dict) and isinstance(one.get("uri"), str):
            detail = text_of(one.get("title")) or text_of(one.get("name"))
            found.append(_item("resource", one["uri"], detail, resource_href(session, one["uri"]), "res"))
    return found


def _item(kind: str, label: Any, detail: str, href: str, icon: str) -> dict[str, Any]:
    """One place. What a server wrote is one short line here, with nothing invisible in it."""
    return {"kind": kind, "label": _line(str(label), 120), "detail": _line(detail, 160), "href": href, "icon": icon}


def _line(text: str, most: int) -> str:
    flat = " ".join(html.visible(text[: most * 4], strict=True).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
