"""Rounds: a call of 2026-07-28 that the server answers with questions, and that is sent again with the answers (R6.C).

One call, several legs. Each `input_required` result is a round: its requests become asks in the inbox, answered in any
order and held until all are; then the same request leaves once more, with a new id, the answers by their keys and the
server's state byte for byte. Who refuses a sampling or the roots abandons the call: this wire has no way to say so.
Testers can send another state than the one they were given, on purpose and visibly. Knows the session it serves and
the inbox; knows nothing of the web.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from app.core import asks
from app.core.asks import Answer, Ask, RpcError
from app.core.calls import Call, Round, StatePlan
from app.core.errors import Gone, Refused
from app.core.json import text as jsontext
from app.core.rules import stateless
from app.core.wire import Finding, RpcId
from app.sessions.identity import Identity

if TYPE_CHECKING:
    from app.protocol.connection import Connection
    from app.protocol.rpc import Outgoing, Reply
    from app.protocol.timeout import Patience
    from app.sessions.session import Session

_PAUSE_SECONDS = 0.1
_PAUSE_AT_MOST = 1.0
"""Between rounds that ask nothing: a server that only wants to be called again must not make us spin."""
MOST_ROUNDS = 1_000


@dataclass(slots=True)
class Outcome:
    """How a call ended on the wire: its last reply, and what kind of result that is."""

    reply: Reply
    kind: stateless.ResultKind
    invalid: str = ""
    """Why it is no valid response, when it is none."""


class Abandoned(Exception):
    """A person said no where the wire has no way to say it: the call is not sent again (R6-34)."""


class Unanswerable(Exception):
    """The server asks for what it may not ask here; nothing is invented in a person's name (R4-03)."""


@dataclass(slots=True)
class _Open:
    """The round that a call is in."""

    asked: dict[str, Ask] = field(default_factory=dict)
    settled: anyio.Event = field(default_factory=anyio.Event)
    """Every request has its answer, or one was refused."""
    left: anyio.Event = field(default_factory=anyio.Event)
    """The answers are on the wire, or will never be."""
    refused: str | None = None
    sent: bool = False


