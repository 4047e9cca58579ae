"""A server that says that a list has changed whenever it is read: it is not read for ever."""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from app.core.targets import StdioTarget
from app.sessions import Session, SessionRegistry
from app.sessions.lists import LISTS, ListName
from app.settings import Limits, local
from tests.conftest import Processes
from tests.drive import HANG, ME, SERVERS, call_tool, connect, connected, findings, until
from tests.drive_tasks import HandClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def limits() -> Limits:
    return Limits(relist_seconds=4)


@pytest.fixture
def hand() -> HandClock:
    return HandClock()


@pytest.fixture
async def still(limits: Limits, hand: HandClock, processes: Processes) -> AsyncIterator[Session]:
    """A session whose monotonic time stands still until the test pushes it."""
    async with SessionRegistry(local(limits=limits), mono=hand.mono, sleep=hand.sleep) as registry:
        await registry.until_ready()
        yield registry.open(ME)


def shelf(**settings: Any) -> StdioTarget:
    args = ("-I", "-S", str(SERVERS / "shelf.py"), "--with", json.dumps(settings))
    return StdioTarget(command=sys.executable, args=args)


async def reads(session: Session, name: ListName) -> int:
    """How often the server was asked for a list, by its own count."""
    seen = await session.result(await call_tool(session, "seen"))
    return sum(each["method"] == LISTS[name].method for each in seen["structuredContent"]["seen"])


@pytest.mark.requirement("B06", "R5-28")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", list(LISTS))
async def test_b06_a_list_that_changes_whenever_it_is_read_is_read_after_a_growing_pause(
    still: Session, hand: HandClock, name: ListName, when: str
) -> None:
    with anyio.fail_after(HANG):
        await connect(still, shelf(restless={LISTS[name].method: when}))
        await still.lists.known(name, HANG)
        restless = still.lists._restless[name]
        for times, pause in enumerate([1.0, 2.0, 4.0, 4.0], 2):
            await until(still, lambda: restless.waits)
            assert restless.times == times and restless.pause(still.limits.relist_seconds) == pause
            assert still.lists[name].state == "ready" and still.lists[name].items
            assert await reads(still, name) == times, "the first, one more at once, and one after each pause"
            hand.push(pause)
            await until(still, lambda times=times: restless.times > times)  # type: ignore[misc]
        remarks = [one for one in findings(still) if one.id == "R5-28" and LISTS[name].method in one.text]
        assert [(one.id, one.level) for one in remarks] == [("R5-28", "note")], "said once"
        assert remarks[0] in still.lists[name].findings
        hand.push(100)


@pytest.mark.requirement("B06", "R5-28")
async def test_b06_a_burst_of_changes_is_read_at_once_and_remarked_by_nobody(still: Session, hand: HandClock) -> None:
    changed = {"method": "notifications/tools/list_changed"}
    with anyio.fail_after(HANG):
        await connected(still, shelf())
        for number in range(1, 4):
            hand.push(10)  # it has come to rest in between
            await call_tool(still, "send", {"messages": [changed] * 5})
            await until(still, lambda: still.tools.state == "ready" and not still.lists._again)
            assert await reads(still, "tools") in range(1 + number, 2 + 2 * number)
        assert not still.lists._restless["tools"].waits and findings(still) == []


@pytest.mark.requirement("B06")
async def test_b06_a_person_need_not_wait_for_the_pause(still: Session) -> None:
    with anyio.fail_after(HANG):
        await connect(still, shelf(restless={"tools/list": "before"}))
        await until(still, lambda: still.lists._restless["tools"].waits)
        before = await reads(still, "tools")
        await still.lists.refresh("tools")
        assert await reads(still, "tools") == before + 1 and still.tools.state == "ready"
