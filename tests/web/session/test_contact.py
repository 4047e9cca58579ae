"""First contact and what comes after a loss: faults that say what to do, on pages, by forms and in JSON."""

import html
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.core.errors import Trouble, ending, last_line
from app.core.targets import StdioTarget
from app.sessions import Session
from app.settings import Limits
from app.web.kit.fault import _metadata_link
from tests.certificates import make
from tests.drive import raw_target, until
from tests.drive_http import Peer, raw_peer
from tests.moody import Moody
from tests.web.asgi import PORT, Visitor

HTMX = {"hx_request": "true"}
CHALLENGE = (
    'Bearer realm="kontor", scope="crm.read crm.write", error="invalid_token", error_description="token expired", '
    'resource_metadata="https://mcp.kontor.example/.well-known/oauth-protected-resource"'
)
SECRET = "tok-en.that~nobody_may-see-0123456789"
pytestmark = pytest.mark.usefixtures("processes")


@pytest.fixture
def limits() -> Limits:
    return Limits(probe_seconds=20, nudge_seconds=0.2)


NO_OAUTH = {"kind": "none"}
"""A 401 is a 401 then, and nothing that it names is fetched."""


async def opened(script: Visitor, target: Any, **options: Any) -> str:
    body = {"target": target if isinstance(target, dict) else target.model_dump(mode="json"), "options": options}
    answer = await script.post("/s", body)
    assert answer.status == 201, answer.text
    path: str = answer.json()["url"]
    await script.json(f"{path}?wait=30")
    return path


async def page(client: Visitor, path: str) -> str:
    answer = await client.get(path)
    assert answer.status == 200, answer.text[:300]
    return html.unescape(answer.text)


async def state(script: Visitor, path: str) -> Any:
    return (await script.json(f"{path}?wait=30"))["connection"]


@pytest.fixture
async def refusing() -> AsyncIterator[Peer]:
    """A server that wants a token, and says which."""
    answer = {"status": 401, "headers": {"www-authenticate": CHALLENGE}, "body": '{"error": "invalid_token"}'}
    async with raw_peer(http={"POST": answer}) as peer:
        yield peer


# ------------------------------------------------------------------------------------------------------ S7: who you are


@pytest.mark.requirement("U-S7")
async def test_s7_a_401_is_a_door_and_no_broken_protocol(client: Visitor, script: Visitor, refusing: Peer):
    path = await opened(script, refusing.target(auth=NO_OAUTH))
    told = await script.json(path)
    error = told["connection"]["error"]
    assert error["heading"] == "401 Unauthorized: credentials needed" and told["counts"]["findings"] == 0
    assert error["challenges"][0]["parameters"]["scope"] == "crm.read crm.write"
    shown = await page(client, path)
    for words in (
        "401 Unauthorized: credentials needed",
        "<dt>Scheme</dt>",
        "kontor",
        "crm.read crm.write",
        "invalid_token",
        "token expired",
        "Bearer token",
        "Kept for this session only.",
        "Connection log, 1 message",
    ):
        assert words in shown, words
    metadata = "https://mcp.kontor.example/.well-known/oauth-protected-resource"
    assert f'<a href="{metadata}" target="_blank" rel="noopener noreferrer">' in shown
    assert shown.count('name="token"') == 1 and "None" not in shown and "not supported" not in shown
    assert {one.path for one in refusing.requests()} == {"/mcp"}, "nothing that it names is fetched"


BODIES = [
    '{"error":"unauthorized"}',
    '{"jsonrpc":"2.0","error":{"code":-32001,"message":"no"},"id":null}',
    '{"jsonrpc":"2.0","error":"no","id":"server-error"}',
    '{"jsonrpc":"1.0","error":{},"id":[]}',
    "[1, 2",
    "<html>",
    "",
]


