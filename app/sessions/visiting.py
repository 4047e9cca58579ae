"""The sessions of a public demo: one for each visitor, with the bundled server, which one process serves to all.

Nothing is remembered, nothing else is dialled, and a visit ends. Knows sessions; knows no page.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio

from app import guest_bounds as bounds
from app.core.errors import NotAllowed, TooMany
from app.core.log import MessageLog
from app.core.options import Options
from app.core.targets import AnyTarget, DemoTarget, HttpTarget
from app.egress import Egress
from app.protocol.links import open_http
from app.protocol.links.base import Link, LinkHost
from app.protocol.links.stdio import demo_command, open_stdio
from app.remembered import Remembered
from app.sessions.identity import Identity, Level
from app.sessions.registry import SessionRegistry
from app.settings import Limits, Settings


class OnlyTheDemo:
    """The gate: a visitor connects to the demo server, and to nothing else."""

    def __init__(self) -> None:
        self.known: set[tuple[str, int]] = set()
        self.allowed: Set[tuple[str, int]] = self.known
        """Where the one demo server listens, once it does."""
        self._calls: OrderedDict[str, int] = OrderedDict()
        """How often each visitor has called something; of very many, the first are forgotten."""

    def connects(self, by: Identity, target: AnyTarget) -> None:
        if not isinstance(target, DemoTarget):
            raise NotAllowed("A public demo connects to its own server, and to no other.")

    def dials(self, by: Identity, url: str) -> None:
        raise NotAllowed("A public demo dials no address.")

    def typed(self, by: Identity, data: Mapping[str, Any]) -> None:
        raise NotAllowed("A public demo connects to its own server, and to no other.")

    def calls(self, by: Identity, what: str, target: AnyTarget | None) -> None:
        """A visit has so many calls, however many sessions it began one after the other (S41)."""
        made = self._calls.get(by.id, 0)
        if made >= bounds.VISIT_CALLS:
            words = f"{bounds.VISIT_CALLS} calls are what a visit has. You can still look at everything."
            raise TooMany(words, int(bounds.VISIT_SECONDS))
        self._calls[by.id] = made + 1
        while len(self._calls) > bounds.VISITS_KNOWN:
            self._calls.popitem(last=False)

    def answered(self, by: Identity, kind: str, how: str, target: AnyTarget | None) -> None:
        """Nothing is written down."""

    def level(self, by: Identity, thing: str) -> Level:
        """Nobody shares anything."""
        return ""

    def idled(self, owner: str, target: AnyTarget | None) -> None:
        """Nothing is written down."""


class PublicRegistry(SessionRegistry):
    """All visits of this process."""

    def __init__(self, settings: Settings) -> None:
        self._only = OnlyTheDemo()
        self._url = ""
        super().__init__(settings, open_link=self._opened, remembered=Remembered(None), gate=self._only)

    @asynccontextmanager
    async def server(self) -> AsyncIterator[None]:
        """The one process that serves every visitor, over HTTP on loopback."""
        command = demo_command()
        command = command.model_copy(update={"args": (*command.args, "--http", "--port", "0")})
        async with open_stdio(command, Limits(), lambda line: None) as link:
            with anyio.fail_after(bounds.DEMO_START_SECONDS):
                said = await link.receive()  # it says where it is, and nothing more
            line = b"" if not said else said[0] if isinstance(said[0], bytes) else b""
            self._url = line.decode().strip()
            where = urlsplit(self._url)
            self._only.known.add((where.hostname or "", where.port or 0))
            yield

    def _opened(
        self, target: AnyTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog
    ) -> AbstractAsyncContextManager[Link]:
        """The link of every session leads to that process, whatever a session believes its target to be."""
        return open_http(HttpTarget(transport="http", url=self._url), limits, egress, host, log)

    async def end_visits(self) -> None:
        """Close each session when its half hour is over. Runs until cancelled."""
        while True:
            await anyio.sleep(bounds.DEMO_LOOK_SECONDS)
            for session in self.everybodys():
                if self.wall() - session.created_at >= bounds.VISIT_SECONDS:
                    await self.close(session)

    def remember(self, identity: Identity, target: AnyTarget, options: Options | None = None) -> None:
        """Nothing."""

    def reached(self, owner: str, target: AnyTarget, name: str, revision: str, tools: int | None) -> None:
        """Nothing."""
