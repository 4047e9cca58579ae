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

from app import bounds
from app.core import asks
from app.core.asks import Answer, Ask, Claimant, Delivery
from app.core.calls import Call, CallError, Round, StatePlan
from app.core.errors import Conflict, Gone, Invalid, RpcError
from app.core.inbox import InboxFull
from app.core.rules import catalogue, stateless
from app.core.signal import Signal
from app.core.unfinished import Unfinished
from app.core.wire import Finding, RpcId
from app.protocol.connection import Connection
from app.protocol.requests import Outgoing, Reply
from app.protocol.timeout import CallTimeout
from app.sessions.identity import Identity

if TYPE_CHECKING:
    from app.sessions.workspace import Workspace

_ON_THEIR_WAY = "The answers of this round are on their way already. Yours was not sent."


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
    """The round that a call is in: who is asked, and how far it has come."""

    turn: Round
    asks: dict[str, Ask] = field(default_factory=dict)
    answered: Signal = field(default_factory=Signal)
    """Every request has its answer, or one was refused."""
    left: Signal = field(default_factory=Signal)
    """The answers are on the wire, or will never be."""
    refused: str | None = None
    echo: str = "none"


class Rounds:
    """The rounds of one session's calls."""

    def __init__(self, session: Workspace) -> None:
        self._session = session
        self._over: list[Round] = []
        """Rounds that are over and whose state is kept, the oldest first."""
        self._over_bytes = 0

    # ---- playing

    async def play(
        self,
        call: Call,
        connection: Connection,
        timeout: CallTimeout,
        wanted: Outgoing,
        begun: Unfinished | None = None,
    ) -> Outcome | None:
        """Send a call and go through its rounds; None when a person abandoned it. Cancelled with the call. With `begun`
        it is in a round already, which another connection brought: nothing is sent before that is answered."""
        params, opened, silent = call.params, None, 0  # type: Any, _Open | None, int
        call.round_limit = call.round_limit or self._session.limits.rounds
        try:
            while True:
                outcome: Outcome | None = None
                if begun is not None:
                    needed, begun = begun.needed(), None
                else:
                    outcome = await self._leg(call, connection, params, timeout, wanted, opened)
                    if outcome.kind != "input_required":
                        return outcome
                    needed = stateless.input_required(outcome.reply.value["result"])
                opened = self._begin(call, needed, None if outcome is None else outcome.reply.seq)
                await self._within_limit(call, opened.turn)
                try:
                    await self._ask(call, opened, needed, connection)
                except Unanswerable as no:
                    opened.turn.outcome = "stopped"
                    if outcome is None:
                        self._session.calls.fail(call, CallError(None, str(no), kind="invalid"))
                        return None
                    self._session.messages.remark(outcome.reply.seq, catalogue.unanswerable(why=no))
                    return Outcome(outcome.reply, "invalid", str(no))
                except Abandoned as no:
                    opened.turn.outcome = "abandoned"
                    self._session.calls.abandon(call, str(no))
                    return None
                silent = 0 if needed.requests else silent + 1
                if silent:
                    await anyio.sleep(min(bounds.ROUND_PAUSE_SECONDS * 2 ** (silent - 1), bounds.ROUND_PAUSE_AT_MOST))
                plan, call.state_plan = call.state_plan, None
                params, opened.echo = self.retried(call, opened.turn, plan)
                call.deadline_at = self._session.wall() + timeout.seconds
        finally:
            if opened is not None:
                self._end(opened)

    async def _leg(
        self,
        call: Call,
        connection: Connection,
        params: dict[str, Any] | None,
        timeout: CallTimeout,
        wanted: Outgoing,
        opened: _Open | None,
    ) -> Outcome:
        """One request and its reply. Headers that do not fit are built anew, once (R6-08)."""

        def sent(rpc_id: RpcId, seq: int) -> None:
            if wanted.on_sent is not None:
                wanted.on_sent(rpc_id, seq)
            if opened is not None:
                self._left(call, opened, seq)

        async def send() -> tuple[Reply, Any, int | None]:
            try:
                reply = await connection.call(call.method, params, replace(wanted, on_sent=sent), timeout)
            finally:
                if opened is not None:
                    opened.left.set()
            call.legs[-1].reply_seq = reply.seq
            error = reply.value["error"] if reply.is_error else None
            return reply, error, stateless.error_code(error)

        reply, error, code = await send()
        if code == stateless.HEADER_MISMATCH and connection.over_http and call.method == "tools/call":
            self._session.messages.remark(reply.seq, catalogue.header_mismatch())
            await self._session.lists.refresh("tools")
            reply, error, code = await send()
        if error is not None:
            self._session.messages.remark(reply.seq, *stateless.error_findings(code, error))
            return Outcome(reply, "complete")
        result = reply.value.get("result")
        self._session.messages.remark(reply.seq, *stateless.missing_result_type(connection.version, result))
        offered = connection.offered.get("extensions")
        kind, finding = stateless.result_kind(
            call.method, result, tasks_offered=isinstance(offered, dict) and stateless.TASKS in offered
        )
        if finding is not None:
            self._session.messages.remark(reply.seq, finding)
        if kind == "input_required" and reply.unread is not None:
            # Without all of its requests there is nothing to answer, and an empty retry would be invented.
            return Outcome(reply, "invalid", f"It asks for input, and is too much to read. {reply.unread}")
        return Outcome(reply, kind, "" if finding is None else finding.text)

    def _begin(self, call: Call, needed: stateless.InputRequired, seq: int | None) -> _Open:
        methods = {key: _method(each) for key, each in needed.requests.items()}
        turn = Round(len(call.rounds) + 1, seq, methods, needed.has_state, needed.state)
        if seq is not None:
            self._session.messages.remark(seq, *needed.findings)
        call.rounds += (turn,)
        self._session.changed("call.changed", call.id)
        return _Open(turn)

    async def _within_limit(self, call: Call, turn: Round) -> None:
        """Stop at the limit until a person raises it, or cancels (R6-31)."""
        if turn.number > call.round_limit:
            self._session.calls.waits(call, True)
            await self._session.until(lambda: turn.number <= call.round_limit, None, call.id)
            self._session.calls.waits(call, False)

    # ---- asking

    async def _ask(self, call: Call, opened: _Open, needed: stateless.InputRequired, connection: Connection) -> None:
        """Put every request of a round to whoever answers, and wait until each has its answer."""
        session, turn = self._session, opened.turn
        admitted = {key: _admit(key, each, connection) for key, each in needed.requests.items()}
        for key, (method, params, findings) in admitted.items():
            if turn.reply_seq is not None:
                session.messages.remark(turn.reply_seq, *findings, about=key)
            deliver = partial(self._deliver, opened, key)
            ask = session.asks.new(
                "input-required", method, params, turn.reply_seq, deliver, call_id=call.id, about=key
            )
            opened.asks[key], turn.asks[key] = ask, ask.id
        try:
            for ask in opened.asks.values():
                if session.asks.put(ask):
                    await session.asks.hand_over(ask)
        except InboxFull as full:
            raise Unanswerable(f"{full}.") from None
        if opened.asks:
            await opened.answered.wait()
        if opened.refused is not None:
            raise Abandoned(opened.refused)

    async def _deliver(self, opened: _Open, key: str, ask: Ask, answer: Answer) -> Delivery:
        """Hold an answer until its round is complete; the last one returns when all of them have left."""
        if opened.answered.is_set():
            raise Conflict(_ON_THEIR_WAY)
        if answer.error is not None:
            # There is no way to send an error here: the call is not sent again, and says so (R6-34).
            opened.refused = _refusal(ask, answer)
            opened.answered.set()
            return "sent"
        opened.turn.answers[key] = answer.result or {}
        if all(each in opened.turn.answers for each in opened.asks):
            opened.answered.set()
            if not ask.recorded:
                await opened.left.wait()
                if opened.turn.outcome != "sent":
                    raise Gone("The answers could not be sent.")
                return "sent"
        self._session.changed("call.changed", ask.call_id or "")
        return "held"

    def reopen(self, ask: Ask, by: Claimant | None = None) -> None:
        """Take a held answer back, to give another one. Raises Gone when it is not held, or its round is complete."""
        call = self._session.calls.get(ask.call_id or "")
        turn = next((each for each in call.rounds if ask.id in each.asks.values()), None) if call is not None else None
        if turn is not None and ask.state == "held" and turn.asks.keys() <= turn.answers.keys():
            raise Gone(_ON_THEIR_WAY)
        self._session.inbox.reopen(ask, by)
        if turn is not None:
            turn.answers = {key: answer for key, answer in turn.answers.items() if turn.asks.get(key) != ask.id}
        self._session.changed("call.changed", ask.call_id or "")
        self._session.asks.consider(ask)

    def _end(self, opened: _Open) -> None:
        """Whoever is still asked when a call goes no further is not asked any more. Nothing was sent."""
        opened.answered.set()
        opened.left.set()
        for ask in opened.asks.values():
            self._session.asks.take_back(ask, "The call went no further.")
        if opened.turn.outcome != "sent":
            self._keep_state(opened.turn)

    def _keep_state(self, turn: Round) -> None:
        """Keep the state of a round that is over, to be sent again; the oldest of the session are forgotten."""
        limits, over = self._session.limits, self._over
        if turn.has_state:
            over.append(turn)
        self._over_bytes += turn.state_bytes or 0
        while len(over) > limits.round_states or self._over_bytes > limits.round_state_bytes:
            oldest = over.pop(0)
            self._over_bytes -= oldest.state_bytes or 0
            oldest.forget_state()

    # ---- sending again

    def retried(self, call: Call, turn: Round, plan: StatePlan | None) -> tuple[dict[str, Any], str]:
        """The same request once more, with the answers of a round and its state (R6-31, R6-32), and what became of the
        state: with a plan it is another than the server's, on purpose."""
        params = {key: value for key, value in (call.params or {}).items() if key not in _OF_A_RETRY}
        if turn.methods:
            params["inputResponses"] = {key: turn.answers[key] for key in turn.methods if key in turn.answers}
        older = [each.state for each in call.rounds if each.number < turn.number and each.state_kept]
        mode = "same" if plan is None else plan.mode
        if mode == "same" and turn.has_state:
            params["requestState"] = turn.state
        elif mode == "change" and plan is not None:
            params["requestState"] = plan.value
        elif mode == "older" and older:
            params["requestState"] = older[-1]
        if "requestState" not in params:
            return params, "dropped" if turn.has_state else "none"
        state = params["requestState"]
        if turn.has_state and state == turn.state and type(state) is type(turn.state):
            return params, "same"
        return params, "older" if state in older else "changed"

    def _left(self, call: Call, opened: _Open, seq: int) -> None:
        """The retry is on the wire: every answer of its round has left."""
        turn = opened.turn
        if turn.outcome != "sent":
            turn.retry_seq, turn.outcome, turn.echo = seq, "sent", opened.echo
            for ask in opened.asks.values():
                self._session.inbox.sent(ask)
            self._keep_state(turn)
        opened.left.set()
        self._session.changed("call.changed", call.id)

    # ---- what a person may change

    def raise_limit(self, call: Call, limit: int) -> None:
        """Let a call go on for more rounds. Raises Conflict when it is settled, Invalid for a limit that is none."""
        if call.settled:
            raise Conflict(f"This call is {call.state} already.")
        most = self._session.limits.most_rounds
        if not call.rounds or not call.round_limit <= limit <= most:
            words = f"A number from {call.round_limit} to {most}."
            raise Invalid("The limit can only be raised.", {"/limit": [words]})
        call.round_limit = limit
        self._session.changed("call.changed", call.id)

    def plan_state(self, call: Call, plan: StatePlan | None) -> None:
        """Say which state the next retry carries; None is the server's own, as it must be."""
        if call.settled:
            raise Conflict(f"This call is {call.state} already. Send one of its rounds again instead.")
        call.state_plan = plan
        self._session.changed("call.changed", call.id)

    def resend(self, call: Call, number: int, plan: StatePlan | None, by: Identity) -> Call:
        """Send the retry of an old round again, as a call of its own, to see what the server makes of it."""
        turn = next((each for each in call.rounds if each.number == number), None)
        if turn is None or turn.retry_seq is None:
            raise Invalid("There is no such round that was answered.", {"/round": ["Say the number of a round."]})
        if turn.has_state and not turn.state_kept and (plan is None or plan.mode == "same"):
            raise Invalid("The state of this round is no longer kept.", {"/state": ["Send another, or none."]})
        again = self._session.start_call(call.method, self.retried(call, turn, plan)[0], by=by)
        again.retry_of = call.id
        return again


_OF_A_RETRY = frozenset({"inputResponses", "requestState"})


def _method(request: Any) -> str:
    method = request.get("method") if isinstance(request, dict) else None
    return method if isinstance(method, str) else ""


def _admit(key: str, request: Any, connection: Connection) -> tuple[str, dict[str, Any], list[Finding]]:
    try:
        return asks.admit_embedded(request, connection.options, connection.offered)
    except RpcError as no:
        raise Unanswerable(f"The request `{key[:60]}` cannot be put to anybody: {no.message}.") from None


def _refusal(ask: Ask, answer: Answer) -> str:
    who = "Nobody answered in time" if answer.by.kind == "limit" else f"The {ask.kind} was refused"
    return f"{who}. In {stateless.VERSION} there is no way to tell the server, so the call is not sent again."
