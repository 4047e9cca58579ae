"""Asks: one question from the server to a person, its legal moves, and how it may be answered.

The same human act reaches the server in four ways; an ask knows only that it has a reply channel.
Whether a request may be put to a person, and whether an answer may leave, is decided here, by the rules of its kind.
Knows no wire, no store and no page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from app.core import elicitation, sampling
from app.core.errors import METHOD_NOT_FOUND, Gone, Invalid, RpcError
from app.core.options import Options
from app.core.rules import catalogue
from app.core.wire import NO_FINDINGS, Finding, Findings

AskKind = Literal["form", "url", "sampling", "roots"]
Origin = Literal["request", "receiver-task", "input-required", "task-input"]
AskState = Literal["open", "held", "sending", "answered", "withdrawn", "expired", "lost"]
ByKind = Literal["person", "rule", "model", "script", "roots", "limit", "guest", "room"]

METHODS: dict[str, str] = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}
"""What a server may put to a person, and the capability that covers it."""
RELATED_TASK = "io.modelcontextprotocol/related-task"
SETTLED: frozenset[AskState] = frozenset({"answered", "withdrawn", "expired", "lost"})

USER_REJECTED = -1
_UNNAMED = frozenset(("", "you", "a script"))
"""What the one person of local mode is called."""


@dataclass(slots=True, frozen=True)
class AnsweredBy:
    """Who gave an answer."""

    kind: ByKind
    name: str = ""

    @property
    def credit(self) -> str:
        """The rule, the model, the guest or the room by its name, in a team the person; "" for local mode and for
        Parley itself."""
        if self.kind in ("person", "script") and self.name not in _UNNAMED:
            return self.name if self.kind == "person" else f"a script of {self.name}"
        return f"{self.kind} {self.name}" if self.kind in ("rule", "model", "guest", "room") else ""


@dataclass(slots=True, frozen=True)
class Claimant:
    """Who of a team has an ask in hand."""

    id: str
    name: str

    @property
    def short(self) -> str:
        """One or two letters, for where there is no room for a name."""
        return initials(self.name)


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


@dataclass(slots=True, frozen=True)
class Took:
    """What a draft of a model took: seconds in all and until its first words, and tokens as far as they were told."""

    seconds: float
    first_seconds: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True, frozen=True)
class Draft:
    """What somebody would answer, for people to send, to change or to leave."""

    by: AnsweredBy
    text: str = ""
    content: Any = None
    """The result that would be sent, once there is one."""
    state: Literal["streaming", "ready", "failed"] = "ready"
    problem: str = ""
    """Why it failed."""
    fault: str = ""
    """What kind of failure that is, in a word."""
    said: str = ""
    """What whoever failed says of it, in their own words."""
    retry_after: float | None = None
    """Seconds to wait before another attempt, where whoever refused this one said so."""
    notes: tuple[str, ...] = ()
    """What of the request whoever drafts it could not use."""
    took: Took | None = None
    number: int = 1
    """Which attempt at this ask it is."""
    started_at: float = 0.0
    updated_at: float = 0.0


Delivery = Literal["sent", "held"]
"""What became of an answer: it has left, or it waits for the others of its round."""
Deliver = Callable[["Ask", Answer], Awaitable[Delivery]]
"""A reply channel. Returns once the answer has left or is held; raises Gone when it can no longer be delivered."""


@dataclass(slots=True)
class Ask:
    """One question. Moves: open → sending → answered; sending → held → answered in a round; sending → open, or back to
    held, when sending failed; held → open to answer otherwise; anything that is not settled → withdrawn, expired or
    lost."""

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
    in_flight: bool = False
    """It ended while an answer was being sent, which may have left."""
    claimed_until: float | None = None
    """A person has it in hand until then: nobody else answers it for them. Without end for who took an answer back."""
    claimed_by: Claimant | None = None
    """Who that is, in a team; local mode has one person."""
    rule_id: str | None = None
    rule_at: float | None = None
    """The answer rule that has promised to answer it, and when it will."""
    draft: Draft | None = None
    completed_elsewhere: bool = False
    """A link whose page reported that the person is done (R4-46)."""
    log: Findings = field(default=NO_FINDINGS, repr=False, compare=False)
    """Who knows what was remarked about it."""
    about: str = ""
    """Which question of its message it is, where one brings several: its key."""
    server: str = ""
    """Who asks: what the target of that connection is known by."""
    edited: dict[str, Any] | None = None
    """A sampling request as a person changed it before it is used; `params` stay as the server sent them (R3-02)."""
    tool_round: int = 0
    """Which round of tool use it is, of those that belong together, from 1; 0 for what offers no tools (R3-21)."""
    follows: str | None = None
    """The ask whose tool uses it has the results of."""

    def claim(self, until: float, by: Claimant | None = None) -> None:
        """A person has it in hand; whoever had it before has it no longer. Raises Gone once it is being answered."""
        if self.state != "open":
            raise Gone(self.words())
        before = self.claimed_until if by == self.claimed_by else None
        self.claimed_until, self.claimed_by = max(until, before or until), by

    def claimed_for(self, now: float) -> float:
        """Seconds for which a person still has it in hand; 0 when nobody has."""
        return 0.0 if self.claimed_until is None else max(0.0, self.claimed_until - now)

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
        """open or held → sending. The first answer wins; a later one raises Gone."""
        if self.state not in ("open", "held"):
            raise Gone(self.words())
        self.state, self.answer = "sending", answer

    def hold(self) -> bool:
        """sending → held: the answer waits for the others of its round, and can still be changed."""
        if self.state != "sending":
            return False
        self.state = "held"
        return True

    def edit(self, request: dict[str, Any] | None) -> None:
        """Change what the answer is drafted from; None is as it came. Raises Gone once it is being answered."""
        if self.state != "open":
            raise Gone(self.words())
        self.edited = None if request == self.params else request

    def held_before(self, answer: Answer) -> bool:
        """sending → held with the answer that is held already: another could not take its place."""
        if self.state != "sending":
            return False
        self.state, self.answer = "held", answer
        return True

    def sent(self, at: float) -> bool:
        """sending or held → answered."""
        if self.state not in ("sending", "held"):
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
        self.in_flight = self.state == "sending" and not self.taken_back
        self.state, self.reason, self.settled_at, self.answer = state, reason, at, None
        return True

    def words(self) -> str:
        """Why it cannot be answered any more."""
        match self.state:
            case "answered" | "sending":
                by = None if self.answer is None else self.answer.by
                who = "" if by is None else f" by {by.credit if by.kind == 'person' and by.credit else 'a ' + by.kind}"
                return f"This was answered already{who}. Yours was not sent."
            case "held":
                return "This is answered, and waits for the other answers of its round."
            case "withdrawn" if self.taken_back:
                return f"{self.reason} {self.fate}"
            case "withdrawn":
                return f"The server took this back{': ' + self.reason if self.reason else ''}. {self.fate}"
            case "expired":
                return f"The time was up, and the server was told. {self.fate}"
            case "lost":
                return f"The connection ended before this was answered. {self.fate}"
            case _:
                return "This is open."

    @property
    def fate(self) -> str:
        """What became of an answer to an ask that was withdrawn, expired or lost."""
        return "An answer was on its way, and may have left." if self.in_flight else "Nothing was sent."

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
        return sampling.admit(params, options)
    return elicitation.admit(params, capabilities, stateless=stateless)


def admit_embedded(
    request: Any, options: Options, capabilities: dict[str, Any]
) -> tuple[str, dict[str, Any], list[Finding]]:
    """Method, params and remarks of a request that came inside a result of 2026-07-28, by the same gates as a direct
    one (R6-35). Raises RpcError for one that may not be put to a person."""
    given = request if isinstance(request, dict) else {}
    method, params = given.get("method"), given.get("params")
    method, params = method if isinstance(method, str) else "", params if isinstance(params, dict) else {}
    if (METHODS | {"roots/list": "roots"}).get(method) not in capabilities:
        raise RpcError(METHOD_NOT_FOUND, f"this client did not declare {method or 'it'}")
    if method == "roots/list":
        return method, params, []
    findings = admit(method, params, options, capabilities, stateless=True)
    return method, params, [*findings, catalogue.elicitation_id()] if "elicitationId" in params else findings


# ----------------------------------------------------------------------------------------- what may be answered

_ACTIONS: dict[AskKind, frozenset[str]] = {
    "form": frozenset({"accept", "decline", "cancel"}),
    "url": frozenset({"accept", "decline", "cancel"}),
    "sampling": frozenset({"respond", "decline"}),
    "roots": frozenset({"accept"}),
}
"""How each kind can be answered; and with an error of the tester's choice, `fail`."""


