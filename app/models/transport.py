"""The guarded way out, in the shape that the clients of providers take: addresses are checked as for servers.

What those clients would add from the environment of the process, or tell of this machine, stays here; so does the key,
which they do not have.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx2

from app import bounds
from app.egress import Egress, EgressError

NOT_THE_KEY = "added-on-the-way-out"
"""What a client is given in place of a key, for they insist on one."""
_LET_OUT = frozenset({"accept", "content-type", "anthropic-version", "anthropic-beta"})
"""The only headers of a client that a provider gets."""

_TAIL = 64


class TooMuch(httpx2.TransportError):
    """An answer that has no end."""


class _Body(httpx2.AsyncByteStream):
    """The body of an answer; its connection is given back with it."""

    def __init__(self, chunks: AsyncIterator[bytes], held: AsyncExitStack) -> None:
        self._chunks, self._held = chunks, held
        self.tail = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = bounds.MODEL_WIRE_BYTES
        try:
            async for chunk in self._chunks:
                left -= len(chunk)
                if left < 0:
                    raise TooMuch("the answer is too large")
                self.tail = (self.tail + chunk)[-_TAIL:]
                yield chunk
        except EgressError as fault:
            raise _translated(fault) from None

    async def aclose(self) -> None:
        await self._held.aclose()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """The client of a provider dials through this and nothing else: no proxy, no redirect, no other pool."""

    def __init__(self, egress: Egress, credentials: tuple[str, str] | None) -> None:
        self._egress, self._credentials = egress, credentials
        self._body: _Body | None = None

    @property
    def said_done(self) -> bool:
        """Whether the last answer ended with the words by which OpenAI ends one."""
        return self._body is not None and b"[DONE]" in self._body.tail

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = [(name, value) for name, value in request.headers.items() if name.lower() in _LET_OUT]
        if self._credentials is not None:
            headers.append(self._credentials)
        content = await request.aread()
        async with AsyncExitStack() as stack:
            try:
                answer = await stack.enter_async_context(
                    self._egress.request(request.method, str(request.url), headers, content, read=bounds.MODEL_SECONDS)
                )
            except EgressError as fault:
                raise _translated(fault) from None
            held = stack.pop_all()
        self._body = _Body(answer.body, held)
        return httpx2.Response(answer.status, headers=list(answer.headers), stream=self._body)


def _translated(fault: EgressError) -> httpx2.TransportError:
    kind = {"timeout": httpx2.ReadTimeout, "cut": httpx2.RemoteProtocolError}.get(fault.kind, httpx2.ConnectError)
    return kind(fault.detail)
