"""One live connection to one server: opening, handshake, calls, answers, end.

Owns the order of a connection's life; one task enters and leaves everything in it, other tasks call it. The layers,
from the wire up: a link (transports.py), JSON-RPC over it (rpc.py), the SDK's `ClientSession` on top, which stamps
what an era wants on each request. Results pass the session raw: what does not conform is shown, and judged here by
the SDK's own tables as a finding. Knows the session it serves only as a `Host`.

Two eras. Revisions up to 2025-11-25 shake hands with `initialize`; 2026-07-28 has no handshake: `server/discover` says
what the server is, and each request carries the rest (stateless.py). `auto` finds out which one a server speaks, and
says step by step how.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import anyio.abc
import mcp_types as t
from mcp.client.session import ClientSession
from mcp_types import methods
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)
from pydantic import ValidationError

from app import __version__
from app.core.asks import METHODS, admit
from app.core.connection import Era, EraFrom, Side
from app.core.errors import METHOD_NOT_FOUND, RpcError, Trouble
from app.core.json.text import THREAD_ABOVE
from app.core.lane import apart
from app.core.options import Options
from app.core.rules import checks, stateless
from app.core.targets import AnyTarget
from app.core.tasks.received import AWAITING, TASK_METHODS, ReceiverTask, ReceiverTasks
from app.core.wire import Finding, Message, RpcId
from app.egress import Egress
from app.protocol.envelope import (
    Envelope,
    FallBack,
    ParamHeaders,
    TryVersion,
    sift_tools,
    speaks_modern,
    verdict_on_error,
    verdict_on_trouble,
    verdict_on_versions,
)
from app.protocol.links.base import Link, LinkError, LinkHost, RequestLost
from app.protocol.links.stdio import open_link
from app.protocol.rpc import Answered, Incoming, Outgoing, RawReply, Recorder, Reply, Rpc, outgoing
from app.protocol.timeout import OutOfTime, Patience
from app.settings import Limits

OLDER_TRANSPORT = frozenset({"http-400", "http-404", "http-405"})
"""What a server of the older HTTP with SSE says to a POST it does not know (R5-47)."""
CLIENT_INFO = {"name": "parley", "title": "Parley", "version": __version__}
_JUDGED = 500
LONG_METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that may take long, so they carry a progress token."""
_NOT_OPEN = Trouble("lost", "The connection is not open.", "Connect first.")
_CLOSED = Trouble("closed", "The connection was closed.")
_COURTESY_SECONDS = 1.0
"""How long a `notifications/cancelled` may take to leave before we stop caring."""


class Host(LinkHost, Recorder, Protocol):
    """What a connection needs of the session it belongs to, besides what its link and its JSON-RPC need."""

    def step(self, text: str, *, side: Side = "parley", seq: int | None = None, code: str | None = None) -> None:
        """Say one step of how the connection came about."""
        ...

    def opened(self, transport: str, pid: int | None) -> None:
        """The link is open; the handshake begins."""
        ...

    def waits(self, seconds: float) -> None:
        """From now on, the server has so long to answer."""
        ...

    def probed(self) -> None:
        """A `server/discover` leaves: what a server of the older era says of it on stderr is our doing."""
        ...

    def ready(self, agreed: Agreed) -> None:
        """The handshake is over."""
        ...

    def lost(self, trouble: Trouble) -> None:
        """The link of a ready connection has ended by itself."""
        ...

    def notified(self, method: str, params: dict[str, Any], message: Message) -> None:
        """A notification arrived; called in the order of the wire."""
        ...

    async def asked(self, request: Incoming) -> None:
        """The server asks something; returns when it is answered. Cancelled when the server takes it back."""
        ...

    def task_asked(self, request: Incoming, task: ReceiverTask) -> None:
        """The server asks a person by a task, and polls. RpcError when there are too many asks."""
        ...

    def receiver_tasks(self, notify: Callable[[ReceiverTask], None]) -> ReceiverTasks:
        """A store for the tasks of this connection."""
        ...


@dataclass(slots=True, frozen=True)
class Agreed:
    """What the handshake settled."""

    version: str
    server_info: Any
    server_capabilities: Any
    client_capabilities: dict[str, Any]
    instructions: str | None
    era: Era = "legacy"
    era_from: EraFrom = "options"


