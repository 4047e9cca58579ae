"""Sign-ins to servers that the replicas of a team share: what one knows all know, and what one forgets none does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography.fernet import Fernet

from app.core.grants import Client, Grant, Token
from app.store import Store
from app.store.people import NotSaved
from app.store.sealed import Sealed, _read
from app.store.shared_sign_ins import SharedSignIns
from app.store.vault import Vault
from tests.conftest import Clock

KEY = Fernet.generate_key().decode()
SERVER = "https://bob:hunter2-canary@mcp.example/x?api_key=query-canary"
ISSUER = "https://as.example"


def grant(access: str, issuer: str = ISSUER) -> Grant:
    client = Client("parley", issuer, "dynamic", secret="client-canary")
    return Grant(client, Token(access, issuer, SERVER, ("a", "b"), "refresh-canary", 1.0))


class Replica:
    """One of a team: a vault of its own, and the store that all have."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.vault = Vault(None)
        self.sealed = Sealed(store.database, clock.wall)
        self.vault.elsewhere = self.shared = SharedSignIns(self.vault, self.sealed)

    async def signed_in(self, who: str, access: str, issuer: str = ISSUER) -> None:
        self.vault.put(who, SERVER, grant(access, issuer))
        self.vault.changed(who, SERVER)
        await self.vault.keep(who, SERVER)

    async def forgets(self, who: str, issuer: str = ISSUER) -> None:
        self.vault.forget(who, SERVER, issuer)
        self.vault.changed(who, SERVER)
        await self.vault.keep(who, SERVER)

    async def knows(self, who: str, issuer: str = ISSUER) -> str | None:
        await self.vault.bring(who, SERVER)
        found = self.vault.get(who, SERVER, issuer)
        return None if found is None else found.token.access


@asynccontextmanager
async def replicas(folder: Path, clock: Clock, many: int = 2) -> AsyncIterator[list[Replica]]:
    store = Store(folder)
    found = [Replica(store, clock) for _ in range(many)]
    for one in found:
        await one.sealed.open(KEY)
    try:
        yield found
    finally:
        await store.database.close()


@pytest.mark.requirement("T28")
async def test_what_one_knows_all_know_and_what_one_forgets_none_does(tmp_path: Path, clock: Clock):
    async with replicas(tmp_path, clock) as (here, there):
        await here.signed_in("ada", "token-canary")
        assert await there.knows("ada") == "token-canary"
        assert there.vault.get("ada", SERVER, ISSUER) == grant("token-canary"), "all of it"
        assert await there.knows("grace") is None
        await there.signed_in("ada", "newer-canary")
        assert await here.knows("ada") == "newer-canary"
        await there.signed_in("ada", "other-canary", "https://other.example")
        await here.forgets("ada")
        assert await here.knows("ada") is None
        assert await there.knows("ada") is None
        assert await here.knows("ada", "https://other.example") == "other-canary", "it never heard of that one"
        rows = await here.sealed._database.look(_read)
        assert rows
        told = str(rows)
        assert "sign-in " in told
        assert "canary" not in told, "neither tokens nor what stands in the address"


@pytest.mark.requirement("T28")
async def test_one_that_is_forgotten_while_it_is_written_stays_forgotten(tmp_path: Path, clock: Clock):
    async with replicas(tmp_path, clock) as (here, there):
        here.vault.put("ada", SERVER, grant("token"))
        here.vault.changed("ada", SERVER)
        async with anyio.create_task_group() as group:
            group.start_soon(here.vault.keep, "ada", SERVER)
            await anyio.lowlevel.checkpoint()
            group.start_soon(here.forgets, "ada")
            group.start_soon(here.forgets, "ada")
        assert await here.knows("ada") is None
        assert await there.knows("ada") is None


@pytest.mark.requirement("T28", "F26")
async def test_a_store_that_is_gone_costs_nothing_and_hears_of_it_later(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    async with replicas(tmp_path, clock) as (here, there):
        await here.signed_in("ada", "old")
        with monkeypatch.context() as gone:

            async def no(*_: Any, **__: Any) -> Any:
                raise NotSaved("This could not be saved: the store is away.")

            gone.setattr(Sealed, "put", no)
            gone.setattr(Sealed, "forget", no)
            await here.signed_in("ada", "new")
            await here.signed_in("grace", "hers")
            await here.forgets("grace")
            assert await here.knows("ada") == "new", "what the store never got is not forgotten"
            assert here.shared.waits
        assert await there.knows("ada") == "old"
        await here.shared.again()
        assert not here.shared.waits
        assert await there.knows("ada") == "new"
        assert await there.knows("grace") is None


async def test_a_token_that_a_server_refused_does_not_come_back(tmp_path: Path, clock: Clock):
    async with replicas(tmp_path, clock) as (here, there):
        await here.signed_in("ada", "good")
        assert await there.knows("ada") == "good"
        there.vault.spent("ada", SERVER, ISSUER)
        assert await there.knows("ada") == ""
        assert await here.knows("ada") == "", "and the others try it no more"
