"""What each page and part shows: one context dataclass per template, rendered to HTML or to JSON.

One URL, two representations: `render` asks the context for its template or for `as_json`, whose field names scripts
rely on (architecture.md §5). Knows the session and the templates; knows no route, no form decoding, no stream.
"""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from app.core import jsontext
from app.core.model import (
    HANDSHAKE_VERSIONS,
    Call,
    DemoTarget,
    Finding,
    HttpTarget,
    Message,
    Options,
    Root,
    StderrLine,
    StdioTarget,
    target_digest,
    wire_time,
)
from app.sessions import Identity, Session, SessionRegistry
from app.settings import Settings
from app.web import render as show
from app.web.problems import wants_json
from app.web.render import Html

AnyTarget = StdioTarget | DemoTarget | HttpTarget

CARDS = 20
"""Cards of recent calls on a tool's page."""
RAIL_TOOLS = 200
JSON_ROWS = 1_000
JSON_RAW_BYTES = 4 * 1024 * 1024
CARD_BLOCKS = 40
CARD_TEXT = 6_000
CARD_REPLY_BYTES = 128 * 1024
"""A larger reply is shown on the page of its call, not in every card."""

# ------------------------------------------------------------------------------------------------------- templates


_jinja = Environment(
    loader=FileSystemLoader(show.directory("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    finalize=lambda value: show.visible(value) if type(value) is str else value,
)
_jinja.filters.update(
    size=show.size,
    number=show.number,
    clock=show.clock,
    time_of_day=show.time_of_day,
    wire_time=wire_time,
    duration=show.duration,
    prose=show.prose,
    gist=show.gist,
    plural=show.plural,
    figure=show.figure,
)


class Exact(str):
    """Text that goes into a form field and comes back: nothing in it may be written out as an escape."""

    __slots__ = ()


_jinja.filters["exact"] = Exact
_jinja.globals.update(asset=show.asset, icons=show.ICONS)


def fragment(template: str, /, **context: Any) -> str:
    """One template as text; parts for the stream and for htmx."""
    return _jinja.get_template(template).render(context)


@dataclass(slots=True)
class Context:
    """The base of every context: which page it fills, which part stands for it, and its JSON."""

    template: ClassVar[str]
    part: ClassVar[str | None] = None

    def as_json(self) -> dict[str, Any]:
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


def json_bytes(value: Any) -> bytes:
    """JSON for a script: plain ASCII, so that nothing in it can break on the way; never NaN."""
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


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
    return Response(html.encode("utf-8", "backslashreplace"), status, extra, "text/html; charset=utf-8")


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
_jinja.globals.update(CALL_WORDS=CALL_WORDS, LEVEL_WORDS=LEVEL_WORDS, STATE_WORDS=STATE_WORDS, LAMPS=LAMPS)


def transport_words(target: AnyTarget | None) -> str:
    """How the server is reached, in a word or two."""
    if isinstance(target, HttpTarget):
        return "HTTP with SSE" if target.transport == "sse" else "streamable HTTP"
    return "demo, stdio" if isinstance(target, DemoTarget) else "stdio" if target is not None else ""


def target_json(target: AnyTarget | None) -> dict[str, Any] | None:
    """A target for scripts and pages. Values of the environment and of headers are secrets; their names are not."""
    if target is None:
        return None
    if isinstance(target, StdioTarget):
        return {
            "transport": "stdio",
            "command": target.command,
            "args": list(target.args),
            "cwd": target.cwd,
            "env": sorted(target.env),
        }
    if isinstance(target, HttpTarget):
        return {"transport": target.transport, "url": target.url, "headers": sorted(target.headers)}
    return {"transport": "demo"}


def finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "level": finding.level,
        "text": finding.text,
        "advice": finding.advice,
        "message_seq": finding.message_seq,
    }


# -------------------------------------------------------------------------------------------------- keys of the tools

_INDEX = re.compile(r"~(\d{1,6})")


def _speakable(name: Any) -> bool:
    if not isinstance(name, str) or not name or len(name) > 500 or _INDEX.fullmatch(name):
        return False
    if show.visible(name) != name or any(mark in name for mark in "\t\r\n"):
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


def find_tool(items: list[Any], key: str) -> int | None:
    """The index of the tool that `key` names; None when there is none."""
    keys = tool_keys(items)
    if key in keys:
        return keys.index(key)
    found = _INDEX.fullmatch(key)
    return int(found[1]) if found and int(found[1]) < len(items) else None


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


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def tool_links(session: Session, limit: int | None = None) -> list[ToolLink]:
    """The tools of a session as links."""
    items = session.tools.items if limit is None else session.tools.items[:limit]
    keys = tool_keys(session.tools.items)
    links = []
    for key, item in zip(keys, items, strict=False):
        tool = item if isinstance(item, dict) else {}
        name = _text(tool.get("name"))
        hints = tool.get("annotations")
        title = _text(tool.get("title")) or (_text(hints.get("title")) if isinstance(hints, dict) else "")
        links.append(
            ToolLink(
                key=key,
                name=name or f"(tool {key[1:]}, without a name)",
                title=title,
                description=_text(tool.get("description")),
                href=f"/s/{session.id}/tools/{quote(key, safe='~')}",
                notes=annotation_words(hints),
                arguments=", ".join(one.name for one in arguments_of(tool.get("inputSchema"))[:12]),
            )
        )
    return links


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
            name=name,
            words=show.type_words(sub),
            required=name in required,
            title=_text(sub.get("title")) if isinstance(sub, dict) else "",
            description=_text(sub.get("description")) if isinstance(sub, dict) else "",
            default=show.gist(sub["default"], 60) if isinstance(sub, dict) and "default" in sub else "",
        )
        for name, sub in list(properties.items())[:200]
    ]


# --------------------------------------------------------------------------------------------------------- the shell


@dataclass(slots=True, frozen=True)
class NavItem:
    """One line of the rail."""

    key: str
    label: str
    icon: str
    href: str
    count: str


def counts(session: Session) -> dict[str, str]:
    """The numbers of the rail and of the drawer, by element id."""
    log = session.messages
    listed = [call for call in session.calls.values() if not call.quiet]
    running = sum(not call.settled for call in listed)
    return {
        "n-tools": "" if session.tools.state == "none" else show.number(len(session.tools.items)),
        "n-calls": (f"{running} running, " if running else "") + show.number(len(listed)) if listed else "",
        "n-roots": show.number(len(session.roots)) if session.roots else "",
        "n-log": show.number(log.count) if log.count else "",
        "n-stderr": show.number(session.stderr.count) if session.stderr.count else "",
        "log-count": show.number(log.count),
        "log-sum": f"{show.number(log.inbound)} in, {show.number(log.outbound)} out, "
        f"{show.plural(log.findings_total, 'finding')}",
    }


def figures(session: Session) -> dict[str, str]:
    """The numbers of the overview, by element id."""
    log = session.messages
    traffic = f"{show.plural(log.count, 'message')}, {show.size(log.bytes_total)}"
    return {"traffic": traffic, "findings-total": show.number(log.findings_total)}


