"""HTTP exchanges as the log keeps them: every request of a connection, from its beginning to its end.

Secrets are masked before anything is kept. Whatever speaks HTTP for a connection goes through here, also where no
frame is carried: links, and what signs in to a server. Owns the words for a request that got no HTTP answer. Knows no
JSON-RPC.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

from app.core.errors import Trouble
from app.core.log import MessageLog
from app.core.wire import Exchange
from app.egress import Answer, Egress, EgressError, Kind
from app.secrecy import MASK, masked_headers, masked_url, without


class Exchanges:
    """The HTTP requests to one server."""

    def __init__(
        self,
        egress: Egress,
        log: MessageLog,
        secret: Iterable[str],
        values: Collection[str] = (),
        plain: Collection[str] | None = None,
    ) -> None:
        """With `plain`, of an answer the values of these headers are shown and of no others."""
        self._egress, self._log, self._secret, self._values = egress, log, frozenset(secret), values
        self._plain = plain
        self.last: Exchange | None = None
        """The newest, also when it got no answer."""

    @asynccontextmanager
    async def send(
        self,
        method: str,
        url: str,
        headers: list[tuple[str, str]],
        content: bytes = b"",
        *,
        seq: int | None = None,
        note: str | None = None,
        connect: float = 15.0,
        read: float | None = None,
    ) -> AsyncGenerator[tuple[Answer, Exchange], None]:
        """Send a request, for the message `seq` when it carries one; the answer, its body unread, and the record.
        Headers named as secret, or that sound so, are masked there. Raises EgressError when there is no answer, also
        while its body is read."""
        shown = masked_headers(headers, self._secret)
        exchange = Exchange(
            method, without(masked_url(url), self._values), time.time(), shown, note=note, started=time.monotonic()
        )
        self._log.exchanged(exchange, seq)
        self.last = exchange
        try:
            async with self._egress.request(method, url, headers, content, connect=connect, read=read) as answer:
                exchange.status = answer.status
                quoted = [(name, without(value, self._values)) for name, value in answer.headers]
                if self._plain is not None:
                    quoted = [(name, value if name.lower() in self._plain else MASK) for name, value in quoted]
                exchange.response_headers = masked_headers(quoted, self._secret)
                exchange.answered_ms = (time.monotonic() - exchange.started) * 1000
                yield answer, exchange
        except EgressError as fault:
            exchange.error = exchange.error or egress_trouble(fault, url, self._values).message
            raise
        finally:
            exchange.ended_ms = (time.monotonic() - exchange.started) * 1000


_NO_ANSWER: dict[Kind, Trouble] = {
    "refused-by-policy": Trouble("policy", "Parley does not dial {url}: {said}.", "Connect to another address."),
    "dns": Trouble("dns", "The address was not found: {said}.", "Check the host name, and your network."),
    "refused": Trouble("refused", "The connection was refused: {said}.", "Start the server, or correct the port."),
    "unreachable": Trouble(
        "unreachable", "The server cannot be reached: {said}.", "Check the address and your network."
    ),
    "tls": Trouble(
        "tls",
        "No secure connection to {url}: {said}.",
        "Check the certificate and its host name, or use http:// if the server does not speak TLS.",
    ),
    "certificate": Trouble(
        "tls",
        "No secure connection to {url}: {said}.",
        "Trust this certificate only if you know that it is the server's. Or name its authority under TLS.",
        heading="Certificate not trusted: {said}",
    ),
    "pin": Trouble(
        "tls",
        "No secure connection to {url}: {said}.",
        "Somebody may stand between you and the server. Trust the new certificate only if you know that the server was "
        "given one. Nothing was sent.",
        heading="The certificate has changed",
    ),
    "timeout": Trouble("timeout", "The server took too long: {said}.", "Check that it is running."),
    "cut": Trouble("cut", "The server closed the connection in the middle: {said}.", "Look at the server's log."),
    "bad-url": Trouble("bad-url", "This cannot be dialled: {said}.", "Correct the address."),
    "protocol": Trouble("http", "This is not HTTP: {said}.", "Check that the port belongs to an HTTP server."),
}


def egress_trouble(fault: EgressError, url: str, secrets: Collection[str] = ()) -> Trouble:
    """What to say of a request that got no HTTP answer, and that held these secrets."""
    found = _NO_ANSWER[fault.kind]
    said = without(fault.detail, secrets) or ("no answer" if fault.kind == "timeout" else "")
    shown = without(masked_url(url), secrets)
    heading = found.heading.format(said=said)
    return replace(found, message=found.message.format(url=shown, said=said), heading=heading)