@pytest.mark.requirement("U-S7")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
async def test_s7_no_body_of_a_refusal_is_judged_as_json_rpc(script: Visitor, status: int):
    for body in BODIES:
        answer = {"status": status, "headers": {"content-type": "application/json"}, "body": body}
        async with raw_peer(http={"POST": answer, "GET": answer}) as peer:
            path = await opened(script, peer.target())
            told = await script.json(path)
            assert told["connection"]["state"] == "lost" and told["counts"]["findings"] == 0, (status, body)
            assert "None" not in str([one["text"] for one in told["connection"]["steps"]])
            await script.post(f"{path}/close")


@pytest.mark.requirement("U-S7")
async def test_s7_a_token_given_in_the_fault_connects_and_is_kept_nowhere(
    app: Starlette, client: Visitor, script: Visitor
):
    answer = {"status": 401, "headers": {"www-authenticate": "Bearer"}}
    async with raw_peer(http={"POST": answer}) as closed, raw_peer() as open_peer:
        path = await opened(script, closed.target(headers={"Authorization": "Bearer old-one-that-expired"}))
        session: Session = app.state.registry._sessions[path.rsplit("/", 1)[-1]]
        sent = await client.form(f"{path}/connect", {"token": f" Bearer {SECRET} "})
        assert sent.status == 303
        assert sent.header("location") in {path, f"/?session={session.id}"}  # watched, or refused at once
        await state(script, path)
        assert closed.requests()[-1].headers["authorization"] == f"Bearer {SECRET}"
        assert len([name for name in closed.requests()[-1].headers if name == "authorization"]) == 1

        # The same server lets it in: nothing that can be read has the token.
        session.target = session.target.model_copy(update={"url": open_peer.url()})  # type: ignore[union-attr]
        await client.form(f"{path}/connect", {"again": "1"})
        assert (await state(script, path))["state"] == "ready"
        assert open_peer.requests()[0].headers["authorization"] == f"Bearer {SECRET}"
        for address in (path, f"{path}/connect", f"{path}/log", "/"):
            assert SECRET not in (await client.get(address)).text
            assert SECRET not in (await script.get(address)).text
        seq = (await script.json(f"{path}/log"))["messages"][0]["seq"]
        assert SECRET not in (await client.get(f"{path}/log/{seq}")).text
        assert "•••" in (await client.get(f"{path}/log/{seq}")).text
        kept = app.state.registry.store.of("local") or app.state.registry.store.of(session.owner)
        assert kept and all(SECRET not in one.target.model_dump_json() for one in kept if one.target != session.target)


@pytest.mark.requirement("U-S7")
async def test_s7_a_token_is_not_remembered_with_the_target(app: Starlette, client: Visitor, script: Visitor):
    answer = {"status": 401}
    async with raw_peer(http={"POST": answer}) as peer:
        path = await opened(script, peer.target(auth=NO_OAUTH))
        for form in ({"token": SECRET}, {"again": "1"}):
            await client.form(f"{path}/connect", form)
            await state(script, path)
        session: Session = app.state.registry._sessions[path.rsplit("/", 1)[-1]]
        assert SECRET in session.target.model_dump_json()  # type: ignore[union-attr]
        assert all(SECRET not in one.target.model_dump_json() for one in app.state.registry.store.of(session.owner))
        # Nor by a request that is saved with the server: it belongs to the one that is known.
        await session.saved.save("mine", "ping", None)
        (kept,) = app.state.registry.store.of(session.owner)
        assert SECRET not in kept.target.model_dump_json() and kept.key == session.target_key
        assert peer.requests()[-1].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.requirement("U-S7", "S21")
async def test_s7_a_server_that_quotes_the_token_it_refuses_is_not_quoted_with_it(client: Visitor, script: Visitor):
    wanted = f'Bearer error="invalid_token", error_description="{SECRET} has expired", {SECRET}="1"'
    answer = {"status": 401, "headers": {"www-authenticate": wanted}, "body": f"{'x' * 280} {SECRET} has expired"}
    async with raw_peer(http={"POST": answer}) as peer:
        path = await opened(script, peer.target(headers={"Authorization": f"Bearer {SECRET}"}))
        assert "••• has expired" in await page(client, path)
        seqs = [one["seq"] for one in (await script.json(f"{path}/log"))["messages"]]
        for address in (path, f"/?session={path[3:]}", f"{path}/log", *(f"{path}/log/{seq}" for seq in seqs)):
            for visitor in (client, script):
                assert SECRET[:20] not in (await visitor.get(address)).text, address


