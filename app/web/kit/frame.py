"""The frame around every page of a session: top bar, rail, inbox, drawer, stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import urlencode

from app.core.figures import grouped
from app.core.folds import Entry, folded, worth
from app.core.targets import DemoTarget
from app.sessions import Workspace
from app.sessions.lists import ListName
from app.web.asks.card import InboxView, inbox_view, refused_words, summary
from app.web.door.reader import fixed, may
from app.web.kit import format
from app.web.kit.html import Html
from app.web.kit.words import state_words, text_of
from app.web.lists.item import KINDS, Item
from app.web.lists.keys import find_item
from app.web.log.row import log_rows
from app.web.sign_in.card import SignInCard, card_of

RAIL_ITEMS = 200


_RAIL: dict[str, ListName] = {
    "resources": "resources",
    "resource": "resources",
    "templates": "templates",
    "template": "templates",
    "prompts": "prompts",
    "prompt": "prompts",
}
"""The pages on which the rail lists something else than tools."""


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


class Rail(NamedTuple):
    """What the rail lists below the menu."""

    of: type[Item]
    items: list[Item]
    total: int
    key: str
    """The one that the page shows; "" when it shows none of them."""


def rail(session: Workspace, page: str, key: str) -> Rail:
    """What a page is about, as far as the rail has room, and what it shows in any case; tools on all other pages."""
    of = KINDS[_RAIL.get(page, "tools")]
    listing = of.listing(session)
    items: list[Item] = list(of.first(session, RAIL_ITEMS))
    shown = key if page in ("tool", "resource", "template", "prompt") else ""
    if shown and len(listing.items) > RAIL_ITEMS and all(one.key != shown for one in items):
        place = find_item(listing, shown)
        items += [] if place is None else [of.at(session, place)]
    return Rail(of, items, len(listing.items), shown)


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
        "n-rules": rules_words(session),
        "n-roots": grouped(len(session.roots)) if session.roots else "",
        "n-log": grouped(log.count) if log.count else "",
        "n-stderr": grouped(session.stderr.own) if session.stderr.own else "",
        "log-count": grouped(log.count),
        "log-invalid": grouped(log.invalid) if log.invalid else "",
        "log-findings": grouped(log.findings_total) if log.findings_total else "",
        "log-sum": f"{grouped(log.inbound)} in, {grouped(log.outbound)} out, "
        f"{format.plural(log.findings_total, 'finding')}",
    }


def rules_words(session: Workspace) -> str:
    """How many answer rules are on, or how many there are."""
    rules = session.asks.rules
    on = sum(one.rule.on for one in rules.all.values())
    return f"{on} paused" if on and rules.paused else f"{on} on" if on else str(len(rules.all) or "")


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
    entries: list[Entry]
    """What the drawer shows: messages, and folds of many."""
    earlier: int | None
    """The first of them, when there are more before it."""
    seq: int
    numbers: dict[str, str]

    @property
    def base(self) -> str:
        return self.session.base

    @property
    def state(self) -> str:
        return self.session.info.state

    @property
    def lead(self) -> str:
        """What there is to say of the connection in one line."""
        info = self.session.info
        if info.state != "ready":
            return state_words(self.session)
        server = info.server_info if isinstance(info.server_info, dict) else {}
        said = [text_of(server.get("version"))[:40], f"pid {info.pid}" if info.pid is not None else ""]
        return ", ".join(part for part in said if part) or state_words(self.session)

    @property
    def nav(self) -> list[NavItem]:
        return nav(self.session, self.numbers)

    @property
    def rail(self) -> Rail:
        """What the rail lists below the menu: what the page is about."""
        return rail(self.session, self.page, self.tool_key if self.tool_key is not None else self.of)

    @property
    def recorded_to(self) -> str:
        """Where a recording of this session goes, for people."""
        return self.session.recorded_to

    @property
    def stream_url(self) -> str:
        query = {"since": str(self.seq), "page": self.page} | ({"of": self.of} if self.of else {})
        return f"{self.base}/events?{urlencode(query)}"

    @property
    def rows(self) -> Html:
        """The rows of the drawer."""
        return log_rows(self.session, self.entries)

    @property
    def inbox(self) -> InboxView:
        """The inbox column."""
        return inbox_view(self.session)

    @property
    def sign_in(self) -> SignInCard | None:
        """How far signing in to the server is; None where no server wanted it."""
        return card_of(self.session)

    @property
    def parade(self) -> str:
        """Where the demo server is told to ask everything; "" for any other server."""
        return f"{self.base}/tools/parade" if isinstance(self.session.target, DemoTarget) else ""


def signs_in(session: Workspace) -> bool:
    """Whether whoever reads this signs in to the server here."""
    return session.sign_in.current is not None and (session.read_only or may("act"))


def nav(session: Workspace, numbers: dict[str, str]) -> list[NavItem]:
    """The rail. What the server does not offer is grey and says why; its page teaches what would make it appear."""
    base, info = session.base, session.info

    def why(capability: str) -> str:
        if info.state != "ready" or info.offers(capability):
            return ""
        return f"The server did not declare {capability}."

    kin, rules = ("resource", "templates", "template"), numbers["n-rules"]
    plain = fixed(session) or session.visited
    return [
        NavItem("overview", "Overview", "conn", base, ""),
        NavItem("tools", "Tools", "tool", f"{base}/tools", numbers["n-tools"], why("tools"), ("tool",)),
        NavItem("resources", "Resources", "res", f"{base}/resources", numbers["n-resources"], why("resources"), kin),
        NavItem("prompts", "Prompts", "prompt", f"{base}/prompts", numbers["n-prompts"], why("prompts"), ("prompt",)),
        NavItem(
            "calls", "Calls", "run", f"{base}/calls", numbers["n-calls"], "", ("call", "compose", "compare", "pair")
        ),
        NavItem("tasks", "Tasks", "task", f"{base}/tasks", numbers["n-tasks"], "", ("task",)),
        NavItem("timeline", "Timeline", "tline", f"{base}/timeline", ""),
        *([] if plain else [NavItem("rules", "Rules", "rule", f"{base}/rules", rules, "", ("rule",))]),
        *([] if plain else [NavItem("models", "Models", "model", f"{base}/models", "")]),
        NavItem("roots", "Roots", "root", f"{base}/roots", numbers["n-roots"]),
        *(
            [NavItem("subscriptions", "Subscriptions", "i-not", f"{base}/subscriptions", "")]
            if session.wire.listens
            else []
        ),
        *([NavItem("sign-in", "Sign-in", "key", f"{base}/sign-in", "")] if signs_in(session) else []),
        NavItem("log", "Log", "loglist", f"{base}/log", numbers["n-log"]),
        NavItem("logging", "Server logging", "says", f"{base}/logging", numbers["n-logging"], why("logging")),
        NavItem("stderr", "Stderr", "err", f"{base}/stderr", numbers["n-stderr"]),
    ]


def shell(
    session: Workspace,
    page: str,
    title: str,
    *,
    of: str = "",
    tool_key: str | None = None,
    shown: tuple[list[Entry], int | None] | None = None,
    rows: int = 200,
) -> Shell:
    """The surroundings of one page, at this moment. `shown` is what the log shows, with the oldest message in it; else
    the newest rows."""
    log = session.messages
    entries, oldest = folded(log.back(), worth(log), rows) if shown is None else shown
    earlier = oldest if oldest is not None and log.first_seq is not None and oldest > log.first_seq else None
    return Shell(session, page, title, of, tool_key, entries, earlier, session.events.seq, counts(session))
