"""The answer rules of a session and those that are kept with its server: which come back, and what is written.

What somebody left on comes back off: nothing is answered on a new connection before somebody has said so there. Rules
that are switched on hold for this session alone. Knows the workspace and the store; knows no page.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
from pydantic import ValidationError

from app.core.answer_rules import Rule
from app.store import SavedRule

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry
    from app.sessions.workspace import Workspace

logger = logging.getLogger("parley.sessions")


class KeptRules:
    """What of the answer rules of one session outlives it."""

    def __init__(self, session: Workspace, registry: SessionRegistry) -> None:
        self._session, self._registry = session, registry
        self._of = ""
        """The key of the target that they belong to."""
        self._known: set[str] = set()
        """What this session has kept, or found."""
        self._one = anyio.Lock()

    @property
    def lasts(self) -> bool:
        """Whether there is a file that they are written to."""
        return self._registry.store.directory is not None and self._session.lasting_target is not None

    def connecting(self) -> None:
        """A target is being connected to: its rules come back, unless they are here. Those of another server stay when
        this one has none of its own, and wait: they were meant for the server before."""
        session, before = self._session, self._of
        if session.made_for is not None or session.target_key == before:
            return
        self._of = session.target_key
        if before and session.asks.rules.active:
            session.asks.rules.pause(True)
        session.start_soon(self._come_back, self._of, bool(before))

    async def _come_back(self, key: str, other: bool) -> None:
        session, store = self._session, self._registry.store
        await store.loaded()
        if session.target_key != key:
            return
        async with self._one:
            kept = session.saved.kept
            rows = [] if kept is None else store.rules.of(session.owner, kept.id)
            if other:
                for one in session.asks.rules.all.values():
                    one.key = ""
                self._known.clear()
            self._known.update(row.id for row in rows)
            found = [(row.id, rule, row.missing) for row in rows if (rule := _read(row)) is not None]
            if found:
                session.asks.rules.come_back(found, alone=other)

    async def write(self, *, new: bool = False) -> None:
        """Keep the rules with the server as they are now; with a `new` one also a server that nobody has kept. A disk
        that fails costs only the keeping. Raises NotAllowed when too many are kept."""
        session, store, rules = self._session, self._registry.store, self._session.asks.rules
        async with self._one:
            kept = await session.saved.server() if new else session.saved.kept
            if kept is None or session.target_key != self._of:
                return
            for place, one in enumerate(list(rules.all.values())):
                said = one.rule.model_dump(mode="json", exclude_unset=True) | {"on": one.rule.on or one.was_on}
                row = await store.rules.save(session.owner, kept.id, one.key, place, said, one.missing)
                one.key = row.id
            here = {one.key for one in rules.all.values()}
            for row in store.rules.of(session.owner, kept.id):
                if row.id in self._known - here:
                    await store.rules.delete(row)
            self._known = here


def _read(row: SavedRule) -> Rule | None:
    """A rule as it was written; None for one that a Parley of another day understood."""
    try:
        return Rule.model_validate(row.rule)
    except ValidationError:
        logger.warning("a kept answer rule is none by the rules of today and is left where it is")
        return None
