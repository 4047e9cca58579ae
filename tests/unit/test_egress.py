"""Which addresses are dialled in which mode, and that the address checked is the address connected (S22-S24)."""

import ipaddress
import os
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Literal

import anyio
import anyio.abc
import anyio.lowlevel
import httpcore2
import psutil
import pytest

from app.egress import Egress, EgressError, _GuardedBackend, split
from app.policy import Policy
from app.settings import MIB
from tests.drive_http import raw_web

Mode = Literal["local", "team", "demo"]
MODES: tuple[Mode, ...] = ("local", "team", "demo")

# What each address form means, and in which modes it may be dialled.
NOWHERE: tuple[Mode, ...] = ()
LOCAL: tuple[Mode, ...] = ("local",)
PUBLIC: tuple[Mode, ...] = ("local", "team")
ADDRESSES = {
    "169.254.169.254": NOWHERE,
    "169.254.0.1": NOWHERE,
    "100.100.100.200": NOWHERE,
    "192.0.0.192": NOWHERE,
    "fd00:ec2::254": NOWHERE,
    "fe80::1": NOWHERE,
    "fe80::1%eth0": NOWHERE,
    "::ffff:169.254.169.254": NOWHERE,
    "::169.254.169.254": NOWHERE,
    "::ffff:0:169.254.169.254": NOWHERE,
    "64:ff9b::a9fe:a9fe": NOWHERE,
    "64:ff9b:1::a9fe:a9fe": NOWHERE,
    "2002:a9fe:a9fe::": NOWHERE,
    "2001:0:a9fe:a9fe::": NOWHERE,
    "224.0.0.1": NOWHERE,
    "ff02::1": NOWHERE,
    "255.255.255.255": NOWHERE,
    "0.0.0.0": NOWHERE,
    "::": NOWHERE,
    "10.0.0.1": LOCAL,
    "172.16.0.1": LOCAL,
    "192.168.1.1": LOCAL,
    "100.64.0.1": LOCAL,
    "127.0.0.1": LOCAL,
    "127.255.255.254": LOCAL,
    "::1": LOCAL,
    "::ffff:127.0.0.1": LOCAL,
    "::ffff:10.0.0.1": LOCAL,
    "::10.0.0.1": LOCAL,
    "fd12:3456::1": LOCAL,
    "fec0::1": LOCAL,
    "2001:db8::1": LOCAL,
    "64:ff9b::808:808": LOCAL,
    "2002:0a00:0001::": LOCAL,
    "198.18.0.1": LOCAL,
    "240.0.0.1": LOCAL,
    "fe80::5efe:a9fe:a9fe": NOWHERE,
    "2606:4700::5efe:169.254.169.254": NOWHERE,
    "2606:4700::200:5efe:169.254.169.254": NOWHERE,
    "2606:4700::5efe:10.0.0.1": LOCAL,
    "2606:4700::5efe:8.8.8.8": PUBLIC,
    "168.63.129.16": LOCAL,
    "::ffff:168.63.129.16": LOCAL,
    "2002:a83f:8110::": LOCAL,
    "192.88.99.1": LOCAL,
    "192.88.99.255": LOCAL,
    "2002:c058:6301::": LOCAL,
    "3fff::1": LOCAL,
    "5f00::1": LOCAL,
    "8.8.8.8": PUBLIC,
    "2606:4700::1111": PUBLIC,
    "::ffff:8.8.8.8": PUBLIC,
}


@pytest.mark.requirement("S23", "R5-70")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("address", ADDRESSES)
def test_the_table_of_addresses(address: str, mode: Mode):
    refusal = Policy(mode).refusal("name.example", address, 443)
    assert (refusal is None) is (mode in ADDRESSES[address]), refusal


@pytest.mark.requirement("S23", "R5-70")
def test_each_refusal_says_why():
    assert Policy().refusal("x", "169.254.169.254", 80) == "169.254.169.254 is a link-local or metadata address"
    assert Policy().refusal("x", "224.0.0.1", 80) == "224.0.0.1 is not the address of one machine"
    assert Policy(own_ports={80}).refusal("x", "127.0.0.1", 80) == "127.0.0.1 port 80 is this Parley itself"
    assert Policy("team").refusal("x", "10.0.0.1", 80) == "10.0.0.1 is not a public address"
    assert Policy("demo").refusal("x", "8.8.8.8", 80) == "this Parley dials no addresses"


