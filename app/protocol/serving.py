"""The server's requests: which are answered, how many at once, and what leaves for them.

Owns the requests that are being answered and the answers that are on their way. Knows no MCP method.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import anyio
import anyio.lowlevel

from app.core.errors import INTERNAL_ERROR, Gone, RpcError, Trouble
from app.core.json.heads import heads
from app.core.json.text import dump
from app.core.log import MessageLog
from app.core.rules import catalogue
from app.core.signal import Signal
from app.core.wire import Message, RpcId, id_key, rpc_id_of
from app.protocol.links.base import Frame, LinkError
from app.protocol.requests import FATES, remember
from app.settings import Limits

logger = logging.getLogger("parley.protocol")

_UNREAD_SECONDS = 1.0
"""How long reading waits for a server that asks more than it reads our answers."""


class Written(float):
    """A whole number that the server wrote as 3.0 or 1e3: it goes back exactly as it came."""

    text = b""


async def _nobody(_: dict[str, Any]) -> None:
    raise Gone("Nobody waits for this.")


@dataclass(slots=True)
class Incoming:
    """One request of the server, while it is being answered."""

    method: str
    params: dict[str, Any]
    message: Message
    via: RpcId = None
    """The id of our request whose HTTP answer carried it, when one did."""
    withdrawn: bool = False
    """The server took it back, so it gets no answer (R5-24)."""
    reason: str = ""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    respond: Callable[[dict[str, Any]], Awaitable[None]] = _nobody
    """Sends `{"result": …}` or `{"error": …}` by hand; returns once it has left, raises Gone when it cannot."""


@dataclass(slots=True, frozen=True)
class Answered:
    """A result, and who wants to know what became of it: None once it has left, or why it has not."""

    result: dict[str, Any]
    sent: Callable[[Trouble | None], None]


Answer = Callable[[Incoming], Awaitable[dict[str, Any] | Answered | None]]
"""Answers one request of the server; raises RpcError to answer an error; None when that was done by hand."""


class Write(Protocol):
    """Puts a message on the wire; with `settled` it returns once the server has taken it. Raises LinkError."""

    async def __call__(self, message: dict[str, Any], *, settled: bool = False) -> int: ...


class Serving:
    """The requests of one server, while they are being answered."""

    def __init__(
        self,
        log: MessageLog,
        limits: Limits,
        answer: Answer,
        write: Write,
        start_soon: Callable[..., None],
    ) -> None:
        self._log, self._limits, self._answer, self._write, self._start_soon = log, limits, answer, write, start_soon
        self._answering: dict[tuple[str, str], Incoming] = {}
        self._many = 0
        """How many requests are being answered; more than there are ids when the server uses one twice."""
        self._unsent = 0
        self._unread = False
        """We waited for the server to read our answers, and it did not."""
        self._left = Signal()
        self._asked_before: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The ids of its requests, as many as are remembered."""

    def withdraw(self, key: tuple[str, str], reason: str) -> bool:
        """The server takes a request back; whether it had one of this id."""
        request = self._answering.get(key)
        if request is None:
            return False
        request.withdrawn, request.reason = True, reason
        request.scope.cancel()
        return True

    def never_asked(self, key: tuple[str, str]) -> bool:
        """Whether no request of the server ever had this id; False where that is no longer known."""
        return key not in self._asked_before and len(self._asked_before) < FATES

    async def take(self, message: Message, value: dict[str, Any], frame: Frame, unread: str | None = None) -> None:
        """Begin to answer a request of the server, or say why it gets no answer."""
        if not await self._room():
            self._log.remark(message.seq, catalogue.not_answered())
            return
        rpc_id = _as_written(value.get("id"), frame.raw)
        key = id_key(value.get("id"))
        remember(self._asked_before, key, None)
        if key in self._answering:
            self._log.remark(message.seq, catalogue.reused_id(rpc_id=json.dumps(value.get("id"))))
        refusal = None
        if unread is not None:
            self._log.remark(message.seq, catalogue.not_served())
            refusal = f"This request is too much to read. {unread}"
        elif self._many >= self._limits.server_requests:
            refusal = "Too many requests are open; answer or withdraw some first."
        if refusal is not None:
            answerable = rpc_id if rpc_id_of(value) is not None else None
            error = {"code": INTERNAL_ERROR, "message": refusal}
            self._start_soon(self._send_reply, {"id": answerable, "error": error})
            return
        params = value.get("params")
        request = Incoming(value["method"], params if isinstance(params, dict) else {}, message, frame.via)
        request.respond = partial(self._respond, request, rpc_id)
        self._answering[key] = request
        self._many += 1
        self._start_soon(self._serve_one, request, rpc_id, key)

    async def _room(self) -> bool:
        """Whether another answer may be written. Answers that the server does not read are bounded, like all else."""
        most = self._limits.server_requests
        if self._unsent >= most and not self._unread:
            with anyio.move_on_after(_UNREAD_SECONDS):
                while self._unsent >= most:
                    self._left = Signal()
                    await self._left.wait()
            self._unread = self._unsent >= most
        return self._unsent < most

    async def _serve_one(self, request: Incoming, rpc_id: Any, key: tuple[str, str]) -> None:
        """Answer one request of the server. A request that the server withdrew gets no answer (R5-24)."""
        reply: dict[str, Any] | None = None
        told: Callable[[Trouble | None], None] | None = None
        with request.scope:
            try:
                await anyio.lowlevel.checkpoint_if_cancelled()  # it may have been taken back with its own chunk
                answer = await self._answer(request)
                if isinstance(answer, Answered):
                    told = answer.sent
                    reply = {"id": rpc_id, "result": answer.result}
                elif answer is not None:
                    reply = {"id": rpc_id, "result": answer}
            except RpcError as refusal:
                reply = {"id": rpc_id, "error": refusal.wire()}
            except Exception:
                logger.exception("a request of a server failed inside Parley")
                error = {"code": INTERNAL_ERROR, "message": "Parley could not handle this request"}
                reply = {"id": rpc_id, "error": error}
            finally:
                self._many -= 1
                if self._answering.get(key) is request:
                    del self._answering[key]
        if reply is not None and not request.withdrawn:
            await self._send_reply(reply, told)

    async def _respond(self, request: Incoming, rpc_id: Any, payload: dict[str, Any]) -> None:
        if request.withdrawn:
            raise Gone("The server took this back. Nothing was sent.")
        try:
            await self._write({"jsonrpc": "2.0", "id": rpc_id, **payload}, settled=True)
        except LinkError as fault:
            raise Gone(f"The answer could not be sent: {fault.message}") from None

    async def _send_reply(self, reply: dict[str, Any], told: Callable[[Trouble | None], None] | None = None) -> None:
        self._unsent += 1
        trouble: Trouble | None = None
        try:
            await self._write({"jsonrpc": "2.0", **reply}, settled=told is not None)
        except LinkError as fault:
            trouble = fault.trouble
        finally:
            self._unsent -= 1
            self._unread = False
            self._left.set()
        if told is not None:
            told(trouble)


def _as_written(rpc_id: Any, raw: bytes) -> Any:
    """The id of a request of the server, for the reply: a number with a point or an exponent keeps its spelling."""
    if not isinstance(rpc_id, float):
        return rpc_id
    found = Written(rpc_id)
    found.text = next((head.id_text for head in heads(raw)), b"") or dump(rpc_id)
    return found
