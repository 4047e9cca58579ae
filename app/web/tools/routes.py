"""The form of a tool: drawn from its input schema, filled from earlier calls, checked, and sent.

`tool` shows the page, `form` draws the form anew (a button of it, another alternative, Form or JSON), `check` says what
is wrong with JSON while it is typed, `call` sends. What does not fit comes back with sentences beside the fields, and
goes out only when the person says *Send anyway*; the call then says so. Arguments of earlier calls are those that the
session keeps. A heavy schema is drawn and checked in a thread (S38).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar
from urllib.parse import quote

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.core import forms
from app.core.calls import Call
from app.core.forms import MISSING, Entries
from app.core.json.text import Fault
from app.core.rules import catalogue
from app.core.tasks.running import Support
from app.core.wire import Finding
from app.sessions import Workspace
from app.web import views
from app.web.calls import card as call_views
from app.web.kit import html as show_as
from app.web.kit import request_bodies as bodies
from app.web.kit.errors import Fields, invalid, wants_json
from app.web.kit.frame import Argument, Context, arguments_of, text_of
from app.web.kit.lookup import listed, not_listed
from app.web.kit.responses import in_json, show

Mode = Literal["form", "json"]
Result = TypeVar("Result")

HEAVY = 64 * 1024
"""A schema or a form with more text than this is handled in a thread."""
_NOT_AN_OBJECT = "The arguments of a tool are a JSON object, like {}."


# ---------------------------------------------------------------------------------------------------------- contexts


@dataclass(slots=True)
class ToolAddress:
    """The tool that an address names."""

    session: Workspace
    key: str
    name: str
    schema: Any
    heavy: bool

    def href(self, verb: str) -> str:
        return f"/s/{self.session.id}/tools/{verb}/{quote(self.key, safe='~')}"

    def last(self) -> Call | None:
        """The newest call of this tool."""
        calls = call_views.recent_calls(self.session)
        return next((call for call in calls if call_views.is_call_of(call, self.name)), None)


@dataclass(slots=True)
class Drawn:
    """What is in the form at one moment, what it says, and what is wrong with it."""

    mode: Mode
    tree: forms.Field | None = None
    text: str = ""
    value: Any = MISSING
    unreadable: Fields = field(default_factory=dict)
    """What cannot be read as a value at all, by pointer."""
    empty: frozenset[str] = frozenset()
    """Where that is only an item without a value."""
    fault: Fault | None = None
    """Where the JSON text is broken, and with which words."""
    wrong: Fields = field(default_factory=dict)
    """What does not fit the schema, by pointer."""
    said: list[str] = field(default_factory=list)
    """What has no field to stand beside."""
    filled_from: str = ""
    """The number of the call whose arguments these are."""
    looked_at: bool = False
    """It was compared with the schema."""
    ttl: str = ""
    """How long a task may live, as it was typed."""
    ttl_wrong: str = ""

    @property
    def arguments(self) -> Any:
        return {} if self.value is MISSING else self.value

    def place(self) -> None:
        """Put what is wrong beside the fields; in the JSON box it becomes a list."""
        both = {**self.unreadable}
        for pointer, sentences in self.wrong.items():
            if pointer not in both:
                both[pointer] = sentences
        if self.mode == "form" and self.tree is not None:
            self.said = forms.place(self.tree, both)
        else:
            self.said = [f"{at}: {one}" if at else one for at, sentences in both.items() for one in sentences]


@dataclass(slots=True)
class ToolForm(Context):
    """The form as a part of the page."""

    template: ClassVar[str] = "tools/_form.html"
    part: ClassVar[str | None] = "tools/_form.html"

    form: Drawn
    name: str
    call_href: str
    form_href: str
    check_href: str
    unchecked: str
    last: str
    time_limit: str
    arguments: list[Argument]
    refused: bool
    can_force: bool
    support: Support
    """Whether it may be called as a task, and plainly."""
    speaks_tasks: bool
    """Whether there is anything to say about tasks here."""

    def as_json(self) -> dict[str, Any]:
        return {"mode": self.form.mode, "arguments": self.form.arguments, "errors": self.form.wrong}


@dataclass(slots=True)
class ToolPage(views.Tool):
    """One tool: what it says of itself, its form, and its recent calls."""

    template: ClassVar[str] = "tools/tool.html"
    tool_form: ToolForm

    def values(self) -> dict[str, Any]:
        return views.Tool.values(self) | self.tool_form.values()

    def as_json(self) -> dict[str, Any]:
        return {"tool": self.raw, "key": self.key}


@dataclass(slots=True)
class Checked(Context):
    """What is to be said about a JSON text while it is typed."""

    template: ClassVar[str] = "tools/_check.html"
    part: ClassVar[str | None] = "tools/_check.html"

    form: Drawn
    unchecked: str

    def as_json(self) -> dict[str, Any]:
        return {"unreadable": self.form.unreadable, "wrong": self.form.wrong}


# ----------------------------------------------------------------------------------------------------------- drawing


def weighs(value: Any, limit: int = HEAVY) -> bool:
    """Whether a value holds more text than `limit`; stops looking as soon as it knows."""
    total, stack = 0, [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            total += sum(len(key) for key in node) + 4 * len(node)
            stack.extend(node.values())
        elif isinstance(node, list):
            total += 2 * len(node)
            stack.extend(node)
        else:
            total += len(node) if isinstance(node, str) else 4
        if total > limit:
            return True
    return False


async def _off(heavy: bool, work: Callable[[], Result]) -> Result:
    return await anyio.to_thread.run_sync(work) if heavy else work()


def from_value(schema: Any, value: Any) -> Drawn:
    """The form for a value; for one that is no object the JSON box, where everything can stand."""
    if value is not MISSING and not isinstance(value, dict):
        return Drawn("json", text=forms.to_json_text(value), value=value)
    tree = forms.build(schema, value)
    return Drawn("form", tree=tree, value=value)


def from_form(schema: Any, form: Entries) -> Drawn:
    """The form as it was submitted, in either mode."""
    if form.first("_mode") == "json":
        text = form.first("_text") or ""
        typed = forms.from_json_text(text)
        drawn = Drawn("json", text=text, value=typed.value, fault=typed.fault)
        if typed.problem is not None:
            drawn.unreadable[""] = [typed.problem]
        return drawn
    tree = forms.build(schema, form=form)
    filled = forms.read(tree)
    return Drawn("form", tree=tree, value=filled.value, unreadable=filled.errors, empty=frozenset(filled.empty))


def checked(schema: Any, drawn: Drawn) -> Drawn:
    """The same, compared with the schema."""
    drawn.looked_at = True
    if drawn.mode == "json" and drawn.unreadable:
        return drawn
    if drawn.value is not MISSING and not isinstance(drawn.value, dict):
        drawn.wrong[""] = [_NOT_AN_OBJECT]
    for pointer, sentences in forms.validate(schema, drawn.arguments).items():
        drawn.wrong.setdefault(pointer, []).extend(one for one in sentences if one not in drawn.wrong.get(pointer, []))
    return drawn


def switched(schema: Any, drawn: Drawn, to: str) -> Drawn:
    """The other mode with the same arguments. What the other one could not say stays where it is, with the reason."""
    if drawn.mode == to:
        return drawn
    lost = {at: said for at, said in drawn.unreadable.items() if at not in drawn.empty}
    if lost:
        drawn.unreadable = lost
        drawn.place()
        return drawn
    if to == "json":
        return Drawn("json", text=forms.to_json_text(drawn.arguments), value=drawn.value)
    if not isinstance(drawn.arguments, dict):
        drawn.wrong[""] = [_NOT_AN_OBJECT]
        drawn.place()
        return drawn
    return from_value(schema, drawn.arguments)


def arguments_of_call(call: Call) -> Any:
    """The arguments that a call was made with; MISSING when it had none."""
    return (call.params or {}).get("arguments", MISSING)


def _unchecked(schema: Any) -> str:
    why = forms.unchecked(schema)
    return f"{why} The arguments are sent without a check." if why else ""


async def _part(found: ToolAddress, drawn: Drawn, *, refused: bool = False) -> ToolForm:
    last, options = found.last(), found.session.options
    support = found.session.client_tasks.support(found.name)
    can_force = refused and not (drawn.mode == "json" and bool(drawn.unreadable))
    return ToolForm(
        form=drawn,
        name=found.name,
        call_href=found.href("call"),
        form_href=found.href("form"),
        check_href=found.href("check"),
        unchecked=await _off(found.heavy, lambda: _unchecked(found.schema)),
        last=last.id.lstrip("c") if last is not None else "",
        time_limit=f"time limit {show_as.duration(options.request_timeout_ms)}"
        + (", renewed by progress" if options.reset_timeout_on_progress else ""),
        arguments=arguments_of(found.schema) if drawn.mode == "json" else [],
        refused=refused,
        can_force=can_force,
        support=support,
        speaks_tasks=found.session.client_tasks.capable.tools_call or support.said in ("required", "optional"),
    )


async def _answer(
    request: Request, found: ToolAddress, drawn: Drawn, status: int = 200, *, refused: bool = False
) -> Response:
    """The form alone for htmx, or the whole page with it."""
    part = await _part(found, drawn, refused=refused)
    if request.headers.get("hx-request") == "true":
        return await show(request, part, status)
    return await show(request, _page(found, part), status)


def _page(found: ToolAddress, part: ToolForm) -> ToolPage:
    base = views.tool(found.session, found.key)
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
    pairs = await bodies.pairs(request)
    return Entries(pairs), sum(len(text) for _, text in pairs) > HEAVY


# ---------------------------------------------------------------------------------------------------------- handlers


async def tool(request: Request) -> Response:
    """The page of a tool, its form filled as in its newest call, or as in the call `from`; `as=json` in the box."""
    found = await _find(request)
    if wants_json(request):
        return await show(request, _page(found, await _part(found, Drawn("json"))))
    wanted = request.query_params.get("from")
    call = found.session.calls.get(wanted) if wanted else found.last()
    if call is not None and not call_views.is_call_of(call, found.name):
        call = None
    value = MISSING if call is None or wanted == "none" else arguments_of_call(call)
    drawn = await _off(found.heavy or weighs(value), lambda: from_value(found.schema, value))
    if call is not None:
        drawn.filled_from = call.id.lstrip("c")
    if request.query_params.get("as") == "json":
        drawn = await _off(found.heavy, lambda: _in_json(found.schema, drawn))
    return await show(request, _page(found, await _part(found, drawn)))


def _in_json(schema: Any, drawn: Drawn) -> Drawn:
    """A form that nobody has touched, in the JSON box. Where there is nothing yet, a value to start from."""
    value = forms.skeleton(schema) if drawn.value is MISSING else drawn.value
    return Drawn("json", text=forms.to_json_text(value), value=value, filled_from=drawn.filled_from)


async def form(request: Request) -> Response:
    """Draw the form anew: one of its buttons, another alternative, the other mode, or earlier arguments."""
    found = await _find(request)
    entries, much = await _submitted(request)
    heavy = found.heavy or much
    fill = entries.first("_fill")
    if fill in {"last", "new"}:
        call = found.last() if fill == "last" else None
        value = arguments_of_call(call) if call is not None else MISSING
        drawn = await _off(heavy, lambda: from_value(found.schema, value))
        if call is not None:
            drawn.filled_from = call.id.lstrip("c")
        if entries.first("_mode") == "json":
            drawn = await _off(heavy, lambda: _in_json(found.schema, drawn))
        return await _answer(request, found, drawn)
    if operation := entries.first("_op"):
        forms.operate(entries, operation)

    def draw() -> Drawn:
        drawn = from_form(found.schema, entries)
        if to := entries.first("_to"):
            return switched(found.schema, drawn, to if to == "json" else "form")
        return drawn

    drawn = await _off(heavy, draw)
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
        return drawn, _unchecked(found.schema)

    return await show(request, Checked(*await _off(found.heavy or much, look)))


async def call(request: Request) -> Response:
    """Send it; 422 with sentences beside the fields when it does not fit, unless it is to be sent anyway."""
    found = await _find(request)
    if not bodies.is_form(request):
        raise invalid({"": ["Scripts call a tool by POST /s/{sid}/calls."]})
    entries, much = await _submitted(request)
    drawn = await _off(found.heavy or much, lambda: checked(found.schema, from_form(found.schema, entries)))
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
    started = found.session.start_call(
        "tools/call",
        {"name": found.name, "arguments": drawn.arguments},
        as_task=as_task,
        ttl=ttl,
        by=request.state.identity,
    )
    if faulty:
        found.session.calls.note(started, _sent_anyway(drawn))
    url = f"/s/{found.session.id}/calls/{started.id}"
    if wants_json(request):
        return in_json({"id": started.id, "url": url, "state": started.state}, 202, {"location": url})
    if request.headers.get("hx-request") != "true":
        return RedirectResponse(url, 303)
    if not entries.first("_refused"):
        return Response(status_code=204)
    # The sentences beside the fields are old now: the form comes back without them, and with what was typed.
    fresh = await _off(found.heavy or much, lambda: from_form(found.schema, entries))
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
