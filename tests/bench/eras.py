"""How long `auto` takes until a connection is ready, and how much of that the server itself needs to start.

Over stdio each turn starts the server twice: once bare, as a process that reads Parley's first line and answers it, and
once by Parley. They take turns, so that what disturbs one disturbs both.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import anyio

from app.core.options import Options
from app.core.targets import HttpTarget, StdioTarget
from app.protocol.links.stdio import child_environment
from app.sessions import Identity, Session, SessionRegistry
from app.settings import local
from tests import peers
from tests.bench.processes import WAIT, Failed
from tests.bench.table import Part, Say, ms, p50, times
from tests.drive import SERVERS, raw_target, raws
from tests.drive_http import Peer, everything_web, sdk_web

TURNS = 5
MOST_SECONDS = 1.0
MOST_SILENT = 12.0
ME = Identity("local", "you")


def measure(say: Say) -> Part:
    part = Part("connecting with era auto")
    command, *arguments = peers.everything_stdio()
    by_stdio = {
        "mcp 1.30": ("legacy", StdioTarget(command=peers.mcp1_python(), args=(str(SERVERS / "sdk1.py"),))),
        "mcp 2.3": ("modern", StdioTarget(command=sys.executable, args=(str(SERVERS / "sdk2.py"),))),
        "server-everything": ("legacy", StdioTarget(command=command, args=tuple(arguments), env=peers.node_env())),
    }
    for name, (era, target) in by_stdio.items():
        say(f"{name} over stdio")
        _stdio(part, name, era, target)
    by_http: dict[str, tuple[str, Callable[[], AbstractContextManager[Peer]]]] = {
        "mcp 1.30": ("legacy", lambda: sdk_web("sdk1", "http")),
        "mcp 2.3": ("modern", lambda: sdk_web("sdk2", "http")),
        "server-everything": ("legacy", lambda: everything_web("http")),
    }
    for name, (era, serve) in by_http.items():
        say(f"{name} over HTTP")
        with serve() as peer:
            address = HttpTarget(transport="http", url=peer.url())
            whole = [anyio.run(_connect, address, era)[0] for _ in range(TURNS + 1)][1:]
        _judge(part, f"{name} over HTTP", whole)
    say("a server that does not answer the probe")
    seconds, _ = anyio.run(_connect, raw_target(silent=["server/discover"]), "legacy")
    part.judge("silent, over stdio", ms(seconds), f"< {MOST_SILENT:.0f} s", seconds < MOST_SILENT)
    part.notes.append(
        f"from the click to ready, median of {TURNS}, in the column p95 the slowest; over stdio the start of the "
        "server is part of it, and the ratio is to the bare process with the same first line"
    )
    return part


def _stdio(part: Part, name: str, era: str, target: StdioTarget) -> None:
    _, first = anyio.run(_connect, target, era)  # to warm the disk cache, and for what Parley says first
    bare, whole = [], []
    for _ in range(TURNS):
        bare.append(_bare(target, first))
        whole.append(anyio.run(_connect, target, era)[0])
    _judge(part, f"{name} over stdio", whole, bare)


def _judge(part: Part, what: str, whole: list[float], bare: list[float] | None = None) -> None:
    ratio = times(p50(whole) / p50(bare)) if bare else ""
    ok = p50(whole) < MOST_SECONDS
    part.judge(what, ms(p50(whole)), f"< {MOST_SECONDS:.0f} s", ok, p95=ms(max(whole)), ratio=ratio)
    if bare:
        part.add(f"{what}, the bare server", ms(p50(bare)), p95=ms(max(bare)))


def _bare(target: StdioTarget, line: bytes) -> float:
    """Seconds from the start of the process until the first line of its answer."""
    began = time.perf_counter()
    env = child_environment(target.env)
    with subprocess.Popen(
        [target.command, *target.args],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        answered = process.stdout.readline()
        seconds = time.perf_counter() - began
        process.kill()
    if not answered.startswith(b"{"):
        raise Failed(f"the bare server answered {answered[:80]!r}")
    return seconds


async def _connect(target: StdioTarget | HttpTarget, era: str) -> tuple[float, bytes]:
    """Connect by a Parley that knows nothing of this target: seconds until it is ready, and its first message."""
    async with SessionRegistry(local()) as registry:
        session: Session = registry.open(ME)
        began = time.perf_counter()
        session.connect(target, Options(era="auto"), by=ME)
        await session.wait_connection(WAIT)
        seconds = time.perf_counter() - began
        if session.info.state != "ready" or session.info.era != era:
            raise Failed(f"auto came to {session.info.era}, {session.info.state}: {session.info.trouble}")
        return seconds, raws(session, "out")[0]