@dataclass(slots=True)
class Shell:
    """What surrounds every page of a session: top bar, rail, inbox, drawer, stream."""

    sid: str
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
    rows: Html
    earlier: int | None
    stream_url: str
    trouble: str


def where_text(session: Session) -> tuple[str, str, str]:
    """Version, transport and lead line of the current connection."""
    info = session.info
    version = info.protocol_version or "" if info.state in {"ready", "lost"} else ""
    lead = STATE_WORDS[info.state]
    if info.state == "ready":
        server = info.server_info if isinstance(info.server_info, dict) else {}
        said = _text(server.get("version"))
        parts = [
            said[:40],
            f"pid {info.pid}" if info.pid is not None else "",
            lead if not said and not info.pid else "",
        ]
        lead = ", ".join(part for part in parts if part)
    return version, transport_words(session.target), lead


def log_rows(session: Session, messages: list[Message]) -> Html:
    """Rows of the log, ready to insert."""
    base, log = f"/s/{session.id}", session.messages
    return show.markup(show.log_row(message, log.findings(message.seq), base) for message in messages)


def nav(session: Session, numbers: dict[str, str]) -> list[NavItem]:
    base = f"/s/{session.id}"
    return [
        NavItem("overview", "Overview", "conn", base, ""),
        NavItem("tools", "Tools", "tool", f"{base}/tools", numbers["n-tools"]),
        NavItem("calls", "Calls", "run", f"{base}/calls", numbers["n-calls"]),
        NavItem("roots", "Roots", "root", f"{base}/roots", numbers["n-roots"]),
        NavItem("log", "Log", "loglist", f"{base}/log", numbers["n-log"]),
        NavItem("stderr", "Stderr", "err", f"{base}/stderr", numbers["n-stderr"]),
    ]


