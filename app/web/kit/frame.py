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
from app.web.kit.words import STATE_WORDS, text_of
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
    """What surrounds every page of a session: top bar, rail, inbox, drawer, stream, which goes on from `seq`.

    Everything is made when a template asks for it, and so only for pages."""

    session: Workspace
    page: str
    title: str
    of: str
    tool_key: str | None
    messages: list[Message]
    """Those that the drawer shows."""
    seq: int
    numbers: dict[str, str]

    @property
    def base(self) -> str:
        return f"/s/{self.session.id}"

    @property
    def state(self) -> str:
        return self.session.info.state

    @property
    def lead(self) -> str:
        """What there is to say of the connection in one line."""
        info = self.session.info
        if info.state != "ready":
            return STATE_WORDS[info.state]
        server = info.server_info if isinstance(info.server_info, dict) else {}
        said = [text_of(server.get("version"))[:40], f"pid {info.pid}" if info.pid is not None else ""]
        return ", ".join(part for part in said if part) or STATE_WORDS[info.state]

    @property
    def nav(self) -> list[NavItem]:
        return nav(self.session, self.numbers)

    @property
    def tools(self) -> list[Tool]:
        return Tool.first(self.session, RAIL_TOOLS)

    @property
    def earlier(self) -> int | None:
        """The first of the rows, when there are more before it."""
        first, shown = self.session.messages.first_seq, self.messages
        return shown[0].seq if shown and first is not None and shown[0].seq > first else None

    @property
    def stream_url(self) -> str:
        query = {"since": str(self.seq), "page": self.page} | ({"of": self.of} if self.of else {})
        return f"{self.base}/events?{urlencode(query)}"

    @property
    def rows(self) -> Html:
        """The rows of the drawer."""
        return log_rows(self.session, self.messages)

    @property
    def inbox(self) -> InboxView:
        """The inbox column."""
        return inbox_view(self.session)

    @property
    def parade(self) -> str:
        """Where the demo server is told to ask everything; "" for any other server."""
        return f"{self.base}/tools/parade" if isinstance(self.session.target, DemoTarget) else ""


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
    """The surroundings of one page, at this moment."""
    visible = session.messages.last(rows) if messages is None else messages
    return Shell(session, page, title, of, tool_key, visible, session.events.seq, counts(session))
