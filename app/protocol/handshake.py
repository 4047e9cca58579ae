"""How a connection begins: which kind of revision a server speaks, and what both sides agree on.

Revisions up to 2025-11-25 shake hands with `initialize`; 2026-07-28 has no handshake: `server/discover` says what the
server is, and each request carries the rest (envelope.py). `auto` finds out which one a server speaks, and says step by
step how. Ends with what was agreed, or with a trouble; knows no call and no ask.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from app import __version__
from app.core.connection import EraFrom, Side
from app.core.errors import Trouble
from app.core.log import MessageLog
from app.core.options import Options
from app.core.revisions import HANDSHAKE_VERSIONS, STATELESS_VERSIONS, Era
from app.core.rules import results, stateless
from app.core.signal import Signal
from app.core.wire import RpcId
from app.protocol.capabilities import client_capabilities
from app.protocol.envelope import Envelope, Plain
from app.protocol.judge import judge
from app.protocol.links.base import LinkError, RequestLost
from app.protocol.probe import (
    FallBack,
    TryVersion,
    named,
    said_in,
    silent,
    speaks_stateless,
    verdict_on_error,
    verdict_on_trouble,
    verdict_on_versions,
)
from app.protocol.requests import Outgoing, Reply
from app.protocol.rpc import Rpc
from app.settings import Limits

CLIENT_INFO = {"name": "parley", "title": "Parley", "version": __version__}
_CLOSED = Trouble("closed", "The connection was closed.")
_LAST_WORDS_SECONDS = 1.0
"""How long reading may take to find out why a child ended, when writing to it has failed."""


class HandshakeHost(Protocol):
    """Who is told how a connection begins."""

    def step(
        self,
        text: str,
        *,
        side: Side = "parley",
        seq: int | None = None,
        code: str | None = None,
        expected: bool = False,
    ) -> None:
        """Say one step of how the connection came about; `expected` is a refusal that means no harm."""

    def waits(self, seconds: float) -> None:
        """From now on, the server has so long to answer."""

    def probed(self) -> None:
        """A `server/discover` leaves: what a server of the older era says of it on stderr is our doing."""

    def ready(self, agreed: Agreed) -> None:
        """The handshake is over."""


@dataclass(slots=True, frozen=True)
class Agreed:
    """What was agreed, or in 2026-07-28 what was found."""

    version: str
    server_info: Any
    server_capabilities: Any
    client_capabilities: dict[str, Any]
    instructions: str | None
    envelope: Plain | Envelope
    """What each request carries from now on."""
    era_from: EraFrom


@dataclass(slots=True)
class _Probe:
    """One `server/discover`, from its sending to its answer, however late that comes."""

    envelope: Envelope
    answered: Signal = field(default_factory=Signal)
    reply: Reply | None = None
    fault: LinkError | None = None

    @property
    def speaks(self) -> bool:
        """Whether the answer is there, and shows a server of 2026-07-28."""
        return self.reply is not None and speaks_stateless(self.reply.value, self.envelope.version)


class Handshake:
    """The beginning of one connection over one open link."""

    def __init__(
        self,
        rpc: Rpc,
        options: Options,
        host: HandshakeHost,
        log: MessageLog,
        limits: Limits,
        transport: str,
        *,
        adopt: Callable[[Agreed], None],
        known_era: Era | None = None,
        renewed: bool = False,
    ) -> None:
        self._rpc, self._options, self._host, self._log, self._limits = rpc, options, host, log, limits
        self._transport, self._adopt = transport, adopt
        self._known_era = known_era
        """What this command spoke the last time."""
        self._renewed = renewed
        """The server forgot the session of the connection before, so the first request is `initialize` (R5-45)."""
        self._era_from: EraFrom = "options"
        self._asked = options.protocol_version or HANDSHAKE_VERSIONS[0]
        self._offered = client_capabilities(options, self._asked)
        """What `initialize` says, when it comes to that."""
        self.probe_sent = False
        self.decided = False
        """The server itself has said why it is not to be spoken to: another start would hear the same."""
        self._probing = False
        """The answer to the probe is all that is waited for."""

    async def run(self, *, probing: bool) -> Trouble | None:
        """Reach the server in the era that the options name, or in the one it speaks (R6-10). None once it is ready."""
        era = self._options.era
        if self._transport == "sse" and era == "modern":
            return Trouble(
                "era",
                f"{stateless.VERSION} has no HTTP with SSE.",
                "Choose streamable HTTP, or another protocol.",
            )
        if not probing:
            self._era_from = "probe"  # a start before this one was probed, and did not take it
        if self._renewed:
            self._era_from = "memory" if era == "auto" else "options"
        elif era == "auto" and self._transport in ("demo", "sse"):
            self._era_from = "target"
            if self._transport == "demo":
                self._host.step("2025-11-25 chosen: the demo has more to show there")
        elif era == "auto" and self._options.protocol_version is None and probing:
            return await self._detect()
        elif era == "modern":
            self._host.waits(self._seconds)
            found = await self._discover(self._seconds)
            if not isinstance(found, FallBack):
                return found
            return Trouble(
                "era",
                f"The server does not speak {stateless.VERSION}: {found.why}.",
                "Set Protocol to Auto-detect, or to 2025-11-25 and older. Then connect again.",
            )
        return await self._shake_hands()

    @property
    def _seconds(self) -> float:
        """How long the server may take to answer `initialize`, or `server/discover` when it is to speak that era."""
        given = self._options.handshake_timeout_ms
        return self._limits.handshake_seconds if given is None else given / 1000

    async def _detect(self) -> Trouble | None:
        """Probe with `server/discover`; whatever does not show a server of that era means `initialize`."""
        self._era_from = "memory"
        if self._known_era == "legacy":
            self._host.step(f"This command spoke {self._asked} or older before, so 2026-07-28 is not tried.")
            trouble = await self._shake_hands()
            if trouble is None or trouble.kind not in ("handshake", "handshake-modern"):
                return trouble
            self._host.step("It no longer takes `initialize`, so it is probed after all.")
            found = await self._discover(self._seconds)
            return trouble if isinstance(found, FallBack) else found
        seconds = min(self._limits.probe_seconds, self._seconds)
        if self._known_era == "modern":
            seconds = self._seconds  # it is slow today rather than older
        else:
            self._era_from = "probe"
        self._host.waits(seconds + self._seconds)
        self.probe_sent = self._probing = True
        if self._transport == "stdio":
            self._rpc.start_soon(self._nudge)
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
        found = await self._conclude(probe, seconds) if probe.answered.is_set() else silent(seconds)
        if not isinstance(found, FallBack):
            return found
        self._host.step(f"{stateless.VERSION} not supported ({found.short or found.why}). Trying {self._asked}.")
        self._era_from = "probe"
        trouble = await self._shake_hands(probe)
        if trouble is not None and trouble.kind == "handshake-modern":
            # The probe reached a slow server, which now speaks that era alone.
            self._host.step(f"It speaks {stateless.VERSION} after all, so it is asked again.")
            again = await self._discover(self._seconds)
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
        self._host.step("The answer to the probe has come after all, and it counts.")
        return await self._conclude(probe, self._seconds)

    async def _nudge(self) -> None:
        """A `ping`, the one request that may come before `initialize`, for a server that does not answer the probe.

        The session of an old server may have died of the probe while its process waits for the next line: then this
        ends it at once. One that is slow to start finds both when it comes to read."""
        await anyio.sleep(self._limits.nudge_seconds)
        if not self._probing:
            return

        def sent(_: RpcId, seq: int) -> None:
            self._host.step("no answer to the version check yet", side="us", seq=seq, code="ping")

        with contextlib.suppress(LinkError):
            await self._rpc.request("ping", None, Outgoing(quiet=True, on_sent=sent))

    async def _shake_hands(self, probe: _Probe | None = None) -> Trouble | None:
        """`initialize`; an answer to the probe that comes meanwhile counts, when it shows the newer era."""
        self._host.waits(self._seconds)
        with anyio.move_on_after(self._seconds):
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
            f"The server did not answer `initialize` within {self._seconds:g} s.",
            "Check that the command starts an MCP server on stdio, and that it does not wait for something else. "
            "When it only needs longer, as a first start that downloads does, raise the time limit of the handshake "
            "in the options.",
        )

    async def _why(self, fault: LinkError) -> Trouble:
        if fault.trouble.kind == "lost":
            # Writing to a child that ended can fail before reading has found out why it did.
            with anyio.move_on_after(_LAST_WORDS_SECONDS):
                await self._rpc.closed.wait()
        return fault.trouble

    # ---- 2026-07-28: discovery

    def _new_probe(self, version: str = STATELESS_VERSIONS[0]) -> _Probe:
        return _Probe(Envelope(version, client_capabilities(self._options, version), CLIENT_INFO))

    async def _ask(self, probe: _Probe) -> None:
        """Send `server/discover`, and keep what comes back."""
        envelope = probe.envelope
        params, headers = envelope.seal("server/discover", {"_meta": self._options.meta}, None)

        def sent(_: RpcId, seq: int) -> None:
            self._host.probed()
            self._host.step(envelope.version, side="us", seq=seq, code="server/discover")

        wanted = Outgoing(on_sent=sent, fate=lambda: "given up", headers=headers, stateless=True)
        try:
            probe.reply = await self._rpc.request("server/discover", params, wanted)
        except LinkError as fault:
            probe.fault = fault
        probe.answered.set()

    async def _discover(
        self, seconds: float, version: str = STATELESS_VERSIONS[0], *, again: bool = False
    ) -> Trouble | FallBack | None:
        """Ask what the server is, and wait for it. None once the connection is ready."""
        probe = self._new_probe(version)
        with anyio.move_on_after(seconds):
            await self._ask(probe)
        return await self._conclude(probe, seconds, again=again) if probe.answered.is_set() else silent(seconds)

    async def _conclude(self, probe: _Probe, seconds: float, *, again: bool = False) -> Trouble | FallBack | None:
        """What an answer to `server/discover` means. None once the connection is ready."""
        reply, fault = probe.reply, probe.fault
        if isinstance(fault, RequestLost):
            verdict = verdict_on_trouble(fault.trouble)
            if isinstance(verdict, FallBack):  # else it is the end, and is said as such
                self._host.step(fault.message, side="them", expected=self._options.era == "auto")
            return verdict
        if fault is not None or reply is None:
            return await self._why(fault or LinkError(_CLOSED))
        found: Trouble | FallBack | None
        if reply.is_error:
            found = await self._discovery_refused(reply, probe.envelope.version, seconds, again=again)
        else:
            found = await self._discovered(reply, probe.envelope)
        self.decided = isinstance(found, Trouble)
        return found

    async def _discovery_refused(
        self, reply: Reply, version: str, seconds: float, *, again: bool
    ) -> Trouble | FallBack | None:
        error = reply.value["error"]
        said = said_in(error)
        verdict = verdict_on_error(error, version)
        older = isinstance(verdict, FallBack) and self._options.era == "auto"
        words, code = f"older server, as expected: {said}" if older else said, stateless.error_code(error)
        shown = None if code is None else str(code)
        self._host.step(words[:300], side="them", seq=reply.seq, code=shown, expected=older)
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
        self._log.remark(reply.seq, *await judge("server/discover", envelope.version, result, len(reply.raw)))
        self._log.remark(reply.seq, *stateless.missing_result_type(envelope.version, result))
        supported = [each for each in listed if isinstance(each, str)]
        meta = fields.get("_meta")
        name = meta.get(stateless.META_SERVER) if isinstance(meta, dict) else None
        self._host.step(f"{', '.join(supported)[:200]} supported, {named(name)}", side="them", seq=reply.seq)
        if envelope.version not in supported:
            verdict = verdict_on_versions(supported)
            if not isinstance(verdict, TryVersion):
                return verdict
            envelope.version = verdict.version
        self._host.ready(self._agree(envelope.version, name, fields, envelope.capabilities, envelope))
        return None

    def _agree(
        self,
        version: str,
        server_info: Any,
        said: dict[str, Any],
        offered: dict[str, Any],
        envelope: Plain | Envelope,
    ) -> Agreed:
        """Speak this revision from now on."""
        words = said.get("instructions")
        instructions = words if isinstance(words, str) else None
        agreed = Agreed(version, server_info, said.get("capabilities"), offered, instructions, envelope, self._era_from)
        self._adopt(agreed)
        return agreed

    # ---- revisions up to 2025-11-25: initialize

    async def _ask_to_initialize(self, probe: _Probe | None) -> Reply | None:
        """The reply to `initialize`; None when the answer to the probe came before it, and counts."""
        asked = self._asked
        info = CLIENT_INFO if asked >= "2025-06-18" else {key: CLIENT_INFO[key] for key in ("name", "version")}
        params = {"protocolVersion": asked, "capabilities": self._offered, "clientInfo": info}

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
                reply = await self._rpc.request("initialize", params, Outgoing(on_sent=sent, fate=lambda: "given up"))
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
        asked = self._asked
        if reply.is_error:
            error = reply.value["error"]
            code, said = error.get("code") if isinstance(error, dict) else None, said_in(error)
            self._host.step(f"{said}", side="them", seq=reply.seq, code=None if code is None else str(code))
            supported = stateless.supported_versions(error) if code == stateless.UNSUPPORTED_VERSION else None
            return Trouble(
                "handshake-modern" if set(supported or ()) & set(STATELESS_VERSIONS) else "handshake",
                f"The server refused to initialize: {'' if code is None else f'{code} '}{said}.",
                "If it names another revision, choose that one in the options.",
            )
        result = reply.value.get("result")
        fields = result if isinstance(result, dict) else {}
        version = fields.get("protocolVersion")
        self._log.remark(reply.seq, *results.version_answer(asked, version))
        self._log.remark(reply.seq, *await judge("initialize", asked, result, len(reply.raw)))
        name = fields.get("serverInfo")
        self._host.step(
            f"{version} agreed, {named(name)}" if version in HANDSHAKE_VERSIONS else f"{version}",
            side="them",
            seq=reply.seq,
        )
        if version in STATELESS_VERSIONS:
            return Trouble(
                "handshake-modern",
                f"The server answered `initialize` with {version}, a revision that has no `initialize`.",
                "Set Protocol to Auto-detect, or to 2026-07-28. A server agrees here on 2025-11-25 or older.",
            )
        if version not in HANDSHAKE_VERSIONS:
            return Trouble(
                "version",
                f"The server wants to speak {version!r}, and Parley does not.",
                f"Parley speaks {', '.join(HANDSHAKE_VERSIONS)}. Update the server or Parley.",
            )
        agreed = self._agree(version, name, fields, self._offered, Plain())
        self._rpc.initialized = True
        seq = await self._rpc.deliver("notifications/initialized", None, settled=True)
        self._host.step("", side="us", seq=seq, code="notifications/initialized")
        self._host.ready(agreed)
        return None
