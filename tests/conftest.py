"""What every test may use: one backend, one identity, a registry of sessions, and proof that no process is left."""

import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import psutil
import pytest

from app.sessions import Identity, Session, SessionRegistry
from app.settings import Limits, local
from tests import drive

# A slow machine is no failure: what is too slow is measured where it matters. `make test` draws the same examples each
# time, so that it says the same of the same commit twice; `make fuzz` looks for new ones.
hypothesis.settings.register_profile("parley", deadline=None, derandomize=True)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("parley")

# No process that a test starts may write into the home of whoever runs it.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="parley-tests-")


# Whoever runs the tests in the background may ignore these, and children would inherit that; the tests are about them.
for _signal in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(_signal, signal.SIG_DFL)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


class Clock:
    """Wall and monotonic time that a test can push."""

    def __init__(self) -> None:
        self.wall_shift = 0.0
        self.mono_shift = 0.0

    def wall(self) -> float:
        return time.time() + self.wall_shift

    def mono(self) -> float:
        return time.monotonic() + self.mono_shift


class Processes:
    """Every child that the sessions of a test started; knows which of their process groups still live."""

    def __init__(self) -> None:
        self.pids: list[int] = []
        self._before = {child.pid for child in psutil.Process().children()}

    def left(self) -> list[str]:
        """Whoever is still alive: children of ours, and what stayed in their sessions after their parent died."""
        ours = {child.pid for child in psutil.Process().children()} - self._before
        found = []
        for process in psutil.process_iter(["name", "status", "cmdline"]):
            try:
                belongs = process.pid in ours or os.getsid(process.pid) in self.pids
            except ProcessLookupError:
                continue
            if belongs and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {process.info['name']} {process.info['cmdline']}")
        return found


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Watches which processes sessions start. At the end of the test none of them may be left."""
    watched, opened = Processes(), Session.opened

    def noting(self: Session, transport: str, pid: int | None) -> None:
        if pid is not None:
            watched.pids.append(pid)
        opened(self, transport, pid)

    monkeypatch.setattr(Session, "opened", noting)
    yield watched
    assert watched.left() == []


@pytest.fixture
def me() -> Identity:
    return drive.ME


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limits() -> Limits:
    """The limits of the `registry`; a module or a test overrides this to have others."""
    return Limits()


@pytest.fixture
async def registry(limits: Limits, clock: Clock, processes: Processes) -> AsyncIterator[SessionRegistry]:
    """A registry of its own for each test; closing it must leave no process behind."""
    async with SessionRegistry(local(limits=limits), wall=clock.wall, mono=clock.mono) as opened:
        await opened.until_ready()
        yield opened


@pytest.fixture
def session(registry: SessionRegistry, me: Identity) -> Session:
    """A session that is not connected yet."""
    return registry.open(me)


@pytest.fixture
def raw(tmp_path: Path) -> Callable[..., drive.RawPeer]:
    """Makes raw peers that keep a record: `raw("plain", initialize={…})`."""
    count = 0

    def make(scenario: str = "plain", **settings: Any) -> drive.RawPeer:
        nonlocal count
        count += 1
        record = tmp_path / f"record-{count}"
        record.touch()
        return drive.RawPeer(drive.raw_target(scenario, record=record, **settings), record)

    return make


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", choices=("sqlite", "postgres"), default="sqlite", help="what the store is kept in")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What could not be shown because of this machine stands at the end, in its own words."""
    told = {
        str(one.longrepr[2]) for one in terminalreporter.stats.get("skipped", ()) if isinstance(one.longrepr, tuple)
    }
    lacking = sorted(words.removeprefix("Skipped: ") for words in told if "THIS MACHINE LACKS" in words)
    if lacking:
        terminalreporter.section("not shown here", sep="!", red=True, bold=True)
        for words in lacking:
            terminalreporter.line(words, red=True)
