"""Asks: one question from the server to a person, its legal moves, what may be asked and what may be answered.

The same human act reaches the server in four ways (architecture.md §1); an ask knows only that it has a reply channel.
Pure decisions live here: whether a request is one we may put to a person (R1-15, R3, R4), and whether an answer may
leave. Knows the protocol's rules; knows no wire, no store and no page.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from app import secrecy
from app.core import forms
from app.core.errors import Gone
from app.core.json.pointer import escape
from app.core.json.text import whole
from app.core.links import url_findings
from app.core.options import Options
from app.core.rules import checks
from app.core.wire import NO_FINDINGS, Finding, Findings

AskKind = Literal["form", "url", "sampling", "roots"]
Origin = Literal["request", "receiver-task", "input-required", "task-input"]
AskState = Literal["open", "held", "sending", "answered", "withdrawn", "expired", "lost"]
ByKind = Literal["person", "rule", "model", "script", "roots", "limit"]

METHODS: dict[str, str] = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}
"""What a server may put to a person, and the capability that covers it."""
RELATED_TASK = "io.modelcontextprotocol/related-task"
SETTLED: frozenset[AskState] = frozenset({"answered", "withdrawn", "expired", "lost"})

_MESSAGES_CHECKED = 100
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
USER_REJECTED = -1


class RpcError(Exception):
    """A JSON-RPC error to answer with."""

    def __init__(self, code: int, message: str, data: Any = None, *, rule: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data
        self.rule = rule
        """The requirement that the request breaks, when it does."""

    def wire(self) -> dict[str, Any]:
        """The `error` member."""
        found = {"code": self.code, "message": self.message}
        return found if self.data is None else {**found, "data": self.data}


@dataclass(slots=True, frozen=True)
class AnsweredBy:
    """Who gave an answer."""

    kind: ByKind
    name: str = ""


@dataclass(slots=True, frozen=True)
class Answer:
    """What a person, a rule or a model gave: a result for the wire, or an error."""

    action: str
    result: dict[str, Any] | None
    error: RpcError | None
    by: AnsweredBy
    forced: bool = False
    """It does not fit what was asked for, and was sent on purpose."""
    request: dict[str, Any] | None = None
    """The request that was used, when a person had edited it before (R3-02)."""


Deliver = Callable[[Answer], Awaitable[None]]
"""The reply channel: returns once the answer has left; raises Gone when it can no longer be delivered."""


@dataclass(slots=True)
class Ask:
    """One question. Moves: open → sending → answered; sending → open when sending failed; anything that is not
    settled → withdrawn, expired or lost."""

    id: str
    kind: AskKind
    origin: Origin
    method: str
    params: dict[str, Any]
    asked_at: float
    message_seq: int | None
    connection: int
    """Which connection of the session asked."""
    deliver: Deliver
    size: int = 0
    """Of the message that brought it."""
    expires_at: float | None = None
    call_id: str | None = None
    candidates: tuple[str, ...] = ()
    """The calls one of which caused it, where the wire does not say which."""
    task_id: str | None = None
    related_task: str | None = None
    """The server's own task that this belongs to, when it says so."""
    state: AskState = "open"
    answer: Answer | None = None
    settled_at: float | None = None
    reason: str = ""
    """Why it was withdrawn, expired or lost."""
    recorded: bool = False
    """Answered without ever having been open, like roots from the list."""
    taken_back: bool = False
    """It was not the server that withdrew it: the call that it belongs to went no further."""
    completed_elsewhere: bool = False
    """A link whose page reported that the person is done (R4-46)."""
    log: Findings = field(default=NO_FINDINGS, repr=False, compare=False)
    """Who knows what was remarked about it."""
    about: str = ""
    """Which question of its message it is, where one brings several: its key."""
    edited: dict[str, Any] | None = None
    """A sampling request as a person changed it before it is used; `params` stay as the server sent them (R3-02)."""

    @property
    def findings(self) -> list[Finding]:
        """What was remarked about it, beside the message that brought it."""
        return [] if self.message_seq is None else self.log.findings_of([self.message_seq], about=self.about)

    @property
    def request(self) -> dict[str, Any]:
        """What whoever drafts the answer works from: the request as a person edited it, else as it came."""
        return self.params if self.edited is None else self.edited

    @property
    def settled(self) -> bool:
        return self.state in SETTLED

    def begin(self, answer: Answer) -> None:
        """open or held → sending. The first answer wins; Gone tells a later one so."""
        if self.state not in ("open", "held"):
            raise Gone(self.words())
        self.state, self.answer = "sending", answer

    def hold(self) -> bool:
        """sending → held: the answer waits for the others of its round, and can still be changed."""
        if self.state != "sending":
            return False
        self.state = "held"
        return True

    def release(self, at: float) -> bool:
        """held → answered: it has left with the others of its round."""
        if self.state != "held":
            return False
        self.state, self.settled_at = "answered", at
        return True

    def edit(self, request: dict[str, Any] | None) -> None:
        """Change what the answer is drafted from; None is as it came. Gone once it is being answered."""
        if self.state != "open":
            raise Gone(self.words())
        self.edited = None if request == self.params else request

    def sent(self, at: float) -> bool:
        """sending → answered."""
        if self.state != "sending":
            return False
        self.state, self.settled_at = "answered", at
        return True

    def reopen(self) -> bool:
        """sending → open, when sending failed and the connection lives; held → open, to answer otherwise."""
        if self.state not in ("sending", "held"):
            return False
        self.state, self.answer = "open", None
        return True

    def end(self, state: Literal["withdrawn", "expired", "lost"], reason: str, at: float) -> bool:
        """Anything that is not settled → withdrawn, expired or lost. What was typed stays with whoever typed it."""
        if self.settled:
            return False
        self.state, self.reason, self.settled_at, self.answer = state, reason, at, None
        return True

    def words(self) -> str:
        """Why it cannot be answered any more."""
        match self.state:
            case "answered" | "sending":
                who = "" if self.answer is None else f" by a {self.answer.by.kind}"
                return f"This was answered already{who}. Yours was not sent."
            case "held":
                return "This is answered, and waits for the other answers of its round."
            case "withdrawn" if self.taken_back:
                return f"{self.reason} Nothing was sent."
            case "withdrawn":
                return f"The server took this back{': ' + self.reason if self.reason else ''}. Nothing was sent."
            case "expired":
                return "The time was up, and the server was told. Nothing was sent."
            case "lost":
                return "The connection ended before this was answered. Nothing was sent."
            case _:
                return "This is open."

    @property
    def schema(self) -> Any:
        """What a form asks for."""
        return self.params.get("requestedSchema")

    @property
    def message(self) -> str:
        """The server's words."""
        said = self.params.get("message")
        return said if isinstance(said, str) else ""


