"""The same call on both eras: a second session, linked to the first."""

from pathlib import Path

import pytest

from app.core.errors import Conflict
from app.core.json.diff import differences
from app.core.targets import DemoTarget
from app.sessions import Session
from app.sessions.compare import told
from tests.drive import ME, call_tool, connected, raw_target, settled, until
from tests.drive_modern import begin, modern_stdio, reach

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("R6-10", "R6-31")
async def test_the_demo_asks_the_same_in_both_eras(session: Session) -> None:
    await connected(session, DemoTarget(), era="modern")
    first, (form,) = await begin(session, "preferences")
    said = {"action": "accept", "content": {"outputFormat": "json", "includeTimestamps": True}}
    with pytest.raises(Conflict):
        session.comparisons.begin(first, ME)
    await session.asks.answer(form, said, ME)
    await settled(session, first)
    found = session.comparisons.begin(first, ME)
    other = found.other
    await until(other, lambda: other.inbox.open)
    assert other.info.protocol_version == "2025-11-25"
    assert other.inbox.open[0].origin == "request"
    await other.asks.answer(other.inbox.open[0], said, ME)
    await until(session, lambda: found.words == "Both calls are done.")
    twin = other.calls[found.other_call or ""]
    words = " ".join(differences(await told(session, first), await told(other, twin)))
    assert "The same asks (form), in 1 round against as requests of the server." in words
    assert "Requests of ours for this call: 2 against 1." in words
    again = session.comparisons.begin(first, ME)  # the other session of the time before is closed
    await until(again.other, lambda: again.other.inbox.open)
    assert other.closed and again.other is not other


async def test_a_server_of_one_era_is_said_to_be_one(session: Session, tmp_path: Path) -> None:
    await connected(session, raw_target())
    done = await call_tool(session, "echo")
    found = session.comparisons.begin(done, ME)
    await until(session, lambda: found.failed)
    assert "does not speak 2026-07-28" in found.words
    await session.disconnect()
    await reach(session, modern_stdio(tmp_path / "record"))
    done = await call_tool(session, "echo")
    found = session.comparisons.begin(done, ME)
    await until(session, lambda: found.failed)
    assert "refused to initialize" in found.words