@pytest.mark.requirement("U-S7")
@pytest.mark.parametrize("token", ["", "  ", "two words", "line\nbreak", "über"])
async def test_s7_what_is_no_token_is_said(client: Visitor, script: Visitor, refusing: Peer, token: str):
    path = await opened(script, refusing.target(auth=NO_OAUTH))
    before = len(refusing.requests())
    answer = await client.form(f"{path}/connect", {"token": token})
    assert answer.status == 422 and "A token is one word" in answer.text
    assert len(refusing.requests()) == before


@pytest.mark.requirement("U-S7")
@pytest.mark.parametrize(
    ("status", "challenge", "asks"),
    [
        (401, "", True),
        (401, "Basic realm=x", False),
        (401, "Negotiate, Bearer", True),
        (403, "", False),
        (403, 'Bearer error="insufficient_scope", scope="crm.write"', True),
    ],
)
async def test_s7_a_token_is_asked_for_where_it_helps(
    client: Visitor, script: Visitor, status: int, challenge: str, asks: bool
):
    answer = {"status": status, "headers": {"www-authenticate": challenge} if challenge else {}}
    async with raw_peer(http={"POST": answer}) as peer:
        shown = await page(client, await opened(script, peer.target(auth=NO_OAUTH)))
        assert ('name="token"' in shown) is asks
        assert ("<dt>Scheme</dt>" in shown) is bool(challenge)


@pytest.mark.requirement("U-S7")
@pytest.mark.requirement("S24")
@pytest.mark.parametrize(
    "named",
    [
        "javascript:alert(1)",
        "http://user@evil.example/",
        "not an address",
        "//x/y",
        "http://mcp.kontor.example/",
        "https://169.254.169.254/latest/meta-data/",
        "http://169.254.169.254/",
        "https://10.0.0.1/",
        "https://192.168.1.1/reboot",
        "https://[fd00:ec2::254]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://0.0.0.0/",
        "https://router.local/",
        "https://vault.internal/",
        "https://intranet/",
        f"http://127.0.0.1:{PORT}/logout",
        f"http://localhost:{PORT}/logout",
        f"https://[::1]:{PORT}/",
    ],
)
async def test_s7_a_bad_metadata_address_is_text(client: Visitor, script: Visitor, named: str):
    answer = {"status": 401, "headers": {"www-authenticate": f'Bearer resource_metadata="{named}"'}}
    async with raw_peer(http={"POST": answer}) as peer:
        shown = await page(client, await opened(script, peer.target(auth=NO_OAUTH)))
        assert "<dt>Metadata</dt>" in shown and f'href="{named}"' not in shown


@pytest.mark.requirement("U-S7")
@pytest.mark.parametrize(
    ("server", "named", "linked"),
    [
        ("https://a.example/mcp", "https://a.example/.well-known/x", True),
        ("https://a.example/mcp", "https://b.example/x", True),
        ("https://a.example/mcp", "http://a.example/x", False),
        ("http://a.example/mcp", "http://a.example/x", True),
        ("https://10.0.0.1/mcp", "https://10.0.0.1/x", True),
        ("https://10.0.0.1/mcp", "https://10.0.0.2/x", False),
        ("https://desk.internal/mcp", "https://desk.internal/x", True),
        ("http://127.0.0.1:8000/mcp", "http://localhost:9000/x", True),
        ("http://127.0.0.1:8000/mcp", "http://localhost:6280/x", False),
        ("https://[2001:db8::1]/mcp", "https://[2001:db8::1]/x", True),
        ("", "https://a.example/x", True),
    ],
)
def test_s7_metadata_is_a_link_where_a_person_may_go(server: str, named: str, linked: bool):
    assert _metadata_link(named, server, {6280}) == (named if linked else "")


