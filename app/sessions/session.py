"""One session: a workspace with its log and at most one live connection, from connecting to the end.

A session survives reconnects and reloads; everything in it is bounded and ends with it: calls, connection, child
process. It is the `Host` of its connection, and hands what arrives to the room it belongs to.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import anyio
from pydantic import ValidationError

from app import bounds
from app.core.connection import ConnectionInfo, Side, Step
from app.core.errors import Conflict, Invalid, Trouble, ending, own_fault
from app.core.options import LIVE_OPTIONS, Options, Root, misfit
from app.core.rules import catalogue
from app.core.signal import Signal
from app.core.targets import AnyTarget, HttpTarget
from app.core.wire import Message
from app.protocol.connection import Connection
from app.protocol.handshake import Agreed
from app.sessions.identity import PARLEY, Identity
from app.sessions.sign_in import SignIns
from app.sessions.workspace import Workspace

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry

logger = logging.getLogger("parley.sessions")

_ENDED = frozenset({"exit", "closed-stdout"})
"""Troubles of a process that ended, and may have said why."""
_ALONE_SECONDS = 0.01
"""A frame that nobody asked for and that follows another sooner is one of many."""


class Session(Workspace):
    """A workspace that a live connection fills. It is the `Host` of that connection."""

    def __init__(self, sid: str, number: int, owner: Identity, registry: SessionRegistry) -> None:
        super().__init__(sid, number, owner, registry)
        self._connecting: anyio.CancelScope | None = None
        self._ended = Signal()
        self._ended.set()
        self._stderr_mark = 0
        self._probe_anew = False
        self._kept: AnyTarget | None = None
        """What is remembered of a target that has something of this session alone."""
        self._told = float("-inf")
        """Monotonic: when the last frame came that nobody waits for."""
        self._began = self.mono()
        self._reached = False
        """Whether it was ever connected."""

    @property
    def never_connected(self) -> bool:
        # Not when it is Parley that ends: then nobody has anything to type again. Nor when the server wants a sign-in:
        # that goes on here.
        ended = self.info.state in ("lost", "closed") and not self._reached
        return ended and not self._registry.closing and self.sign_in.current is None

    @property
    def lasting_target(self) -> AnyTarget | None:
        return self._kept or self.target

    @property
    def dials(self) -> bool:
        return True

    @property
    def counts(self) -> bool:
        return self.info.state != "lost" and not self.never_connected

    # ---- connecting

    def connect(
        self, target: AnyTarget, options: Options, *, by: Identity, probe: bool = False, kept: AnyTarget | None = None
    ) -> None:
        """Begin to connect and return at once; watch `info.state`. Raises Conflict while connected.

        With `probe` it is found out anew which era the target speaks, whatever is remembered of it. `kept` is what is
        remembered in the place of a target that has something of this session alone."""
        if self.closed:
            raise Conflict("This session is closed.")
        if self.info.state in ("connecting", "ready"):
            raise Conflict("This session is connected already. Disconnect first, or open another session.")
        if self._registry.gate is not None:
            self._registry.gate.connects(by, target)
        if kept is None and target == self.target:
            kept = self._kept
        self.target, self.options, self._kept = target, options, kept
        self.sign_in.connects()
        self._registry.remember(by, kept or target, options)
        self.kept_rules.connecting()
        logger.info("session %s connects over %s, asked by a %s", self.id, target.transport, by.kind)
        self._probe_anew = probe
        self._begin(target, options, None)
        for told in self._registry.when_connecting:
            told(self)

    def _begin(self, target: AnyTarget, options: Options, renewed: str | None) -> None:
        """Begin a connection once the one before is gone. `renewed` says why nobody had to ask for it."""
        self.lists.reset()
        self.resources.reset()
        self.info = ConnectionInfo(
            state="connecting",
            number=self.info.number + 1,
            began_at=self.wall(),
            renewed=renewed,
        )
        given = options.handshake_timeout_ms
        self.waits(self.limits.handshake_seconds if given is None else given / 1000)
        self._stderr_mark = self.stderr.count
        self._began = self.mono()
        if renewed is not None:
            self.step(renewed)
        self.changed("connection.changed", "connection")
        before, self._ended = self._ended, Signal()
        self.start_soon(self._live, self.info, target, options, before, self._ended)

    async def disconnect(self, trouble: Trouble | None = None) -> None:
        """Close the connection; returns when the child is gone. The session and its history stay. With a trouble it is
        not its person who wants that, and they read why."""
        if self.info.state in ("connecting", "ready"):
            self._end_of_connection("closed" if trouble is None else "lost", trouble)
        if self._connecting is not None:
            self._connecting.cancel()
        await self._ended.wait()

    async def _live(
        self, info: ConnectionInfo, target: AnyTarget, options: Options, before: Signal, ended: Signal
    ) -> None:
        """The one task that owns a connection, from opening to end. It begins when the one before is gone."""
        with anyio.CancelScope(shield=True):
            await before.wait()
        try:
            if self.info is not info or info.state != "connecting":
                return
            with anyio.CancelScope() as scope:
                self._connecting = scope
                await self._registry.until_ready()
                known = None if self._probe_anew else await self._registry.known_era(self.owner, target)
                connection = self.connection = Connection(
                    target,
                    options,
                    self,
                    self.messages,
                    self.asks,
                    self.limits,
                    self._registry.egress,
                    open_link=self._registry.open_link,
                    known_era=known,
                    renewed=info.renewed is not None,
                )
                try:
                    trouble = await connection.run()
                except Exception as fault:
                    logger.exception("the connection of session %s failed inside Parley", self.id)
                    trouble = own_fault(fault)
                self.lost(trouble)
        finally:
            self._connecting = None
            self.connection = None
            ended.set()

    def lost(self, trouble: Trouble) -> None:
        """The link has ended by itself; what is left of it is cleaned up after this.

        A connection that was closed meanwhile has no say: the state may already be that of its successor."""
        if self.connection is None:
            return
        before, target = self.info, self.target
        self._end_of_connection("lost", trouble)
        if trouble.kind == "session-gone" and before.ready_at is not None and target is not None and not self.closed:
            lasted = self.wall() - before.ready_at
            if before.renewed is None or lasted >= self.limits.renewed_session_seconds:
                self._begin(target, self.options, f"{trouble.message} So Parley begins a new one.")

    def _end_of_connection(self, state: Literal["lost", "closed"], trouble: Trouble | None) -> None:
        """Say that the connection is over, once; nothing stays running on it."""
        if self.info.state not in ("connecting", "ready"):
            return
        if trouble is not None:
            words = self.stderr.tail(self.limits.stderr_last_words, self._stderr_mark)
            trouble = replace(trouble, last_words=trouble.last_words or words)
            if trouble.kind in _ENDED and not trouble.heading:
                trouble = replace(trouble, heading=ending(trouble, started=self.info.ready_at is not None))
            if self.info.state == "connecting":
                self.step(trouble.message)
        if self.info.state == "ready":
            self._seen_now()
        self.info.state, self.info.trouble = state, trouble
        self.info.ended_at, self.info.pid = self.wall(), None
        self.info.deadline_at = self.info.waits = None
        self.connection = None
        self.asks.connection_ended(self.info.number, "" if trouble is None else trouble.message)
        message = "The connection was closed." if trouble is None else f"The connection was lost: {trouble.message}"
        self.calls.connection_ended(message)
        self.client_tasks.connection_ended()
        self.subscriptions.connection_ended(trouble is None)
        self.lists.connection_ended()
        self.resources.connection_ended()
        self.pings.stop()
        self.changed("connection.changed", "connection")

    # ---- what the connection tells us (its Host)

    @property
    def credentials(self) -> SignIns | None:
        """How it proves who it is to a server over HTTP."""
        return self.sign_in if isinstance(self.target, HttpTarget) else None

    def signed_in(self) -> None:
        """There is a token: what failed for the want of one is tried again, by itself."""
        trouble, target = self.info.trouble, self.target
        wanted = trouble is not None and trouble.kind in ("http-401", "http-403")
        if self.info.state == "lost" and wanted and target is not None and not self.closed:
            self._begin(target, self.options, None)

    def heard(self, message: Message) -> None:
        """A frame came in. What somebody waits for, and what comes alone, gets a moment in which the bulk of others
        rests."""
        awaited = message.answers is not None and not message.quiet
        if not awaited:
            before, self._told = self._told, self.mono()
            awaited = self._told - before >= _ALONE_SECONDS
        if awaited:
            self.moment()

    def moved(self, url: str | None) -> None:
        """Where the server redirected us to; None where a link begins."""
        self.info.moved_to = url

    def stream_changed(self, words: str) -> None:
        """What became of the stream on which an HTTP server speaks unasked."""
        self.info.stream = words
        self.changed("connection.changed", "connection")

    def others_wait(self) -> bool:
        """Whether somebody waits for another session right now."""
        return self._registry.attention.beside(self.id)

    def stderr_line(self, line: bytes) -> None:
        """Keep one line of the server's stderr."""
        self.stderr.write(line)

    def step(
        self,
        text: str,
        *,
        side: Side = "parley",
        seq: int | None = None,
        code: str | None = None,
        expected: bool = False,
    ) -> None:
        """Say one step of how the connection came about."""
        if len(self.info.steps) < bounds.STEPS:
            after = (self.mono() - self._began) * 1000
            self.info.steps.append(Step(after, text, side, seq, code, self.info.starts, expected))
        self.changed("connection.changed", "connection")

    def opened(self, transport: str, pid: int | None) -> None:
        """The link is open; the handshake begins."""
        self.info.transport, self.info.pid = transport, pid
        self.messages.link_opened()
        # A second start speaks for itself: the words of the first are not its last words.
        if pid is not None and self.info.starts:
            self.stderr.set_aside(self._stderr_mark)
        self.info.starts += 1
        self._stderr_mark = self.stderr.count
        self.stderr.probe_over(at_once=True)
        label = "" if self.target is None else self.target.label
        self.step(f"Started {label}" if pid is not None else f"Dialled {label}")

    def waits(self, seconds: float) -> None:
        """From now on, the server has so long to answer."""
        self.info.waits, self.info.deadline_at = seconds, self.wall() + seconds
        self.changed("connection.changed", "connection")

    def probed(self) -> None:
        """A `server/discover` leaves."""
        self.stderr.probe_sent()

    def ready(self, agreed: Agreed) -> None:
        """The handshake is over: the connection can be used."""
        info, now = self.info, self.wall()
        if info.state != "connecting":
            return
        info.state, info.era, info.protocol_version = "ready", agreed.envelope.wire.era, agreed.version
        info.era_from = agreed.era_from
        self.stderr.probe_over()
        if self.target is not None and agreed.era_from in ("memory", "probe"):
            self._registry.learned_era(self.owner, self.target, agreed.envelope.wire.era)
        info.server_info, info.server_capabilities = agreed.server_info, agreed.server_capabilities
        info.client_capabilities, info.instructions = agreed.client_capabilities, agreed.instructions
        info.ready_at, info.deadline_at, info.waits = now, None, None
        info.connect_ms = (self.mono() - self._began) * 1000
        self._reached = True
        self._seen_now()
        self.step("Ready")
        self.lists.connected()
        self.client_tasks.connected()
        self.subscriptions.connected()
        self._say_log_level()

    def listed(self, name: str, count: int) -> None:
        """Remember how many tools the server has, for the list of servers."""
        if name == "tools":
            self._seen_now(count)

    def _seen_now(self, tools: int | None = None) -> None:
        """Remember what the target leads to."""
        lasting = self.lasting_target
        if lasting is not None:
            known = isinstance(self.info.server_info, dict)
            name, revision = self.label if known else "", self.info.protocol_version or ""
            self._registry.reached(self.owner, lasting, name, revision, tools)

    def notified(self, method: str, params: dict[str, Any], message: Message) -> None:
        """A notification arrived: log lines go to the call that runs, list changes to the listing."""
        if self.subscriptions.notified(method, params, message):
            return
        if method == "notifications/message":
            if not self.wire.sets_log_level and not self.calls.wants_logs:
                self.messages.remark(message.seq, catalogue.unasked_log())
            self.calls.logged(params, message.size)
            self.server_log.write(params, message.seq, message.at)
        elif method == "notifications/resources/updated":
            self.resources.notified(params)
        elif self.client_tasks.wire is not None and method == self.client_tasks.wire.notification:
            self.client_tasks.notified(params, message)
        elif method == "notifications/elicitation/complete":
            self.asks.completed_elsewhere(params.get("elicitationId"), message)
        else:
            self.lists.notified(method, message.seq)

    # ---- roots and options

    async def set_roots(self, roots: list[Root]) -> None:
        """Replace the list, and tell a server that was promised to hear of it (R5-20)."""
        if len(roots) > self.limits.roots:
            raise Invalid(f"At most {self.limits.roots} roots.", {"/roots": ["Too many."]})
        self.roots = list(roots)
        self.changed("roots.changed", "roots")
        if self.connection is not None and self.info.state == "ready" and self.options.roots and self.wire.roots_change:
            await self.connection.notify("notifications/roots/list_changed", None)

    async def change_options(self, changes: dict[str, Any]) -> None:
        """Change what the handshake did not say; raises Invalid, with the fields, for what it did say."""
        live = self.info.state in ("connecting", "ready")
        fixed = {key for key in changes if live and key in Options.model_fields and key not in LIVE_OPTIONS}
        if fixed:
            raise Invalid(
                "These options were said in the handshake. Reconnect to change them.",
                {f"/{key}": ["Fixed while connected."] for key in sorted(fixed)},
            )
        try:
            self.options = Options.model_validate({**self.options.model_dump(), **changes})
        except ValidationError as fault:
            fields: dict[str, list[str]] = {}
            for error in fault.errors(include_url=False, include_input=False):
                fields.setdefault("/" + "/".join(str(part) for part in error["loc"]), []).append(misfit(error))
            raise Invalid("These options cannot be used.", fields) from None
        if self.connection is not None:
            self.connection.options = self.options
        self.changed("options.changed", "options")
        if "log_level" in changes:
            self._say_log_level()

    def _say_log_level(self) -> None:
        """Tell a server that can be told which log messages are wanted, when the options say so."""
        level = self.options.log_level
        able = self.info.state == "ready" and self.info.offers("logging") and self.wire.sets_log_level
        if level is not None and able:
            self.start_call("logging/setLevel", {"level": level}, quiet=True, by=PARLEY)

    # ---- end

    async def close(self) -> None:
        """End the connection and forget nothing that a reader still holds; afterwards nobody finds it."""
        self.closed = True
        self.sign_in.end()
        await self.disconnect()
        await super().close()

    def _failed(self, trouble: Trouble) -> None:
        """Say that Parley failed here, and end the connection: nobody knows what it was in the middle of."""
        try:
            self._end_of_connection("lost", trouble)
        except Exception:
            logger.exception("session %s could not end its connection in order", self.id)
            self.info.state = "lost"
        self.info.trouble = trouble
        if self._connecting is not None:
            self._connecting.cancel()
        self.changed("connection.changed", "connection")
