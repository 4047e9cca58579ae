"""The log's filter, its export, and the HTTP exchange beside a message."""

import json
import re

import pytest
from starlette.applications import Starlette

from app.core.json.text import parse
from app.core.wire import Exchange, Finding, Message
from app.sessions import Session
from tests.web.asgi import Visitor

HTMX = {"hx_request": "true"}


def say(session: Session, direction: str, value: object, exchange: Exchange | None = None) -> Message:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return session.messages.record("in" if direction == "in" else "out", raw, parse(raw), exchange=exchange)


@pytest.fixture
def spoken(victim: Session) -> Session:
    """A request with its reply, a notification, a question of the server, and one that is no message."""
    say(victim, "out", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}})
    say(victim, "in", {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})
    say(victim, "in", {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "deep": {"down": ["Needle <b>"]}}})
    say(victim, "in", {"jsonrpc": "2.0", "id": "s1", "method": "roots/list"})
    broken = say(victim, "in", b"{not json")
    victim.messages.remark(broken.seq, Finding("R1-01", "must", "It is not JSON."))
    return victim


async def found(script: Visitor, session: Session, query: str) -> list[str]:
    rows = (await script.json(f"/s/{session.id}/log?{query}"))["messages"]
    return [f"{one['direction']} {one['kind']}" for one in rows]


async def test_each_part_of_the_filter(script: Visitor, spoken: Session):
    assert await found(script, spoken, "dir=out") == ["out request"]
    assert await found(script, spoken, "kind=request") == ["out request", "in request"]
    assert await found(script, spoken, "kind=reply") == ["in response"]
    assert await found(script, spoken, "kind=notification") == ["in notification"]
    assert await found(script, spoken, "kind=invalid") == ["in invalid"]
    assert await found(script, spoken, "findings=1") == ["in invalid"]
    assert await found(script, spoken, "method=tools/") == ["out request", "in response"]
    assert await found(script, spoken, "method=tools/&dir=in") == ["in response"]
    assert await found(script, spoken, "q=NEEDLE+tools/call") == ["in response"]  # one in the body, one in the row
    assert await found(script, spoken, "q=nothing+of+that+kind") == []
    assert len(await found(script, spoken, "q=+&dir=&kind=")) == 5


async def test_a_choice_that_does_not_exist_is_said(script: Visitor, spoken: Session):
    answer = await script.get(f"/s/{spoken.id}/log?dir=up&kind=letter")
    assert answer.status == 422
    assert set(answer.error["fields"]) == {"/dir", "/kind"}


async def test_a_filter_counts_and_goes_on_from_its_mark(client: Visitor, spoken: Session):
    first = await client.get(f"/s/{spoken.id}/log?kind=request", **HTMX)
    assert re.findall(r'<li id="f(\d+)"', first.text) == ["1", "4"]
    assert 'hx-target="#found" hx-swap="innerHTML"' in first.text
    assert "2 of 5" in first.text
    mark = re.findall(r'id="found-mark" data-seq="(\d+)"', first.text)[0]
    say(spoken, "in", {"jsonrpc": "2.0", "method": "notifications/progress"})
    say(spoken, "in", {"jsonrpc": "2.0", "id": "s2", "method": "ping"})
    then = await client.get(f"/s/{spoken.id}/log?kind=request&after={mark}", **HTMX)
    assert 'hx-target="#found" hx-swap="beforeend"' in then.text
    assert len(re.findall(r'<li id="f(\d+)"', then.text)) == 1
    assert "3 of 7" in then.text


async def test_older_matches_keep_the_filter(client: Visitor, script: Visitor, victim: Session):
    for number in range(500):
        say(victim, "in", {"jsonrpc": "2.0", "method": "x/odd" if number % 2 else "x/even", "params": {}})
    first = await client.get(f"/s/{victim.id}/log?method=x/odd", **HTMX)
    assert len(re.findall(r'<li id="f', first.text)) == 200
    before = re.findall(r'method=x%2Fodd&amp;before=(\d+)"', first.text)[0]
    older = await client.get(f"/s/{victim.id}/log?method=x/odd&before={before}", **HTMX)
    assert len(re.findall(r'<li id="f', older.text)) == 50
    assert "x/even" not in older.text.split("log-methods")[0]
    assert "before=" not in older.text
    rows = (await script.json(f"/s/{victim.id}/log?method=x/odd&before={before}"))["messages"]
    assert {one["method"] for one in rows} == {"x/odd"}


