"""The nouns: what they accept, and which moves are legal."""

from itertools import product
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from app.core.calls import TERMINAL, Call, CallState
from app.core.connection import ConnectionInfo
from app.core.errors import Invalid, NotAllowed
from app.core.options import Options, Root
from app.core.targets import DemoTarget, HttpTarget, StdioTarget, Target, target_digest
from app.core.times import wire_time
from app.settings import Limits, Settings, local

STATES: tuple[CallState, ...] = ("running", "waiting", "done", "failed", "cancelled")


def new_call(state: CallState = "running", **more: Any) -> Call:
    return Call(id="c1", method="tools/call", params=None, started_at=100.0, started=10.0, state=state, **more)


@pytest.mark.parametrize(("first", "second"), list(product(STATES, STATES)))
def test_the_first_terminal_state_of_a_call_wins(first: CallState, second: CallState):
    call = new_call(first, deadline_at=5.0)
    moved = call.settle(second, at=103.0, now=12.5)
    assert moved is (first not in TERMINAL and second in TERMINAL)
    assert call.state == (second if moved else first)
    assert (call.ended_at, call.duration_ms, call.deadline_at) == (
        (103.0, 2_500.0, None) if moved else (None, None, 5.0)
    )
    assert call.settled is (call.state in TERMINAL)


@pytest.mark.parametrize(
    ("params", "subject"),
    [
        (None, "tools/call"),
        ({}, "tools/call"),
        ({"name": "echo"}, "echo"),
        ({"uri": "file:///x"}, "file:///x"),
        ({"name": 7, "uri": "u"}, "u"),
        ({"name": ["x"]}, "tools/call"),
    ],
)
def test_a_call_is_recognised_by_what_it_calls(params: Any, subject: str):
    call = new_call()
    call.params = params
    assert call.subject == subject


# --- roots ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R5-20")
@pytest.mark.parametrize(
    "uri", ["file:///", "file:///home/me/project", "file:///a%20b/c..d/.hidden/...", "file:///C:/Users/me", "file:///é"]
)
def test_a_root_is_an_absolute_file_uri(uri: str):
    assert Root(uri=uri).wire() == {"uri": uri}
    assert Root(uri=uri, name="x").wire() == {"uri": uri, "name": "x"}


@pytest.mark.requirement("R5-20")
@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/home/me",
        "file://host/share",
        "file:relative",
        "FILE:///x",
        "https://example.com/",
        "file:///a/../b",
        "file:///a/./b",
        "file:///a/..",
        "file:///%2e%2e/b",
        "file:///%2E%2e/b",
        "file:///a/.%2e/b",
        "file:///a/%2e/b",
        "file:///a%2f..%2fb",
        "file:///a\0b",
        "file:///a%00b",
        "file:///" + "x" * 5_000,
    ],
)
def test_a_root_that_leads_elsewhere_is_refused(uri: str):
    with pytest.raises(ValidationError):
        Root(uri=uri)


# --- targets ----------------------------------------------------------------------------------------------------------


def test_a_target_is_told_by_its_transport():
    adapter: TypeAdapter[Any] = TypeAdapter(Target)
    assert isinstance(adapter.validate_python({"transport": "stdio", "command": "x"}), StdioTarget)
    assert isinstance(adapter.validate_python({"transport": "demo"}), DemoTarget)
    assert isinstance(adapter.validate_python({"transport": "sse", "url": "http://x"}), HttpTarget)
    for wrong in ({}, {"transport": "ftp"}, {"transport": "demo", "command": "x"}, {"command": "x"}):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)


@pytest.mark.requirement("R5-71", "R5-72")
def test_the_label_shows_the_command_as_one_would_type_it():
    target = StdioTarget(command="my server", args=("--a", "b c", "", "it's", "$(x)"))
    assert target.label == "'my server' --a 'b c' '' 'it'\\''s' '$(x)'"


@pytest.mark.requirement("R5-71")
def test_the_digest_changes_with_everything_that_is_confirmed():
    base = {"command": "c", "args": ("a", "b"), "env": {"K": "v"}, "cwd": "/x"}
    changes: list[dict[str, Any]] = [
        {},
        {"command": "C"},
        {"args": ("ab",)},
        {"args": ("b", "a")},
        {"args": ("a", "b", "")},
        {"env": {"K": "w"}},
        {"env": {"L": "v"}},
        {"env": {}},
        {"cwd": None},
        {"cwd": "/x/"},
    ]
    digests = {target_digest(StdioTarget(**{**base, **change})) for change in changes}
    assert len(digests) == len(changes)
    two = [StdioTarget(command="c", env={"A": "1", "B": "2"}), StdioTarget(command="c", env={"B": "2", "A": "1"})]
    assert target_digest(two[0]) == target_digest(two[1]), "the order of names is no difference"


@pytest.mark.parametrize("url", ["ftp://x", "javascript:alert(1)", "//x", "", " http://x"])
def test_only_http_addresses_are_dialled(url: str):
    with pytest.raises(ValidationError):
        HttpTarget(transport="http", url=url)


# --- the rest ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S004 defaults")
def test_the_options_have_the_documented_keys_and_defaults():
    assert Options().model_dump() == {
        "era": "auto",
        "protocol_version": None,
        "sampling": True,
        "sampling_tools": True,
        "sampling_context": False,
        "elicitation_form": True,
        "elicitation_url": True,
        "roots": True,
        "ask_roots": False,
        "receiver_tasks": True,
        "receiver_task_ttl_ms": 60_000,
        "receiver_task_max_ttl_ms": 3_600_000,
        "poll_interval_ms": 2_000,
        "awaiting_user_status": "input_required",
        "send_status_notifications": True,
        "unattended_limit_ms": None,
        "handshake_timeout_ms": None,
        "request_timeout_ms": 60_000,
        "reset_timeout_on_progress": True,
        "max_total_timeout_ms": None,
        "log_level": None,
        "meta": {},
        "extensions": {},
    }


@pytest.mark.requirement("R5-04")
@pytest.mark.parametrize(
    ("capabilities", "offered"),
    [({"tools": {}}, True), ({"tools": None}, False), ({}, False), ([], False), (None, False)],
)
def test_a_capability_is_offered_when_it_is_an_object(capabilities: Any, offered: bool):
    assert ConnectionInfo(server_capabilities=capabilities).offers("tools") is offered


def test_refusals_carry_their_fields():
    assert Invalid("no", {"/a": ["why"]}).fields == {"/a": ["why"]}
    assert str(NotAllowed("no")) == NotAllowed("no").message == "no"


def test_times_on_the_wire_are_utc_with_milliseconds():
    assert wire_time(0.25) == "1970-01-01T00:00:00.250Z"
    assert wire_time(1_700_000_000) == "2023-11-14T22:13:20.000Z"


def test_settings_are_strict_frozen_and_keep_their_secret():
    settings = local(token="x" * 20)
    assert "x" * 20 not in repr(settings) and "token" not in settings.model_dump()
    with pytest.raises(ValidationError):
        local(unknown=1)
    with pytest.raises(ValidationError):
        Settings(token="short")
    with pytest.raises(ValidationError):
        settings.port = 1  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Limits(message_bytes=0)
