"""What every page shares: the template engine, JSON and HTML of a context, labels in words, and the shell around it.

One URL, two representations: `render` asks a context for its template or for `as_json`, whose field names scripts
rely on. Knows the session; knows no route and no page of its own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, ClassVar, Literal
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from jinja2.filters import do_xmlattr
from jinja2.nodes import EvalContext
from jinja2.utils import pass_eval_context
from starlette.requests import Request
from starlette.responses import Response

from app import secrecy
from app.core.figures import grouped, measured
from app.core.lane import apart
from app.core.lists import Listing
from app.core.targets import AnyTarget, DemoTarget, HttpTarget, StdioTarget
from app.core.tasks.running import support_of
from app.core.times import wire_time
from app.core.wire import Message
from app.sessions import Workspace
from app.web.asks import card as ask_views
from app.web.asks.card import InboxView
from app.web.door.root import at, root
from app.web.kit import html as show
from app.web.kit.errors import wants_json
from app.web.kit.html import Html

RAIL_TOOLS = 200

# ------------------------------------------------------------------------------------------------------- templates

_ADDRESSES = frozenset(
    {"href", "src", "action", "formaction", "hx-get", "hx-post", "hx-sse:connect"}
    | {"data-base", "data-complete", "data-copy", "data-form", "data-root", "data-src"}
)
"""Attributes that hold an address."""
_ADDRESS = re.compile(rf'(\s(?:{"|".join(sorted(_ADDRESSES))})=")(?:(?=/)|{{{{(.+?)}}}})')


class Rooted(Extension):
    """Every address in a template gets the root of whoever asked in front of it, when it is one of ours.

    Here and not by each template, so that none can forget it: `href="/about"` and `href="{{ one.href }}"` are written
    as if Parley began at `/`.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return _ADDRESS.sub(
            lambda found: f"{found[1]}{{{{ ({found[2]})|at }}}}" if found[2] else f"{found[1]}{{{{ root() }}}}", source
        )


@pass_eval_context
def _attributes(context: EvalContext, values: dict[str, Any]) -> str:
    """`xmlattr`, with the root before addresses."""
    return do_xmlattr(context, {name: at(one) if name in _ADDRESSES else one for name, one in values.items()})


class Exact(str):
    """Text that goes into a form field and comes back: nothing in it may be written out as an escape."""

    __slots__ = ()


class Name(str):
    """What a server calls something: even what is ordinary in other texts is marked, so that two names differ (H08)."""

    __slots__ = ()


def _finalized(value: Any) -> Any:
    """Nothing that a template writes can hide or fill the page, unless it says that it must be exact."""
    if type(value) is str:
        return show.marked(show.cut(value))
    if isinstance(value, Name):
        return show.marked(show.cut(value, show.MAX_NAME), strict=True)
    return show.exact(value) if isinstance(value, Exact) else value


