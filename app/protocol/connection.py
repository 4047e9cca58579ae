"""One live connection to one server: opening, handshake, calls, answers, end.

Owns the order of a connection's life; one task enters and leaves everything in it, other tasks call it. The layers,
from the wire up: a link (transports.py), JSON-RPC over it (rpc.py), the SDK's `ClientSession` on top, which stamps
what an era wants on each request. Results pass the session raw: what does not conform is shown, and judged here by
the SDK's own tables as a finding. Knows the session it serves only as a `Host`.

The era of 2026-07-28 (`server/discover`, no handshake) has its place in `_handshake`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
import anyio.to_thread
import mcp_types as t
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from app import __version__
from app.core import checks
from app.core.jsontext import THREAD_ABOVE
from app.core.model import (
    DemoTarget,
    Finding,
    HttpTarget,
    Message,
    Options,
    RpcId,
    Side,
    StdioTarget,
    Trouble,
)
from app.egress import Egress
from app.protocol.link import Link, LinkError, LinkHost
from app.protocol.rpc import METHOD_NOT_FOUND, Outgoing, RawReply, Recorder, Reply, Rpc, outgoing
from app.protocol.transports import open_link
from app.settings import Limits

AnyTarget = StdioTarget | DemoTarget | HttpTarget
OLDER_TRANSPORT = frozenset({"http-400", "http-404", "http-405"})
"""What a server of the older HTTP with SSE says to a POST it does not know (R5-47)."""
CLIENT_INFO = {"name": "parley", "title": "Parley", "version": __version__}
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

    def ready(self, agreed: Agreed) -> None:
        """The handshake is over."""
        ...

    def lost(self, trouble: Trouble) -> None:
        """The link of a ready connection has ended by itself."""
        ...

    def notified(self, method: str, params: dict[str, Any], message: Message) -> None:
        """A notification arrived; called in the order of the wire."""
        ...

    def roots_for_wire(self) -> list[dict[str, str]]:
        """The roots to answer with."""
        ...


@dataclass(slots=True, frozen=True)
class Agreed:
    """What the handshake settled."""

    version: str
    server_info: Any
    server_capabilities: Any
    client_capabilities: dict[str, Any]
    instructions: str | None


@dataclass(slots=True, frozen=True)
class TimeLimit:
    """How long a call may take (R5-05)."""

    seconds: float
    renewed_by_progress: bool = True
    at_most: float | None = None


class OutOfTime(Exception):
    """A call took longer than its limit; ours, never the server's word (R6-09)."""


class AnyRequest(t.Request[dict[str, Any] | None, str]):
    """A request with any method and any params, so that the SDK's session stamps it and leaves the rest alone."""

    method: str
    params: dict[str, Any] | None = None


def client_capabilities(options: Options, version: str) -> dict[str, Any]:
    """What we offer a server: what the options say, as far as the revision has it."""
    offered: dict[str, Any] = {}
    if options.roots:
        offered["roots"] = {"listChanged": True}
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
    if options.receiver_tasks and version >= "2025-11-25":
        requests: dict[str, Any] = {}
        if "sampling" in offered:
            requests["sampling"] = {"createMessage": {}}
        if "elicitation" in offered:
            requests["elicitation"] = {"create": {}}
        if requests:
            offered["tasks"] = {"list": {}, "cancel": {}, "requests": requests}
    if options.extensions:
        offered["extensions"] = options.extensions
    return offered