@pytest.mark.requirement("S23", "R5-70", "T03")
def test_a_team_reaches_the_internal_names_that_were_allowed_and_nothing_worse():
    policy = Policy("team", own_ports={6280}, allowed={("wiki.internal", 443), ("localhost", 9000), ("10.1.1.1", 80)})
    assert policy.refusal("wiki.internal", "10.0.0.1", 443) is None
    assert policy.refusal("WIKI.internal.", "10.0.0.1", 443) is None
    assert policy.refusal("localhost", "127.0.0.1", 9000) is None
    assert policy.refusal("10.1.1.1", "10.1.1.1", 80) is None
    for name, address, port in (
        ("wiki.internal", "10.0.0.1", 22),  # the port counts
        ("localhost", "127.0.0.1", 9001),
        ("wiki.internal", "127.0.0.1", 443),  # a name that leads here, and does not say so
        ("wiki.internal", "::ffff:127.0.0.1", 443),
        ("other.internal", "10.0.0.1", 443),
        ("wiki.internal.evil.example", "10.0.0.1", 443),
        ("wiki.internal", "169.254.169.254", 443),
        ("wiki.internal", "168.63.129.16", 443),
        ("wiki.internal", "127.0.0.1", 6280),
        ("localhost", "127.0.0.1", 6280),
    ):
        assert policy.refusal(name, address, port) is not None, (name, address, port)


def own_addresses() -> list[str]:
    found = [one.address.split("%")[0] for many in psutil.net_if_addrs().values() for one in many]
    return [text for text in found if ":" in text or text.count(".") == 3 if _is_address(text)]


def _is_address(text: str) -> bool:
    try:
        return not ipaddress.ip_address(text).is_link_local
    except ValueError:
        return False


@pytest.mark.requirement("S22")
@pytest.mark.parametrize("mode", ["local", "team"])
def test_parley_is_never_its_own_target_whatever_it_is_called(mode: Mode):
    policy = Policy(mode, own_ports={6280}, allowed={("me.example", 6280), ("localhost", 6280), ("localhost", 6281)})
    everywhere = {"127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", *own_addresses()}
    for address in everywhere:
        assert policy.refusal("me.example", address, 6280) is not None, address
        assert policy.refusal("localhost", address, 6280) is not None, address
        assert policy.refusal("localhost", address, 6281) is None, address


# --- names ------------------------------------------------------------------------------------------------------------


