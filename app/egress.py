"""The one way out: which addresses may be dialled, and the guarded HTTP client that dials them.

Addresses are checked on what was resolved, at the moment of connecting, and the address checked is the address
connected, so a name that changes its mind gains nothing (S24). No redirects, no proxies from the environment, no
cookies, no decompression, bodies read in chunks by the caller under the caller's cap. One connection pool and one TLS
context serve the whole process: a context per client costs 0.9 MB and 50 ms.

Built on httpcore2 rather than httpx2, whose client offers exactly what we would have to switch off. Knows HTTP; knows
no MCP, no session and no page.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import anyio
import httpcore2

from app.policy import Policy
from app.secrecy import masked_url
from app.trust import Pinned, Tls, context_of, looking, shown_by

logging.getLogger("httpcore2").setLevel(logging.WARNING)  # it would write down headers, and those hold secrets

_IDLE_SECONDS = 3.0
"""Node and uvicorn close an idle connection after 5 s. We are first: a POST that meets the closing is lost."""

_READ_AT_LEAST, _READ_FIRST, _READ_AT_MOST = 1024, 4 * 1024, 16 * 1024
_SLOW_SECONDS = 0.004
"""How long the bytes of one read may keep everybody else waiting, before less is read at once."""
_REST_AT_MOST = 0.05

Kind = Literal[
    "refused-by-policy",
    "dns",
    "refused",
    "unreachable",
    "tls",
    "certificate",
    "pin",
    "timeout",
    "cut",
    "protocol",
    "bad-url",
]


class EgressError(Exception):
    """A request that did not get an HTTP answer. `kind` says why, `detail` in a few words of whoever knows."""

    def __init__(self, kind: Kind, detail: str, certificate: bytes | None = None) -> None:
        super().__init__(detail)
        self.kind: Kind = kind
        self.detail = detail
        self.certificate = certificate
        """What the server showed, when that is not what it should be."""


# ------------------------------------------------------------------------------------------------------ connecting


class _GuardedBackend(httpcore2.AnyIOBackend):
    """Resolves, checks every address, and connects to one that was checked."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            with anyio.fail_after(timeout):
                found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise EgressError("dns", f"the name {host} was not resolved in time") from None
        except (OSError, UnicodeError) as fault:
            raise EgressError("dns", f"the name {host} cannot be resolved ({_words(fault)})") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for address in addresses:
            reason = self._policy.refusal(host, address, port)
            if reason is not None:
                raise EgressError("refused-by-policy", reason)
        last: Exception = EgressError("dns", f"the name {host} has no address")
        for address in addresses:
            try:
                return _Paced(await super().connect_tcp(address, port, timeout, local_address, socket_options))
            except httpcore2.ConnectTimeout:
                last = EgressError("timeout", f"no connection to {address} port {port} within {timeout:g} s")
            except httpcore2.ConnectError as fault:
                last = _connect_error(fault, address, port)
        raise last