@dataclass(slots=True)
class _Probe:
    """One `server/discover`, from its sending to its answer, however late that comes."""

    envelope: Envelope
    answered: anyio.Event = field(default_factory=anyio.Event)
    reply: Reply | None = None
    fault: LinkError | None = None

    @property
    def speaks(self) -> bool:
        """Whether the answer is there, and shows a server of 2026-07-28."""
        return self.reply is not None and speaks_modern(self.reply.value, self.envelope.version)


class AnyRequest(t.Request[dict[str, Any] | None, str]):
    """A request with any method and any params, so that the SDK's session stamps it and leaves the rest alone."""

    method: str
    params: dict[str, Any] | None = None


def client_capabilities(options: Options, version: str) -> dict[str, Any]:
    """What we offer a server: what the options say, as far as the revision has it."""
    offered: dict[str, Any] = {}
    no_handshake = stateless.is_modern(version)
    if options.roots:
        offered["roots"] = {} if no_handshake else {"listChanged": True}
    if options.sampling:
        offered["sampling"] = {}
        if version >= "2025-11-25":
            if options.sampling_tools:
                offered["sampling"]["tools"] = {}
            if options.sampling_context:
                offered["sampling"]["context"] = {}
    if version >= "2025-11-25":
        modes: dict[str, Any] = {mode: {} for mode in ("form", "url") if getattr(options, f"elicitation_{mode}")}
        if modes:
            offered["elicitation"] = modes
    elif version >= "2025-06-18" and options.elicitation_form:
        offered["elicitation"] = {}
    if options.receiver_tasks and version >= "2025-11-25" and not no_handshake:
        requests: dict[str, Any] = {}
        if "sampling" in offered:
            requests["sampling"] = {"createMessage": {}}
        if "elicitation" in offered:
            requests["elicitation"] = {"create": {}}
        if requests:
            offered["tasks"] = {"list": {}, "cancel": {}, "requests": requests}
    wanted = {stateless.TASKS: {}, **options.extensions} if no_handshake else options.extensions
    extensions = {name: value for name, value in wanted.items() if value is not None}
    if extensions:
        offered["extensions"] = extensions
    return offered


