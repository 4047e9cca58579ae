"""What a probe may do to a server that does not know it, and what Parley then does: over stdio, by HTTP, late."""

import sys
from pathlib import Path
from typing import Any

import pytest

from app.core.options import Options
from app.core.targets import StdioTarget
from app.sessions import Session, SessionRegistry
from app.settings import Limits, local
from tests import peers
from tests.drive import HANG, ME, SERVERS, connect, connected, echoes, findings, inbound, raw_target, until
from tests.drive_http import raw_web
from tests.drive_modern import modern_peer, modern_stdio

pytestmark = pytest.mark.anyio
VERSION = "2026-07-28"
OLDER = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw both", "version": "1.0"},
}
REPORT = """\
Failed to validate request: 2 validation errors for ClientRequest
PingRequest.method
  Input should be 'ping' [type=literal_error, input_value='server/discover', input_type=str]
    For further information visit the documentation
InitializeRequest.params.protocolVersion
  Field required [type=missing, input_value={'_meta': {}}, input_type=dict]
"""
"""What a server on the SDK mcp 1.9.4 to 1.30 writes to stderr when it is probed, shortened."""


def methods(session: Session) -> list[str]:
    """What left, in order, until the connection was there."""
    return [step.code for step in session.info.steps if step.side == "us" and step.code is not None]


def steps(session: Session) -> str:
    return " | ".join(f"{step.code or ''} {step.text}" for step in session.info.steps)


def starts(session: Session) -> int:
    return sum(step.text.startswith("Started ") for step in session.info.steps)


@pytest.fixture
def limits() -> Limits:
    return Limits(probe_seconds=20, nudge_seconds=0.2, handshake_seconds=HANG)


# --- the session dies, the process does not -----------------------------------------------------------------------


@pytest.mark.requirement("B01")
async def test_b01_a_server_whose_session_dies_of_the_probe_is_started_again(session: Session) -> None:
    target = raw_target(numb=["server/discover"])
    await connected(session, target, era="auto")
    assert (session.info.era, session.info.era_from, starts(session)) == ("legacy", "probe", 2)
    assert methods(session) == ["server/discover", "ping", "initialize", "notifications/initialized"]
    await echoes(session)
    assert [each for each in findings(session) if each.level == "must"] == []


@pytest.mark.requirement("B01")
class TestWithoutNudge:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(probe_seconds=0.3, nudge_seconds=100, handshake_seconds=4)

    async def test_b01_one_that_ends_on_initialize_after_the_probe_is_started_again(self, session: Session) -> None:
        await connected(session, raw_target(numb=["server/discover"]), era="auto")
        assert (session.info.era, starts(session)) == ("legacy", 2)
        assert methods(session)[:3] == ["server/discover", "initialize", "initialize"]

    async def test_b01_one_that_hangs_after_the_probe_is_started_again(self, session: Session, tmp_path: Path) -> None:
        # It never answers anything once it was probed, and takes `initialize` as its first message.
        script = tmp_path / "hangs.py"
        script.write_text(
            "import json, sys\n"
            "first = json.loads(sys.stdin.readline())\n"
            "while first['method'] == 'server/discover':\n"
            "    sys.stdin.readline()\n"
            f"sys.argv[1:] = ['plain']\nsys.path.insert(0, {str(SERVERS)!r})\n"
            "import raw\n"
            "raw.initialize(raw.Peer({}, None), first)\n"
            "raw.main(['plain'])\n"
        )
        await connected(session, StdioTarget(command=sys.executable, args=(str(script),)), era="auto")
        assert (session.info.era, starts(session)) == ("legacy", 2)

    async def test_b01_the_second_start_has_the_last_word(self, session: Session) -> None:
        target = raw_target(numb=["server/discover"], fatal=["initialize"])
        await connect(session, target, era="auto")
        assert session.info.state == "lost" and session.info.trouble is not None
        assert session.info.trouble.last_words == "did not expect initialize"
        assert starts(session) == 2, "and no third time"


@pytest.mark.requirement("B01")
async def test_b01_the_era_of_a_command_is_remembered_over_a_restart(
    registry: SessionRegistry, tmp_path: Path, limits: Limits
) -> None:
    target = raw_target(numb=["server/discover"])
    settings = local(limits=limits, data_dir=tmp_path / "data")
    async with SessionRegistry(settings) as first:
        session = first.open(ME)
        await connected(session, target, era="auto")
        assert session.info.era_from == "probe"
    async with SessionRegistry(settings) as second:
        session = second.open(ME)
        await connected(session, target, era="auto")
        assert (session.info.era, session.info.era_from, starts(session)) == ("legacy", "memory", 1)
        assert methods(session) == ["initialize", "notifications/initialized"]
        assert "so 2026-07-28 is not tried" in steps(session)
        other = second.open(ME)  # another command is another matter
        await connected(other, raw_target(numb=["server/discover"], more=1), era="auto")
        assert other.info.era_from == "probe" and methods(other)[0] == "server/discover"