class _Paced(httpcore2.AsyncNetworkStream):
    """A socket that is read no faster than what comes out of it can be taken in beside everything else.

    A few bytes of HTTP can be a lot of work that nobody sees the end of: chunks of one byte, answers before the answer
    (1xx), lines that are no event. When such work went on between two reads and nobody else had a turn meanwhile, less
    is read the next time, and others get as much time as it took."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._most = _READ_FIRST
        self._full = False
        """There was as much as was asked for, and so there is more."""
        self._read_at = 0.0
        self._alone = False
        """Nobody else had a turn since the last read."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes; b"" at the end."""
        took = time.perf_counter() - self._read_at if self._alone else 0.0
        if took > _SLOW_SECONDS:
            self._most = max(self._most // 4, _READ_AT_LEAST)
            await anyio.sleep(min(took, _REST_AT_MOST))
        elif self._full:
            self._most = min(self._most * 4, _READ_AT_MOST)
        found = await self._stream.read(min(max_bytes, self._most), timeout)
        self._full = len(found) == self._most
        self._read_at, self._alone = time.perf_counter(), True
        asyncio.get_running_loop().call_soon(self._turned)
        return found

    def _turned(self) -> None:
        self._alone = False

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All of these bytes."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the socket."""
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """The same, encrypted. Not a byte is sent to whoever shows another certificate than the pinned one."""
        try:
            stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:  # in the middle of a handshake nobody else closes it
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()
            raise
        if isinstance(ssl_context, Pinned):
            shown = shown_by(stream.get_extra_info("ssl_object"))
            if not ssl_context.takes(shown):
                await stream.aclose()
                raise EgressError("pin", "its certificate is not the one that you trusted", shown)
        return _Paced(stream)

    def get_extra_info(self, info: str) -> Any:
        """What the socket knows of itself."""
        return self._stream.get_extra_info(info)


def _connect_error(fault: Exception, address: str, port: int) -> EgressError:
    for cause in _causes(fault):
        if isinstance(cause, ConnectionRefusedError) or getattr(cause, "errno", None) == errno.ECONNREFUSED:
            return EgressError("refused", f"nothing listens at {address} port {port}")
    return EgressError("unreachable", f"{address} port {port} cannot be reached ({_words(fault)})")


def _causes(fault: BaseException) -> Iterable[BaseException]:
    """An exception and everything behind it."""
    stack: list[BaseException] = [fault]
    seen: set[int] = set()
    while stack:
        one = stack.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            stack.extend(one.exceptions)
        stack.extend(behind for behind in (one.__cause__, one.__context__) if behind is not None)


def _words(fault: BaseException) -> str:
    reasons = (getattr(cause, "strerror", None) for cause in _causes(fault))
    text = next(filter(None, reasons), None) or str(fault) or type(fault).__name__
    return " ".join(str(text).split())[:200].rstrip(".")


# --------------------------------------------------------------------------------------------------- the client


@dataclass(slots=True, frozen=True)
class Answer:
    """An HTTP answer whose body is still on the wire."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: AsyncIterator[bytes]

    def header(self, name: str) -> str:
        """The first value of a header; empty when it is absent."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def media_type(self) -> str:
        """What the body is said to be, without its parameters; empty when nothing is said."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @property
    def compressed(self) -> bool:
        """Whether the body must be unpacked before it can be read."""
        return self.header("content-encoding").strip().lower() not in ("", "identity")


class Egress:
    """The guarded HTTP client of a process."""

    def __init__(self, policy: Policy, tls: Tls | None = None) -> None:
        self.policy, self._tls = policy, tls or Tls()
        self._pool: httpcore2.AsyncConnectionPool | None = None

    def trusting(self, tls: Tls | None) -> Egress:
        """The same guard, and a trust of its own: another client, which has to be closed. Itself when there is none."""
        return self if tls is None else Egress(self.policy, tls)

    async def presented(self, url: str, seconds: float = 5.0) -> bytes | None:
        """The certificate that the server at this address shows, trusted or not, to be looked at; None when it shows
        none. Nothing is sent to it."""
        scheme, host, port = split(url).origin
        if scheme != "https":
            return None
        with anyio.move_on_after(seconds), contextlib.suppress(EgressError, httpcore2.NetworkError, OSError):
            stream = await _GuardedBackend(self.policy).connect_tcp(host, port, seconds)
            try:
                stream = await stream.start_tls(looking(), host, seconds)
                return shown_by(stream.get_extra_info("ssl_object"))
            finally:
                with anyio.CancelScope(shield=True):
                    await stream.aclose()
        return None

    def _client(self) -> httpcore2.AsyncConnectionPool:
        if self._pool is None:
            self._pool = httpcore2.AsyncConnectionPool(
                ssl_context=context_of(self._tls),
                max_connections=None,
                max_keepalive_connections=200,
                keepalive_expiry=_IDLE_SECONDS,
                network_backend=_GuardedBackend(self.policy),
            )
        return self._pool

    async def aclose(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            await self._pool.aclose()

    @contextlib.asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        headers: Iterable[tuple[str, str]],
        content: bytes = b"",
        *,
        connect: float = 15.0,
        read: float | None = None,
    ) -> AsyncGenerator[Answer, None]:
        """Send one request; the answer, its body unread. EgressError when there is none, also while reading it.

        `read` is the longest silence between two bytes; None waits for as long as somebody may be thinking."""
        parts = split(url)
        timeouts = {"connect": connect, "write": 30.0, "pool": connect, "read": read}
        wire = [(b"host", parts.netloc.encode()), (b"accept-encoding", b"identity")]
        headers = tuple(headers)
        if not any(name.lower() == "user-agent" for name, _ in headers):
            wire.append((b"user-agent", b"parley"))
        wire += [(name.encode("ascii"), value.strip().encode("latin-1")) for name, value in headers]
        if method == "POST":
            wire.append((b"content-length", str(len(content)).encode()))
        with _translate_errors():
            async with self._client().stream(
                method, url, headers=wire, content=content, extensions={"timeout": timeouts}
            ) as response:
                yield Answer(
                    response.status,
                    tuple((k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in response.headers),
                    _chunks(response.aiter_stream()),
                )


@dataclass(slots=True, frozen=True)
class Parts:
    """The parts of an address that matter here."""

    netloc: str
    origin: tuple[str, str, int]


def split(url: str) -> Parts:
    """Read an http(s) address strictly; EgressError when it is not one (R5-75)."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise EgressError("bad-url", f"{_shown(url)} is not an address ({fault})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EgressError("bad-url", f"{_shown(url)} is not an http or https address")
    if parts.username is not None or parts.password is not None:
        raise EgressError("bad-url", "an address must not contain a user name or password; send them as a header")
    if any(ord(char) <= 32 or ord(char) == 127 for char in url):
        raise EgressError("bad-url", "an address must not contain spaces or control characters")
    if not url.isascii():
        raise EgressError("bad-url", "an address has only ASCII characters; write the others percent-encoded")
    if port == 0:
        raise EgressError("bad-url", f"{_shown(url)} names port 0, on which nobody listens")
    port = port or (443 if parts.scheme == "https" else 80)
    return Parts(parts.netloc, (parts.scheme, parts.hostname.lower(), port))


def _shown(url: str) -> str:
    """An address in a sentence: without its secrets, and not longer than a sentence can bear."""
    return masked_url(url[:500])


async def _chunks(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """A body whose failures are translated like all others."""
    with _translate_errors():
        async for chunk in body:
            yield chunk


class _translate_errors:
    """Turns what httpcore says of a failure into an EgressError."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: type[BaseException] | None, fault: BaseException | None, _tb: object) -> None:
        if fault is None or isinstance(fault, EgressError) or not isinstance(fault, Exception):
            return
        kind: Kind | None
        for cause in _causes(fault):
            if isinstance(cause, ssl.SSLError):
                kind = "certificate" if isinstance(cause, ssl.SSLCertVerificationError) else "tls"
                said = getattr(cause, "verify_message", "") or (cause.reason or str(cause))
                raise EgressError(kind, " ".join(str(said).split())[:200]) from None
            if isinstance(cause, EgressError):
                raise cause from None
        if isinstance(fault, httpcore2.LocalProtocolError):
            raise EgressError("protocol", "a header of the request cannot be sent") from None
        kind = next((_KINDS[each] for each in type(fault).__mro__ if each in _KINDS), None)
        if isinstance(fault, httpcore2.RemoteProtocolError) and any(word in str(fault) for word in _CUT_WORDS):
            kind = "cut"
        if kind is not None:
            raise EgressError(kind, _words(fault)) from None


_CUT_WORDS = ("closed connection", "disconnected")
_KINDS: dict[type, Kind] = {
    httpcore2.ConnectTimeout: "timeout",
    httpcore2.PoolTimeout: "timeout",
    httpcore2.ReadTimeout: "timeout",
    httpcore2.WriteTimeout: "timeout",
    httpcore2.ConnectError: "unreachable",
    httpcore2.NetworkError: "cut",
    httpcore2.RemoteProtocolError: "protocol",
    httpcore2.UnsupportedProtocol: "bad-url",
}
