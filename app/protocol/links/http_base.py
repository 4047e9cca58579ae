"""What the two HTTP transports share: one bounded queue for all streams, headers, redirects, the reading of answers.

Everything that arrives on any stream goes through one bounded queue, so a flood pushes back on its own socket. Knows
neither of the two transports.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from urllib.parse import urldefrag, urljoin

import anyio
import anyio.abc

from app import bounds
from app.core.errors import Trouble
from app.core.log import MessageLog
from app.core.rules import catalogue
from app.core.targets import HttpTarget
from app.core.wire import Exchange, Finding, RpcId
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


class TooLarge(Exception):
    def __init__(self, prefix: bytes, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.prefix, self.size = prefix, size


async def whole_body(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """The whole body, if it is not larger than the limit."""
    found = bytearray()  # and no list: a body may come byte by byte
    async for chunk in chunks:
        found += chunk
        if len(found) > limit:
            raise TooLarge(bytes(found[: bounds.REFUSAL_BYTES]), len(found))
    return bytes(found)


async def beginning(answer: Answer, limit: int = bounds.REFUSAL_BYTES) -> bytes:
    """The beginning of a body that is only shown."""
    found = bytearray()
    async for chunk in answer.body:
        found += chunk
        if len(found) >= limit:
            break
    return bytes(found[:limit])


class HttpLink:
    """What both HTTP transports share: the queue, the headers, the record of exchanges."""

    def __init__(self, target: HttpTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog) -> None:
        self._target, self._limits, self._host = target, limits, host
        self._exchanges = Exchanges(egress, log, target.secret)
        self._put, self._take = anyio.create_memory_object_stream[Inbound](bounds.LINK_QUEUE)
        self._group: anyio.abc.TaskGroup | None = None
        self._waiting: dict[RpcId, anyio.CancelScope] = {}
        self._stateless: set[RpcId] = set()
        self._trouble: Trouble | None = None
        self._version: str | None = None
        self._moved_to: str | None = None
        """Where the server redirected us to, within its origin."""
        self.pid: int | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Hold the tasks of this link until it is cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            self._host.moved(None)
            self._started()
            task_status.started()
            await anyio.sleep_forever()

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

    def settled(self, rpc_id: RpcId, *, answered: bool) -> None:
        """The stream that waits for this reply may end. In 2026-07-28 closing it is how one cancels (R6-50)."""
        scope = self._waiting.pop(rpc_id, None)
        stateless = rpc_id in self._stateless
        self._stateless.discard(rpc_id)
        if scope is None:
            return
        if stateless and not answered:
            scope.cancel()
        else:
            scope.deadline = anyio.current_time() + bounds.LINGER_SECONDS

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

    @property
    def _url(self) -> str:
        return self._moved_to or self._target.url

    def _move(self, where: str) -> str:
        """Use this address from now on."""
        self._moved_to = where
        self._host.moved(where)
        return where

    def _goes_to(self, where: str, status: int) -> str:
        """Say that a redirect is followed, and how, for the exchange that follows it."""
        shown = masked_url(where)
        self._host.step(f"The server redirects ({status}) to {shown}, within its origin, so Parley goes there.")
        return f"The server redirected here ({status})."

    async def _gently(self, answer: Answer) -> AsyncIterator[bytes]:
        """The body in chunks. A large one rests while somebody waits for another session, and its sender with it."""
        read = 0
        async for chunk in answer.body:
            yield chunk
            read += len(chunk)
            if read >= _LARGE and self._host.others_wait():
                await anyio.sleep(_REST_SECONDS)

    async def _events(self, answer: Answer) -> AsyncIterator[SseEvent | Oversized]:
        parser = SseParser(self._limits.message_bytes)
        async for chunk in self._gently(answer):
            for at in range(0, len(chunk), bounds.STREAM_SLICE):
                for event in parser.feed(chunk[at : at + bounds.STREAM_SLICE]):
                    yield event
                    if isinstance(event, Oversized):
                        return

    async def _failed(self, about: Outbound, exchange: Exchange, trouble: Trouble) -> None:
        """One POST got nowhere: its request fails, or a remark stands beside the frame."""
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