class Connection:
    """One link, from opening to end. `run` lives as long as it does."""

    def __init__(self, target: AnyTarget, options: Options, host: Host, limits: Limits, egress: Egress) -> None:
        self._target, self._host, self._limits, self._egress = target, host, limits, egress
        self.options = options
        self._link: Link
        self._rpc: Rpc | None = None
        self._session: ClientSession | None = None
        self._version: str | None = None

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
        return trouble

    async def _attempt(self, target: AnyTarget) -> Trouble:
        info = t.Implementation(name="parley", version=__version__)
        try:
            async with open_link(target, self._limits, self._egress, self._host) as link:
                self._host.opened(target.transport, link.pid)
                rpc = self._rpc = Rpc(link, self._host, self._limits, answer=self._answer, notified=self._host.notified)
                self._link = link
                async with ClientSession(dispatcher=rpc, client_info=info) as session:
                    self._session = session
                    trouble = await self._handshake()
                    if trouble is None:
                        await rpc.closed.wait()
                        # Said before the child is ended, which may take seconds.
                        self._host.lost(rpc.trouble or _CLOSED)
                    elif rpc.closed.is_set():
                        trouble = rpc.trouble
                return trouble or rpc.trouble or _CLOSED
        except LinkError as fault:
            return fault.trouble

    async def _handshake(self) -> Trouble | None:
        if self.options.era == "modern":
            return Trouble(
                "era",
                "Parley does not speak 2026-07-28 yet.",
                "Choose another era in the options: this release speaks 2024-11-05 to 2025-11-25.",
            )
        with anyio.move_on_after(self._limits.handshake_seconds):
            try:
                return await self._initialize()
            except LinkError as fault:
                if fault.trouble.kind == "lost":
                    # Writing to a child that ended can fail before reading has found out why it did.
                    with anyio.move_on_after(_COURTESY_SECONDS):
                        await self._rpc_now().closed.wait()
                return fault.trouble
        return Trouble(
            "timeout",
            f"The server did not answer `initialize` within {self._limits.handshake_seconds:g} s.",
            "Check that the command starts an MCP server on stdio, and that it does not wait for something else.",
        )

    async def _initialize(self) -> Trouble | None:
        asked = self.options.protocol_version or LATEST_HANDSHAKE_VERSION
        offered = client_capabilities(self.options, asked)
        info = CLIENT_INFO if asked >= "2025-06-18" else {key: CLIENT_INFO[key] for key in ("name", "version")}
        params = {"protocolVersion": asked, "capabilities": offered, "clientInfo": info}

        def sent(_: RpcId, seq: int) -> None:
            self._host.step(asked, side="us", seq=seq, code="initialize")

        reply = await self._request("initialize", params, Outgoing(on_sent=sent))
        if reply.is_error:
            error = reply.value["error"]
            code, said = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
            self._host.step(f"{said}", side="them", seq=reply.seq, code=str(code))
            return Trouble(
                "handshake",
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
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return Trouble(
                "version",
                f"The server wants to speak {version!r}, and Parley does not.",
                f"Parley speaks {', '.join(reversed(HANDSHAKE_PROTOCOL_VERSIONS))}. Update the server or Parley.",
            )
        self._adopt(version, fields)
        seq = await self._rpc_now().deliver("notifications/initialized", None, settled=True)
        self._host.step("", side="us", seq=seq, code="notifications/initialized")
        instructions = fields.get("instructions")
        self._host.ready(
            Agreed(
                version=version,
                server_info=name,
                server_capabilities=fields.get("capabilities"),
                client_capabilities=offered,
                instructions=instructions if isinstance(instructions, str) else None,
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

    async def call(self, method: str, params: dict[str, Any] | None, opts: Outgoing, limit: TimeLimit) -> Reply:
        """Send a request and wait for its reply within the limit; OutOfTime when that is over, LinkError when the
        link is gone. A caller that is cancelled, or out of time, tells the server so (R5-05, R5-24)."""
        sent: list[RpcId] = []
        on_sent, on_progress = opts.on_sent, opts.on_progress
        began = anyio.current_time()
        with anyio.CancelScope() as scope:

            def arm() -> None:
                end = anyio.current_time() + limit.seconds
                scope.deadline = end if limit.at_most is None else min(end, began + limit.at_most)

            def told(rpc_id: RpcId, seq: int) -> None:
                sent.append(rpc_id)
                if on_sent is not None:
                    on_sent(rpc_id, seq)

            def moved(values: dict[str, Any], seq: int) -> None:
                if limit.renewed_by_progress:
                    arm()
                if on_progress is not None:
                    on_progress(values, seq)

            opts.fate = lambda: "given up" if scope.cancel_called else "cancelled"
            opts.on_sent = told
            opts.on_progress = moved if method in LONG_METHODS else None
            arm()
            try:
                return await self._request(method, self._with_meta(params), opts)
            except anyio.get_cancelled_exc_class():
                if sent and method != "initialize":
                    reason = "the time limit is over" if scope.cancel_called else "cancelled by the person"
                    with anyio.move_on_after(_COURTESY_SECONDS, shield=True):
                        await self._rpc_now().cancel(sent[0], reason)
                raise
        raise OutOfTime

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification."""
        await self._rpc_now().notify(method, params)

    async def _request(self, method: str, params: dict[str, Any] | None, opts: Outgoing) -> Reply:
        """Through the SDK's session, which stamps the request, and past its validation of the result."""
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

    async def _answer(self, method: str, params: dict[str, Any], message: Message) -> dict[str, Any]:
        """Answer one request of the server; the inbox will take the ones that are for a person."""
        if method == "ping":
            return {}
        if method == "roots/list" and self.options.roots:
            return {"roots": self._host.roots_for_wire()}
        self._host.finding(message.seq, checks.not_handled(method))
        raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data={"method": method})

    # ---- judging

    async def judge(self, method: str, version: str | None, result: Any, size: int) -> list[Finding]:
        """What the specification's own types say of a result, as findings. Large ones are judged in a thread."""
        if version is None or not isinstance(result, dict):
            return []
        if size <= THREAD_ABOVE:
            complaints = _complaints(method, version, result)
        else:
            complaints = await anyio.to_thread.run_sync(_complaints, method, version, result)
        return [checks.result_shape(method, version, complaints)] if complaints else []

    @property
    def version(self) -> str | None:
        """The agreed revision."""
        return self._version


def _complaints(method: str, version: str, result: dict[str, Any]) -> list[str]:
    try:
        methods.validate_server_result(method, version, result)
    except (KeyError, ValueError) as fault:
        if not isinstance(fault, ValidationError):
            return []
        return [
            f"`{'/'.join(str(part) for part in error['loc'])[:200]}` {error['msg'].lower()[:200]}"
            for error in fault.errors(include_url=False, include_input=False, include_context=False)[:20]
        ]
    return []


def _named(server_info: Any) -> str:
    if not isinstance(server_info, dict):
        return "no server info"
    return f"{server_info.get('name')} {server_info.get('version')}"
