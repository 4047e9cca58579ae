"""One line that says what is in a message, for a row of the log: cheap, for thousands of them. Knows MCP's shapes."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final
from zlib import crc32

from app.core.figures import measured
from app.core.json.text import dump
from app.core.wire import MessageKind

_LONGEST = 160
_COUNTED = {
    "tools": "tool",
    "prompts": "prompt",
    "resourceTemplates": "template",
    "resources": "resource",
    "roots": "root",
    "tasks": "task",
    "messages": "message",
}


def gist(kind: MessageKind, method: str | None, value: Any, raw: bytes) -> str:
    """What is in it: a name, a number, the first words. `method` is that of the request that a reply answers."""
    if not isinstance(value, dict):
        return _excerpt(raw, 0)
    if kind == "error":
        error = value.get("error")
        return _line(f"{error.get('code')} {error.get('message')}") if isinstance(error, dict) else _line(repr(error))
    if kind == "response":
        return _of_result(method, value.get("result"), raw)
    params = value.get("params")
    return _of_params(method, params, raw) if isinstance(params, dict) else _json(params, raw, "params")


def junk(raw: bytes) -> str:
    """The beginning of what is no JSON, on one line."""
    return _excerpt(raw, 0)


REPEATED: Final = frozenset({"tasks/get", "ping", "completion/complete"})
"""Requests that are sent again and again: a run of them is one line of the log."""


def repeated(kind: MessageKind, method: str | None, value: Any, *, quiet: bool) -> tuple[str | None, str]:
    """What a message is one more of, when it is one of many, and how far that is: progress by its token, polls by
    their task. A reply is what its request is. Both go through pages and back, so nothing in them can hide."""
    if kind not in ("request", "notification") or method is None:
        return None, ""
    known = params if isinstance(params := value.get("params"), dict) else {}
    if kind == "notification":
        if method != "notifications/progress":
            return None, ""
        token, step = known.get("progressToken"), _line(_step(known))
        return _key(method, token), step if step.isascii() and step.isprintable() else ""
    return (_key(method, known.get("taskId")), "") if quiet or method in REPEATED else (None, "")


def _key(method: str, of: Any) -> str:
    key = f"{method} {of}" if isinstance(of, str | int) else method
    if key.isascii() and key.isprintable() and len(key) <= _LONGEST:
        return key
    return f"{method} #{crc32(key.encode(errors='surrogatepass')):08x}" if method.isascii() else "quiet"


def _of_params(method: str | None, params: dict[str, Any], raw: bytes) -> str:
    if method == "notifications/progress":
        return _line(f"{_step(params)}  {params.get('message') or ''}")
    if method == "notifications/message":
        data = params.get("data")
        return _line(f"{params.get('level')}  {data if isinstance(data, str) else _json(data, raw, 'data')}")
    if method in {"tools/call", "prompts/get"}:
        answers = params.get("inputResponses")
        told = f"  answers {', '.join(answers)}" if isinstance(answers, dict) and answers else ""
        return _line(f"{params.get('name')}  {_arguments(params.get('arguments'), raw)}{told}")
    if method == "initialize":
        return _line(str(params.get("protocolVersion")))
    if method == "sampling/createMessage" and (said := _last_words(params.get("messages"))):
        return _line(said)
    if isinstance(params.get("taskId"), str):
        return _task(params)
    if params.keys() == {"_meta"}:  # the envelope of 2026-07-28, the same on every request
        return ""
    if method == "notifications/cancelled" and isinstance(params.get("requestId"), str | int):
        why = params.get("reason")
        return _line(f"request {params['requestId']}" + (f": {why}" if isinstance(why, str) and why else ""))
    for key in ("uri", "message", "requestId", "level"):
        if isinstance(params.get(key), str | int):
            return _line(str(params[key]))
    return _json(params, raw, "params") if params else ""


def _of_result(method: str | None, result: Any, raw: bytes) -> str:
    if not isinstance(result, dict):
        return _json(result, raw, "result")
    if method == "initialize":
        server = result.get("serverInfo")
        name = server.get("name") if isinstance(server, dict) else None
        return _line(f"{result.get('protocolVersion')} agreed, {name}")
    if result.get("resultType") == "input_required":
        asked = result.get("inputRequests")
        return _line(f"asks for {', '.join(asked) if isinstance(asked, dict) and asked else 'another call'}")
    if isinstance(result.get("supportedVersions"), list):
        return _line(f"{', '.join(map(str, result['supportedVersions'][:5]))} supported")
    if isinstance(result.get("taskId"), str):
        return _task(result)
    if isinstance(result.get("task"), dict):
        return _task(result["task"])
    if isinstance(result.get("action"), str):
        content = result.get("content")
        return _line(f"{result['action']}  {_json(content, raw, 'content') if content else ''}")
    for key, word in _COUNTED.items():
        if isinstance(result.get(key), list):
            count = len(result[key])
            return f"{count} {word}{'' if count == 1 else 's'}"
    said, structured = _words(result.get("content")), result.get("structuredContent")
    if isinstance(structured, dict) and structured and (not said or said.startswith("{")):
        return _line(_members(structured))
    if said:
        return _line(("tool error  " if result.get("isError") is True else "") + said)
    return _json(result, raw, "result") if result else ""


def _task(task: dict[str, Any]) -> str:
    """How a task stands where that is said, and then which it is."""
    parts = [task.get(key) for key in ("status", "statusMessage")]
    words = [part for part in parts if isinstance(part, str) and part]
    return _line(
        ", ".join([*words, f"task {task['taskId']}" if isinstance(task.get("taskId"), str) else ""]).strip(", ")
    )


def _step(params: dict[str, Any]) -> str:
    """How far something is: `3 of 50`, or `3`."""
    total = params.get("total")
    return _figure(params.get("progress")) + (f" of {_figure(total)}" if total is not None else "")


def _words(content: Any) -> str:
    """The first words of content: one block or a list of them; its type where it is no text."""
    first = content[0] if isinstance(content, list) and content else content
    if not isinstance(first, dict):
        return ""
    text = first.get("text")
    return text[: _LONGEST * 2] if isinstance(text, str) else str(first.get("type") or "")


def _last_words(messages: Any) -> str:
    last = messages[-1] if isinstance(messages, list) and messages else None
    return _words(last.get("content")) if isinstance(last, dict) else ""


def _figure(value: Any) -> str:
    return measured(value) if isinstance(value, int | float) else str(value)


def _json(value: Any, raw: bytes, name: str) -> str:
    """A member as JSON: anew where the message is small, else from where it stands in the message."""
    if value is None:
        return ""
    if len(raw) <= _LONGEST * 4:
        try:
            return _line(dump(value).decode())
        except (ValueError, RecursionError):
            pass
    member = f'"{name}"'.encode()
    return _excerpt(raw, raw.find(member) + len(member) + 1)


def _arguments(value: Any, raw: bytes) -> str:
    """Arguments by name, `query "energy", limit 20`; what holds others as JSON where the message is small."""
    if not isinstance(value, dict):
        return _json(value, raw, "arguments")
    if len(raw) > _LONGEST * 4:
        return _members(value)
    try:
        return ", ".join(f"{key} {dump(one).decode()}" for key, one in value.items())
    except (ValueError, RecursionError):
        return _json(value, raw, "arguments")


def _members(value: dict[str, Any]) -> str:
    """The first members of an object: `20 accounts, total 143, next_cursor "c_0020"`."""
    return ", ".join(_member(key, one) for key, one in islice(value.items(), 12))


def _member(key: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} {key}"
    if isinstance(value, dict):
        return f"{key} {{{len(value)}}}"
    short = value[: _LONGEST * 2] if isinstance(value, str) else value
    try:
        return f"{key} {dump(short).decode()}"
    except ValueError:  # a number with more digits than Python writes
        return f"{key} …"


def _excerpt(raw: bytes, start: int) -> str:
    return _line(raw[max(0, start) : max(0, start) + _LONGEST * 2].decode(errors="replace"))


def _line(text: str) -> str:
    flat = " ".join(text[: _LONGEST * 2].split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