class Resolver:
    """Stands for DNS: each question gets the next answer, the last one for ever."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers, self.asked = list(answers), 0

    async def __call__(self, host: Any, port: Any, **_: Any) -> list[Any]:
        self.asked += 1
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        family = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [
            (family[ipaddress.ip_address(each).version], socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses
        ]


@asynccontextmanager
async def egress(policy: Policy | None = None) -> AsyncIterator[Egress]:
    client = Egress(policy or Policy())
    try:
        yield client
    finally:
        await client.aclose()


async def get(client: Egress, url: str, **more: Any) -> tuple[int, bytes]:
    with anyio.fail_after(60):
        async with client.request("GET", url, [("accept", "*/*")], **more) as answer:
            return answer.status, b"".join([chunk async for chunk in answer.body])


@contextmanager
def dialled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The addresses that are really connected to; loopback is let through, anything else is an unanswered dial."""
    addresses: list[str] = []
    real = httpcore2.AnyIOBackend.connect_tcp

    async def connect(self: Any, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        addresses.append(host)
        if not ipaddress.ip_address(host).is_loopback:
            raise httpcore2.ConnectError("not in a test")
        return await real(self, host, port, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
        yield addresses


@pytest.mark.requirement("S24")
async def test_a_name_that_changes_its_mind_gains_nothing(monkeypatch: pytest.MonkeyPatch):
    resolver = Resolver(["8.8.8.8"], ["10.0.0.1"])
    monkeypatch.setattr(anyio, "getaddrinfo", resolver)
    with dialled(monkeypatch) as addresses:
        async with egress(Policy("team")) as client:
            with pytest.raises(EgressError) as first:
                await get(client, "http://rebind.example/")
            assert (first.value.kind, addresses, resolver.asked) == ("unreachable", ["8.8.8.8"], 1)
            with pytest.raises(EgressError) as second:
                await get(client, "http://rebind.example/")
            assert (second.value.kind, addresses, resolver.asked) == ("refused-by-policy", ["8.8.8.8"], 2)


@pytest.mark.requirement("S24")
async def test_one_forbidden_address_among_several_is_enough(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(anyio, "getaddrinfo", Resolver(["127.0.0.1", "169.254.169.254"]))
    with dialled(monkeypatch) as addresses:
        async with egress() as client:
            with pytest.raises(EgressError) as fault:
                await get(client, "http://mixed.example/")
    assert fault.value.kind == "refused-by-policy" and addresses == []


@pytest.mark.requirement("S24")
async def test_the_next_address_is_tried_when_the_first_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    with raw_web() as peer:
        monkeypatch.setattr(anyio, "getaddrinfo", Resolver(["8.8.8.8", "127.0.0.1"]))
        with dialled(monkeypatch) as addresses:
            async with egress() as client:
                assert (await get(client, f"http://two.example:{peer.port}/"))[0] == 404
        assert addresses == ["8.8.8.8", "127.0.0.1"]
        assert peer.requests()[0].headers["host"] == f"two.example:{peer.port}", "the name is what the server is told"


NUMERIC = ["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]", "127.0.0.1", "localhost", "[::1]"]


@pytest.mark.requirement("S22", "S23")
@pytest.mark.parametrize("host", NUMERIC)
async def test_other_ways_to_write_loopback_do_not_reach_parley_itself_or_a_team_s_machine(host: str):
    async with egress(Policy("local", own_ports={6280})) as client:
        with pytest.raises(EgressError) as fault:
            await get(client, f"http://{host}:6280/")
        assert fault.value.kind == "refused-by-policy" and "this Parley itself" in fault.value.detail
    async with egress(Policy("team")) as client:
        with pytest.raises(EgressError) as fault:
            await get(client, f"http://{host}:9/")
        assert fault.value.kind == "refused-by-policy"


@pytest.mark.requirement("S23")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "host", ["0", "0.0.0.0", "[::]", "169.254.169.254", "0xa9fea9fe", "2852039166", "[::ffff:a9fe:a9fe]"]
)
async def test_addresses_that_no_mode_dials_are_refused_before_any_dial(
    monkeypatch: pytest.MonkeyPatch, mode: Mode, host: str
):
    with dialled(monkeypatch) as addresses:
        async with egress(Policy(mode)) as client:
            with pytest.raises(EgressError) as fault:
                await get(client, f"http://{host}/")
    assert fault.value.kind == "refused-by-policy" and addresses == []


@pytest.mark.requirement("F16")
async def test_a_name_that_does_not_exist_says_so(monkeypatch: pytest.MonkeyPatch):
    async def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(anyio, "getaddrinfo", unknown)
    async with egress() as client:
        with pytest.raises(EgressError) as fault:
            await get(client, "http://nowhere.example/")
    assert fault.value.kind == "dns"
    assert fault.value.detail == "the name nowhere.example cannot be resolved (Name or service not known)"


@pytest.mark.requirement("F16")
async def test_a_resolver_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch):
    async def hanging(*_: Any, **__: Any) -> list[Any]:
        await anyio.sleep_forever()
        return []

    monkeypatch.setattr(anyio, "getaddrinfo", hanging)
    async with egress() as client:
        with pytest.raises(EgressError) as fault:
            await get(client, "http://slow.example/", connect=0.05)
    assert (fault.value.kind, fault.value.detail) == ("dns", "the name slow.example was not resolved in time")


# --- the client -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S24")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(status: int):
    elsewhere = {"status": status, "headers": {"location": "http://169.254.169.254/latest/meta-data"}}
    with raw_web(http={"GET": elsewhere}) as peer:
        async with egress() as client:
            assert (await get(client, peer.url()))[0] == status
        assert len(peer.requests()) == 1


@pytest.mark.requirement("S24")
async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setitem(os.environ, name, "http://127.0.0.1:9")
    with raw_web() as peer:
        async with egress() as client:
            assert (await get(client, peer.url("/nothing")))[0] == 404
        assert [each.path for each in peer.requests()] == ["/nothing"]


@pytest.mark.requirement("S24", "F16")
async def test_no_cookie_is_kept_and_nothing_compressed_is_asked_for():
    with raw_web(http={"GET": {"status": 200, "headers": {"set-cookie": "a=b"}, "body": "x"}}) as peer:
        async with egress() as client:
            for _ in range(2):
                assert await get(client, peer.url()) == (200, b"x")
        for request in peer.requests():
            assert "cookie" not in request.headers
            assert request.headers["accept-encoding"] == "identity"
            assert request.headers["user-agent"] == "parley"
            assert "authorization" not in request.headers


@pytest.mark.parametrize(("own", "expected"), [(None, [b"parley"]), ("mine/1", [b"mine/1"])])
async def test_a_user_agent_is_sent_once_and_the_persons_own_wins(own: str | None, expected: list[bytes]):
    heard = b""

    async def answer(stream: anyio.abc.SocketStream) -> None:
        nonlocal heard
        async with stream:
            heard += await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    headers = [] if own is None else [("User-Agent", own)]
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with egress() as client, client.request("GET", f"http://127.0.0.1:{port}/", headers) as response:
            assert response.status == 200
        group.cancel_scope.cancel()
    lines = [line.partition(b":") for line in heard.split(b"\r\n")]
    assert [value.strip() for name, _, value in lines if name.lower() == b"user-agent"] == expected


@pytest.mark.requirement("F16")
async def test_a_refused_connection_says_where():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    async with egress() as client:
        with pytest.raises(EgressError) as fault:
            await get(client, f"http://127.0.0.1:{port}/")
    assert (fault.value.kind, fault.value.detail) == ("refused", f"nothing listens at 127.0.0.1 port {port}")


@pytest.mark.requirement("R5-75")
@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/", "javascript:alert(1)", "file:///etc/passwd", "http://", "http:///path", "//example.org",
        "http://user:pass@example.org/", "http://user@example.org/", "http://127.0.0.1:80\\@example.org/",
        "http://example.org:99999/", "http://example.org:x/", "http://[::1/", "http://example.org/a b",
        "http://example.org/\n", "http://example.org/\x7f", "http://ex\tample.org/", "http://example.org/ü",
        "http://bücher.example/", " http://example.org/", "",
    ],
)  # fmt: skip
async def test_what_is_no_plain_http_address_is_not_dialled(url: str):
    with pytest.raises(EgressError) as fault:
        split(url)
    assert fault.value.kind == "bad-url"
    async with egress() as client:
        with pytest.raises(EgressError) as fault:
            await get(client, url)
    assert fault.value.kind == "bad-url"


