"""The first page of a session: who the server is, what both sides offer, how it came about, what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from app.sessions import Workspace
from app.web.kit import format, json_tree
from app.web.kit.frame import Shell, figures, shell
from app.web.kit.html import Html
from app.web.kit.request_bodies import waiting_seconds
from app.web.kit.responses import show
from app.web.kit.templates import Context, fragment
from app.web.kit.words import target_json, text_of
from app.web.live.page import page
from app.web.live.parts import Part
from app.web.session.ping import PING

DEPRECATED = "deprecated since 2026-07-28"
"""Roots, sampling and logging: they work, and nobody should begin with them (R6-53)."""
_EITHER = {"extensions": "Extensions", "experimental": "Experimental"}
_THEIRS = _EITHER | {"resources": "Resources", "prompts": "Prompts", "logging": "Logging", "tasks": "Tasks"}
_OURS = _EITHER | {"sampling": "Sampling", "elicitation": "Elicitation", "tasks": "Receiver tasks"}


class Offer(NamedTuple):
    """One capability in words."""

    label: str
    detail: str
    href: str = ""


@dataclass(slots=True)
class ConnectionCard:
    """The connection in words, whatever state it is in: the body of the overview, and a part of the stream
    (`#connection`)."""

    session: Workspace

    @property
    def server(self) -> dict[str, str]:
        """What the server says of itself, as far as it is text."""
        given = self.session.info.server_info
        known = given if isinstance(given, dict) else {}
        return {key: text_of(known.get(key)) for key in ("name", "version", "description")}

    @property
    def traffic(self) -> str:
        return figures(self.session)["traffic"]

    @property
    def server_offers(self) -> list[Offer]:
        given = self.session.info.server_capabilities
        return [self._server_offer(*one) for one in given.items()][:60] if isinstance(given, dict) else []

    def _server_offer(self, key: str, value: Any) -> Offer:
        label, here = _THEIRS.get(key, key[:80]), f"/s/{self.session.id}/{key}"
        if key in {"tools", "resources", "prompts"}:
            tools = self.session.tools
            if key == "tools":
                label = format.plural(len(tools.items), "tool") if tools.state == "ready" else "Tools"
            members = {"subscribe": "subscriptions"} if key == "resources" else {}
            said = _said(value, {**members, "listChanged": "list changes announced"})
            return Offer(label, said or "list changes not announced", here)
        if key == "logging":
            return Offer(label, f"log messages, level on request; {DEPRECATED}", here)
        if key == "completions":
            return Offer("Completion", "of prompt and template arguments")
        if isinstance(value, dict):
            return Offer(label, ", ".join(str(one)[:60] for one in list(value)[:8]))
        return Offer(key[:80], format.gist(value, 60))

    @property
    def our_offers(self) -> list[Offer]:
        given = self.session.info.client_capabilities
        offers = []
        for key, value in given.items() if isinstance(given, dict) else ():
            if key == "roots":
                words = [_said(value, {"listChanged": "changes announced"}), DEPRECATED]
                roots = format.plural(len(self.session.roots), "root")
                offers.append(Offer(roots, "; ".join(filter(None, words)), f"/s/{self.session.id}/roots"))
            elif isinstance(value, dict):
                words = [", ".join(str(one) for one in value), DEPRECATED if key == "sampling" else ""]
                offers.append(Offer(_OURS.get(key, str(key)), "; ".join(filter(None, words))))
        return offers

    @property
    def server_tree(self) -> Html:
        return json_tree.tree(self.session.info.server_capabilities, open_depth=1, label="Server capabilities")

    @property
    def client_tree(self) -> Html:
        return json_tree.tree(self.session.info.client_capabilities, open_depth=1, label="Client capabilities")


def _said(value: Any, words: dict[str, str]) -> str:
    """What a capability declares of this, in words."""
    return ", ".join(text for key, text in words.items() if value.get(key)) if isinstance(value, dict) else ""


@dataclass(slots=True)
class Overview(Context):
    """The connection: who the server is, what both sides offer, how it came about, what went wrong."""

    template: ClassVar[str] = "session/page.html"
    part: ClassVar[str | None] = "session/_connection.html"

    shell: Shell
    connection: ConnectionCard


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
    return Overview(shell(session, "overview", session.label), ConnectionCard(session))


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


_CONNECTION = Part(
    "#connection",
    ("connection.changed", "listing.changed", "options.changed", "roots.changed"),
    lambda view: fragment("session/_connection.html", connection=ConnectionCard(view.session)),
)


@page("overview", _CONNECTION, PING, numbers=figures, notice=False)
async def overview(request: Request) -> Response:
    session: Workspace = request.state.session
    if seconds := waiting_seconds(request):
        await session.wait_connection(seconds)
    return await show(request, lambda: overview_page(session), lambda: overview_json(session))