# ------------------------------------------------------------------------------------------- what may be asked


def kind_of_ask(method: str, params: dict[str, Any]) -> AskKind:
    """Which kind of ask a request is; a form unless it says otherwise (R4-02)."""
    if method == "sampling/createMessage":
        return "sampling"
    if method == "roots/list":
        return "roots"
    return "url" if params.get("mode") == "url" else "form"


def admit(
    method: str, params: dict[str, Any], options: Options, capabilities: dict[str, Any], *, stateless: bool = False
) -> list[Finding]:
    """What to remark about a request that may be put to a person; raises RpcError for one that may not (R1-15).

    `stateless` is 2026-07-28, where a link has no id (R4-49)."""
    if METHODS.get(method) not in capabilities:
        raise RpcError(METHOD_NOT_FOUND, "Method not found", {"method": method})
    if method == "sampling/createMessage":
        return _admit_sampling(params, options)
    return _admit_elicitation(params, capabilities, stateless=stateless)


def _admit_elicitation(params: dict[str, Any], capabilities: dict[str, Any], *, stateless: bool) -> list[Finding]:
    mode = "form" if params.get("mode") is None else params["mode"]
    offered = capabilities.get("elicitation") or {}
    modes = set(offered) & {"form", "url"} or {"form"}
    if mode not in ("form", "url"):
        raise RpcError(INVALID_PARAMS, f"There is no elicitation mode {mode!r}", rule="R4-02")
    if mode not in modes:
        raise RpcError(INVALID_PARAMS, f"This client did not declare elicitation mode {mode!r}", rule="R4-03")
    if not isinstance(params.get("message"), str):
        raise RpcError(INVALID_PARAMS, "elicitation/create needs a string `message`", rule="R4-04")
    if mode == "url":
        return _admit_url(params, stateless=stateless)
    if not isinstance(params.get("requestedSchema"), dict):
        raise RpcError(
            INVALID_PARAMS, "elicitation/create in form mode needs an object `requestedSchema`", rule="R4-04"
        )
    return _nulls(params, "R4-02", "mode") + schema_findings(params["requestedSchema"]) + secret_findings(params)


