"""What a server asks of the people behind a session: from the request to the inbox, and from an answer to the wire.

Makes asks of plain requests and of receiver tasks, finds the call that caused them, gives each its reply channel, and
takes answers of people and scripts. Nobody answers in a person's name: with no page open an ask waits, unless the
connection's options set a limit. Knows the session it serves and the inbox; knows nothing of the web.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import anyio

from app.core import asks
from app.core.asks import Answer, AnsweredBy, Ask, Deliver, Origin, RpcError
from app.core.calls import Call
from app.core.errors import Gone, Refused
from app.core.inbox import Inbox
from app.core.wire import Finding, Message

if TYPE_CHECKING:
    from app.core.tasks.received import ReceiverTask, ReceiverTasks
    from app.core.tasks.running import ClientTask
    from app.protocol.rpc import Incoming
    from app.sessions.identity import Identity
    from app.sessions.session import Session

_TASKS_KEPT = 1_000
_ASKS_NOTED = 500
"""Asks that a call or a task remembers to have caused."""


class Asks:
    """The asks and receiver tasks of one session, over all its connections."""

    def __init__(self, session: Session, inbox: Inbox) -> None:
        self._session, self.inbox = session, inbox
        self.tasks: OrderedDict[str, ReceiverTask] = OrderedDict()
        """Receiver tasks by our own id, the recent ones also after they left the wire."""
        self._store: ReceiverTasks | None = None

    # ---- from the server

    async def asked(self, request: Incoming) -> None:
        """Put a plain request before people and wait until it is answered, taken back, or lost."""
        done = anyio.Event()
        related = asks.related_task_of(request.params)

        async def deliver(answer: Answer) -> None:
            await request.respond(_payload(answer, related))
            done.set()

        ask = self._of(request, "request", deliver, related_task=related)
        self._add(ask)
        try:
            await done.wait()
        except anyio.get_cancelled_exc_class():
            if request.withdrawn:
                self._end(ask, "withdrawn", request.reason)
            else:
                self._end(ask, "lost", "The connection ended.")
            raise

    async def roots_asked(self, request: Incoming) -> dict[str, Any] | None:
        """Answer from the session's list at once, or, when the options say so, ask (architecture.md §7)."""
        if self._session.options.ask_roots:
            await self.asked(request)
            return None
        answer = self.from_the_list(self._of(request, "request", nobody))
        return asks.with_related_task(answer.result or {}, asks.related_task_of(request.params))

    def from_the_list(self, ask: Ask) -> Answer:
        """Answer an ask for roots at once, from the session's list; it is kept, and nobody is asked."""
        answer = asks.roots_result([root.wire() for root in self._session.roots], AnsweredBy("roots", "from the list"))
        self.inbox.record(ask, answer)
        return answer

    def task_asked(self, request: Incoming, task: ReceiverTask) -> None:
        """Put a task before people; the server polls us for it. RpcError when too many asks are open."""
        store = self._store

        async def deliver(answer: Answer) -> None:
            if store is None or not store.settle(task, answer):
                raise Gone("The task is settled already. Yours was not sent.")

        ask = self._of(request, "receiver-task", deliver, task=task)
        self._add(ask)
        task.ask_id = ask.id
        self.tasks[task.id] = task
        while len(self.tasks) > _TASKS_KEPT:
            self.tasks.popitem(last=False)

    def store(self, notify: Callable[[ReceiverTask], None]) -> ReceiverTasks:
        """A store of receiver tasks for a new connection, with the session's options read whenever they matter."""
        from app.core.tasks.received import ReceiverTasks

        session = self._session
        self._store = ReceiverTasks(
            ttl_ms=lambda: session.options.receiver_task_ttl_ms,
            max_ttl_ms=lambda: session.options.receiver_task_max_ttl_ms,
            poll_interval_ms=lambda: session.options.poll_interval_ms,
            limit=session.limits.receiver_tasks,
            wall=session.wall,
            mono=session.mono,
            notify=notify,
            changed=lambda task: session.changed("task.changed", task.id),
            ended=self._task_ended,
            ids=lambda: f"t{next(session.task_ids)}",
        )
        return self._store

    def completed_elsewhere(self, elicitation_id: Any, message: Message) -> None:
        """The page behind a link says that the person is done there (R4-46)."""
        for ask in self.inbox.asks.values():
            if ask.kind == "url" and ask.params.get("elicitationId") == elicitation_id and not ask.completed_elsewhere:
                ask.completed_elsewhere = True
                self._session.changed("ask.changed", ask.id)
                return
        known = False
        for call in self._session.calls.values():
            for link in call.links:
                if link.elicitation_id == elicitation_id and not link.completed:
                    link.completed = known = True
                    self._session.changed("call.changed", call.id)
        if known:
            return
        finding = Finding("R4-46", "note", "No open link has this elicitation id, or it was done before.", "Ignored.")
        self._session.finding(message.seq, finding)

    def connection_ended(self, number: int, reason: str) -> None:
        """A connection is gone: waiters are released, its asks are lost, nothing is sent (R1-88)."""
        if self._store is not None:
            self._store.close(reason)
            self._store = None
        for ask in self.inbox.open:
            if ask.connection == number:
                self._end(ask, "lost", reason)

    def _task_ended(self, task: ReceiverTask, how: Literal["cancelled", "expired", "lost"], reason: str) -> None:
        ask = self.inbox.asks.get(task.ask_id or "")
        if ask is not None:
            self._end(ask, "withdrawn" if how == "cancelled" else how, reason)

    def put(self, ask: Ask) -> None:
        """Put an ask before people that came by another way than a request; RpcError when too many are open."""
        self._add(ask)

    def take_back(self, ask: Ask, reason: str) -> None:
        """An ask of ours to people that has become pointless: the call behind it goes no further."""
        if not ask.settled:
            ask.taken_back = True
            self._end(ask, "withdrawn", reason)

    def withdraw(self, ask: Ask, reason: str) -> None:
        """The server no longer asks this."""
        self._end(ask, "withdrawn", reason)

    # ---- making asks

    def new(
        self,
        origin: Origin,
        method: str,
        params: dict[str, Any],
        seq: int,
        *,
        deliver: Deliver | None = None,
        call_id: str | None = None,
        candidates: tuple[str, ...] = (),
        task: ReceiverTask | ClientTask | None = None,
        related_task: str | None = None,
        about: str = "",
    ) -> Ask:
        """An ask that nobody has seen yet. `task` is what it ends with, `about` its key where its message asks for
        several things; a channel that needs the ask is set later."""
        session = self._session
        message = session.messages.get(seq)
        return Ask(
            id=self.inbox.next_id(),
            kind=asks.kind_of_ask(method, params),
            origin=origin,
            method=method,
            params=params,
            asked_at=session.wall(),
            message_seq=seq,
            connection=session.info.number,
            deliver=deliver or nobody,
            size=0 if message is None else message.size,
            expires_at=None if task is None else task.expires_at,
            call_id=call_id,
            candidates=candidates,
            task_id=None if task is None else task.id,
            related_task=related_task,
            log=session.messages,
            about=about,
        )

    def _of(
        self,
        request: Incoming,
        origin: Origin,
        deliver: Deliver,
        *,
        task: ReceiverTask | None = None,
        related_task: str | None = None,
    ) -> Ask:
        """An ask of a request of the server, with the call that caused it."""
        session, seq = self._session, request.message.seq
        runs = session.client_tasks.of_wire(asks.related_task_of(request.params))
        causes = self._causes(request, runs)
        call = causes[0] if len(causes) == 1 else None
        return self.new(
            origin,
            request.method,
            request.params,
            seq,
            deliver=deliver,
            call_id=None if call is None else call.id,
            candidates=() if call is not None or runs is not None else tuple(each.id for each in causes if each.legs),
            task=task or runs,
            related_task=related_task,
        )

    def _causes(self, request: Incoming, task: ClientTask | None = None) -> list[Call]:
        """Which call an ask belongs to: that of the task it names, else the one whose POST carried it, else one of
        those that run."""
        if task is not None and (call := self._session.calls.get(task.call_id or "")) is not None and not call.settled:
            return [call]
        running = [call for call in self._session.running if not call.quiet]
        if request.via is not None:
            return [call for call in running if any(leg.rpc_id == request.via for leg in call.legs)][:1]
        return running

    def _add(self, ask: Ask) -> None:
        self.inbox.add(ask)
        task = self._session.client_tasks.tasks.get(ask.task_id or "")
        if task is not None:
            _note(task.asks, ask.id)
        call = self._session.calls.get(ask.call_id or "")
        if call is not None:
            _note(call.asks, ask.id)
            self._session.call_waits(call, True)
        for each in self._may_have_caused(ask):
            self._session.calls.hold(each, True)
        limit = self._session.options.unattended_limit_ms
        if limit is not None:
            self._session.start_soon(self._unattended, ask, limit / 1000)

    async def _unattended(self, ask: Ask, seconds: float) -> None:
        await self._session.until(lambda: ask.settled, seconds, ask.id)
        if ask.state == "open":
            try:
                await self._send(ask, asks.unattended(ask))
            except Gone:
                return

    def _end(self, ask: Ask, how: Literal["withdrawn", "expired", "lost"], reason: str) -> None:
        if self.inbox.end(ask, how, reason):
            self._released(ask)

    def _released(self, ask: Ask) -> None:
        """A call goes on once none of its asks is open, and its time limit once none is that may be its own."""
        call = self._session.calls.get(ask.call_id or "")
        if call is not None and not any(other.call_id == call.id for other in self.inbox.open):
            self._session.call_waits(call, False)
        for each in self._may_have_caused(ask):
            if not any(each.id in other.candidates for other in self.inbox.open):
                self._session.calls.hold(each, False)

    def _may_have_caused(self, ask: Ask) -> list[Call]:
        """The calls still known, one of which caused an ask whose owner the wire does not name."""
        return [call for cid in ask.candidates if (call := self._session.calls.get(cid)) is not None]

    # ---- answers

    async def answer(self, ask: Ask, said: dict[str, Any], by: Identity) -> None:
        """Take an answer of a person or a script, check it, and send it; returns once it has left.

        Refused with the fields that are wrong, unless `force` sends it all the same; Gone when the ask is settled."""
        if ask.state not in ("open", "held"):
            raise Gone(ask.words())
        who = AnsweredBy(by.kind, by.name)
        force = said.get("force") is True
        action = said.get("action")
        if action == "fail":
            answer, errors = asks.failure(*_code_and_message(said), who), {}  # type: Answer, dict[str, list[str]]
        elif ask.kind in ("form", "url") and action in ("accept", "decline", "cancel"):
            answer, errors = asks.elicit_result(ask, action, said.get("content"), who, force=force)
        elif ask.kind == "sampling" and action == "respond":
            if "request" in said:
                self.edit(ask, said["request"])
            answer, errors = asks.sampling_result(ask, said.get("result"), who, force=force)
        elif ask.kind == "sampling" and action == "decline":
            answer, errors = asks.denial(who), {}
        elif ask.kind == "roots" and action == "accept":
            answer, errors = asks.roots_result([root.wire() for root in self._session.roots], who), {}
        else:
            raise Refused(f"A {ask.kind} cannot be answered with {action!r}.", {"/action": ["Not possible here."]})
        if errors:
            raise Refused("The answer does not fit what was asked for.", errors)
        await self._send(ask, answer)

    def edit(self, ask: Ask, request: Any) -> None:
        """Change the request of a sampling before it is used; None is as it came (R3-02). The server hears nothing.

        Refused for what is no sampling request, Gone when the ask is settled."""
        if ask.kind != "sampling":
            raise Refused(f"The request of a {ask.kind} cannot be edited.", {"/request": ["Only a sampling's can."]})
        if request is not None:
            if not isinstance(request, dict):
                raise Refused("A request is an object.", {"/request": ["An object, with messages and maxTokens."]})
            try:
                asks.well_formed(request)
            except RpcError as fault:
                raise Refused("This is no sampling request any more.", {"/request": [fault.message]}) from None
        ask.edit(request)
        self._session.changed("ask.changed", ask.id)

    async def _send(self, ask: Ask, answer: Answer) -> None:
        await self.inbox.answer(ask, answer)
        self._released(ask)


def _note(ids: list[str], aid: str) -> None:
    """Remember an ask with what it belongs to; those that the inbox has long forgotten need not be."""
    ids.append(aid)
    del ids[:-_ASKS_NOTED]


def _payload(answer: Answer, related: str | None) -> dict[str, Any]:
    if answer.error is not None:
        return {"error": answer.error.wire()}
    return {"result": asks.with_related_task(answer.result or {}, related)}


def _code_and_message(said: dict[str, Any]) -> tuple[int, str]:
    code, message = said.get("code", -32603), said.get("message", "Failed on purpose")
    if not isinstance(code, int) or isinstance(code, bool):
        raise Refused("An error needs a whole number as its code.", {"/code": ["A whole number, like -32603."]})
    if not isinstance(message, str):
        raise Refused("An error needs a text as its message.", {"/message": ["A text."]})
    return code, message


async def nobody(_: Answer) -> None:
    """The channel of an ask that nobody waits for, or that has none yet."""
    raise Gone("Nobody waits for this.")
