"""Results in parts: binary content under its own policy, branches, search, download; and nothing that lies is shown."""

import base64
import hashlib
import json
import re
import struct
import zlib
from typing import Any

import pytest

from app.core.calls import Call
from app.core.wire import Finding
from app.sessions import Session
from app.web.calls.card import CallCard, error_name
from app.web.kit import media
from tests.web.asgi import Visitor

EVIL = "<script>alert(1)</script>"


def png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\0\0\0")) + chunk(b"IEND", b"")
    )


def coded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def keep(session: Session, result: Any, method: str = "tools/call", cid: str = "c1", **members: Any) -> Call:
    """A settled call with this result."""
    call = Call(id=cid, method=method, params={"name": "t"}, started_at=1.0, started=1.0, state="done")
    call.reply = json.dumps(
        {"jsonrpc": "2.0", "id": 1, **({"result": result} if result is not None else members)}
    ).encode()
    session.calls.add(call)
    return call


def sha(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
WAV = b"RIFF\x24\0\0\0WAVEfmt " + bytes(28)


@pytest.mark.requirement("S33")
async def test_an_image_is_shown_from_its_own_address_under_its_own_policy(client: Visitor, victim: Session):
    content = [
        {"type": "image", "mimeType": "image/png", "data": coded(png())},
        {"type": "audio", "mimeType": "audio/x-wav", "data": coded(WAV)},
        {"type": "image", "mimeType": "image/svg+xml", "data": coded(SVG)},
        {"type": "image", "mimeType": "image/png", "data": coded(b"<html><script>alert(1)</script>")},
        {"type": "image", "mimeType": "text/html", "data": coded(png())},
        {"type": "image", "mimeType": "image/png", "data": "not base64!"},
        {"type": "resource", "resource": {"uri": "x://y", "mimeType": "image/png", "blob": coded(png() + b"2")}},
    ]
    keep(victim, {"content": content})
    page = (await client.get(f"/s/{victim.id}/calls/c1")).text
    base = f"/s/{victim.id}/blobs"
    assert page.count("<img ") == 2
    assert page.count("<audio ") == 1
    assert f'<img src="{base}/{sha(png())}?call=c1"' in page
    ours = '<link rel="icon" href="data:image/svg+xml,'
    assert page.count("data:image") == page.count(ours) == 1
    for raw, kind in ((png(), "image/png"), (WAV, "audio/wav")):
        for query in ("?call=c1", ""):
            answer = await client.get(f"{base}/{sha(raw)}{query}")
            assert (answer.status, answer.body, answer.header("content-type")) == (200, raw, kind)
            assert answer.header("content-security-policy") == "sandbox; default-src 'none'"
            assert answer.header("x-content-type-options") == "nosniff"
            assert (answer.header("content-disposition") or "").startswith("inline")
    for raw in (SVG, b"<html><script>alert(1)</script>"):
        answer = await client.get(f"{base}/{sha(raw)}")
        assert answer.header("content-type") == "application/octet-stream"
        assert (answer.header("content-disposition") or "").startswith("attachment")
        assert answer.header("content-security-policy") == "sandbox; default-src 'none'"


async def test_unknown_content_is_not_there(client: Visitor, victim: Session, mallory: Visitor):
    keep(victim, {"content": [{"type": "image", "mimeType": "image/png", "data": coded(png())}]})
    for digest in ("0" * 64, "x", sha(png()).upper(), f"{sha(png())}?call=c9"):
        assert (await client.get(f"/s/{victim.id}/blobs/{digest}")).status == 404
    assert (await mallory.get(f"/s/{victim.id}/blobs/{sha(png())}")).status == 404


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
        (b"<svg", ""),
        (b"", ""),
        (b"\xff", ""),
    ],
)
def test_bytes_say_what_they_are(raw: bytes, kind: str):
    assert media.sniffed(raw) == kind


@pytest.mark.requirement("S32")
async def test_only_web_addresses_are_links(client: Visitor, victim: Session):
    uris = [
        "https://example.org/a",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        'https://x/"y',
        " https://x",
    ]
    keep(victim, {"content": [{"type": "resource_link", "uri": uri, "name": EVIL} for uri in uris]})
    page = (await client.get(f"/s/{victim.id}/calls/c1")).text
    assert page.count('rel="noopener noreferrer">Open <b>example.org</b></a>') == 1
    assert 'href="https://example.org/a"' in page
    assert 'href="javascript' not in page
    assert EVIL not in page


