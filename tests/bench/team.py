"""What one person of a team feels while another one is at every limit: `echo`, beside its own quiet figure.

All come by tokens, as scripts of people, to one `parley team` with the limits that it has unless told. The other one
has all their sessions open, holds all their streams and requests, and calls as fast as they are answered, some with a
message as large as one may be, from a process of their own (`python -m tests.bench.team ORIGIN TOKEN`). They go on
through every turn and still have every stream at the end, or there is no figure. Not among the limits here: questions
that wait and recordings, which cost nothing while they lie. What is measured is spread over several people, none
of whom may call more often in a minute; with the other one and without, in turns, so that a busy machine slows both.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path

import anyio

from app.settings import Limits
from app.store import Store
from app.store.people import People
from app.team_settings import TEAM_LIMITS
from tests.bench.processes import SERVERS, WAIT, Failed, Script
from tests.bench.table import Part, Say, ms, p50, p95
from tests.browser.parley import ROOT
from tests.drive_http import free_port
from tests.isolation.walls import PYTHON

PEOPLE, TURNS, MOST = 16, 9, 2.0
"""Who is measured, how often each calls without and with the other one, and how much slower that may be."""
BREATH = 0.03
"""Between two calls."""
SETTLE = 2.2
"""Longer than the longest wait for an answer that something is too much."""
LARGE, MANY_LARGE = Limits().message_bytes - 4096, 4
"""A message as large as one may be, and how many of their requests bring one."""
HOST = "parley.example"


def measure(say: Say) -> Part:
    part = Part("team (one person at every limit)")
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder, _team(Path(folder)) as (origin, tokens):
        quiet, busy, (calls, large) = asyncio.run(_measured(say, origin, *tokens))
    ratio = p95(busy) / p95(quiet)
    part.add(f"echo, {len(quiet)} calls of {PEOPLE} people", ms(p50(quiet)), p95=ms(p95(quiet)))
    what = "echo, while somebody else is at every limit"
    part.judge(what, ms(p50(busy)), f"p95 < {MOST:g}x quiet", ratio < MOST, p95=ms(p95(busy)), ratio=f"{ratio:.2f}")
    part.notes.append(
        f"the other one was answered {calls:,} times meanwhile, {large:,} times to a message as large as one may be, "
        f"mostly that it is too much; the median went from {ms(p50(quiet))} to {ms(p50(busy))}"
    )
    return part


@contextmanager
def _team(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A team of two people; where it listens, and a token of each."""
    data, port = folder / "data", free_port()
    data.mkdir(mode=0o700)
    tokens = anyio.run(_people, data)
    args = json.dumps(["-I", "-S", str(SERVERS / "pace.py")])
    user = 'child_user = "61700-61799"\n' if os.geteuid() == 0 else ""
    (folder / "team.toml").write_text(
        f'public_url = "https://parley.example"\ndata_dir = "{data}"\nport = {port}\n{user}'
        f'[catalogue.pace]\nname = "Pace"\ntransport = "stdio"\ncommand = "{PYTHON}"\nargs = {args}\n'
        f'reads = ["{SERVERS}"]\n',
        encoding="utf-8",
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    command = [sys.executable, "-m", "app", "team", "--config", str(folder / "team.toml")]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(b"Parley for a team is at"):
                    break
            yield f"http://127.0.0.1:{port}", tokens
        finally:
            process.terminate()


async def _people(data: Path) -> list[str]:
    database = Store(data).database
    people = People(database, time.time, login_seconds=1, idle_seconds=1)
    await people.open()
    made = []
    for name in ("Mallory", *(f"colleague {number}" for number in range(PEOPLE))):
        person = await people.known_as("proxy", name, name, "user")
        made.append((await people.make_token(person.id, "bench", "act", 1))[0])
    await database.close()
    return made


async def _measured(
    say: Say, origin: str, other: str, *tokens: str
) -> tuple[list[float], list[float], tuple[int, int]]:
    quiet: list[float] = []
    busy: list[float] = []
    async with AsyncExitStack() as stack:
        people = [await stack.enter_async_context(Script(origin, token, HOST)) for token in tokens]
        sessions = [await _connected(one) for one in people]
        await _echoed(people, sessions)
        say("somebody comes to every limit")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.bench.team", origin, other),
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        try:
            if (await asyncio.wait_for(process.stdout.readline(), WAIT)).strip() != b"at every limit":
                raise Failed("the other person did not get to their limits")
            for turn in range(TURNS):
                say(f"echo without and with them, turn {turn + 1} of {TURNS}")
                process.send_signal(signal.SIGSTOP)
                await anyio.sleep(SETTLE)  # what is on its way for them is answered
                quiet += await _echoed(people, sessions)
                process.send_signal(signal.SIGCONT)
                await anyio.sleep(SETTLE)  # they come back all at the same moment, as nobody else would
                busy += await _echoed(people, sessions)
                if process.returncode is not None:
                    raise Failed("the other person gave up")
            process.stdin.write(b"enough\n")
            said = (await asyncio.wait_for(process.stdout.readline(), WAIT)).split()
            answered, large, streams = (int(one) for one in said)
            if not large or answered < TURNS or streams < TEAM_LIMITS["streams_per_identity"]:
                raise Failed(f"the other person was not at every limit: {answered}, {large}, {streams}")
            return quiet, busy, (answered, large)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _connected(script: Script) -> str:
    path: str = (await script.post("/catalogue/pace/connect", {"options": {"era": "legacy"}}))["url"]
    if (await script.get(f"{path}?wait={WAIT}"))["connection"]["state"] != "ready":
        raise Failed("the session did not connect")
    return path


async def _echoed(people: list[Script], sessions: list[str]) -> list[float]:
    """One call of each, one after the other; how long each took."""
    took = []
    for script, session in zip(people, sessions, strict=True):
        began = time.perf_counter()
        await script.call(session, "echo", {"message": "hello"})
        took.append(time.perf_counter() - began)
        await anyio.sleep(BREATH)
    return took


# --------------------------------------------------------------------------------------------- the other one, by itself


async def at_every_limit(origin: str, token: str) -> None:
    """Open all sessions and streams, then call in as many requests as there may be, until somebody says enough."""
    answered, large, first = 0, 0, asyncio.Event()

    async def hammer(session: str, size: int) -> None:
        nonlocal answered, large
        body = {"method": "tools/call", "params": {"name": "echo", "arguments": {"message": "m" * size}}}
        while True:
            with suppress(Failed, OSError, asyncio.IncompleteReadError):
                async with Script(origin, token, HOST) as script:
                    while True:
                        try:
                            await script.post(f"{session}/calls", body)
                        except Failed:
                            first.set()
                        answered += 1
                        large += size > 4

    async with Script(origin, token, HOST) as script:
        sessions = [await _connected(script) for _ in range(TEAM_LIMITS["sessions_per_identity"])]
    host, _, port = origin.removeprefix("http://").partition(":")
    head = f"Host: {HOST}\r\nX-Forwarded-Proto: https\r\nAuthorization: Bearer {token}\r\n\r\n"
    streams = []
    for number in range(TEAM_LIMITS["streams_per_identity"]):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {sessions[number % len(sessions)]}/events?format=json HTTP/1.1\r\n{head}".encode())
        if b" 200 " not in await reader.readline():
            raise Failed("a stream was refused")
        streams.append((asyncio.create_task(_drained(reader)), writer))  # noqa: TID251
    free = TEAM_LIMITS["requests_per_identity"] - len(streams)
    sizes = [LARGE if n < MANY_LARGE else 4 for n in range(free)]
    tasks = [asyncio.create_task(hammer(sessions[n % len(sessions)], size)) for n, size in enumerate(sizes)]  # noqa: TID251
    await asyncio.wait_for(first.wait(), 3 * WAIT)  # told for the first time that it is too much
    print("at every limit", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(answered, large, sum(not one.done() for one, _ in streams), flush=True)
    for task in (*tasks, *(one for one, _ in streams)):
        task.cancel()


async def _drained(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


if __name__ == "__main__":
    asyncio.run(at_every_limit(*sys.argv[1:]))
