"""Answer rules as data: what one matches, what it says, and what is no rule."""

import fnmatch
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.core import answer_rules
from app.core.answer_rules import Rule
from app.core.asks import Answer, AnsweredBy, Ask, elicited, failure, kind_of_ask, sampled
from app.core.errors import Invalid
from app.core.globs import matches

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "city": {"type": "string", "default": "Bergen"}},
    "required": ["name"],
}
FORM = {"message": "Who is travelling?", "requestedSchema": SCHEMA}
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "Write a caption"}}], "maxTokens": 50}
LINK = {"mode": "url", "message": "Sign in", "url": "https://example.test/", "elicitationId": "e"}


async def nowhere(*_: Any) -> Any:
    raise AssertionError("nothing is sent here")


def ask(params: dict[str, Any] = FORM, method: str = "elicitation/create", **more: Any) -> Ask:
    kind = kind_of_ask(method, params)
    given = {"origin": "request", "asked_at": 0.0, "message_seq": None, "connection": 1, **more}
    return Ask(id="a1", kind=kind, method=method, params=params, deliver=nowhere, **given)


def sampling() -> Ask:
    return ask(SAMPLING, "sampling/createMessage")


def rule(do: dict[str, Any] | None = None, **when: Any) -> Rule:
    return Rule.model_validate({"name": "one", "when": when, "do": do or {"action": "decline"}})


def misses(one: Rule, asked: Ask, server: str = "desk", tool: str = "plan") -> str:
    return answer_rules.misses(one, asked, server=server, tool=tool)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("desk", "Desk", True),
        ("desk", "desk 2", False),
        ("desk*", "desk 2", True),
        ("*", "", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("ab*ba", "aba", False),
        ("*aa*aa*", "aaa", False),
        ("**", "x", True),
    ],
)
def test_a_word_is_the_whole_text_and_a_star_is_anything(pattern: str, text: str, fits: bool):
    assert matches(pattern, text) is fits


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_a_glob_means_what_globs_mean(pattern: str, text: str):
    if "*" in pattern:
        assert matches(pattern, text) == fnmatch.fnmatchcase(text, pattern)


def test_the_words_of_a_server_are_looked_for_within_its_message():
    assert misses(rule(message="TRAVELLING"), ask()) == ""
    assert misses(rule(message="Who*?"), ask()) == ""
    assert misses(rule(message="who*!"), ask()) == "other words"
    assert misses(rule({"action": "respond", "text": "x"}, message="caption"), sampling()) == ""


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ({"server": "des*"}, ""),
        ({"server": "other"}, "another server"),
        ({"tool": "plan"}, ""),
        ({"tool": "book"}, "another tool"),
        ({"origin": "request"}, ""),
        ({"origin": "receiver-task"}, "came as request"),
        ({"kind": "form"}, ""),
        ({"fields": ["name", "ci*"]}, ""),
        ({"fields": ["name", "age"]}, "no field age"),
    ],
)
def test_everything_that_is_said_has_to_fit(when: dict[str, Any], why: str):
    assert misses(rule(**when), ask()) == why


def test_a_link_is_never_answered_by_a_rule():
    assert misses(rule({"action": "fail"}), ask(LINK)) == "rules never answer links"
    with pytest.raises(ValidationError):
        rule(kind="url")


def said(one: Rule, asked: Ask) -> Answer:
    return answer_rules.answer(one, asked, [{"uri": "file:///a"}])


def test_each_kind_is_answered_as_a_person_would():
    assert said(rule(), ask()).result == {"action": "decline"}
    assert said(rule({"action": "cancel"}), ask()).result == {"action": "cancel"}
    content = {"action": "accept", "content": {"name": "Ann"}}
    assert said(rule(content), ask()).result == content
    failed = said(rule({"action": "fail", "code": -5, "message": "no"}), ask())
    assert failed.error is not None and (failed.error.code, failed.error.message) == (-5, "no")
    text = said(rule({"action": "respond", "text": "A boat"}), sampling())
    assert text.result == {
        "role": "assistant",
        "content": {"type": "text", "text": "A boat"},
        "model": "rule",
        "stopReason": "endTurn",
    }
    denied = said(rule({"action": "decline"}), sampling())
    assert denied.error is not None and denied.error.code == -1
    roots = said(rule({"action": "accept"}), ask({}, "roots/list"))
    assert roots.result == {"roots": [{"uri": "file:///a"}]}
    assert roots.by == AnsweredBy("rule", "one")


def test_an_answer_that_does_not_fit_is_not_given():
    with pytest.raises(Invalid) as refused:
        said(rule({"action": "accept", "content": {"name": 7}}), ask())
    assert list(refused.value.fields) == ["/name"] or refused.value.fields


def test_defaults_are_those_of_the_schema_and_nothing_is_made_up():
    with pytest.raises(Invalid):
        said(rule({"action": "accept", "content": "defaults"}), ask())
    optional = {"message": "?", "requestedSchema": {**SCHEMA, "required": []}}
    assert said(rule({"action": "accept", "content": "defaults"}), ask(optional)).result == {
        "action": "accept",
        "content": {"city": "Bergen"},
    }


@pytest.mark.parametrize(
    "text",
    [
        {},
        {"name": ""},
        {"name": "a", "do": {"action": "open"}},
        {"name": "a", "do": {"action": "accept"}, "regex": "."},
        {"name": "a", "do": {"action": "decline", "content": {}}},
        {"name": "a", "do": {"action": "respond"}},
        {"name": "a", "do": {"action": "respond", "text": "a", "result": {}}},
        {"name": "a", "do": {"action": "accept"}, "when": {"kind": "sampling"}},
        {"name": "a", "do": {"action": "model"}, "when": {"kind": "form"}},
        {"name": "a", "do": {"action": "decline"}, "when": {"colour": "red"}},
        {"name": "a", "do": {"action": "decline"}, "delay_ms": -1},
        {"name": "a", "do": {"action": "decline"}, "most": 0},
        {"name": "a", "do": {"action": "decline"}, "per_minute": 0},
        {"name": "a", "do": {"action": "decline"}, "when": {"message": "x" * 201}},
    ],
)
def test_what_is_no_rule_is_refused(text: dict[str, Any]):
    with pytest.raises(ValidationError):
        Rule.model_validate(text)


BY = AnsweredBy("person", "me")


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (ask(), elicited(ask(), "accept", {"name": "Ann"}, BY)),
        (ask(), elicited(ask(), "decline", None, BY)),
        (ask(), failure(-7, "broken", BY)),
        (
            sampling(),
            sampled(sampling(), {"role": "assistant", "model": "m", "content": {"type": "text", "text": "t"}}, BY),
        ),
    ],
    ids=["accept", "decline", "fail", "respond"],
)
def test_a_rule_from_an_answer_gives_the_same_answer_and_is_off(asked: Ask, given: Answer):
    with pytest.raises(Invalid):
        answer_rules.from_answer(asked)
    asked.begin(given)
    asked.sent(1.0)
    made = answer_rules.from_answer(asked)
    assert not made.on and made.when.message
    again = ask(asked.params, asked.method)
    assert misses(made, again) == ""
    repeated = said(made, again)
    assert (repeated.action, repeated.result) == (given.action, given.result)
    assert (repeated.error and repeated.error.wire()) == (given.error and given.error.wire())
