"""What each page shows: one context dataclass per template, rendered to HTML or to JSON by `render`.

The first page, the connection, tools, stderr, roots and the pages that say no are here; forms, calls and the log have
modules of their own, and this one names them all. Knows the session; knows no route, no form decoding, no stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from app.core.figures import grouped
from app.core.options import Root
from app.core.targets import HttpTarget
from app.core.times import wire_time
from app.core.wire import Finding, StderrLine
from app.sessions import Identity, SessionRegistry, Workspace
from app.settings import Settings
from app.web.calls.card import (
    CARDS,
    CallCard,
    Calls,
    CallView,
    call,
    call_alone_json,
    call_card,
    call_json,
    call_line,
    calls,
    is_call_of,
    is_large,
    recent_calls,
)
from app.web.connect.form import (
    ChoiceLine,
    ConnectFields,
    ConnectForm,
    Consent,
    TargetLine,
    connect_fields,
    connect_form,
    consent,
    kept_json,
    target_lines,
)
from app.web.kit import html as show
from app.web.kit.frame import (
    CALL_WORDS,
    STATE_WORDS,
    Argument,
    Context,
    Shell,
    ToolLink,
    Twofold,
    annotation_words,
    arguments_of,
    counts,
    figures,
    find_tool,
    fragment,
    jinja,
    json_bytes,
    json_bytes_apart,
    key_at,
    keys_of,
    list_of,
    render,
    shell,
    target_json,
    text_of,
    tool_keys,
    tool_link,
    tool_links,
    transport_words,
)
from app.web.kit.html import Html
from app.web.lists.view import Entry, ListView, Window, list_json, list_view
from app.web.log.server_log import ping_view
from app.web.log.view import Log, MessageDetail, log, message, message_json

__all__ = [
    "CALL_WORDS",
    "CARDS",
    "STATE_WORDS",
    "About",
    "Argument",
    "CallCard",
    "CallView",
    "Calls",
    "ChoiceLine",
    "ConnectFields",
    "ConnectForm",
    "ConnectionView",
    "Consent",
    "Context",
    "Home",
    "Log",
    "MessageDetail",
    "Offer",
    "Overview",
    "Problem",
    "Roots",
    "SessionLine",
    "Shell",
    "SignedOut",
    "Stderr",
    "TargetLine",
    "Tool",
    "ToolLink",
    "Tools",
    "about",
    "annotation_words",
    "arguments_of",
    "call",
    "call_alone_json",
    "call_card",
    "call_json",
    "call_line",
    "calls",
    "connect_fields",
    "connect_form",
    "connection_json",
    "connection_view",
    "consent",
    "counts",
    "figures",
    "find_tool",
    "fragment",
    "home",
    "is_call_of",
    "is_large",
    "jinja",
    "json_bytes",
    "json_bytes_apart",
    "log",
    "message",
    "message_json",
    "overview",
    "ping_view",
    "problem",
    "recent_calls",
    "render",
    "roots",
    "shell",
    "signed_out",
    "stderr",
    "target_json",
    "tool",
    "tool_keys",
    "tool_links",
    "tools",
    "tools_view",
    "transport_words",
]


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


@dataclass(slots=True)
class Home(Context):
    """Open sessions, a way to a new one, and how to read Parley."""

    template: ClassVar[str] = "connect/home.html"

    sessions: list[SessionLine]
    saved: list[TargetLine]
    recent: list[TargetLine]
    form: ConnectFields
    sessions_json: list[dict[str, Any]]
    targets_json: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {"sessions": self.sessions_json, "targets": self.targets_json}


def _session_line(session: Workspace) -> SessionLine:
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


def home(registry: SessionRegistry, identity: Identity, settings: Settings, *, target: str = "") -> Home:
    """The first page; `target` is a kept one to begin the form with."""
    sessions = sorted(registry.of(identity), key=lambda one: one.number, reverse=True)
    lines = target_lines(registry, identity)
    return Home(
        sessions=[_session_line(session) for session in sessions],
        saved=[one for one in lines if one.name],
        recent=[one for one in lines if not one.name],
        form=connect_fields(None, {"like": target} if target else None, None, registry=registry, identity=identity),
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
        targets_json=[kept_json(one) for one in registry.store.of(identity.id)],
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
    waits: str
    """While connecting: how long the server may take."""
    remembered: bool
    """Its era was not found out this time, but remembered."""
    target_label: str
    has_target: bool
    findings: list[Finding]
    stopped_after: str
    renewed: str
    """Why Parley began this connection by itself."""


def _said(value: Any, *keys: str) -> str:
    if not isinstance(value, dict):
        return ""
    return ", ".join(words for key, words in zip(keys[::2], keys[1::2], strict=True) if value.get(key))


def _server_offers(session: Workspace) -> list[Offer]:
    given = session.info.server_capabilities
    if not isinstance(given, dict):
        return []
    base = f"/s/{session.id}"
    tools = len(session.tools.items)
    changes, unsaid = "list changes announced", "list changes not announced"
    names = {"tasks": "Tasks", "extensions": "Extensions", "experimental": "Experimental"}
    offers = []
    for key, value in given.items():
        if key == "tools":
            label = show.plural(tools, "tool") if session.tools.state == "ready" else "Tools"
            offers.append(Offer(label, _said(value, "listChanged", changes) or unsaid, f"{base}/tools"))
        elif key == "resources":
            words = _said(value, "subscribe", "subscriptions", "listChanged", changes)
            offers.append(Offer("Resources", words or unsaid, f"{base}/resources"))
        elif key == "prompts":
            offers.append(Offer("Prompts", _said(value, "listChanged", changes) or unsaid, f"{base}/prompts"))
        elif key == "logging":
            words = f"log messages, level on request; {DEPRECATED}"
            offers.append(Offer("Logging", words, f"{base}/logging"))
        elif key == "completions":
            offers.append(Offer("Completion", "of prompt and template arguments"))
        elif isinstance(value, dict):
            offers.append(Offer(names.get(key, key[:80]), ", ".join(str(one)[:60] for one in list(value)[:8])))
        else:
            offers.append(Offer(key[:80], show.gist(value, 60)))
    return offers[:60]


DEPRECATED = "deprecated since 2026-07-28"
"""Roots, sampling and logging: they work, and nobody should begin with them (R6-53)."""


def _our_offers(session: Workspace) -> list[Offer]:
    given = session.info.client_capabilities
    if not isinstance(given, dict):
        return []
    offers = []
    names = {
        "sampling": "Sampling",
        "elicitation": "Elicitation",
        "tasks": "Receiver tasks",
        "extensions": "Extensions",
        "experimental": "Experimental",
    }
    for key, value in given.items():
        if key == "roots":
            words = "; ".join(each for each in (_said(value, "listChanged", "changes announced"), DEPRECATED) if each)
            offers.append(Offer(show.plural(len(session.roots), "root"), words, f"/s/{session.id}/roots"))
        elif isinstance(value, dict):
            said = [", ".join(str(one) for one in value), DEPRECATED if key == "sampling" else ""]
            offers.append(Offer(names.get(key) or str(key), "; ".join(each for each in said if each)))
    return offers


def connection_view(session: Workspace) -> ConnectionView:
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
        title=text_of(server.get("title")) or text_of(server.get("name")) or session.label,
        name=text_of(server.get("name")),
        version=text_of(server.get("version"))[:60],
        description=text_of(server.get("description")),
        instructions=info.instructions or "",
        protocol=f"{info.protocol_version or ''}{', no handshake' if info.era == 'modern' else ''}",
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
        waits=show.duration(info.waits * 1000) if info.waits is not None else "",
        remembered=info.era_from == "memory",
        target_label=session.target.label if session.target is not None else "",
        has_target=session.target is not None,
        findings=session.tools.findings[:20],
        stopped_after=lasted,
        renewed=info.renewed or "",
    )


@dataclass(slots=True)
class Overview(Twofold):
    """The connection: who the server is, what both sides offer, how it came about, what went wrong."""

    template: ClassVar[str] = "session/page.html"
    part: ClassVar[str | None] = "session/_connection.html"


def connection_json(session: Workspace) -> dict[str, Any]:
    """The `connection` object that scripts rely on."""
    info, trouble = session.info, session.info.trouble
    return {
        "state": info.state,
        "number": info.number,
        "era": info.era,
        "era_from": info.era_from,
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
        "renewed": info.renewed,
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


def overview(session: Workspace) -> Overview:
    """The first page of a session."""
    return Overview(
        page=lambda: {
            "shell": shell(session, "overview", session.label),
            "connection": connection_view(session),
            "ping": ping_view(session),
        },
        json=lambda: overview_json(session),
    )


def overview_json(session: Workspace) -> dict[str, Any]:
    """The session, by the names that scripts rely on."""
    log = session.messages
    return {
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
            "stderr_lines_by_probe": session.stderr.by_probe,
            "tools": len(session.tools.items),
            "calls": sum(not call.quiet for call in session.calls.values()),
            "running": sum(not call.settled for call in session.calls.values()),
        },
        "seq": session.events.seq,
    }


# ------------------------------------------------------------------------------------------------------------- tools


def tools_view(session: Workspace, window: Window | None = None) -> ListView:
    """The list of tools; also a part of the stream (`#tools`)."""
    keys = keys_of(session.tools)

    def entry(index: int, item: dict[str, Any]) -> Entry:
        link = tool_link(session, keys[index], item)
        words = link.arguments or "no arguments"
        notes = (*link.notes, link.task) if link.task else link.notes
        return Entry(link.name, link.href, link.title, link.description, words, notes)

    return list_view(session, "tools", window or Window(), entry, href=f"/s/{session.id}/tools")


@dataclass(slots=True)
class Tools(Context):
    """Every tool the server listed."""

    template: ClassVar[str] = "tools/page.html"
    part: ClassVar[str | None] = "tools/_list.html"

    shell: Shell
    tools: ListView

    def as_json(self) -> dict[str, Any]:
        session = self.shell.session
        return list_json(session, "tools", "tools") | {"keys": keys_of(session.tools)}


def tools(session: Workspace, window: Window | None = None) -> Tools:
    """The list of tools, and as JSON the server's objects as received."""
    return Tools(
        shell=shell(session, "tools", "Tools"),
        tools=tools_view(session, window),
    )