def shell(
    session: Session,
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
    version, transport, lead = where_text(session)
    numbers = counts(session)
    visible = session.messages.last(rows) if messages is None else messages
    first = session.messages.first_seq
    query = {"since": str(seq), "page": page} | ({"of": of} if of else {})
    return Shell(
        sid=session.id,
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
        tools=tool_links(session, RAIL_TOOLS),
        tools_total=len(session.tools.items),
        tool_key=tool_key,
        numbers=numbers,
        rows=log_rows(session, visible),
        earlier=visible[0].seq if visible and first is not None and visible[0].seq > first else None,
        stream_url=f"/s/{session.id}/events?{urlencode(query)}",
        trouble=session.info.trouble.message if session.info.trouble is not None else "",
    )


# -------------------------------------------------------------------------------------------------------------- home


@dataclass(slots=True, frozen=True)
class SessionLine:
    """One open session on the home page."""

    id: str
    href: str
    label: str
    state: str
    target: str
    detail: str
    open_asks: int


@dataclass(slots=True, frozen=True)
class TargetLine:
    """One target that was used before."""

    digest: str
    label: str
    transport: str


@dataclass(slots=True)
class ConnectFields:
    """The values and errors of the connect form, for home and for a session."""

    action: str
    transport: str
    values: dict[str, str]
    env: list[str]
    headers: list[str]
    options: list[OptionField]
    errors: dict[str, str]
    changed: str


@dataclass(slots=True)
class Home(Context):
    """Open sessions, a way to a new one, and how to read Parley."""

    template: ClassVar[str] = "pages/home.html"

    sessions: list[SessionLine]
    recent: list[TargetLine]
    form: ConnectFields
    sessions_json: list[dict[str, Any]]
    targets_json: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {"sessions": self.sessions_json, "targets": self.targets_json}


def _session_line(session: Session) -> SessionLine:
    log = session.messages
    detail = STATE_WORDS[session.info.state]
    if session.open_asks:
        detail += f", {session.open_asks} waiting"
    if log.count:
        detail += f", {show.plural(log.count, 'message')}"
    target = session.target.label if session.target is not None else "no server yet"
    return SessionLine(
        session.id, f"/s/{session.id}", session.label, session.info.state, target, detail, session.open_asks
    )


def home(registry: SessionRegistry, identity: Identity, settings: Settings) -> Home:
    """The first page."""
    sessions = sorted(registry.of(identity), key=lambda one: one.number, reverse=True)
    recent = registry.recent(identity)
    return Home(
        sessions=[_session_line(session) for session in sessions],
        recent=[
            TargetLine(target_digest(target), target.label, transport_words(target))
            for target in recent
            if not isinstance(target, DemoTarget)
        ],
        form=connect_fields(None, None, None),
        sessions_json=[
            {
                "id": session.id,
                "url": f"/s/{session.id}",
                "label": session.label,
                "state": session.info.state,
                "target": target_json(session.target),
                "open_asks": session.open_asks,
                "seq": session.events.seq,
                "created_at": wire_time(session.created_at),
            }
            for session in sessions
        ],
        targets_json=[{"digest": target_digest(one), "label": one.label, **(target_json(one) or {})} for one in recent],
    )


# ------------------------------------------------------------------------------------------------------ connect form


@dataclass(slots=True, frozen=True)
class OptionField:
    """One connection option in the form: its control, its value and one line that explains it."""

    key: str
    label: str
    kind: str
    """`bool`, `number`, `select` or `json`."""
    value: str
    help: str
    group: str
    choices: tuple[tuple[str, str], ...] = ()
    error: str = ""


_ANY = ("", "not set")
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_OPTIONS: tuple[tuple[str, str, str, str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "era",
        "Protocol era",
        "select",
        "How the conversation begins. This release speaks the handshake of 2024-11-05 to 2025-11-25.",
        "The handshake",
        (("auto", "Find out"), ("legacy", "Handshake (to 2025-11-25)"), ("modern", "2026-07-28, not yet spoken")),
    ),
    (
        "protocol_version",
        "Protocol version",
        "select",
        "Which revision Parley proposes; the server may answer with another.",
        "The handshake",
        (("", "Newest"), *((version, version) for version in HANDSHAKE_VERSIONS)),
    ),
    ("sampling", "Sampling", "bool", "The server may ask for a text from a model.", "What Parley offers", ()),
    ("sampling_tools", "with tools", "bool", "Such a request may bring tools for the model.", "What Parley offers", ()),
    (
        "sampling_context",
        "with context",
        "bool",
        "Such a request may ask for context of other servers.",
        "What Parley offers",
        (),
    ),
    ("elicitation_form", "Forms", "bool", "The server may ask you to fill in a form.", "What Parley offers", ()),
    ("elicitation_url", "Links", "bool", "The server may ask you to open a link.", "What Parley offers", ()),
    ("roots", "Roots", "bool", "The server may see which directories you work in.", "What Parley offers", ()),
    ("ask_roots", "Ask before roots", "bool", "Every question for roots waits for you.", "What Parley offers", ()),
    (
        "receiver_tasks",
        "Receiver tasks",
        "bool",
        "The server may hand over its asks as tasks.",
        "What Parley offers",
        (),
    ),
    ("request_timeout_ms", "Time limit of a call", "number", "Milliseconds.", "Patience", ()),
    (
        "reset_timeout_on_progress",
        "Progress renews it",
        "bool",
        "Each progress notification starts the time limit anew.",
        "Patience",
        (),
    ),
    ("max_total_timeout_ms", "At most in all", "number", "Milliseconds; empty means no such limit.", "Patience", ()),
    (
        "unattended_limit_ms",
        "Unattended limit",
        "number",
        "Milliseconds an ask waits when nobody is there; empty means until it expires.",
        "Patience",
        (),
    ),
    ("receiver_task_ttl_ms", "TTL of our tasks", "number", "Milliseconds, when the server names none.", "Tasks", ()),
    ("receiver_task_max_ttl_ms", "Longest TTL", "number", "Milliseconds; longer wishes are cut to this.", "Tasks", ()),
    ("poll_interval_ms", "Poll interval", "number", "Milliseconds that Parley suggests to the server.", "Tasks", ()),
    (
        "awaiting_user_status",
        "Status while you think",
        "select",
        "What tasks/get answers while an ask is open.",
        "Tasks",
        (("input_required", "input_required"), ("working", "working")),
    ),
    (
        "send_status_notifications",
        "Announce task states",
        "bool",
        "Send notifications/tasks/status when a task changes.",
        "Tasks",
        (),
    ),
    (
        "log_level",
        "Log level",
        "select",
        "Asked of the server right after the handshake; it may not support it.",
        "Extras",
        (_ANY, *((level, level) for level in _LEVELS)),
    ),
    ("meta", "_meta", "json", "A JSON object that goes with every request.", "Extras", ()),
    ("extensions", "Extensions", "json", "A JSON object of extension capabilities to declare.", "Extras", ()),
)


def _option_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return show.pretty(value) if value else ""
    return "" if value is None else str(value)


def option_fields(options: Options, values: dict[str, Any], errors: dict[str, str]) -> list[OptionField]:
    """The options as form fields, with what the person had typed."""
    built = []
    for key, label, kind, help_text, group, choices in _OPTIONS:
        typed = values.get(f"option.{key}")
        typed = typed[-1] if isinstance(typed, list) and typed else typed
        value = typed if isinstance(typed, str) else _option_value(getattr(options, key))
        error = errors.get(f"/options/{key}", "")
        built.append(OptionField(key, label, kind, value, help_text, group, choices, error))
    return built


def _list_of(values: dict[str, Any], name: str) -> list[str]:
    found = values.get(name)
    return [str(one) for one in found] if isinstance(found, list) else [] if found is None else [str(found)]


def connect_fields(
    session: Session | None, values: dict[str, Any] | None, errors: dict[str, list[str]] | None
) -> ConnectFields:
    """The connect form: what was typed, else the session's last target. Secret values are never written back."""
    typed = values or {}
    flat = {pointer: " ".join(texts) for pointer, texts in (errors or {}).items()}
    target = session.target if session is not None else None
    fill = {"command_line": "", "cwd": "", "url": ""}
    env: list[str] = []
    headers: list[str] = []
    transport = "stdio"
    if isinstance(target, StdioTarget):
        fill |= {"command_line": target.label, "cwd": target.cwd or ""}
        env = sorted(target.env)
    elif isinstance(target, HttpTarget):
        transport = target.transport
        fill |= {"url": target.url}
        headers = sorted(target.headers)
    for name in fill:
        if name in typed:
            given = typed[name]
            fill[name] = str(given[-1] if isinstance(given, list) and given else given)
    if "transport" in typed:
        chosen = typed["transport"]
        transport = str(chosen[-1] if isinstance(chosen, list) and chosen else chosen)
    options = session.options if session is not None else Options()
    changed = [name for name, value in options.model_dump().items() if value != getattr(Options(), name)]
    return ConnectFields(
        action="/s" if session is None else f"/s/{session.id}/connect",
        transport=transport if transport in {"stdio", "http", "sse", "demo"} else "stdio",
        values=fill,
        env=[one for one in _list_of(typed, "env_name") if one] or env,
        headers=[one for one in _list_of(typed, "header_name") if one] or headers,
        options=option_fields(options, typed, flat),
        errors=flat,
        changed=f"{show.plural(len(changed), 'option')} changed" if changed else "",
    )


@dataclass(slots=True)
class ConnectForm(Context):
    """The connect form on its own page: for a session, or after an error."""

    template: ClassVar[str] = "pages/connect.html"

    shell: Shell | None
    form: ConnectFields
    recent: list[TargetLine]
    heading: str
    connected: bool

    def as_json(self) -> dict[str, Any]:
        fields_json = {pointer: [text] for pointer, text in self.form.errors.items()}
        return {"error": {"kind": "invalid", "message": "Some fields need another value.", "fields": fields_json}}


def connect_form(
    session: Session | None,
    registry: SessionRegistry,
    identity: Identity,
    *,
    values: dict[str, Any] | None = None,
    errors: dict[str, list[str]] | None = None,
) -> ConnectForm:
    """The connect form, with what was typed and what was wrong with it."""
    recent = [one for one in registry.recent(identity) if not isinstance(one, DemoTarget)]
    return ConnectForm(
        shell=shell(session, "connect", "Connect") if session is not None else None,
        form=connect_fields(session, values, errors),
        recent=[TargetLine(target_digest(one), one.label, transport_words(one)) for one in recent],
        heading="Change and reconnect" if session is not None and session.target is not None else "Connect to a server",
        connected=session is not None and session.info.state in {"ready", "connecting"},
    )


# ----------------------------------------------------------------------------------------------------------- consent

_WARNINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^(.*/)?(sudo|doas|su|pkexec)$"), "runs something with the rights of another user, usually root"),
    (re.compile(r"\b(sudo|doas)\s"), "runs something with the rights of another user, usually root"),
    (re.compile(r"\brm\s+(-\w*[rRf]\w*\s+)+"), "deletes files without asking"),
    (re.compile(r"\b(curl|wget)\b.*\|\s*(ba|z|da|k)?sh\b", re.S), "downloads a script and runs it unread"),
    (re.compile(r"\bbase64\s+(-d|--decode|-D)\b"), "runs something that is hidden by an encoding"),
    (re.compile(r"(?i)-e(nc(odedcommand)?)?\s+[A-Za-z0-9+/=]{40,}"), "runs something that is hidden by an encoding"),
    (re.compile(r"\bdd\s+.*\bof=/dev/|\bmkfs\b"), "writes to a disk directly"),
    (re.compile(r"\bchmod\s+(-R\s+)?[0-7]*777\b"), "opens files to everybody"),
    (re.compile(r":\(\)\s*\{"), "starts copies of itself without end"),
)


@dataclass(slots=True, frozen=True)
class ConsentArgument:
    """One part of the command line, exactly, with what is remarkable about it."""

    text: str
    warning: str


