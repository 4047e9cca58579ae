"""Lists of what a server has: the part of one that a page shows, a search in it, and what is new, changed or gone.

Tools, resources, templates and prompts are listed alike. A list may have ten thousand items: they are searched here, a
page shows a hundred of them, and nothing is made for the others. Knows listings; knows no route.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from app.core.calls import CallError
from app.core.figures import measured
from app.core.lists import Listing
from app.core.times import wire_time
from app.core.wire import Finding
from app.sessions import Workspace
from app.sessions.lists import LISTS, ListName
from app.web.kit import format
from app.web.kit.words import finding_json, text_of

PER_PAGE = 100
_SEARCHED = ("name", "title", "description", "uri", "uriTemplate", "mimeType")
GONE_SHOWN = 50


@dataclass(slots=True, frozen=True)
class Window:
    """Which part of a list a page shows."""

    q: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Window:
        """As the address says it; what makes no sense there is the first page."""
        text = query.get("page", "1")
        page = int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 1
        return cls(query.get("q", "").strip()[:200], max(1, page))

    def href(self, base: str, page: int) -> str:
        given = ({"q": self.q} if self.q else {}) | ({"page": str(page)} if page > 1 else {})
        return f"{base}?{urlencode(given)}" if given else base


@dataclass(slots=True, frozen=True)
class Entry:
    """One item of a list, as a line that leads to its page."""

    name: str
    href: str
    title: str = ""
    description: str = ""
    detail: str = ""
    """What else one wants to know before opening it, in small print."""
    notes: tuple[str, ...] = ()
    mark: str = ""
    """`new` or `changed`, since the list was read the time before."""
    tag: str = ""
    """One word that somebody waits for, like *updated*."""


@dataclass(slots=True)
class ListView:
    """One list; also a part of the stream. `id` is the element's."""

    id: str
    base: str
    href: str
    words: str
    capability: str
    state: str
    connection: str
    offered: bool
    entries: list[Entry]
    total: int
    matching: int
    window: Window
    first: int
    pages: int
    findings: list[Finding]
    error: CallError | None
    stopped: str
    at: str
    by_page: bool
    more: bool
    gone: list[str] = field(default_factory=list)
    new: int = 0
    changed: int = 0
    rejected: list[tuple[str, str]] = field(default_factory=list)
    """Tools that may not be offered in 2026-07-28, by name and reason."""
    fresh: str = ""
    """Until when the server says that the list may be used again."""
    scope: str = ""
    from_cache: bool = False

    @property
    def last(self) -> int:
        return self.first + len(self.entries) - 1

    def page_href(self, page: int) -> str:
        return self.window.href(self.href, page)


def matching(listing: Listing, q: str) -> Sequence[int]:
    """The places of the items that hold every word of `q` in their name, title, description or address."""
    words = q.casefold().split()
    if not words:
        return range(len(listing.items))
    if listing.texts is None or len(listing.texts) != len(listing.items):
        listing.texts = [_text(item) for item in listing.items]
    found = [index for index, text in enumerate(listing.texts) if words[0] in text]
    for word in words[1:]:
        found = [index for index in found if word in listing.texts[index]]
    return found


def _text(item: Any) -> str:
    given = [item.get(key) for key in _SEARCHED] if isinstance(item, dict) else []
    return "\n".join([value for value in given if isinstance(value, str)]).casefold()