class Connection:
    """One link, from opening to end. `run` lives as long as it does."""

    def __init__(
        self,
        target: AnyTarget,
        options: Options,
        host: Host,
        limits: Limits,
        egress: Egress,
        *,
        known_era: Era | None = None,
        renewed: bool = False,
    ) -> None:
        self._target, self._host, self._limits, self._egress = target, host, limits, egress
        self.options = options
        self._known_era = known_era
        """What this command spoke the last time."""
        self._renewed = renewed
        """The server forgot the session of the connection before, so the first request is `initialize` (R5-45)."""
        self._era_from: EraFrom = "options"
        self._probe_sent = False
        self._decided = False
        """The server itself has said why it is not to be spoken to: another start would hear the same."""
        self._probing = False
        """The answer to the probe is all that is waited for."""
        self._transport = target.transport
        self._envelope: Envelope | None = None
        self._tool_headers: dict[str, ParamHeaders] = {}
        self._link: Link
        self._rpc: Rpc | None = None
        self._session: ClientSession | None = None
        self._version: str | None = None
        self.offered: dict[str, Any] = {}
        """The capabilities we declared."""
        self.tasks: ReceiverTasks | None = None
        """The tasks we execute for the server, when the revision has them and we declared it."""

    # ---- life

    async def run(self) -> Trouble:
        """Open, shake hands, stay until the link ends; why it ended. Cancelling this closes the connection.

        A server that refuses the POST of streamable HTTP may speak the older transport (R5-47)."""
        trouble = await self._attempt(self._target)
        if self._version is None and self._target.transport == "http" and trouble.kind in OLDER_TRANSPORT:
            self._host.step("The server took no POST there, so perhaps it speaks the older HTTP with SSE.")
            older = await self._attempt(self._target.model_copy(update={"transport": "sse"}))
            if self._version is not None:
                return older
        if self._version is None and self._target.transport == "stdio" and self._probe_sent and not self._decided:
            # Some servers end on whatever comes before `initialize`, and some hang; the next start is not disturbed.
            self._host.step(trouble.message)
            self._host.step("It is started once more, without a probe, and spoken to in the older era.")
            return await self._attempt(self._target, probing=False)
        return trouble

    async def _attempt(self, target: AnyTarget, *, probing: bool = True) -> Trouble:
        info = t.Implementation(name="parley", version=__version__)
        self._transport = target.transport
        try:
            async with open_link(target, self._limits, self._egress, self._host) as link:
                self._host.opened(target.transport, link.pid)
                rpc = self._rpc = Rpc(link, self._host, self._limits, answer=self._answer, notified=self._host.notified)
                self._link = link
                async with ClientSession(dispatcher=rpc, client_info=info) as session:
                    self._session = session
                    trouble = await self._handshake(probing)
                    if trouble is None:
                        await rpc.closed.wait()
                        # Said before the child is ended, which may take seconds.
                        self._host.lost(rpc.trouble or _CLOSED)
                    elif rpc.closed.is_set():
                        trouble = rpc.trouble
                return trouble or rpc.trouble or _CLOSED
        except LinkError as fault:
            return fault.trouble

    # ---- which era

    async def _handshake(self, probing: bool) -> Trouble | None:
        """Reach the server in the era that the options name, or in the one it speaks (R6-10)."""
        era = self.options.era
        if self._transport == "sse" and era == "modern":
            return Trouble(
                "era",
                f"{stateless.VERSION} has no HTTP with SSE.",
                "Choose streamable HTTP for this target, or another era in the options.",
            )
        if self._renewed:
            self._era_from = "memory" if era == "auto" else "options"
        elif era == "auto" and self._transport in ("demo", "sse"):
            self._era_from = "target"
            if self._transport == "demo":
                self._host.step("The demo speaks both eras, and begins with the older one, where it has more to show.")
        elif era == "auto" and self.options.protocol_version is None and probing:
            return await self._detect()
        elif era == "modern":
            self._host.waits(self._patience)
            found = await self._discover(self._patience)
            if not isinstance(found, FallBack):
                return found
            return Trouble(
                "era",
                f"The server does not speak {stateless.VERSION}: {found.why}.",
                "Choose the era auto or legacy in the options, then connect again.",
            )
        return await self._shake_hands()

    @property
    def _patience(self) -> float:
        """How long the server may take to answer `initialize`, or `server/discover` when it is to speak that era."""
        given = self.options.handshake_timeout_ms
        return self._limits.handshake_seconds if given is None else given / 1000

    async def _detect(self) -> Trouble | None:
        """Probe with `server/discover`; whatever does not show a server of that era means `initialize`."""
        self._era_from = "memory"
        if self._known_era == "legacy":
            self._host.step("This command spoke the older era before, so it is not probed.")
            trouble = await self._shake_hands()
            if trouble is None or trouble.kind not in ("handshake", "handshake-modern"):
                return trouble
            self._host.step("It no longer takes `initialize`, so it is probed after all.")
            found = await self._discover(self._patience)
            return trouble if isinstance(found, FallBack) else found
        seconds = min(self._limits.probe_seconds, self._patience)
        if self._known_era == "modern":
            seconds = self._patience  # it is slow today rather than older
        else:
            self._era_from = "probe"
        self._host.waits(seconds + self._patience)
        self._probe_sent = self._probing = True
        if self._transport == "stdio":
            self._rpc_now().start_soon(self._nudge)
        probe = self._new_probe()
        async with anyio.create_task_group() as group:
            group.start_soon(self._ask, probe)
            trouble = await self._by_probe(probe, seconds)
            group.cancel_scope.cancel()
        return trouble

    async def _by_probe(self, probe: _Probe, seconds: float) -> Trouble | None:
        with anyio.move_on_after(seconds):
            await probe.answered.wait()
        self._probing = False
        found = await self._conclude(probe, seconds) if probe.answered.is_set() else _silent(seconds)
        if not isinstance(found, FallBack):
            return found
        self._host.step(f"Fell back to the older era: {found.why}.")
        self._era_from = "probe"
        trouble = await self._shake_hands(probe)
        if trouble is not None and trouble.kind == "handshake-modern":
            # The probe reached a slow server, which now speaks that era alone.
            self._host.step(f"It speaks {stateless.VERSION} after all, so it is asked again.")
            again = await self._discover(self._patience)
            return trouble if isinstance(again, FallBack) else again
        if trouble is not None and trouble.kind == "handshake" and not probe.answered.is_set():
            # A server that works on several requests at a time may refuse the second before it answers the first.
            with anyio.move_on_after(self._limits.probe_seconds):
                await probe.answered.wait()
            if probe.speaks:
                again = await self._late(probe)
                return trouble if isinstance(again, FallBack) else again
        return trouble

    async def _late(self, probe: _Probe) -> Trouble | FallBack | None:
        self._rpc_now().stateless = True
        self._host.step("The answer to the probe has come after all, and it counts.")
        return await self._conclude(probe, self._patience)

    async def _nudge(self) -> None:
        """A `ping`, the one request that may come before `initialize`, for a server that does not answer the probe.

        The session of an old server may have died of the probe while its process waits for the next line: then this
        ends it at once. One that is slow to start finds both when it comes to read."""
        await anyio.sleep(self._limits.nudge_seconds)
        if not self._probing:
            return

        def sent(_: RpcId, seq: int) -> None:
            self._host.step("No answer to the probe so far", side="us", seq=seq, code="ping")

        with contextlib.suppress(LinkError):
            await self._rpc_now().request("ping", None, Outgoing(quiet=True, on_sent=sent))

    async def _shake_hands(self, probe: _Probe | None = None) -> Trouble | None:
        """`initialize`; an answer to the probe that comes meanwhile counts, when it shows the newer era."""
        self._rpc_now().stateless = False
        self._host.waits(self._patience)
        with anyio.move_on_after(self._patience):
            try:
                reply = await self._ask_to_initialize(probe)
                if reply is not None:
                    return await self._initialized(reply)
            except LinkError as fault:
                return await self._why(fault)
            found = None if probe is None else await self._late(probe)
            if not isinstance(found, FallBack):
                return found
        return Trouble(
            "timeout",
            f"The server did not answer `initialize` within {self._patience:g} s.",
            "Check that the command starts an MCP server on stdio, and that it does not wait for something else. "
            "When it only needs longer, as a first start that downloads does, raise the time limit of the handshake "
            "in the options.",
        )

    async def _why(self, fault: LinkError) -> Trouble:
        if fault.trouble.kind == "lost":
            # Writing to a child that ended can fail before reading has found out why it did.
            with anyio.move_on_after(_COURTESY_SECONDS):
                await self._rpc_now().closed.wait()
        return fault.trouble

    # ---- 2026-07-28: discovery

    def _new_probe(self, version: str = LATEST_MODERN_VERSION) -> _Probe:
        return _Probe(Envelope(version, client_capabilities(self.options, version), CLIENT_INFO))

    async def _ask(self, probe: _Probe) -> None:
        """Send `server/discover`, and keep what comes back."""
        rpc, envelope = self._rpc_now(), probe.envelope
        rpc.stateless = True
        params = envelope.stamp(self._with_meta(None), None)

        def sent(_: RpcId, seq: int) -> None:
            self._host.probed()
            self._host.step(envelope.version, side="us", seq=seq, code="server/discover")

        wanted = Outgoing(on_sent=sent, fate=lambda: "given up")
        wanted.headers = envelope.headers("server/discover", params, {})
        try:
            probe.reply = await rpc.request("server/discover", params, wanted)
        except LinkError as fault:
            probe.fault = fault
        probe.answered.set()

    async def _discover(
        self, seconds: float, version: str = LATEST_MODERN_VERSION, *, again: bool = False
    ) -> Trouble | FallBack | None:
        """Ask what the server is, and wait for it. None once the connection is ready."""
        probe = self._new_probe(version)
        with anyio.move_on_after(seconds):
            await self._ask(probe)
        return await self._conclude(probe, seconds, again=again) if probe.answered.is_set() else _silent(seconds)

    async def _conclude(self, probe: _Probe, seconds: float, *, again: bool = False) -> Trouble | FallBack | None:
        """What an answer to `server/discover` means. None once the connection is ready."""
        reply, fault = probe.reply, probe.fault
        if isinstance(fault, RequestLost):
            verdict = verdict_on_trouble(fault.trouble)
            if isinstance(verdict, FallBack):  # else it is the end, and is said as such
                self._host.step(fault.message, side="them")
            return verdict
        if fault is not None or reply is None:
            return await self._why(fault or LinkError(_CLOSED))
        found: Trouble | FallBack | None
        if reply.is_error:
            found = await self._discovery_refused(reply, probe.envelope.version, seconds, again=again)
        else:
            found = await self._discovered(reply, probe.envelope)
        self._decided = isinstance(found, Trouble)
        return found

    async def _discovery_refused(
        self, reply: Reply, version: str, seconds: float, *, again: bool
    ) -> Trouble | FallBack | None:
        error = reply.value["error"]
        said = error.get("message") if isinstance(error, dict) else error
        self._host.step(f"{said}"[:300], side="them", seq=reply.seq, code=str(stateless.error_code(error)))
        verdict = verdict_on_error(error, version)
        if not isinstance(verdict, TryVersion):
            return verdict
        if not again:
            return await self._discover(seconds, verdict.version, again=True)
        return Trouble(
            "version",
            f"The server refused {version} twice, and says that it speaks {verdict.version}.",
            "Compare its answers in the log: they contradict each other.",
        )

    async def _discovered(self, reply: Reply, envelope: Envelope) -> Trouble | FallBack | None:
        result = reply.value.get("result")
        fields = result if isinstance(result, dict) else {}
        listed = fields.get("supportedVersions")
        if not isinstance(listed, list):  # so it is no server of this era, and is not judged by its rules
            self._host.step("no supported versions", side="them", seq=reply.seq)
            return FallBack("its answer to `server/discover` names no revisions")
        for finding in await self.judge("server/discover", envelope.version, result, len(reply.raw)):
            self._host.finding(reply.seq, finding)
        missing = stateless.missing_result_type(envelope.version, result)
        if missing is not None:
            self._host.finding(reply.seq, missing)
        supported = [each for each in listed if isinstance(each, str)]
        meta = fields.get("_meta")
        name = meta.get(stateless.META_SERVER) if isinstance(meta, dict) else None
        self._host.step(f"{', '.join(supported)[:200]} supported, {_named(name)}", side="them", seq=reply.seq)
        if envelope.version not in supported:
            verdict = verdict_on_versions(supported)
            if not isinstance(verdict, TryVersion):
                return verdict
            envelope.version = verdict.version
        self._envelope, self.offered = envelope, envelope.capabilities
        self._version = self._rpc_now().version = envelope.version
        self._link.agreed(envelope.version)
        instructions = fields.get("instructions")
        self._host.ready(
            Agreed(
                version=envelope.version,
                server_info=name,
                server_capabilities=fields.get("capabilities"),
                client_capabilities=envelope.capabilities,
                instructions=instructions if isinstance(instructions, str) else None,
                era="modern",
                era_from=self._era_from,
            )
        )
        return None

    def learn_tools(self, tools: list[Any]) -> tuple[list[Any], list[tuple[Any, Finding]]]:
        """The tools to offer, and those that 2026-07-28 rejects; calls carry the headers that the rest ask for."""
        if self._envelope is None:
            return tools, []
        kept, rejected, self._tool_headers = sift_tools(tools)
        return kept, rejected

    @property
    def modern(self) -> bool:
        """Whether this connection speaks 2026-07-28."""
        return self._envelope is not None

    @property
    def over_http(self) -> bool:
        """Whether requests have headers."""
        return self._transport in ("http", "sse")

    # ---- up to 2025-11-25: handshake

    def _asked_version(self) -> str:
        return self.options.protocol_version or LATEST_HANDSHAKE_VERSION

    async def _ask_to_initialize(self, probe: _Probe | None) -> Reply | None:
        """The reply to `initialize`; None when the answer to the probe came before it, and counts."""
        asked = self._asked_version()
        info = CLIENT_INFO if asked >= "2025-06-18" else {key: CLIENT_INFO[key] for key in ("name", "version")}
        capabilities = client_capabilities(self.options, asked)
        params = {"protocolVersion": asked, "capabilities": capabilities, "clientInfo": info}

        def sent(_: RpcId, seq: int) -> None:
            self._host.step(asked, side="us", seq=seq, code="initialize")

        reply: Reply | None = None
        lost: LinkError | None = None
        async with anyio.create_task_group() as group:

            async def overtake(probe: _Probe) -> None:
                await probe.answered.wait()
                if probe.speaks:
                    group.cancel_scope.cancel()

            if probe is not None:
                group.start_soon(overtake, probe)
            try:
                reply = await self._request("initialize", params, Outgoing(on_sent=sent, fate=lambda: "given up"))
            except LinkError as fault:
                lost = fault
            group.cancel_scope.cancel()
        if probe is not None and probe.speaks:
            return None
        if lost is not None:
            raise lost
        return reply

    async def _initialized(self, reply: Reply) -> Trouble | None:
        """What the reply to `initialize` means. None once the connection is ready."""
        asked = self._asked_version()
        offered = client_capabilities(self.options, asked)
        if reply.is_error:
            error = reply.value["error"]
            code, said = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
            self._host.step(f"{said}", side="them", seq=reply.seq, code=str(code))
            supported = stateless.supported_versions(error) if code == stateless.UNSUPPORTED_VERSION else None
            return Trouble(
                "handshake-modern" if set(supported or ()) & set(MODERN_PROTOCOL_VERSIONS) else "handshake",
                f"The server refused to initialize: {code} {said}.",
                "If it names another revision, choose that one in the options.",
            )
        result = reply.value.get("result")
        fields = result if isinstance(result, dict) else {}
        version = fields.get("protocolVersion")
        finding = checks.version_answer(asked, version)
        if finding is not None:
            self._host.finding(reply.seq, finding)
        for finding in await self.judge("initialize", asked, result, len(reply.raw)):
            self._host.finding(reply.seq, finding)
        name = fields.get("serverInfo")
        self._host.step(
            f"{version} agreed, {_named(name)}" if version in HANDSHAKE_PROTOCOL_VERSIONS else f"{version}",
            side="them",
            seq=reply.seq,
        )
        if version in MODERN_PROTOCOL_VERSIONS:
            return Trouble(
                "handshake-modern",
                f"The server answered `initialize` with {version}, a revision that has no `initialize`.",
                "Choose the era auto or modern in the options. A server agrees here on 2025-11-25 or older.",
            )
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return Trouble(
                "version",
                f"The server wants to speak {version!r}, and Parley does not.",
                f"Parley speaks {', '.join(reversed(HANDSHAKE_PROTOCOL_VERSIONS))}. Update the server or Parley.",
            )
        self.offered = offered
        if version == "2025-11-25" and "tasks" in offered:
            self.tasks = self._host.receiver_tasks(self._notify_status)
            self._rpc_now().start_soon(self.tasks.run)
        self._adopt(version, fields)
        self._rpc_now().initialized = True
        seq = await self._rpc_now().deliver("notifications/initialized", None, settled=True)
        self._host.step("", side="us", seq=seq, code="notifications/initialized")
        instructions = fields.get("instructions")
        self._host.ready(
            Agreed(
                version=version,
                server_info=name,
                server_capabilities=fields.get("capabilities"),
                client_capabilities=self.offered,
                instructions=instructions if isinstance(instructions, str) else None,
                era_from=self._era_from,
            )
        )
        return None

    def _adopt(self, version: str, fields: dict[str, Any]) -> None:
        """Tell the SDK's session what was agreed, also when the server's own words do not conform."""
        self._version = self._rpc_now().version = version
        self._link.agreed(version)
        try:
            agreed = t.InitializeResult.model_validate(fields)
        except ValidationError:
            agreed = t.InitializeResult(
                protocol_version=version,
                capabilities=t.ServerCapabilities(),
                server_info=t.Implementation(name="unknown", version="unknown"),
            )
        self._session_now().adopt(agreed)

    # ---- towards the server

    async def call(self, method: str, params: dict[str, Any] | None, opts: Outgoing, patience: Patience) -> Reply:
        """Send a request and wait for its reply within the limit; OutOfTime when that is over, LinkError when the
        link is gone. A caller that is cancelled, or out of time, tells the server so (R5-05, R5-24)."""
        sent: list[RpcId] = []
        on_sent, on_progress = opts.on_sent, opts.on_progress
        with anyio.CancelScope() as scope:

            def told(rpc_id: RpcId, seq: int) -> None:
                sent.append(rpc_id)
                if on_sent is not None:
                    on_sent(rpc_id, seq)

            def moved(values: dict[str, Any], seq: int) -> None:
                if patience.renewed_by_progress:
                    patience.renew()
                if on_progress is not None:
                    on_progress(values, seq)

            opts.fate = lambda: "given up" if scope.cancel_called else "cancelled"
            opts.on_sent = told
            opts.on_progress = moved if method in LONG_METHODS else None
            patience.begin(scope)
            try:
                return await self._request(method, self._with_meta(params), opts)
            except anyio.get_cancelled_exc_class():
                if sent and method != "initialize" and opts.tells:
                    reason = "the time limit is over" if scope.cancel_called else "cancelled by the person"
                    if not (self.modern and self.over_http):  # there, the closed stream says it (R6-50)
                        with anyio.move_on_after(_COURTESY_SECONDS, shield=True):
                            await self._rpc_now().cancel(sent[0], reason)
                raise
        raise OutOfTime

    def end_progress(self, rpc_id: RpcId) -> None:
        """What a request began, a task, is over: later progress of it is a fault (R2-32)."""
        if self._rpc is not None:
            self._rpc.end_progress(rpc_id)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification."""
        await self._rpc_now().notify(method, params)

    async def _request(self, method: str, params: dict[str, Any] | None, opts: Outgoing) -> Reply:
        """Through the SDK's session, which stamps the request, and past its validation of the result. In 2026-07-28 we
        stamp it ourselves: the options decide what we declare, and the person may break it on purpose."""
        if self._envelope is not None:
            stamped = self._envelope.stamp(params, self.options.log_level)
            opts.headers = self._envelope.headers(method, stamped, self._tool_headers)
            return await self._rpc_now().request(method, stamped, opts)
        session = self._session_now()
        token = outgoing.set(opts)
        try:
            await session.send_request(AnyRequest(method=method, params=params), t.EmptyResult)
        except RawReply as raw:
            return raw.reply
        finally:
            outgoing.reset(token)
        raise AssertionError("our dispatcher always raises")

    def _with_meta(self, params: dict[str, Any] | None) -> dict[str, Any] | None:
        if not self.options.meta:
            return params
        own = (params or {}).get("_meta")
        return {**(params or {}), "_meta": {**self.options.meta, **(own if isinstance(own, dict) else {})}}

    def _rpc_now(self) -> Rpc:
        if self._rpc is None:
            raise LinkError(_NOT_OPEN)
        return self._rpc

    def _session_now(self) -> ClientSession:
        if self._session is None:
            raise LinkError(_NOT_OPEN)
        return self._session

    # ---- from the server

    async def _answer(self, request: Incoming) -> dict[str, Any] | Answered | None:
        """Answer one request of the server: what a person must answer goes to the session, the rest is said here."""
        method, params, seq = request.method, request.params, request.message.seq
        if method == "ping":
            return {}
        if method == "roots/list" and self.options.roots:
            await self._host.asked(request)
            return None
        try:
            if self.tasks is not None and method in TASK_METHODS:
                return await self._task_operation(method, params, seq)
            if method in METHODS:
                for finding in admit(method, params, self.options, self.offered):
                    self._host.finding(seq, finding)
                if self.tasks is not None and "task" in params and self._takes_tasks_of(method):
                    if params["task"] is not None:
                        return self._become_receiver(request)
                    self._host.finding(seq, checks.null_task())
                await self._host.asked(request)
                return None
        except RpcError as refusal:
            if refusal.code == METHOD_NOT_FOUND:
                self._host.finding(seq, self._not_handled(method))
            elif refusal.rule:
                self._host.finding(seq, checks.refused_params(refusal.rule, refusal.message))
            raise
        self._host.finding(seq, self._not_handled(method))
        raise RpcError(METHOD_NOT_FOUND, "Method not found", {"method": method})

    def _not_handled(self, method: str) -> Finding:
        """Why a request was answered with -32601: nothing is agreed yet, or it was not offered."""
        early = self._version is None and method in METHODS
        return checks.not_agreed_yet(method) if early else checks.not_handled(method)

    # ---- receiver tasks (2025-11-25)

    def _takes_tasks_of(self, method: str) -> bool:
        """Whether we declared to take this request as a task (R1-03, R1-04)."""
        declared = self.offered.get("tasks", {}).get("requests", {})
        area, _, name = method.partition("/")
        return name in declared.get(area, {})

    def _become_receiver(self, request: Incoming) -> Answered:
        """Answer `{task}` at once; the ask is in the inbox before that, the status moves after it (R1-11, R1-72)."""
        tasks = self._tasks_now()
        task = tasks.create_receiver_task(request.method, request.params["task"], seq=request.message.seq)
        try:
            self._host.task_asked(request, task)
        except RpcError:
            tasks.forget(task)
            raise

        def sent(trouble: Trouble | None) -> None:
            if trouble is not None or task.gone is not None:
                return
            task.announced = True
            awaits = self.options.awaiting_user_status == "input_required"
            moved = awaits and tasks.upsert_receiver_task(task, "input_required", AWAITING)
            if task.status != "working" and not moved:
                self._notify_status(task)  # somebody was quicker than the server

        return Answered({"task": task.wire()}, sent)

    async def _task_operation(self, method: str, params: dict[str, Any], seq: int) -> dict[str, Any]:
        tasks, task_id = self._tasks_now(), params.get("taskId")
        match method:
            case "tasks/get":
                return tasks.get_receiver_task(task_id, seq=seq).wire()
            case "tasks/cancel":
                return tasks.cancel_receiver_task(task_id, seq=seq).wire()
            case "tasks/result":
                return await tasks.get_receiver_task_payload(task_id, seq=seq)
            case _:
                page, cursor = tasks.list_receiver_tasks(params.get("cursor"))
                listed: dict[str, Any] = {"tasks": [task.wire() for task in page]}
                return listed if cursor is None else {**listed, "nextCursor": cursor}

    def _tasks_now(self) -> ReceiverTasks:
        if self.tasks is None:
            raise RpcError(METHOD_NOT_FOUND, "Method not found")
        return self.tasks

    def _notify_status(self, task: ReceiverTask) -> None:
        """Tell the server that a task of ours moved, once it has the task; nothing depends on it (R1-70, R1-72)."""
        if self.options.send_status_notifications and task.announced and self._rpc is not None:
            self._rpc.start_soon(self._rpc.notify, "notifications/tasks/status", task.wire())

    # ---- judging

    async def judge(self, method: str, version: str | None, result: Any, size: int) -> list[Finding]:
        """What the specification's own types say of a result, as findings. Large ones are judged in a thread."""
        if version is None or not isinstance(result, dict):
            return []
        if stateless.is_modern(version):
            result = {"resultType": "complete", **result}  # absent means complete (R6-04)
        if size <= THREAD_ABOVE:
            return _judged(method, version, result)
        return await apart(_judged, method, version, result)

    @property
    def version(self) -> str | None:
        """The agreed revision."""
        return self._version