def warnings_of(argv: list[str]) -> list[ConsentArgument]:
    """Each argument with a warning where it deserves one (R5-71)."""
    shown = []
    for index, text in enumerate(argv):
        warning = next((words for pattern, words in _WARNINGS if pattern.search(text)), "")
        if not warning and re.fullmatch(r"(.*/)?rm", text):
            flags = [one for one in argv[index + 1 :] if one.startswith("-")]
            if any(set(one) & set("rRf") for one in flags):
                warning = "deletes files without asking"
        if not warning and index and (text.startswith("../") or "/../" in text):
            warning = "points outside of the working directory"
        shown.append(ConsentArgument(text, warning))
    return shown


@dataclass(slots=True)
class Consent(Context):
    """The card that stands before the first start of a command (R5-71)."""

    template: ClassVar[str] = "pages/consent.html"

    shell: Shell | None
    action: str
    back: str
    argv: list[ConsentArgument]
    cwd: str | None
    env: list[str]
    digest: str
    target: dict[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        return {"consent": {"target": self.target, "confirm": self.digest}}


def consent(session: Session | None, target: AnyTarget, options: Options) -> Consent:
    """What will run, in full, before it runs for the first time."""
    argv = [target.command, *target.args] if isinstance(target, StdioTarget) else [target.label]
    return Consent(
        shell=shell(session, "connect", "Start this command?") if session is not None else None,
        action="/s" if session is None else f"/s/{session.id}/connect",
        back="/" if session is None else f"/s/{session.id}/connect",
        argv=warnings_of(argv),
        cwd=target.cwd if isinstance(target, StdioTarget) else None,
        env=sorted(target.env) if isinstance(target, StdioTarget) else [],
        digest=target_digest(target),
        target=target_json(target),
    )


# ---------------------------------------------------------------------------------------------------------- overview


@dataclass(slots=True, frozen=True)
class Offer:
    """One capability in words."""

    label: str
    detail: str
    href: str = ""


@dataclass(slots=True)
class ConnectionView:
    """The body of the overview; also a part of the stream (`#connection`)."""

    base: str
    state: str
    number: int
    title: str
    name: str
    version: str
    description: str
    instructions: str
    protocol: str
    transport: str
    pid: int | None
    connected: str
    traffic: str
    findings_total: int
    server_offers: list[Offer]
    our_offers: list[Offer]
    server_capabilities: Html | None
    client_capabilities: Html | None
    steps: list[Any]
    took: str
    trouble: Any
    deadline: str | None
    target_label: str
    has_target: bool
    findings: list[Finding]
    stopped_after: str


def _said(value: Any, *keys: str) -> str:
    if not isinstance(value, dict):
        return ""
    return ", ".join(words for key, words in zip(keys[::2], keys[1::2], strict=True) if value.get(key))


def _server_offers(session: Session) -> list[Offer]:
    given = session.info.server_capabilities
    if not isinstance(given, dict):
        return []
    base = f"/s/{session.id}"
    tools = len(session.tools.items)
    offers = []
    for key, value in given.items():
        if key == "tools":
            label = show.plural(tools, "tool") if session.tools.state == "ready" else "Tools"
            offers.append(Offer(label, _said(value, "listChanged", "list changes announced"), f"{base}/tools"))
        elif key == "resources":
            words = _said(value, "subscribe", "subscriptions", "listChanged", "list changes announced")
            offers.append(Offer("Resources", words))
        elif key == "prompts":
            offers.append(Offer("Prompts", _said(value, "listChanged", "list changes announced")))
        elif key == "logging":
            offers.append(Offer("Logging", "log messages, level on request"))
        elif key == "completions":
            offers.append(Offer("Completion", "of prompt and template arguments"))
        elif isinstance(value, dict):
            offers.append(Offer(key[:80], ", ".join(str(one)[:60] for one in list(value)[:8])))
        else:
            offers.append(Offer(key[:80], show.gist(value, 60)))
    return offers[:60]


def _our_offers(session: Session) -> list[Offer]:
    given = session.info.client_capabilities
    if not isinstance(given, dict):
        return []
    offers = []
    names = {"sampling": "Sampling", "elicitation": "Elicitation", "tasks": "Receiver tasks"}
    for key, value in given.items():
        if key == "roots":
            words = _said(value, "listChanged", "changes announced")
            offers.append(Offer(show.plural(len(session.roots), "root"), words, f"/s/{session.id}/roots"))
        elif isinstance(value, dict):
            offers.append(Offer(names.get(key) or str(key), ", ".join(str(one) for one in value)))
    return offers


def connection_view(session: Session) -> ConnectionView:
    """The connection in words, whatever state it is in."""
    info, log = session.info, session.messages
    server = info.server_info if isinstance(info.server_info, dict) else {}
    connected = ""
    if info.ready_at is not None:
        connected = f"in {show.duration(info.connect_ms)}, at {show.time_of_day(info.ready_at)}"
    lasted = ""
    if info.ended_at is not None and info.ready_at is not None:
        lasted = show.duration((info.ended_at - info.ready_at) * 1000)
    known = isinstance(info.server_info, dict)
    return ConnectionView(
        base=f"/s/{session.id}",
        state=info.state,
        number=info.number,
        title=_text(server.get("title")) or _text(server.get("name")) or session.label,
        name=_text(server.get("name")),
        version=_text(server.get("version"))[:60],
        description=_text(server.get("description")),
        instructions=info.instructions or "",
        protocol=info.protocol_version or "",
        transport=transport_words(session.target),
        pid=info.pid,
        connected=connected,
        traffic=figures(session)["traffic"],
        findings_total=log.findings_total,
        server_offers=_server_offers(session),
        our_offers=_our_offers(session),
        server_capabilities=show.tree(info.server_capabilities, open_depth=1, label="Server capabilities")
        if known
        else None,
        client_capabilities=show.tree(info.client_capabilities, open_depth=1, label="Client capabilities")
        if isinstance(info.client_capabilities, dict)
        else None,
        steps=list(info.steps),
        took=show.duration(info.connect_ms),
        trouble=info.trouble,
        deadline=wire_time(info.deadline_at) if info.deadline_at is not None and info.state == "connecting" else None,
        target_label=session.target.label if session.target is not None else "",
        has_target=session.target is not None,
        findings=[*session.findings, *session.tools.findings][:20],
        stopped_after=lasted,
    )


@dataclass(slots=True)
class Overview(Context):
    """The connection: who the server is, what both sides offer, how it came about, what went wrong."""

    template: ClassVar[str] = "pages/overview.html"
    part: ClassVar[str | None] = "parts/_connection.html"

    shell: Shell
    connection: ConnectionView
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


def connection_json(session: Session) -> dict[str, Any]:
    """The `connection` object of architecture.md §5."""
    info, trouble = session.info, session.info.trouble
    return {
        "state": info.state,
        "number": info.number,
        "era": info.era,
        "protocol_version": info.protocol_version,
        "server_info": info.server_info,
        "server_capabilities": info.server_capabilities,
        "client_capabilities": info.client_capabilities,
        "instructions": info.instructions,
        "pid": info.pid,
        "connect_ms": info.connect_ms,
        "steps": [
            {"after_ms": one.after_ms, "side": one.side, "code": one.code, "text": one.text, "seq": one.seq}
            for one in info.steps
        ],
        "error": None
        if trouble is None
        else {
            "kind": trouble.kind,
            "message": trouble.message,
            "advice": trouble.advice,
            "exit_code": trouble.exit_code,
            "last_words": trouble.last_words,
        },
    }


def overview(session: Session) -> Overview:
    """The first page of a session."""
    log = session.messages
    return Overview(
        shell=shell(session, "overview", session.label),
        connection=connection_view(session),
        json={
            "id": session.id,
            "url": f"/s/{session.id}",
            "label": session.label,
            "connection": connection_json(session),
            "target": target_json(session.target),
            "options": session.options.model_dump(mode="json"),
            "open_asks": session.open_asks,
            "counts": {
                "messages": log.count,
                "bytes": log.bytes_total,
                "in": log.inbound,
                "out": log.outbound,
                "findings": log.findings_total,
                "stderr_lines": session.stderr.count,
                "tools": len(session.tools.items),
                "calls": sum(not call.quiet for call in session.calls.values()),
                "running": sum(not call.settled for call in session.calls.values()),
            },
            "seq": session.events.seq,
        },
    )


# ------------------------------------------------------------------------------------------------------------- tools


@dataclass(slots=True)
class ToolsView:
    """The list of tools; also a part of the stream (`#tools`)."""

    base: str
    state: str
    connection: str
    offered: bool
    links: list[ToolLink]
    findings: list[Finding]
    error: Any
    stopped: str
    at: str


def tools_view(session: Session) -> ToolsView:
    listing = session.tools
    return ToolsView(
        base=f"/s/{session.id}",
        state=listing.state,
        connection=session.info.state,
        offered=session.info.offers("tools"),
        links=tool_links(session),
        findings=listing.findings[:50],
        error=listing.error,
        stopped=listing.stopped or "",
        at=show.time_of_day(listing.at) if listing.at is not None else "",
    )


@dataclass(slots=True)
class Tools(Context):
    """Every tool the server listed."""

    template: ClassVar[str] = "pages/tools.html"
    part: ClassVar[str | None] = "parts/_tools.html"

    shell: Shell
    tools: ToolsView
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


def tools(session: Session) -> Tools:
    """The list of tools, and as JSON the server's objects as received."""
    listing = session.tools
    return Tools(
        shell=shell(session, "tools", "Tools"),
        tools=tools_view(session),
        json={
            "tools": listing.items,
            "findings": [finding_json(one) for one in listing.findings],
            "state": listing.state,
            "keys": tool_keys(listing.items),
            "stopped": listing.stopped,
            "error": None if listing.error is None else {"code": listing.error.code, "message": listing.error.message},
        },
    )


@dataclass(slots=True)
class Tool(Context):
    """One tool: what it says of itself, its arguments, a box to call it, and its recent calls."""

    template: ClassVar[str] = "pages/tool.html"

    shell: Shell
    key: str
    name: str
    title: str
    description: str
    notes: tuple[str, ...]
    arguments: list[Argument]
    input_schema: Html | None
    output_schema: Html | None
    whole: Html
    text: str
    patience: str
    cards: list[CallCard]
    raw: Any

    def as_json(self) -> dict[str, Any]:
        return {"tool": self.raw, "key": self.key}


def tool(session: Session, key: str, *, arguments: str | None = None) -> Tool | None:
    """The page of one tool; None when the server lists no such tool."""
    index = find_tool(session.tools.items, key)
    if index is None:
        return None
    raw = session.tools.items[index]
    item = raw if isinstance(raw, dict) else {}
    own_key = tool_keys(session.tools.items)[index]
    link = tool_links(session)[index]
    hints = item.get("annotations")
    title = _text(item.get("title")) or (_text(hints.get("title")) if isinstance(hints, dict) else "") or link.name
    schema = item.get("inputSchema")
    options = session.options
    patience = f"time limit {show.duration(options.request_timeout_ms)}"
    start = show.skeleton(schema)
    recent = [call for call in recent_calls(session) if is_call_of(call, item.get("name"))][:CARDS]
    return Tool(
        shell=shell(session, "tool", f"{link.name}", of=own_key, tool_key=own_key),
        key=own_key,
        name=_text(item.get("name")),
        title=title,
        description=_text(item.get("description")),
        notes=annotation_words(hints),
        arguments=arguments_of(schema),
        input_schema=show.tree(schema, open_depth=2, label="Input schema") if schema is not None else None,
        output_schema=show.tree(item["outputSchema"], open_depth=2, label="Output schema")
        if "outputSchema" in item
        else None,
        whole=show.tree(raw, open_depth=2, label="The tool as the server listed it"),
        text=arguments if arguments is not None else show.pretty(start if isinstance(start, dict) else {}),
        patience=patience + (", renewed by progress" if options.reset_timeout_on_progress else ""),
        cards=[call_card(session, call) for call in recent],
        raw=raw,
    )


# ------------------------------------------------------------------------------------------------------------- calls


def recent_calls(session: Session) -> list[Call]:
    """The calls a person made, newest first."""
    return [call for call in reversed(session.calls.values()) if not call.quiet]


def is_call_of(call: Call, name: Any) -> bool:
    """Whether a call is one of the tool with this name."""
    return call.method == "tools/call" and call.params is not None and call.params.get("name") == name


@dataclass(slots=True, frozen=True)
class Block:
    """One content block of a result, as it can be shown."""

    kind: str
    """`text`, `media`, `link` or `json`."""
    label: str
    text: str = ""
    cut: int = 0
    json: Html | None = None


def _block(item: Any, text_limit: int) -> Block:
    kind = item.get("type") if isinstance(item, dict) else None
    if kind == "text" and isinstance(item.get("text"), str):
        text = item["text"]
        return Block("text", "Text", text[:text_limit], max(0, len(text) - text_limit))
    if kind in {"image", "audio"}:
        data = item.get("data")
        held = show.base64_bytes(data)
        what = "not valid base64" if held is None else f"{show.size(held)}, base64"
        return Block("media", "Image" if kind == "image" else "Audio", f"{_text(item.get('mimeType'))[:80]}, {what}")
    if kind == "resource_link":
        title = _text(item.get("title")) or _text(item.get("name"))
        return Block("link", "Resource link", f"{title}  {_text(item.get('uri'))}"[:2_000])
    if kind == "resource" and isinstance(item.get("resource"), dict):
        held = item["resource"]
        about = f"{_text(held.get('uri'))}, {_text(held.get('mimeType')) or 'no type'}"[:2_000]
        if isinstance(held.get("text"), str):
            text = held["text"]
            return Block("text", f"Resource {about}", text[:text_limit], max(0, len(text) - text_limit))
        bytes_held = show.base64_bytes(held.get("blob"))
        what = "not valid base64" if bytes_held is None else f"{show.size(bytes_held)}, base64"
        return Block("media", "Resource", f"{about}, {what}")
    label = f"Content of type {show.gist(kind, 40)}" if kind is not None else "Content without a type"
    return Block("json", label, json=show.tree(item, open_depth=2, max_nodes=400, label=label))


@dataclass(slots=True)
class CallCard:
    """One call with its result, as a card; also a part of the stream (`#call-{id}`)."""

    id: str
    base: str
    number: str
    method: str
    subject: str
    gist: str
    state: str
    tool_error: bool
    took: str
    started: str
    deadline: str | None
    progress: Any
    progress_words: str
    logs: list[tuple[str, str, str]]
    logs_dropped: int
    findings: list[Finding]
    blocks: list[Block]
    blocks_cut: int
    structured: Html | None
    plain: Html | None
    error: Any
    error_data: Html | None
    cancel_reason: str
    notification: bool
    size: str
    request_seq: int | None
    reply_seq: int | None
    legs: int
    raw: str
    raw_cut: int
    full: bool
    alone: bool
    too_large: bool

    @property
    def settled(self) -> bool:
        return self.state in {"done", "failed", "cancelled"}


def _pointers(findings: list[Finding]) -> list[str]:
    """The places in the result that findings speak of, where their text names one in `/pointer/form`."""
    found: list[str] = []
    for one in findings:
        found += re.findall(r"`(/[^`\s]{0,200})`", one.text)
    return found[:50]


def call_card(session: Session, call: Call, *, result: Any = None, alone: bool = False, full: bool = False) -> CallCard:
    """One call as a card. `alone` on its own page, which brings a large `result`; elsewhere that stays folded."""
    too_large = call.reply is not None and len(call.reply) > CARD_REPLY_BYTES and result is None
    if call.reply is not None and not too_large and result is None:
        value = jsontext.parse(call.reply).value
        result = value.get("result") if isinstance(value, dict) else None
    limit = 128 * 1024 if alone else CARD_TEXT
    nodes = show.MAX_NODES if alone else 600
    blocks: list[Block] = []
    blocks_cut = 0
    structured = plain = None
    tool_error = False
    if isinstance(result, dict) and call.method == "tools/call" and isinstance(result.get("content"), list):
        content = result["content"]
        many = 500 if alone else CARD_BLOCKS
        blocks = [_block(item, limit) for item in content[:many]]
        blocks_cut = len(content) - len(blocks)
        tool_error = result.get("isError") is True
        if "structuredContent" in result:
            marks = _pointers(call.findings)
            structured = show.tree(
                result["structuredContent"], open_depth=3, max_nodes=nodes, marks=marks, label="Structured content"
            )
    elif result is not None:
        plain = show.tree(result, open_depth=3, max_nodes=nodes, label="Result")
    raw, raw_cut = ("", 0)
    if alone and call.reply is not None:
        raw, raw_cut = show.raw_text(call.reply, len(call.reply) if full else 32 * 1024)
    progress = call.progress
    words = ""
    if progress is not None:
        words = show.figure(progress.progress)
        words += f" of {show.figure(progress.total)}" if progress.total is not None else ""
    params = call.params or {}
    given = params.get("arguments") if call.method == "tools/call" else params
    leg = call.legs[-1] if call.legs else None
    return CallCard(
        id=call.id,
        base=f"/s/{session.id}",
        number=call.id.lstrip("c"),
        method=call.method,
        subject=call.subject,
        gist=show.gist(given, 100) if given else "",
        state=call.state,
        tool_error=tool_error,
        took=show.duration(call.duration_ms),
        started=wire_time(call.started_at),
        deadline=wire_time(call.deadline_at) if call.deadline_at is not None else None,
        progress=progress,
        progress_words=words,
        logs=[(show.clock(one.at), one.level, show.gist(one.data, 400)) for one in call.logs],
        logs_dropped=call.logs_dropped,
        findings=call.findings[:20],
        blocks=blocks,
        blocks_cut=blocks_cut,
        structured=structured,
        plain=plain,
        error=call.error,
        error_data=show.tree(call.error.data, open_depth=2, max_nodes=400, label="Error data")
        if call.error is not None and call.error.data is not None
        else None,
        cancel_reason=call.cancel_reason or "",
        notification=call.notification,
        size=show.size(len(call.reply)) if call.reply is not None else "",
        request_seq=leg.request_seq if leg is not None else None,
        reply_seq=leg.reply_seq if leg is not None else None,
        legs=len(call.legs),
        raw=raw,
        raw_cut=raw_cut,
        full=full,
        alone=alone,
        too_large=too_large,
    )


def call_json(call: Call, result: Any) -> dict[str, Any]:
    """A call, as scripts read it."""
    progress, error = call.progress, call.error
    return {
        "id": call.id,
        "method": call.method,
        "params": call.params,
        "state": call.state,
        "notification": call.notification,
        "progress": None
        if progress is None
        else {
            "progress": progress.progress,
            "total": progress.total,
            "message": progress.message,
            "at": wire_time(progress.at),
        },
        "legs": [
            {"rpc_id": leg.rpc_id, "request_seq": leg.request_seq, "reply_seq": leg.reply_seq} for leg in call.legs
        ],
        "result": result,
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "data": error.data, "kind": error.kind},
        "task_id": call.task_id,
        "asks": list(call.asks),
        "findings": [finding_json(one) for one in call.findings],
        "logs": [
            {"at": wire_time(one.at), "level": one.level, "logger": one.logger, "data": one.data} for one in call.logs
        ],
        "started_at": wire_time(call.started_at),
        "ended_at": None if call.ended_at is None else wire_time(call.ended_at),
        "duration_ms": call.duration_ms,
        "cancel_reason": call.cancel_reason,
    }


