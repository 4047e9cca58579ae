"""Findings: what in a message breaks which requirement. Pure functions, no state but what is passed in.

Show, then judge: nothing here stops a message. A finding names its requirement (protocol-requirements.md), says what
is the case, and what follows or what to do. Knows JSON-RPC and MCP's rules; knows no wire, no SDK and no page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from app import bounds
from app.core import hidden
from app.core.json import pointer
from app.core.json.text import Parsed, whole
from app.core.revisions import HANDSHAKE_VERSIONS
from app.core.rules import stateless
from app.core.schema.check import Check
from app.core.schema.cost import TooCostly
from app.core.wire import Direction, Finding

_STRANGER = "A strict client may drop the connection here."


def frame(
    parsed: Parsed, direction: Direction, *, over_http: bool = False, refusal: bool = False, meant: bool = False
) -> list[Finding]:
    """What is wrong with a frame as JSON-RPC 2.0 (R5-01), as a line on stdout (R5-40) or as a body or event (R5-41).

    `refusal` is the body of an HTTP error, where an error needs no id; `meant` is what looks like a message."""
    if direction == "out":
        return []
    findings = [Finding("R5-01", "must", remark, "Send plain UTF-8 JSON, each key once.") for remark in parsed.remarks]
    if parsed.unread is not None:
        findings.append(
            Finding(
                "R5-41" if over_http else "R5-40",
                "note",
                parsed.unread,
                "It is kept whole. Send large content in pages, or as a resource.",
            )
        )
        if parsed.problem is not None:
            return findings
    if parsed.problem is not None:
        rule, advice = "R5-40", "A server writes nothing but messages to stdout; print to stderr."
        if meant:
            advice = "A message is one line of UTF-8 JSON, and nothing else stands on that line."
        if over_http:
            rule, advice = "R5-41", "The body of an answer, or the data of an event, is one message and nothing else."
        if parsed.our_limit:
            findings.append(Finding(rule, "note", parsed.problem, "The server may be right. It is shown as it came."))
        else:
            findings.append(Finding(rule, "must", parsed.problem, advice))
        return findings
    value = parsed.value
    if not isinstance(value, dict):
        what = "an array" if isinstance(value, list) else f"the bare value {json.dumps(value)[:40]}"
        findings.append(Finding("R5-01", "must", f"This is {what}, not a JSON-RPC message.", _STRANGER))
        return findings
    if value.get("jsonrpc") != "2.0":
        said = json.dumps(value["jsonrpc"])[:40] if "jsonrpc" in value else "missing"
        findings.append(Finding("R5-01", "must", f'`jsonrpc` must be "2.0" and is {said}.', _STRANGER))
    if "id" in value and not _proper_id(value["id"]) and not ("error" in value and value["id"] is None):
        findings.append(
            Finding(
                "R5-01", "must", f"The id {json.dumps(value['id'])[:40]} is neither a string nor an integer.", _STRANGER
            )
        )
    if "method" in value:
        findings += _request_shape(value)
    elif "result" in value or "error" in value:
        findings += _reply_shape(value, refusal=refusal)
    else:
        findings.append(
            Finding("R5-01", "must", "There is no `method`, no `result` and no `error` in this message.", _STRANGER)
        )
    return findings


def _proper_id(value: Any) -> bool:
    return isinstance(value, str) or whole(value) is not None


def _request_shape(value: dict[str, Any]) -> list[Finding]:
    findings = []
    if not isinstance(value["method"], str):
        findings.append(Finding("R5-01", "must", "`method` is not a string.", _STRANGER))
    if "params" in value and not isinstance(value["params"], dict):
        findings.append(
            Finding("R5-01", "must", "`params` is not an object; MCP has only named parameters.", _STRANGER)
        )
    if "result" in value or "error" in value:
        findings.append(Finding("R5-01", "must", "A message with `method` carries no `result` and no `error`.", ""))
    return findings


def _reply_shape(value: dict[str, Any], *, refusal: bool) -> list[Finding]:
    findings = []
    if "result" in value and "error" in value:
        findings.append(Finding("R5-01", "must", "A reply has a `result` or an `error`, not both.", _STRANGER))
    if "id" not in value and not (refusal and "error" in value):
        findings.append(Finding("R5-01", "must", "This reply has no id, so nobody knows what it answers.", _STRANGER))
    if "result" in value and not isinstance(value["result"], dict):
        findings.append(
            Finding("R5-01", "must", "`result` is not an object; every MCP result is one.", "It is shown as it came.")
        )
    if "error" in value:
        error = value["error"]
        code = whole(error.get("code")) if isinstance(error, dict) else None
        if not isinstance(error, dict):
            findings.append(Finding("R5-01", "must", "`error` is not an object with `code` and `message`.", _STRANGER))
        elif code is None or not isinstance(error.get("message"), str):
            findings.append(
                Finding("R5-01", "must", "`error` needs an integer `code` and a string `message`.", "Shown as it came.")
            )
    return findings


_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def hidden_text(raw: bytes, value: Any) -> list[Finding]:
    """The texts of a message that hold characters which do not show, and what those say (H08)."""
    if not hidden.possible(raw) or not isinstance(value, dict):
        return []
    findings: list[Finding] = []
    places = looked = 0
    stack: list[tuple[Any, _Place | None]] = [(value.get(key), None) for key in ("error", "result", "params")]
    while stack and looked < bounds.HIDDEN_LOOKED_AT:
        node, place = stack.pop()
        if isinstance(node, str):
            looked += 1 + len(node) // 16
            runs = [node[start:end] for start, end in islice(hidden.find(node), 100)]
            if runs and places < bounds.HIDDEN_WEIGHED:
                findings.append(_hidden(runs, _path(place)))
            places += bool(runs)
        elif isinstance(node, dict):
            first = list(islice(node.items(), bounds.HIDDEN_LOOKED_AT - looked))
            stack += [(item, (place, key)) for key, item in reversed(first) if _may_hide(item)]
            stack += [(key, (place, key)) for key, _ in first if not key.isascii()]
            looked += 1 + len(node)
        elif isinstance(node, list):
            last = min(len(node), bounds.HIDDEN_LOOKED_AT - looked)
            stack += [(node[at], (place, str(at))) for at in range(last - 1, -1, -1) if _may_hide(node[at])]
            looked += 1 + len(node)
    findings = sorted(findings, key=lambda one: one.level == "note")[: bounds.HIDDEN_PLACES]
    rest = ""
    if places > bounds.HIDDEN_PLACES:
        others = places - bounds.HIDDEN_PLACES
        texts = "1 more text of this message holds" if others == 1 else f"{others} more texts of this message hold"
        rest = f"{texts} characters that do not show."
    elif looked >= bounds.HIDDEN_LOOKED_AT and not findings and hidden.certain(raw):
        rest = "This message holds characters that do not show, beyond the values that were looked at."
    if rest:
        findings.append(Finding("H08", "note", rest, "Parley shows each as a mark."))
    return findings


def _may_hide(value: Any) -> bool:
    return not value.isascii() if isinstance(value, str) else isinstance(value, dict | list)


_Place = tuple[Any, str]
"""Where a value stands: the place of what holds it, or None, and its key or index there."""


def _path(place: _Place | None) -> list[str]:
    parts: list[str] = []
    while place is not None:
        place, part = place
        parts.append(part)
    return parts[::-1]


def _places(path: Iterable[str | int]) -> tuple[str, str | None]:
    """Where something stands, for a sentence and as data; a pointer that is longer than anybody needs is none."""
    whole_one = pointer.join(path)
    return whole_one[:200] or "/", whole_one if len(whole_one) <= bounds.POINTER else None


def _hidden(runs: list[str], path: list[str]) -> Finding:
    """One text with hidden characters. Only what says something, reorders, or stands in a name is against a SHOULD."""
    where, at = _places(path)
    words = " ".join(said for run in runs if (said := hidden.hidden_words(run)))[:300]
    named = path[-1:] in (["name"], ["uri"])
    if words:
        what = f"`{where}` holds hidden text, written in characters that do not show: “{words}”."
    else:
        kinds = dict.fromkeys(hidden.names(one) for run in runs for one in run[:20])
        many = "a character that does not show" if sum(map(len, runs)) == 1 else "characters that do not show"
        what = f"`{where}` holds {many}: {', '.join(list(kinds)[:4])}{' and others' if len(kinds) > 4 else ''}."
    serious = words or named or any(_REORDERING.search(run) for run in runs)
    advice = "A person does not see it, and a model reads it. Parley shows it as a mark."
    return Finding("H08", "should" if serious else "note", what, advice, pointer=at)


def batch(version: str | None) -> Finding:
    """A JSON-RPC batch where it is not legal."""
    return Finding(
        "R5-01",
        "must",
        f"This is a batch. Only 2025-03-26 has batches; this connection speaks {version or 'no agreed revision yet'}.",
        "Its members were not acted on. Send each message on its own line.",
    )


def blank_line(*, over_http: bool = False) -> Finding:
    """An empty line on stdout, or nothing where a message is expected."""
    if over_http:
        return Finding("R5-41", "must", "The answer is empty.", "A request is answered with a message.")
    return Finding("R5-40", "note", "The server wrote an empty line.", "Harmless here; other clients may stumble.")


def oversized(size: int, limit: int, *, over_http: bool = False) -> Finding:
    """A frame above our limit."""
    rule, what = ("R5-41", "message") if over_http else ("R5-40", "line")
    return Finding(
        rule,
        "note",
        f"This {what} is longer than {limit / 1048576:g} MiB (at least {size} bytes), so it was not read.",
        "Only its beginning is kept. Send large content as a resource, or in pages.",
    )


def unknown_reply(rpc_id: Any, fate: str | None) -> Finding:
    """A reply that nobody waits for; `fate` says what became of its request, when there was one."""
    if fate is None:
        return Finding("R5-01", "must", f"No request of ours has the id {json.dumps(rpc_id)[:60]}.", "It was ignored.")
    if fate == "answered":
        return Finding("R5-01", "must", "This request was answered before; a request has one reply.", "It was ignored.")
    return Finding(
        "R5-24", "note", f"This reply came after the request was {fate}.", "It was ignored, as the specification asks."
    )


def reused_id(rpc_id: Any) -> Finding:
    """The server used a request id again while its first request is still open."""
    return Finding(
        "R5-01",
        "must",
        f"The server's id {json.dumps(rpc_id)[:60]} is already in use by a request that is still open.",
        "Both are handled, and their replies cannot be told apart by the server.",
    )


def not_answered() -> Finding:
    """A server request that got no answer, because the server does not read the answers to the ones before."""
    return Finding(
        "R5-25",
        "note",
        "Parley gave no answer: too many answers already wait for the server to read them.",
        "Read stdin while requests are open.",
    )


def reply_unasked() -> Finding:
    """A reply on the stream that a GET opened, and that resumes nothing (R5-42)."""
    return Finding(
        "R5-42",
        "must",
        "This reply came on the GET stream, which carries only requests and notifications of the server.",
        "It was taken all the same. Answer a request with the answer to its POST.",
    )


def early_request(method: str) -> Finding:
    """A request before `notifications/initialized` (R5-02)."""
    return Finding(
        "R5-02",
        "should",
        f"The server sent the request `{method[:60]}` before the handshake was over.",
        "Until `notifications/initialized` it should send nothing but pings and log messages.",
    )


def cancels_ours(rpc_id: Any) -> Finding:
    """`notifications/cancelled` for a request that we sent (R5-24)."""
    return Finding(
        "R5-24",
        "must",
        f"This cancels request {json.dumps(rpc_id)[:60]}, which is not the server's own but ours.",
        "It was ignored. A side cancels only what it asked; a request that cannot be served is answered with an error.",
    )


def refused_params(rule: str, why: str) -> Finding:
    """A server request that was answered with -32602, because it breaks the rules of its method."""
    return Finding(rule, "must", f"{why}.", "Parley answered -32602, and nobody was asked.")


def not_agreed_yet(method: str) -> Finding:
    """A server request that was answered with -32601, because the server has not answered `initialize` yet."""
    return Finding(
        "R5-04",
        "note",
        f"Parley answered `{method[:60]}` with -32601: nothing is agreed before the handshake is over.",
        "Ask again after `notifications/initialized`.",
    )


def not_served() -> Finding:
    """A server request with more in it than is read."""
    return Finding("R5-25", "note", "Parley answered that this request is too much to read.", "Ask for less at a time.")


def not_heard() -> Finding:
    """A notification with more in it than is read."""
    return Finding("R5-01", "note", "This notification is too much to read, so it was not acted on.", "")


def not_handled(method: str) -> Finding:
    """A server request that was answered with -32601."""
    return Finding(
        "R5-04",
        "note",
        f"Parley does not handle `{method}` on this connection and answered -32601.",
        "Offer the capability in the connection's options, or see the release notes for what is handled yet.",
    )


def version_answer(asked: str, got: Any) -> Finding | None:
    """What to say of the revision that the server chose (R5-03)."""
    if got == asked:
        return None
    if got in HANDSHAKE_VERSIONS:
        return Finding("R5-03", "note", f"Parley asked for {asked}, the server chose {got}.", "Both go on with that.")
    if got == stateless.VERSION:
        words = f"The server answered `initialize` with {got}, a revision that has no `initialize`."
        return Finding("R5-03", "should", words, "Answer with 2025-11-25 or older.")
    return Finding(
        "R5-03",
        "should",
        f"The server answered with the revision {json.dumps(got)[:60]}, which Parley does not speak.",
        "",
    )


def number(value: Any) -> float | None:
    """A JSON number as a float; None for anything else, and for an integer that no float can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def progress_rises(before: float | None, now: Any) -> Finding | None:
    """Progress values must rise (R5-23)."""
    value = number(now)
    if value is None:
        return Finding("R5-23", "must", f"`progress` is {json.dumps(now)[:40]}, not a number.", "It was ignored.")
    if before is not None and value <= before:
        return Finding(
            "R5-23", "must", f"Progress went from {before:g} to {value:g}; it must rise with every notification.", ""
        )
    return None