# ------------------------------------------------------------------------------------------- redirects and certificates


@pytest.mark.requirement("U-M13")
async def test_m13_a_redirect_is_a_button_and_secrets_stay_behind(client: Visitor, script: Visitor):
    async with raw_peer() as there:
        answer = {"status": 301, "headers": {"location": there.url()}}
        async with raw_peer(http={"POST": answer}) as here:
            given = here.target(headers={"Authorization": f"Bearer {SECRET}", "X-Tenant": "acme"})
            path = await opened(script, given)
            assert there.requests() == [], "no redirect is followed by itself"
            assert (await state(script, path))["error"]["redirect"] == there.url()
            shown = await page(client, path)
            port = there.port
            assert f"Connect to <code>http://<b>127.0.0.1</b>:{port}/mcp</code>" in shown
            assert "Secret headers are not sent there." in shown
            digest = shown.partition('name="follow" value="')[2].partition('"')[0]
            wrong = await client.form(f"{path}/connect", {"follow": "0" * 32})
            assert wrong.status == 409 and there.requests() == []
            assert (await client.form(f"{path}/connect", {"follow": digest})).status == 303
            assert (await state(script, path))["state"] == "ready"
            first = there.requests()[0]
            assert first.headers["x-tenant"] == "acme" and "authorization" not in first.headers


@pytest.mark.requirement("U-M13")
async def test_m13_a_redirect_goes_through_the_same_guard(client: Visitor, script: Visitor):
    answer = {"status": 302, "headers": {"location": "http://169.254.169.254/latest/"}}
    async with raw_peer(http={"POST": answer}) as peer:
        path = await opened(script, peer.target())
        shown = await page(client, path)
        digest = shown.partition('name="follow" value="')[2].partition('"')[0]
        await client.form(f"{path}/connect", {"follow": digest})
        assert (await state(script, path))["error"]["kind"] == "policy"


@pytest.mark.requirement("U-M13")
@pytest.mark.parametrize("where", ["", "javascript:alert(1)", "ftp://x/", "http://me:secret@127.0.0.1/", "http://"])
async def test_m13_where_nobody_can_go_there_is_no_button(client: Visitor, script: Visitor, where: str):
    async with raw_peer(http={"POST": {"status": 302, "headers": {"location": where}}}) as peer:
        shown = await page(client, await opened(script, peer.target()))
        assert 'name="follow"' not in shown and "secret@" not in shown


@pytest.mark.requirement("U-M13")
async def test_m13_a_certificate_is_trusted_from_the_fault(client: Visitor, script: Visitor, tmp_path: Path):
    leaf, other = make("crm.kontor.example"), make()
    async with raw_peer(tls=leaf.files(tmp_path / "a")) as peer:
        url = f"https://127.0.0.1:{peer.port}/mcp"
        path = await opened(script, {"transport": "http", "url": url})
        error = (await state(script, path))["error"]
        assert error["certificate"]["fingerprint"] == leaf.fingerprint
        shown = await page(client, path)
        digits = leaf.fingerprint.removeprefix("sha256:").upper()
        for words in ("Trust this certificate", "O=Kontor, CN=crm.kontor.example", f"{digits[:2]}:{digits[2:4]}:"):
            assert words in shown, words
        wrong = await client.form(f"{path}/connect", {"trust": other.fingerprint})
        assert wrong.status == 409 and (await state(script, path))["state"] == "lost"
        await client.form(f"{path}/connect", {"trust": leaf.fingerprint})
        assert (await state(script, path))["state"] == "ready"
        told = await script.json(path)
        assert told["target"]["tls"] == {"ca": "", "fingerprint": leaf.fingerprint}
        form = await page(client, f"{path}/connect")
        assert f'value="{leaf.fingerprint}"' in form, "it can be seen and changed"
        kept = [one for one in (await script.json("/"))["targets"] if one["tls"]]
        assert kept and kept[0]["tls"]["fingerprint"] == leaf.fingerprint


