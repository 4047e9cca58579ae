"""Recordings that are opened: read-only, by their owner, from a file, whatever is in it; searched, and shared."""

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.applications import Starlette

from app.core.calls import Call
from app.recordings.lines import State, frame_line, header_line, state_line
from app.recordings.nouns import Frame, Header
from app.sessions import Session
from app.settings import Settings
from app.store.recordings import Recording
from tests.recordings.drive import body_of
from tests.web.asgi import Visitor

pytestmark = pytest.mark.usefixtures("processes")


def file_of(app: Starlette, rid: str) -> bytes:
    return body_of(app.state.registry.store.recordings, rid)


async def brought(script: Visitor, data: bytes) -> Any:
    """A file that somebody brings, and what its page says of it."""
    answer = await script.send("POST", "/recordings", {"content-type": "application/octet-stream"}, data)
    assert answer.status == 201, answer.text
    return await script.json(answer.json()["url"])


@pytest.mark.requirement("S42", "U-C05")
async def test_nothing_can_be_done_in_a_recording(
    client: Visitor, script: Visitor, mallory: Visitor, recorded: Recording
):
    base = f"/r/{recorded.id}"
    page = (await client.get(base)).text
    assert "Read-only." in page
    assert "Connect to the same server" in page
    for path in ("/calls", "/disconnect", "/close", "/asks/a1/answer", "/roots", "/no/such"):
        refused = await script.post(f"{base}{path}", {"method": "ping"})
        assert refused.status == 409, (path, refused.text)
        assert "Connect to the same server" in refused.error["message"]
    for path in ("", "/log", "/calls/c1", "/file", "/about"):
        assert (await mallory.get(f"{base}{path}")).status == 404, path
    assert (await mallory.post(f"{base}/delete")).status == 404
    deleted = await script.post(f"{base}/delete")
    assert deleted.status == 200
    assert (await client.get(base)).status == 404


@pytest.mark.requirement("U-C05")
async def test_a_file_is_opened_gzipped_or_not_and_says_what_is_wrong_with_it(
    app: Starlette, script: Visitor, client: Visitor, recorded: Recording
):
    whole = file_of(app, recorded.id)
    first = await script.json(f"/r/{recorded.id}")
    for data in (whole, gzip.compress(whole)):
        again = await brought(script, data)
        assert again["counts"] == first["counts"]
        assert again["recording"]["remarks"] == []
    lines = whole.splitlines(keepends=True)
    cut = await brought(script, b"".join(lines[:-3]) + lines[-3][:20])
    assert any("breaks off" in words for words in cut["recording"]["remarks"])
    newer = await brought(
        script, whole.replace(b'"version":1', b'"version":9', 1).replace(b'"version": 1', b'"version": 9', 1)
    )
    assert any("version 9" in words for words in newer["recording"]["remarks"])
    assert newer["counts"]["messages"] == first["counts"]["messages"]
    titles = [one["title"] for one in (await script.json("/recordings"))["recordings"]]
    assert set(titles) == {recorded.title}, "a header of a newer version has a title too"
    refused = await script.send(
        "POST", "/recordings", {"content-type": "application/octet-stream"}, b'{"some": "JSON"}\n'
    )
    assert refused.status == 422
    assert "no recording" in refused.error["message"]
    form = b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n' + whole + b"\r\n--x--\r\n"
    sent = await client.send("POST", "/recordings", {"content-type": "multipart/form-data; boundary=x"}, form)
    assert sent.status == 303
    assert (sent.header("location") or "").startswith("/r/rec-")


def state(kind: str, key: str, value: dict[str, Any]) -> bytes:
    return json.dumps({"kind": kind, "seq": 4, "at": 1, "id": key, "value": value}).encode()


def frame(**members: Any) -> bytes:
    usual = {"kind": "frame", "seq": 1, "at": 1, "direction": "in", "size": 1, "number": 1, "raw": ""}
    return json.dumps(usual | members).encode()


