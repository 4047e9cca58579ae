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
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import anyio

from app import bounds
from app.core import asks, sampling
from app.core.asks import Answer, Ask, Claimant, Deliver, Delivery, Origin
from app.core.calls import Call
from app.core.errors import INTERNAL_ERROR, Conflict, Gone, Invalid, RpcError
from app.core.inbox import Ending, InboxFull
from app.core.rules import catalogue
from app.core.signal import Signal
from app.core.tasks.received import ReceiverTask, ReceiverTasks
from app.core.tasks.running import ClientTask
from app.core.wire import Message
from app.protocol.serving import Incoming
from app.sessions.answerers import Answerer, Audience, Limit, Person, Repeats, Road, RootsList, Rules
from app.sessions.answerers.rules import About

if TYPE_CHECKING:
    from app.sessions.identity import Identity
    from app.sessions.workspace import Workspace

_ACTIONS = ("accept", "decline", "cancel", "respond", "fail")
"""What a list of who did what calls an answer; of what was said it has nothing."""


class Asks:
    """The asks and receiver tasks of one session, over all its connections."""

    def __init__(self, session: Workspace) -> None:
        self._session, self._inbox = session, session.inbox
        self._person = Person(lambda: session.roots)
        self.rules = Rules(
            self.about,
            lambda: [root.wire() for root in session.roots],
            (session.wall, session.mono),
            lambda: session.changed("rules.changed", "rules"),
            session.models.write,
            session.inbox.announce,
        )
        """What is answered the same each time."""
        roots, limit = RootsList(lambda: session.roots, lambda: session.options), Limit(lambda: session.options)
        self.repeats = Repeats(lambda: session.roots)
        """Which calls are answered as another one was."""
        self.audience = Audience()
        """The people in the room, while a presenter lets them answer."""
        self.answerers: list[Answerer] = [roots, self.repeats, self.rules, self.audience, limit, self._person]
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
            self._session.messages.credit(request.message.seq, answer.by.credit)
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
            credit=session.messages.credit,
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
            try:
                if session.gate is not None and ask.rule_id is None and session.crowded():
                    self._inbox.refused += 1
                    raise InboxFull(f"{session.limits.open_asks_per_identity} questions wait for this person already")
                self._inbox.add(ask)
            except InboxFull:
                self.rules.let_go(ask)
                raise
        call = session.calls.get(ask.call_id or "")
        for owner in (session.client_tasks.tasks.get(ask.task_id or ""), call):
            if owner is not None:
                owner.asks = (*owner.asks, ask.id)[-bounds.ASKS_NOTED :]
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

    def about(self, ask: Ask) -> About:
        """What a rule wants to know of an ask: who asks, and which tool was called when."""
        session = self._session
        server, call = session.info.server_info, session.calls.get(ask.call_id or "")
        name = server.get("name") if isinstance(server, dict) else None
        tool = call.params.get("name") if call is not None and isinstance(call.params, dict) else None
        return About(name if isinstance(name, str) else "", tool if isinstance(tool, str) else "")

    # ---- making asks

    def new(
        self,
        origin: Origin,
        method: str,
        params: dict[str, Any],
        seq: int | None,
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
        message = None if seq is None else session.messages.get(seq)
        ask = Ask(
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
            server=session.target_key,
        )
        self._link(ask)
        return ask

    def _link(self, ask: Ask) -> None:
        """Count the rounds of tool use that belong together: those that a request repeats, and those whose results it
        brings (R3-21)."""
        if ask.kind != "sampling" or not ask.params.get("tools"):
            return
        ask.tool_round = sampling.tool_rounds(ask.params) + 1
        wanted = sampling.answered_uses(ask.params)
        for other in reversed(self._inbox.asks.values() if wanted else ()):
            if other.connection == ask.connection and other.answer and wanted & sampling.uses(other.answer.result):
                ask.follows, ask.tool_round = other.id, max(ask.tool_round, other.tool_round + 1)
                break
        if ask.tool_round > bounds.TOOL_ROUNDS and ask.message_seq is not None:
            loop = catalogue.many_tool_rounds(number=ask.tool_round)
            self._session.messages.remark(ask.message_seq, loop, about=ask.about)

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
        """A call goes on once none of its asks is open, and its time limit once none is that may be its own. Whoever
        drafted an answer is done."""
        self._session.models.stop(ask)
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
        self._not_in_other_hands(ask, claimant(by))
        if said.get("action") == "respond" and "request" in said:
            self.edit(ask, said["request"])
        await self._road.send(ask, self._person.says(ask, said, by))
        if (gate := self._session.gate) is not None:
            said_so = next((one for one in _ACTIONS if one == said.get("action")), "answer")
            gate.answered(by, ask.kind, said_so, self._session.target)

    async def give(self, ask: Ask, answer: Answer) -> None:
        """Send an answer that is made already; returns once it has left, or is held. Raises as `answer` does."""
        await self._road.send(ask, answer)

    def touch(self, ask: Ask, *, keep: bool = False, by: Identity | None = None, take_over: bool = False) -> None:
        """Somebody has an ask in hand: no rule and no model answers it until a minute of silence has passed, and none
        at all when they `keep` it. In a team nobody else does either, unless they `take_over`.

        Raises Gone when it is settled, Conflict while somebody else has it."""
        who = None if by is None else claimant(by)
        if not take_over:
            self._not_in_other_hands(ask, who)
        is_new = not ask.claimed_for(self._session.wall()) or ask.claimed_by != who
        self._inbox.claim(ask, inf if keep else bounds.CLAIM_SECONDS, who)
        if is_new and (ask.rule_id is not None or who is not None):
            self._session.start_soon(self._silent, ask, who)

    def let_go(self, ask: Ask) -> None:
        """Whoever had an ask in hand may answer it no longer."""
        if ask.state == "open":
            self._inbox.let_go(ask)

    def _not_in_other_hands(self, ask: Ask, who: Claimant | None) -> None:
        other = ask.claimed_by if ask.state == "open" and ask.claimed_for(self._session.wall()) else None
        if who is not None and other is not None and other.id != who.id:
            raise Conflict(f"{other.name} is answering this. Take over to answer it yourself.")

    async def _silent(self, ask: Ask, who: Claimant | None) -> None:
        """Say so when a person has let go of an ask that a rule will answer, or somebody else may."""
        # Each touch lets it last longer.
        while ask.state == "open" and 0 < (left := ask.claimed_for(self._session.wall())) < inf:  # noqa: ASYNC110
            await anyio.sleep(left)
        if ask.state == "open" and not ask.claimed_for(self._session.wall()) and ask.claimed_by == who:
            self._inbox.announce(ask)

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


def claimant(by: Identity) -> Claimant | None:
    """Who has an ask in hand, by name in a team; local mode has one person."""
    return Claimant(by.id, by.name) if by.role else None
