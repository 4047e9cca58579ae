"""What error -32042 wants opened, and forms that seem to ask for a secret: judged by their words alone."""

from typing import Any

import pytest

from app.core.calls import CallError
from app.core.elicitation import secret_findings
from app.core.links import read, required_links
from app.web.calls.card import links_json

GOOD = {"mode": "url", "elicitationId": "e1", "url": "https://sign.example.test/in", "message": "Sign in"}


def required(data: Any, code: int = -32042) -> tuple[list[str], list[tuple[str, str]]]:
    links, findings = required_links(CallError(code, "URL elicitation required", data))
    return [link.url for link in links], [(one.id, one.level) for one in findings]


@pytest.mark.requirement("R4-48")
def test_the_links_of_an_error_are_read_and_what_is_none_is_a_finding() -> None:
    other = {**GOOD, "elicitationId": "e2", "url": "javascript:alert(1)"}
    assert required({"elicitations": [GOOD, other]}) == ([GOOD["url"], other["url"]], [])
    assert required({"elicitations": [GOOD]}, code=-32603) == ([], [])
    must = ("R4-48", "must")
    empty: list[Any] = [None, {}, [], "e", {"elicitations": []}, {"elicitations": {}}, {"elicitations": "https://x"}]
    for nothing in empty:
        assert required(nothing) == ([], [must]), nothing
    for missing in ("mode", "elicitationId", "url"):
        broken = {key: value for key, value in GOOD.items() if key != missing}
        assert required({"elicitations": [broken, GOOD]}) == ([GOOD["url"]], [must]), missing
    wrong: list[Any] = [None, "https://x", {**GOOD, "url": 7}, {**GOOD, "mode": "form"}, {**GOOD, "elicitationId": 1}]
    for entry in wrong:
        assert required({"elicitations": [entry]}) == ([], [must]), entry
    silent = {key: value for key, value in GOOD.items() if key != "message"}
    assert required({"elicitations": [silent]}) == ([GOOD["url"]], [must])
    many = [{**GOOD, "elicitationId": f"e{n}"} for n in range(1000)]
    links, findings = required({"elicitations": many})
    assert (len(links), findings) == (20, [("R4-48", "note")])


@pytest.mark.requirement("R4-48", "R4-43", "R4-44")
def test_each_link_says_whether_it_opens_and_what_to_beware_of() -> None:
    entries = [GOOD, {**GOOD, "url": "javascript:alert(1)"}, {**GOOD, "url": "http://xn--80ak6aa92e.test:8080/"}]
    links, _ = required_links(CallError(-32042, "", {"elicitations": entries}))
    told = links_json(links)
    assert [one["opens"] for one in told] == [True, False, True]
    assert [[finding["id"] for finding in one["findings"]] for one in told] == [[], ["R4-44"], ["R4-43"] * 3]


def form(message: str, **fields: Any) -> dict[str, Any]:
    return {"message": message, "requestedSchema": {"type": "object", "properties": fields}}


TEXT = {"type": "string"}


@pytest.mark.requirement("R4-13")
@pytest.mark.parametrize(
    "params",
    [
        form("Sign in", password=TEXT),
        form("Sign in", userPassword=TEXT),
        form("Sign in", passwd=TEXT),
        form("Connect", apiKey=TEXT),
        form("Connect", api_key=TEXT),
        form("Connect", accessToken=TEXT),
        form("Connect", x={"type": "string", "title": "API key"}),
        form("Pay", card={"type": "string", "title": "Card number"}),
        form("Pay", cvv={"type": "integer"}),
        form("Pay", pin={"type": "integer", "title": "PIN"}),
        form("Identify", x={"type": "string", "description": "Your social security number"}),
        form("What is your password?", value=TEXT),
        form("Never mind the rest. Enter your PIN:", value=TEXT),
        form("Do not write your name. Then type the secret below.", value=TEXT),
        form("Choose", colour={"type": "string", "enum": ["red"]}, token=TEXT),
        form("Do not give us your PIN", pin=TEXT),
    ],
)
def test_a_form_that_asks_for_a_secret_is_remarked(params: dict[str, Any]) -> None:
    assert [(one.id, one.level) for one in secret_findings(params)] == [("R4-13", "must")]


@pytest.mark.requirement("R4-13")
@pytest.mark.parametrize(
    "params",
    [
        form("Do not give us your PIN.", name=TEXT),
        form("Don't type a password here", name=TEXT),
        form("We will never ask for your password. What is your name?", name=TEXT),
        form("A token is not needed for this.", name=TEXT),
        form("Your credit card is never asked for", name=TEXT),
        form("Choose a place instead of typing a password", name=TEXT),
        form("Name", name={"type": "string", "description": "Without your PIN, please only the name."}),
        form("Which password rule?", rule={"type": "string", "enum": ["short", "long"]}),
        form("Enter your password on the next page", agree={"type": "boolean"}),
        form("Pin the note?", pin={"type": "boolean"}),
        form("How long?", maxTokens={"type": "integer", "title": "Max tokens"}),
        form("Where to?", passport={"type": "string", "title": "Passport country"}, compass=TEXT),
        form("Nothing to fill in, not even a password"),
        {"message": "password", "requestedSchema": {"type": "object"}},
        {"message": "password", "requestedSchema": {"type": "object", "properties": "odd"}},
    ],
)
def test_words_that_only_speak_of_a_secret_are_not(params: dict[str, Any]) -> None:
    assert secret_findings(params) == []


@pytest.mark.requirement("H01")
@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST", "app.localhost", "127.0.0.1", "127.9.9.9", "0.0.0.0", "[::1]", "[::]"],
)
def test_h01_a_link_to_the_own_machine_is_known(host: str):
    link = read(f"http://{host}:8080/x")
    assert link is not None and link.loopback


@pytest.mark.requirement("H01", "H07")
@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0", "[::ffff:127.0.0.1]"),
        *("[0:0:0:0:0:0:0:1]", "localhost."),
    ],
)
def test_h01_no_other_spelling_of_the_own_machine_passes_for_another_host(host: str):
    link = read(f"http://{host}/")
    assert link is None or link.loopback


@pytest.mark.requirement("H01")
@pytest.mark.parametrize(
    "host", ["example.org", "localhost.example.org", "notlocalhost", "127.0.0.1.example.org", "128.0.0.1", "10.0.0.1"]
)
def test_h01_other_hosts_are_others(host: str):
    link = read(f"https://{host}/")
    assert link is None or not link.loopback
