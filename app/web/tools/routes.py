"""Routes of tools: the list, the page of one, its form drawn anew, checked while it is typed, and sent.

`tool` shows the page, `form` draws the form anew (a button of it, another alternative, Form or JSON), `check` says what
is wrong with JSON while it is typed, `call` sends. What does not fit goes out only when the person says *Send anyway*;
the call then says so. Arguments of earlier calls are those that the session keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core import forms
from app.core.calls import Call
from app.core.errors import Conflict
from app.core.forms import MISSING, Entries
from app.core.rules import catalogue
from app.core.wire import Finding
from app.web.calls.card import CARDS, CallCard, cards_of, is_call_of, recent_calls
from app.web.calls.live import cards
from app.web.door.denied import invalid
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.responses import by_htmx, in_json, show, show_page, started, wants_json
from app.web.kit.starting import is_off, reconnected
from app.web.lists.keys import name_of
from app.web.lists.routes import ListRoutes
from app.web.live.page import page
from app.web.live.parts import View
from app.web.tools.form import (
    Checked,
    Drawn,
    ToolForm,
    arguments_of_call,
    asks,
    checked,
    from_form,
    from_value,
    in_json_box,
    last_call,
    off,
    switched,
    tool_form,
    unchecked_words,
)
from app.web.tools.tool import HEAVY, Tool, weighs

TOOLS = ListRoutes(Tool)


@dataclass(slots=True)
class ToolPage(ToolForm):
    """One tool: what it says of itself, its form, and its recent calls."""

    template: ClassVar[str] = "tools/tool.html"
    part: ClassVar[str | None] = None

    shell: Shell
    cards: list[CallCard]


def _page(part: ToolForm) -> ToolPage:
    tool, session = part.tool, part.tool.session
    recent = [call for call in recent_calls(session) if is_call_of(call, tool.said.get("name"))]
    return ToolPage(
        **part.values(),
        shell=shell(session, "tool", tool.label, of=tool.key, tool_key=tool.key),
        cards=cards_of(session, recent[:CARDS]),
    )


async def _answer(request: Request, tool: Tool, drawn: Drawn, status: int = 200, *, refused: bool = False) -> Response:
    """The form alone for htmx, or the whole page with it."""
    part = await tool_form(tool, drawn, refused=refused)
    if by_htmx(request):
        said = {"mode": drawn.mode, "arguments": drawn.arguments, "errors": drawn.wrong}
        return await show(request, part, lambda: said, status)
    return await show(request, lambda: _page(part), lambda: _json(tool), status)


def _json(tool: Tool) -> dict[str, Any]:
    """The tool as the server listed it."""
    return {"tool": tool.raw, "key": tool.key}


async def _submitted(request: Request) -> tuple[Entries, bool]:
    """What was posted, and whether it is much."""
    pairs = await request_bodies.pairs(request)
    return Entries(pairs), sum(len(text) for _, text in pairs) > HEAVY


# ---------------------------------------------------------------------------------------------------------- handlers


def _of_tool(view: View, call: Call) -> bool:
    return not call.quiet and is_call_of(call, name_of(view.session.tools, view.of))


@page("tool", cards(_of_tool))
async def tool(request: Request) -> Response:
    """The page of a tool, its form filled as in its newest call, as in the call `from`, or as in the saved request
    `saved`; `as=json` in the box."""
    tool = await Tool.named(request)
    if wants_json(request):
        return await in_json(lambda: _json(tool))
    kept = tool.session.saved.find(request.query_params.get("saved", ""))
    if kept is not None and (kept.method, kept.subject) == ("tools/call", tool.name):
        value = (kept.params or {}).get("arguments", MISSING)
        drawn = await off(tool.heavy or weighs(value), lambda: from_value(tool.schema, value))
        drawn.saved = kept
        if request.query_params.get("as") == "json":
            drawn = await off(tool.heavy, lambda: in_json_box(tool.schema, drawn))
        return await show_page(request, _page(await tool_form(tool, drawn)))
    wanted = request.query_params.get("from")
    call = tool.session.calls.get(wanted) if wanted else last_call(tool)
    if call is not None and not is_call_of(call, tool.name):
        call = None
    drawn = await _filled(tool, call, in_box=request.query_params.get("as") == "json")
    return await show_page(request, _page(await tool_form(tool, drawn)))


async def _filled(tool: Tool, call: Call | None, *, in_box: bool, much: bool = False) -> Drawn:
    """The form as in a call, or as it is in the beginning."""
    value = MISSING if call is None else arguments_of_call(call)
    drawn = await off(tool.heavy or much or weighs(value), lambda: from_value(tool.schema, value))
    if call is not None:
        drawn.filled_from = call.id.lstrip("c")
    return await off(tool.heavy or much, lambda: in_json_box(tool.schema, drawn)) if in_box else drawn


async def form(request: Request) -> Response:
    """Draw the form anew: one of its buttons, another alternative, the other mode, or earlier arguments."""
    tool = await Tool.named(request)
    entries, much = await _submitted(request)
    fill = entries.first("_fill")
    if fill in {"last", "new"}:
        call = last_call(tool) if fill == "last" else None
        return await _answer(
            request, tool, await _filled(tool, call, in_box=entries.first("_mode") == "json", much=much)
        )
    if operation := entries.first("_op"):
        forms.operate(entries, operation)

    def draw() -> Drawn:
        drawn = from_form(tool.schema, entries)
        if to := entries.first("_to"):
            return switched(tool.schema, drawn, to if to == "json" else "form")
        return drawn

    drawn = await off(tool.heavy or much, draw)
    drawn.ttl = entries.first("_ttl") or ""
    return await _answer(request, tool, drawn)


async def check(request: Request) -> Response:
    """What is wrong with the JSON as it stands now, with its place."""
    tool = await Tool.named(request)
    entries, much = await _submitted(request)
    entries.set_all("_mode", ["json"])

    def look() -> tuple[Drawn, str]:
        drawn = checked(tool.schema, from_form(tool.schema, entries))
        drawn.place()
        return drawn, unchecked_words(tool.schema)

    said = Checked(*await off(tool.heavy or much, look))
    return await show(request, said, lambda: {"unreadable": said.form.unreadable, "wrong": said.form.wrong})


async def call(request: Request) -> Response:
    """Send it; 422 with sentences beside the fields when it does not fit, unless it is to be sent anyway."""
    tool = await Tool.named(request)
    if not request_bodies.is_form(request):
        raise invalid({"": ["Scripts call a tool by POST /s/{sid}/calls."]})
    entries, much = await _submitted(request)
    drawn = await off(tool.heavy or much, lambda: checked(tool.schema, from_form(tool.schema, entries)))
    as_task = bool(entries.first("_task"))
    ttl = _ttl(entries, drawn) if as_task else None
    if drawn.ttl_wrong:
        drawn.place()
        if wants_json(request):
            raise invalid({"/ttl": [drawn.ttl_wrong]})
        return await _answer(request, tool, drawn, 422)
    faulty = bool(drawn.unreadable or drawn.wrong)
    if not wants_json(request) and not entries.first("_force") and asks(drawn):
        drawn.place()
        return await _answer(request, tool, drawn, 422)
    if faulty and (drawn.no_json or not entries.first("_force")):
        drawn.place()
        if wants_json(request):
            raise invalid({**drawn.wrong, **drawn.unreadable})
        return await _answer(request, tool, drawn, 422, refused=True)
    again = is_off(tool.session) and (bool(entries.first("_reconnect")) or not wants_json(request))
    if again and not await reconnected(request, tool.session):
        return await _not_reconnected(request, tool, entries, much=much)
    sent = tool.session.start_call(
        "tools/call",
        {"name": tool.name, "arguments": drawn.arguments},
        as_task=as_task,
        ttl=ttl,
        by=request.state.identity,
    )
    if faulty:
        tool.session.calls.note(sent, _sent_anyway(drawn))
    if wants_json(request) or not by_htmx(request) or not entries.first("_refused"):
        return await started(request, tool.session, sent)
    # The sentences beside the fields are old now: the form comes back without them, and with what was typed.
    fresh = await off(tool.heavy or much, lambda: from_form(tool.schema, entries))
    fresh.ttl = drawn.ttl
    return await _answer(request, tool, fresh)


async def _not_reconnected(request: Request, tool: Tool, entries: Entries, *, much: bool) -> Response:
    """The server did not come back, so nothing was sent. The banner says why, and the form stays as it was typed."""
    trouble = tool.session.info.trouble
    if wants_json(request):
        raise Conflict(f"Not sent: {'the connection was closed.' if trouble is None else trouble.message}")
    if by_htmx(request):
        return Response(status_code=204, headers={"parley-not-sent": "1"})  # the page keeps its form as it is
    typed = await off(tool.heavy or much, lambda: from_form(tool.schema, entries))
    typed.ttl = entries.first("_ttl") or ""
    return await _answer(request, tool, typed, 409)


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