@pytest.mark.requirement("U-M13")
async def test_m13_a_certificate_that_changed_says_so_and_is_trusted_anew_only_by_hand(
    client: Visitor, script: Visitor, tmp_path: Path
):
    async with raw_peer(tls=make().files(tmp_path)) as peer:
        tls = {"fingerprint": make().fingerprint}
        target = {"transport": "http", "url": f"https://127.0.0.1:{peer.port}/mcp", "tls": tls}
        shown = await page(client, await opened(script, target))
        assert "The certificate has changed" in shown and "Trust the new certificate" in shown
        assert "Somebody may stand between you and the server." in shown and peer.requests() == []


@pytest.mark.requirement("U-M13")
async def test_m13_the_form_and_scripts_take_tls_and_nothing_unknown(client: Visitor, script: Visitor, tmp_path: Path):
    authority = make("Kontor CA", ca=True)
    async with raw_peer(tls=make(by=authority).files(tmp_path)) as peer:
        url = f"https://127.0.0.1:{peer.port}/mcp"
        form = {"transport": "http", "url": url, "tls_ca": authority.pem, "tls_fingerprint": ""}
        answer = await client.form("/s", form)
        assert answer.status == 303, answer.text[:500]
        path = answer.header("location") or ""
        assert (await state(script, path))["state"] == "ready"
        for tls, pointer in (
            ({"verify": False}, "/target/tls/verify"),
            ({"ca": "x"}, "/target/tls/ca"),
            ({"fingerprint": "x"}, "/target/tls/fingerprint"),
        ):
            refused = await script.post("/s", {"target": {"transport": "http", "url": url, "tls": tls}})
            assert refused.status == 422 and pointer in refused.error["fields"], refused.text
        wrong = await client.form("/s", {**form, "tls_ca": "", "tls_fingerprint": "x"})
        assert wrong.status == 422 and "64 hexadecimal digits" in wrong.text
        plain = await script.post(
            "/s", {"target": {"transport": "http", "url": peer.url(), "tls": {"ca": authority.pem}}}
        )
        assert plain.status == 422 and "has no TLS" in plain.text


# ---------------------------------------------------------------------------------------------- S4: a server that ends


@pytest.mark.requirement("U-S4")
async def test_s4_a_server_that_does_not_start_says_why_in_the_heading_and_the_first_start_is_folded(
    client: Visitor, script: Visitor, tmp_path: Path
):
    broken = tmp_path / "broken.py"
    broken.write_text("import pandas_is_not_there\n")
    path = await opened(script, StdioTarget(command=sys.executable, args=(str(broken),)))
    told = await script.json(path)
    error = told["connection"]["error"]
    line = "ModuleNotFoundError: No module named 'pandas_is_not_there'"
    assert error["heading"] == f"The server did not start: {line}"
    assert error["last_words"].count("Traceback") == 1 and error["last_words"].endswith(line)
    starts = {one["start"] for one in told["connection"]["steps"]}
    assert starts == {1, 2}
    shown = await page(client, path)
    assert "did not start" in shown and "connection lost" not in shown and ">never<" in shown.replace("\n", "")
    folded = shown.partition('<details class="fold3 first"')[2].partition("</details>")[0]
    assert "First start: ended in Parley's version check" in folded and "server/discover" in folded
    assert "spoke" not in shown, "it never spoke"
    lines = await script.json(f"{path}/stderr")
    assert 0 < lines["earlier_start"] == sum(one["earlier_start"] for one in lines["lines"]) < lines["count"]
    stderr = await page(client, f"{path}/stderr")
    assert f"{lines['earlier_start']} lines of the first start, which ended in Parley's version check" in stderr
    own = lines["count"] - lines["earlier_start"] - lines["by_probe"]
    assert f'id="n-stderr">{own}<' in stderr and stderr.partition('<ol class="stderr" id="stderr"')[2].count(line) == 1


