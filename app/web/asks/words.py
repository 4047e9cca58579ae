"""An ask in words: how it came, what it asks, what became of it, what was answered. Every page that tells of an ask
takes its words from here. Texts of servers, never markup. Knows asks; knows no page."""

from __future__ import annotations

from typing import Any, NamedTuple

from app.core.asks import Answer, Ask
from app.core.calls import Call
from app.core.json.values import MISSING, same
from app.core.sampling import blocks
from app.web.asks.sampling import last_words
from app.web.kit import format
from app.web.kit.words import ASK_KINDS, ASK_STATES

_ORIGINS = {
    "request": "direct request",
    "receiver-task": "as a task",
    "input-required": "round",
    "task-input": "input of a task",
}
_DEEDS = {
    "accept": "accepted",
    "decline": "declined",
    "cancel": "cancelled",
    "respond": "answered",
    "fail": "failed",
}
_SPECIAL = {("sampling", "decline"): "denied", ("roots", "accept"): "sent"}
_STEPS = {"streaming": "model writes", "ready": "draft to check", "failed": "model failed"}
"""How far a model has come with what waits."""
_ROOTS = "Which roots may the server know?"
_LONG = 400
_MOST = 40
"""Fields of an answer that a page compares; a line has fewer."""
_ON_A_LINE = 12
_VALUE = 120


# ------------------------------------------------------------------------------------------------------------ question


def origin(ask: Ask, call: Call | None) -> str:
    """How an ask came; one of a round says of which."""
    turns = call.rounds if call is not None and ask.origin == "input-required" else []
    number = next((turn.number for turn in turns if ask.id in turn.asks.values()), None)
    return _ORIGINS[ask.origin] if number is None else f"round {number}"


def question(ask: Ask) -> str:
    """The server's words; of a sampling request, which has many, the last; `roots/list` has none."""
    if ask.kind == "roots":
        return ask.message or _ROOTS
    return last_words(ask.params) if ask.kind == "sampling" and not ask.message else ask.message


def question_of(ask: Ask, *, kind: bool = True) -> str:
    """What was asked, in a line or a few. What is no form says first what it is, unless that stands beside it."""
    said = question(ask)
    if ask.kind == "url":
        said = f"{said} {str(ask.params.get('url', ''))[:_LONG]}".strip()
    plain = ask.kind in ("form", "roots") or not kind
    return said if plain else f"{ASK_KINDS[ask.kind][1]}: {said or 'no text'}"


# ------------------------------------------------------------------------------------------------------------- outcome


def given(ask: Ask) -> Answer | None:
    """The answer that was sent, or waits to be sent with the others of its round."""
    return ask.answer if ask.state in ("answered", "held") else None


def did(ask: Ask) -> str:
    """What was done, in a word; "" while nothing was."""
    answer = given(ask)
    return "" if answer is None else _SPECIAL.get((ask.kind, answer.action), _DEEDS.get(answer.action, "answered"))


def outcome(ask: Ask) -> str:
    """What became of it: how it was answered, and by which model where one wrote it, or how it ended."""
    done = did(ask)
    wrote = written(ask)
    if wrote.model:
        done = f"{done} by {wrote.model}{', edited' if wrote.edited else ''}"
    if ask.state == "held" and done:
        return f"{done}, {ASK_STATES['held']}"
    if ask.state == "open" and ask.draft is not None and ask.draft.by.kind == "model":
        return f"{ASK_STATES['open']}, {_STEPS[ask.draft.state]}"
    return done or ASK_STATES[ask.state]


def by(ask: Ask) -> str:
    """The rule or the model that answered, by its name; "" for a person, and for what is no answer."""
    answer = given(ask)
    return "" if answer is None else answer.by.credit


class Written(NamedTuple):
    """Who or what wrote an answer that was sent."""

    model: str = ""
    """The model whose draft it is; "" when it is nobody's."""
    edited: bool = False
    """It was changed before it left."""


def written(ask: Ask) -> Written:
    """Whether an answer is the draft of a model: it says that the same model wrote it."""
    answer, draft = given(ask), ask.draft
    if answer is None or answer.result is None or draft is None or draft.by.kind != "model":
        return Written()
    wrote = draft.content if isinstance(draft.content, dict) else {}
    if not wrote or answer.result.get("model") != wrote.get("model"):
        return Written()
    return Written(format.gist(draft.by.name, 60), answer.result != wrote)


# -------------------------------------------------------------------------------------------------------------- answer


class Said(NamedTuple):
    """One thing that was answered."""

    key: str
    """Of a form; "" where an answer has no keys."""
    text: str
    is_set: bool = True
    differs: bool = False
    """The other call was answered otherwise here."""


