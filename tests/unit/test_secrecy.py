"""What is a secret, by one table: the functions that find and hide it, the store, the snippets and the log (H05)."""

import itertools
import json
import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import secrecy, secret_names
from app.core.calls import Call
from app.core.elicitation import secret_findings
from app.core.options import Options
from app.core.targets import HttpTarget, StdioTarget, typed_line
from app.export import snippets
from app.secrecy import MASK
from app.secret_names import sounds_secret
from app.store import FILE, Store
from app.web.connect.form import _pairs, _typed_pairs, _typed_texts
from app.web.connect.preview import preview
from app.web.kit.request_bodies import Body
from app.web.kit.words import target_json
from tests.secret_cases import CASES, Case, target_of

pytestmark = pytest.mark.requirement("H05")
CANARY = "can4ry"
EACH = pytest.mark.parametrize("case", CASES, ids=str)


def told(case: Case, text: str) -> bool:
    """Whether a place that shows a value does as the table says."""
    return (CANARY in text) is not case.secret


def on_disk(directory: Path) -> str:
    return "".join(file.read_bytes().decode(errors="replace") for file in directory.iterdir())


# ----------------------------------------------------------------------------------------------- one table, all readers


@EACH
def test_h05_a_label_and_the_json_show_all_but_the_secret(case: Case):
    target = target_of(case, CANARY)
    if case.place in ("args", "url"):
        assert told(case, target.label)
        assert told(case, json.dumps(target_json(target)))
        assert (MASK in target.label) is case.secret
    else:
        assert CANARY not in json.dumps(target_json(target)), "of variables and headers only the names are told"


@EACH
async def test_h05_the_disk_has_all_but_the_secret(case: Case, tmp_path: Path):
    store = Store(tmp_path)
    await store.open()
    options = Options(meta={"who": "me", "token": CANARY, "deep": [{"apiKey": CANARY}]})
    await store.save("me", target_of(case, CANARY), options, "")
    await store.close()
    assert told(case, on_disk(tmp_path))
    store = Store(tmp_path)
    await store.open()
    (kept,) = store.of("me")
    assert bool(kept.missing) is case.secret
    await store.close()


@EACH
def test_h05_a_snippet_reads_the_secret_from_the_environment(case: Case):
    target = target_of(case, CANARY)
    transport = "stdio" if isinstance(target, StdioTarget) else "http"
    wire = snippets.Wire(target, transport, "2025-11-25", False)
    call = Call("c1", "tools/list", None, 0, 0)
    texts = [snippets.as_python(call, wire)]
    compile(texts[0], "snippet", "exec")
    if isinstance(target, HttpTarget):
        texts.append(snippets.as_curl(call, wire))
    for text in texts:
        if case.place in ("args", "url"):
            assert told(case, text)
        else:
            assert CANARY not in text, "values of variables and headers all come from the environment"
        assert ("Secrets are left out" in text) is (case.secret or case.place in ("env", "header"))


@EACH
def test_h05_the_log_shows_all_but_the_secret(case: Case):
    texts = case.filled(CANARY)
    if case.place == "header":
        assert told(case, str(secrecy.masked_headers([(texts[0], texts[1])])))
        assert MASK in str(secrecy.masked_headers([(texts[0], texts[1])], {texts[0].upper()}))
    elif case.place == "url":
        assert told(case, secrecy.masked_url("https://h" + texts[0]))
        assert told(case, secrecy.masked_url(texts[0])), "as a server may name it, without its origin"
        assert told(case, str(secrecy.masked_headers([("Location", "https://h" + texts[0])])))


@EACH
def test_h05_what_is_shown_again_is_filled_in_again(case: Case):
    target = target_of(case, CANARY)
    argv = target.argv if isinstance(target, StdioTarget) else ()
    shown = secrecy.masked_arguments(argv)
    assert secrecy.masked_arguments(shown) == shown
    filled, _ = secrecy.filled(shown, secrecy.in_arguments(shown), argv, secrecy.in_arguments(argv))
    assert filled == argv
    assert secrecy.has_mask(shown, secrecy.in_arguments(shown)) is (case.secret and case.place == "args")
    if isinstance(target, HttpTarget):
        places = secrecy.in_url(target.url)
        shown = (target.shown_url,)
        assert secrecy.filled(shown, [secrecy.in_url(shown[0])], [target.url], [places])[0] == (target.url,)


