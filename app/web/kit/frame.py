"""The frame around every page of a session: top bar, rail, inbox, drawer, stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

from app.core.figures import grouped
from app.core.targets import DemoTarget
from app.core.wire import Message
from app.sessions import Workspace
from app.web.asks.card import InboxView, inbox_view, refused_words, summary
from app.web.kit import format
from app.web.kit.html import Html
from app.web.kit.words import STATE_WORDS, text_of, transport_words
from app.web.log.row import log_rows
from app.web.tools.tool import Tool

RAIL_TOOLS = 200


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
        "inbox-sum": summary(session),
        "inbox-refused": refused_words(session),
        "n-roots": grouped(len(session.roots)) if session.roots else "",
        "n-log": grouped(log.count) if log.count else "",
        "n-stderr": grouped(own) if (own := session.stderr.count - session.stderr.by_probe) else "",
        "log-count": grouped(log.count),
        "log-sum": f"{grouped(log.inbound)} in, {grouped(log.outbound)} out, "
        f"{format.plural(log.findings_total, 'finding')}",
    }


def _many(session: Workspace, name: Literal["tools", "resources", "prompts"]) -> str:
    """How many of a list are known; "" until somebody has looked."""
    listing = session.lists[name]
    return "" if listing.at is None else grouped(len(listing.items)) + ("+" if listing.next_cursor else "")


def figures(session: Workspace) -> dict[str, str]:
    """The numbers of the overview, by element id."""
    log = session.messages
    traffic = f"{format.plural(log.count, 'message')}, {format.size(log.bytes_total)}"
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
    tools: list[Tool]
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
        return inbox_view(self.session)

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
        tools=Tool.first(session, RAIL_TOOLS),
        tools_total=len(session.tools.items),
        tool_key=tool_key,
        numbers=numbers,
        earlier=visible[0].seq if visible and first is not None and visible[0].seq > first else None,
        stream_url=f"/s/{session.id}/events?{urlencode(query)}",
        trouble=session.info.trouble.message if session.info.trouble is not None else "",
        session=session,
        messages=visible,
    )
