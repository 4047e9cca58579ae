"""Where a request came from. What a header says of that counts only when a proxy that somebody named has sent it."""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def peer(client: object) -> Address | None:
    """Who opened the connection."""
    try:
        address = ipaddress.ip_address(client[0])  # type: ignore[index]
    except (TypeError, ValueError, IndexError):
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_among(address: Address | None, networks: tuple[Network, ...]) -> bool:
    """Whether an address is one of these."""
    return address is not None and any(address.version == net.version and address in net for net in networks)


def forwarded(headers: Headers) -> Address | None:
    """Where a request came from, as the proxy saw it: what the proxy itself added, which is the last one. Some add a
    header of their own below those that came, and some the port."""
    said = ",".join(headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    if said.startswith("["):
        said = said[1:].partition("]")[0]
    elif said.count(":") == 1:
        said = said.partition(":")[0]
    return peer((said,))


def household(address: Address | None) -> str:
    """Who counts as one: an address, and of the newer kind its network, for one household has 2^64 of them. Empty for
    nowhere in particular."""
    if address is None or address.version == 4:
        return "" if address is None else str(address)
    return str(ipaddress.ip_network((int(address), 64), strict=False))


class FromAddress:
    """Notes where each request came from, for what nobody may have too much of. Empty where that says nothing: on this
    machine without a proxy, everybody has the same address."""

    def __init__(self, app: ASGIApp, proxies: tuple[Network, ...]) -> None:
        self.app, self.proxies = app, proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["address"] = self._of(scope)
        await self.app(scope, receive, send)

    def _of(self, scope: Scope) -> str:
        address = peer(scope.get("client"))
        if is_among(address, self.proxies):
            address = forwarded(Headers(scope=scope)) or address
        return "" if address is not None and address.is_loopback and not self.proxies else household(address)


def address_of(request: Request) -> str:
    """Where a request came from; empty for nowhere in particular."""
    found: str = getattr(request.state, "address", "")
    return found