def stray_progress(fate: str | None) -> Finding:
    """Progress for a token that is not, or no longer, in use."""
    if fate is None:
        return Finding("R5-23", "must", "No active request of ours has this progress token.", "It was ignored.")
    if fate == "task":
        return Finding("R2-32", "must", "Progress for a task that has ended.", "It was ignored.")
    if fate != "answered":  # the server may not have heard of it yet
        return Finding("R5-23", "note", f"This progress came after the request was {fate}.", "It was ignored.")
    return Finding("R5-23", "must", f"Progress for a request that was already {fate}.", "It was ignored.")


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""How severe a log message can be (R5-22)."""


def notification(method: str, params: dict[str, Any], version: str | None) -> list[Finding]:
    """What in a notification breaks its type; optional members may be null, as sloppy serialisers write them."""
    rule, broken = "", []  # type: str, list[str]
    match method:
        case "notifications/message":
            rule, level = "R5-22", params.get("level")
            if not isinstance(level, str) or level not in LEVELS:
                broken.append(_wrong(params, "level", f"one of {', '.join(LEVELS)}"))
            if "data" not in params:
                broken.append(_wrong(params, "data", ""))
            if not isinstance(params.get("logger"), str | None):
                broken.append(_wrong(params, "logger", "a string"))
        case "notifications/resources/updated":
            rule = "R5-27"
            if not isinstance(params.get("uri"), str):
                broken.append(_wrong(params, "uri", "a string"))
        case "notifications/elicitation/complete":
            rule = "R4-46"
            if not isinstance(params.get("elicitationId"), str):
                broken.append(_wrong(params, "elicitationId", "a string"))
        case "notifications/cancelled":
            # From 2025-11-25 on the id may be absent: a task is not cancelled by one.
            rule, needed = "R5-24", version is not None and version < "2025-11-25"
            if (needed or params.get("requestId") is not None) and not _proper_id(params.get("requestId")):
                broken.append(_wrong(params, "requestId", "a string or an integer"))
        case "notifications/progress":
            rule, total = "R5-23", params.get("total")
            if not isinstance(total, int | float | None) or isinstance(total, bool):
                broken.append(_wrong(params, "total", "a number"))
            if not isinstance(params.get("message"), str | None):
                broken.append(_wrong(params, "message", "a string"))
    return [Finding(rule, "must", what, "A strict client drops this notification.") for what in broken]


def _wrong(params: dict[str, Any], name: str, wanted: str) -> str:
    """A sentence about a member that is missing, or is not what it must be."""
    if name not in params:
        return f"`{name}` is missing."
    value = params[name]
    said = "an object" if isinstance(value, dict) else "an array" if isinstance(value, list) else None
    if said is None:
        said = json.dumps(value[:60] if isinstance(value, str) else value, ensure_ascii=False)[:62]
    return f"`{name}` is {said}; it must be {wanted}."


def not_offered(method: str, capability: str) -> Finding:
    """We sent a method that the server did not declare, because the person asked for it (R5-04)."""
    return Finding(
        "R5-04",
        "note",
        f"The server did not declare `{capability}`, so `{method}` was sent by force.",
        "A server may refuse it, and would be right.",
    )


def restless_list(method: str) -> Finding:
    """A list that is said to have changed each time it is read."""
    return Finding(
        "R5-28",
        "note",
        f"The server says again and again that its list changed while `{method}` reads it, or right after.",
        "Parley reads it again after a pause that grows, up to a minute. A client without that would never stop: send "
        "the notification only when the list has changed.",
    )


def unannounced(method: str, capability: str) -> Finding:
    """A list changed, and the server never said that it would tell (R5-28)."""
    return Finding(
        "R5-28",
        "note",
        f"The server sends `{method}` and did not declare `{capability}.listChanged`.",
        "The list is read again all the same. Other clients may not listen: declare it.",
    )


def too_many_suggestions(count: int) -> Finding:
    """More values than a completion may have (R5-21)."""
    return Finding(
        "R5-21", "must", f"{count} values are suggested; at most 100 are allowed.", "The first 100 are shown."
    )


_RESULT_RULE = {
    "initialize": "R5-02",
    "server": "R6-06",
    "subscriptions": "R6-40",
    "tools": "R5-29",
    "resources": "R5-27",
    "prompts": "R5-30",
    "completion": "R5-21",
    "logging": "R5-22",
    "ping": "R5-25",
}


def result_shape(method: str, version: str, complaints: list[str]) -> Finding:
    """A result that does not fit the specification's type for its method and revision."""
    shown = "; ".join(complaints[:3]) + (f"; and {len(complaints) - 3} more" if len(complaints) > 3 else "")
    return Finding(
        _RESULT_RULE.get(method.split("/")[0], "R5-01"),
        "must",
        f"This result of `{method}` does not fit {version}: {shown}.",
        "A strict client refuses it. It is shown as it came.",
    )