@dataclass(slots=True, frozen=True)
class CallLine:
    """One call in the list; also a part of the stream (`#call-{id}`)."""

    id: str
    href: str
    number: str
    method: str
    subject: str
    gist: str
    state: str
    took: str
    at: str
    deadline: str | None
    progress: Any
    findings: int
    failure: str
    tool_error: bool


_IS_ERROR = re.compile(rb'"isError"\s*:\s*true')


def _reports_error(call: Call) -> bool:
    """Whether a tool answered with `isError`. The text is searched first: most replies need no second reading."""
    if call.method != "tools/call" or call.reply is None or len(call.reply) > CARD_REPLY_BYTES:
        return False
    if _IS_ERROR.search(call.reply) is None:
        return False
    value = jsontext.parse(call.reply).value
    result = value.get("result") if isinstance(value, dict) else None
    return isinstance(result, dict) and result.get("isError") is True


def call_line(session: Session, call: Call) -> CallLine:
    params = call.params or {}
    given = params.get("arguments") if call.method == "tools/call" else params
    return CallLine(
        id=call.id,
        href=f"/s/{session.id}/calls/{call.id}",
        number=call.id.lstrip("c"),
        method=call.method,
        subject=call.subject,
        gist=show.gist(given, 90) if given else "",
        state=call.state,
        took=show.duration(call.duration_ms),
        at=show.time_of_day(call.started_at),
        deadline=wire_time(call.deadline_at) if call.deadline_at is not None else None,
        progress=call.progress,
        findings=len(call.findings),
        failure=show.gist(call.error.message, 120) if call.error is not None else "",
        tool_error=_reports_error(call),
    )