def _nulls(params: dict[str, Any], rule: str, *names: str) -> list[Finding]:
    """Members that sloppy serialisers write as null, where absent is meant (as with `task`, R1-82)."""
    return [
        Finding(rule, "should", f"`{name}` is null; it is given, or absent.", "Taken as absent.")
        for name in names
        if name in params and params[name] is None
    ]


def _admit_url(params: dict[str, Any], *, stateless: bool) -> list[Finding]:
    if not isinstance(params.get("url"), str):
        raise RpcError(INVALID_PARAMS, "elicitation/create in url mode needs a string `url`", rule="R4-40")
    if not stateless and not isinstance(params.get("elicitationId"), str):
        raise RpcError(INVALID_PARAMS, "elicitation/create in url mode needs a string `elicitationId`", rule="R4-46")
    return url_findings(params["url"])


_NO_BEFORE = re.compile(r"\b(not|never|no|nor|neither|without|instead of|rather than|avoid)\b|n['’]t\b", re.IGNORECASE)
_NO_AFTER = re.compile(r"\b(not|never|n['’]t)\b.{0,20}\b(need|ask|requir|necess|want|share|type|enter)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")


def secret_findings(params: dict[str, Any]) -> list[Finding]:
    """A form that seems to ask for a secret, which a server must not do (R4-13).

    What counts is something to type into: a field whose name or title is that of a secret, else one beside words that
    ask for one. "Do not tell us your PIN" is good advice, so a sentence that says no is not held against the form."""
    properties = params["requestedSchema"].get("properties")
    typed = {
        str(name): below
        for name, below in (properties.items() if isinstance(properties, dict) else ())
        if isinstance(below, dict) and _takes_typing(below)
    }
    found = None
    for name, below in typed.items():
        named = [secrecy.spaced(name[:500]), below.get("title")]
        found = next((hit for text in named if isinstance(text, str) and (hit := secrecy.spoken_of(text))), None)
        if found is None:
            found = _asked_for(below.get("description"))
        if found is not None:
            break
    if found is None and typed:
        found = _asked_for(params.get("message"))
    if found is None:
        return []
    return [
        Finding(
            "R4-13",
            "must",
            f"This form seems to ask for a secret (“{found.group()}”).",
            "Servers must not ask for secrets in a form. Do not type one.",
        )
    ]


def _takes_typing(schema: dict[str, Any]) -> bool:
    """Whether a secret could be typed here: not into a switch, nor where there is a choice of values."""
    if schema.get("type") not in ("string", "integer", "number"):
        return False
    return not any(key in schema for key in ("enum", "oneOf", "const"))


def _asked_for(text: Any) -> re.Match[str] | None:
    """The secret that a sentence of this text asks for; sentences that say no do not ask."""
    if not isinstance(text, str):
        return None
    for sentence in _SENTENCE.split(text[:20_000]):
        found = secrecy.spoken_of(sentence)
        if found is None:
            continue
        before, after = sentence[: found.start()], sentence[found.end() :]
        if _NO_BEFORE.search(before) is None and _NO_AFTER.search(after) is None:
            return found
    return None


def schema_findings(schema: dict[str, Any]) -> list[Finding]:
    """Whether a requested schema stays within what elicitation allows: one flat object (R4-04, R4-10)."""
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return [
            Finding("R4-10", "must", "The requested schema is not an object with properties.", "Answer it as JSON.")
        ]
    odd = [name for name, below in properties.items() if not _primitive(below)]
    if not odd:
        return []
    shown = ", ".join(str(name)[:40] for name in odd[:3])
    return [
        Finding(
            "R4-10",
            "must",
            f"Elicitation knows only flat forms; {shown} {'is' if len(odd) == 1 else 'are'} more than that.",
            "Other clients may refuse it.",
        )
    ]


def _primitive(schema: Any) -> bool:
    if not isinstance(schema, dict) or "$ref" in schema:
        return False
    if schema.get("type") in ("string", "number", "integer", "boolean"):
        return True
    items = schema.get("items")
    return schema.get("type") == "array" and isinstance(items, dict) and ("enum" in items or "anyOf" in items)