@dataclass(slots=True)
class Tool(Context):
    """One tool: what it says of itself, its arguments, a box to call it, and its recent calls."""

    template: ClassVar[str] = "tools/tool.html"

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
    time_limit: str
    cards: list[CallCard]
    raw: Any

    def as_json(self) -> dict[str, Any]:
        return {"tool": self.raw, "key": self.key}


def tool(session: Workspace, key: str) -> Tool | None:
    """The page of one tool; None when the server lists no such tool."""
    index = find_tool(session.tools, key)
    if index is None:
        return None
    raw = session.tools.items[index]
    item = raw if isinstance(raw, dict) else {}
    own_key = key_at(session.tools, index)
    link = tool_link(session, own_key, item)
    hints = item.get("annotations")
    title = text_of(item.get("title")) or (text_of(hints.get("title")) if isinstance(hints, dict) else "") or link.name
    schema = item.get("inputSchema")
    options = session.options
    time_limit = f"time limit {show.duration(options.request_timeout_ms)}"
    recent = [call for call in recent_calls(session) if is_call_of(call, item.get("name"))][:CARDS]
    return Tool(
        shell=shell(session, "tool", f"{link.name}", of=own_key, tool_key=own_key),
        key=own_key,
        name=text_of(item.get("name")),
        title=title,
        description=text_of(item.get("description")),
        notes=annotation_words(hints),
        arguments=arguments_of(schema),
        input_schema=show.tree(schema, open_depth=2, label="Input schema") if schema is not None else None,
        output_schema=show.tree(item["outputSchema"], open_depth=2, label="Output schema")
        if "outputSchema" in item
        else None,
        whole=show.tree(raw, open_depth=2, label="The tool as the server listed it"),
        time_limit=time_limit + (", renewed by progress" if options.reset_timeout_on_progress else ""),
        cards=[call_card(session, call) for call in recent],
        raw=raw,
    )


