"""Tokens of sign-ins, by person, server and issuer: in memory, and where somebody wants that encrypted on disk, or in
the store that the replicas of a team share.

The key stands in a file of its own that only its owner can read, or in the environment. Whoever has the one file
without the other has nothing; a key that is lost costs the tokens, and nothing else: one signs in again. Never raises
for what the disk does.
"""

from __future__ import annotations

import json
import logging
import os
from collections import OrderedDict
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio.to_thread

from app import bounds
from app.core.grants import Client, Grant, Token

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

logger = logging.getLogger("parley.store")

FILE: Final = "sign-ins.enc"
KEY_FILE: Final = "sign-ins.key"
_Key = tuple[str, str, str]


class Elsewhere(Protocol):
    """Where the replicas of a team keep what each of them knows."""

    async def read(self, owner: str, server: str) -> None:
        """Have the vault know what any replica does."""

    async def write(self, owner: str, server: str) -> None:
        """Have every replica know what this one does."""

    def changed(self, owner: str, server: str) -> None:
        """This one knows more than the others, until it was written."""

    @property
    def waits(self) -> bool:
        """Whether something is still to be written."""

    async def again(self) -> None:
        """Write what could not be written when it changed."""


class Vault:
    """What signing in has brought, of all people of this process."""

    def __init__(self, directory: Path | None, *, keep: bool = False, key: str = "") -> None:
        self._directory, self._key = directory if keep else None, key
        self._grants: OrderedDict[_Key, Grant] = OrderedDict()
        self._loaded = self._directory is None
        self.elsewhere: Elsewhere | None = None
        """Where replicas share it; then nothing is kept on this disk."""
        self.trouble = ""
        """Why nothing is written, as a sentence without its beginning; empty while it works."""

    @property
    def keeps(self) -> bool:
        """Whether tokens outlive the process."""
        return self._directory is not None and not self.trouble

    def load(self) -> None:
        """Read what an earlier process has kept. Blocks: for a thread."""
        if self._loaded or self._directory is None:
            return
        self._loaded = True
        path = self._directory / FILE
        if not path.exists():
            return
        from cryptography.fernet import InvalidToken

        try:
            plain = cipher(self._secret()).decrypt(path.read_bytes())
            for one in json.loads(plain):
                self._grants.setdefault((one["owner"], one["server"], one["issuer"]), grant_of(one))
        except InvalidToken:
            logger.warning("the kept sign-ins were encrypted with another key: people sign in again")
        except (OSError, ValueError, KeyError, TypeError) as fault:
            logger.warning("the kept sign-ins cannot be read: %s", type(fault).__name__)

    async def bring(self, owner: str, server: str) -> None:
        """Know what was kept for this person and this server."""
        if self.elsewhere is not None:
            await self.elsewhere.read(owner, server)
        elif not self._loaded:
            await anyio.to_thread.run_sync(self.load)

    async def keep(self, owner: str, server: str) -> None:
        """Keep what is known now, where something is kept."""
        if self.elsewhere is not None:
            await self.elsewhere.write(owner, server)
        elif self._directory is not None:
            await anyio.to_thread.run_sync(self.write)

    def changed(self, owner: str, server: str) -> None:
        """What is known has changed, and is about to be kept."""
        if self.elsewhere is not None:
            self.elsewhere.changed(owner, server)

    def of(self, owner: str, server: str) -> dict[str, Grant]:
        """What this person has for this server, by issuer."""
        return {key[2]: grant for key, grant in self._grants.items() if key[:2] == (owner, server)}

    def get(self, owner: str, server: str, issuer: str) -> Grant | None:
        """What this person has for this server from this issuer, and from no other (R5-64, R5-76)."""
        found = self._grants.get((owner, server, issuer))
        if found is not None:
            self._grants.move_to_end((owner, server, issuer))
        return found

    def put(self, owner: str, server: str, grant: Grant) -> None:
        """Keep it, in the place of what was there."""
        key = (owner, server, grant.client.issuer)
        self._grants[key] = grant
        self._grants.move_to_end(key)
        while len(self._grants) > bounds.GRANTS:
            self._grants.popitem(last=False)

    def spent(self, owner: str, server: str, issuer: str) -> None:
        """The server takes this token no longer; the client that it was given to may still be good."""
        found = self._grants.get((owner, server, issuer))
        if found is not None:
            self._grants[owner, server, issuer] = replace(found, token=replace(found.token, access="", refresh=""))
            self.changed(owner, server)

    def forget(self, owner: str, server: str, issuer: str) -> None:
        """Let go of it."""
        self._grants.pop((owner, server, issuer), None)

    def write(self) -> None:
        """Bring the file up to date. Blocks: for a thread."""
        if self._directory is None:
            return
        try:
            rows = [
                {"owner": owner, "server": server, "issuer": issuer, **asdict(grant)}
                for (owner, server, issuer), grant in list(self._grants.items())
            ]
            sealed = cipher(self._secret()).encrypt(json.dumps(rows).encode())
            write_private(self._directory / FILE, sealed)
            self.trouble = ""
        except (OSError, ValueError) as fault:
            self.trouble = f"the file of sign-ins cannot be written ({getattr(fault, 'strerror', None) or 'bad key'})"
            logger.warning("%s", self.trouble)

    def _secret(self) -> str:
        """The key: as it was given, else of its file, which is made when there is none."""
        if self._key:
            return self._key
        if self._directory is None:
            raise ValueError("nothing is kept")
        path = self._directory / KEY_FILE
        if not path.exists():
            from cryptography.fernet import Fernet

            write_private(path, Fernet.generate_key())
        return path.read_text(encoding="ascii")


def cipher(keys: str) -> MultiFernet:
    """What encrypts with the first of these keys and opens what any of them has closed. Raises ValueError."""
    from cryptography.fernet import Fernet, MultiFernet

    return MultiFernet([Fernet(one) for one in keys.split()])


def write_private(path: Path, content: bytes) -> None:
    """All of it or nothing, for the owner alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_suffix(path.suffix + ".new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    beside.replace(path)


def grant_of(found: dict[str, Any]) -> Grant:
    """What `asdict` made of a grant, as one again. Raises KeyError, TypeError."""
    token = found["token"]
    return Grant(Client(**found["client"]), Token(**{**token, "scopes": tuple(token["scopes"])}))