@EACH
def test_h05_a_form_shows_what_was_typed_but_the_secret(case: Case):
    target = target_of(case, CANARY)
    if isinstance(target, StdioTarget):
        typed = {"command_line": typed_line(target.argv)}
        name, value = "env", target.env
    else:
        typed = {"url": target.url}
        name, value = "header", target.headers
    if case.place in ("args", "url"):
        shown = _typed_texts(typed, {"command_line": "", "url": ""})
        assert told(case, str(shown))
        assert (secrecy.AGAIN in str(shown)) is case.secret
    else:
        rows = {f"{name}_name": list(value), f"{name}_value": list(value.values()), f"{name}_secret": [""]}
        assert told(case, str(_typed_pairs(rows, name, [])))
        assert told(case, str(_pairs(target, name, ())))


@pytest.mark.parametrize("kind", ["env", "header"])
def test_h05_the_form_judges_a_name_while_it_is_typed(kind: str):
    words = "OAuth XApiKey APIKey apikey2 x__token__ Ünïcode_Key -key- a.b.secret PASS1 pass_through MAX_new_TOKENS"
    names = [case.texts[0] for case in CASES] + words.split()
    found = {name: preview(Body({"_preview": f"{kind}_name", f"{kind}_name": [name]}, is_form=True)) for name in names}
    where: secret_names.Where = "variable" if kind == "env" else "header"
    said = {name: one is not None and one.is_secret for name, one in found.items()}
    assert said == {name: secret_names.sounds_secret(name, where) for name in names}
    assert set(said.values()) == {True, False}


def test_h05_a_command_line_that_is_looked_at_does_not_give_its_secrets_back():
    line = f"server --api-key {CANARY} 'a b' ''"
    looked = preview(Body({"_preview": "command_line", "command_line": line}, is_form=True))
    assert looked is not None and looked.argv == ("server", "--api-key", secrecy.MASK, "a b", "")
    open_quote = preview(Body({"_preview": "command_line", "command_line": "a 'b"}, is_form=True))
    assert open_quote is not None and (open_quote.argv, open_quote.fault) == ((), "a quotation mark is still open")


def test_h05_what_is_sent_and_not_looked_at_is_no_preview():
    assert preview(Body({"command_line": "x"}, is_form=True)) is None
    assert preview(Body({"_preview": "command_line", "command_line": "x"}, is_form=False)) is None


# ---------------------------------------------------------------------------------------------------------- two secrets


def test_h05_two_secrets_of_one_name_keep_their_order():
    argv = ("x", "--token=one", "--token", "two", "https://a:b@c/?sig=three")
    shown = secrecy.masked_arguments(argv)
    assert shown == ("x", "--token=•••", "--token", "•••", "https://•••@c/?sig=•••")
    changed = ("x", "--token=new", "--token", "•••", "https://•••@c/?sig=•••", "--verbose")
    filled, _ = secrecy.filled(changed, secrecy.in_arguments(changed), argv, secrecy.in_arguments(argv))
    assert filled == ("x", "--token=new", "--token", "two", "https://a:b@c/?sig=three", "--verbose")
    wire = snippets.Wire(StdioTarget(command=argv[0], args=argv[1:], env={"SIG": "v"}), "stdio", "2025-11-25", False)
    text = snippets.as_python(Call("c1", "ping", None, 0, 0), wire)
    for name in ("TOKEN", "TOKEN_2", "URL_CREDENTIALS", "SIG_2"):
        assert f"os.environ['{name}']" in text
    assert not re.search("'one|two|three|a:b", text)


def test_h05_a_name_cannot_end_the_comment_of_a_snippet():
    target = HttpTarget(transport="http", url="http://h/?token%0Aimport%20os;%0A=x")
    text = snippets.as_python(Call("c1", "ping", None, 0, 0), snippets.Wire(target, "http", "2025-11-25", False))
    assert "\nimport os;" not in text


