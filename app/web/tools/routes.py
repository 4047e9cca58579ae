"""Routes of tools: the list, the page of one, its form drawn anew, checked while it is typed, and sent.

`tool` shows the page, `form` draws the form anew (a button of it, another alternative, Form or JSON), `check` says what
is wrong with JSON while it is typed, `call` sends. What does not fit goes out only when the person says *Send anyway*;
the call then says so. Arguments of earlier calls are those that the session keeps.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.core import forms
from app.core.calls import Call
from app.core.forms import MISSING, Entries
from app.core.rules import catalogue
from app.core.wire import Finding
from app.sessions import Workspace
from app.web.calls.card import is_call_of
from app.web.calls.live import cards
from app.web.door.denied import invalid
from app.web.kit import request_bodies
from app.web.kit.responses import by_htmx, in_json, show, show_page, started, wants_json
from app.web.kit.words import text_of
from app.web.lists.keys import find_item, listed, not_listed
from app.web.lists.live import refetched
from app.web.lists.routes import read_again, read_on
from app.web.lists.view import Window
from app.web.live.page import page
from app.web.live.parts import View
from app.web.tools.form import (
    HEAVY,
    Checked,
    Drawn,
    ToolAddress,
    ToolForm,
    arguments_of_call,
    checked,
    from_form,
    from_value,
    in_json_box,
    off,
    switched,
    tool_form,
    unchecked_words,
    weighs,
)
from app.web.tools.page import ToolPage, tool_page, tools_json, tools_page


async def _answer(
    request: Request, found: ToolAddress, drawn: Drawn, status: int = 200, *, refused: bool = False
) -> Response:
    """The form alone for htmx, or the whole page with it."""
    part = await tool_form(found, drawn, refused=refused)
    if by_htmx(request):
        said = {"mode": drawn.mode, "arguments": drawn.arguments, "errors": drawn.wrong}
        return await show(request, part, lambda: said, status)
    return await show(request, lambda: _page(found, part), lambda: _json(found), status)


def _json(found: ToolAddress) -> dict[str, Any]:
    """The tool as the server listed it."""
    place = find_item(found.session.tools, found.key)
    if place is None:
        raise not_listed("tools")
    return {"tool": found.session.tools.items[place], "key": found.key}


def _page(found: ToolAddress, part: ToolForm) -> ToolPage:
    base = tool_page(found.session, found.key)
    if base is None:
        raise not_listed("tools")
    return ToolPage(**base.values(), tool_form=part)


async def _find(request: Request) -> ToolAddress:
    session: Workspace = request.state.session
    key, item = await listed(session, "tools", request.path_params["name"])
    schema = item.get("inputSchema", {"type": "object"})
    return ToolAddress(session, key, text_of(item.get("name")), schema, weighs(schema))


async def _submitted(request: Request) -> tuple[Entries, bool]:
    """What was posted, and whether it is much."""
    pairs = await request_bodies.pairs(request)
    return Entries(pairs), sum(len(text) for _, text in pairs) > HEAVY


# ---------------------------------------------------------------------------------------------------------- handlers


def _of_tool(view: View, call: Call) -> bool:
    listing = view.session.tools
    index = find_item(listing, view.of)
    item = listing.items[index] if index is not None else None
    return not call.quiet and is_call_of(call, item.get("name") if isinstance(item, dict) else None)


@page("tool", cards(_of_tool))
async def tool(request: Request) -> Response:
    """The page of a tool, its form filled as in its newest call, or as in the call `from`; `as=json` in the box."""
    found = await _find(request)
    if wants_json(request):
        return await in_json(lambda: _json(found))
    wanted = request.query_params.get("from")
    call = found.session.calls.get(wanted) if wanted else found.last()
    if call is not None and not is_call_of(call, found.name):
        call = None
    value = MISSING if call is None or wanted == "none" else arguments_of_call(call)
    drawn = await off(found.heavy or weighs(value), lambda: from_value(found.schema, value))
    if call is not None:
        drawn.filled_from = call.id.lstrip("c")
    if request.query_params.get("as") == "json":
        drawn = await off(found.heavy, lambda: in_json_box(found.schema, drawn))
    return await show_page(request, _page(found, await tool_form(found, drawn)))


async def form(request: Request) -> Response:
    """Draw the form anew: one of its buttons, another alternative, the other mode, or earlier arguments."""
    found = await _find(request)
    entries, much = await _submitted(request)
    heavy = found.heavy or much
    fill = entries.first("_fill")
    if fill in {"last", "new"}:
        call = found.last() if fill == "last" else None
        value = arguments_of_call(call) if call is not None else MISSING
        drawn = await off(heavy, lambda: from_value(found.schema, value))
        if call is not None:
            drawn.filled_from = call.id.lstrip("c")
        if entries.first("_mode") == "json":
            drawn = await off(heavy, lambda: in_json_box(found.schema, drawn))
        return await _answer(request, found, drawn)
    if operation := entries.first("_op"):
        forms.operate(entries, operation)

    def draw() -> Drawn:
        drawn = from_form(found.schema, entries)
        if to := entries.first("_to"):
            return switched(found.schema, drawn, to if to == "json" else "form")
        return drawn

    drawn = await off(heavy, draw)
    drawn.ttl = entries.first("_ttl") or ""
    return await _answer(request, found, drawn)


async def check(request: Request) -> Response:
    """What is wrong with the JSON as it stands now, with its place."""
    found = await _find(request)
    entries, much = await _submitted(request)
    entries.set_all("_mode", ["json"])

    def look() -> tuple[Drawn, str]:
        drawn = checked(found.schema, from_form(found.schema, entries))
        drawn.place()
        return drawn, unchecked_words(found.schema)

    said = Checked(*await off(found.heavy or much, look))
    return await show(request, said, lambda: {"unreadable": said.form.unreadable, "wrong": said.form.wrong})


async def call(request: Request) -> Response:
    """Send it; 422 with sentences beside the fields when it does not fit, unless it is to be sent anyway."""
    found = await _find(request)
    if not request_bodies.is_form(request):
        raise invalid({"": ["Scripts call a tool by POST /s/{sid}/calls."]})
    entries, much = await _submitted(request)
    drawn = await off(found.heavy or much, lambda: checked(found.schema, from_form(found.schema, entries)))
    as_task = bool(entries.first("_task"))
    ttl = _ttl(entries, drawn) if as_task else None
    if drawn.ttl_wrong:
        drawn.place()
        if wants_json(request):
            raise invalid({"/ttl": [drawn.ttl_wrong]})
        return await _answer(request, found, drawn, 422)
    faulty = bool(drawn.unreadable or drawn.wrong)
    no_json = drawn.mode == "json" and bool(drawn.unreadable)
    if faulty and (no_json or not entries.first("_force")):
        drawn.place()
        if wants_json(request):
            raise invalid({**drawn.wrong, **drawn.unreadable})
        return await _answer(request, found, drawn, 422, refused=True)
    sent = found.session.start_call(
        "tools/call",
        {"name": found.name, "arguments": drawn.arguments},
        as_task=as_task,
        ttl=ttl,
        by=request.state.identity,
    )
    if faulty:
        found.session.calls.note(sent, _sent_anyway(drawn))
    if wants_json(request) or not by_htmx(request) or not entries.first("_refused"):
        return await started(request, found.session, sent)
    # The sentences beside the fields are old now: the form comes back without them, and with what was typed.
    fresh = await off(found.heavy or much, lambda: from_form(found.schema, entries))
    fresh.ttl = drawn.ttl
    return await _answer(request, found, fresh)


def _ttl(entries: Entries, drawn: Drawn) -> int | None:
    """The TTL that was typed, in milliseconds; None when none was, or it cannot be read, and then the form says so."""
    drawn.ttl = (entries.first("_ttl") or "").strip()
    if not drawn.ttl:
        return None
    if drawn.ttl.isascii() and drawn.ttl.isdecimal() and len(drawn.ttl) < 16 and int(drawn.ttl) > 0:
        return int(drawn.ttl)
    drawn.ttl_wrong = "A whole number of milliseconds, like 60000, or nothing."
    return None


def _sent_anyway(drawn: Drawn) -> Finding:
    """A note on a call that was made although its arguments do not fit."""
    first = [f"`{at}` {said[0]}" if at else said[0] for at, said in (drawn.wrong | drawn.unreadable).items() if said]
    more = f" And {len(first) - 3} more." if len(first) > 3 else ""
    lost = " What could not be read was left out." if drawn.unreadable else ""
    return catalogue.misfit_arguments_sent(misfits=" ".join(first[:3])[:600] + more + lost)


@page("tools", refetched("tools", "tools"))
async def tools(request: Request) -> Response:
    session: Workspace = request.state.session
    window = Window.of(request.query_params)
    return await show(request, lambda: tools_page(session, window), lambda: tools_json(session))


async def refresh(request: Request) -> Response:
    """Ask the server for its list of tools once more."""
    return await read_again(request, "tools", "tools", tools_json)


async def more(request: Request) -> Response:
    """Ask the server for the next page of its tools."""
    return await read_on(request, "tools", "tools", tools_json)
