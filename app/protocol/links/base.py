"""The link: an open, two-way channel of frames to one server, whatever carries it.

Owns the words that transports and JSON-RPC share. A frame is bytes, exact; what it means is for the reader. A link
says what failed where: one request, or the whole channel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import anyio
import anyio.abc

from app.core.errors import ParleyError, Trouble
from app.core.signal import Signal
from app.core.wire import Exchange, Finding, RpcId


class LinkError(ParleyError):
    """The link could not be opened, ended, or lost one request. Carries what to tell the person."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class RequestLost(LinkError):
    """One request got no reply, and the link goes on."""

    def __init__(self, trouble: Trouble, seq: int | None = None) -> None:
        super().__init__(trouble)
        self.seq = seq
        """The message that was meant to be the reply, when one came that cannot be read."""


Place = Literal["line", "body", "refusal", "event", "unasked", "other"]
"""Where a frame stood: alone on a line; as the whole body of an answer, or of one that is no success; in the stream of
an answer; in the stream on which a server speaks unasked; in an answer that is no MCP."""


@dataclass(slots=True, frozen=True)
class Frame:
    """A frame that came with an HTTP exchange; plain `bytes` stand for one that needs no more words."""

    raw: bytes
    via: RpcId = None
    """The id of our request whose answer carried it, when one did."""
    exchange: Exchange | None = None
    place: Place = "line"
    findings: tuple[Finding, ...] = ()
    """What its transport has to say of it."""
    settles: bool = True
    """Whether it may be the reply to a request; not when the HTTP status has already said what became of that."""


@dataclass(slots=True, frozen=True)
class Oversized:
    """A frame above the limit: its beginning, and how much of it had arrived when we stopped reading.

    `fatal` means that the channel cannot go on, because nobody knows where the next frame begins."""

    prefix: bytes
    size: int
    fatal: bool = True
    exchange: Exchange | None = None


@dataclass(slots=True, frozen=True)
class Failed:
    """One request of ours will get no reply, and nothing else is harmed."""

    rpc_id: RpcId
    trouble: Trouble


@dataclass(slots=True, frozen=True)
class Remarked:
    """Something to say beside a frame that we sent."""

    seq: int
    finding: Finding


@dataclass(slots=True, frozen=True)
class Barrier:
    """Everything before this has been taken when `reached` is set."""

    reached: Signal


Inbound = bytes | Frame | Oversized | Failed | Remarked | Barrier


@dataclass(slots=True)
class Delivery:
    """Whether the server has taken a frame. One word is said, the first one counts."""

    trouble: Trouble | None = None
    over: Signal = field(default_factory=Signal)

    def taken(self) -> None:
        """The server has it."""
        self.over.set()

    def failed(self, trouble: Trouble) -> None:
        """It did not get there."""
        if not self.over.is_set():
            self.trouble = trouble
            self.over.set()

    async def wait(self) -> None:
        """Wait until one or the other is known. Raises LinkError when it did not get there."""
        await self.over.wait()
        if self.trouble is not None:
            raise LinkError(self.trouble)


@dataclass(slots=True, frozen=True)
class Outbound:
    """What a link should know of a frame it sends."""

    kind: Literal["request", "notification", "reply"]
    seq: int
    """Of its message in the log."""
    rpc_id: RpcId = None
    method: str | None = None
    delivery: Delivery | None = None
    """Where to say what became of it, when somebody wants to know."""
    headers: tuple[tuple[str, str], ...] = ()
    """What an HTTP request repeats of it."""
    stateless: bool = False
    """A request of 2026-07-28: its stream is all there is of it, and is not resumed (R6-01, R6-50)."""


class Link(Protocol):
    """One open channel."""

    pid: int | None

    def start(self, group: anyio.abc.TaskGroup) -> None:
        """Begin the link's own work beside sending and receiving, in this group; it is cancelled at the end."""

    async def receive(self) -> list[Inbound] | None:
        """The next items, in order, as many as arrived together; None once the channel has ended. Others get their
        turn in any case, before it returns."""

    async def send(self, raw: bytes, about: Outbound) -> None:
        """Put one whole frame on the wire, also when the caller is cancelled. Raises LinkError when it is gone."""

    def agreed(self, version: str) -> None:
        """The handshake settled on this revision."""

    def settled(self, rpc_id: RpcId, *, answered: bool) -> bool:
        """Nobody waits for this request of ours any more; `answered` says whether its reply came. Whether it was taken
        back in time: the server has nothing to do with it, and needs not be told."""

    async def ended(self) -> Trouble:
        """Called once the frames have ended: why, in plain words."""


@dataclass(slots=True, frozen=True)
class Refusal:
    """A server that wants to know who asks, or that wants more than it was shown."""

    status: Literal[401, 403]
    challenges: tuple[str, ...]
    """The `WWW-Authenticate` headers, as they came."""
    sent: str
    """The credentials that the request had; empty when it had none."""
    exchange: Exchange
    seq: int | None = None
    """The message that it carried."""
    again: bool = False
    """It was refused before, and sent again with other credentials."""


class Credentials(Protocol):
    """Who knows how a session proves who it is to its server."""

    async def header(self) -> str:
        """The value for `Authorization`; empty when there is none yet."""

    async def renewed(self, refusal: Refusal) -> bool:
        """A request was refused. Whether it may be sent once more, with other credentials; this may take as long as a
        person needs to sign in."""

    def accepted(self, sent: str, *, again: bool) -> None:
        """A request with these credentials was answered; `again` when it had been refused before."""


class LinkHost(Protocol):
    """What a link tells the session it serves."""

    @property
    def credentials(self) -> Credentials | None:
        """How the session proves who it is; None where its target says all there is to say."""

    def stderr_line(self, line: bytes) -> None:
        """The server wrote a line to its stderr."""

    def step(self, text: str, *, seq: int | None = None, code: str | None = None) -> None:
        """One step of how the connection came about."""

    def moved(self, url: str | None) -> None:
        """The server redirected us to this address; None where a link begins, at the address of its target."""

    def stream_changed(self, words: str) -> None:
        """What became of the stream on which a server speaks unasked."""

    def others_wait(self) -> bool:
        """Whether somebody waits for another session right now."""
