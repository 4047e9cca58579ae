"""`parley auth URL`: the steps of signing in to a server, in a terminal, each with what was found.

The same steps that a session takes, without one: nothing is kept, and no token is printed. The browser comes back to a
port that is open for this alone; where it cannot, the address that it was sent to is pasted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

import anyio
import anyio.abc

from app import bounds

if TYPE_CHECKING:
    from app.core.sign_in import SignIn, Step
    from app.core.targets import HttpTarget
    from app.protocol.oauth.flow import Flow

FINE, NO, BROKEN = 0, 1, 3
_MACHINE: Final = frozenset({"unreachable", "tls", "refused-by-policy", "too-large", "internal"})
"""Failures of a machine or a network, which say nothing of whether one may sign in."""
_MARKS: Final = {"done": "ok", "failed": "FAILED", "skipped": "skipped", "todo": "-", "running": "..."}


class Shown(Protocol):
    """A page that leads a browser somewhere, until it is removed."""

    def remove(self) -> None: ...


Opens = Callable[[str], "Shown | None"]
_ANSWER: Final = b"Parley has the answer. You can close this window.\n"
_STRANGE: Final = b"Parley does not wait for this answer.\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("url", metavar="URL", help="the address of the MCP server")
    parser.add_argument("--json", action="store_true", help="print the steps as JSON, as /s/{sid}/sign-in does")
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    parser.add_argument("--client-id", default="", metavar="ID", help="a client that is registered already; its secret "
                        "is read from PARLEY_CLIENT_SECRET")  # fmt: skip
    parser.add_argument(
        "--scope", action="append", default=[], metavar="SCOPE", help="ask for this one; may be repeated"
    )
    parser.add_argument("--client-metadata-url", default="", metavar="URL", help="the client id metadata document")
    parser.add_argument("--wait", type=float, default=bounds.OAUTH_WAIT_SECONDS, metavar="SECONDS",
                        help="how long to wait for the browser (600)")  # fmt: skip


def run(arguments: argparse.Namespace, target: HttpTarget, secret: str, opens: Opens) -> int:
    """Take the steps, and print them; the exit code."""
    return anyio.run(_run, arguments, target, secret, opens)


async def _run(arguments: argparse.Namespace, target: HttpTarget, secret: str, opens: Opens) -> int:
    from app.core.auth import OAuth
    from app.core.events import EventLog
    from app.core.log import MessageLog
    from app.core.sign_in import new_sign_in
    from app.egress import Egress
    from app.policy import Policy
    from app.protocol.oauth.asking import Asker
    from app.protocol.oauth.flow import Flow
    from app.settings import Limits

    limits = Limits()
    log = MessageLog(limits, EventLog(limits.events), time.time, time.monotonic)
    sign_in = new_sign_in(target.shown_url, "asked")
    seen: set[str] = set()

    def changed() -> None:
        """Say each step as it ends, so that nobody looks at an empty screen."""
        for step in sign_in.steps:
            if step.state in ("done", "failed", "skipped") and step.id not in seen and not arguments.json:
                seen.add(step.id)
                _line(step)

    policy = Policy("local", set())
    async with _listening(policy.own_ports) as callback:
        auth = OAuth(kind="oauth", client_id=arguments.client_id, client_secret=secret, scopes=tuple(arguments.scope))
        flow = Flow(
            sign_in,
            Asker(target, Egress(policy), log),
            auth,
            callback.redirect_uri,
            arguments.client_metadata_url,
            changed,
            time.time,
            time.monotonic,
        )
        flow.asker.hide(secret, *target.secret_values)
        await flow.run("challenge")
        if sign_in.state == "waiting":
            await _browser(flow, callback, arguments, opens)
    if arguments.json:
        from app.web.sign_in.shown import whole_json

        print(json.dumps(whole_json(sign_in), indent=2, ensure_ascii=False))
    else:
        _end(sign_in)
    return _code(sign_in)


def _code(sign_in: SignIn) -> int:
    failed = sign_in.failed_step
    if failed is None:
        return FINE if sign_in.state == "signed_in" else NO
    if failed.code == "not-asked":
        return FINE
    return BROKEN if failed.code in _MACHINE else NO


# ----------------------------------------------------------------------------------------------------- what is printed


def _plain(text: str) -> str:
    """One line without anything that a terminal would obey: much of it is the word of a server."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _line(step: Step) -> None:
    trip = step.trip
    status = "" if trip is None or trip.status is None else str(trip.status)
    took = "" if step.took_ms is None else f"{step.took_ms:.0f} ms"
    where = "" if trip is None else f"{trip.method} {trip.url}"
    print(f"{_MARKS[step.state]:<8} {step.name:<32} {status:>3}  {took:>9}  {_plain(where)}".rstrip(), flush=True)
    for check in step.checks:
        mark = "+" if check.ok else "." if check.ok is None else "!"
        print(f"         {mark} {_plain(check.what)}: {_plain(check.detail)}"[:400], flush=True)


