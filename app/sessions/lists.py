"""What a server says it has: tools, resources, resource templates and prompts, each list as received.

A list is read whole, guarded against endless cursors, or page by page when the person wants it so. It is read again
when the server says that it changed, and then says what is new, changed or gone. A list that changes whenever it is
read is read again after a pause that grows. Knows the session it serves; knows nothing of the web.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from app.core.calls import CallError
from app.core.connection import ConnectionInfo
from app.core.errors import Conflict, Invalid, NotAllowed
from app.core.json.text import THREAD_ABOVE, share_equal
from app.core.lane import apart
from app.core.lists import RESTLESS, Listing, News
from app.core.rules import catalogue, stateless
from app.core.targets import target_digest
from app.sessions.identity import PARLEY

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace

ListName = Literal["tools", "resources", "templates", "prompts"]


@dataclass(slots=True, frozen=True)
class _List:
    """How the protocol speaks of one list."""

    method: str
    key: str
    capability: str
    words: str
    """What its items are called."""
    known_by: str
    """The member that tells one item from another."""


LISTS: dict[ListName, _List] = {
    "tools": _List("tools/list", "tools", "tools", "tools", "name"),
    "resources": _List("resources/list", "resources", "resources", "resources", "uri"),
    "templates": _List(
        "resources/templates/list", "resourceTemplates", "resources", "resource templates", "uriTemplate"
    ),
    "prompts": _List("prompts/list", "prompts", "prompts", "prompts", "name"),
}
_AT_ONCE: tuple[ListName, ...] = ("tools",)
"""Read as soon as the connection is ready; the others when somebody looks."""
_SOON = 2.0
"""Seconds after a read in which a change may have come of it."""
_TOO_OFTEN = 3
"""So many times in a row, and it is no burst of changes any more."""


@dataclass(slots=True)
class _Restless:
    """How often in a row a list changed while it was read, or right after."""

    times: int = 0
    read_at: float = float("-inf")
    """Monotonic: when it was read the last time."""
    waits: bool = False
    """It is read again after a pause."""
    seq: int | None = None
    """The message beside which that was remarked."""

    def pause(self, most: float) -> float:
        """Seconds until the next read: none at first, as changes come in bursts; then one, two, four and so on."""
        return 0.0 if self.times <= 1 else float(min(most, 2 ** min(self.times - 2, 30)))


class Lists:
    """The lists of one session."""

    def __init__(self, session: Workspace) -> None:
        self._session = session
        self._of: dict[ListName, Listing] = {name: Listing(log=session.messages) for name in LISTS}
        self._again: dict[ListName, int] = {}
        """Lists that changed while they were read, and the message that said so."""
        self._restless: dict[ListName, _Restless] = defaultdict(_Restless)
        self._kept: dict[ListName, Listing] = {}
        self._stale = False
        """What is shown is from the connection before: the new one is not ready yet."""
        self._read_from = ""
        """The target that all this is from."""
        self.by_page: set[ListName] = set()
        """The lists that are read one page at a time."""

    @property
    def known_of(self) -> list[Listing]:
        """Every list that may be shown, those that may be used again included."""
        return [*self._of.values(), *self._kept.values()]

    def __getitem__(self, name: ListName) -> Listing:
        return self._of[name]

    def offered(self, name: ListName) -> bool:
        """Whether the server said that it has such a list."""
        return self._session.info.offers(LISTS[name].capability)

    # ---- when to read

    def reset(self) -> None:
        """A new connection begins. What was last known of the very same target is shown until it is ready, and stays
        when it fails; of another target nothing is known yet."""
        if self._read_from == self._place():
            self._stale = True
        else:
            self._forget()

    def _forget(self) -> None:
        """Begin anew. Cursors do not outlive a connection (R5-26). What the server called fresh is kept aside, for the
        very same target (R6-52)."""
        self._stale = False
        now, place = self._session.wall(), self._place()
        read = {**self._kept, **self._of} if self._read_from == place else {}
        self._kept = {name: one for name, one in read.items() if one.fresh(now)}
        self._read_from = place
        self._of = {name: Listing(log=self._session.messages) for name in LISTS}
        self._again.clear()
        self._restless.clear()

    def _place(self) -> str:
        target = self._session.target
        return "" if target is None else target_digest(target)

    def connected(self) -> None:
        """The connection is ready."""
        if self._stale:
            self._forget()
        for name in _AT_ONCE:
            self._load_or_keep(name)

    def connection_ended(self) -> None:
        """A list that was being read will not be complete."""
        for listing in self._of.values():
            if listing.state == "loading":
                listing.state = "failed"

    def notified(self, method: str, seq: int) -> None:
        """The server says that a list changed: read it again, if it was read (R5-28). Remarked when it never said that
        it would tell."""
        session, unannounced = self._session, None
        for name, kind in LISTS.items():
            if method == f"notifications/{kind.capability}/list_changed" and session.info.state == "ready":
                if not session.info.declares(kind.capability, "listChanged"):
                    unannounced = catalogue.list_change_undeclared(method=method, capability=kind.capability)
                self._kept.pop(name, None)
                if self._of[name].state == "loading":
                    self._again[name] = seq
                elif self._of[name].state != "none" or name in _AT_ONCE:
                    self._changed(name, seq)
        if unannounced is not None:
            session.messages.remark(seq, unannounced)

    def _changed(self, name: ListName, seq: int) -> None:
        """Read a list that changed again: at once, or after a pause when that happens again and again, which is
        remarked once."""
        session, state = self._session, self._restless[name]
        if state.waits:
            return
        if session.mono() - state.read_at > _SOON:
            state.times, state.seq = 0, None
        else:
            state.times += 1
        pause = state.pause(session.limits.relist_seconds)
        if not pause:
            self.load(name)
            return
        state.waits = True
        session.start_soon(self._read_later, name, pause, session.info)
        if state.seq is None and state.times >= _TOO_OFTEN:
            state.seq = seq
            session.messages.remark(seq, catalogue.restless_list(method=LISTS[name].method), about=RESTLESS)
            self._of[name].restless = seq
            session.changed("listing.changed", name)

    async def _read_later(self, name: ListName, pause: float, info: ConnectionInfo) -> None:
        await self._session.sleep(pause)
        if self._session.info is info:
            self._restless[name].waits = False
            self.load(name)

    def load(self, name: ListName) -> None:
        """Begin to read a list, unless it is being read or the server has none."""
        self._kept.pop(name, None)
        self._begin(name, None)

    def _load_or_keep(self, name: ListName) -> None:
        """The list that the connection before had read, while it is fresh (R6-52); else read it."""
        kept = self._kept.pop(name, None)
        connection = self._session.connection
        if (
            kept is None
            or connection is None
            or not self._session.wire.keeps_lists
            or not kept.fresh(self._session.wall())
        ):
            self.load(name)
            return
        kept.from_cache, kept.news = True, None
        if name == "tools":
            connection.learn_tools(kept.items)
        self._of[name] = kept
        self._session.changed("listing.changed", name)

    def more(self, name: ListName) -> None:
        """Begin to read the next page of a list that is read page by page. Raises Conflict when there is
        none."""
        listing = self._of[name]
        if listing.next_cursor is None or listing.state == "loading":
            raise Conflict("There is no further page, or it is on its way already.")
        self._begin(name, listing)

    def _begin(self, name: ListName, onto: Listing | None) -> None:
        listing = self._of[name]
        if self._session.info.state == "ready" and self.offered(name) and listing.state != "loading":
            listing.state = "loading"
            self._session.changed("listing.changed", name)
            self._session.start_soon(self._read, name, onto)

    async def known(self, name: ListName, seconds: float) -> Listing:
        """A list, read first if nobody has looked at it yet; as far as it is known when the time is over."""
        if self._of[name].state == "none":
            self._load_or_keep(name)
        await self._session.until(lambda: self._of[name].state != "loading", seconds, name)
        return self._of[name]

    async def refresh(self, name: ListName) -> None:
        """Read a list again, and wait for it."""
        self.load(name)
        await self.settled(name)

    async def settled(self, name: ListName) -> None:
        """Wait until a list is not being read."""
        seconds = self._session.options.request_timeout_ms / 1000
        await self._session.until(lambda: self._of[name].state != "loading", seconds)

    # ---- reading

    async def _read(self, name: ListName, onto: Listing | None) -> None:
        """All pages, or the next one, as received; guarded against endless cursors (R5-26)."""
        session, kind, limits = self._session, LISTS[name], self._session.limits
        self._again.pop(name, None)
        info, size, before = session.info, 0, self._of[name]
        listing = Listing(state="loading", log=session.messages)
        if onto is not None:
            listing.items, listing.seqs = list(onto.items), set(onto.seqs)
            listing.pages, listing.next_cursor, listing.cursors = onto.pages, onto.next_cursor, onto.cursors
        while True:
            params = None if listing.next_cursor is None else {"cursor": listing.next_cursor}
            taken: list[Any] = []
            try:
                call = session.start_call(kind.method, params, quiet=True, take=taken.append, by=PARLEY)
            except (Conflict, NotAllowed, Invalid) as no:
                listing.error = CallError(None, no.message, kind="refused")
                break
            await session.until(lambda call=call: call.settled, None, call.id)  # type: ignore[misc]
            if call.state != "done":
                listing.error = call.error
                break
            if call.unread is not None:
                listing.seqs |= call.seqs
                words = f"A page of this list is too much to read. {call.unread}"
                listing.error = CallError(None, words, kind="unread")
                break
            size += len(call.reply or b"")
            result = taken[0] if taken else None
            items = result.get(kind.key) if isinstance(result, dict) else None
            listing.seqs |= call.seqs
            listing.items += await _held_once(items, len(call.reply or b"")) if isinstance(items, list) else []
            listing.pages += 1
            if session.wire.keeps_lists:
                self._freshen(listing, result)
            many = len(listing.items) >= limits.list_items or size >= limits.log_bytes
            if not listing.turn(result, kind.words, most=many or listing.pages >= limits.list_pages):
                break
            if name in self.by_page:
                break
        if session.info is not info:
            return
        if name == "tools" and session.connection is not None:
            listing.items, rejected = session.connection.learn_tools(listing.items)
            listing.rejected = [*(onto.rejected if onto is not None else ()), *rejected]
        listing.state = "failed" if listing.error is not None else "ready"
        listing.at = session.wall()
        if onto is None:
            before.state = "ready" if before.at is not None and before.error is None else before.state
            listing.news = _news(before, listing, kind.known_by)
        self._of[name] = listing
        if listing.state == "ready":
            session.listed(name, len(listing.items))
        state = self._restless[name]
        state.read_at = session.mono()
        listing.restless = state.seq
        session.changed("listing.changed", name)
        changed = self._again.pop(name, None)
        if changed is not None:
            self._changed(name, changed)

    def recorded(self, name: ListName, items: list[Any], seq: int, *, more: bool) -> None:
        """Take one page of a list as it was recorded; `more` when it follows the one before."""
        before = self._of[name]
        listing = Listing(state="ready", items=[*before.items, *items] if more else items, log=self._session.messages)
        listing.seqs, listing.pages = {*(before.seqs if more else ()), seq}, before.pages + 1 if more else 1
        listing.at = self._session.wall()
        self._of[name] = listing
        self._session.changed("listing.changed", name)

    def put(self, name: str, listing: Listing, *, by_page: bool) -> None:
        """Put a list in its place as it was written down."""
        for known in LISTS:
            if known == name:
                self._of[known] = listing
                self.by_page = self.by_page | {known} if by_page else self.by_page - {known}

    def _freshen(self, listing: Listing, result: Any) -> None:
        """How long a list may be used again: as long as the page of it that is stale first."""
        said = stateless.freshness(result)
        until = None if said is None else said.until(self._session.wall())
        if listing.pages <= 1:
            listing.fresh_until, listing.scope = until, "" if said is None else said.scope
        elif until is None or listing.fresh_until is None:
            listing.fresh_until = None
        else:
            listing.fresh_until = min(until, listing.fresh_until)
            listing.scope = "private" if said is not None and said.scope == "private" else listing.scope


async def _held_once(items: list[Any], size: int) -> list[Any]:
    """A page of a list with equal parts held once; a large page in a thread, so that nobody waits for it."""
    shared: list[Any] = await apart(share_equal, items) if size > THREAD_ABOVE else share_equal(items)
    return shared


def _news(before: Listing, now: Listing, known_by: str) -> News | None:
    """What changed between two readings of a list; None when nothing did, or one of them was not the whole list."""
    if before.at is None or not before.whole or not now.whole:
        return None
    old, new = _named(before, known_by), _named(now, known_by)
    added = frozenset(new.keys() - old.keys())
    changed = frozenset(name for name in new.keys() & old.keys() if new[name] != old[name])
    gone = [item for name, item in old.items() if name not in new]
    return News(added, changed, gone) if added or changed or gone else None


def _named(listing: Listing, known_by: str) -> dict[str, Any]:
    return {
        item[known_by]: item for item in listing.items if isinstance(item, dict) and isinstance(item.get(known_by), str)
    }