def fitting(ask: Ask, answer: Answer) -> Answer:
    """The answer as it may leave, whoever gave it. Raises Invalid, with what is wrong by pointer, for one that does
    not fit what was asked for, unless it is `forced`; one that fits is not."""
    if answer.action not in _ACTIONS[ask.kind] and (answer.action != "fail" or answer.error is None):
        words = f"A {ask.kind} cannot be answered with {answer.action!r}."
        raise Invalid(words, {"/action": ["Not possible here."]})
    errors: dict[str, list[str]] = {}
    if answer.result is not None and ask.kind != "roots":
        rules = sampling if ask.kind == "sampling" else elicitation
        errors = rules.misfits(ask.params, answer.result)
    if errors and not answer.forced:
        raise Invalid("The answer does not fit what was asked for.", errors)
    return answer if answer.forced == bool(errors) else replace(answer, forced=bool(errors))


def elicited(ask: Ask, action: str, content: Any, by: AnsweredBy, *, forced: bool = False) -> Answer:
    """An answer to a form or a link."""
    more = {"content": content} if action == "accept" and ask.kind == "form" else {}
    return Answer(action, {"action": action, **more}, None, by, forced)


def sampled(ask: Ask, result: dict[str, Any], by: AnsweredBy, *, forced: bool = False) -> Answer:
    """An answer to a sampling request, as the server sent it or as a person edited it."""
    return Answer("respond", result, None, by, forced, ask.edited)


def roots_result(roots: list[dict[str, str]], by: AnsweredBy) -> Answer:
    """The answer to `roots/list`."""
    return Answer("accept", {"roots": roots}, None, by)


def denial(by: AnsweredBy) -> Answer:
    """A person rejected a sampling request: an error with the code -1 (R3-20)."""
    return Answer("decline", None, RpcError(USER_REJECTED, "User rejected sampling request"), by)


def failure(code: int, message: str, by: AnsweredBy) -> Answer:
    """A tester fails the ask with an error of their choice."""
    return Answer("fail", None, RpcError(code, message), by)


def initials(name: str) -> str:
    """The first letters of the first and the last word of a name."""
    words = name.split()
    return "".join(word[0] for word in (words[:1] + words[1:][-1:])) or "?"


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
