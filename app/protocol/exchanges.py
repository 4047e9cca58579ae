"""HTTP exchanges as the log keeps them: every request of a connection, from its beginning to its end.

Secrets are masked before anything is kept. Whatever speaks HTTP for a connection goes through here, also where no
frame is carried: links, and what signs in to a server. Owns the words for a request that got no HTTP answer. Knows no
JSON-RPC.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from app.core.errors import Trouble
from app.core.log import MessageLog
from app.core.wire import Exchange
from app.egress import Answer, Egress, EgressError
from app.secrecy import masked_headers, masked_url


class Exchanges:
    """The HTTP requests to one server."""

    def __init__(self, egress: Egress, log: MessageLog, secret: Iterable[str]) -> None:
        self._egress, self._log, self._secret = egress, log, frozenset(secret)

    def begin(
        self, method: str, url: str, headers: list[tuple[str, str]], seq: int | None = None, note: str | None = None
    ) -> Exchange:
        """A request that is about to be sent; `headers` named as secret, or that sound so, are masked."""
        shown = masked_headers(headers, self._secret)
        exchange = Exchange(method, masked_url(url), time.time(), shown, note=note, started=time.monotonic())
        self._log.exchanged(exchange, seq)
        return exchange

    @asynccontextmanager
    async def send(
        self,
        exchange: Exchange,
        url: str,
        headers: list[tuple[str, str]],
        content: bytes = b"",
        *,
        connect: float = 15.0,
        read: float | None = None,
    ) -> AsyncGenerator[Answer, None]:
        """Send it; the answer, its body unread. Raises EgressError when there is none, also while reading it."""
        try:
            async with self._egress.request(
                exchange.method, url, headers, content, connect=connect, read=read
            ) as answer:
                exchange.status = answer.status
                exchange.response_headers = masked_headers(answer.headers, self._secret)
                exchange.answered_ms = (time.monotonic() - exchange.started) * 1000
                yield answer
        except EgressError as fault:
            exchange.error = exchange.error or egress_trouble(fault, url).message
            raise
        finally:
            exchange.ended_ms = (time.monotonic() - exchange.started) * 1000


def egress_trouble(fault: EgressError, url: str) -> Trouble:
    """What to say of a request that got no HTTP answer."""
    said, shown = fault.detail, masked_url(url)
    match fault.kind:
        case "refused-by-policy":
            return Trouble("policy", f"Parley does not dial {shown}: {said}.", "Connect to another address.")
        case "dns":
            return Trouble("dns", f"The address was not found: {said}.", "Check the host name, and your network.")
        case "refused":
            return Trouble("refused", f"The connection was refused: {said}.", "Start the server, or correct the port.")
        case "unreachable":
            return Trouble(
                "unreachable", f"The server cannot be reached: {said}.", "Check the address and your network."
            )
        case "tls":
            return Trouble(
                "tls",
                f"No secure connection to {shown}: {said}.",
                "Check the certificate and its host name, or use http:// if the server does not speak TLS.",
            )
        case "timeout":
            return Trouble("timeout", f"The server took too long: {said or 'no answer'}.", "Check that it is running.")
        case "cut":
            return Trouble(
                "cut", f"The server closed the connection in the middle: {said}.", "Look at the server's log."
            )
        case "bad-url":
            return Trouble("bad-url", f"This cannot be dialled: {said}.", "Correct the address.")
        case _:
            return Trouble("http", f"This is not HTTP: {said}.", "Check that the port belongs to an HTTP server.")