def _judged(method: str, version: str, result: dict[str, Any]) -> list[Finding]:
    complaints = _complaints(method, version, result)
    found = [checks.result_shape(method, version, complaints)] if complaints else []
    return found + checks.base64_parts(method, result)


def _complaints(method: str, version: str, result: dict[str, Any]) -> list[str]:
    """Of a long list only the beginning is judged: validation holds the interpreter, 50 us for each faulty item."""
    result = {key: value[:_JUDGED] if isinstance(value, list) else value for key, value in result.items()}
    try:
        methods.validate_server_result(method, version, result)
    except (KeyError, ValueError) as fault:
        if not isinstance(fault, ValidationError):
            return []
        errors = fault.errors(include_url=False, include_input=False, include_context=False)
        found = (_complaint(error["loc"], error["msg"], result, version) for error in errors)
        return list(dict.fromkeys(each for each in found if each is not None))[:20]
    return []


def _silent(seconds: float) -> FallBack:
    return FallBack(f"no answer within {seconds:g} s")


_BLOCKS = {
    "TextContent": "text",
    "ImageContent": "image",
    "AudioContent": "audio",
    "ResourceLink": "resource_link",
    "EmbeddedResource": "resource",
}
_CONTENTS = {"TextResourceContents": "text", "BlobResourceContents": "blob"}