def list_view(
    session: Workspace, name: ListName, window: Window, entry: Callable[[int, dict[str, Any]], Entry], *, href: str
) -> ListView:
    """The window of a list, each of its items made by `entry`."""
    listing, kind = session.lists[name], LISTS[name]
    found = matching(listing, window.q)
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(window.page, pages)
    first = (page - 1) * PER_PAGE
    news = listing.news
    entries = []
    for index in found[first : first + PER_PAGE]:
        item = listing.items[index] if isinstance(listing.items[index], dict) else {}
        made = entry(index, item)
        known = item.get(kind.known_by)
        if news is not None and isinstance(known, str) and known in (news.new | news.changed):
            made = replace(made, mark="new" if known in news.new else "changed")
        entries.append(made)
    gone = [] if news is None else news.gone
    return ListView(
        id=name,
        base=f"/s/{session.id}",
        href=href,
        words=kind.words,
        capability=kind.capability,
        state=listing.state,
        connection=session.info.state,
        offered=session.lists.offered(name),
        entries=entries,
        total=len(listing.items),
        matching=len(found),
        window=Window(window.q, page),
        first=first + 1,
        pages=pages,
        findings=listing.findings[:50],
        error=listing.error,
        stopped=listing.stopped or "",
        at=format.time_of_day(listing.at) if listing.at is not None else "",
        by_page=name in session.lists.by_page,
        more=listing.next_cursor is not None,
        gone=[format.gist(text_of(one.get(kind.known_by)), 120) for one in gone[:GONE_SHOWN] if isinstance(one, dict)],
        new=0 if news is None else len(news.new),
        changed=0 if news is None else len(news.changed),
        rejected=[
            (format.gist(text_of(tool.get("name")) if isinstance(tool, dict) else "", 100), finding.text)
            for tool, finding in listing.rejected[:50]
        ],
        fresh=wire_time(listing.fresh_until) if listing.fresh(session.wall()) and listing.fresh_until else "",
        scope=listing.scope,
        from_cache=listing.from_cache,
    )


def list_json(session: Workspace, name: ListName, key: str) -> dict[str, Any]:
    """A list for scripts: the server's objects as received."""
    listing = session.lists[name]
    news, known_by = listing.news, LISTS[name].known_by
    return {
        key: listing.items,
        "findings": [finding_json(one) for one in listing.findings],
        "state": listing.state,
        "stopped": listing.stopped,
        "pages": {
            "by_page": name in session.lists.by_page,
            "read": listing.pages,
            "more": listing.next_cursor is not None,
        },
        "news": None
        if news is None
        else {
            "new": sorted(news.new),
            "changed": sorted(news.changed),
            "gone": [one.get(known_by) for one in news.gone if isinstance(one, dict)],
        },
        "rejected": [{"item": item, "finding": finding_json(finding)} for item, finding in listing.rejected],
        "fresh_until": None if listing.fresh_until is None else wire_time(listing.fresh_until),
        "cache_scope": listing.scope or None,
        "from_cache": listing.from_cache,
        "error": None if listing.error is None else {"code": listing.error.code, "message": listing.error.message},
    }


def annotation_text(hints: Any) -> tuple[str, ...]:
    """What a server says about a resource or a content block, in words: audience, priority, last change."""
    if not isinstance(hints, dict):
        return ()
    words = []
    audience = hints.get("audience")
    if isinstance(audience, list) and audience:
        words.append(
            "for "
            + " and ".join(format.gist(one, 20) if not isinstance(one, str) else one[:20] for one in audience[:3])
        )
    priority = hints.get("priority")
    if isinstance(priority, int | float) and not isinstance(priority, bool):
        words.append(f"priority {measured(float(priority))}")
    if isinstance(hints.get("lastModified"), str):
        words.append(f"changed {hints['lastModified'][:40]}")
    return tuple(words)


def icon_text(item: Mapping[str, Any]) -> str:
    """Icons in words: Parley loads nothing on a server's word, so they are named and not drawn (R5-08)."""
    icons = item.get("icons")
    if not isinstance(icons, list) or not icons:
        return ""
    first = icons[0] if isinstance(icons[0], dict) else {}
    source = text_of(first.get("src"))
    kind = text_of(first.get("mimeType"))[:40]
    where = "inside the listing" if source.startswith("data:") else format.gist(source, 80)
    return f"{format.plural(len(icons), 'icon')}, {kind + ', ' if kind else ''}{where}"
