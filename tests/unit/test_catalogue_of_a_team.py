"""The catalogue of a team: what an admin may write, what a person may fill in, and what nobody may start."""

import json
from typing import Any

import pytest

from app import team_bounds as bounds
from app.core.catalogue import (
    ROLES,
    Catalogue,
    CatalogueFault,
    Entry,
    Role,
    Variable,
    merged,
    read_allowed,
    read_entries,
    refused_variable,
)
from app.core.errors import Invalid
from app.core.targets import DemoTarget, HttpTarget, StdioTarget

pytestmark = pytest.mark.requirement("T03")


def runner(**more: Any) -> Entry:
    variables = (Variable(name="REGION", values=("north", "south")), Variable(name="NOTE", required=False, secret=True))
    fields = {"id": "runner", "name": "Release runner", "transport": "stdio", "command": "/opt/runner", "args": ("-x",)}
    return Entry.model_validate({**fields, "variables": variables, **more})


def wiki(**more: Any) -> Entry:
    fields = {"id": "wiki", "name": "Wiki", "transport": "http", "url": "http://wiki.internal:8080/mcp"}
    return Entry.model_validate({**fields, "roles": ROLES, **more})


BOTH = Catalogue((runner(), wiki(), Entry(id="demo", name="Demo", transport="demo", roles=("admin",))))


# ------------------------------------------------------------------------------------------------------- what is taken


@pytest.mark.requirement("S28")
@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "path", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "HOME"),
        *("BASH_ENV", "ENV", "IFS", "PERL5LIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GIT_SSH_COMMAND"),
        *("HTTP_PROXY", "https_proxy", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "PARLEY_TOKEN", "npm_config_x"),
        *("STARTED_BY_PARLEY", "OPENSSL_CONF", "SSL_CERT_FILE", "XDG_CONFIG_HOME", "TMPDIR", "GCONV_PATH"),
        *("", "A=B", "A B", "1A", "A-B", "A\0", "Ä", "A\n", "A" * 200),
    ],
)
def test_no_variable_changes_which_code_runs(name: str):
    assert refused_variable(name)
    with pytest.raises(ValueError):
        runner(variables=(Variable(name=name),) if name else (Variable.model_construct(name=name),))


@pytest.mark.parametrize("name", ["REGION", "release_token", "_X", "API_KEY", "A1"])
def test_an_ordinary_name_is_one(name: str):
    assert refused_variable(name) == ""


@pytest.mark.requirement("S28")
def test_an_admin_may_fix_more_but_not_what_puts_the_walls_up():
    assert runner(env={"PYTHONPATH": "/opt/lib", "NODE_OPTIONS": "--x"}).env["PYTHONPATH"] == "/opt/lib"
    for name in ("LD_PRELOAD", "PATH", "HOME", "PARLEY_TOKEN", "GLIBC_TUNABLES"):
        with pytest.raises(ValueError, match=name):
            runner(env={name: "x"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": "../x"}, "an id has small letters"),
        ({"id": "Runner"}, "an id has small letters"),
        ({"name": " x "}, "one line"),
        ({"command": ""}, "needs a command"),
        ({"command": "a\0b"}, "NUL"),
        ({"url": "https://x.example/"}, "no other one has"),
        ({"cwd": "relative"}, "absolute"),
        ({"reads": ("/opt/../root",)}, "without .."),
        ({"path": "/usr/bin:bin"}, "absolute"),
        ({"transport": "http", "command": "", "args": (), "variables": ()}, "stdio only"),
        ({"variables": (Variable(name="A"), Variable(name="a"))}, "twice"),
        ({"variables": (Variable(name="A"),), "env": {"A": "1"}}, "twice"),
        ({"memory_mib": 1}, "greater than or equal to 16"),
        ({"surprise": 1}, "Extra inputs"),
    ],
)
def test_what_cannot_be_is_said(change: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=words):
        runner(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"url": "ftp://x/"},
        {"url": ""},
        {"variables": (Variable(name="Host"),)},
        {"variables": (Variable(name="X-Key", file="/run/secrets/key"),)},
    ],
)
def test_an_address_and_its_headers_are_looked_at_when_they_are_written(change: dict[str, Any]):
    with pytest.raises((ValueError, Invalid)):
        wiki(**change)


