"""What a server asks of the people behind a session: from the request to the inbox, and from an answer to the wire.

Makes asks of plain requests and of receiver tasks, finds the call that caused them, gives each its reply channel, and
sets all of them, whatever brought them, on the road to whoever answers. Nobody answers in a person's name: with no page
open an ask waits, unless the connection's options set a limit. Knows the session it serves and the inbox; knows nothing
of the web.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import anyio

from app import bounds
from app.core import asks, sampling
from app.core.asks import Answer, Ask, Deliver, Delivery, Origin
from app.core.calls import Call
from app.core.errors import INTERNAL_ERROR, Conflict, Gone, Invalid, RpcError
from app.core.inbox import Ending, InboxFull
from app.core.rules import catalogue
from app.core.signal import Signal
from app.core.tasks.received import ReceiverTask, ReceiverTasks
from app.core.tasks.running import ClientTask
from app.core.wire import Message
from app.protocol.serving import Incoming
from app.sessions.answerers import Answerer, Limit, Person, Road, RootsList

if TYPE_CHECKING:
    from app.sessions.identity import Identity
    from app.sessions.workspace import Workspace


class Asks:
    """The asks and receiver tasks of one session, over all its connections."""

    def __init__(self, session: Workspace) -> None:
        self._session, self._inbox = session, session.inbox
        self._person = Person(lambda: session.roots)
        roots, limit = RootsList(lambda: session.roots, lambda: session.options), Limit(lambda: session.options)
        self.answerers: list[Answerer] = [roots, limit, self._person]
        """Who is asked, in this order."""
        self._road = Road(session.inbox, self.answerers, self._released)
        self.tasks: OrderedDict[str, ReceiverTask] = OrderedDict()
        """Receiver tasks by our own id, the recent ones also after they left the wire."""
        self._store: ReceiverTasks | None = None

    # ---- from the server

    async def asked(self, request: Incoming) -> None:
        """Put a plain request to whoever answers and wait until it is answered, taken back, or lost."""
        done = Signal()

        async def deliver(ask: Ask, answer: Answer) -> Delivery:
            if answer.error is not None:
                await request.respond({"error": answer.error.wire()})
            else:
                await request.respond({"result": asks.with_related_task(answer.result or {}, ask.related_task)})
            done.set()
            return "sent"

        ask = self._of(request, "request", deliver)
        if self._put_or_say(ask):
            await self.hand_over(ask)
            return
        try:
            await done.wait()
        except anyio.get_cancelled_exc_class():
            if request.withdrawn:
                self.end(ask, "withdrawn", request.reason)
            else:
                self.end(ask, "lost", "The connection ended.")
            raise

    def task_asked(self, request: Incoming, task: ReceiverTask) -> None:
        """Put a task to whoever answers; the server polls us for it. Raises RpcError when too many asks are open."""
        store = self._store

        async def deliver(_: Ask, answer: Answer) -> Delivery:
            if store is None or not store.settle(task, answer):
                raise Gone("The task is settled already. Yours was not sent.")
            return "sent"

        ask = self._of(request, "receiver-task", deliver, task)
        if self._put_or_say(ask):
            self._session.start_soon(self.hand_over, ask)
        task.ask_id = ask.id
        self.tasks[task.id] = task
        while len(self.tasks) > bounds.TASKS_KEPT:
            self.tasks.popitem(last=False)

    def store(self, notify: Callable[[ReceiverTask], None]) -> ReceiverTasks:
        """A store of receiver tasks for a new connection, with the session's options read whenever they matter."""
        session = self._session
        self._store = ReceiverTasks(
            options=lambda: session.options,
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
        for ask in self._inbox.asks.values():
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
        self._session.messages.remark(message.seq, catalogue.elicitation_unknown())

    def connection_ended(self, number: int, reason: str) -> None:
        """A connection is gone: waiters are released, its asks are lost, nothing is sent (R1-88)."""
        if self._store is not None:
            self._store.close(reason)
            self._store = None
        for ask in self._inbox.open:
            if ask.connection == number:
                self.end(ask, "lost", reason)

    def _task_ended(self, task: ReceiverTask, how: Literal["cancelled", "expired", "lost"], reason: str) -> None:
        ask = self._inbox.asks.get(task.ask_id or "")
        if ask is not None:
            self.end(ask, "withdrawn" if how == "cancelled" else how, reason)

    def put(self, ask: Ask) -> bool:
        """Set an ask on its road. True when somebody has answered at once, which is then to be handed over; raises
        InboxFull when it has to wait and too many do."""
        session, answer = self._session, self._road.at_once(ask)
        if answer is not None:
            self._inbox.record(ask, answer)
        else:
            self._inbox.add(ask)
        call = session.calls.get(ask.call_id or "")
        for owner in (session.client_tasks.tasks.get(ask.task_id or ""), call):
            if owner is not None:
                owner.asks.append(ask.id)
                del owner.asks[: -bounds.ASKS_NOTED]
        if answer is not None:
            return True
        if call is not None:
            session.calls.waits(call, True)
        for each in self._may_have_caused(ask):
            session.calls.hold(each, True)
        self.consider(ask)
        return False

    async def hand_over(self, ask: Ask) -> None:
        """Send what was said at once; where that fails, the reply channel knows whether it will be asked again."""
        if ask.answer is not None:
            with contextlib.suppress(Conflict):
                await ask.deliver(ask, ask.answer)

    def consider(self, ask: Ask) -> None:
        """Let everybody who answers consider an ask, from the first one on; whoever was at it begins again."""
        self._session.start_soon(self._road.consider, ask)

    def take_back(self, ask: Ask, reason: str) -> None:
        """An ask of ours to people that has become pointless: the call behind it goes no further."""
        if not ask.settled:
            ask.taken_back = True
            self.end(ask, "withdrawn", reason)

    # ---- making asks

    def new(
        self,
        origin: Origin,
        method: str,
        params: dict[str, Any],
        seq: int,
        deliver: Deliver,
        *,
        call_id: str | None = None,
        candidates: tuple[str, ...] = (),
        task: ReceiverTask | ClientTask | None = None,
        related_task: str | None = None,
        about: str = "",
    ) -> Ask:
        """An ask that nobody has seen yet. `task` is what it ends with, `about` its key where its message asks for
        several things."""
        session = self._session
        message = session.messages.get(seq)
        return Ask(
            id=self._inbox.next_id(),
            kind=asks.kind_of_ask(method, params),
            origin=origin,
            method=method,
            params=params,
            asked_at=session.wall(),
            message_seq=seq,
            connection=session.info.number,
            deliver=deliver,
            size=0 if message is None else message.size,
            expires_at=None if task is None else task.expires_at,
            call_id=call_id,
            candidates=candidates,
            task_id=None if task is None else task.id,
            related_task=related_task,
            log=session.messages,
            about=about,
        )

    def _of(self, request: Incoming, origin: Origin, deliver: Deliver, task: ReceiverTask | None = None) -> Ask:
        """An ask of a request of the server, with the call that caused it."""
        related = asks.related_task_of(request.params)
        runs = self._session.client_tasks.of_wire(related)
        causes = self._causes(request, runs)
        call = causes[0] if len(causes) == 1 else None
        return self.new(
            origin,
            request.method,
            request.params,
            request.message.seq,
            deliver,
            call_id=None if call is None else call.id,
            candidates=() if call is not None or runs is not None else tuple(each.id for each in causes if each.legs),
            task=task or runs,
            related_task=related if task is None else None,
        )

    def _causes(self, request: Incoming, task: ClientTask | None) -> list[Call]:
        """Which call an ask belongs to: that of the task it names, else the one whose POST carried it, else one of
        those that run."""
        if task is not None and (call := self._session.calls.get(task.call_id or "")) is not None and not call.settled:
            return [call]
        running = [call for call in self._session.calls.running if not call.quiet]
        if request.via is not None:
            return [call for call in running if any(leg.rpc_id == request.via for leg in call.legs)][:1]
        return running

    def _put_or_say(self, ask: Ask) -> bool:
        try:
            return self.put(ask)
        except InboxFull as full:
            raise RpcError(INTERNAL_ERROR, str(full)) from None

    def end(self, ask: Ask, how: Ending, reason: str) -> None:
        """The server no longer asks this, or hears no answer to it."""
        if self._inbox.end(ask, how, reason):
            self._road.stop(ask)
            self._released(ask)

    def _released(self, ask: Ask) -> None:
        """A call goes on once none of its asks is open, and its time limit once none is that may be its own."""
        call = self._session.calls.get(ask.call_id or "")
        if call is not None and not any(other.call_id == call.id for other in self._inbox.open):
            self._session.calls.waits(call, False)
        for each in self._may_have_caused(ask):
            if not any(each.id in other.candidates for other in self._inbox.open):
                self._session.calls.hold(each, False)

    def _may_have_caused(self, ask: Ask) -> list[Call]:
        """The calls still known, one of which caused an ask whose owner the wire does not name."""
        return [call for cid in ask.candidates if (call := self._session.calls.get(cid)) is not None]

    # ---- answers

    async def answer(self, ask: Ask, said: dict[str, Any], by: Identity) -> None:
        """Take an answer of a person or a script, check it, and send it; returns once it has left.

        Raises Invalid with the fields that are wrong, unless `force` sends it all the same; Gone when it is settled."""
        if ask.state not in ("open", "held"):
            raise Gone(ask.words())
        if said.get("action") == "respond" and "request" in said:
            self.edit(ask, said["request"])
        await self._road.send(ask, self._person.says(ask, said, by))

    def edit(self, ask: Ask, request: Any) -> None:
        """Change the request of a sampling before it is used; None is as it came (R3-02). The server hears nothing.

        Raises Invalid for what is no sampling request, Gone when the ask is settled."""
        if ask.kind != "sampling":
            raise Invalid(f"The request of a {ask.kind} cannot be edited.", {"/request": ["Only a sampling's can."]})
        if request is not None:
            if not isinstance(request, dict):
                raise Invalid("A request is an object.", {"/request": ["An object, with messages and maxTokens."]})
            try:
                sampling.well_formed(request)
            except RpcError as fault:
                raise Invalid("This is no sampling request any more.", {"/request": [fault.message]}) from None
        ask.edit(request)
        self._session.changed("ask.changed", ask.id)
