"""What people type and paste as they are used to: lines for a shell, addresses without a scheme, JSON with comments."""

import json
import time

import pytest

from app.core import placeholders, shell
from app.core.json import jsonc
from app.core.json.text import parse
from app.core.targets import HttpTarget, StdioTarget, typed_line
from app.web.kit import format, typed

pytestmark = pytest.mark.requirement("U-M13")
KNOWN = {"HOME": "/home/me", "USER": "me"}


@pytest.mark.parametrize(
    ("line", "cwd", "env", "command"),
    [
        ("cd ~/code && python3 crm.py", "/home/me/code", (), "python3 crm.py"),
        ("cd 'my code'; python3 crm.py", "my code", (), "python3 crm.py"),
        ("DB=x.db DEBUG=1 crm --a", "", (("DB", "x.db"), ("DEBUG", "1")), "crm --a"),
        ("cd a && DB='x y' crm", "a", (("DB", "x y"),), "crm"),
        ("export DB=1 && crm", "", (("DB", "1"),), "crm"),
        ("env DB=1 crm", "", (("DB", "1"),), "crm"),
        ("crm ~/data $USER", "", (), "crm /home/me/data me"),
        ('crm "$HOME/a b"', "", (), "crm '/home/me/a b'"),
        ("crm ${HOME}/x", "", (), "crm /home/me/x"),
        ("cat a | crm", "", (), "sh -c 'cat a | crm'"),
        ("crm 2> err.log", "", (), "sh -c 'crm 2> err.log'"),
        ("crm $(pwd)", "", (), "sh -c 'crm $(pwd)'"),
        ("crm &", "", (), "crm"),
    ],
)
def test_a_line_for_a_shell_is_turned_into_one_without(
    line: str, cwd: str, env: tuple[tuple[str, str], ...], command: str
):
    offer = shell.offer(line, "/home/me", KNOWN)
    assert offer is not None
    assert (offer.cwd, offer.env, offer.command_line) == (cwd, env, command)
    assert shell.offer(offer.command_line, "/home/me", KNOWN) is None, "what is offered needs no shell"


@pytest.mark.parametrize(
    "line",
    [
        "python3 crm.py --url http://h/?a=1&b=2",
        "crm 'a && b' \"c | d\" \\~ '$HOME'",
        "crm a|b x=1 --k=~",
        "crm 'unclosed",
        "",
        "x" * 9000 + " && y",
    ],
)
def test_a_plain_line_is_left_alone(line: str):
    assert shell.offer(line, "/home/me", KNOWN) is None


def test_what_nobody_knows_is_not_offered():
    offer = shell.offer("crm --key $API_KEY", "/home/me", KNOWN)
    assert offer is not None
    assert (offer.command, offer.unknown) == ((), ("API_KEY",))
    assert "Type the value of $API_KEY" in typed.shell_words(offer)
    alone = shell.offer("cd python3 crm.py", "/home/me", KNOWN)
    assert alone is not None
    assert "Type the command alone" in typed.shell_words(alone)


def test_a_variable_is_replaced_once_and_only_where_a_shell_would():
    known = {"A": "$B", "B": "x", "AB": "y"}
    for line, command in (
        ("cmd $A$B$AB${A}B", ("cmd", "$Bxy$BB")),
        ("cmd \\$A$A", ("cmd", "$A$B")),
        ("cmd $A'$A'", ("cmd", "$B$A")),
    ):
        found = shell.offer(line, "/home/me", known)
        assert found is not None and found.command == command


def test_what_a_variable_or_directory_names_must_be_known_too():
    for line in ("A=$NOBODY cmd", "cd $NOBODY && cmd", "A=$NOBODY cmd | cat"):
        found = shell.offer(line, "/home/me", KNOWN)
        assert found is not None and (found.unknown, found.command) == (("NOBODY",), ())


@pytest.mark.requirement("S36")
def test_a_line_that_would_become_longer_than_any_command_is_not_written_out():
    many = {f"V{at}": "x" * 100_000 for at in range(1200)}
    for line in ("cmd " + " ".join(f"${name}" for name in many), "cmd " + "".join(f"${name}" for name in many)):
        found = shell.offer(line, "/home/me", many)
        assert found is not None and found.command == () and found.env == ()
    found = shell.offer("cmd " + "~ " * 2000, "/h" * 5000, {})
    assert found is not None and found.command == ()


def test_a_secret_in_a_line_is_not_said_again():
    offer = shell.offer("cd /a && crm --token canary", "/home/me", KNOWN)
    assert offer is not None
    assert typed.shell_words(offer).endswith("Working directory /a, command crm --token •••?")