async def test_a_large_result_comes_in_parts(client: Visitor, victim: Session):
    items = [{"id": n, "name": f"item {n} {EVIL}", "a/b~": {"deep": [n, {"x": n}]}} for n in range(20_000)]
    for cid, root, result in (
        ("c1", "%2FstructuredContent", {"content": [], "structuredContent": items}),
        ("c2", "%2Fcontent%2F0%2Ftext", {"content": [{"type": "text", "text": json.dumps(items)}]}),
    ):
        call = keep(victim, result, cid=cid)
        assert call.reply is not None
        assert len(call.reply) > 1_000_000
        card = CallCard(victim, call)
        assert card.too_large
        base = f"/s/{victim.id}/calls/{cid}"
        shown = await client.get(f"{base}/shown", hx_request="true")
        assert 'data-rows="100"' in shown.text and "data-more=" not in shown.text
        assert f'id="call-{cid}-views"' in shown.text  # which ways there are is known only now
        as_tree = await client.get(f"{base}/shown?view=tree", hx_request="true")
        assert "data-more=" in as_tree.text
        for drawn in (shown.text, as_tree.text):
            assert len(drawn) < 200_000
            assert EVIL not in drawn
        assert len((await client.get(base)).text) < 1_000_000
        more = await client.get(f"{base}/branch?root={root}&pointer=&offset=19998")
        assert more.text.count("item 1999") == 2
        assert EVIL not in more.text
        deep = await client.get(f"{base}/branch?root={root}&pointer=%2F19999%2Fa~1b~0%2Fdeep")
        assert "19999" in deep.text
        value = await client.get(f"{base}/branch?root={root}&pointer=%2F19999%2Fa~1b~0&value=1")
        assert json.loads(value.text) == {"deep": [19999, {"x": 19999}]}
        assert value.header("content-type") == "text/plain; charset=utf-8"
        found = await client.get(f"{base}/search?root={root}&q=item+12345")
        assert "/12345/name" in found.text
        assert EVIL not in found.text
        many = await client.get(f"{base}/search?root={root}&q=ITEM", accept="application/json")
        assert len(many.json()["found"]) == 50
        for wrong in ("pointer=%2F20000", "pointer=%2Fx", "pointer=%2F-1", "pointer=%2F0%2Fid%2F0"):
            assert (await client.get(f"{base}/branch?root={root}&{wrong}")).status == 404
        assert (await client.get(f"{base}/branch?root=%2Fcontent%2F7%2Ftext")).status == 404
        assert (await client.get(f"{base}/branch?root={root}&offset=-1")).status == 422


async def test_a_result_is_a_download(client: Visitor, victim: Session):
    result = {"content": [{"type": "text", "text": EVIL}], "n": 12345678901234567890}
    call = keep(victim, result)
    answer = await client.get(f"/s/{victim.id}/calls/c1/result")
    assert json.loads(answer.text) == result
    assert answer.header("content-disposition") == 'attachment; filename="call-1.json"'
    assert answer.header("content-security-policy") == "sandbox; default-src 'none'"
    raw = await client.get(f"/s/{victim.id}/calls/c1/result?raw=1")
    assert raw.body == call.reply
    call.reply = None
    assert (await client.get(f"/s/{victim.id}/calls/c1/result")).status == 404


async def test_a_place_far_down_a_large_tree_comes_without_what_is_before_it(client: Visitor, victim: Session):
    keep(victim, {"content": [], "structuredContent": [{"n": n} for n in range(20_000)]})
    base = f"/s/{victim.id}/calls/c1/branch?root=%2FstructuredContent&pointer="
    drawn = (await client.get(f"{base}&offset=600&around=15000")).text
    assert 'data-k="15000"' in drawn and 'data-k="700"' not in drawn
    assert 'data-more="600" data-until="14997"' in drawn
    before = (await client.get(f"{base}&offset=14990&until=14997")).text
    assert 'data-k="14996"' in before and 'data-k="14997"' not in before and "data-more" not in before
    for wrong in ("offset=600&around=20000", "offset=600&around=5", "offset=0&until=9&around=9", "around=x"):
        assert (await client.get(f"{base}&{wrong}")).status == 404


