"""Much in one message, looked at: what is too much to read is shown as text with a note, and long keys are cut."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from app.core.calls import Call
from app.core.figures import THIN
from app.sessions import Session
from app.web.kit import json_text, json_tree
from app.web.kit.json_text import _json_in_pieces, json_bytes
from tests.drive import call_tool, connected, raw_target
from tests.floods import MIB, OVER_STDIO, REPLY, torrent
from tests.web.asgi import Visitor

BRACKETS = torrent(REPLY + '{"content":[],"isError":true,"structuredContent":{"n":[', "[],", "0]}}}", 7_500_000)


@pytest.fixture
async def peer(victim: Session) -> AsyncIterator[Session]:
    """The session, connected to a raw peer."""
    await connected(victim, raw_target())
    yield victim
    await victim.disconnect()


@pytest.mark.requirement("H11")
async def test_h11_a_result_that_is_too_much_is_shown_as_text_and_can_be_downloaded(
    client: Visitor, script: Visitor, peer: Session
):
    call = await call_tool(peer, "torrent", BRACKETS)
    where = f"/s/{peer.id}/calls/{call.id}"
    said = (await script.get(where)).json()
    assert (said["state"], said["result"], said["error"]) == ("done", None, None)
    assert said["result_unread"] == call.unread and "at the most" in said["result_unread"]
    raw = (await script.get(f"/s/{peer.id}/log/{said['legs'][-1]['reply_seq']}")).json()
    assert raw["raw"].encode() == call.reply, "the log has all of it"
    page = await client.get(where)
    assert call.unread is not None and call.unread in page.text and "[],[],[]" in page.text
    assert "The tool says that it failed" in (await client.get(f"{where}/shown")).text
    assert len(page.body) < 200_000
    for query in ("", "?raw"):
        answer = await client.get(f"{where}/result{query}")
        assert answer.body == call.reply and f"call-{call.id[1:]}-raw.json" in (
            answer.header("content-disposition") or ""
        )
    detail = await client.get(f"/s/{peer.id}/log/{said['legs'][-1]['reply_seq']}")
    assert detail.status == 200 and call.unread in detail.text
    line = (await client.get(f"/s/{peer.id}/calls")).text
    assert "tool error" in line or "isError" in line or "bad" in line


@pytest.mark.requirement("H11")
async def test_h11_a_result_of_20_000_objects_is_still_a_tree(client: Visitor, script: Visitor, peer: Session):
    one = {f"member {at}": f"some words of it, {at} here." for at in range(10)}
    head, tail = REPLY + '{"content":[],"structuredContent":{"items":[0', "]}}}"
    unit = "," + json.dumps(one, separators=(",", ":"))
    assert 7 * MIB < 20_000 * len(unit) < 8 * MIB
    call = await call_tool(peer, "torrent", {"head": head, "unit": unit, "count": 20_000, "tail": tail})
    assert call.unread is None and call.findings == []
    page = (await client.get(f"/s/{peer.id}/calls/{call.id}/shown")).text
    assert 'data-tree="' in page and f"20{THIN}001 items" in page
    found = (await script.get(f"/s/{peer.id}/calls/{call.id}")).json()
    assert len(found["result"]["structuredContent"]["items"]) == 20_001 and found["result_unread"] is None


@pytest.mark.requirement("H10")
async def test_h10_a_large_result_that_many_look_at_is_read_once(
    client: Visitor, peer: Session, monkeypatch: pytest.MonkeyPatch
):
    call = await call_tool(peer, "torrent", OVER_STDIO["objects, as many as are read"])
    read = 0
    real = peer.result

    async def counted(one: Call) -> object:
        nonlocal read
        read += 1
        return await real(one)

    monkeypatch.setattr(peer, "result", counted)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(client.get, f"/s/{peer.id}/calls/{call.id}")
    assert read == 1


@pytest.mark.requirement("H11")
@pytest.mark.parametrize("piece", [1, 2, 3, 7, 500])
def test_h11_json_in_pieces_is_the_same_json(piece: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(json_text, "_PIECE", piece)
    values: list[Any] = [
        [],
        {},
        [[]],
        {"a": {}},
        [[1, [2]], {"é": None}] * 30,
        {f"k{at}": [at] * (at % 9) for at in range(60)},
    ]
    values += [[float("nan"), 1.5, "x" * 10], {"a": [{"b": [1, 2, {"c": "\u2028"}]}] * 5}, (1, 2, (3,) * 9), "text", 7]
    for value in values:
        assert _json_in_pieces(value) == json_bytes(value)


# --- long keys --------------------------------------------------------------------------------------------------------

LONG = "k" * 7_000_000


@pytest.mark.requirement("M08")
async def test_m08_a_key_of_megabytes_makes_no_page_of_megabytes(client: Visitor, script: Visitor, peer: Session):
    head = REPLY + '{"content":[{"type":"text","text":"{}"}],"structuredContent":{"first":1,"'
    call = await call_tool(
        peer, "torrent", torrent(head, "k", '":{"inside":[1,2],"more":{"a":{}}},"last":2}}}', 7_000_000)
    )
    reply = call.legs[-1].reply_seq
    pages = {
        path: await client.get(f"/s/{peer.id}/{path}")
        for path in (f"calls/{call.id}", f"calls/{call.id}/shown", "calls", f"log/{reply}", "log", "tools", "")
    }
    assert {path: len(page.body) for path, page in pages.items() if len(page.body) > 300_000} == {}
    tree = pages[f"calls/{call.id}/shown"].text
    assert re.search(r"k{500}<span class=\"jc\"> … [0-9\u202f]+ more characters</span>", tree)
    assert 'data-k="~@1"' in tree and 'data-k="last"' in tree, "it is addressed by its place"
    where = f"/s/{peer.id}/calls/{call.id}"
    branch = await client.get(f"{where}/branch?root=/structuredContent&pointer=/~@1/more")
    assert branch.status == 200 and 'data-k="a"' in branch.text, "and can be opened"
    found = await script.get(f"{where}/search?root=/structuredContent&q=inside")
    assert found.json()["found"] == [{"pointer": "/~@1/inside", "value": [1, 2]}]
    hits = await client.get(f"{where}/search?root=/structuredContent&q=kkkk")
    assert len(hits.body) < 10_000
    assert (await client.get(f"{where}/result")).body.count(b"k") > 6_000_000, "the file has all of it"


@pytest.mark.requirement("M08")
@pytest.mark.parametrize(("head", "tail"), [('[{"a":1},{"a":2,"', '":1}]'), ('{"', '":[{"a":1},{"a":2}]}')])
async def test_m08_a_key_of_megabytes_makes_no_table(client: Visitor, peer: Session, head: str, tail: str):
    before = REPLY + '{"content":[],"structuredContent":{"rows":' + head
    call = await call_tool(peer, "torrent", torrent(before, "k", f"{tail}}}}}}}", 3_000_000))
    for path in (f"calls/{call.id}", f"calls/{call.id}/shown"):
        assert len((await client.get(f"/s/{peer.id}/{path}")).body) < 300_000


@pytest.mark.requirement("M08")
@pytest.mark.parametrize("length", [100_000, 1_000_000])
async def test_m08_a_long_name_in_a_schema_or_in_arguments_is_cut_too(client: Visitor, peer: Session, length: int):
    long = "n" * length
    schema = {"type": "object", "properties": {long: {"type": "string"}}, "required": [long]}
    await call_tool(peer, "tools", {"pages": [[{"name": "odd", "inputSchema": schema, "outputSchema": schema}]]})
    await peer.lists.refresh("tools")
    call = await call_tool(peer, "echo", {long: {long: 1}})
    sizes = {}
    for path in (
        "tools",
        "tools/odd",
        "tools/odd?as=json",
        f"calls/{call.id}",
        "calls",
        f"log/{call.legs[0].request_seq}",
    ):
        page = await client.get(f"/s/{peer.id}/{path}")
        assert page.status == 200
        sizes[path] = len(page.body)
    assert {path: size for path, size in sizes.items() if size > 300_000} == {}


@pytest.mark.requirement("M08", "H11")
@pytest.mark.parametrize("piece", ["d", "d\u200b", "d" + "\u0301" * 9])
async def test_m08_what_a_server_says_of_itself_makes_no_page_of_megabytes(client: Visitor, peer: Session, piece: str):
    """A description of 7 MB of combining marks made a page of 44 MB, and kept everybody waiting for two seconds."""
    long = piece * (300_000 // len(piece))
    tools = [
        {"name": "odd", "title": long, "description": long, "inputSchema": {"type": "object"}},
        {"name": long, "inputSchema": {"type": "object"}},
    ]
    await call_tool(peer, "tools", {"pages": [tools]})
    await peer.lists.refresh("tools")
    pages = {path: await client.get(f"/s/{peer.id}/{path}") for path in ("", "tools", "tools/odd", "tools/~1", "log")}
    assert {path: len(page.body) for path, page in pages.items() if len(page.body) > 1_500_000} == {}
    assert "more characters" in pages["tools/odd"].text and pages["tools/~1"].status == 200


@pytest.mark.requirement("M08")
@pytest.mark.parametrize("pointer", ["/~@9", "/~@", "/~@x", "/~@-1", "/a/~@0"])
def test_m08_a_place_that_is_none_is_nowhere(pointer: str):
    with pytest.raises(KeyError):
        json_tree.at_pointer({"a": 1, "~@5": 2}, pointer)
    assert json_tree.at_pointer({"a": 1, "~@5": 2}, "/" + json_tree.step("~@5")) == 2


@pytest.mark.requirement("M08", "H11")
def test_m08_searching_below_long_keys_puts_no_long_pointers_together():
    """A pointer of 80 kB for each of 200,000 items would be 16 GB."""
    value: object = [{"x": at} for at in range(200_000)]
    for _ in range(150):
        value = {"k" * 500: value}
    found = json_tree.find(value, "199999")
    assert len(found) == 1 and found[0][1] == 199_999 and found[0][0].endswith("/199999/x")