_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def base64_parts(method: str, result: Any) -> list[Finding]:
    """Pictures, sounds and blobs in a result that are not base64; the first few of the first few hundred."""
    places = []
    for at, part in enumerate(_listed(result, "content")):
        places += _binary(part, f"content/{at}")
    for at, part in enumerate(_listed(result, "contents")):
        places += _binary({"type": "resource", "resource": part}, f"contents/{at}")
    for at, message in enumerate(_listed(result, "messages")):
        if isinstance(message, dict):
            places += _binary(message.get("content"), f"messages/{at}/content")
    rule = _RESULT_RULE.get(method.split("/")[0], "R5-01")
    return [not_base64(rule, where) for where, data in places if not is_base64(data)][:5]


def not_base64(rule: str, where: str) -> Finding:
    """Binary data that cannot be decoded."""
    return Finding(rule, "must", f"`{where}` is not base64.", "A client cannot decode it. It is shown as it came.")


def _listed(result: Any, key: str) -> list[Any]:
    found = result.get(key) if isinstance(result, dict) else None
    return found[: bounds.PARTS_CHECKED] if isinstance(found, list) else []


def _binary(part: Any, where: str) -> list[tuple[str, str]]:
    """The binary data of one content block, and where it stands."""
    if not isinstance(part, dict):
        return []
    inner: Any = part
    name = "data"
    if part.get("type") == "resource":
        inner, name = part.get("resource"), "blob"
        where = where if where.startswith("contents/") else f"{where}/resource"
    elif part.get("type") not in ("image", "audio"):
        return []
    data = inner.get(name) if isinstance(inner, dict) else None
    return [(f"{where}/{name}", data)] if isinstance(data, str) else []


