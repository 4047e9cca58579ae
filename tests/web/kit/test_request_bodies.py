"""What may be posted, and how much of it."""

import json
import re
import time
from urllib.parse import quote, unquote

import pytest
from starlette.applications import Starlette

from app.sessions import Session
from app.sessions.identity import LOCAL
from app.settings import Limits
from app.web.door.denied import Denied
from app.web.door.guard import Access, GuardedRoute
from app.web.kit.request_bodies import strict_json
from tests.web.asgi import Visitor
from tests.web.table import address, each

DEEP = 100_000
PLAIN = (
    "app.web.connect.routes.",
    "app.web.session.options.",
    "app.web.session.roots.",
    "app.web.calls.routes.",
    "app.web.lists.routes.refresh",
    "app.web.lists.routes.more",
)
"""Handlers that read a body as JSON or as a form before they look at anything else."""
OPEN = (Access.IDENTITY, Access.SESSION)
"""Not what brings back a closed session: for one that is open it does not exist."""


@each(*OPEN, of="POST", handlers=PLAIN)
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"1",
        b"null",
        b'{"a": 1, "a": 2}',
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e400}',
        b'{"a": -1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"a": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b"[" * DEEP,
        b'{"a":' * DEEP,
        b'{"a": ' + b"[" * 600 + b"]" * 600 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
@pytest.mark.requirement("S36")
async def test_malformed_json_is_refused_and_nothing_is_done(
    body: bytes, route: GuardedRoute, app: Starlette, script: Visitor, victim: Session
):
    answer = await script.post(address(route, victim.id), body)
    assert answer.status == 400
    assert answer.error["kind"] == "malformed"
    assert app.state.registry.of(LOCAL) == [victim]
    assert not victim.calls


@each(*OPEN, of="POST", handlers=PLAIN)
async def test_an_unknown_key_is_named(route: GuardedRoute, script: Visitor, victim: Session):
    answer = await script.post(address(route, victim.id), {"no such/key": 1})
    assert answer.status == 422
    assert answer.error["fields"]["/no such~1key"] == ["There is no such key."]


async def test_where_in_the_body_it_is_wrong(script: Visitor, victim: Session):
    async def fields(path: str, body: object) -> set[str]:
        answer = await script.post(f"/s/{victim.id}{path}", body)
        assert answer.status == 422, answer.text
        return set(answer.error["fields"])

    assert await fields("/connect", {}) == {"/target"}
    assert await fields("/connect", {"target": {"transport": "stdio"}}) == {"/target/command"}
    assert await fields("/connect", {"target": {"transport": "telepathy"}}) == {"/target"}
    stdio = {"transport": "stdio", "command": "x"}
    assert await fields("/connect", {"target": {**stdio, "args": [1]}}) == {"/target/args/0"}
    assert await fields("/connect", {"target": {**stdio, "shell": True}}) == {"/target/shell"}
    assert await fields("/connect", {"target": stdio, "options": {"era": "stone", "frobnicate": 1}}) == {
        "/options/era",
        "/options/frobnicate",
    }
    assert await fields("/roots", {"roots": [{"uri": "file:///ok"}, {"uri": "http://no"}]}) == {"/roots/1/uri"}
    assert await fields("/calls", {"method": ""}) == {"/method"}
    assert await fields("/calls", {"method": "x", "params": [1]}) == {"/params"}
    assert await fields("/options", {"request_timeout_ms": -1}) == {"/request_timeout_ms"}
    assert await fields("/options", {"nonsense": 1}) == {"/nonsense"}


