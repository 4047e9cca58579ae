"""Which addresses may be dialled: decided on what a name was resolved to, never on how it is spelled.

Knows addresses; knows no HTTP, no session and no page.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Literal

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Reach = Literal["machine", "network", "internet"]

_METADATA = tuple(
    ipaddress.ip_network(net)
    for net in ("169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "fd00:ec2::/32", "192.0.0.192/32")
)
"""Where clouds keep the credentials of their machines."""
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(net) for net in ("168.63.129.16/32", "192.88.99.0/24", "3fff::/20", "5f00::/16")
)
"""Beside what the library knows: a host of one cloud's own, relays that are out of use, documentation, segments."""
_INSIDE = tuple(ipaddress.ip_network(net) for net in ("168.63.129.16/32",))
"""Of these, what no name that was allowed may lead to either."""


@dataclass(slots=True)
class Policy:
    """Which resolved addresses a mode may dial."""

    mode: Literal["local", "team", "demo"] = "local"
    own_ports: set[int] = field(default_factory=set)
    """Where Parley itself listens: it is never its own target (S22)."""
    reach: Reach = "machine"
    """How far inside an address may lie: one that a server names, and no person typed, lies no further inside than the
    server itself (S24)."""
    allowed: Set[tuple[str, int]] = frozenset()
    """Internal names, each with its port, that an admin allowed: they may resolve to private addresses, never to
    metadata or ourselves, and to this machine only where the name says that it is this machine."""

    def refusal(self, name: str, address: str, port: int) -> str | None:
        """Why this address may not be dialled; None when it may."""
        ip = ipaddress.ip_address(address.split("%")[0])
        if self.mode == "demo":
            own = ip.is_loopback and (name, port) in self.allowed  # its one bundled server
            return None if own else "this Parley dials no addresses"
        for form in _forms(ip):
            if any(form.version == net.version and form in net for net in _METADATA):
                return f"{address} is a link-local or metadata address"
            if form.is_multicast or form.is_unspecified or (form.version == 4 and form in _BROADCAST):
                return f"{address} is not the address of one machine"
            if port in self.own_ports and (form.is_loopback or _is_ours(form)):
                return f"{address} port {port} is this Parley itself"
            if form.is_loopback and self.reach != "machine":
                return f"{address} is this machine, and who names it is not on it"
            if self.reach == "internet" and not form.is_global:
                return f"{address} is not a public address, and who names it is on the internet"
        return self._refusal_of_a_team(ip, address, name.rstrip(".").lower(), port) if self.mode == "team" else None

    def _refusal_of_a_team(self, ip: Address, address: str, name: str, port: int) -> str | None:
        allowed = (name, port) in self.allowed
        if not allowed and any(net.version == ip.version and ip in net for net in _NAT64):
            return f"{address} is not a public address"
        for form in _forms(ip):
            if any(form.version == net.version and form in net for net in _INSIDE):
                return f"{address} is a link-local or metadata address"
            if allowed and (form.is_loopback or _is_ours(form)) and not is_this_machine(name):
                return f"{address} is this machine, which the name {name} does not say"
            known = any(form.version == net.version and form in net for net in _NOT_PUBLIC)
            if not allowed and (known or not form.is_global or (form.version == 6 and form.is_site_local)):
                return f"{address} is not a public address"
        return None


_BROADCAST = ipaddress.ip_network("255.255.255.255/32")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""What stands before the IPv4 address in the lower half of an address that tunnels by ISATAP."""


def is_this_machine(name: str) -> bool:
    """Whether a name says by itself that it is this machine."""
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _forms(ip: Address) -> Iterable[Address]:
    """An address and every IPv4 address that hides in it."""
    yield ip
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            yield ip.ipv4_mapped
        if ip.sixtofour is not None:
            yield ip.sixtofour
        if ip.teredo is not None:
            yield from ip.teredo
        if int(ip) >> 32 in (0, 0xFFFF_0000):  # IPv4-compatible and IPv4-translated, long out of use
            yield ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if any(ip in net for net in _NAT64) or int(ip) >> 32 & 0xFFFFFFFF in _ISATAP:
            yield ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)


def _is_ours(ip: Address) -> bool:
    """Whether an address belongs to this machine: only its own addresses can be bound."""
    family = socket.AF_INET6 if ip.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(ip), 0))
    except OSError:
        return False
    return True


def reach_of(addresses: Iterable[str]) -> Reach:
    """How far inside the least protected of these addresses lies: what a server at them may name, at the most."""
    found: Reach = "machine"
    for address in addresses:
        ip = ipaddress.ip_address(address.split("%")[0])
        ip = ip.ipv4_mapped or ip if isinstance(ip, ipaddress.IPv6Address) else ip
        if ip.is_global:
            return "internet"
        if not ip.is_loopback:
            found = "network"
    return found