async def test_text_that_is_json_is_a_tree_and_stays_readable_as_text(client: Visitor, victim: Session):
    keep(
        victim,
        {"content": [{"type": "text", "text": '{"a": [1, {"b": null}]}'}, {"type": "text", "text": "{not json"}]},
    )
    page = (await client.get(f"/s/{victim.id}/calls/c1")).text
    assert "which is JSON" in page
    assert "{not json" in page
    text = (await client.get(f"/s/{victim.id}/calls/c1/shown?view=text")).text
    assert "{&#34;a&#34;: [1, {&#34;b&#34;: null}]}" in text and "<details" not in text
    assert (await client.get(f"/s/{victim.id}/calls/c1/shown?view=song")).status == 422


@pytest.mark.requirement("U-M14")
async def test_a_text_that_repeats_the_structured_content_is_not_drawn_twice(client: Visitor, victim: Session):
    value = {"a": [1, {"b": None}], "c": 2.5}
    text = '{"c": 2.5, "a": [1, {"b": null}]}'
    keep(victim, {"content": [{"type": "text", "text": text}], "structuredContent": value})
    page = (await client.get(f"/s/{victim.id}/calls/c1")).text
    assert "which is JSON" not in page
    assert 'title="Text (identical)"' in page
    assert text.replace('"', "&#34;") not in page
    as_text = (await client.get(f"/s/{victim.id}/calls/c1/shown?view=text&alone")).text
    assert text.replace('"', "&#34;") in as_text and 'class="json' not in as_text


@pytest.mark.requirement("U-M14")
@pytest.mark.parametrize(
    ("value", "texts", "view"),
    [
        ("Fair wind", ["Fair wind"], "text"),
        (42, ["42"], "text"),
        (None, ["null"], "text"),
        (["a", "b"], ["a", "b"], "tree"),
        ([{"n": 1}, {"n": 2}], ['{"n": 1}', '{"n": 2}'], "table"),
        ([{"n": 1}, {"n": 2}], ['[{"n": 1}, {"n": 2}]'], "table"),
    ],
)
async def test_what_fastmcp_wraps_is_not_drawn_twice(
    client: Visitor, victim: Session, value: Any, texts: list[str], view: str
):
    content = [{"type": "text", "text": text} for text in texts]
    keep(victim, {"content": content, "structuredContent": {"result": value}})
    page = (await client.get(f"/s/{victim.id}/calls/c1")).text
    assert f'data-view="{view}" aria-pressed="true"' in page
    assert 'title="Text (identical)"' in page
    assert page.count('<div class="block"') == 1
    tree = (await client.get(f"/s/{victim.id}/calls/c1/shown?view=tree")).text
    assert 'class="jk">result' in tree and tree.count('<div class="block"') == 1


@pytest.mark.requirement("U-S5")
async def test_a_list_of_equal_objects_is_a_table(client: Visitor, victim: Session):
    rows = [{"id": n, "name": f"item {n}", "more": {"x": n}, "text": "12"} for n in range(300)]
    keep(victim, {"content": [], "structuredContent": {"total": 300, "rows": rows, "next": None}})
    base = f"/s/{victim.id}/calls/c1"
    card = (await client.get(f"{base}/shown")).text
    assert "<code>/rows</code>" in card and "300 rows, 4 columns" in card
    assert '<code>total</code> <code class="jn">300</code>' in card
    assert card.count("<tr data-k=") == 100 and "Show 200 more of 200" in card
    assert '<td class="nm">item 7</td>' in card and '<td class="js">&#34;12&#34;</td>' in card
    assert "<details" not in card
    down = (await client.get(f"{base}/table?root=%2FstructuredContent&sort=id&down=1&id=t")).text
    assert down.index('data-k="299"') < down.index('data-k="298"') and 'aria-sort="descending"' in down
    rest = (await client.get(f"{base}/table?root=%2FstructuredContent&offset=100")).text
    assert 'data-k="100"' in rest and 'data-k="299"' in rest and 'data-k="99"' not in rest
    assert (await client.get(f"{base}/table?root=%2FstructuredContent&offset=x")).status == 422
    keep(victim, {"content": [], "structuredContent": {"one": 1}}, cid="c2")
    assert (await client.get(f"/s/{victim.id}/calls/c2/table?root=%2FstructuredContent")).status == 404


