"""The first page of a session: who the server is, what both sides offer, how it came about, what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.times import wire_time
from app.core.wire import Finding
from app.sessions import Workspace
from app.web.kit import format, json_tree
from app.web.kit.frame import Shell, figures, shell
from app.web.kit.html import Html
from app.web.kit.request_bodies import waiting_seconds
from app.web.kit.responses import show
from app.web.kit.templates import Context, fragment
from app.web.kit.words import target_json, text_of, transport_words
from app.web.live.page import page
from app.web.live.parts import Part, View
from app.web.session.ping import PING, PingView, ping_view


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
            label = format.plural(tools, "tool") if session.tools.state == "ready" else "Tools"
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
            offers.append(Offer(key[:80], format.gist(value, 60)))
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
            offers.append(Offer(format.plural(len(session.roots), "root"), words, f"/s/{session.id}/roots"))
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
        connected = f"in {format.duration(info.connect_ms)}, at {format.time_of_day(info.ready_at)}"
    lasted = ""
    if info.ended_at is not None and info.ready_at is not None:
        lasted = format.duration((info.ended_at - info.ready_at) * 1000)
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
        server_capabilities=json_tree.tree(info.server_capabilities, open_depth=1, label="Server capabilities")
        if known
        else None,
        client_capabilities=json_tree.tree(info.client_capabilities, open_depth=1, label="Client capabilities")
        if isinstance(info.client_capabilities, dict)
        else None,
        steps=list(info.steps),
        took=format.duration(info.connect_ms),
        trouble=info.trouble,
        deadline=wire_time(info.deadline_at) if info.deadline_at is not None and info.state == "connecting" else None,
        waits=format.duration(info.waits * 1000) if info.waits is not None else "",
        remembered=info.era_from == "memory",
        target_label=session.target.label if session.target is not None else "",
        has_target=session.target is not None,
        findings=session.tools.findings[:20],
        stopped_after=lasted,
        renewed=info.renewed or "",
    )


@dataclass(slots=True)
class Overview(Context):
    """The connection: who the server is, what both sides offer, how it came about, what went wrong."""

    template: ClassVar[str] = "session/page.html"
    part: ClassVar[str | None] = "session/_connection.html"

    shell: Shell
    connection: ConnectionView
    ping: PingView


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


def overview_page(session: Workspace) -> Overview:
    """The first page of a session."""
    return Overview(
        shell=shell(session, "overview", session.label),
        connection=connection_view(session),
        ping=ping_view(session),
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


def _connection(view: View) -> Html:
    return fragment("session/_connection.html", connection=connection_view(view.session))


_STATE = ("connection.changed", "listing.changed", "options.changed", "roots.changed")


@page("overview", Part("#connection", _STATE, _connection), PING, numbers=figures, notice=False)
async def overview(request: Request) -> Response:
    session: Workspace = request.state.session
    if seconds := waiting_seconds(request):
        await session.wait_connection(seconds)
    return await show(request, lambda: overview_page(session), lambda: overview_json(session))
