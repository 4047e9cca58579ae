"""What the two HTTP transports share: one bounded queue for all streams, headers, redirects, the reading of answers.

Everything that arrives on any stream goes through one bounded queue, so a flood pushes back on its own socket. Knows
neither of the two transports.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urldefrag, urljoin

import anyio
import anyio.abc

from app import bounds
from app.core import certificates
from app.core.errors import Trouble
from app.core.log import MessageLog
from app.core.rules import catalogue
from app.core.targets import HttpTarget
from app.core.wire import Exchange, Finding
from app.egress import Answer, Egress, EgressError, split
from app.protocol.exchanges import Exchanges, egress_trouble
from app.protocol.links.base import Failed, Inbound, LinkHost, Outbound, Oversized, Refusal, Remarked
from app.protocol.links.sse_parser import SseEvent, SseParser
from app.secrecy import masked_url, without
from app.settings import Limits
from app.trust import Tls

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
        self._egress = egress.trusting(None if target.tls is None else Tls(target.tls.ca, target.tls.fingerprint))
        self._own_egress = self._egress is not egress
        self._secrets = set(target.secret_values)
        """What the server may quote and nobody may see."""
        self._exchanges = Exchanges(self._egress, log, target.secret, self._secrets)
        self._put, self._take = anyio.create_memory_object_stream[Inbound](bounds.LINK_QUEUE)
        self._group: anyio.abc.TaskGroup | None = None
        self._trouble: Trouble | None = None
        self._version: str | None = None
        self._held: set[int] = set()
        """The messages that wait for credentials, by their seqs: the server has not got them, or refused them."""
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

    async def gone(self) -> None:
        """Nothing is sent any more: a client of its own is closed."""
        if self._own_egress:
            await self._egress.aclose()

    async def _why(self, fault: EgressError, url: str) -> Trouble:
        """What to say of a request that got no answer, with the certificate that was in the way."""
        trouble = egress_trouble(fault, url, self._secrets)
        if fault.kind not in ("certificate", "pin"):
            return trouble
        shown = fault.certificate or await self._egress.presented(url)
        return replace(trouble, certificate=certificates.read(shown)) if shown else trouble

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
        """Send a request, once more where the server redirects it to, and once more when whoever it was refused to has
        signed in; see `Exchanges.send`."""
        note, credentials, again = None, self._host.credentials, False
        while True:
            url = address.url
            with self._holding(seq):
                sent, kept = await self._authorization(), None  # type: str, Answer | None
            send = self._exchanges.send(
                method, url, with_authorization(headers, sent), content, seq=seq, note=note, read=read
            )
            async with send as (answer, exchange):
                where = redirect(answer, url) if url == address.named else None
                stays = where is None or address.moved not in (None, where)
                refused = credentials is not None and answer.status in (401, 403)
                if stays and not refused:
                    if credentials is not None and sent and answer.status < 400:
                        credentials.accepted(sent, again=again)
                    yield answer, exchange
                    return
                if stays:
                    # Whoever signs in may take minutes: the answer is read, and the socket is free.
                    kept = replace(answer, body=_whole(await beginning(answer)))
                elif address.moved is None and where is not None:
                    there = without(masked_url(where), self._secrets)
                    said = f"The server redirects ({answer.status}) to {there}"
                    self._host.step(f"{said}, within its origin, so Parley goes there.")
                    note = f"The server redirected here ({answer.status})."
                    address.moved = where
                    if address is self._address:
                        self._host.moved(where)
            if kept is not None and credentials is not None:
                wanted = tuple(text for name, text in kept.headers if name == "www-authenticate")
                status: Literal[401, 403] = 401 if kept.status == 401 else 403
                with self._holding(seq):
                    renewed = await credentials.renewed(Refusal(status, wanted, sent, exchange, seq, again))
                if not renewed:
                    yield kept, exchange
                    return
                again, note = True, "Sent again: the server refused it before, and now there are other credentials."

    @contextmanager
    def _holding(self, seq: int | None) -> Iterator[None]:
        """Whoever gives up meanwhile takes the message back (see `settled`)."""
        if seq is None:
            yield
            return
        self._held.add(seq)
        try:
            yield
        finally:
            self._held.discard(seq)

    async def _authorization(self) -> str:
        """What proves who we are, besides the headers of the target; the server may quote it, so it is hidden."""
        credentials = self._host.credentials
        sent = "" if credentials is None else await credentials.header()
        if sent:
            self._secrets.update((sent, sent.rpartition(" ")[2]))
        return sent

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


def with_authorization(headers: list[tuple[str, str]], sent: str) -> list[tuple[str, str]]:
    """These credentials in the place of any that the target has."""
    if not sent:
        return headers
    return [*(pair for pair in headers if pair[0].lower() != "authorization"), ("authorization", sent)]


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    """A body that was read already."""
    yield body


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
