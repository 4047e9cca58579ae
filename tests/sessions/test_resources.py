"""Resources that somebody watches: what the server says has changed is read again, whenever it says so."""

from typing import Any

import anyio
import pytest

from app.sessions import SessionRegistry
from app.settings import local
from tests.drive import HANG, ME
from tests.pair import FarEnd, joined

URI = "harbour://berths"


@pytest.mark.requirement("R5-27")
async def test_a_change_that_follows_the_reply_to_a_subscription_at_once_is_read():
    """Reply and notification stand in one breath: nobody has heard of the reply when the change comes."""
    far = FarEnd(resources={"subscribe": True})

    def subscribed(_: dict[str, Any]) -> dict[str, Any]:
        far.say({"method": "notifications/resources/updated", "params": {"uri": URI}})
        return {"result": {}}

    far.answers["resources/subscribe"] = subscribed
    far.answers["resources/read"] = lambda _: {"result": {"contents": [{"uri": URI, "text": "free"}]}}
    async with SessionRegistry(local(), open_link=far.open) as registry:
        session = await joined(registry.open(ME))
        session.resources.subscribe(URI, True, by=ME)
        with anyio.fail_after(HANG):
            while not any(message.get("method") == "resources/read" for message in far.received):
                await session.events.wait(session.events.seq)
        assert session.resources.by_uri[URI].updates == 1