def test_arguments_that_a_shell_would_take_are_typed_in_quotes():
    argv = ("crm", "|", "~", "~/x", ";", "a|b")
    assert typed_line(argv) == "crm '|' '~' '~/x' ';' a|b"
    assert shell.offer(typed_line(argv), "/home/me", KNOWN) is None


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:6310/mcp", "http://127.0.0.1:6310/mcp"),
        ("localhost/mcp", "http://localhost/mcp"),
        ("[::1]:80/mcp", "http://[::1]:80/mcp"),
        ("desk:8000", "http://desk:8000"),
        ("mcp.example.com/mcp", "https://mcp.example.com/mcp"),
        ("mcp.example.com:443/mcp", "https://mcp.example.com:443/mcp"),
        ("mcp.example.com:8080/mcp", "http://mcp.example.com:8080/mcp"),
        ("https://h/", "https://h/"),
        ("ftp://h/", "ftp://h/"),
        ("mailto:me", "mailto:me"),
        ("no host/x", "no host/x"),
        ("", ""),
    ],
)
def test_an_address_gets_its_scheme(text: str, url: str):
    assert typed.with_scheme(text) == url


def test_the_own_directory_may_be_written_with_a_tilde(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert [typed.directory(one) for one in ("~", "~/x", "/x", "", "~you/x")] == [
        "/home/me",
        "/home/me/x",
        "/x",
        None,
        "~you/x",
    ]


# --------------------------------------------------------------------------------------------------------------- JSON

COMMENTED = """{ // mine
  "a": [1, 2, /* not
  3 */ ],
  "b": "// no comment, /* none */",
  "c": {"d": 1,},
}"""


def test_comments_and_last_commas_are_read():
    assert json.loads(jsonc.plain(COMMENTED)) == {"a": [1, 2], "b": "// no comment, /* none */", "c": {"d": 1}}


@pytest.mark.parametrize("text", ["[,]", '{"a":,}', "[1,,]", '{"a": 1 /* }', '["a', "{,}"])
def test_what_is_wrong_stays_wrong_and_where_it_is(text: str):
    assert jsonc.plain(text) == text
    assert parse(text.encode(), strict=True).problem is not None


@pytest.mark.parametrize("sign", ["/* ", "/", "//", '"/*', "/*\n", "*/ /*"])
def test_comments_without_an_end_take_time_by_their_length(sign: str):
    began = time.process_time()
    jsonc.plain(sign * (200_000 // len(sign)))
    assert time.process_time() - began < 2


def test_every_place_stays():
    plain = jsonc.plain(COMMENTED)
    assert [len(line) for line in plain.split("\n")] == [len(line) for line in COMMENTED.split("\n")]
    fault = parse(jsonc.plain('{ /* é */\n "a": }').encode(), strict=True).fault
    assert fault is not None
    assert (fault.line, fault.column) == (2, 7)


# -------------------------------------------------------------------------------------------------------- placeholders


def test_placeholders_are_found_named_and_guessed():
    target = StdioTarget(
        command="${env:HOME}/crm",
        args=("${workspaceFolder}", "${TEAM:-blue}", "$plain", "${input:tenant}"),
        env={"API_KEY": "${input:key}", "X": "${workspaceFolder}"},
    )
    found = placeholders.blanks(target, "/work", "/home/me", KNOWN)
    assert [(one.name, one.likely, one.secret) for one in found] == [
        ("HOME", "/home/me", False),
        ("workspaceFolder", "/work", False),
        ("TEAM", "blue", False),
        ("tenant", "", False),
        ("key", "", True),
    ]
    filled = placeholders.filled(target, {"${input:key}": "k", "${workspaceFolder}": "/w", "${env:HOME}": "/h"})
    assert (filled["command"], filled["args"][0], filled["env"]) == ("/h/crm", "/w", {"API_KEY": "k", "X": "/w"})
    assert filled["args"][1] == "${TEAM:-blue}", "what nobody filled in stands"
    http = HttpTarget(transport="http", url="http://h/${x}", headers={"X-Tenant": "${input:tenant}"})
    assert [one.name for one in placeholders.blanks(http, "", "", {})] == ["x", "tenant"]


# ---------------------------------------------------------------------------------------------------------------- days


@pytest.mark.requirement("U-S3")
def test_last_seen_in_the_words_of_people(monkeypatch: pytest.MonkeyPatch):
    import time
    from datetime import datetime

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        now = datetime(2026, 11, 17, 12, 0).timestamp()  # noqa: DTZ001 (the clock of this machine is what is meant)
        said = {
            "just now": now - 20,
            "12 min ago": now - 12 * 60,
            "3 h ago": now - 3 * 3600,
            "yesterday": now - 13 * 3600,
            "Friday": now - 4 * 86400,
            "3 Nov": now - 14 * 86400,
            "17 Nov 2025": now - 365 * 86400,
        }
        assert {format.day(at, now) for at in said.values()} == set(said)
        assert [format.day(at, now) for at in said.values()] == list(said)
    finally:
        monkeypatch.undo()
        time.tzset()
