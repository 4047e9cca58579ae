"""The demo server in 2026-07-28: the same desk, the same questions, asked in rounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.core.calls import StatePlan
from app.core.options import Root
from app.core.targets import DemoTarget, HttpTarget
from app.sessions import Session
from tests.drive import ME, call, call_tool, connected, findings, settled, until
from tests.drive_modern import SAMPLED, begin

pytestmark = pytest.mark.anyio
PREFERS = {"action": "accept", "content": {"outputFormat": "json", "includeTimestamps": True}}


@contextmanager
def desk(way: str) -> Iterator[DemoTarget | HttpTarget]:
    """The demo server by either transport; over HTTP it prints its address."""
    if way == "stdio":
        yield DemoTarget()
        return
    import subprocess
    import sys

    argv = [sys.executable, "-m", "app.demo.server", "--http", "--port", "0"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield HttpTarget(transport="http", url=process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def answer(session: Session, kind: str, said: dict[str, Any]) -> None:
    """Answer the open ask of this kind."""
    (found,) = [ask for ask in session.inbox.open if ask.kind == kind and ask.state == "open"]
    await session.asks.answer(found, said, ME)


@pytest.mark.requirement("R6-30", "R6-31", "R6-32", "R6-35")
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_the_desk_asks_in_rounds(session: Session, way: str) -> None:
    session.roots = [Root(uri="file:///srv/one")]
    with desk(way) as target:
        await connected(session, target, era="modern")
        assert session.info.era == "modern" and session.info.server_info["name"] == "nordwind-travel-desk"
        one, _ = await begin(session, "preferences")
        await answer(session, "form", PREFERS)
        await settled(session, one)
        assert (await session.result(one))["structuredContent"]["answer"] == PREFERS
        assert (len(one.rounds), one.rounds[0].echo) == (1, "same")

        two, _ = await begin(session, "book_ferry")
        await answer(session, "form", PREFERS)
        await until(session, lambda: len(session.inbox.open) == 2)  # the roots were answered from the list
        await answer(session, "sampling", {"action": "respond", "result": SAMPLED})
        await answer(session, "form", {"action": "accept", "content": {"sure": True}})
        await settled(session, two)
        booked = (await session.result(two))["structuredContent"]
        assert booked["caption"]["answer"] == SAMPLED
        assert booked["roots"]["answer"] == {"roots": [{"uri": "file:///srv/one"}]}
        assert [turn.echo for turn in two.rounds] == ["same", "same"] and len(two.legs) == 3

        three, _ = await begin(session, "three_at_once", 3)
        await answer(session, "sampling", {"action": "respond", "result": SAMPLED})
        await answer(session, "url", {"action": "accept"})
        await answer(session, "form", {"action": "decline"})
        await settled(session, three)
        assert three.state == "done" and len(three.legs) == 2
        assert (await session.result(three))["structuredContent"]["form"]["answer"] == {"action": "decline"}

        prompt = session.start_call(
            "prompts/get", {"name": "packing_list", "arguments": {"destination": "tindra"}}, by=ME
        )
        await until(session, lambda: session.inbox.open)
        await answer(session, "form", {"action": "accept", "content": {"who": "Ida", "days": 3}})
        await settled(session, prompt)
        assert "Ida: 3 days" in str(await session.result(prompt))
        diary = session.start_call("resources/read", {"uri": "desk://diary"}, by=ME)
        await until(session, lambda: session.inbox.open)
        await answer(session, "form", {"action": "accept", "content": {"promise": True}})
        await settled(session, diary)
        assert "Fog" in str(await session.result(diary))
        assert [each for each in findings(session) if each.level == "must"] == []


@pytest.mark.requirement("R6-32", "R6-33", "R6-08")
async def test_the_desk_refuses_a_state_that_is_not_its_own(session: Session) -> None:
    await connected(session, DemoTarget(), era="modern", elicitation_url=False)
    for plan in (StatePlan("drop"), StatePlan("change", "forged")):
        broken, _ = await begin(session, "preferences")
        session.rounds.plan_state(broken, plan)
        await answer(session, "form", PREFERS)
        await settled(session, broken)
        assert broken.state == "failed" and broken.error is not None and broken.error.code == -32602
    honest, _ = await begin(session, "preferences")
    await answer(session, "form", PREFERS)
    await settled(session, honest)
    again = session.rounds.resend(honest, 1, None, ME)
    await settled(session, again)
    assert again.state == "done"  # a state may be used again, for the same request
    other = {**session.rounds.retried(honest, honest.rounds[0], None)[0], "name": "every_field"}
    stolen = await call(session, "tools/call", other)
    assert stolen.error is not None and "another request" in stolen.error.message
    refused = await call_tool(session, "needs_sign_in")
    assert refused.error is not None and refused.error.code == -32021
    assert refused.error.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}
    for name, arguments in (("preferences", {"as_task": True}), ("confirm_sign_in", {})):
        polite = await call_tool(session, name, arguments)
        assert polite.state == "done" and (await session.result(polite))["isError"] is True


@pytest.mark.requirement("R6-34", "R6-30")
async def test_the_parade_plays_in_rounds_too(session: Session) -> None:
    await connected(session, DemoTarget(), era="modern", log_level="info")
    running = session.start_call("tools/call", {"name": "parade", "arguments": {}}, by=ME)
    said: dict[str, dict[str, Any]] = {
        "form": {"action": "decline"},
        "url": {"action": "decline"},
        "sampling": {"action": "respond", "result": SAMPLED},
    }
    while not running.settled:
        await until(session, lambda: running.settled or session.inbox.open)
        for ask in list(session.inbox.open):
            await session.asks.answer(ask, said[ask.kind], ME)
            await until(session, lambda ask=ask: ask.settled)  # type: ignore[misc]
    assert running.state == "done", running.error
    played = (await session.result(running))["structuredContent"]
    assert len(played["acts"]) == 6 and set(played["skipped"]) >= {"three at once", "a change of mind"}
    assert len(running.rounds) == 6  # roots among them, answered by the list
    assert [each for each in findings(session) if each.level == "must"] == []