@pytest.mark.requirement("R5-75")
def test_an_origin_is_scheme_host_and_port():
    assert split("http://Example.org/a?b#c").origin == ("http", "example.org", 80)
    assert split("https://example.org").origin == ("https", "example.org", 443)
    assert split("http://[::1]:8000/x").origin == ("http", "::1", 8000)


@pytest.mark.requirement("S21", "R5-45")
async def test_a_header_that_cannot_be_sent_is_not_quoted():
    with raw_web() as peer:
        async with egress() as client:
            with anyio.fail_after(60), pytest.raises(EgressError) as fault:
                async with client.request("GET", peer.url(), [("x-token", "canary\x0bvalue")]):
                    raise AssertionError("it was sent")
    assert (fault.value.kind, fault.value.detail) == ("protocol", "a header of the request cannot be sent")


@pytest.mark.requirement("F16")
async def test_a_connection_that_was_reset_says_so_in_words():
    """Closing with unread bytes makes the system send a reset rather than an end."""
    async with anyio.create_task_group() as group:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)

        async def reset(stream: anyio.abc.SocketStream) -> None:
            stream.extra(anyio.abc.SocketAttribute.raw_socket).setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            await stream.receive(1)
            await stream.aclose()

        group.start_soon(listener.serve, reset)
        async with egress() as client:
            with pytest.raises(EgressError) as fault:
                await get(client, f"http://127.0.0.1:{port}/")
        assert (fault.value.kind, fault.value.detail) == ("cut", "Connection reset by peer")
        group.cancel_scope.cancel()
    await listener.aclose()


@pytest.mark.requirement("M01")
async def test_m01_whoever_takes_long_over_a_read_gets_less_the_next_time_and_others_get_their_turn():
    """A socket with plenty in it, read by somebody quick, then by somebody who keeps everybody waiting."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async def pour(client: anyio.abc.SocketStream) -> None:
        async with client:
            with suppress(anyio.BrokenResourceError):
                while True:
                    await client.send(b"x" * MIB)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, pour)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        stream = await _GuardedBackend(Policy()).connect_tcp("127.0.0.1", port)
        quick = [len(await stream.read(MIB)) for _ in range(20)]
        assert max(quick) == 16 * 1024, "nobody is kept waiting, so as much is read as fits"
        group.start_soon(others)
        slow = []
        for _ in range(8):
            slow.append(len(await stream.read(MIB)))
            seen, end = turns, time.perf_counter() + 0.02
            while time.perf_counter() < end:
                pass
            assert turns == seen
        assert slow[-1] == 1024, "the work of one read is small now"
        assert turns > len(slow), "and others had more than one turn each time"
        again = [len(await stream.read(MIB)) for _ in range(20)]
        assert max(again) == 16 * 1024, "nothing is held against anybody"
        await stream.aclose()
        group.cancel_scope.cancel()
