"""Real servers on SDKs of their time, in virtual environments of their own: `make test-peers` makes them and runs this.

What the raw peers of the other tests do by hand, these do by themselves: sessions of mcp 1.0 to 1.9.3 die of a probe,
and mcp 1.9.4 to 1.30 write a hundred lines about it.
"""

from pathlib import Path

import pytest

from app.core.options import Options
from app.core.targets import StdioTarget
from app.sessions import Session, SessionRegistry
from app.settings import Limits, local
from tests import peers
from tests.conftest import Clock
from tests.drive import HANG, ME, SERVERS, call, connected, echoes, findings, until
from tests.drive_tasks import begin, task_of, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

DIE = ("mcp-1-6", "mcp-1-9-3", "fastmcp-2-3")
"""Their sessions die of the probe."""
SPOKEN = {
    "mcp-1-6": "2024-11-05",
    "mcp-1-9-3": "2025-03-26",
    "fastmcp-2-3": "2025-03-26",
    "fastmcp-3-4": "2025-11-25",
}
QUIET = {"FASTMCP_CHECK_FOR_UPDATES": "off", "FASTMCP_SHOW_SERVER_BANNER": "false"}
"""No server of a test asks the internet whether there is a newer one."""


def old(name: str, script: str = "old.py", *arguments: str) -> StdioTarget:
    return StdioTarget(command=peers.old_python(name), args=(str(SERVERS / script), *arguments), env=QUIET)


def starts(session: Session) -> int:
    return sum(step.text.startswith("Started ") for step in session.info.steps)


@pytest.mark.requirement("B01", "B20")
@pytest.mark.parametrize("name", peers.OLD)
async def test_b01_auto_reaches_an_old_server_and_remembers_what_it_speaks(
    registry: SessionRegistry, limits: Limits, tmp_path: Path, name: str
) -> None:
    settings = local(limits=limits, data_dir=tmp_path / "data")
    for how, times in (("probe", 2 if name in DIE else 1), ("memory", 1)):
        async with SessionRegistry(settings) as parley:  # the second one is a Parley that was started anew
            session = parley.open(ME)
            await connected(session, old(name), era="auto")
            print(f"{name}, by {how}: ready after {session.info.connect_ms:.0f} ms")
            assert (session.info.era, session.info.era_from, starts(session)) == ("legacy", how, times)
            assert session.info.protocol_version == SPOKEN[name]
            await echoes(session)
            read = await call(session, "resources/read", {"uri": "old://readme"})
            assert "An old server." in str(await session.result(read))
            greeted = await call(session, "prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
            assert "Greet Ada." in str(await session.result(greeted))
            assert [each for each in findings(session) if each.level == "must"] == []
            own = [line.text for line in session.stderr.lines() if not line.by_probe]
            assert (session.stderr.by_probe > 50) is (how == "probe"), session.stderr.by_probe
            assert not any("validation error" in text or "server/discover" in text for text in own), own


@pytest.mark.requirement("B01")
@pytest.mark.parametrize("name", peers.OLD)
async def test_b01_the_older_era_by_option_needs_one_start(session: Session, name: str) -> None:
    await connected(session, old(name), era="legacy")
    assert starts(session) == 1 and session.info.protocol_version == SPOKEN[name] and session.stderr.by_probe == 0
    await echoes(session)


@pytest.mark.requirement("B02")
@pytest.mark.parametrize("name", ["mcp-1-6", "fastmcp-3-4"])
class TestSlow:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(probe_seconds=0.5, nudge_seconds=0.3, handshake_seconds=HANG)

    async def test_b02_one_that_is_slow_to_start_is_reached(self, session: Session, name: str) -> None:
        target = old(name)
        slow = ("-c", 'sleep 1; exec "$0" "$@"', target.command, *target.args)
        session.connect(StdioTarget(command="/bin/sh", args=slow, env=QUIET), Options(era="auto"), by=ME)
        await session.wait_connection(HANG)
        assert (session.info.state, session.info.era) == ("ready", "legacy"), session.info.trouble
        await until(session, lambda: session.tools.state == "ready")
        await echoes(session)


@pytest.mark.requirement("B04")
async def test_b04_a_task_of_fastmcp_is_followed_past_its_ttl(session: Session, clock: Clock) -> None:
    await connected(session, old("fastmcp-3-4", "old_tasks.py"))
    started = begin(session, "slow", ttl=60_000, seconds=6.0)
    task = await task_of(session, started)
    assert task.ttl == 60_000
    clock.mono_shift += 61  # the minute is over here, and the task goes on there
    await until(session, lambda: task.outlived or started.settled)
    assert not started.settled and task.gone is None and [one.id for one in task.findings] == ["F18"]
    assert await text_of(session, started) == "slept 6.0 s"
