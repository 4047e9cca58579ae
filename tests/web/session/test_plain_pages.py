"""What a page says only where it is true, and a server's words as they are meant."""

import pytest
from starlette.applications import Starlette

from app.core.targets import DemoTarget
from app.sessions import Session
from app.sessions.identity import LOCAL
from tests.drive import connected
from tests.web.asgi import Visitor

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("processes")]


async def demo(app: Starlette, era: str) -> Session:
    session: Session = app.state.registry.open(LOCAL)
    await connected(session, DemoTarget(), era=era)
    return session


@pytest.mark.requirement("U-M15")
async def test_only_a_revision_that_deprecates_something_says_so(app: Starlette, client: Visitor):
    old, new = await demo(app, "legacy"), await demo(app, "modern")
    for path in ("roots", "logging"):
        assert "deprecated since" not in (await client.get(f"/s/{old.id}/{path}")).text
        assert "deprecated since 2026-07-28" in (await client.get(f"/s/{new.id}/{path}")).text


@pytest.mark.requirement("U-P19")
async def test_names_between_backticks_are_set_as_code_in_lists_too(app: Starlette, client: Visitor):
    session = await demo(app, "legacy")
    page = (await client.get(f"/s/{session.id}/tools")).text
    assert "a result that has <code>isError</code>" in page and "`isError`" not in page.partition('id="tool-list"')[2]