@pytest.mark.parametrize("text", ['{"n": true}', '{"n": 1.5}', '{"n": 1, "m": 2}', '{"n": [1]}', '[{"n": 1}]'])
async def test_a_text_that_says_something_else_is_shown_beside_the_structured_content(
    client: Visitor, victim: Session, text: str
):
    keep(victim, {"content": [{"type": "text", "text": text}], "structuredContent": {"n": 1}})
    page = (await client.get(f"/s/{victim.id}/calls/c1")).text
    assert "which is JSON" in page
    assert "Text (identical)" not in page


async def test_what_findings_point_to_is_marked_and_nothing_that_only_looks_like_it(client: Visitor, victim: Session):
    value = {"a/b": {"deep": "wrong"}, "content": 1}
    call = keep(victim, {"content": [], "structuredContent": value})
    call.log = victim.messages
    words = "`/content` is spoken of, and `/a~1b` too."
    victim.messages.note("c1", Finding("R5-29", "must", words, pointer="/structuredContent/a~1b/deep"))
    victim.messages.note("c1", Finding("H08", "note", words, pointer="/content"))
    page = (await client.get(f"/s/{victim.id}/calls/c1")).text
    assert page.count(' jh"') == 1
    assert re.search(r'class="l jh"[^>]*>(?:(?!</div>).)*wrong', page)


async def test_a_large_value_can_be_searched(client: Visitor, victim: Session):
    keep(victim, {"content": [], "structuredContent": [{"number": n} for n in range(300)]})
    assert "Find in result" in (await client.get(f"/s/{victim.id}/calls/c1")).text


async def test_contents_of_a_resource_are_shown_by_their_kind(client: Visitor, victim: Session):
    contents = [{"uri": "x://y", "mimeType": "image/png", "blob": coded(png())}, {"uri": "x://z", "text": "words"}, 7]
    keep(victim, {"contents": contents}, method="resources/read")
    page = (await client.get(f"/s/{victim.id}/calls/c1")).text
    assert f"/blobs/{sha(png())}" in page
    assert "words" in page


def test_codes_have_names():
    assert error_name(-32601) == "Method not found"
    assert error_name(-32042) == "URL elicitation required"
    assert error_name(-32050) == "Server error"
    assert error_name(7) == ""


# ---- Markdown, pages in frames, parts of a file


@pytest.mark.requirement("S29", "S30")
async def test_a_text_is_markdown_only_on_demand(client: Visitor, victim: Session, mallory: Visitor):
    text = f"# Head\n\n{EVIL} **bold** [x](javascript:alert(1))"
    content = [
        {"type": "text", "text": text},
        {"type": "text", "text": "plain"},
        {"type": "resource", "resource": {"uri": "x://y", "mimeType": "text/markdown", "text": "*in it*"}},
        {"type": "text", "text": "*" * 70_000},
    ]
    keep(victim, {"content": content})
    base = f"/s/{victim.id}/calls/c1"
    page = (await client.get(base)).text
    assert page.count('data-as="markdown"') == 2
    assert "<strong>" not in page
    assert EVIL not in page
    answer = await client.get(f"{base}/markdown?root=%2Fcontent%2F0%2Ftext")
    assert "<strong>bold</strong>" in answer.text
    assert "<script" not in answer.text
    assert 'href="javascript' not in answer.text
    inside = await client.get(f"{base}/markdown?root=%2Fcontent%2F2%2Fresource%2Ftext")
    assert "<em>in it</em>" in inside.text
    long = await client.get(f"{base}/markdown?root=%2Fcontent%2F3%2Ftext", accept="application/json")
    assert (long.status, long.error["kind"]) == (413, "too-large")
    for wrong in ("%2Fcontent%2F9%2Ftext", "%2Fcontent", "", "%2Fcontent%2F0%2Ftype"):
        assert (await client.get(f"{base}/markdown?root={wrong}")).status == 404
    assert (await mallory.get(f"{base}/markdown?root=%2Fcontent%2F0%2Ftext")).status == 404


async def test_the_messages_of_a_prompt_are_shown_by_their_kind(client: Visitor, victim: Session):
    messages = [
        {"role": "user", "content": {"type": "text", "text": "Say *this*"}},
        {"role": "assistant", "content": {"type": "image", "mimeType": "image/png", "data": coded(png())}},
        {"role": "user", "content": [{"type": "text", "text": "a list"}]},
        {"role": "user", "content": {"type": "resource", "resource": {"uri": "x://y", "text": '{"a": 1}'}}},
        {"role": EVIL, "content": 7},
        "nothing",
    ]
    keep(victim, {"messages": messages}, method="prompts/get")
    base = f"/s/{victim.id}/calls/c1"
    page = (await client.get(base)).text
    assert '<p class="who" hx-ignore>user</p>' in page
    assert f"/blobs/{sha(png())}" in page
    assert "a list" in page
    assert "which is JSON" in page
    assert EVIL not in page
    assert (await client.get(f"/s/{victim.id}/blobs/{sha(png())}")).body == png()
    answer = await client.get(f"{base}/markdown?root=%2Fmessages%2F0%2Fcontent%2Ftext")
    assert "<em>this</em>" in answer.text