def answer_of(ask: Ask | None, other: Ask | None = None) -> list[Said]:
    """What was answered; what the other call was answered otherwise is marked."""
    answer = None if ask is None else given(ask)
    if ask is None or answer is None:
        return []
    there = None if other is None else given(other)
    content, before = _content(ask, answer), None if other is None or there is None else _content(other, there)
    if content is not None:
        keys = list(dict.fromkeys([*_properties(ask), *content]))
        # Only where both say what they accept can a key differ; that the other said something else says the action.
        marked = {key for key in keys if before is not None and not _alike(content, before, key)}
        if keys:
            more = [Said("", f"{len(keys) - _MOST} more")] if len(keys) > _MOST else []
            return [*(_keyed(key, content, key in marked) for key in keys[:_MOST]), *more]
    plain = _plain(ask, answer)
    other_plain = plain if there is None or other is None else _plain(other, there)
    return [Said("", plain, True, plain != other_plain)]


def told(ask: Ask, most: int = _ON_A_LINE) -> list[tuple[str, str]]:
    """What was answered, without what was not set; nothing where the deed says it all. Names and short values."""
    said = [one for one in answer_of(ask) if one.is_set and one.text != did(ask)][:most]
    answer = given(ask)
    content = None if answer is None else _content(ask, answer)
    left = 0 if content is None else len(content) - len(said)
    return [*((one.key, format.gist(one.text, _VALUE)) for one in said), *([("", f"{left} more")] if left else [])]


def answer(ask: Ask) -> str:
    """What was answered, on one line; "" when nothing was, or nothing but yes or no."""
    return ", ".join(f"{key}: {text}" if key else text for key, text in told(ask))


def line_of(ask: Ask) -> str:
    """The answer in one line, with what was done before what was said."""
    answer = given(ask)
    if answer is None:
        return ""
    said = ", ".join(f"{one.key} {one.text}".strip() for one in answer_of(ask) if one.is_set)
    if ask.kind == "form" and answer.action == "accept":
        return f"accept: {said}" if said else "accept, nothing set"
    return said or did(ask)


def _content(ask: Ask, answer: Answer) -> dict[str, Any] | None:
    """What an accepted form says; None for everything else."""
    if ask.kind != "form" or answer.action != "accept" or answer.result is None:
        return None
    content = answer.result.get("content")
    return {} if content is None else content if isinstance(content, dict) else None


def _properties(ask: Ask) -> list[str]:
    properties = ask.schema.get("properties") if isinstance(ask.schema, dict) else None
    return list(properties)[:_MOST] if isinstance(properties, dict) else []


def _alike(content: dict[str, Any], before: dict[str, Any], key: str) -> bool:
    one, two = content.get(key, MISSING), before.get(key, MISSING)
    return one is two if MISSING in (one, two) else same(one, two)


def _keyed(key: str, content: dict[str, Any], differs: bool) -> Said:
    if key not in content:
        return Said(key, "not set", False, differs)
    value = content[key]
    text = value if isinstance(value, str) and value and " " not in value else format.gist(value, _LONG)
    return Said(key, f"“{text}”" if isinstance(value, str) and " " in text else text or '""', True, differs)


def _plain(ask: Ask, answer: Answer) -> str:
    """An answer without keys."""
    if answer.error is not None and (ask.kind, answer.action) != ("sampling", "decline"):
        return f"error {answer.error.code} {answer.error.message}"[:_LONG]
    result = answer.result or {}
    if ask.kind == "sampling" and answer.error is None:
        said = [_block(one) for one in blocks(result)[:_ON_A_LINE]]
        quoted = all(is_text for _, is_text in said)
        text = "\n".join(one if quoted or not is_text else f"“{one}”" for one, is_text in said)
        text = f"{text[:_LONG]}…" if len(text) > _LONG else text
        return (f"“{text}”" if quoted else text) if text else format.gist(result, _VALUE)
    if ask.kind == "roots":
        roots = result.get("roots")
        uris = [str(one.get("uri", "")) for one in roots if isinstance(one, dict)] if isinstance(roots, list) else []
        return ", ".join(uris)[:_LONG] or "no roots"
    if ask.kind == "form" and answer.action == "accept":
        return format.gist(result.get("content"), _LONG)
    return did(ask)


def _block(block: Any) -> tuple[str, bool]:
    """A block of a sampling answer: its text, or in words what it is instead; and whether it is text."""
    if not isinstance(block, dict):
        return format.gist(block, _VALUE), False
    text, kind = block.get("text"), block.get("type")
    if isinstance(text, str):
        return text, True
    if kind == "tool_use":
        return f"uses {format.gist(block.get('name'), 60)} {format.gist(block.get('input'), _VALUE)}", False
    if kind in ("image", "audio"):
        mime = block.get("mimeType")
        said = f", {format.gist(mime, 60)}" if isinstance(mime, str) else ""
        return f"{'a picture' if kind == 'image' else 'a sound'}{said}", False
    return f"a block of type {format.gist(kind, 60)}", False
