"""What a server says it has: tools, resources, resource templates and prompts, each list as received.

A list is read whole, guarded against endless cursors, again when the server says that it changed. Knows the session it
serves; knows nothing of the web.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from app.core.jsontext import share_strings
from app.core.model import CallError, Finding, Gone, Listing, Refused
from app.sessions.identity import PARLEY

if TYPE_CHECKING:
    from app.sessions.session import Session

ListName = Literal["tools", "resources", "templates", "prompts"]


@dataclass(slots=True, frozen=True)
class _List:
    """How the protocol speaks of one list."""

    method: str
    key: str
    capability: str
    words: str
    """What its items are called."""


LISTS: dict[ListName, _List] = {
    "tools": _List("tools/list", "tools", "tools", "tools"),
    "resources": _List("resources/list", "resources", "resources", "resources"),
    "templates": _List("resources/templates/list", "resourceTemplates", "resources", "resource templates"),
    "prompts": _List("prompts/list", "prompts", "prompts", "prompts"),
}
_AT_ONCE: tuple[ListName, ...] = ("tools",)
"""Read as soon as the connection is ready; the others when somebody looks."""


class Listings:
    """The lists of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._of: dict[ListName, Listing] = {name: Listing() for name in LISTS}
        self._again: set[ListName] = set()

    def __getitem__(self, name: ListName) -> Listing:
        return self._of[name]

    def offered(self, name: ListName) -> bool:
        """Whether the server said that it has such a list."""
        return self._session.info.offers(LISTS[name].capability)

    # ---- when to read

    def reset(self) -> None:
        """A new connection begins: nothing is known yet."""
        self._of = {name: Listing() for name in LISTS}
        self._again.clear()

    def connected(self) -> None:
        """The connection is ready."""
        for name in _AT_ONCE:
            self.load(name)

    def connection_ended(self) -> None:
        """A list that was being read will not be complete."""
        for listing in self._of.values():
            if listing.state == "loading":
                listing.state = "failed"

    def notified(self, method: str) -> None:
        """The server says that a list changed: read it again, if it was read."""
        for name, kind in LISTS.items():
            if method == f"notifications/{kind.capability}/list_changed" and self._session.info.state == "ready":
                if self._of[name].state == "loading":
                    self._again.add(name)
                elif self._of[name].state != "none" or name in _AT_ONCE:
                    self.load(name)

    def load(self, name: ListName) -> None:
        """Begin to read a list, unless it is being read or the server has none."""
        listing = self._of[name]
        if self._session.info.state == "ready" and self.offered(name) and listing.state != "loading":
            listing.state = "loading"
            self._session.start_soon(self._read, name)

    async def refresh(self, name: ListName) -> None:
        """Read a list again, and wait for it."""
        self.load(name)
        seconds = self._session.options.request_timeout_ms / 1000
        await self._session.until(lambda: self._of[name].state != "loading", seconds)

    # ---- reading

    async def _read(self, name: ListName) -> None:
        """All pages, as received; guarded against endless cursors (R5-26)."""
        session, kind, limits = self._session, LISTS[name], self._session.limits
        self._again.discard(name)
        info, size = session.info, 0
        listing = Listing(state="loading")
        cursor: Any = None
        cursors: set[str] = set()
        for page in itertools.count(1):
            try:
                call = session.start_call(kind.method, {"cursor": cursor} if page > 1 else None, quiet=True, by=PARLEY)
            except (Gone, Refused) as no:
                listing.error = CallError(None, no.message, kind="refused")
                break
            await session.until(lambda call=call: call.settled, None, call.id)  # type: ignore[misc]
            if call.state != "done":
                listing.error = call.error
                break
            size += len(call.reply or b"")
            result = await session.result(call)
            items = result.get(kind.key) if isinstance(result, dict) else None
            listing.findings += call.findings
            listing.items += share_strings(items) if isinstance(items, list) else []
            cursor = result.get("nextCursor") if isinstance(result, dict) else None
            if cursor is None:
                break
            if not isinstance(cursor, str):
                listing.stopped = f"The cursor of page {page} is no string, so the list ends here."
            elif cursor in cursors:
                listing.stopped = f"The cursor of page {page} came a second time, so the list ends here."
            elif page >= limits.list_pages or len(listing.items) >= limits.list_items or size >= limits.log_bytes:
                found = f"{len(listing.items)} {kind.words}"
                listing.stopped = f"There is more: Parley stopped after {page} pages and {found}."
            if listing.stopped is not None:
                listing.findings.append(
                    Finding("R5-26", "note", listing.stopped, "Follow the cursor by hand if you need more.")
                )
                break
            cursors.add(cursor)
        if session.info is not info:
            return
        listing.state = "failed" if listing.error is not None else "ready"
        listing.at = session.wall()
        self._of[name] = listing
        session.changed("listing.changed", name)
        if name in self._again:
            self._again.discard(name)
            self.load(name)