async def test_half_a_character_is_refused_where_it_can_be_neither_started_nor_kept(script: Visitor, victim: Session):
    """A lone surrogate in a target once ended Parley: it was to be saved, and UTF-8 cannot write it."""
    half = "a\ud800"

    async def fields(path: str, body: object) -> set[str]:
        answer = await script.post(path, body)
        assert answer.status == 422, answer.text
        return set(answer.error["fields"])

    stdio, sid = {"transport": "stdio", "command": "x"}, f"/s/{victim.id}"
    for path in ("/s", f"{sid}/connect", "/targets"):
        assert await fields(path, {"target": {**stdio, "args": [half]}}) == {"/target/args"}
        assert await fields(path, {"target": {**stdio, "env": {half: "x"}}}) == {"/target/env"}
        assert await fields(path, {"target": {"transport": "http", "url": "http://x", "headers": {"x": half}}}) == {
            "/target/headers"
        }
    assert await fields("/s", {"target": stdio, "options": {"meta": {"a": [half]}}}) == {"/options/meta"}
    assert await fields(f"{sid}/options", {"meta": {"a": half}}) == {"/meta"}
    assert await fields(f"{sid}/roots", {"roots": [{"uri": "file:///a", "name": half}]}) == {"/roots/0/name"}
    assert await fields("/targets", {"name": half, "target": stdio}) == {"/name"}


@pytest.mark.parametrize("query", ["wait=soon", "wait=-1", "wait=nan"])
async def test_a_wait_is_a_number_of_seconds(query: str, script: Visitor, victim: Session):
    for path in ("", "/inbox"):
        answer = await script.get(f"/s/{victim.id}{path}?{query}")
        assert answer.status == 422
        assert set(answer.error["fields"]) == {"/wait"}


@pytest.mark.parametrize("query", ["after=x", "after=-1", "before=1.5", "limit=٣", "after=" + "9" * 5000])
async def test_a_place_in_the_log_is_a_number(query: str, script: Visitor, victim: Session):
    name, _, value = query.partition("=")
    answer = await script.get(f"/s/{victim.id}/log?{name}={quote(value)}")
    assert answer.status == 422
    assert set(answer.error["fields"]) == {f"/{name}"}


@pytest.mark.parametrize("seq", ["0", "99", "x", "-1", "9" * 5000, "٣"])
async def test_a_message_that_is_not_there(seq: str, script: Visitor, victim: Session):
    assert (await script.get(f"/s/{victim.id}/log/{seq}")).status == 404


async def test_a_json_error_says_where_it_is():
    with pytest.raises(Denied, match="line 2, column 8"):
        strict_json('{\n  "a": x\n}')


async def test_a_long_body_of_the_allowed_kind_is_read(script: Visitor, victim: Session):
    body = json.dumps({"roots": [{"uri": "file:///" + "x" * 4000, "name": "é" * 200}] * 150}).encode()
    assert len(body) > 256 * 1024
    assert (await script.post(f"/s/{victim.id}/roots", body)).status == 200
    assert len(victim.roots) == 150


# ---------------------------------------------------------------------------------------------------------------- S36


class TestLimits:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(body_bytes=1_000_000)

    @each(*OPEN, of="POST", handlers=PLAIN)
    @pytest.mark.requirement("S36")
    async def test_a_body_above_the_limit(self, route: GuardedRoute, script: Visitor, client: Visitor, victim: Session):
        path, kind = address(route, victim.id), {"content-type": "application/json"}
        for length in ("1000001", "999999999999999999999999", "-1", "1_0", "x", "١"):
            if length.isascii():
                answer = await script.send("POST", path, {**kind, "content-length": length})
                assert (answer.status, answer.error["kind"]) == (413, "too-large"), length
        endless = [b"x" * 65536] * 20
        assert (await script.send("POST", path, kind, endless)).status == 413
        assert (await script.send("POST", path, {**kind, "content-length": "5"}, endless)).status == 413
        form = {"content-type": "application/x-www-form-urlencoded"}
        assert (await client.send("POST", path, form, [b"a=", *endless])).status == 413
        multi = {"content-type": "multipart/form-data; boundary=b"}
        start = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
        assert (await client.send("POST", path, multi, [start, *endless])).status == 413


