"""Where one can go from here and what one can do: pages, acts, tools, calls, messages and open asks of a session, for
the command palette."""

from __future__ import annotations

from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.responses import Response

from app.core.wire import Message
from app.sessions import Workspace
from app.sessions.lists import ListName
from app.web.asks.card import gist_of
from app.web.calls.card import recent_calls
from app.web.door.reader import fixed, may
from app.web.kit import html
from app.web.kit.frame import counts, nav
from app.web.kit.responses import in_json
from app.web.lists.item import Item
from app.web.log import row
from app.web.prompts.routes import Prompt
from app.web.resources.routes import Resource
from app.web.resources.template import Template
from app.web.tools.tool import Tool

TOOLS: Final = 5_000
RESOURCES: Final = 2_000
_LOOK_SECONDS: Final = 1.0
CALLS: Final = 100
MESSAGES: Final = 200
"""The newest; what is older is found by the filter of the log."""


async def palette(request: Request) -> Response:
    """Everything that the palette offers, the most urgent first; names of the server are text."""
    session: Workspace = request.state.session
    # Looking is what has these lists read; what is not there within a moment is offered the next time.
    async with anyio.create_task_group() as group:
        for name in _LISTS:
            group.start_soon(session.lists.known, name, _LOOK_SECONDS)
    return await in_json(lambda: {"items": items(session)})


def items(session: Workspace) -> list[dict[str, Any]]:
    """Open asks, pages, acts, saved requests, tools, what else the server lists, recent calls and messages."""
    base = session.base
    asks = [
        _item("ask", gist_of(ask) or ask.method, ask.method, f"{base}/asks/{ask.id}", "i-req")
        for ask in session.inbox.open
    ]
    pages = [_item("page", one.label, one.count, one.href, one.icon) for one in nav(session, counts(session))]
    pages += [
        _item("page", "Inbox", "everything the server asked", f"{base}/inbox", "i-req"),
        _item("page", "Resource templates", "addresses with variables", f"{base}/resources/templates", "res"),
        _item("page", "Stage", "what the server asks, at the size of a projector", f"{base}/stage", "i-req"),
        _item("page", "Tour", "ten steps through the demo server", f"{base}/tour", "run"),
        *([] if fixed(session) or session.visited else _changing(base)),
        _item("page", "Home", "my servers and sessions", "/", "up"),
        *([] if session.visited else [_item("page", "About", "settings and limits", "/about", "loglist")]),
    ]
    if session.sign_in.current is None and may("act") and not session.visited:  # else it stands in the menu
        pages.append(_item("page", "Sign-in", "OAuth, step by step", f"{base}/sign-in", "key"))
    tools = [
        _item("tool", one.label, one.title or one.description, one.href(), "tool") for one in Tool.first(session, TOOLS)
    ]
    calls = [
        _item("call", call.subject, f"{call.id}, {call.state}", f"{base}/calls/{call.id}", "run")
        for call in recent_calls(session)[:CALLS]
    ]
    saved = [
        _item("saved", one.name, f"saved request, {one.subject}", f"{base}/saved/{one.id}", "run")
        for one in (session.saved.all if may("act") else [])
    ]
    messages = [
        _item("message", row.title(one), _about(one), f"{base}/log/{one.seq}", row.glyph(one))
        for one in reversed(session.messages.last(MESSAGES))
    ]
    return [*asks, *pages, *_acts(session), *saved, *tools, *_offered(session), *calls, *messages]


def _changing(base: str) -> list[dict[str, Any]]:
    return [
        _item("page", "Compose a request", "any method, by hand", f"{base}/compose", "run"),
        _item("page", "Connect", "change the server or the options", f"{base}/connect", "conn"),
    ]


def _about(message: Message) -> str:
    way = "sent" if message.direction == "out" else "received"
    return ", ".join(filter(None, [f"message {message.number}", way, message.gist]))


def _acts(session: Workspace) -> list[dict[str, Any]]:
    """What can be done from anywhere. With `post`, the fields that go to the address; with `press`, the button of the
    page that does it."""
    base, state = session.base, session.info.state
    acts: list[dict[str, Any]] = []

    def act(label: str, detail: str, path: str, icon: str, **fields: str) -> None:
        acts.append({**_item("act", label, detail, base + path, icon), "post": fields})

    exported = _item("act", "Export the log", "JSON lines", f"{base}/log.jsonl", "down")
    pressed = [("Switch the theme", "system, light, dark", "#theme", "sun"), ("Show the keys", "", "#keys", "find")]
    always = [exported, *({**_item("act", a, b, base, d), "press": c} for a, b, c, d in pressed)]
    if not may("act"):
        return always
    if session.target is not None and state != "connecting":
        act("Reconnect", "to the same server", "/connect", "conn", again="1")
    if state in {"ready", "connecting"}:
        act("Disconnect", "keep the session and its log", "/disconnect", "x")
    last = next((call for call in recent_calls(session) if call.settled), None)
    if last is not None and state == "ready":
        act(f"Call {last.subject} again", "with the same arguments", f"/calls/{last.id}/retry", "run")
    if session.recorder is not None and session.recorder.live:
        act("Stop recording", "keep what was recorded", "/record", "x", on="")
    else:
        act("Record this session", "from its first message on", "/record", "run", on="1")
    if session.inbox.settled:
        act("Dismiss answered asks", "", "/inbox/clear", "ok")
    act("Close this session", "end the connection; can be undone for 30 s", "/close", "x")
    return [*acts, *always]


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