@dataclass(slots=True)
class Calls(Context):
    """Every call of the session, newest first."""

    template: ClassVar[str] = "pages/calls.html"
    part: ClassVar[str | None] = "parts/_calls.html"

    shell: Shell
    lines: list[CallLine]
    connected: bool
    json: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {"calls": self.json}


_LISTED_RESULT = 16 * 1024


def _small_result(call: Call) -> dict[str, Any]:
    """In a list, results are given while they are small; `result_omitted` says that one is not."""
    if call.reply is None or len(call.reply) > _LISTED_RESULT:
        return call_json(call, None) | {"result_omitted": call.reply is not None and call.state == "done"}
    value = jsontext.parse(call.reply).value
    return call_json(call, value.get("result") if isinstance(value, dict) else None) | {"result_omitted": False}


def calls(session: Session) -> Calls:
    """The list of calls."""
    listed = recent_calls(session)
    return Calls(
        shell=shell(session, "calls", "Calls"),
        lines=[call_line(session, call) for call in listed],
        connected=session.info.state == "ready",
        json=[_small_result(call) for call in listed],
    )


@dataclass(slots=True)
class CallView(Context):
    """One call on its own page."""

    template: ClassVar[str] = "pages/call.html"
    part: ClassVar[str | None] = "parts/_call.html"

    shell: Shell
    call: CallCard
    params: Html | None
    tool_href: str
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