@pytest.mark.requirement("S09", "S33")
async def test_a_page_of_a_server_is_served_for_a_sandboxed_frame_only(
    client: Visitor, victim: Session, mallory: Visitor
):
    html = f"<style>p{{color:red}}</style><p>hi{EVIL}"
    content = [
        {"type": "resource", "resource": {"uri": "ui://a", "mimeType": "text/html;profile=mcp-app", "text": html}},
        {"type": "resource", "resource": {"uri": "ui://b", "mimeType": "text/plain", "text": f"plain {html}"}},
        {"type": "text", "text": f"bare {html}"},
    ]
    keep(victim, {"content": content})
    page = (await client.get(f"/s/{victim.id}/calls/c1")).text
    address = f"/s/{victim.id}/frames/{sha(html.encode())}"
    assert f'data-src="{address}?call=c1"' in page
    assert page.count('data-as="frame"') == 1
    assert "<iframe" not in page
    assert EVIL not in page
    for query in ("?call=c1", ""):
        answer = await client.get(address + query)
        assert (answer.status, answer.text) == (200, html)
        policy = dict(
            part.strip().partition(" ")[::2] for part in (answer.header("content-security-policy") or "").split(";")
        )
        assert policy == {
            "sandbox": "",
            "default-src": "'none'",
            "style-src": "'unsafe-inline'",
            "img-src": "data:",
            "form-action": "'none'",
            "base-uri": "'none'",
            "frame-ancestors": "'self'",
        }
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("referrer-policy") == "no-referrer"
    for text in (f"plain {html}", f"bare {html}"):
        assert (await client.get(f"/s/{victim.id}/frames/{sha(text.encode())}")).status == 404
    assert (await client.get(f"/s/{victim.id}/frames/x")).status == 404
    assert (await mallory.get(address)).status == 404


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-3", (0, 3)),
        ("bytes=40-", (40, 43)),
        ("bytes=-4", (40, 43)),
        ("bytes=-4000", (0, 43)),
        ("bytes=2-9999", (2, 43)),
        ("bytes=0-0", (0, 0)),
    ],
)
async def test_a_part_of_a_sound_is_sent(client: Visitor, victim: Session, asked: str, part: tuple[int, int]):
    keep(victim, {"content": [{"type": "audio", "mimeType": "audio/wav", "data": coded(WAV)}]})
    address = f"/s/{victim.id}/blobs/{sha(WAV)}?call=c1"
    answer = await client.get(address, range=asked, accept_encoding="gzip")
    assert (answer.status, answer.body) == (206, WAV[part[0] : part[1] + 1])
    assert answer.header("content-range") == f"bytes {part[0]}-{part[1]}/{len(WAV)}"
    assert answer.header("content-type") == "audio/wav"
    assert answer.header("accept-ranges") == "bytes"
    assert answer.header("content-security-policy") == "sandbox; default-src 'none'"


async def test_a_part_behind_the_end_is_refused_and_no_range_is_the_whole(client: Visitor, victim: Session):
    keep(victim, {"content": [{"type": "audio", "mimeType": "audio/wav", "data": coded(WAV)}]})
    address = f"/s/{victim.id}/blobs/{sha(WAV)}?call=c1"
    for behind in ("bytes=44-", "bytes=9999-99999", "bytes=-0"):
        answer = await client.get(address, range=behind)
        assert (answer.status, answer.body, answer.header("content-range")) == (416, b"", "bytes */44")
    many = "bytes=" + ",".join("0-0" for _ in range(10_000))
    for whole in ("bytes=5-2", "bytes=-", "bytes=a-b", "lines=0-3", "bytes=0-3,5-9", many):
        answer = await client.get(address, range=whole)
        assert (answer.status, answer.body) == (200, WAV)
    assert (await client.get(address, range="bytes=0-3", if_range='"x"')).status == 200
