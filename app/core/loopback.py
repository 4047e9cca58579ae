"""Which hosts are the machine of the person who opens them, by how they are written: nothing is looked up."""

from __future__ import annotations

import ipaddress
import socket


def is_own_machine(host: str) -> bool:
    """Whether a browser that opens this host stays on its own machine.

    A browser reads `127.1`, `0x7f.1` and `2130706433` as addresses too, and takes the unspecified address for its own.
    """
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    try:
        address = ipaddress.IPv6Address(name) if ":" in name else ipaddress.IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified
