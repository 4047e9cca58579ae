"""Resources that a session watches: subscriptions, what the server says changed, and reading it again.

A notice that a resource changed is counted and shown, whoever sent for it. A resource that somebody subscribed to here
is read again at once, one read at a time: a flood of notices costs one read, and one more after it. Knows the session
it serves; knows nothing of the web.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app import bounds
from app.core.calls import Call
from app.core.errors import Conflict
from app.core.rules import stateless
from app.sessions.identity import PARLEY, Identity

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace


@dataclass(slots=True)
class Watched:
    """What is known about one resource beyond its place in the list."""

    uri: str
    subscribed: bool = False
    since: float | None = None
    updates: int = 0
    updated_at: float | None = None
    reading: bool = False
    again: bool = False
    """It changed once more while it was being read."""
    refused: str = ""
    """What the server said to the last wish to subscribe or to end that."""


class Resources:
    """The resources of one session that somebody subscribed to, or that the server says have changed."""

    def __init__(self, session: Workspace) -> None:
        self._session = session
        self.by_uri: dict[str, Watched] = {}

    @property
    def subscribed(self) -> list[Watched]:
        """The subscriptions that hold."""
        return [one for one in self.by_uri.values() if one.subscribed]

    @property
    def offered(self) -> bool:
        """Whether the server takes subscriptions (R5-27)."""
        return self._session.wire.subscribes and self._session.info.declares("resources", "subscribe")

    def subscribe(self, uri: str, wanted: bool, *, by: Identity) -> Call:
        """Ask the server to tell of changes of a resource, or to stop that. Raises Conflict when it takes none."""
        if not self._session.wire.subscribes:
            raise Conflict(
                f"In {stateless.VERSION} resources are watched by a subscription: open one under Subscriptions."
            )
        if not self.offered:
            raise Conflict("The server did not declare `resources.subscribe`. Compose the request by hand to force it.")
        verb = "subscribe" if wanted else "unsubscribe"
        call = self._session.start_call(f"resources/{verb}", {"uri": uri}, by=by)
        self._session.start_soon(self._agreed, uri, wanted, call, self._one(uri).updates)
        return call

    async def _agreed(self, uri: str, wanted: bool, call: Call, heard: int) -> None:
        """What became of it. `heard` is how many changes were known before; one may have followed at once, and is read
        as if it had come after."""
        info = self._session.info
        await self._session.until(lambda: call.settled, None, call.id)
        if self._session.info is not info:
            return
        one = self._one(uri)
        if call.state == "done":
            one.subscribed, one.refused = wanted, ""
            one.since = self._session.wall() if wanted else None
            if wanted and one.updates > heard:
                self._read_soon(one)
        else:
            one.refused = call.error.message if call.error is not None else "It was cancelled."
        self._session.changed("resource.changed", uri)

    def notified(self, params: dict[str, Any]) -> None:
        """The server says that a resource changed: count it, and read it again if somebody subscribed (R5-27)."""
        uri = params.get("uri")
        if not isinstance(uri, str) or len(uri) > bounds.WATCHED_URI:
            return
        one = self._one(uri)
        one.updates += 1
        one.updated_at = self._session.wall()
        self._session.changed("resource.changed", uri)
        if one.subscribed:
            self._read_soon(one)

    def _read_soon(self, one: Watched) -> None:
        """Read it, or once more when that is under way."""
        if one.reading:
            one.again = True
        else:
            one.reading = True
            self._session.start_soon(self._read_again, one)

    async def _read_again(self, one: Watched) -> None:
        info = self._session.info
        try:
            while True:
                one.again = False
                try:
                    call = self._session.start_call("resources/read", {"uri": one.uri}, quiet=True, by=PARLEY)
                except Conflict:
                    return
                await self._session.until(lambda call=call: call.settled, None, call.id)  # type: ignore[misc]
                if not one.again or self._session.info is not info or not one.subscribed:
                    return
        finally:
            one.reading = False
            self._session.changed("resource.changed", one.uri)

    def connection_ended(self) -> None:
        """Subscriptions end with their connection; that something changed stays known until the next one."""
        for one in self.by_uri.values():
            one.subscribed = False

    def reset(self) -> None:
        """A new connection begins."""
        self.by_uri.clear()

    def _one(self, uri: str) -> Watched:
        found = self.by_uri.get(uri)
        if found is None:
            found = self.by_uri[uri] = Watched(uri)
            idle = (known for known, one in self.by_uri.items() if not one.subscribed and known != uri)
            if len(self.by_uri) > bounds.WATCHED_RESOURCES and (oldest := next(idle, None)) is not None:
                del self.by_uri[oldest]
        return found