@each(*OPEN, of="POST", handlers=PLAIN)
@pytest.mark.requirement("S36")
async def test_forms_have_limits(route: GuardedRoute, client: Visitor, victim: Session):
    path = address(route, victim.id)
    form = {"content-type": "application/x-www-form-urlencoded"}
    multi = {"content-type": "multipart/form-data; boundary=b"}
    began = time.perf_counter()
    many = b"&".join(b"f%d=1" % number for number in range(10_001))
    assert (await client.send("POST", path, form, many)).status == 413

    def part(number: int, extra: bytes = b"") -> bytes:
        return b'--b\r\nContent-Disposition: form-data; name="f%d"%s\r\n\r\nx\r\n' % (number, extra)

    fields = b"".join(part(number) for number in range(10_001)) + b"--b--\r\n"
    assert (await client.send("POST", path, multi, fields)).status == 413
    files = b"".join(part(number, b'; filename="x"') for number in range(1_000)) + b"--b--\r\n"
    assert (await client.send("POST", path, multi, files)).status == 413
    file = part(1, b'; filename="x"') + b"--b--\r\n"
    assert (await client.send("POST", path, multi, file)).status == 400
    assert (await client.send("POST", path, {"content-type": "multipart/form-data"}, b"x")).status == 400
    assert (await client.send("POST", path, form, b"a=%ff")).status == 400
    assert (await client.send("POST", path, form, b"\xff\xfe")).status == 400
    assert (await client.send("POST", path, {"content-type": "text/plain"}, b"x")).status == 415
    nested = b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" * 1000
    for broken in (nested, b"--b\r\n" * 1000, b"\0" * 1000):
        assert (await client.send("POST", path, multi, broken)).status < 500
    assert time.perf_counter() - began < 5


@pytest.mark.requirement("S37")
async def test_ten_thousand_ranges_are_quick(stranger: Visitor):
    ranges = "bytes=" + ",".join(f"{at}-{at}" for at in range(10_000))
    began = time.perf_counter()
    answer = await stranger.get("/static/app.css", range=ranges)
    assert time.perf_counter() - began < 1  # a guard: it takes less than 100 ms
    assert answer.status in {200, 400, 416}


@pytest.mark.parametrize(
    "path",
    [
        "../pyproject.toml",
        "..%2fpyproject.toml",
        "/etc/passwd",
        "%2fetc/passwd",
        "x\0y",
        ".",
        "vendor",
        "a" * 5000,
        "..",
        "vendor/../../pyproject.toml",
    ],
)
async def test_static_files_are_those_of_the_page_only(path: str, stranger: Visitor):
    assert (await stranger.send("GET", f"/static/{unquote(path)}")).status == 404


async def test_static_files_may_be_kept_when_their_address_changes_with_them(stranger: Visitor):
    kept = await stranger.get("/static/app.css?v=1")
    assert kept.header("cache-control") == "public, max-age=31536000, immutable"
    asked = await stranger.get("/static/app.css")
    assert asked.header("cache-control") == "no-cache"
    again = await stranger.get("/static/app.css", if_none_match=asked.header("etag"))
    assert again.status == 304


async def test_modules_stand_below_an_address_that_changes_with_all_of_them(client: Visitor, stranger: Visitor):
    page = await client.get("/")
    entry = re.findall(r'<script src="(/static/js-[0-9a-f]{8}/connect\.js)" type="module">', page.text)
    script = await stranger.get(entry[0])
    assert script.header("cache-control") == "public, max-age=31536000, immutable"
    imported = re.findall(r"(?:from|import) '(\./[a-z]+\.js)'", script.text)
    assert imported, "it stands on its own now: take another module"
    for path in imported:
        assert (await stranger.get(entry[0].replace("connect.js", path.removeprefix("./")))).status == 200
    assert (await stranger.get("/static/js-00000000/nothing.js")).status == 404


async def test_pages_and_scripts_are_compressed(client: Visitor, stranger: Visitor):
    assert (await client.get("/", accept_encoding="gzip, br")).header("content-encoding") == "gzip"
    assert (await stranger.get("/static/app.css", accept_encoding="gzip")).header("content-encoding") == "gzip"
    assert (await client.get("/")).header("content-encoding") is None
