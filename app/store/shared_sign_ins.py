"""Tokens of sign-ins where several replicas serve one team: whoever signed in on one of them has on all of them.

They stand in the store among what people keep there (`sealed`), encrypted, each for one person and one server. What a
replica knows in its memory is brought up to date when somebody needs it, and written when it changes. A store that is
gone costs nothing but that: tokens stay in memory, and one signs in again elsewhere. Imported by team mode alone.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Final

from app.core.errors import NotAllowed
from app.store.people import NotSaved
from app.store.sealed import Sealed
from app.store.vault import Vault, grant_of

logger = logging.getLogger("parley.store")

_ENTRY: Final = "sign-in "
"""Before the address of a server: no entry of a catalogue is called like that."""


class SharedSignIns:
    """Brings the vault of this process and the store together, for one person and one server at a time."""

    def __init__(self, vault: Vault, sealed: Sealed) -> None:
        self._vault, self._sealed = vault, sealed
        self._unsaved: set[tuple[str, str]] = set()
        """Of whom and of which servers this replica alone knows how it stands."""

    def changed(self, owner: str, server: str) -> None:
        """This replica knows more than the others, until it was written."""
        self._unsaved.add((owner, server))

    async def read(self, owner: str, server: str) -> None:
        """Have the vault know what any replica does. What the store does not have any more was forgotten elsewhere;
        but not what it never got."""
        if (owner, server) in self._unsaved:
            await self.write(owner, server)
            return
        if not await self._sealed.refresh() or (owner, server) in self._unsaved:
            return
        found = self._sealed.values(owner, _ENTRY + server, server)
        for issuer in self._vault.of(owner, server).keys() - found.keys():
            self._vault.forget(owner, server, issuer)
        for text in found.values():
            try:
                self._vault.put(owner, server, grant_of(json.loads(text)))
            except (ValueError, KeyError, TypeError):  # of another version: one signs in again
                logger.warning("a kept sign-in cannot be read")

    async def write(self, owner: str, server: str) -> None:
        """Have every replica know what this one does."""
        entry = _ENTRY + server
        mine = {issuer: json.dumps(asdict(grant)) for issuer, grant in self._vault.of(owner, server).items()}
        try:
            gone = self._sealed.names(owner, entry, server) - mine.keys()
            if gone:
                await self._sealed.forget(owner, entry, gone)
            await self._sealed.put(owner, entry, mine, server)
            self._unsaved.discard((owner, server))
        except (NotSaved, NotAllowed) as no:
            logger.warning("a sign-in is known to this replica alone: %s", no.message)
