"""The general oracle around every fault: a bystander's server answers throughout, the
loop does not stall, memory stays bounded, no process is left, and nothing stays running.
"""

from collections.abc import AsyncIterator

import pytest

from app.core.targets import DemoTarget
from app.sessions import Session, SessionRegistry
from app.settings import MIB, Limits, local
from tests.conftest import Processes
from tests.drive import ME, Felt, connected, feeling

STALL = 1.0
"""Ten times the figure we promise (100 ms up to 1 MB), so that a busy machine is no failure; the figure is printed."""
ECHO = 10.0
"""Ten times the second within which another session answers."""


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture(scope="module")
async def registry() -> AsyncIterator[SessionRegistry]:
    """One registry for all faults of a module: a fault of one session is no reason to start anew for the next."""
    async with SessionRegistry(local()) as opened:
        await opened.until_ready()
        yield opened


@pytest.fixture(scope="module")
async def bystander(registry: SessionRegistry) -> Session:
    """Another session of the same process, connected to the demo server all the while."""
    other = registry.open(ME)
    await connected(other, DemoTarget())
    return other


@pytest.fixture
async def session(registry: SessionRegistry, processes: Processes) -> AsyncIterator[Session]:
    """The session that the fault befalls."""
    opened = registry.open(ME)
    yield opened
    await registry.close(opened)


@pytest.fixture
async def oracle(
    request: pytest.FixtureRequest, bystander: Session, session: Session, limits: Limits
) -> AsyncIterator[Felt]:
    """Measures during the whole test; judges at its end."""
    async with feeling(bystander) as felt:
        yield felt
        await session.disconnect()
    print(f"{request.node.name}: {felt}")
    assert session.calls.running == [] and all(each.settled for each in session.calls.values()), "nothing is stuck"
    assert session.tools.state != "loading"
    assert felt.echoes and max(felt.echoes) < ECHO
    assert felt.stall < STALL
    assert felt.grown < 64 * MIB + 8 * limits.message_bytes