SCRIPT = "<script>alert(1)</script>"
LIES = {"state": "ready", "number": 1, "server_info": ["x"], "server_capabilities": 5, "protocol_version": SCRIPT}
FORM = {"id": "a1", "kind": "form", "origin": "request", "method": "elicitation/create", "asked_at": 5, "connection": 1}
HOSTILE = [
    b"\x00\x00\x00",
    b"[" * 100_000,
    frame(at="x"),
    frame(seq=-5),
    frame(seq=3).replace(b'"at": 1', b'"at": 1e400'),
    frame(seq=4, number=4, raw=None, row={"kind": "request", "method": SCRIPT, "gist": "x" * 9000}),
    state("call", "c9", {"id": SCRIPT, "method": "tools/call", "params": {"name": SCRIPT}, "started_at": "inf"}),
    state("call", "c8", {"id": "c8", "method": SCRIPT, "params": None, "started_at": 12}),
    state("ask", "a1", {**FORM, "params": {"message": ["no text"], "requestedSchema": 7}}),
    state("connection", "1", LIES),
    state("list", "tools", {"listing": {"state": "ready", "at": 3, "items": [{"name": SCRIPT}, 7, None]}}),
    state("exchange", "2", {"method": "POST", "url": "javascript:alert(1)", "at": 1, "request_headers": [["a", "b"]]}),
    state("finding", "4", {"findings": [{"id": "R5-01", "level": "must", "text": SCRIPT}]}),
    state("stderr", "1", {"number": 1, "at": 1, "text": SCRIPT}),
    b'{"kind": "from the future", "seq": 4}',
]


@pytest.mark.requirement("S42", "S29", "U-C05")
async def test_whatever_a_file_says_a_page_shows_it_as_text(script: Visitor, app: Starlette):
    header = header_line(Header(1, "Parley 2.0", 1763403306.0, title="<script>alert(1)</script>"))
    raw = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":7,"data":"<script>alert(1)</script>"}}'
    frames = b"".join(frame_line(Frame(seq, 10.0 + seq, "in", len(raw), seq, raw)) for seq in (7, 8, 8, 9))
    made = await brought(script, header + frames + b"\n".join(HOSTILE) + b"\n")
    rid, base = made["recording"]["rid"], f"/r/{made['recording']['rid']}"
    assert made["recording"]["read"]["skipped"] >= 5
    assert any("taken already" in words for words in made["recording"]["remarks"])
    reader = Visitor(app, {**script.headers, "accept": "text/html"})
    paths = [
        "",
        "/log",
        "/log/7",
        "/log/4",
        "/calls",
        "/calls/c8",
        "/calls/c9",
        "/inbox",
        "/asks/a1",
        "/tools",
        "/tasks",
    ]
    for path in [
        *paths,
        "/timeline",
        "/stderr",
        "/logging",
        "/roots",
        "/subscriptions",
        "/about",
        "/palette",
        "/log.jsonl",
    ]:
        for visitor in (reader, script):
            answer = await visitor.get(base + path)
            assert answer.status in (200, 303, 404), (path, answer.status, answer.text[:300])
            if (answer.header("content-type") or "").startswith("text/html"):
                assert "<script>alert" not in answer.text, path
    assert (await script.json("/recordings"))["recordings"][0]["rid"] == rid


@pytest.mark.parametrize("at", ["1e308", '"inf"', "-1", "1e12"])
async def test_a_time_that_is_none_breaks_no_page_and_no_list(script: Visitor, client: Visitor, at: str):
    late = b'{"kind": "roots", "seq": 3, "at": ' + at.encode() + b', "value": {"roots": []}}'
    header = header_line(Header(version=1, made_by="x", began=1.0))
    told = await brought(script, header + frame() + b"\n" + late + b"\n")
    for path in ("", "/log", "/timeline", "/tasks", "/about"):
        assert (await client.get(f"/r/{told['id']}{path}")).status == 200, path
    assert (await client.get("/recordings")).status == 200
    assert (await client.get("/")).status == 200


@pytest.mark.requirement("U-C06")
async def test_a_text_a_tool_or_a_method_is_found_where_it_stands_and_a_secret_is_not(
    app: Starlette, script: Visitor, recorded: Recording
):
    async def found(**query: str) -> list[dict[str, Any]]:
        text = "&".join(f"{key}={value}" for key, value in query.items())
        hits: list[dict[str, Any]] = (await script.json(f"/recordings?{text}"))["recordings"]
        return hits

    [hit] = await found(q="needle")
    assert hit["rid"] == recorded.id
    for match in hit["matches"]:
        assert "needle" in json.dumps(await script.json(match["url"]))
    for part in ("echo", "ech"):  # part of a name finds it, and the whole name is said
        assert [(one["kind"], one["text"]) for one in (await found(tool=part))[0]["matches"]] == [("call", "echo")]
    assert await found(method="tools/call")
    assert await found(q="nobody wrote this") == []
    assert await found(q="canary-of-the-harbour") == []
    folder = app.state.settings.data_dir
    for path in folder.rglob("*"):
        if path.is_file():
            assert b"canary-of-the-harbour" not in path.read_bytes(), path


