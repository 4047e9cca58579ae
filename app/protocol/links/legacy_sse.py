"""HTTP with SSE of 2024-11-05: one stream for everything that the server says, POSTs for what we say."""

from __future__ import annotations

from dataclasses import replace

import anyio

from app import bounds
from app.core.errors import Trouble
from app.core.log import MessageLog
from app.core.signal import Signal
from app.core.targets import HttpTarget
from app.core.wire import Exchange, RpcId
from app.egress import Answer, Egress, EgressError, split
from app.protocol.links.base import Frame, LinkError, LinkHost, Outbound, Oversized
from app.protocol.links.http_base import Address, HttpLink, beginning, delivering, joined, message_in
from app.protocol.links.words import COMPRESSED, content_trouble, status_trouble
from app.secrecy import masked_url, without
from app.settings import Limits


class SseLink(HttpLink):
    """HTTP with SSE of 2024-11-05: one stream for everything the server says, POSTs for what we say (R5-47)."""

    def __init__(self, target: HttpTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog) -> None:
        super().__init__(target, limits, egress, host, log)
        self._endpoint: Address | None = None
        self._known = Signal()
        self._posts: dict[RpcId, tuple[anyio.CancelScope, int]] = {}
        """The POST of each request, with the seq of its message."""

    def _started(self) -> None:
        if self._group is not None:
            self._group.start_soon(self._listen)

    async def send(self, raw: bytes, about: Outbound) -> None:
        """One POST in a task of its own, to where the server said; the reply comes on the stream."""
        if self._group is None:
            raise LinkError(await self.ended())
        await self._known.wait()
        if self._endpoint is None or self._trouble is not None:
            raise LinkError(await self.ended())
        self._group.start_soon(self._post, raw, about, self._endpoint)

    def settled(self, rpc_id: RpcId, *, answered: bool) -> bool:
        """Replies come on the one stream, so no POST waits for them; one that waits for credentials is taken back."""
        scope, seq = self._posts.get(rpc_id, (None, 0))
        if scope is None or seq not in self._held:
            return False
        scope.cancel()
        return True

    async def _post(self, raw: bytes, about: Outbound, endpoint: Address) -> None:
        with anyio.CancelScope() as scope:
            if about.kind == "request":
                self._posts[about.rpc_id] = scope, about.seq
            try:
                await self._posted(raw, about, endpoint)
            finally:
                self._posts.pop(about.rpc_id, None)

    async def _posted(self, raw: bytes, about: Outbound, endpoint: Address) -> None:
        headers = self._headers("application/json", ("content-type", "application/json"))
        silence = bounds.SHORT_READ_SECONDS
        with delivering(about):
            try:
                posting = self._request("POST", endpoint, headers, raw, seq=about.seq, read=silence)
                async with posting as (answer, exchange):
                    if not 200 <= answer.status < 300:
                        trouble = status_trouble(answer, await beginning(answer), endpoint.url, self._secrets)
                        await self._failed(about, trouble, exchange)
            except EgressError as fault:
                await self._failed(about, await self._why(fault, endpoint.url))

    async def _listen(self) -> None:
        trouble = Trouble("cut", "The server ended the stream, and with it the connection.", "Connect again.")
        try:
            listening = self._request("GET", self._address, self._headers("text/event-stream"))
            async with listening as (answer, exchange):
                found = await self._heard(answer, exchange)
                if found is not None:
                    trouble, exchange.error = found, found.message
        except EgressError as fault:
            trouble = await self._why(fault, self._address.url)
        finally:
            self._over(trouble)
            self._known.set()

    async def _heard(self, answer: Answer, exchange: Exchange) -> Trouble | None:
        """Everything that comes on the stream; why it cannot go on, when it is not the server that ended it."""
        if answer.status != 200:
            return status_trouble(answer, await beginning(answer), self._address.url, self._secrets)
        if answer.media_type != "text/event-stream":
            return content_trouble(answer.media_type, await beginning(answer))
        if answer.compressed:
            return COMPRESSED
        async for event in self._events(answer):
            if isinstance(event, Oversized):
                await self._tell(replace(event, fatal=True, exchange=exchange))
                return None
            if event.event == "endpoint" and self._endpoint is None:
                trouble = self._found_endpoint(event.data)
                if trouble is not None:
                    return trouble
            elif (findings := message_in(event, "R5-47")) is not None:
                if self._endpoint is None:
                    return Trouble(
                        "no-endpoint", "The stream does not begin with an `endpoint` event.", "Check the address."
                    )
                await self._tell(Frame(event.data, None, exchange, "event", findings))
        return None

    def _found_endpoint(self, data: bytes) -> Trouble | None:
        """Where to POST. It must be of the same origin: a server does not get to aim us at somebody else."""
        if len(data) > bounds.SERVER_ADDRESS:
            said = f"The server named an endpoint of {len(data):,} bytes, and Parley takes {bounds.SERVER_ADDRESS:,}."
            return Trouble("endpoint", said, "Check the server.")
        try:
            where = joined(self._address.url, data.decode(errors="replace").strip())
            same = split(where).origin == split(self._target.url).origin
        except (EgressError, ValueError) as fault:
            said = fault.detail if isinstance(fault, EgressError) else "it is not an address"
            return Trouble("endpoint", f"The endpoint the server named cannot be used: {said}.", "Check the server.")
        shown = without(masked_url(where), self._secrets)
        if not same:
            return Trouble(
                "endpoint",
                f"The server named an endpoint of another origin: {shown}.",
                "Parley does not follow.",
            )
        self._endpoint = Address(where)
        self._host.stream_changed("open")
        self._host.step(f"The server takes messages at {shown}")
        self._known.set()
        return None
