"""Tokens of sign-ins where several replicas serve one team: whoever signed in on one of them has on all of them.

They stand in the store among what people keep there (`sealed`), encrypted, each for one person and one server. What a
replica knows in its memory is brought up to date when somebody needs it, and written when it changes. A store that is
gone costs nothing but that: tokens stay in memory, and one signs in again elsewhere. Imported by team mode alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict
from hashlib import sha256

import anyio

from app import bounds
from app.core.errors import NotAllowed
from app.core.grants import Grant
from app.store.people import NotSaved
from app.store.sealed import Sealed
from app.store.vault import Vault, grant_of

logger = logging.getLogger("parley.store")

_Pair = tuple[str, str]
"""Somebody, and the address of a server."""


def _entry(server: str) -> str:
    """Under what name the sign-ins to a server stand: an address may have a secret in it, and any length. No entry of a
    catalogue is called like that."""
    return f"sign-in {_short(server)}"


def _short(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


class SharedSignIns:
    """Brings the vault of this process and the store together, for one person and one server at a time."""

    def __init__(self, vault: Vault, sealed: Sealed) -> None:
        self._vault, self._sealed = vault, sealed
        self._unsaved: dict[_Pair, int] = {}
        """Of whom and of which servers this replica alone knows how it stands; and how often that changed."""
        self._known: dict[_Pair, set[str]] = {}
        """The issuers that were known when the store was last asked or told: which are not any more were forgotten."""
        self._one = anyio.Lock()

    @property
    def waits(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._unsaved)

    def changed(self, owner: str, server: str) -> None:
        """This replica knows more than the others, until it was written."""
        self._unsaved[owner, server] = self._unsaved.get((owner, server), 0) + 1

    async def read(self, owner: str, server: str) -> None:
        """Have the vault know what any replica does. What the store does not have any more was forgotten elsewhere;
        but not what it never got."""
        if (owner, server) in self._unsaved:
            await self.write(owner, server)
            return
        async with self._one:
            if await self._sealed.refresh() and (owner, server) not in self._unsaved:
                self._take(owner, server)

    def _take(self, owner: str, server: str) -> None:
        found = dict[str, Grant]()
        for text in self._sealed.values(owner, _entry(server), server).values():
            try:
                grant = grant_of(json.loads(text))
            except (ValueError, KeyError, TypeError):  # of another version: one signs in again
                logger.warning("a kept sign-in cannot be read")
                continue
            found[grant.client.issuer] = grant
        for issuer in self._vault.of(owner, server).keys() - found.keys():
            self._vault.forget(owner, server, issuer)
        for grant in found.values():
            self._vault.put(owner, server, grant)
        self._know((owner, server), found)

    def _know(self, pair: _Pair, issuers: Iterable[str]) -> None:
        self._known.pop(pair, None)
        if len(self._known) >= bounds.GRANTS:
            del self._known[next(iter(self._known))]
        self._known[pair] = set(issuers)

    async def write(self, owner: str, server: str) -> None:
        """Have every replica know what this one does."""
        pair, entry = (owner, server), _entry(server)
        async with self._one:
            times = self._unsaved.get(pair)
            mine = self._vault.of(owner, server)
            gone = frozenset(map(_short, self._known.get(pair, set()) - mine.keys()))
            try:
                if gone and await self._sealed.refresh():
                    await self._sealed.forget(owner, entry, gone)
                told = {_short(issuer): json.dumps(asdict(grant)) for issuer, grant in mine.items()}
                await self._sealed.put(owner, entry, told, server)
            except (NotSaved, NotAllowed) as no:
                logger.warning("a sign-in is known to this replica alone: %s", no.message)
                return
            self._know(pair, mine)
            if self._unsaved.get(pair) == times:
                self._unsaved.pop(pair, None)

    async def again(self) -> None:
        """Write what could not be written when it changed."""
        for owner, server in list(self._unsaved):
            await self.write(owner, server)