def _end(sign_in: SignIn) -> None:
    failed, token = sign_in.failed_step, sign_in.token
    if failed is not None:
        print(f"\n{_plain(failed.sentence)}\n{_plain(failed.fix)}")
    elif token is not None:
        until = "" if token.expires_at is None else f", for {max(0, token.expires_at - time.time()):.0f} s"
        scopes = f", with {_plain(' '.join(token.scopes))}" if token.scopes else ""
        at = f"{_plain(sign_in.server)} at {_plain(sign_in.issuer)}"
        print(f"\nSigned in to {at}{scopes}{until}. The token is not kept.")
        for name, value in (token.claims or {}).items():
            print(f"         {_plain(str(name))}: {_plain(json.dumps(value))}"[:400])


# --------------------------------------------------------------------------------------------------------- the browser


class _Callback:
    """Where the browser comes back to."""

    def __init__(self, port: int) -> None:
        self.redirect_uri = f"http://127.0.0.1:{port}/oauth/callback"
        self.put, self.take = anyio.create_memory_object_stream[str](4)
        self.expects: Callable[[str], bool] = lambda _: False

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        """One request; only the answer that is waited for is taken."""
        async with stream:
            head = b""
            with anyio.move_on_after(10):
                while b"\r\n" not in head and len(head) <= bounds.CALLBACK_URL:
                    head += await stream.receive()
            method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
            path = rest.partition(" ")[0]
            url = self.redirect_uri.removesuffix("/oauth/callback") + path
            taken = method == "GET" and path.startswith("/oauth/callback?") and self.expects(url)
            body = _ANSWER if taken else _STRANGE
            status = "200 OK" if taken else "400 Bad Request"
            with anyio.move_on_after(10):
                await stream.send(
                    f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n"
                    "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n".encode()
                    + body
                )
            if taken:
                await self.put.send(url)


@asynccontextmanager
async def _listening(own_ports: set[int]) -> AsyncIterator[_Callback]:
    """A port of this machine that is open while the command runs, and that no server may send Parley to."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port: int = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 (no Django here)
    own_ports.add(port)
    callback = _Callback(port)
    async with listener, anyio.create_task_group() as group, callback.put, callback.take:
        group.start_soon(listener.serve, callback.serve)
        yield callback
        group.cancel_scope.cancel()


async def _browser(flow: Flow, callback: _Callback, arguments: argparse.Namespace, opens: Opens) -> None:
    """The person's part: open the address, and wait for where it leads, or for somebody to paste that."""
    from app.core.errors import Invalid
    from app.protocol.oauth.authorization import check_state

    def fits(url: str) -> bool:
        try:
            check_state(flow.known, url)
        except Invalid:
            return False
        return True

    callback.expects = fits
    out: TextIO = sys.stderr if arguments.json else sys.stdout
    print(f"\nOpen this address in a browser, and agree there:\n\n  {flow.sign_in.authorization_url}\n", file=out)
    if sys.stdin.isatty():
        print("If the browser cannot come back here, paste the address that it ends at.\n", file=out, flush=True)
    page = None if arguments.no_open else opens(flow.sign_in.authorization_url)
    answer = ""
    try:
        with anyio.move_on_after(min(arguments.wait, bounds.OAUTH_WAIT_SECONDS)):
            async with anyio.create_task_group() as group:
                if sys.stdin.isatty():
                    group.start_soon(_pasted, fits, callback)
                answer = await callback.take.receive()
                group.cancel_scope.cancel()
    finally:
        if page is not None:
            page.remove()
    if answer:
        await flow.answer(answer)
    else:
        flow.fail("callback", "no-answer", redirect=flow.redirect_uri)


async def _pasted(fits: Callable[[str], bool], callback: _Callback) -> None:
    """What somebody types, line by line."""
    lines: Any = anyio.wrap_file(sys.stdin)
    async for line in lines:
        if fits(line.strip()):
            await callback.put.send(line.strip())
            return
        print("That is not the answer to this sign-in.", flush=True)


def parser(make: Callable[..., argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command line of the command."""
    made = make(
        prog="parley auth",
        description="Sign in to an MCP server by OAuth, and print every step. Ends with 0 when it worked or the server "
        "wants no sign-in, 1 when a step says no, 2 for a wrong command line, 3 when a machine cannot be reached.",
        allow_abbrev=False,
    )
    add_arguments(made)
    return made
