"""Where the phones of a room come in: a second listener, which knows the pages of rooms and nothing else.

`parley demo --room ADDRESS` names it. It is there as long as a room is open: before and after, nothing listens. All
else of Parley stays where it was, on loopback behind its login.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from app import server
from app.core.errors import Conflict
from app.core.links import is_loopback
from app.settings import Settings

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
PORT = 6282


class Unusable(ValueError):
    """An address where no room can be. Says why in one sentence."""


def place(text: str) -> tuple[str, int]:
    """Host and port of an address as somebody types it. Raises Unusable."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", parts.port
        bare = f"{parts.netloc}/" == f"{text}/" and "@" not in text
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host) if bare else None
    except ValueError:
        address, port = None, None
    if address is None:
        raise Unusable("--room takes an address of this machine like 192.168.1.20 or 192.168.1.20:8080")
    if address.is_unspecified or address.is_multicast:
        raise Unusable("--room takes the one address that phones use, not every address of this machine")
    return str(address), PORT if port is None else port


def outside(url: str | None, option: str = "--room-url") -> str:
    """How phones and visitors call it, when something stands before it, as browsers spell it. Raises Unusable."""
    if not url:
        return ""
    fault = Unusable(f"{option} takes an address like https://room.example.com, without a path")
    try:
        parts = urlsplit(url.rstrip("/"))
        host, port = parts.hostname, parts.port
    except ValueError:
        raise fault from None
    plain = parts.scheme in {"http", "https"} and not (parts.path or parts.query or parts.fragment)
    if not host or not plain or "@" in parts.netloc or not url.isascii() or not url.isprintable():
        raise fault
    usual = port is None or port == {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{'' if usual else f':{port}'}"


def proxies(given: Sequence[str] | None, url: str) -> tuple[Network, ...]:
    """Who may say for whom it asks: what stands before us, on this machine unless told. Raises Unusable."""
    if not url:
        if given:
            raise Unusable("--trusted-proxy names what stands before --room-url or --public-url; give that too")
        return ()
    try:
        found = tuple(ipaddress.ip_network(text) for text in given or ("127.0.0.1", "::1"))
    except ValueError:
        raise Unusable("--trusted-proxy takes an address like 10.0.3.7 or a network like 10.0.3.0/28") from None
    if any(net.num_addresses > 2**16 for net in found):
        raise Unusable("--trusted-proxy names a network so wide that anybody could pose as the proxy")
    return found


class Listener:
    """The way in for phones, opened with the first room and closed with the last."""

    def __init__(self, host: str, port: int, url: str = "", trusted: tuple[Network, ...] = ()) -> None:
        """Raises server.CannotListen when it could not be had: better now than before an audience."""
        self.trusted = trusted
        self.host, self.port, self.url = host, port, url
        try:
            found = server.bind_to(host, port)
        except OSError as fault:
            raise server.CannotListen(server.why(fault, host, port).replace("--port", "--room ADDRESS:PORT")) from fault
        self.port = found.getsockname()[1]
        found.close()
        self._socket: socket.socket | None = None
        self.at: RoomServer | None = None

    @property
    def origin(self) -> str:
        """How phones call it."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return self.url or f"http://{shown}{'' if self.port == 80 else f':{self.port}'}"

    @property
    def names(self) -> list[str]:
        """The names by which phones may call it."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        more = ["localhost"] if is_loopback(self.host) else []
        return [own, *more, *([(urlsplit(self.url).hostname or "").lower()] if self.url else [])]

    @property
    def words(self) -> str:
        """Who can reach a room there."""
        who = "Only this machine" if is_loopback(self.host) and not self.url else "Everybody who can reach"
        where = f"reaches {self.origin}" if who.startswith("Only") else self.origin
        return (
            f"{who} {where}{'' if who.startswith('Only') else ' reaches it'}: the pages of the room and nothing else "
            "of Parley, for as long as the room is open."
        )

    def address(self, code: str) -> str:
        """Where the phones of a room go."""
        return f"{self.origin}/j/{code}"

    def opened(self) -> None:
        """There is a room: listen."""
        if self._socket is not None or self.at is None:
            return
        try:
            self._socket = server.bind_to(self.host, self.port)
        except OSError as fault:
            raise Conflict(f"Phones cannot come in: {server.why(fault, self.host, self.port)}") from fault
        self.at.also(self._socket)

    def ended(self) -> None:
        """There is none any more: nothing listens."""
        if self._socket is not None and self.at is not None:
            self.at.no_more(self._socket)
            self._socket = None


class RoomServer(server.Server):
    """The server of Parley, which lets phones in at a second place."""

    def __init__(
        self, app: Any, settings: Settings, listening: Callable[[], Awaitable[None]], listener: Listener
    ) -> None:
        super().__init__(app, settings, listening)
        self._listener, listener.at = listener, self
        self._phones: uvicorn.Config | None = None
        self._second: socket.socket | None = None

    def also(self, sock: socket.socket) -> None:
        """Let phones in there."""
        if self._phones is None:
            from app.web.guests.listener import create_room_app

            here = self._listener
            made = create_room_app(self._app, here.names, here.url, here.trusted)
            self._phones = server.configured(made, self._limits, "off")
            self._phones.load()
        self._second = sock
        self._listen(sock)

    def no_more(self, sock: socket.socket) -> None:
        """Let nobody in there any more; who is in has been told, and leaves."""
        with suppress(ValueError, OSError):
            asyncio.get_running_loop().remove_reader(sock)
        sock.close()
        self._second = None
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, self._close_phones)

    def _close_phones(self) -> None:
        if self._second is None:
            for one in self._connections():
                if one.config is self._phones:
                    one.transport.close()

    def _listen(self, sock: socket.socket) -> None:
        if sock.fileno() >= 0:  # it may have been closed while it paused
            super()._listen(sock)

    def _protocol_of(self, sock: socket.socket) -> Callable[[], server.Protocol]:
        config = self._phones
        if sock is not self._second or config is None:
            return super()._protocol_of(sock)
        return lambda: server.Protocol(config, self.server_state, {}, self._limits)

    def _room_of(self, sock: socket.socket) -> int:
        """Phones get half of the connections: however many come, the presenter's page keeps its own."""
        room = super()._room_of(sock)
        if sock is not self._second:
            return room
        phones = sum(one.config is self._phones for one in self._connections())
        return min(room, self._most // 2 - phones)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._listener.ended()
        await super().shutdown(sockets)
