"""What the two HTTP transports share: one bounded queue for all streams, headers, redirects, the reading of answers.

Everything that arrives on any stream goes through one bounded queue, so a flood pushes back on its own socket. Knows
neither of the two transports.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from urllib.parse import urldefrag, urljoin

import anyio
import anyio.abc

from app import bounds
from app.core.errors import Trouble
from app.core.log import MessageLog
from app.core.rules import catalogue
from app.core.targets import HttpTarget
from app.core.wire import Exchange, Finding
from app.egress import Answer, Egress, EgressError, split
from app.protocol.exchanges import Exchanges
from app.protocol.links.base import Failed, Inbound, LinkHost, Outbound, Oversized, Remarked
from app.protocol.links.sse_parser import SseEvent, SseParser
from app.secrecy import masked_url
from app.settings import Limits

_LARGE = 256 * 1024
_REST_SECONDS = 0.002


def redirect(answer: Answer, url: str) -> str | None:
    """Where a 307 or 308 leads, which keep method and body, when it stays within the origin; else None."""
    if answer.status not in (307, 308):
        return None
    named = answer.header("location")
    if len(named) > bounds.SERVER_ADDRESS:
        return None
    where = joined(url, named)
    try:
        return where if where != url and split(where).origin == split(url).origin else None
    except EgressError:
        return None


def joined(base: str, named: str) -> str:
    """An address that a server named, seen from where we are."""
    try:
        return urldefrag(urljoin(base, named)).url
    except ValueError:
        return named  # and `split` says what is wrong with it


def message_in(event: SseEvent, rule: str = "R5-41") -> tuple[Finding, ...] | None:
    """What to say of the message in an event; None when there is none, as in keep-alives with a type of their own."""
    if not event.data:
        return None
    if event.event == "message":
        return ()
    if b'"jsonrpc"' not in event.data:
        return None
    return (catalogue.other_event_type(rule=rule, event=event.event),)


async def read_body(chunks: AsyncIterator[bytes], enough: int) -> bytes:
    """The whole body, or its first chunks once they make enough bytes."""
    found = bytearray()  # and no list: a body may come byte by byte
    async for chunk in chunks:
        found += chunk
        if len(found) >= enough:
            break
    return bytes(found)


async def beginning(answer: Answer) -> bytes:
    """The beginning of a body that is only shown."""
    return (await read_body(answer.body, bounds.REFUSAL_BYTES))[: bounds.REFUSAL_BYTES]


@dataclass(slots=True)
class Address:
    """Where requests go: what was named, until a redirect within its origin leads elsewhere, once."""

    named: str
    moved: str | None = None

    @property
    def url(self) -> str:
        """The address to use now."""
        return self.moved or self.named


class HttpLink:
    """What both HTTP transports share: the queue, the headers, the record of exchanges."""

    def __init__(self, target: HttpTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog) -> None:
        self._target, self._limits, self._host = target, limits, host
        self._exchanges = Exchanges(egress, log, target.secret)
        self._put, self._take = anyio.create_memory_object_stream[Inbound](bounds.LINK_QUEUE)
        self._group: anyio.abc.TaskGroup | None = None
        self._trouble: Trouble | None = None
        self._version: str | None = None
        self._address = Address(target.url)
        self.pid: int | None = None

    def start(self, group: anyio.abc.TaskGroup) -> None:
        """From now on each POST and each stream is a task of this group."""
        self._group = group
        self._host.moved(None)
        self._started()

    def _started(self) -> None:
        """The task group is open."""

    async def receive(self) -> list[Inbound] | None:
        """What arrived on any of the streams."""
        items: list[Inbound] = []
        try:
            items.append(await self._take.receive())
            while len(items) < bounds.LINK_QUEUE:
                items.append(self._take.receive_nowait())
        except anyio.WouldBlock:
            pass
        except anyio.EndOfStream:
            return items or None
        return items

    def agreed(self, version: str) -> None:
        """From now on every request carries the revision (R5-46)."""
        self._version = version

    async def ended(self) -> Trouble:
        """Why it ended."""
        return self._trouble or Trouble("closed", "The server closed the connection.", "Connect again.")

    def close(self) -> None:
        """Nobody reads any more."""
        self._put.close()
        self._take.close()

    async def goodbye(self) -> None:
        """Tell the server that we leave, where there is a way to say so."""

    def _over(self, trouble: Trouble) -> None:
        """The whole channel has ended."""
        self._trouble = self._trouble or trouble
        self._put.close()

    async def _tell(self, item: Inbound) -> None:
        try:
            await self._put.send(item)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    def _headers(self, accept: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
        headers = [("accept", accept), *more]
        if self._version is not None and not any(name == "mcp-protocol-version" for name, _ in more):
            headers.append(("mcp-protocol-version", self._version))
        return headers + list(self._target.headers.items())

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        address: Address,
        headers: list[tuple[str, str]],
        content: bytes = b"",
        *,
        seq: int | None = None,
        read: float | None = None,
    ) -> AsyncGenerator[tuple[Answer, Exchange], None]:
        """Send a request, once more where the server redirects it to; see `Exchanges.send`."""
        note = None
        while True:
            url = address.url
            send = self._exchanges.send(method, url, headers, content, seq=seq, note=note, read=read)
            async with send as (answer, exchange):
                where = redirect(answer, url) if url == address.named else None
                if where is None or address.moved not in (None, where):
                    yield answer, exchange
                    return
                if address.moved is None:
                    said = f"The server redirects ({answer.status}) to {masked_url(where)}"
                    self._host.step(f"{said}, within its origin, so Parley goes there.")
                    note = f"The server redirected here ({answer.status})."
                    address.moved = where
                    if address is self._address:
                        self._host.moved(where)

    async def _throttled(self, answer: Answer) -> AsyncIterator[bytes]:
        """The body in chunks. A large one rests while somebody waits for another session, and its sender with it."""
        read = 0
        async for chunk in answer.body:
            yield chunk
            read += len(chunk)
            if read >= _LARGE and self._host.others_wait():
                await anyio.sleep(_REST_SECONDS)

    async def _events(self, answer: Answer) -> AsyncIterator[SseEvent | Oversized]:
        parser = SseParser(self._limits.message_bytes)
        async for chunk in self._throttled(answer):
            for at in range(0, len(chunk), bounds.STREAM_SLICE):
                for event in parser.feed(chunk[at : at + bounds.STREAM_SLICE]):
                    yield event
                    if isinstance(event, Oversized):
                        return

    async def _failed(self, about: Outbound, trouble: Trouble, exchange: Exchange | None = None) -> None:
        """One POST got nowhere: its request fails, or a remark stands beside the frame. The exchange is given when
        it has an answer: without one, its record says so already."""
        if exchange is not None:
            exchange.error = exchange.error or trouble.message
        if about.delivery is not None:
            about.delivery.failed(trouble)
        if about.kind == "request":
            await self._tell(Failed(about.rpc_id, trouble))
        else:
            await self._tell(Remarked(about.seq, catalogue.post_failed(message=trouble.message, advice=trouble.advice)))


@contextmanager
def delivering(about: Outbound) -> Iterator[None]:
    """Whatever happens to a POST, whoever waits for its delivery hears of it."""
    try:
        yield
        if about.delivery is not None:
            about.delivery.taken()
    finally:
        if about.delivery is not None:
            about.delivery.failed(Trouble("lost", "The connection ended before this was delivered.", "Connect again."))