def _complaint(loc: tuple[int | str, ...], said: str, result: Any, version: str) -> str | None:
    """One error in words; None for what the validator says of the kinds of content that a block does not even try to
    be: it names every kind that there is."""
    path: list[str] = []
    value = result
    for part in loc:
        where = "/".join(path)[:200]
        if part in _BLOCKS:
            kind = value.get("type") if isinstance(value, dict) else None
            if not isinstance(value, dict):
                return f"`{where}` is no object"
            if kind is None:
                return f"`{where}/type` is missing"
            if not isinstance(kind, str):
                return f"`{where}/type` is no string"
            if kind not in _BLOCKS.values():
                return f"`{where}/type` is {json.dumps(kind[:60])}, which is no kind of content in {version}"
            if kind != _BLOCKS[str(part)]:
                return None
        elif part in _CONTENTS:
            if not isinstance(value, dict):
                return f"`{where}` is no object"
            if not value.keys() & {"text", "blob"}:
                return f"`{where}` has neither `text` nor `blob`"
            if _CONTENTS[str(part)] not in value:
                return None
        else:
            path.append(str(part))
            below = isinstance(value, dict) and part in value
            inside = isinstance(value, list) and isinstance(part, int) and part < len(value)
            value = value[part] if below or inside else None
    return f"`{'/'.join(path)[:200]}` {said.lower()[:200]}"


def _named(server_info: Any) -> str:
    if not isinstance(server_info, dict):
        return "no server info"
    return f"{server_info.get('name')} {server_info.get('version')}".strip()
