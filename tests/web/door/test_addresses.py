"""Who counts as one, for what nobody may have too much of."""

import ipaddress

import pytest
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from app.web.door.addresses import FromAddress, forwarded, household

pytestmark = pytest.mark.requirement("S41")
PROXY = (ipaddress.ip_network("192.0.2.1/32"),)


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        (["203.0.113.5"], "203.0.113.5"),
        (["198.51.100.9, 203.0.113.5"], "203.0.113.5"),
        (["198.51.100.9", "203.0.113.5"], "203.0.113.5"),  # a proxy that adds a line of its own
        (["198.51.100.9", "198.51.100.8,203.0.113.5"], "203.0.113.5"),
        (["203.0.113.5:50123"], "203.0.113.5"),
        (["::ffff:203.0.113.5"], "203.0.113.5"),
        (["[2001:db8::7]:50123"], "2001:db8::/64"),
        (["2001:db8::ffff:7"], "2001:db8::/64"),
        (["fe80::1%one"], "fe80::/64"),
        (["unknown"], ""),
        (["203.0.113.5,"], ""),
        (["9" * 9000], ""),
        ([], ""),
    ],
)
async def test_what_the_proxy_added_counts_and_nothing_else(lines: list[str], who: str):
    raw = [(b"x-forwarded-for", line.encode()) for line in lines]
    assert household(forwarded(Headers(raw=raw))) == who
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["state"]["address"])

    for client in ("192.0.2.1", "192.0.2.2"):
        await FromAddress(app, PROXY)({"type": "http", "headers": raw, "client": (client, 1)}, None, None)  # type: ignore[arg-type]
    assert seen == [who or "192.0.2.1", "192.0.2.2"], "whoever is no proxy is not believed"