async def call(session: Session, call: Call, *, full: bool = False) -> CallView:
    """One call with its result."""
    result = await session.result(call) if call.reply is not None else None
    tool_href = ""
    if call.method == "tools/call":
        names = {link.name: link.href for link in tool_links(session)}
        tool_href = names.get(call.subject, "")
    return CallView(
        shell=shell(session, "call", f"Call {call.id.lstrip('c')}", of=call.id),
        call=call_card(session, call, result=result, alone=True, full=full),
        params=show.tree(call.params, open_depth=3, label="What was asked") if call.params else None,
        tool_href=tool_href,
        json=call_json(call, result),
    )


# --------------------------------------------------------------------------------------------------------------- log


def message_json(session: Session, message: Message) -> dict[str, Any]:
    """One message for scripts: `raw` is text, or null with `raw_base64` where the bytes are not UTF-8."""
    raw = session.messages.raw(message.seq)
    text: str | None = None
    encoded: str | None = None
    if raw is not None:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            encoded = base64.b64encode(raw).decode()
    row: dict[str, Any] = {
        "seq": message.seq,
        "direction": message.direction,
        "time": wire_time(message.at),
        "size": message.size,
        "kind": message.kind,
        "method": message.method,
        "rpc_id": message.rpc_id,
        "raw": text,
        "answers": message.answers,
        "latency_ms": message.latency_ms,
        "problem": message.problem,
        "findings": [finding_json(one) for one in session.messages.findings(message.seq)],
    }
    if encoded is not None:
        row["raw_base64"] = encoded
    if raw is None:
        row["trimmed"] = True
    return row


@dataclass(slots=True)
class Log(Context):
    """The log: rows for the page, messages for scripts."""

    template: ClassVar[str] = "pages/log.html"
    part: ClassVar[str | None] = "parts/_earlier.html"

    shell: Shell
    detail: MessageView | None
    rows: Html
    earlier: int | None
    dropped: int
    session: Session
    after: int | None
    before: int | None
    limit: int | None

    def as_json(self) -> dict[str, Any]:
        log, limit = self.session.messages, self.limit or JSON_ROWS
        after = self.after or 0
        found = log.before(self.before, limit) if self.before is not None else log.after(after, limit)
        rows: list[dict[str, Any]] = []
        held = 0
        for message in found:
            held += message.size
            if rows and held > JSON_RAW_BYTES:
                break
            rows.append(message_json(self.session, message))
        first = log.first_seq
        missing = log.rows_dropped > 0 and first is not None and after < first - 1
        trimmed = missing or any(row.get("trimmed") for row in rows)
        return {"messages": rows, "next": rows[-1]["seq"] if rows else after, "trimmed": trimmed}


