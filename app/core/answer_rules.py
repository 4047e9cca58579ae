"""Answer rules: what a person would always answer the same, said once. What one matches, and what it answers.

A rule is data that people write and scripts post. It matches by words and globs, never by regular expressions, and
never a link. Knows asks; knows no session, no clock and no page.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from app import bounds
from app.core import asks
from app.core.asks import Answer, AnsweredBy, Ask, fitting
from app.core.errors import INTERNAL_ERROR, Invalid
from app.core.globs import matches
from app.core.strict import Closed, Strict

Word = Annotated[str, Field(min_length=1, max_length=bounds.RULE_WORD)]
Kind = Literal["form", "sampling", "roots"]


class When(Strict):
    """What an ask has to be like; what is not said does not matter."""

    server: Word | None = None
    """The name that the server gives itself."""
    kind: Kind | None = None
    origin: Literal["request", "receiver-task", "input-required", "task-input"] | None = None
    tool: Word | None = None
    """The tool whose call caused the ask."""
    message: Word | None = None
    """The server's words: these in them, or, with a `*`, all of them."""
    fields: list[Word] = Field(default=[], max_length=bounds.RULE_FIELDS)
    """Names of fields that the form asks for, each of them."""


class Do(Closed):
    """How it is answered."""

    action: Literal["accept", "decline", "cancel", "fail", "respond", "model"]
    content: dict[str, Any] | Literal["defaults"] | None = None
    """Of an accepted form: this, or the defaults of its schema."""
    text: str | None = Field(default=None, max_length=bounds.RULE_TEXT)
    result: dict[str, Any] | None = None
    """Of a sampling: a text, or a whole result."""
    code: int = INTERNAL_ERROR
    message: str = Field(default="Failed by a rule", max_length=bounds.RULE_TEXT)
    model: Word | None = None
    """Which model writes; the one that fits best when none is named."""

    @model_validator(mode="after")
    def _belongs_together(self) -> Do:
        fields = type(self).model_fields.items()
        given = {name for name, one in fields if name != "action" and getattr(self, name) != one.default}
        allowed = {
            "accept": {"content"},
            "fail": {"code", "message"},
            "respond": {"text", "result"},
            "model": {"model"},
        }.get(self.action, set())
        if given - allowed:
            raise ValueError(f"{sorted(given - allowed)[0]} does not go with {self.action}")
        if self.action == "respond" and (self.text is None) == (self.result is None):
            raise ValueError("respond takes a text or a result")
        return self


class Rule(Closed):
    """One answer rule. Off until somebody switches it on."""

    name: Word
    on: bool = False
    when: When = When()
    do: Do
    delay_ms: int = Field(default=0, ge=0, le=bounds.RULE_DELAY_MS)
    """How long an ask stands open first, so that a person may take it."""
    most: int | None = Field(default=None, ge=1)
    """After so many answers it answers no more."""
    per_minute: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _can_be_done(self) -> Rule:
        kind = self.when.kind
        if kind is not None and self.do.action not in ACTIONS[kind]:
            raise ValueError(f"a {kind} cannot be answered with {self.do.action}")
        return self


ACTIONS: dict[str, frozenset[str]] = {
    "form": frozenset({"accept", "decline", "cancel", "fail"}),
    "sampling": frozenset({"respond", "model", "decline", "fail"}),
    "roots": frozenset({"accept", "fail"}),
}
"""What a rule can do with each kind of ask. A link is not among them: a person opens it, or nobody."""