@pytest.mark.requirement("B01")
async def test_b01_probing_again_is_one_wish_away(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", results={"initialize": OLDER})
    assert isinstance(peer.target, StdioTarget)
    await connected(session, peer.target, era="auto")
    await session.disconnect()
    registry = session._registry
    await registry.store.learn(ME.id, peer.target, "legacy")  # as it was before it was updated
    await connected(session, peer.target, era="auto")
    assert (session.info.era, session.info.era_from) == ("legacy", "memory")
    await session.disconnect()
    session.connect(peer.target, Options(era="auto"), by=ME, probe=True)
    await session.wait_connection(HANG)
    assert (session.info.era, session.info.era_from) == ("modern", "probe")
    await session.disconnect()
    await connected(session, peer.target, era="auto")
    assert (session.info.era, session.info.era_from) == ("modern", "memory")


@pytest.mark.requirement("B01")
async def test_b01_a_remembered_era_that_is_wrong_is_corrected(session: Session, tmp_path: Path) -> None:
    peer = modern_stdio(tmp_path / "record", errors={"initialize": {"code": -32601, "message": "no such method"}})
    assert isinstance(peer.target, StdioTarget)
    await session._registry.store.learn(ME.id, peer.target, "legacy")
    await connected(session, peer.target, era="auto")
    assert session.info.era == "modern" and methods(session) == ["initialize", "server/discover"]
    await session.disconnect()
    await connected(session, peer.target, era="auto")
    assert methods(session) == ["server/discover"]


# --- the answer comes late -----------------------------------------------------------------------------------------


@pytest.mark.requirement("B02")
class TestLate:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(probe_seconds=0.3, nudge_seconds=100, handshake_seconds=HANG)

    @pytest.mark.parametrize("order", ["first", "last"])
    @pytest.mark.parametrize(
        "way_out", [{"errors": {"initialize": {"code": 0, "message": 'duplicate "initialize" received'}}}]
    )
    async def test_b02_a_late_answer_counts_when_initialize_is_refused(
        self, session: Session, tmp_path: Path, way_out: dict[str, Any], order: str
    ) -> None:
        peer = modern_stdio(tmp_path / "record", tardy=1, reversed=order == "last", **way_out)
        await connected(session, peer.target, era="auto")
        assert (session.info.era, session.info.era_from, starts(session)) == ("modern", "probe", 1)
        assert [each["method"] for each in peer.received()][:2] == ["server/discover", "initialize"]
        assert "has come after all, and it counts" in steps(session)
        await echoes(session)

    async def test_b02_it_counts_when_a_server_of_both_eras_answers_initialize_too(
        self, session: Session, tmp_path: Path
    ) -> None:
        peer = modern_stdio(tmp_path / "record", tardy=1, results={"initialize": OLDER})
        await connected(session, peer.target, era="auto")
        assert (session.info.era, session.info.protocol_version) == ("modern", VERSION)
        await echoes(session)
        assert [each for each in findings(session) if each.level == "must"] == []

    async def test_b02_what_comes_after_the_handshake_changes_nothing(self, session: Session, tmp_path: Path) -> None:
        peer = modern_stdio(tmp_path / "record", tardy=1, reversed="apart", results={"initialize": OLDER})
        await connect(session, peer.target, era="auto")
        assert (session.info.state, session.info.era) == ("ready", "legacy")
        await until(session, lambda: inbound(session, "server/discover"))
        assert session.info.era == "legacy"

    @pytest.mark.peers
    @pytest.mark.parametrize("name", ["sdk1", "sdk2"])
    async def test_b02_a_real_server_that_is_slow_to_start_is_spoken_to_in_its_era(
        self, session: Session, name: str
    ) -> None:
        python = peers.mcp1_python() if name == "sdk1" else sys.executable
        slow = ("-c", 'sleep 1; exec "$0" "$1"', python, str(SERVERS / f"{name}.py"))
        await connected(session, StdioTarget(command="/bin/sh", args=slow), era="auto")
        assert session.info.era == ("legacy" if name == "sdk1" else "modern") and starts(session) == 1
        assert methods(session)[:2] == ["server/discover", "initialize"]
        await echoes(session)

    async def test_b02_a_command_that_spoke_the_newer_era_may_be_slow(self, session: Session, tmp_path: Path) -> None:
        peer = modern_stdio(tmp_path / "record")
        assert isinstance(peer.target, StdioTarget)
        slow = StdioTarget(
            command="/bin/sh", args=("-c", 'sleep 1; exec "$0" "$@"', peer.target.command, *peer.target.args)
        )
        await session._registry.store.learn(ME.id, slow, "modern")
        await connected(session, slow, era="auto")
        assert session.info.era == "modern" and methods(session) == ["server/discover"]


# --- it contradicts itself -----------------------------------------------------------------------------------------


@pytest.mark.requirement("B03")
@pytest.mark.parametrize("era", ["auto", "modern"])
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_b03_a_revision_that_is_refused_and_named_is_tried_once_more(
    session: Session, tmp_path: Path, way: str, era: str
) -> None:
    refusal = {"code": -32022, "message": "Unsupported", "data": {"supported": [VERSION], "requested": VERSION}}
    with modern_peer(way, tmp_path / "record", errors={"server/discover": [refusal]}) as peer:
        await connected(session, peer.target, era=era)
        assert session.info.era == "modern" and len(peer.received("server/discover")) == 2
        await session.disconnect()
    with modern_peer(way, tmp_path / "always", errors={"server/discover": refusal}) as peer:
        await connect(session, peer.target, era=era)
        assert session.info.trouble is not None and len(peer.received("server/discover")) == 2
        assert session.info.trouble.message == f"The server refused {VERSION} twice, and says that it speaks {VERSION}."


# --- it ends by itself ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("B14")
async def test_b14_a_command_that_ends_at_its_start_is_described_by_its_own_last_words(session: Session) -> None:
    await connect(session, raw_target("exits", code=3, stderr="no such database\n"), era="auto")
    trouble = session.info.trouble
    assert trouble is not None and (trouble.kind, trouble.exit_code) == ("exit", 3)
    assert trouble.message.endswith("ended with code 3.") and trouble.last_words == "no such database"
    assert "before" not in steps(session) and "a short while ago" not in steps(session)
    assert starts(session) == 2 and await session._registry.known_era(ME.id, session.target) is None  # type: ignore[arg-type]


@pytest.mark.requirement("B14")
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_b14_a_command_that_cannot_start_is_tried_once(session: Session, era: str) -> None:
    await connect(session, StdioTarget(command="/nowhere/at-all"), era=era)
    assert session.info.trouble is not None and session.info.trouble.kind == "not-found" and starts(session) == 0


# --- HTTP ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("B16")
async def test_b16_an_address_is_probed_each_time(session: Session) -> None:
    with raw_web() as peer:
        for _ in range(2):
            await connected(session, peer.target(), era="auto")
            assert (session.info.era, session.info.era_from) == ("legacy", "probe")
            assert methods(session)[0] == "server/discover"
            await session.disconnect()
        assert not peer.received("ping"), "nobody has to be woken there"


# --- what it says of the probe -------------------------------------------------------------------------------------


@pytest.mark.requirement("B20")
async def test_b20_lines_that_the_probe_caused_are_marked(session: Session) -> None:
    complaint = f"Ready to serve\n{REPORT}Loaded 3 tools\n  from a directory\n"
    target = raw_target(complains=["server/discover"], complaint=complaint)
    await connected(session, target, era="auto")
    await until(session, lambda: session.stderr.count == 9)
    lines = session.stderr.lines()
    assert [line.text for line in lines if line.by_probe] == REPORT.splitlines()
    assert session.stderr.by_probe == 6
    await session.disconnect()
    await connected(session, target, era="auto")
    assert session.stderr.count == 9, "it is not probed again, so it does not complain again"


@pytest.mark.requirement("B20")
async def test_b20_what_it_says_of_other_things_is_its_own(session: Session) -> None:
    own = "Traceback (most recent call last):\n  File somewhere\nValueError: 3 validation errors for Config\n"
    await connected(session, raw_target(complains=["initialize"], complaint=own), era="auto")
    await until(session, lambda: session.stderr.count == 3)
    assert session.stderr.by_probe == 0 and not any(line.by_probe for line in session.stderr.lines())


@pytest.mark.requirement("B20")
class TestImpatient:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(probe_seconds=0.1, nudge_seconds=100)

    async def test_b20_the_time_limit_of_the_handshake_is_an_option(self, session: Session) -> None:
        silent = raw_target(silent=["initialize"])
        await connect(session, silent, era="legacy", handshake_timeout_ms=200)
        assert session.info.trouble is not None and session.info.trouble.kind == "timeout"
        assert "within 0.2 s" in session.info.trouble.message
        await connect(session, silent, era="modern", handshake_timeout_ms=200)
        assert session.info.trouble.kind == "era"

    async def test_b20_a_silent_server_is_not_probed_again(self, session: Session) -> None:
        target = raw_target(silent=["server/discover"])
        await connected(session, target, era="auto")
        await session.disconnect()
        await connected(session, target, era="auto")
        assert session.info.era_from == "memory" and "server/discover" not in methods(session)
