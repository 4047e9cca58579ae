"""A sampling request that a person changes before it is used: what is read, what is marked, what stays."""

import json
from typing import Any

import pytest

from app.web.asks.sampling import drawn_from, edit_fields, edited, sampling_view

REQUEST: dict[str, Any] = {
    "systemPrompt": "You are kind.",
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "First\r\nline"}},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Yes?"},
                {"type": "tool_use", "id": "u", "name": "look", "input": {"at": 1}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "toolUseId": "u", "content": [{"type": "text", "text": "Nothing"}]}],
        },
        {
            "role": "user",
            "content": [
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            ],
        },
    ],
    "maxTokens": 100,
    "temperature": 0.5,
    "stopSequences": ["END"],
    "metadata": {"trace": "t-1"},
    "tools": [{"name": "look", "description": "Looks", "inputSchema": {"type": "object"}}],
    "toolChoice": {"mode": "auto"},
    "modelPreferences": {"hints": [{"name": "small"}], "speedPriority": 0.9},
    "includeContext": "none",
}


def typed(**changes: str) -> dict[str, str]:
    """What a browser submits when nobody touched anything but these; every line break comes back as \\n."""
    untouched = {one.name: one.text.replace("\r\n", "\n") for one in edit_fields(REQUEST)}
    return untouched | {f"edit-{name.replace('_', '-')}": text for name, text in changes.items()}


@pytest.mark.requirement("R3-02", "R3-05", "S001 request type")
def test_everything_in_a_request_is_in_view() -> None:
    view = sampling_view(REQUEST)
    assert [(turn.who, [kind for kind, _ in turn.blocks]) for turn in view.turns] == [
        ("user", ["text"]),
        ("assistant", ["text", "tool use"]),
        ("user", ["tool result"]),
        ("user", ["image", "audio"]),
    ]
    assert view.system is not None and view.system.text == "You are kind."
    told = {fact.label: fact.text for fact in view.facts}
    assert set(told) == {"Max tokens", "Temperature", "Stop at", "Context", "Metadata"}
    assert "t-1" in told["Metadata"]
    assert (view.hints, view.priorities) == (["small"], [("Speed", 0.9)])
    assert (view.tools, view.tool_choice) == ([("look", "Looks")], "auto")
    assert view.summary == "4 messages, 1 picture, 1 sound, 1 tool use, 1 result, 1 tool to use, at most 100 tokens"
    assert not view.edited and view.original == ""


@pytest.mark.requirement("R3-02")
def test_a_form_that_nobody_touched_changes_nothing() -> None:
    assert edited(REQUEST, typed()) == (REQUEST, {})
    assert edited(REQUEST, {}) == (REQUEST, {})


@pytest.mark.requirement("R3-02", "S001 modifications")
def test_what_was_typed_is_in_the_request_and_nothing_else() -> None:
    changes = {"system": "", "0_0": "Second", "1_0": "No", "maxTokens": "7", "temperature": "", "stop": "A\nB"}
    request, errors = edited(REQUEST, typed(**changes))
    assert errors == {}
    expected = json.loads(json.dumps(REQUEST))
    del expected["systemPrompt"], expected["temperature"]
    expected["messages"][0]["content"]["text"] = "Second"
    expected["messages"][1]["content"][0]["text"] = "No"
    expected |= {"maxTokens": 7, "stopSequences": ["A", "B"]}
    assert request == expected
    assert REQUEST["messages"][0]["content"]["text"] == "First\r\nline", "the original stays"


@pytest.mark.requirement("R3-02")
def test_json_that_was_changed_counts_before_the_fields() -> None:
    whole = {"messages": [], "maxTokens": 1}
    assert edited(REQUEST, typed(json=json.dumps(whole), system="ignored")) == (whole, {})
    request, errors = edited(REQUEST, typed(json="{"))
    assert request == REQUEST and set(errors) == {"/request"}


@pytest.mark.requirement("R3-02", "S001 modifications")
def test_a_form_that_is_older_than_an_edit_takes_nothing_back() -> None:
    now = {**REQUEST, "maxTokens": 7}
    old = {"edit-of": drawn_from(REQUEST)}
    assert edited(now, {**typed(), **old}, REQUEST) == (now, {}), "nobody touched it"
    request, errors = edited(now, {**typed(system="Be brief"), **old}, REQUEST)
    assert errors == {} and request == {**now, "systemPrompt": "Be brief"}, "what was typed counts, and nothing else"
    short = {**now, "messages": REQUEST["messages"][:1]}
    request, errors = edited(short, {**typed(**{"1_0": "No"}), **old}, REQUEST)
    assert set(errors) == {"/request"} and request == short, "there is no such message any more"
    older = {"edit-of": drawn_from({**REQUEST, "maxTokens": 9})}
    assert set(edited(now, {**typed(maxTokens="9"), **older}, REQUEST)[1]) == {"/request"}, "nobody knows from what"


@pytest.mark.requirement("R3-02")
@pytest.mark.parametrize("changes", [{"maxTokens": "many"}, {"maxTokens": ""}, {"temperature": "warm"}])
def test_what_cannot_be_read_is_said(changes: dict[str, str]) -> None:
    _, errors = edited(REQUEST, typed(**changes))
    assert set(errors) == {"/request"}


@pytest.mark.requirement("R3-02", "S001 modifications")
def test_what_was_changed_is_marked_with_what_stood_there() -> None:
    changed = {
        **REQUEST,
        "systemPrompt": "You are terse.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "Second"}}, *REQUEST["messages"][1:3]],
        "maxTokens": 7,
        "toolChoice": {"mode": "none"},
    }
    del changed["temperature"]
    view = sampling_view(REQUEST, changed)
    assert view.edited and json.loads(view.original) == REQUEST
    assert view.system is not None and (view.system.text, view.system.before) == ("You are terse.", "You are kind.")
    assert [turn.change for turn in view.turns] == ["edited", "", "", "removed"]
    assert view.turns[0].before == (("text", "First\r\nline"),)
    before = {fact.label: fact.before for fact in view.facts if fact.before is not None}
    assert set(before) == {"Max tokens", "Temperature", "Tool choice"}
    longer = {**REQUEST, "messages": [*REQUEST["messages"], {"role": "user", "content": {"type": "text", "text": "x"}}]}
    assert [turn.change for turn in sampling_view(REQUEST, longer).turns][-1] == "added"