async def test_a_filtered_page_can_be_linked(client: Visitor, spoken: Session):
    page = await client.get(f"/s/{spoken.id}/log?q=needle&dir=in&kind=reply")
    assert page.status == 200
    assert len(re.findall(r'<li id="f\d+"', page.text)) == 1
    assert len(re.findall(r'<li id="m\d+"', page.text)) == 5
    assert 'value="needle"' in page.text
    assert 'name="dir" value="in" checked' in page.text
    assert "1 of 5" in page.text


async def test_the_export_has_every_row_and_is_json_lines(client: Visitor, script: Visitor, spoken: Session):
    for number in range(450):
        say(spoken, "in", {"jsonrpc": "2.0", "method": "x/wave", "params": {"n": number, "text": "ä\u2028"}})
    answer = await client.get(f"/s/{spoken.id}/log.jsonl")
    assert answer.header("content-type") == "application/x-ndjson"
    assert 'filename="parley-log-' in (answer.header("content-disposition") or "")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert len(rows) == 455
    assert rows[:5] == (await script.json(f"/s/{spoken.id}/log?limit=5"))["messages"]
    part = await client.get(f"/s/{spoken.id}/log.jsonl?findings=1")
    assert [json.loads(line)["kind"] for line in part.text.splitlines()] == ["invalid"]


@pytest.mark.requirement("S15")
async def test_the_export_is_the_owners(mallory: Visitor, app: Starlette, spoken: Session):
    assert (await mallory.get(f"/s/{spoken.id}/log.jsonl")).status == 404


async def test_requests_without_a_message_stand_among_the_messages(client: Visitor, script: Visitor, victim: Session):
    where = f"/s/{victim.id}/log"

    def get(status: int | None = None, error: str | None = None) -> Exchange:
        exchange = Exchange("GET", "http://127.0.0.1:9/mcp", 0.0, (("accept", "text/event-stream"),), status)
        exchange.error = error
        victim.messages.exchanged(exchange)
        return exchange

    first, ping = get(405), {"jsonrpc": "2.0", "method": "ping"}
    post = Exchange("POST", "http://127.0.0.1:9/mcp", 0.0, ())
    one = say(victim, "out", ping, post)
    two = say(victim, "in", ping, post)
    last = get(error="The connection was refused: <b>")
    said = await script.json(where)
    assert [(each["seq"], each["method"], each["status"], each["message_seqs"]) for each in said["exchanges"]] == [
        (first.seq, "GET", 405, []),
        (post.seq, "POST", None, [one.seq, two.seq]),
        (last.seq, "GET", None, []),
    ]
    assert said["exchanges"][2]["error"] == "The connection was refused: <b>" and said["next"] == last.seq
    assert first.seq < post.seq < one.seq < two.seq < last.seq
    # In portions, each of them is met once.
    mark, met = 0, []
    while (portion := await script.json(f"{where}?after={mark}&limit=1"))["next"] != mark:
        mark = portion["next"]
        met.append([each["seq"] for each in portion["exchanges"]])
    assert met == [[first.seq, post.seq], [last.seq]]
    before = (await script.json(f"{where}?before={two.seq + 1}&limit=1"))["exchanges"]
    assert before == [] and post.seq < one.seq, "it stands before the message before"
    before = (await script.json(f"{where}?before={two.seq}&limit=1"))["exchanges"]
    assert [each["seq"] for each in before] == [first.seq, post.seq]
    assert (await script.json(f"{where}?q=ping"))["exchanges"] == []
    page = (await client.get(where)).text
    assert "2 HTTP requests that carried no message" in page and "The connection was refused: &lt;b&gt;" in page


async def test_a_message_shows_the_exchange_that_carried_it(client: Visitor, script: Visitor, victim: Session):
    exchange = Exchange(
        "POST",
        "http://127.0.0.1:9/mcp",
        0.0,
        (("authorization", "•••"), ("accept", "application/json")),
        200,
        (("content-type", "application/json"),),
        12.0,
    )
    sent = say(victim, "out", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, exchange)
    (row,) = (await script.json(f"/s/{victim.id}/log"))["messages"]
    assert row["exchange"]["status"] == 200
    assert row["exchange"]["request_headers"][0] == ["authorization", "•••"]
    assert row["exchange"]["answered_ms"] == 12.0
    page = await client.get(f"/s/{victim.id}/log/{sent.seq}")
    assert "POST http://127.0.0.1:9/mcp" in page.text
    assert "answered 200" in page.text
    assert "application/json" in page.text
