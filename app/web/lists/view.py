"""Lists of what a server has: the part of one that a page shows, a search in it, and what is new, changed or gone.

Tools, resources, templates and prompts are listed alike. A list may have ten thousand items: they are searched here, a
page shows a hundred of them, and nothing is made for the others. Knows listings; knows no route.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from app.core.lists import Listing
from app.core.times import wire_time
from app.sessions import Workspace
from app.sessions.lists import LISTS
from app.web.kit import format
from app.web.kit.words import finding_json, text_of
from app.web.lists.item import Item

PER_PAGE = 100
_SEARCHED = ("name", "title", "description", "uri", "uriTemplate", "mimeType")
GONE_SHOWN = 50
_PARTS = re.compile(r"(\d{1,12})")
_PREFIX = re.compile(r"([^\W_]{1,60})[._/:-]")
SHARED = 3
"""So many items of one prefix get a heading, where a list is sorted by name."""


@dataclass(slots=True, frozen=True)
class Window:
    """Which part of a list a page shows."""

    q: str = ""
    page: int = 1
    sort: str = ""
    """`name`: by name, with a heading for each prefix that several share; "": as the server lists them."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Window:
        """As the address says it; what makes no sense there is the first page."""
        text = query.get("page", "1")
        page = int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 1
        sort = "name" if query.get("sort") == "name" else ""
        return cls(query.get("q", "").strip()[:200], max(1, page), sort)

    def sorted_by(self, sort: str) -> Window:
        """The same search in another order, from its first page on."""
        return replace(self, sort=sort, page=1)

    def href(self, base: str, page: int) -> str:
        given = ({"q": self.q} if self.q else {}) | ({"sort": self.sort} if self.sort else {})
        given |= {"page": str(page)} if page > 1 else {}
        return f"{base}?{urlencode(given)}" if given else base


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


def by_name(listing: Listing, found: Sequence[int], known_by: str) -> list[int]:
    """The same places, in the order of what the items are known by; `list_10` stands behind `list_9`."""

    def key(index: int) -> tuple[tuple[int, str], ...]:
        item = listing.items[index]
        name = text_of(item.get(known_by)) if isinstance(item, dict) else ""
        return tuple((len(part) if part.isdecimal() else 0, part) for part in _PARTS.split(name[:200].casefold()))

    return sorted(found, key=key)


def prefix(name: str) -> str:
    """What a name begins with, up to the first mark between its words; "" when it is one word."""
    found = _PREFIX.match(name[:200])
    return found[1] if found else ""


def _text(item: Any) -> str:
    given = [item.get(key) for key in _SEARCHED] if isinstance(item, dict) else []
    return "\n".join([value for value in given if isinstance(value, str)]).casefold()


class ListView:
    """One list in a window; also a part of the stream, in the element that has the name of the list."""

    def __init__(self, session: Workspace, of: type[Item], window: Window) -> None:
        self.session, self.of, self.listing, self.kind = session, of, of.listing(session), LISTS[of.list_name]
        self.found = matching(self.listing, window.q)
        if window.sort:
            self.found = by_name(self.listing, self.found, self.kind.known_by)
        self.pages = max(1, -(-len(self.found) // PER_PAGE))
        self.page = min(window.page, self.pages)
        self.window = window

    @property
    def base(self) -> str:
        return self.session.base

    @property
    def href(self) -> str:
        return f"{self.base}/{self.of.path}"

    def page_href(self, page: int) -> str:
        return self.window.href(self.href, page)

    @property
    def first(self) -> int:
        """The number of the first item in the window, counted from one."""
        return (self.page - 1) * PER_PAGE + 1

    @property
    def last(self) -> int:
        return min(self.first + PER_PAGE - 1, len(self.found))

    @property
    def total(self) -> int:
        return len(self.listing.items)

    @property
    def items(self) -> list[Item]:
        return [self.of.at(self.session, index) for index in self.found[self.first - 1 : self.last]]

    @property
    def groups(self) -> Iterator[tuple[str, list[Item]]]:
        """The items of the window below the prefix that at least three of them share; "" for those that share none, and
        for all of them as long as the list has its own order."""
        items = self.items
        if not self.window.sort:
            return iter([("", items)])
        shared = Counter(prefix(one.label) for one in items)
        named = groupby(items, lambda one: key if shared[key := prefix(one.label)] >= SHARED else "")
        return ((key, list(some)) for key, some in named)

    def mark(self, item: Item) -> str:
        """`new` or `changed`, since the list was read the time before."""
        news, known = self.listing.news, item.said.get(self.kind.known_by)
        if news is None or not isinstance(known, str):
            return ""
        return "new" if known in news.new else "changed" if known in news.changed else ""

    @property
    def gone(self) -> list[str]:
        """What the list no longer has, as far as a page says so."""
        gone = [] if self.listing.news is None else self.listing.news.gone[:GONE_SHOWN]
        return [format.gist(text_of(one.get(self.kind.known_by)), 120) for one in gone if isinstance(one, dict)]

    @property
    def rejected(self) -> list[tuple[str, str]]:
        """Tools that may not be offered in 2026-07-28, by name and reason."""
        return [
            (format.gist(text_of(tool.get("name")) if isinstance(tool, dict) else "", 100), finding.text)
            for tool, finding in self.listing.rejected[:50]
        ]

    @property
    def fresh(self) -> float | None:
        """Until when the server says that the list may be used again."""
        return self.listing.fresh_until if self.listing.fresh(self.session.wall()) else None


def list_json(session: Workspace, of: type[Item]) -> dict[str, Any]:
    """A list for scripts: the server's objects as received."""
    listing, news, known_by = of.listing(session), of.listing(session).news, LISTS[of.list_name].known_by
    return {
        of.list_name: listing.items,
        "findings": [finding_json(one) for one in listing.findings],
        "state": listing.state,
        "stopped": listing.stopped,
        "pages": {
            "by_page": of.list_name in session.lists.by_page,
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
        **of.list_json(session),
    }