# ---------------------------------------------------------------------------------------------------- stderr, roots


@dataclass(slots=True)
class Stderr(Context):
    """What the server wrote to its standard error."""

    template: ClassVar[str] = "session/stderr.html"

    shell: Shell
    lines: list[StderrLine]
    count: int
    by_probe: int
    """How many of them complain of our probe."""
    has_process: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "lines": [
                {"number": one.number, "time": wire_time(one.at), "text": one.text, "by_probe": one.by_probe}
                for one in self.lines
            ],
            "count": self.count,
            "by_probe": self.by_probe,
        }


def stderr(session: Workspace) -> Stderr:
    """The lines still kept."""
    return Stderr(
        shell=shell(session, "stderr", "Stderr"),
        lines=session.stderr.lines(),
        count=session.stderr.count,
        by_probe=session.stderr.by_probe,
        has_process=not isinstance(session.target, HttpTarget),
    )


@dataclass(slots=True)
class Roots(Context):
    """The directories the server may know about, and a form to change them."""

    template: ClassVar[str] = "session/roots.html"
    part: ClassVar[str | None] = "session/_roots.html"

    shell: Shell
    roots: list[Root]
    advertised: bool
    rows: list[tuple[str, str]]
    errors: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        return {"roots": [root.wire() for root in self.roots]}