# ----------------------------------------------------------------------------------------------------- what is started


@pytest.mark.requirement("S27")
@pytest.mark.parametrize("value", ["; rm -rf /", "$(x)", "a\nb", "`x`", "--flag", "x" * bounds.VARIABLE_VALUE, "ü"])
def test_a_value_is_passed_literally_and_never_as_an_argument(value: str):
    target = runner().target({"REGION": "north", "NOTE": value})
    assert isinstance(target, StdioTarget)
    assert (target.env["NOTE"], target.args, target.command) == (value, (), "catalogue:runner")
    assert BOTH.started_by(target) == runner()


@pytest.mark.requirement("S27")
@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"REGION": "east"}, "REGION"),
        ({}, "REGION"),
        ({"REGION": ""}, "REGION"),
        ({"REGION": "north", "NOTE": "a\0b"}, "NOTE"),
        ({"REGION": "north", "NOTE": "x" * 1_000_000}, "NOTE"),
        ({"REGION": "north", "NOTE": "\ud800"}, ""),
        ({"REGION": "north", "OTHER": "x"}, "OTHER"),
        ({"REGION": "north", "LD_PRELOAD": "/x.so"}, "LD_PRELOAD"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_at_its_place(given: dict[str, str], at: str):
    with pytest.raises(Invalid) as fault:
        runner().target(given)
    assert set(fault.value.fields) == {f"/variables/{at}".rstrip("/")}


def test_a_secret_that_an_admin_keeps_in_a_file_is_not_asked_for():
    entry = runner(variables=(Variable(name="TOKEN", secret=True, file="/run/secrets/token"),))
    assert entry.wanted == ()
    assert entry.target({}).model_dump()["env"] == {}
    with pytest.raises(Invalid):
        entry.target({"TOKEN": "mine"})


@pytest.mark.parametrize(
    "target",
    [
        StdioTarget(command="sh"),
        StdioTarget(command="/opt/runner", args=("-x",)),
        StdioTarget(command="catalogue:runner", args=("-x",), env={"REGION": "north"}),
        StdioTarget(command="catalogue:runner", cwd="/", env={"REGION": "north"}),
        StdioTarget(command="catalogue:runner"),
        StdioTarget(command="catalogue:runner", env={"REGION": "north", "PATH": "/evil"}),
        StdioTarget(command="catalogue:runner", env={"REGION": "north", "LD_PRELOAD": "/evil.so"}),
        StdioTarget(command="catalogue:../runner", env={"REGION": "north"}),
        StdioTarget(command="catalogue:none", env={}),
        StdioTarget(command="catalogue:wiki", env={}),
        StdioTarget(command="catalogue:", env={}),
        StdioTarget(command=" catalogue:runner", env={"REGION": "north"}),
        StdioTarget(command="xcatalogue:runner", env={"REGION": "north"}),
    ],
    ids=lambda target: json.dumps([target.command, *target.env]),
)
def test_nothing_is_started_but_what_the_catalogue_has(target: StdioTarget):
    assert all(BOTH.refusal(role, target) for role in ROLES)
    assert BOTH.started_by(target) is None


def test_what_somebody_may_not_use_is_as_unknown_as_what_never_was():
    target = StdioTarget(command="catalogue:runner", env={"REGION": "north"})
    assert target == runner().target({"REGION": "north"})
    assert [role for role in ROLES if BOTH.refusal(role, target) is None] == ["user", "admin"]
    assert BOTH.find("viewer", "runner") is None
    assert [one.id for one in BOTH.visible("user")] == ["runner", "wiki"]
    assert BOTH.refusal("user", DemoTarget()) is not None
    assert BOTH.refusal("admin", DemoTarget()) is None
    off = Catalogue((runner(enabled=False),))
    assert (off.find("admin", "runner"), off.started_by(target)) == (None, None)
    assert off.refusal("admin", target) == BOTH.refusal("viewer", target)


# ------------------------------------------------------------------------------------------------------ what is dialled


def http(url: str) -> HttpTarget:
    return HttpTarget(transport="http", url=url)


@pytest.mark.parametrize(
    ("url", "role", "allowed"),
    [
        ("http://wiki.internal:8080/mcp", "viewer", True),
        ("http://wiki.internal:8080/admin", "viewer", False),
        ("http://WIKI.internal.:8080/admin", "admin", False),
        ("http://wiki.internal/mcp", "viewer", True),  # another port: whether it is public is found out by dialling
        ("https://public.example/mcp", "user", True),
        ("http://intern.example:1234/x", "user", True),
    ],
)
def test_a_host_of_the_catalogue_is_dialled_as_the_catalogue_has_it(url: str, role: Role, allowed: bool):
    catalogue = Catalogue(BOTH.entries, frozenset({("intern.example", 1234)}))
    assert (catalogue.refusal(role, http(url)) is None) is allowed


def test_only_what_was_allowed_or_listed_may_lead_inwards():
    catalogue = Catalogue((wiki(), wiki(id="off", enabled=False, url="http://off.internal/")), {("a.internal", 443)})
    assert catalogue.dialled() == {("wiki.internal", 8080), ("a.internal", 443)}


def test_addresses_of_ones_own_can_be_switched_off():
    closed = Catalogue(BOTH.entries, free_http=False)
    assert "switched off" in (closed.refusal("admin", http("https://public.example/")) or "")
    assert closed.refusal("viewer", http("http://wiki.internal:8080/mcp")) is None


@pytest.mark.parametrize(
    ("text", "pair"),
    [("wiki.internal:443", ("wiki.internal", 443)), ("WIKI.:80", ("wiki", 80)), ("[::1]:9000", ("::1", 9000))],
)
def test_the_allow_list_has_names_with_ports(text: str, pair: tuple[str, int]):
    assert read_allowed(text) == pair


@pytest.mark.parametrize("text", ["wiki.internal", "wiki:0", "wiki:70000", "*:443", "http://x:80", ":80", "a b:80", ""])
def test_a_name_without_a_port_allows_nothing(text: str):
    with pytest.raises(ValueError, match=r"wiki\.internal:443"):
        read_allowed(text)


# ------------------------------------------------------------------------------------------------------------- the file


def test_a_file_lists_entries_by_their_ids():
    tables = {"runner": {"transport": "stdio", "command": "/opt/r"}, "w": {"transport": "sse", "url": "https://w/"}}
    assert [(one.id, one.name, one.roles) for one in read_entries(tables)] == [
        ("runner", "runner", ("user", "admin")),
        ("w", "w", ("user", "admin")),
    ]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"x": 1}, "catalogue.x must be a table, like: [catalogue.weather]"),
        ({"x": {"transport": "stdio"}}, "catalogue.x: a server over stdio needs a command"),
        ({"x": {"transport": "stdio", "command": "a", "comand": "b"}}, "there is no setting catalogue.x.comand"),
        ({"X": {"transport": "demo"}}, "catalogue.X.id: an id has small letters, digits and dashes"),
    ],
)
def test_a_file_that_cannot_be_says_where(tables: dict[str, Any], words: str):
    with pytest.raises(CatalogueFault) as fault:
        read_entries(tables)
    assert str(fault.value) == words


def test_the_file_comes_before_the_page():
    file, page = runner(name="Of the file"), runner(name="Of the page")
    assert merged([file], [page, wiki()]) == (file, wiki())
