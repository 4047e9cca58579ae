"""The requests that people saved of the server of a session. They belong to its target, so its other sessions have them
too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.core.errors import Conflict
from app.core.targets import AnyTarget
from app.store import Kept, SavedRequest

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry
    from app.sessions.workspace import Workspace


class Saved:
    """What was saved of the target of one session."""

    def __init__(self, session: Workspace, registry: SessionRegistry) -> None:
        self._session, self._registry = session, registry
        self._known: tuple[AnyTarget, str] | None = None

    @property
    def kept(self) -> Kept | None:
        """The target of this session among the kept ones."""
        session, store = self._session, self._registry.store
        if session.lasting_target is None:
            return None
        if self._known is not None and self._known[0] is session.lasting_target:
            found = store.find(session.owner, self._known[1])
            if found is not None:
                return found
        same = store.same(session.owner, session.lasting_target)
        self._known = None if same is None else (session.lasting_target, same.id)
        return same

    @property
    def all(self) -> list[SavedRequest]:
        """Every saved request of this server, by name."""
        kept = self.kept
        return [] if kept is None else self._registry.store.requests.of(self._session.owner, kept.id)

    def of(self, method: str, subject: str) -> list[SavedRequest]:
        """Those about one tool, prompt or resource."""
        return [one for one in self.all if (one.method, one.subject) == (method, subject)]

    def find(self, key: str) -> SavedRequest | None:
        """One of this server."""
        kept = self.kept
        return None if kept is None else self._registry.store.requests.find(self._session.owner, kept.id, key)

    @property
    def trouble(self) -> str:
        """Why nothing is written."""
        return self._registry.store.trouble

    async def save(self, name: str, method: str, params: dict[str, Any] | None) -> SavedRequest:
        """Save a request, and with it the server, when nobody has saved that. Raises Conflict where there is none."""
        kept = await self.server()
        if kept is None:
            raise Conflict("This session has no server yet. Connect first.")
        made, _ = await self._registry.store.requests.save(self._session.owner, kept.id, name, method, params)
        return made

    async def server(self) -> Kept | None:
        """The server of this session, saved when nobody has done that; None where there is none."""
        session, store, kept = self._session, self._registry.store, self.kept
        if session.lasting_target is None:
            return None
        if kept is None:
            return await store.save(session.owner, session.lasting_target, session.options, session.label)
        return kept if kept.saved else await store.rename(session.owner, kept.id, session.label)