jinja = Environment(
    loader=FileSystemLoader(show.directory("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    extensions=[Rooted],
    finalize=_finalized,
)
jinja.filters.update(
    size=show.size,
    number=grouped,
    clock=show.clock,
    time_of_day=show.time_of_day,
    wire_time=wire_time,
    duration=show.duration,
    prose=show.prose,
    gist=show.gist,
    plural=show.plural,
    figure=measured,
)


jinja.filters.update(exact=Exact, name=Name, at=at, xmlattr=_attributes)
jinja.globals.update(asset=show.asset, icons=show.ICONS, root=root, MASK=secrecy.MASK, AGAIN=secrecy.AGAIN)


def fragment(template: str, /, **context: Any) -> Html:
    """One template as markup; parts for the stream and for htmx."""
    return show.rendered(jinja.get_template(template).render(context))


@dataclass(slots=True)
class Context:
    """The base of every context: which page it fills, which part stands for it, and its JSON."""

    template: ClassVar[str]
    part: ClassVar[str | None] = None

    def as_json(self) -> dict[str, Any]:
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(slots=True)
class Twofold(Context):
    """A context that makes only what is asked for: the values of its template, or its JSON (H12)."""

    page: Callable[[], dict[str, Any]]
    json: Callable[[], dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return self.json()

    def values(self) -> dict[str, Any]:
        return self.page()


def json_bytes(value: Any) -> bytes:
    """JSON for a script: plain ASCII, so that nothing in it can break on the way; never NaN."""
    try:
        return _json(value).encode()
    except ValueError:
        return _json(_finite(value)).encode()


async def json_bytes_apart(value: Any) -> bytes:
    """The same; what is large is written in a thread, and so that everybody else can run meanwhile."""
    return json_bytes(value) if _weight(value, _LARGE) < _LARGE else await apart(_json_in_pieces, value)


_LARGE = 2_000
_PIECE = 500
"""Values that are written as JSON at once. C does it, and nobody else runs until it is done."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _json_in_pieces(value: Any) -> bytes:
    out: list[str] = []
    try:
        _write_in_pieces(value, out)
    except ValueError:
        out.clear()
        _write_in_pieces(_finite(value), out)
    return "".join(out).encode()


def _write_in_pieces(value: Any, out: list[str]) -> None:
    """A container with much in it child by child, small neighbours together; all else at once."""
    if not isinstance(value, dict | list | tuple) or not value or _weight(value, _PIECE) < _PIECE:
        out.append(_json(value))
        return
    named = isinstance(value, dict)
    out.append("{" if named else "[")
    held: list[Any] = []
    room, first = _PIECE, True

    def written(text: str) -> None:
        nonlocal first
        out.append(text if first else "," + text)
        first = False

    def flush() -> None:
        nonlocal room
        if held:
            written(_json(dict(held) if named else held)[1:-1])
            held.clear()
        room = _PIECE

    for each in value.items() if isinstance(value, dict) else value:
        child = each[1] if named else each
        weight = _weight(child, _PIECE)
        if weight > room:
            flush()
        if weight < _PIECE:
            held.append(each)
            room -= weight
            continue
        written(f"{_json(each[0])}:" if named else "")
        _write_in_pieces(child, out)
    flush()
    out.append("}" if named else "]")


def _weight(value: Any, most: int) -> int:
    """How many values are in a value, itself counted, a long text as many; no more than `most` are looked at."""
    count, stack = 0, [value]
    while stack and count < most:
        node = stack.pop()
        count += 1
        if isinstance(node, str):
            count += len(node) >> 10
        elif isinstance(node, dict):
            stack += islice(node.values(), most)
        elif isinstance(node, list | tuple):
            stack += islice(node, most)
    return count


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


async def render(
    request: Request, context: Context, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """The context as JSON, as a part (htmx asked), or as a page."""
    extra = {"Vary": "Accept, HX-Request", "Cache-Control": "no-store", **(headers or {})}
    if wants_json(request):
        return Response(json_bytes(context.as_json()), status, extra, "application/json")
    wanted_part = request.headers.get("hx-request") == "true" and context.part is not None
    html = fragment(context.part if wanted_part and context.part else context.template, **context.values())
    return Response(show.page_bytes(html), status, extra, "text/html; charset=utf-8")


# ------------------------------------------------------------------------------------------------- words and labels

STATE_WORDS = {
    "none": "not connected",
    "connecting": "connecting",
    "ready": "connected",
    "lost": "connection lost",
    "closed": "disconnected",
}
LAMPS = {"none": "", "connecting": "busy", "ready": "ready", "lost": "lost", "closed": ""}
CALL_WORDS = {
    "running": ("busy", "Running"),
    "waiting": ("wait", "Waiting for you"),
    "done": ("ok", "Done"),
    "failed": ("x", "Failed"),
    "cancelled": ("x", "Cancelled"),
}
LEVEL_WORDS = {"must": "Breaks a MUST.", "should": "Against a SHOULD.", "note": "Note."}
jinja.globals.update(CALL_WORDS=CALL_WORDS, LEVEL_WORDS=LEVEL_WORDS, STATE_WORDS=STATE_WORDS, LAMPS=LAMPS)


def transport_words(target: AnyTarget | None) -> str:
    """How the server is reached, in a word or two."""
    if isinstance(target, HttpTarget):
        return "HTTP with SSE" if target.transport == "sse" else "streamable HTTP"
    return "demo, stdio" if isinstance(target, DemoTarget) else "stdio" if target is not None else ""


def target_json(target: AnyTarget | None) -> dict[str, Any] | None:
    """A target for scripts and pages, with `•••` where a secret stands. Of variables and headers only the names."""
    if target is None:
        return None
    if isinstance(target, StdioTarget):
        command, *args = target.shown_argv
        return {
            "transport": "stdio",
            "command": command,
            "args": args,
            "cwd": target.cwd,
            "env": sorted(target.env),
        }
    if isinstance(target, HttpTarget):
        return {"transport": target.transport, "url": target.shown_url, "headers": sorted(target.headers)}
    return {"transport": "demo"}


# -------------------------------------------------------------------------------------------------- keys of the tools

_INDEX = re.compile(r"~(\d{1,6})")


def _speakable(name: Any) -> bool:
    if not isinstance(name, str) or not name or len(name) > 500 or _INDEX.fullmatch(name):
        return False
    if show.visible(name, strict=True) != name or any(mark in name for mark in "\t\r\n"):
        return False
    return not any(part in {".", ".."} for part in re.split(r"[/\\]", name))


def tool_keys(items: list[Any]) -> list[str]:
    """How each tool is addressed: by its name, or as `~N` where the name is empty, ambiguous or unfit for a path."""
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    seen: dict[Any, int] = {}
    for name in names:
        if isinstance(name, str):
            seen[name] = seen.get(name, 0) + 1
    return [
        name if _speakable(name) and seen[name] == 1 and isinstance(name, str) else f"~{index}"
        for index, name in enumerate(names)
    ]


def keys_of(listing: Listing) -> list[str]:
    """The keys of a list that is complete, made once."""
    if listing.keys is None or len(listing.keys) != len(listing.items):
        listing.keys = tool_keys(listing.items)
    return listing.keys


def key_at(listing: Listing, index: int) -> str:
    """How one item is addressed; without making the keys of all."""
    item = listing.items[index]
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) and listing.alone(name) and _speakable(name) else f"~{index}"


def find_tool(listing: Listing, key: str) -> int | None:
    """The index of the item that `key` names; None when there is none."""
    found = _INDEX.fullmatch(key)
    if found:
        return int(found[1]) if int(found[1]) < len(listing.items) else None
    return listing.place(key) if listing.alone(key) and _speakable(key) else None


@dataclass(slots=True, frozen=True)
class ToolLink:
    """One tool in a list: what it calls itself, and where its page is."""

    key: str
    name: str
    title: str
    description: str
    href: str
    notes: tuple[str, ...] = ()
    arguments: str = ""
    task: str = ""
    """Whether it runs as a task, in words; "" when it says nothing of that."""


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def tool_link(session: Workspace, key: str, tool: dict[str, Any], *, brief: bool = False) -> ToolLink:
    """One tool of a session as a link."""
    name = text_of(tool.get("name"))
    hints = tool.get("annotations")
    capable = session.client_tasks.capable
    return ToolLink(
        key=key,
        task=support_of(tool, capable).badge if capable.tools_call else "",
        name=name or f"(tool {key[1:]}, without a name)",
        title=text_of(tool.get("title")) or (text_of(hints.get("title")) if isinstance(hints, dict) else ""),
        description=text_of(tool.get("description")),
        href=f"/s/{session.id}/tools/{quote(key, safe='~')}",
        notes=() if brief else annotation_words(hints),
        arguments="" if brief else ", ".join(one.name for one in arguments_of(tool.get("inputSchema"))[:12]),
    )


def tool_links(session: Workspace, limit: int | None = None, *, brief: bool = False) -> list[ToolLink]:
    """The tools of a session as links; in brief only what they are called."""
    items = session.tools.items if limit is None else session.tools.items[:limit]
    return [
        tool_link(session, key, item if isinstance(item, dict) else {}, brief=brief)
        for key, item in zip(keys_of(session.tools), items, strict=False)
    ]


_HINTS = {
    "readOnlyHint": ("only reads", "changes things"),
    "destructiveHint": ("may destroy", "does not destroy"),
    "idempotentHint": ("repeatable", "not repeatable"),
    "openWorldHint": ("reaches outside", "stays inside"),
}


def annotation_words(hints: Any) -> tuple[str, ...]:
    """What the server says about a tool, in words."""
    if not isinstance(hints, dict):
        return ()
    return tuple(
        words[0] if hints[key] else words[1] for key, words in _HINTS.items() if isinstance(hints.get(key), bool)
    )


@dataclass(slots=True, frozen=True)
class Argument:
    """One argument of a tool, in words."""

    name: str
    words: str
    required: bool
    title: str
    description: str
    default: str


def arguments_of(schema: Any) -> list[Argument]:
    """The arguments that an input schema names; [] when it is no object schema."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    wanted = schema.get("required")
    required = {one for one in wanted if isinstance(one, str)} if isinstance(wanted, list) else set()
    return [
        Argument(
            name=show.gist(name, show.MAX_KEY) if len(name) > show.MAX_KEY else name,
            words=show.type_words(sub),
            required=name in required,
            title=text_of(sub.get("title")) if isinstance(sub, dict) else "",
            description=text_of(sub.get("description")) if isinstance(sub, dict) else "",
            default=show.gist(sub["default"], 60) if isinstance(sub, dict) and "default" in sub else "",
        )
        for name, sub in list(properties.items())[:200]
    ]


def list_of(values: dict[str, Any], name: str) -> list[str]:
    found = values.get(name)
    return [str(one) for one in found] if isinstance(found, list) else [] if found is None else [str(found)]


# --------------------------------------------------------------------------------------------------------- the shell


@dataclass(slots=True, frozen=True)
class NavItem:
    """One line of the rail."""

    key: str
    label: str
    icon: str
    href: str
    count: str
    why: str = ""
    """Why there is nothing behind it, when the server does not offer it."""
    pages: tuple[str, ...] = ()
    """The pages that belong to it besides its own."""

    def holds(self, page: str) -> bool:
        return page == self.key or page in self.pages


def counts(session: Workspace) -> dict[str, str]:
    """The numbers of the rail and of the drawer, by element id."""
    log = session.messages
    listed = [call for call in session.calls.values() if not call.quiet]
    running = sum(not call.settled for call in listed)
    return {
        "n-tools": _many(session, "tools"),
        "n-resources": _many(session, "resources"),
        "n-prompts": _many(session, "prompts"),
        "n-logging": grouped(session.server_log.count) if session.server_log.count else "",
        "n-calls": (f"{running} running of " if running else "") + grouped(len(listed)) if listed else "",
        "n-tasks": grouped(tasks) if (tasks := len(session.asks.tasks) + len(session.client_tasks.tasks)) else "",
        "inbox-sum": ask_views.summary(session),
        "inbox-refused": ask_views.refused_words(session),
        "n-roots": grouped(len(session.roots)) if session.roots else "",
        "n-log": grouped(log.count) if log.count else "",
        "n-stderr": grouped(own) if (own := session.stderr.count - session.stderr.by_probe) else "",
        "log-count": grouped(log.count),
        "log-sum": f"{grouped(log.inbound)} in, {grouped(log.outbound)} out, "
        f"{show.plural(log.findings_total, 'finding')}",
    }


def _many(session: Workspace, name: Literal["tools", "resources", "prompts"]) -> str:
    """How many of a list are known; "" until somebody has looked."""
    listing = session.lists[name]
    return "" if listing.at is None else grouped(len(listing.items)) + ("+" if listing.next_cursor else "")


def figures(session: Workspace) -> dict[str, str]:
    """The numbers of the overview, by element id."""
    log = session.messages
    traffic = f"{show.plural(log.count, 'message')}, {show.size(log.bytes_total)}"
    return {"traffic": traffic, "findings-total": grouped(log.findings_total)}


@dataclass(slots=True)
class Shell:
    """What surrounds every page of a session: top bar, rail, inbox, drawer, stream."""

    base: str
    page: str
    title: str
    seq: int
    label: str
    state: str
    version: str
    transport: str
    target_label: str
    lead: str
    waiting: int
    nav: list[NavItem]
    tools: list[ToolLink]
    tools_total: int
    tool_key: str | None
    numbers: dict[str, str]
    earlier: int | None
    stream_url: str
    trouble: str
    session: Workspace
    messages: list[Message]

    @property
    def rows(self) -> Html:
        """The rows of the drawer; made when a template asks, for JSON never does."""
        return log_rows(self.session, self.messages)

    @property
    def inbox(self) -> InboxView:
        """The inbox column, likewise."""
        return ask_views.inbox_view(self.session)

    @property
    def parade(self) -> str:
        """Where the demo server is told to ask everything; "" for any other server."""
        return f"{self.base}/tools/parade" if isinstance(self.session.target, DemoTarget) else ""


def wheretext_of(session: Workspace) -> tuple[str, str, str]:
    """Version, transport and lead line of the current connection."""
    info = session.info
    version = info.protocol_version or "" if info.state in {"ready", "lost"} else ""
    lead = STATE_WORDS[info.state]
    if info.state == "ready":
        server = info.server_info if isinstance(info.server_info, dict) else {}
        said = text_of(server.get("version"))
        parts = [
            said[:40],
            f"pid {info.pid}" if info.pid is not None else "",
            lead if not said and not info.pid else "",
        ]
        lead = ", ".join(part for part in parts if part)
    return version, transport_words(session.target), lead


def log_rows(session: Workspace, messages: list[Message], *, found: bool = False) -> Html:
    """Rows of the log, ready to insert; those that a search found have ids of their own."""
    base, log = f"/s/{session.id}", session.messages
    return show.markup(show.log_row(one, log.findings(one.seq), base, found=found) for one in messages)


def nav(session: Workspace, numbers: dict[str, str]) -> list[NavItem]:
    """The rail. What the server does not offer is grey and says why; its page teaches what would make it appear."""
    base, info = f"/s/{session.id}", session.info

    def why(capability: str) -> str:
        if info.state != "ready" or info.offers(capability):
            return ""
        return f"The server did not declare {capability}."

    kin = ("resource", "templates", "template")
    return [
        NavItem("overview", "Overview", "conn", base, ""),
        NavItem("tools", "Tools", "tool", f"{base}/tools", numbers["n-tools"], why("tools"), ("tool",)),
        NavItem("resources", "Resources", "res", f"{base}/resources", numbers["n-resources"], why("resources"), kin),
        NavItem("prompts", "Prompts", "prompt", f"{base}/prompts", numbers["n-prompts"], why("prompts"), ("prompt",)),
        NavItem("calls", "Calls", "run", f"{base}/calls", numbers["n-calls"], "", ("call", "compose")),
        NavItem("tasks", "Tasks", "task", f"{base}/tasks", numbers["n-tasks"], "", ("task",)),
        NavItem("roots", "Roots", "root", f"{base}/roots", numbers["n-roots"]),
        *(
            [NavItem("subscriptions", "Subscriptions", "i-not", f"{base}/subscriptions", "")]
            if session.wire.listens
            else []
        ),
        NavItem("log", "Log", "loglist", f"{base}/log", numbers["n-log"]),
        NavItem("logging", "Logging", "i-not", f"{base}/logging", numbers["n-logging"], why("logging")),
        NavItem("stderr", "Stderr", "err", f"{base}/stderr", numbers["n-stderr"]),
    ]


def shell(
    session: Workspace,
    page: str,
    title: str,
    *,
    of: str = "",
    tool_key: str | None = None,
    messages: list[Message] | None = None,
    rows: int = 200,
) -> Shell:
    """The surroundings of one page, at this moment; the stream goes on from `seq`."""
    seq = session.events.seq
    version, transport, lead = wheretext_of(session)
    numbers = counts(session)
    visible = session.messages.last(rows) if messages is None else messages
    first = session.messages.first_seq
    query = {"since": str(seq), "page": page} | ({"of": of} if of else {})
    return Shell(
        base=f"/s/{session.id}",
        page=page,
        title=title,
        seq=seq,
        label=session.label,
        state=session.info.state,
        version=version,
        transport=transport,
        target_label=session.target.label if session.target is not None else "no server yet",
        lead=lead,
        waiting=session.open_asks,
        nav=nav(session, numbers),
        tools=tool_links(session, RAIL_TOOLS, brief=True),
        tools_total=len(session.tools.items),
        tool_key=tool_key,
        numbers=numbers,
        earlier=visible[0].seq if visible and first is not None and visible[0].seq > first else None,
        stream_url=f"/s/{session.id}/events?{urlencode(query)}",
        trouble=session.info.trouble.message if session.info.trouble is not None else "",
        session=session,
        messages=visible,
    )