class Rounds:
    """The rounds of one session's calls."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._raised: dict[str, anyio.Event] = {}

    # ---- playing

    async def play(self, call: Call, connection: Connection, patience: Patience, wanted: Outgoing) -> Outcome | None:
        """Send a call and go through its rounds; None when a person abandoned it. Cancelled with the call."""
        params, turn, opened, silent = call.params, None, _Open(), 0  # type: Any, Round | None, _Open, int
        outcome: Outcome | None = None
        call.round_limit = call.round_limit or self._session.limits.rounds
        try:
            while True:
                outcome = await self._leg(call, connection, params, patience, wanted, turn, opened)
                if outcome.kind != "input_required":
                    return outcome
                needed = stateless.input_required(outcome.reply.value["result"])
                turn, opened = self._begin(call, needed, outcome.reply.seq), _Open()
                await self._within_limit(call, turn)
                await self._ask(call, turn, opened, needed, connection)
                silent = 0 if needed.requests else silent + 1
                if silent:
                    await anyio.sleep(min(_PAUSE_SECONDS * 2 ** (silent - 1), _PAUSE_AT_MOST))
                params = self._retry(call, turn)
                call.deadline_at = self._session.wall() + patience.seconds
        except Unanswerable as no:
            if turn is None or outcome is None:
                raise
            turn.outcome = "stopped"
            self._remark(outcome.reply.seq, Finding("R4-03", "must", str(no), "Nothing was invented, nothing sent."))
            return Outcome(outcome.reply, "invalid", str(no))
        except Abandoned as no:
            if turn is not None:
                turn.outcome = "abandoned"
            self._session.calls.abandon(call, str(no))
            return None
        finally:
            self._take_back(opened)

    async def _leg(
        self,
        call: Call,
        connection: Connection,
        params: dict[str, Any] | None,
        patience: Patience,
        wanted: Outgoing,
        turn: Round | None,
        opened: _Open,
    ) -> Outcome:
        """One request and its reply. Headers that do not fit are built anew, once (R6-08)."""

        def sent(rpc_id: RpcId, seq: int) -> None:
            if wanted.on_sent is not None:
                wanted.on_sent(rpc_id, seq)
            if turn is not None:
                self._left(call, turn, opened, seq)

        async def send() -> tuple[Reply, Any, int | None]:
            try:
                reply = await connection.call(call.method, params, replace(wanted, on_sent=sent), patience)
            finally:
                opened.left.set()
            call.legs[-1].reply_seq = reply.seq
            error = reply.value["error"] if reply.is_error else None
            return reply, error, stateless.error_code(error)

        reply, error, code = await send()
        if code == stateless.HEADER_MISMATCH and connection.over_http and call.method == "tools/call":
            self._remark(reply.seq, stateless.header_mismatch(True))
            await self._session.lists.refresh("tools")
            reply, error, code = await send()
        if error is not None:
            finding = stateless.error_finding(code, error)
            if finding is not None:
                self._remark(reply.seq, finding)
            return Outcome(reply, "complete")
        result = reply.value.get("result")
        missing = stateless.missing_result_type(connection.version, result)
        if missing is not None:
            self._remark(reply.seq, missing)
        offered = connection.offered.get("extensions")
        kind, finding = stateless.result_kind(
            call.method, result, tasks_offered=isinstance(offered, dict) and stateless.TASKS in offered
        )
        if finding is not None:
            self._remark(reply.seq, finding)
        if kind == "input_required" and reply.unread is not None:
            # Without all of its requests there is nothing to answer, and an empty retry would be invented.
            return Outcome(reply, "invalid", f"It asks for input, and is too much to read. {reply.unread}")
        return Outcome(reply, kind, "" if finding is None else finding.text)

    def _begin(self, call: Call, needed: stateless.InputRequired, seq: int) -> Round:
        methods = {key: _method(each) for key, each in needed.requests.items()}
        turn = Round(len(call.rounds) + 1, seq, methods, needed.has_state, needed.state)
        for finding in needed.findings:
            self._remark(seq, finding)
        call.rounds.append(turn)
        self._session.changed("call.changed", call.id)
        return turn

    async def _within_limit(self, call: Call, turn: Round) -> None:
        """Stop at the limit until a person raises it, or cancels (R6-31)."""
        while turn.number > call.round_limit:
            raised = self._raised[call.id] = anyio.Event()
            self._session.call_waits(call, True)
            try:
                await raised.wait()
            finally:
                del self._raised[call.id]
            self._session.call_waits(call, False)

    # ---- asking

    async def _ask(
        self, call: Call, turn: Round, opened: _Open, needed: stateless.InputRequired, connection: Connection
    ) -> None:
        """Put every request of a round before people, and wait until each has its answer."""
        admitted = {key: self._admit(key, each, connection) for key, each in needed.requests.items()}
        for key, (method, params, findings) in admitted.items():
            for finding in findings:
                self._remark(turn.reply_seq, finding, key)
            asking, seq = self._session.asks, turn.reply_seq
            ask = asking.new("input-required", method, params, seq, call_id=call.id, about=key)
            turn.asks[key] = ask.id
            if method == "roots/list" and not self._session.options.ask_roots:
                turn.answers[key] = asking.from_the_list(ask).result
                call.asks.append(ask.id)
                continue
            ask.deliver = partial(self._deliver, turn, opened, key, ask)
            opened.asked[key] = ask
        try:
            for ask in opened.asked.values():
                self._session.asks.put(ask)
        except RpcError as full:
            raise Unanswerable(f"{full.message}.") from None
        if opened.asked:
            await opened.settled.wait()
        if opened.refused is not None:
            raise Abandoned(opened.refused)

    def _admit(self, key: str, request: Any, connection: Connection) -> tuple[str, dict[str, Any], list[Finding]]:
        """A request that may be put to a person, by the same gates as a direct one (R6-35)."""
        named = f"The request `{key[:60]}`"
        method, params = _method(request), request.get("params") if isinstance(request, dict) else None
        given = params if isinstance(params, dict) else {}
        if method == "roots/list":
            if "roots" not in connection.offered:
                raise Unanswerable(f"{named} asks for roots, which this client did not declare.")
            return method, given, []
        try:
            findings = asks.admit(method, given, connection.options, connection.offered, stateless=True)
        except RpcError as no:
            why = no.message if no.code != asks.METHOD_NOT_FOUND else f"this client did not declare {method}"
            raise Unanswerable(f"{named} cannot be put to anybody: {why}.") from None
        if "elicitationId" in given:
            findings = [*findings, stateless.elicitation_id()]
        return method, given, findings

    async def _deliver(self, turn: Round, opened: _Open, key: str, ask: Ask, answer: Answer) -> None:
        """Hold an answer until its round is complete; the last one returns when all of them have left."""
        if opened.settled.is_set():
            raise Gone("The answers of this round are on their way already. Yours was not sent.")
        if answer.error is not None:
            # There is no way to send an error here: the call is not sent again, and says so (R6-34).
            opened.refused = _refusal(ask, answer)
            opened.settled.set()
            return
        turn.answers[key] = answer.result or {}
        waiting = [other for other in opened.asked if other not in turn.answers]
        if waiting:
            ask.hold()
            self._session.changed("ask.changed", ask.id)
            self._session.changed("call.changed", ask.call_id or "")
            return
        opened.settled.set()
        await opened.left.wait()
        if not opened.sent:
            raise Gone("The answers could not be sent.")

    def reopen(self, ask: Ask) -> None:
        """Take a held answer back, to give another one. Gone when it is not held."""
        if ask.state != "held" or not ask.reopen():
            raise Gone(ask.words())
        call = self._session.calls.get(ask.call_id or "")
        for turn in call.rounds if call is not None else ():
            for key, aid in turn.asks.items():
                if aid == ask.id:
                    turn.answers.pop(key, None)
        self._session.changed("ask.added", ask.id)
        self._session.changed("call.changed", ask.call_id or "")

    def _take_back(self, opened: _Open) -> None:
        """Whoever is still asked when a call goes no further is not asked any more. Nothing was sent."""
        opened.settled.set()
        opened.left.set()
        for ask in opened.asked.values():
            self._session.asks.take_back(ask, "The call went no further.")

    # ---- sending again

    def _retry(self, call: Call, turn: Round) -> dict[str, Any]:
        """The same request once more, with the answers of this round and its state (R6-31, R6-32)."""
        plan, call.state_plan = call.state_plan, None
        return self.retried(call, turn, plan)

    def retried(self, call: Call, turn: Round, plan: StatePlan | None) -> dict[str, Any]:
        """The params of the retry that follows a round; with a plan, another state than the server's, on purpose."""
        base = {key: value for key, value in (call.params or {}).items() if key not in _OF_A_RETRY}
        params: dict[str, Any] = dict(base)
        if turn.methods:
            params["inputResponses"] = {key: turn.answers[key] for key in turn.methods if key in turn.answers}
        if plan is None or plan.mode == "same":
            if turn.has_state:
                params["requestState"] = turn.state
        elif plan.mode == "change":
            params["requestState"] = plan.value
        elif plan.mode == "older":
            before = [each for each in call.rounds if each.number < turn.number and each.has_state]
            if before:
                params["requestState"] = before[-1].state
        return params

    def _left(self, call: Call, turn: Round, opened: _Open, seq: int) -> None:
        """The retry is on the wire: every answer of its round has left."""
        if not opened.sent:
            opened.sent = True
            turn.retry_seq, turn.outcome = seq, "sent"
            turn.echo = self._echo(call, turn, seq)
            for ask in opened.asked.values():
                self._session.inbox.release(ask)
        opened.left.set()
        self._session.changed("call.changed", call.id)

    def _echo(self, call: Call, turn: Round, seq: int) -> str:
        """What became of the state, read from the bytes that were sent."""
        sent = jsontext.parse(self._session.messages.raw(seq) or b"null").value
        params = sent.get("params") if isinstance(sent, dict) else None
        if not isinstance(params, dict) or "requestState" not in params:
            return "dropped" if turn.has_state else "none"
        state = params["requestState"]
        if turn.has_state and state == turn.state and type(state) is type(turn.state):
            return "same"
        older = any(each.has_state and each.state == state for each in call.rounds if each.number < turn.number)
        return "older" if older else "changed"

    # ---- what a person may change

    def raise_limit(self, call: Call, limit: int) -> None:
        """Let a call go on for more rounds; Gone when it is settled, Refused for a limit that is none."""
        if call.settled:
            raise Gone(f"This call is {call.state} already.")
        if not call.rounds or not call.round_limit <= limit <= MOST_ROUNDS:
            words = f"A number from {call.round_limit} to {MOST_ROUNDS}."
            raise Refused("The limit can only be raised.", {"/limit": [words]})
        call.round_limit = limit
        raised = self._raised.get(call.id)
        if raised is not None:
            raised.set()
        self._session.changed("call.changed", call.id)

    def plan_state(self, call: Call, plan: StatePlan | None) -> None:
        """Say which state the next retry carries; None is the server's own, as it must be."""
        if call.settled:
            raise Gone(f"This call is {call.state} already. Send one of its rounds again instead.")
        call.state_plan = plan
        self._session.changed("call.changed", call.id)

    def resend(self, call: Call, number: int, plan: StatePlan | None, by: Identity) -> Call:
        """Send the retry of an old round again, as a call of its own, to see what the server makes of it."""
        turn = next((each for each in call.rounds if each.number == number), None)
        if turn is None or turn.retry_seq is None:
            raise Refused("There is no such round that was answered.", {"/round": ["Say the number of a round."]})
        again = self._session.start_call(call.method, self.retried(call, turn, plan), by=by)
        again.retry_of = call.id
        return again

    def _remark(self, seq: int, finding: Finding, key: str = "") -> None:
        self._session.messages.remark(seq, finding, about=key)


_OF_A_RETRY = frozenset({"inputResponses", "requestState"})


def _method(request: Any) -> str:
    method = request.get("method") if isinstance(request, dict) else None
    return method if isinstance(method, str) else ""


def _refusal(ask: Ask, answer: Answer) -> str:
    who = "Nobody answered in time" if answer.by.kind == "limit" else f"The {ask.kind} was refused"
    return f"{who}. In {stateless.VERSION} there is no way to tell the server, so the call is not sent again."