@pytest.mark.requirement("U-C06")
async def test_a_moment_has_what_belongs_to_it_and_opens_there(
    app: Starlette, script: Visitor, client: Visitor, victim: Session, recorded: Recording
):
    call = next(one for one in victim.calls.values() if one.subject == "echo")
    seq = call.legs[0].reply_seq
    for base in (f"/s/{victim.id}", f"/r/{recorded.id}"):
        seen = (await client.get(f"{base}/moments?seq={seq}")).text
        assert "Save moment" in seen
        typed = (await client.get(f"{base}/moments?seq={seq}&mask=text%0Ano*such")).text
        assert "added now" in typed
        assert "Matches nothing:" in typed
        assert "canary" not in seen
        asked = {
            "seq": seq,
            "note": "Look here, token=canary-of-the-note-1234567",
            "mask": {"names": ["text", "no*such"]},
        }
        told = (await script.post(f"{base}/moments", {**asked, "preview": True})).json()
        assert any(one["name"] == "text" for one in told["masked"])
        assert told["unmatched"] == ["no*such"]
        assert seq in told["messages"]
        made = await script.post(f"{base}/moments", asked)
        assert made.status == 201, made.text
        url = made.json()["url"]
        assert (await client.get(url)).header("location") == f"{url}/log/{seq}"
        kept = await script.json(f"{url}/log")
        assert {one["seq"] for one in kept["messages"]} == {call.legs[0].request_seq, seq}
        data = file_of(app, made.json()["rid"])
        assert b"canary" not in data
        assert b"needle" not in data
        assert (await script.json(f"{url}/calls/{call.id}"))["state"] == "done"
    wrong = await script.post(f"/r/{recorded.id}/moments", {"seq": 99999})
    assert wrong.status == 422
    assert (await script.post(f"/r/{recorded.id}/moments", {"note": "of what?"})).status == 422


async def test_a_live_session_begins_beside_a_recording(
    client: Visitor, script: Visitor, recorded: Recording, app: Starlette
):
    begun = await client.form(f"/r/{recorded.id}/connect")
    assert begun.status == 303
    assert (begun.header("location") or "").startswith("/s/")
    foreign = file_of(app, recorded.id).replace(
        b'"transport": "demo"', b'"transport": "stdio", "command": "uname", "args": ["-a"]'
    )
    foreign = foreign.replace(b'"transport":"demo"', b'"transport":"stdio","command":"uname","args":["-a"]')
    other = await brought(script, foreign)
    asked = await client.form(f"/r/{other['recording']['rid']}/connect")
    assert asked.status == 200, asked.text[:300]
    assert "uname -a" in asked.text  # in the form, and nothing has started


async def test_a_recording_says_which_calls_it_lists_and_which_were_not_over(
    script: Visitor, client: Visitor, settings: Settings
):
    most = settings.limits.calls
    made = [Call(f"c{at}", "tools/call", {"name": "echo"}, 10.0 + at, 0.0, state="done") for at in range(1, most + 3)]
    made[-1] = replace(made[-1], state="running", deadline_at=70.0)
    lines = [state_line(State("call", call.id, at, 10.0, call)) for at, call in enumerate(made, 1)]
    told = await brought(script, header_line(Header(1, "Parley 2.0", 10.0)) + b"".join(lines))
    base = f"/r/{told['recording']['rid']}"
    page = " ".join((await client.get(f"{base}/calls")).text.split())
    assert f"The newest {most} calls, newest first. Older ones open from their messages in the <a" in page
    page = (await client.get(f"{base}/calls/c{most + 2}")).text
    assert "not over in what was recorded" in page and "Unfinished" in page and ">Running<" not in page
    assert "data-age" not in page.split('id="call-c')[1].split("</header>")[0] and "time is up" not in page
    assert (await client.get(f"{base}/calls/c1")).status == 200