@given(st.lists(st.text(alphabet="-=:;&?#@/'\"{}$ aA1•keytoken\\\n", max_size=30), max_size=6).map(tuple))
def test_h05_masking_twice_changes_nothing_more(argv: tuple[str, ...]):
    shown = secrecy.masked_arguments(argv)
    for text, found in zip(argv, secrecy.in_arguments(argv), strict=True):
        assert all(0 <= one.start < one.end <= len(text) for one in found)
        assert all(before.end <= after.start for before, after in itertools.pairwise(found))
    assert secrecy.masked_arguments(shown) == shown
    secrecy.masked_url("".join(argv))
    secrecy.masked(" ".join(argv))


# -------------------------------------------------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    "name", ["password", "apiKey", "API key", "access_token", "token", "Card number", "cvv", "pin", "ssn", "privateKey"]
)
def test_h05_a_field_for_a_secret_is_known(name: str):
    assert sounds_secret(name, "field")
    form = {"message": "", "requestedSchema": {"properties": {name: {"type": "string"}}}}
    assert [one.id for one in secret_findings(form)] == ["R4-13"]


@pytest.mark.parametrize("name", ["key", "session", "page_token", "seat", "keyboard", "author", "pinned", "secretary"])
def test_h05_an_ordinary_argument_is_no_secret(name: str):
    assert not sounds_secret(name, "field")


# ---------------------------------------------------------------------------------------------- what was written before


async def test_h05_a_file_with_secrets_of_before_is_cleaned_when_it_is_opened(tmp_path: Path):
    store = Store(tmp_path)
    await store.open()
    kept = await store.save("me", StdioTarget(command="server", args=("--port", "1")), Options(), "It")
    other = await store.save("me", HttpTarget(transport="http", url="http://h/"), Options(), "Other")
    await store.close()
    file = sqlite3.connect(tmp_path / FILE)
    with file:
        file.execute("PRAGMA application_id = 0")  # as a Parley of before left it
        old = StdioTarget(command="server", args=("postgres://u:old-canary@h/db",), env={"DB_PASS": "old-canary"})
        name = "server --api-key=old-canary postgres://u:old-canary@h/db"
        update = "UPDATE targets SET target = ?, name = ? WHERE id = ?"
        file.execute(update, (old.model_dump_json(), name, kept.id))
        http = HttpTarget(transport="http", url="http://h/?sig=old-canary", headers={"X-Session": "old-canary"})
        file.execute(update, (http.model_dump_json(), "http://h/?sig=old-canary", other.id))
        file.execute("INSERT INTO targets VALUES ('gone', 'me', '', ?, '[]', '{}', 0)", ("deleted-canary" * 500,))
        file.commit()
        file.execute("DELETE FROM targets WHERE id = 'gone'")
    file.close()
    assert b"canary" in (tmp_path / FILE).read_bytes()
    store = Store(tmp_path)
    await store.open()
    opened = store.find("me", kept.id)
    assert opened is not None and opened.target == old, "this run still knows it"
    assert "canary" not in on_disk(tmp_path)
    await store.close()
    assert "canary" not in on_disk(tmp_path)
    store = Store(tmp_path)
    await store.open()
    opened, second = store.find("me", kept.id), store.find("me", other.id)
    assert opened is not None and second is not None
    assert opened.missing == ("DB_PASS", "the command line")
    assert opened.name == "server --api-key=••• postgres://•••@h/db"
    assert (second.missing, second.name) == (("X-Session", "the address"), "http://h/?sig=•••")
    await store.close()


def test_the_challenge_of_a_server_is_no_secret():
    """`WWW-Authenticate` says what a server wants; it is the first thing to look at when it refuses."""
    said = 'Bearer realm="mcp", resource_metadata="https://example.com/.well-known/oauth-protected-resource"'
    assert not secrecy.is_secret_header("WWW-Authenticate", said)
    assert secrecy.is_secret_header("Authorization", "Bearer abc")
