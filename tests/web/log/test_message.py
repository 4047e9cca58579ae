"""One message of the log: its number, sent again, and what stood on stderr at its time."""

import re
from typing import Any

import pytest

from app.sessions import Session
from tests.drive import until
from tests.web.asgi import Visitor
from tests.web.log.test_folds import other, say

HTMX = {"hx_request": "true"}


@pytest.mark.requirement("U-S6")
async def test_what_we_sent_is_sent_again_as_a_call_of_its_own(opened: Any):
    one = await opened()
    rows = (await one.json("/log"))["messages"]
    asked = next(row for row in rows if row["method"] == "tools/list" and row["direction"] == "out")
    part = await one.page(f"/log/{asked['seq']}", **HTMX)
    assert f"/log/{asked['seq']}/resend" in part and f"compose?seq={asked['seq']}" in part
    answer = await one.form(f"/log/{asked['seq']}/resend", {}, **HTMX)
    assert answer.status == 200 and "Sent as" in answer.text
    calls = (await one.json("/calls"))["calls"]
    # What Parley lists for itself is counted apart: people see call 1.
    assert [(call["id"], call["method"]) for call in calls] == [("c1", "tools/list")]
    await until(one.session, lambda: all(call.settled for call in one.session.calls.values()))
    rows = (await one.json("/log"))["messages"]
    assert [row["kind"] for row in rows if row["method"] == "tools/list"] == ["request", "response"] * 2
    assert (await one.post(f"/log/{asked['seq']}/resend")).status == 202


@pytest.mark.requirement("U-S6")
async def test_rows_are_numbered_as_people_count_and_seq_stays(client: Visitor, script: Visitor, victim: Session):
    victim.stderr.write(b"an event between two messages")
    one, two = other(victim), other(victim)
    victim.stderr.write(b"and another")
    three = other(victim)
    rows = (await script.json(f"/s/{victim.id}/log"))["messages"]
    assert [(row["number"], row["seq"]) for row in rows] == [(1, one.seq), (2, two.seq), (3, three.seq)]
    assert [one.seq, two.seq, three.seq] != [1, 2, 3]
    page = (await client.get(f"/s/{victim.id}/log/{three.seq}")).text
    assert re.findall(r'<span class="q">(\d+)</span>', page) == ["1", "2", "3"]
    assert f'id="m{three.seq}"' in page and "Message 3" in page


async def test_a_moment_is_utc_in_the_markup_and_whole_in_its_attribute(client: Visitor, victim: Session):
    other(victim)
    page = (await client.get(f"/s/{victim.id}/log")).text
    found = re.findall(r'<time datetime="\d{4}-\d\d-\d\dT([\d:.]{12})Z">([\d:.]{12})</time>', page)
    assert found and all(iso == said for iso, said in found)


@pytest.mark.requirement("U-S6")
async def test_stderr_of_the_same_time_is_one_press_away(client: Visitor, victim: Session):
    say(victim, "out", {"id": 1, "method": "tools/list"})
    victim.stderr.write(b"one")
    victim.stderr.write(b"two")
    reply = say(victim, "in", {"id": 1, "result": {"tools": []}})
    part = (await client.get(f"/s/{victim.id}/log/{reply.seq}", **HTMX)).text
    assert f"/s/{victim.id}/stderr#e1" in part and "Stderr at this time, 2 lines" in part


@pytest.mark.requirement("U-S6")
@pytest.mark.parametrize(
    ("direction", "value", "words"),
    [
        ("out", {"id": 1, "method": "initialize", "params": {}}, "Belongs to the handshake."),
        ("out", {"method": "notifications/cancelled", "params": {"requestId": 1}}, "Cancels one request"),
        ("out", {"id": 9, "result": {}}, "A reply is sent once."),
    ],
)
async def test_what_cannot_be_sent_again_says_why(
    client: Visitor, script: Visitor, victim: Session, direction: str, value: dict[str, Any], words: str
):
    message = say(victim, direction, value)
    part = (await client.get(f"/s/{victim.id}/log/{message.seq}", **HTMX)).text
    assert words in part and "/resend" not in part
    refused = await script.post(f"/s/{victim.id}/log/{message.seq}/resend")
    assert refused.status == 409 and words in refused.error["message"]
    assert (await script.get(f"/s/{victim.id}/compose?seq={message.seq}")).status == 409


async def test_what_the_server_sent_is_not_sent_again(client: Visitor, script: Visitor, victim: Session):
    theirs = say(victim, "in", {"id": 4, "method": "roots/list"})
    part = (await client.get(f"/s/{victim.id}/log/{theirs.seq}", **HTMX)).text
    assert "resend" not in part.lower()
    assert (await script.post(f"/s/{victim.id}/log/{theirs.seq}/resend")).status == 409
    assert (await script.post(f"/s/{victim.id}/log/{theirs.seq + 99}/resend")).status == 404
    assert (await script.post(f"/s/{victim.id}/log/x/resend")).status == 404


async def test_the_composer_gets_what_was_sent_without_what_parley_adds(script: Visitor, victim: Session):
    meta = {"progressToken": 3, "io.modelcontextprotocol/protocolVersion": "2026-07-28", "mine": 1}
    params = {"name": "echo", "arguments": {"a": 1}, "_meta": meta}
    asked = say(victim, "out", {"id": 1, "method": "tools/call", "params": params})
    draft = await script.json(f"/s/{victim.id}/compose?seq={asked.seq}")
    assert draft["method"] == "tools/call" and '"mine": 1' in draft["params"]
    assert "progressToken" not in draft["params"] and "protocolVersion" not in draft["params"]
    bare = say(victim, "out", {"id": 2, "method": "ping", "params": {"_meta": {"progressToken": 2}}})
    assert (await script.json(f"/s/{victim.id}/compose?seq={bare.seq}"))["params"] == ""