def is_base64(text: str) -> bool:
    """Whether a text is base64 as RFC 4648 has it, padding included. Decodes nothing; two passes over the bytes."""
    if len(text) % 4 or not text.isascii():
        return False
    raw = text.encode()
    core = raw.rstrip(b"=")
    return len(raw) - len(core) <= 2 and not core.translate(None, _BASE64)


def null_members(params: dict[str, Any], rule: str, *names: str) -> list[Finding]:
    """Members that sloppy serialisers write as null, where absent is meant (as with `task`, R1-82)."""
    return [
        Finding(rule, "should", f"`{name}` is null; it is given, or absent.", "Taken as absent.")
        for name in names
        if name in params and params[name] is None
    ]


def null_task() -> Finding:
    """`task: null`, as sloppy serialisers write it."""
    return Finding("R1-82", "should", "`task` is null; it is an object, or absent.", "Taken as a plain request.")


METHOD_CAPABILITY = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "resources/subscribe": "resources",
    "resources/unsubscribe": "resources",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "completion/complete": "completions",
    "logging/setLevel": "logging",
    "tasks/list": "tasks",
    "tasks/get": "tasks",
    "tasks/result": "tasks",
    "tasks/cancel": "tasks",
}
"""Which capability a server must have declared before a method is used (R5-04)."""