# ------------------------------------------------------------------------------------------- sampling requests


def _admit_sampling(params: dict[str, Any], options: Options) -> list[Finding]:
    given = [name for name in ("tools", "toolChoice") if params.get(name) is not None]
    if given and not options.sampling_tools:
        raise RpcError(INVALID_PARAMS, "This client did not declare sampling.tools", rule="R3-04")
    well_formed(params)
    findings = _nulls(params, "R3-04", "tools", "toolChoice")
    for at, message in enumerate(params["messages"][:_MESSAGES_CHECKED]):
        for block in blocks(message)[:_MESSAGES_CHECKED]:
            data = block.get("data") if block["type"] in ("image", "audio") else None
            if isinstance(data, str) and not checks.is_base64(data):
                findings.append(checks.not_base64("R3-05", f"messages/{at}/content/data"))
    context = params.get("includeContext")
    if context in ("thisServer", "allServers") and not options.sampling_context:
        findings.append(
            Finding(
                "R3-11",
                "should",
                f"It asks for the context of {context}, which this client did not declare.",
                "The context is not included.",
            )
        )
    return findings


def well_formed(params: dict[str, Any]) -> None:
    """RpcError for a sampling request that is none, whoever wrote it: the server, or the person who edited it."""
    messages = params.get("messages")
    if not isinstance(messages, list):
        raise RpcError(INVALID_PARAMS, "sampling/createMessage needs a list `messages`", rule="R3-05")
    if whole(params.get("maxTokens")) is None:
        raise RpcError(INVALID_PARAMS, "sampling/createMessage needs an integer `maxTokens`", rule="R3-12")
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            raise RpcError(INVALID_PARAMS, f"messages[{at}] needs the role user or assistant", rule="R3-05")
        if not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks(message)):
            raise RpcError(INVALID_PARAMS, f"messages[{at}] has content without a type", rule="R3-05")
    _balanced(messages)


def blocks(message: dict[str, Any]) -> list[Any]:
    """The content of a message as a list, whether it was one block or several (R3-05)."""
    content = message.get("content")
    return content if isinstance(content, list) else [content]


def _balanced(messages: list[dict[str, Any]]) -> None:
    """Tool uses are answered by the next message, and tool results stand alone (R3-06, R3-07)."""
    waiting: set[str] = set()
    for at, message in enumerate(messages):
        kinds = [block["type"] for block in blocks(message)]
        results = {str(block.get("toolUseId")) for block in blocks(message) if block["type"] == "tool_result"}
        if results and (message["role"] != "user" or any(kind != "tool_result" for kind in kinds)):
            raise RpcError(
                INVALID_PARAMS, f"messages[{at}]: tool results stand alone in a message of the user", rule="R3-06"
            )
        if waiting - results:
            raise RpcError(
                INVALID_PARAMS, f"messages[{at}]: tool result missing for {sorted(waiting - results)[0]}", rule="R3-07"
            )
        if results - waiting:
            raise RpcError(
                INVALID_PARAMS, f"messages[{at}]: there is no tool use for one of the tool results", rule="R3-07"
            )
        waiting = {str(block.get("id")) for block in blocks(message) if block["type"] == "tool_use"}
    if waiting:
        raise RpcError(INVALID_PARAMS, f"tool result missing for {sorted(waiting)[0]}", rule="R3-07")


# ----------------------------------------------------------------------------------------- what may be answered


def elicit_result(
    ask: Ask, action: str, content: Any, by: AnsweredBy, *, force: bool = False
) -> tuple[Answer, dict[str, list[str]]]:
    """An answer to a form or a link, and what is wrong with it by pointer; with `force` nothing is wrong."""
    result: dict[str, Any] = {"action": action}
    errors: dict[str, list[str]] = {}
    if action == "accept" and ask.kind == "form":
        result["content"] = content
        if not isinstance(content, dict):
            errors[""] = ["The content must be an object."]
        else:
            errors = forms.validate(ask.schema, content)
            for name, value in content.items():
                if not _plain(value):
                    pointer = f"/{escape(name)}"
                    errors.setdefault(pointer, []).append(
                        "Only texts, numbers, true, false and lists of texts may be sent."
                    )
    return Answer(action, result, None, by, force and bool(errors)), {} if force else errors