def roots(
    session: Workspace, *, values: dict[str, Any] | None = None, errors: dict[str, list[str]] | None = None
) -> Roots:
    """The roots of a session, with what was typed when it could not be taken."""
    rows = [(root.uri, root.name or "") for root in session.roots]
    if values is not None:
        uris, names = list_of(values, "root_uri"), list_of(values, "root_name")
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

    template: ClassVar[str] = "session/about.html"

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
            (key, f"{grouped(value)}" if isinstance(value, int) else f"{value:g}") for key, value in limits.items()
        ],
        json={"settings": plain, "limits": limits},
    )


@dataclass(slots=True)
class SignedOut(Context):
    """The page for somebody who has no cookie. It names no version, no path and no token (S08)."""

    template: ClassVar[str] = "errors/signed_out.html"
    part: ClassVar[str | None] = "errors/_problem.html"

    reason: str = ""
    title: str = "Not signed in"
    message: str = "Open the address that the terminal printed."
    fields: dict[str, list[str]] = field(default_factory=dict)
    advice: str = ""
    outside: bool = False
    """Whether the address lacks the path below which browsers live."""

    def as_json(self) -> dict[str, Any]:
        return {"error": {"kind": "signed-out", "message": self.message, "fields": {}}}


def signed_out(reason: str = "", *, outside: bool = False) -> SignedOut:
    """The 401 page; `reason` says why a given code was not taken."""
    return SignedOut(reason=reason, message=reason or "Open the address that the terminal printed.", outside=outside)


_PROBLEMS = {
    400: ("That request could not be read", "Go back and try it again; if it stays so, the sender is at fault."),
    403: ("Refused", "The request came from another page or from a browser that hides where it came from."),
    404: ("Not here", "Your open sessions are on the first page."),
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

    template: ClassVar[str] = "errors/page.html"
    part: ClassVar[str | None] = "errors/_problem.html"

    status: int
    kind: str
    title: str
    message: str
    advice: str
    fields: dict[str, list[str]]
    session: str
    """The address of the session in which it happened; "" outside of one."""

    def as_json(self) -> dict[str, Any]:
        return {"error": {"kind": self.kind, "message": self.message, "fields": self.fields}}


def problem(
    status: int, kind: str, message: str, fields: dict[str, list[str]] | None = None, *, session: str = ""
) -> Problem:
    """The page, the part and the JSON of a refusal."""
    title, advice = _PROBLEMS.get(status, ("It did not work", "Go back and try it again."))
    # In a session the sentence itself says what is missing, and the way back is beside it.
    return Problem(status, kind, title, message, "" if session and status == 404 else advice, fields or {}, session)