@pytest.mark.requirement("U-S4")
async def test_s4_nobody_is_sent_to_a_stderr_that_is_empty(client: Visitor, script: Visitor):
    silent = {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", "-c", "raise SystemExit(3)"]}
    shown = await page(client, await opened(script, silent))
    assert "ended with code 3" in shown and "It wrote nothing to stderr. Connect again." in shown
    assert "Look at its stderr" not in shown


@pytest.mark.requirement("U-S4")
def test_s4_the_line_that_says_most_is_the_last_but_for_what_node_adds():
    node = "node:internal\n  throw err;\n  ^\n\nError: Cannot find module 'x'\n    at f (y.js)\n}\n\nNode.js v22.3.0\n"
    assert last_line(node) == "Error: Cannot find module 'x'"
    assert last_line("Traceback\nValueError: no\nSegmentation fault\n\n") == "Segmentation fault"
    assert last_line(" \n") == "" and len(last_line("x" * 1000)) == 200
    lost = Trouble("exit", "python ended with code 139.", last_words="Segmentation fault")
    assert ending(lost, started=True) == "python ended with code 139: Segmentation fault"
    killed = Trouble("exit", "python was ended by SIGKILL.", last_words="Listening on stdio", exit_code=-9)
    assert ending(killed, started=True) == "", "what it said when it began is no reason"
    assert ending(Trouble("exit", "python ended with code 1."), started=False) == "The server did not start"


@pytest.mark.requirement("U-S4")
async def test_s4_an_older_server_refuses_the_version_check_as_expected(client: Visitor, script: Visitor):
    path = await opened(script, raw_target())
    told = await script.json(path)
    assert told["counts"]["findings"] == 0
    texts = [one["text"] for one in told["connection"]["steps"]]
    assert any(one.startswith("older server, as expected") for one in texts), texts
    assert "2026-07-28 not supported (-32601). Trying 2025-11-25." in texts, texts
    shown = await page(client, path)
    assert '<li class="old">' in shown and "Connection log" in shown and "Raw JSON" in shown


# ------------------------------------------------------------------------------------------------- S12: after a crash


@pytest.mark.requirement("U-S12")
async def test_s12_every_page_says_why_and_reconnects_in_place(
    app: Starlette, client: Visitor, script: Visitor, tmp_path: Path
):
    moody = Moody(tmp_path)
    path = await opened(script, moody.target, era="legacy")
    session: Session = app.state.registry._sessions[path.rsplit("/", 1)[-1]]
    await until(session, lambda: session.tools.state == "ready")
    words = "loading\nconnecting to the database\nConfigError: no database\n"
    await script.post(f"{path}/calls", {"method": "x/stderr", "params": {"base64": _b64(words)}})
    await script.post(f"{path}/calls", {"method": "x/exit", "params": {"code": 3}})
    await until(session, lambda: session.info.state == "lost")
    await until(session, lambda: session.info.trouble is not None and session.info.trouble.last_words)
    for below in ("/tools", "/tools/echo", "/log", "/calls", "/stderr", "/roots", "/inbox", "/tasks"):
        shown = await page(client, path + below)
        notice = shown.partition('<div id="notice"')[2].partition('<div class="head">')[0]
        assert notice.startswith(" data-off>"), below
        assert "ended with code 3: ConfigError: no database" in notice, below
        assert "connecting to the database\nConfigError: no database</pre>" in notice, below
        assert 'hx-post="' in notice and ">Reconnect</button>" in notice
    answer = await client.form(f"{path}/connect", {"again": "1", "stay": "1"}, **HTMX)
    assert answer.status == 204, "the page stays where it is"
    assert (await state(script, path))["state"] == "ready"
    assert 'id="notice" data-off' not in await page(client, f"{path}/tools")


@pytest.mark.requirement("U-S12")
@pytest.mark.parametrize("htmx", [True, False])
async def test_s12_call_reconnects_and_calls_once(
    app: Starlette, client: Visitor, script: Visitor, tmp_path: Path, htmx: bool
):
    moody = Moody(tmp_path)
    path = await opened(script, moody.target, era="legacy")
    session: Session = app.state.registry._sessions[path.rsplit("/", 1)[-1]]
    await until(session, lambda: session.tools.state == "ready")
    await script.post(f"{path}/disconnect")
    shown = await page(client, f"{path}/tools/echo")
    assert "Reconnect and call" in shown
    form = {"_mode": "json", "_text": '{"message": "again"}'}
    answer = await client.form(f"{path}/tools/call/echo", form, **_as(htmx))
    assert answer.status == (204 if htmx else 303)
    assert session.info.number == 2 and session.info.state == "ready"
    (made,) = [one for one in session.calls.values() if one.method == "tools/call"]
    told = await script.json(f"{path}/calls/{made.id}?wait=30")
    assert told["state"] == "done" and told["result"]["content"][0]["text"] == "again"
    assert moody.received("tools/call") == 1


@pytest.mark.requirement("U-S12")
@pytest.mark.parametrize("htmx", [True, False])
async def test_s12_a_server_that_does_not_come_back_costs_nothing_that_was_typed(
    app: Starlette, client: Visitor, script: Visitor, tmp_path: Path, htmx: bool
):
    moody = Moody(tmp_path)
    path = await opened(script, moody.target, era="legacy")
    session: Session = app.state.registry._sessions[path.rsplit("/", 1)[-1]]
    await until(session, lambda: session.tools.state == "ready")
    await script.post(f"{path}/disconnect")
    moody.breaks("ConfigError: no database")
    form = {"_mode": "json", "_text": '{"message": "typed with care"}'}
    for _ in range(2):  # the tool is still known, and so is the form
        answer = await client.form(f"{path}/tools/call/echo", form, **_as(htmx))
        assert answer.status == (204 if htmx else 409), answer.text[:300]
        if not htmx:
            shown = html.unescape(answer.text)
            assert "typed with care" in shown and "The server did not start: ConfigError: no database" in shown
    assert session.info.state == "lost" and moody.received("tools/call") == 0
    assert not [one for one in session.calls.values() if one.method == "tools/call"]
    assert "Reconnect and call" in await page(client, f"{path}/tools/echo")
    moody.mends()
    await client.form(f"{path}/tools/call/echo", form, **_as(htmx))
    (made,) = [one for one in session.calls.values() if one.method == "tools/call"]
    assert (await script.json(f"{path}/calls/{made.id}?wait=30"))["state"] == "done"
    assert moody.received("tools/call") == 1


@pytest.mark.requirement("U-S12")
async def test_s12_a_script_is_told_and_reconnects_only_when_it_says_so(
    app: Starlette, script: Visitor, tmp_path: Path
):
    moody = Moody(tmp_path)
    path = await opened(script, moody.target, era="legacy")
    session: Session = app.state.registry._sessions[path.rsplit("/", 1)[-1]]
    await until(session, lambda: session.tools.state == "ready")
    await script.post(f"{path}/disconnect")
    refused = await script.form(f"{path}/tools/call/echo", {"_mode": "json", "_text": "{}"})
    assert refused.status == 409 and (await state(script, path))["number"] == 1
    sent = await script.form(f"{path}/tools/call/echo", {"_mode": "json", "_text": "{}", "_reconnect": "1"})
    assert sent.status == 202 and (await state(script, path))["number"] == 2
    plain = await script.post(f"{path}/disconnect")
    assert plain.status == 200
    assert (await script.post(f"{path}/calls", {"method": "tools/list"})).status == 409


def _as(htmx: bool) -> dict[str, str]:
    return HTMX if htmx else {}


def _b64(text: str) -> str:
    import base64

    return base64.b64encode(text.encode()).decode()