# ------------------------------------------------------------------------------------------- structured output


def structured_output(schema: Any, result: Any) -> list[Finding]:
    """Whether `structuredContent` fits the output schema (R5-29). Bounded in time, fetches nothing (R6-11)."""
    if not isinstance(schema, dict) or not isinstance(result, dict):
        return []
    if "structuredContent" not in result:
        if result.get("isError") is True:
            return []
        return [
            Finding(
                "R5-29",
                "must",
                "The tool declares an output schema, and its result has no `structuredContent`.",
                "A strict client refuses this result.",
            )
        ]
    check, value = Check(schema, of_output=True), result["structuredContent"]
    if check.cause:
        unfetched = "Parley fetches nothing on a server's word, so this result was not checked."
        return [Finding("R6-11", "note", f"The output schema cannot be used: {check.cause}.", unfetched)]
    try:
        if check.why:
            raise TooCostly(check.why.replace("The schema", "The output schema", 1))
        errors = check.errors(value)
    except TooCostly as fault:
        advice = "Use a smaller schema, with fewer references and alternatives."
        return [Finding("R5-29", "note", f"{fault} So this result was not checked.", advice)]
    except ValueError as fault:
        return [Finding("R6-11", "note", f"This result cannot be checked: {str(fault)[:200]}.", "")]
    refuses = "A strict client refuses this result."
    if errors is None:
        misfit = "`structuredContent` does not fit the output schema; it is too large to say where."
        return [Finding("R5-29", "must", misfit, refuses)]
    findings = []
    for error in errors[:5]:
        where, at = _places(error.instance_path)
        misfit = f"`{where}` does not fit the output schema: {error.message[:300]}."
        place = None if at is None else f"/structuredContent{at}"
        findings.append(Finding("R5-29", "must", misfit, refuses, pointer=place))
    return findings
