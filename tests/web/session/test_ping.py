"""Pings: once, repeated, and without an answer."""

from typing import Any

import pytest

from tests.drive import until


@pytest.mark.requirement("R5-25")
async def test_a_ping_tells_how_long_it_took_and_can_be_repeated(opened: Any):
    one = await opened()
    told = (await one.post("/ping")).json()
    assert told["ms"] > 0 and told["error"] is None and told["sent"] == 1
    assert "answered in <b>" in await one.page("")
    assert all(call["method"] != "ping" for call in (await one.json("/calls"))["calls"])
    assert (await one.post("/ping", every_ms=10)).status == 422
    assert (await one.post("/ping", every_ms=1000)).json()["every_ms"] == 1000
    await until(one.session, lambda: one.session.pings.sent >= 3)
    assert (await one.post("/ping", every_ms=None)).json()["every_ms"] is None
    before = one.session.pings.sent
    await one.post("/ping", every_ms=3_600_000)
    await until(one.session, lambda: one.session.pings.sent == before + 1)
    await one.post("/disconnect")
    assert one.session.pings.every_ms is None
    assert (await one.post("/ping")).status == 409


@pytest.mark.requirement("R5-25")
async def test_a_ping_without_an_answer_is_said(opened: Any):
    one = await opened({"request_timeout_ms": 150}, silent=["ping"])
    told = (await one.post("/ping")).json()
    assert told["ms"] is None and "No answer within" in told["error"] and told["failed"] == 1
    assert "No answer to the ping" in await one.page("")