def log(
    session: Session, *, after: int | None, before: int | None = None, limit: int | None = None, at: int | None = None
) -> Log:
    """The log of a session: the newest rows, those before `before`, or those around message `at`."""
    source, many = session.messages, min(limit or 200, 1_000)
    if before is not None:
        found = source.before(before, many)
    elif at is not None and len(newer := source.after(at - 1, 1_000)) < 1_000:
        found = source.before(at, many // 2) + newer
    else:
        found = source.last(many)
    first = source.first_seq
    surroundings = shell(session, "log", "Log", messages=found)
    return Log(
        shell=surroundings,
        detail=message_view(session, at) if at is not None else None,
        rows=surroundings.rows,
        earlier=found[0].seq if found and first is not None and found[0].seq > first else None,
        dropped=source.rows_dropped,
        session=session,
        after=after,
        before=before,
        limit=limit,
    )


@dataclass(slots=True)
class Half:
    """One message of a pair, opened."""

    seq: int
    direction: str
    kind: str
    method: str
    rpc_id: str
    at: str
    size: str
    tree: Html | None
    raw: str
    raw_cut: int
    trimmed: bool
    problem: str
    findings: list[Finding]


@dataclass(slots=True)
class MessageView:
    """One message with its pair; also the fragment that a row opens (`#detail`)."""

    base: str
    seq: int
    title: str
    glyph: str
    side: str
    rpc_id: str
    halves: list[Half]
    between: str
    unanswered: bool
    call_id: str


def _half(session: Session, message: Message) -> Half:
    raw = session.messages.raw(message.seq)
    view: Html | None = None
    text, cut = ("", 0)
    if raw is not None:
        text, cut = show.raw_text(raw, 64 * 1024)
        if message.problem is None and len(raw) <= 2 * 1024 * 1024:
            view = show.tree(jsontext.parse(raw).value, open_depth=3, label=f"Message {message.seq}")
    return Half(
        seq=message.seq,
        direction=message.direction,
        kind=message.kind,
        method=message.method or "",
        rpc_id="" if message.rpc_id is None else show.gist(json.dumps(message.rpc_id), 60),
        at=show.clock(message.at),
        size=f"{show.number(message.size)} B",
        tree=view,
        raw=text,
        raw_cut=cut,
        trimmed=raw is None,
        problem=message.problem or "",
        findings=list(session.messages.findings(message.seq)),
    )


def message_view(session: Session, seq: int) -> MessageView | None:
    """A message and the one it belongs to."""
    source = session.messages
    message = source.get(seq)
    if message is None:
        return None
    pair = source.get(message.answers) if message.answers is not None else source.reply_to(seq)
    members = sorted([one for one in (message, pair) if one is not None], key=lambda one: one.seq)
    first = members[0]
    latency = next((one.latency_ms for one in members if one.latency_ms is not None), None)
    owner = next(
        (
            call.id
            for call in session.calls.values()
            if not call.quiet and any(seq in (leg.request_seq, leg.reply_seq) for leg in call.legs)
        ),
        "",
    )
    shape = {"request": "req", "notification": "not", "invalid": "not"}.get(first.kind, "res")
    return MessageView(
        base=f"/s/{session.id}",
        seq=seq,
        title=first.method or ("reply" if first.kind in {"response", "error"} else "not a message"),
        glyph=("o-" if first.direction == "out" else "i-") + shape,
        side="ours" if first.direction == "out" else "theirs",
        rpc_id="" if first.rpc_id is None else show.gist(json.dumps(first.rpc_id), 60),
        halves=[_half(session, one) for one in members],
        between=show.duration(latency),
        unanswered=first.kind == "request" and len(members) == 1,
        call_id=owner,
    )


@dataclass(slots=True)
class MessageDetail(Context):
    """One message: the log page with it opened, or only the opened message."""

    template: ClassVar[str] = "pages/log.html"
    part: ClassVar[str | None] = "parts/_message.html"

    shell: Shell
    detail: MessageView
    rows: Html
    earlier: int | None
    dropped: int
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


def message(session: Session, seq: int) -> MessageDetail | None:
    """One message of the log; None when it never existed or has left the log."""
    found = session.messages.get(seq)
    if found is None:
        return None
    page = log(session, after=None, at=seq)
    if page.detail is None:
        return None
    return MessageDetail(
        shell=page.shell,
        detail=page.detail,
        rows=page.rows,
        earlier=page.earlier,
        dropped=page.dropped,
        json=message_json(session, found),
    )


# ---------------------------------------------------------------------------------------------------- stderr, roots


@dataclass(slots=True)
class Stderr(Context):
    """What the server wrote to its standard error."""

    template: ClassVar[str] = "pages/stderr.html"

    shell: Shell
    lines: list[StderrLine]
    count: int
    has_process: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "lines": [{"number": one.number, "time": wire_time(one.at), "text": one.text} for one in self.lines],
            "count": self.count,
        }


def stderr(session: Session) -> Stderr:
    """The lines still kept."""
    return Stderr(
        shell=shell(session, "stderr", "Stderr"),
        lines=session.stderr.lines(),
        count=session.stderr.count,
        has_process=not isinstance(session.target, HttpTarget),
    )


@dataclass(slots=True)
class Roots(Context):
    """The directories the server may know about, and a form to change them."""

    template: ClassVar[str] = "pages/roots.html"
    part: ClassVar[str | None] = "parts/_roots.html"

    shell: Shell
    roots: list[Root]
    advertised: bool
    rows: list[tuple[str, str]]
    errors: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        return {"roots": [root.wire() for root in self.roots]}


def roots(
    session: Session, *, values: dict[str, Any] | None = None, errors: dict[str, list[str]] | None = None
) -> Roots:
    """The roots of a session, with what was typed when it could not be taken."""
    rows = [(root.uri, root.name or "") for root in session.roots]
    if values is not None:
        uris, names = _list_of(values, "root_uri"), _list_of(values, "root_name")
        rows = [(uri, names[index] if index < len(names) else "") for index, uri in enumerate(uris)]
    return Roots(
        shell=shell(session, "roots", "Roots"),
        roots=list(session.roots),
        advertised=session.options.roots,
        rows=rows,
        errors={pointer: " ".join(texts) for pointer, texts in (errors or {}).items()},
    )


# ------------------------------------------------------------------------------------------- about, signed out, problem


@dataclass(slots=True)
class About(Context):
    """What this process was started with; read-only."""

    template: ClassVar[str] = "pages/about.html"

    settings: list[tuple[str, str]]
    limits: list[tuple[str, str]]
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


def about(settings: Settings) -> About:
    """The settings, without secrets."""
    plain = settings.model_dump(mode="json", exclude={"token", "limits"})
    plain["script_access"] = settings.token is not None
    limits = settings.limits.model_dump(mode="json")
    return About(
        settings=[(key, show.gist(value, 200) if value is not None else "not set") for key, value in plain.items()],
        limits=[
            (key, f"{show.number(value)}" if isinstance(value, int) else f"{value:g}") for key, value in limits.items()
        ],
        json={"settings": plain, "limits": limits},
    )


@dataclass(slots=True)
class SignedOut(Context):
    """The page for somebody who has no cookie. It names no version, no path and no token (S08)."""

    template: ClassVar[str] = "pages/signed_out.html"
    part: ClassVar[str | None] = "parts/_problem.html"

    reason: str = ""
    title: str = "Not signed in"
    message: str = "Open the address that the terminal printed."
    fields: dict[str, list[str]] = field(default_factory=dict)
    advice: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"error": {"kind": "signed-out", "message": self.message, "fields": {}}}


def signed_out(reason: str = "") -> SignedOut:
    """The 401 page; `reason` says why a given code was not taken."""
    return SignedOut(reason=reason, message=reason or "Open the address that the terminal printed.")


_PROBLEMS = {
    400: ("That request could not be read", "Go back and try it again; if it stays so, the sender is at fault."),
    403: ("Refused", "The request came from another page or from a browser that hides where it came from."),
    404: ("Not here", "It may have been closed or never existed. Your open sessions are on the first page."),
    405: ("Not that way", "This address takes no such request."),
    409: ("Too late, or too early", "Things moved on in the meantime. Reload to see how they stand now."),
    413: ("Too large", "Send less at once."),
    422: ("Some of it needs another value", "Change it and send it again."),
    429: ("Too many", "Wait a moment, then try again."),
    500: ("Parley made a mistake", "The terminal has the details. Your sessions are still there."),
    503: ("Not ready", "Try again in a moment."),
}


@dataclass(slots=True)
class Problem(Context):
    """An answer that is no: what happened, and what to do."""

    template: ClassVar[str] = "pages/problem.html"
    part: ClassVar[str | None] = "parts/_problem.html"

    status: int
    kind: str
    title: str
    message: str
    advice: str
    fields: dict[str, list[str]]
    back: str

    def as_json(self) -> dict[str, Any]:
        return {"error": {"kind": self.kind, "message": self.message, "fields": self.fields}}


def problem(
    status: int, kind: str, message: str, fields: dict[str, list[str]] | None = None, *, back: str = "/"
) -> Problem:
    """The page, the part and the JSON of a refusal."""
    title, advice = _PROBLEMS.get(status, ("It did not work", "Go back and try it again."))
    return Problem(status, kind, title, message, advice, fields or {}, back)