def question(ask: Ask) -> str:
    """The server's words in an ask: its message, or the last text that a model is to answer."""
    if ask.kind != "sampling":
        return ask.message
    messages = ask.params.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    content = last.get("content") if isinstance(last, dict) else None
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def misses(rule: Rule, ask: Ask, *, server: str, tool: str) -> str:
    """Why a rule does not match an ask, in words; "" when it does."""
    when = rule.when
    if ask.kind == "url":
        return "rules never answer links"
    if rule.do.action not in ACTIONS[ask.kind] or when.kind not in (None, ask.kind):
        return f"is a {ask.kind}"
    if when.origin not in (None, ask.origin):
        return f"came as {ask.origin}"
    for pattern, text, words in ((when.server, server, "another server"), (when.tool, tool, "another tool")):
        if pattern is not None and not matches(pattern, text):
            return words
    if when.message is not None and not matches(when.message, question(ask), within=True):
        return "other words"
    asked = _fields(ask)
    missing = [each for each in when.fields if not any(matches(each, name) for name in asked)]
    return f"no field {missing[0]}" if missing else ""


def _fields(ask: Ask) -> list[str]:
    schema = ask.schema
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return [name for name in properties if isinstance(name, str)] if isinstance(properties, dict) else []


def answer(rule: Rule, ask: Ask, roots: list[dict[str, str]], written: dict[str, Any] | None = None) -> Answer:
    """What a rule that matches says, or what a model has written for it. Raises Invalid when that does not fit what was
    asked for: then it says nothing."""
    by, do = AnsweredBy("rule", rule.name), rule.do
    match ask.kind, do.action:
        case _, "fail":
            said = asks.failure(do.code, do.message, by)
        case "sampling", "decline":
            said = asks.denial(by)
        case "sampling", _:
            said = asks.sampled(ask, _result(do) if written is None else written, by)
        case "roots", _:
            said = asks.roots_result(roots, by)
        case _:
            said = asks.elicited(ask, do.action, content(do, ask) if do.action == "accept" else None, by)
    return fitting(ask, said)


def _result(do: Do) -> dict[str, Any]:
    if do.result is not None:
        return do.result
    text = {"type": "text", "text": do.text or ""}
    return {"role": "assistant", "content": text, "model": "rule", "stopReason": "endTurn"}


def content(do: Do, ask: Ask) -> dict[str, Any]:
    """The content of an accepted form: as it is given, or what the schema has by default."""
    if isinstance(do.content, dict):
        return do.content
    return defaults(ask.schema)


def defaults(schema: Any) -> dict[str, Any]:
    """What a form would send that nobody has touched, as far as its schema says so: a required field without a default
    is not made up."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    found = properties if isinstance(properties, dict) else {}
    return {name: part["default"] for name, part in found.items() if isinstance(part, dict) and "default" in part}


def from_answer(ask: Ask, tool: str = "", name: str = "") -> Rule:
    """The rule that would have answered an ask as it was answered; off. Narrow: whoever wants it to match more takes
    something away. Raises Invalid for an ask that no rule may answer, and for one that nobody answered."""
    given = ask.answer
    if not may_make(ask) or given is None:
        raise Invalid("A rule is made from an answered form, sampling or roots ask.", {})
    do: dict[str, Any]
    if given.error is not None and given.action == "fail":
        do = {"action": "fail", "code": given.error.code, "message": given.error.message[: bounds.RULE_TEXT]}
    elif ask.kind == "sampling" and given.action == "respond":
        do = {"action": "respond", "result": given.result}
    elif given.action == "accept" and ask.kind == "form":
        do = {"action": "accept", "content": (given.result or {}).get("content")}
    else:
        do = {"action": given.action}
    words = question(ask).strip()[: bounds.RULE_WORD].replace("*", "")
    fields = [one for one in _fields(ask) if 0 < len(one) <= bounds.RULE_WORD][: bounds.RULE_FIELDS]
    when = {"kind": ask.kind, "tool": tool[: bounds.RULE_WORD], "message": words, "fields": fields}
    name = name or (words.split("\n")[0] or f"{ask.kind} asks")[:60]
    return Rule.model_validate({"name": name, "when": {key: one for key, one in when.items() if one}, "do": do})


def may_make(ask: Ask) -> bool:
    """Whether a rule can be made from an ask: it was answered, and is no link."""
    return ask.kind != "url" and ask.answer is not None and ask.state == "answered"
