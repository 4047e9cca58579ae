"""Sessions over a pair of links in memory: the whole logic of a connection without a process or a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.sessions import Session, SessionRegistry
from app.settings import local
from tests.drive import ME, settled, until
from tests.pair import FarEnd, joined


@asynccontextmanager
async def pair(far: FarEnd, **options: Any) -> AsyncIterator[Session]:
    async with SessionRegistry(local(), open_link=far.open) as registry:
        yield await joined(registry.open(ME), **options)


@pytest.mark.parametrize(("era", "version"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
async def test_a_call_goes_there_and_its_result_comes_back(era: str, version: str):
    far = FarEnd(version, tools={})
    far.answers["tools/call"] = lambda message: {
        "result": {"resultType": "complete", "content": [{"type": "text", "text": message["params"]["name"]}]}
    }
    async with pair(far, era=era) as session:
        assert session.info.era == era
        call = session.start_call("tools/call", {"name": "echo", "arguments": {}}, by=ME)
        await settled(session, call)
        assert (await session.result(call))["content"][0]["text"] == "echo"
        [asked] = [each for each in far.received if each.get("method") == "tools/call"]
        stamped = "io.modelcontextprotocol/protocolVersion" in asked["params"]["_meta"]
        assert stamped == (era == "modern")
        assert "tools/call" in [each.method for each in session.messages.last(100) if each.direction == "out"]


@pytest.mark.requirement("R6-01")
@pytest.mark.parametrize(("era", "version", "alone"), [("legacy", "2025-11-25", False), ("modern", "2026-07-28", True)])
async def test_a_link_resumes_nothing_of_a_revision_without_a_handshake(era: str, version: str, alone: bool):
    """Requests and notifications alike: there is no session that a stream could be resumed in."""
    far = FarEnd(version)
    async with pair(far, era=era) as session:
        call = session.start_call("x/told", {}, notification=True, by=ME)
        await settled(session, call)
        assert {about.stateless for about in far.near.about} == {alone}
        assert far.near.about[-1].kind == "notification"


async def test_an_ask_is_answered_and_the_answer_reaches_the_far_end():
    far = FarEnd()
    async with pair(far) as session:
        params = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}}}
        far.say({"id": "q1", "method": "elicitation/create", "params": params})
        await until(session, lambda: session.inbox.open)
        await session.asks.answer(session.inbox.open[0], {"action": "accept", "content": {"n": "Ines"}}, ME)
        await until(session, lambda: any(each.get("id") == "q1" for each in far.received))
        [reply] = [each for each in far.received if each.get("id") == "q1"]
        assert reply["result"] == {"action": "accept", "content": {"n": "Ines"}}


async def test_the_end_of_the_far_end_is_the_loss_of_the_connection():
    far = FarEnd()
    async with pair(far) as session:
        call = session.start_call("x/slow", {}, by=ME)
        far.end()
        await until(session, lambda: session.info.state == "lost")
        assert call.state == "failed" and session.info.trouble is not None
        assert session.info.trouble.message == "The other end was closed."