def _plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, str) for each in value)
    return isinstance(value, str | int | float | bool)


def sampling_result(
    ask: Ask, result: Any, by: AnsweredBy, *, force: bool = False
) -> tuple[Answer, dict[str, list[str]]]:
    """An answer to a sampling request, and what is wrong with it by pointer (R3-08, R3-09)."""
    errors: dict[str, list[str]] = {}
    fields = result if isinstance(result, dict) else {}
    if not isinstance(result, dict):
        errors[""] = ["The result must be an object."]
    if fields.get("role") not in ("user", "assistant"):
        errors["/role"] = ["The role is user or assistant."]
    if not isinstance(fields.get("model"), str) or not fields.get("model"):
        errors["/model"] = ["Say which model answered; any name will do."]
    if "stopReason" in fields and not isinstance(fields["stopReason"], str):
        errors["/stopReason"] = ["The stop reason is a text."]
    errors |= _content_errors(ask, fields)
    return Answer("respond", fields, None, by, force and bool(errors), ask.edited), {} if force else errors


def _content_errors(ask: Ask, result: dict[str, Any]) -> dict[str, list[str]]:
    content = result.get("content")
    found: list[Any] = content if isinstance(content, list) else [content]
    if not found or not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in found):
        return {"/content": ["The content is one block or a list of blocks, each with a type."]}
    needs = {
        "text": ("text",),
        "image": ("data", "mimeType"),
        "audio": ("data", "mimeType"),
        "tool_use": ("id", "name", "input"),
    }
    for at, block in enumerate(found):
        missing = [name for name in needs.get(block["type"], ()) if name not in block]
        if missing:
            return {"/content": [f"Block {at + 1} ({block['type']}) lacks {', '.join(missing)}."]}
        if block["type"] not in needs:
            return {"/content": [f"Block {at + 1}: a result cannot contain {block['type'][:40]!r}."]}
    uses = [block for block in found if block["type"] == "tool_use"]
    choice = ask.params.get("toolChoice")
    mode = choice.get("mode") if isinstance(choice, dict) else None
    if uses and mode == "none":
        return {"/content": ["The server allows no tool use here (toolChoice none)."]}
    if not uses and mode == "required":
        return {"/content": ["The server wants at least one tool use here (toolChoice required)."]}
    if uses and not ask.params.get("tools"):
        return {"/content": ["The server offered no tools, so none can be used."]}
    if uses and result.get("role") != "assistant":
        return {"/role": ["A tool use is said by the assistant."]}
    return {}


def roots_result(roots: list[dict[str, str]], by: AnsweredBy) -> Answer:
    """The answer to `roots/list`."""
    return Answer("accept", {"roots": roots}, None, by)


def denial(by: AnsweredBy) -> Answer:
    """A person rejected a sampling request: an error with the code -1 (R3-20)."""
    return Answer("decline", None, RpcError(USER_REJECTED, "User rejected sampling request"), by)


def failure(code: int, message: str, by: AnsweredBy) -> Answer:
    """A tester fails the ask with an error of their choice."""
    return Answer("fail", None, RpcError(code, message), by)


def unattended(ask: Ask) -> Answer:
    """Nobody came in time: an elicitation is dismissed, a sampling fails; nothing is said in a person's name."""
    by = AnsweredBy("limit", "nobody answered in time")
    if ask.kind in ("form", "url"):
        return Answer("cancel", {"action": "cancel"}, None, by)
    return Answer("fail", None, RpcError(INTERNAL_ERROR, "No user was available to answer"), by)


def with_related_task(result: dict[str, Any], task_id: str | None) -> dict[str, Any]:
    """A result that says which task it belongs to; what stood in `_meta` stays (R1-42, R2-30)."""
    if task_id is None:
        return result
    meta = result.get("_meta")
    return {**result, "_meta": {**(meta if isinstance(meta, dict) else {}), RELATED_TASK: {"taskId": task_id}}}


def related_task_of(params: dict[str, Any]) -> str | None:
    """The task that a request says it belongs to."""
    meta = params.get("_meta")
    related = meta.get(RELATED_TASK) if isinstance(meta, dict) else None
    found = related.get("taskId") if isinstance(related, dict) else None
    return found if isinstance(found, str) else None
