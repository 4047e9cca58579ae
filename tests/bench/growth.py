"""Does it stay as quick: a call, an append and a page at 1, 10 and 100 times the messages, and the sessions."""

import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import anyio

from app.core.events import EventLog
from app.core.json.text import parse
from app.core.log import MessageLog
from app.settings import Limits
from tests.bench.processes import PACE_TARGET, Script, demo_over_http, saving
from tests.bench.table import Part, Say, ms, p50, p95, times, us
from tests.browser.parley import Parley

SCALES = (1, 10, 100)
MESSAGES = 200
"""In the log at 1×: one full page of it. 100× is as many as a log keeps, so that each append also drops a row."""
ROUNDS = 60
APPENDS, APPEND_ROUNDS = 200, 9
LINE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"n=1 at=1794796800.000000"}}'

Act = Callable[[], Awaitable[object]]


def measure(say: Say) -> Part:
    part = Part("growth")
    say("appending to a log")
    _rows(part, "one append to the log", "messages", MESSAGES, _appends(), us)
    with saving() as parley:
        anyio.run(_messages, part, parley.server, say)
    with ExitStack() as stack:
        url = stack.enter_context(demo_over_http())
        parleys = [stack.enter_context(_roomy()) for _ in SCALES]
        anyio.run(_sessions, part, [each.server for each in parleys], url, say)
    part.notes.append(
        f"p50 of {ROUNDS} each, in turns, by JSON and HTML over loopback, the append in CPU time; the ratio is to 1×"
    )
    part.notes.append(
        "the calls at so many messages go to a server written for speed, those at so many sessions to the demo"
    )
    return part


def _appends() -> list[list[float]]:
    limits, parsed = Limits(), parse(LINE)
    found: list[list[float]] = [[] for _ in SCALES]
    for _ in range(APPEND_ROUNDS):
        for scale, values in zip(SCALES, found, strict=True):
            log = MessageLog(limits, EventLog(limits.events), time.time, time.monotonic)
            for _ in range(MESSAGES * scale):
                log.record("in", LINE, parsed)
            began = time.process_time()
            for _ in range(APPENDS):
                log.record("in", LINE, parsed)
            values.append((time.process_time() - began) / APPENDS)
    return found


async def _messages(part: Part, origin: str, say: Say) -> None:
    async with Script(origin) as script:
        sessions = []
        for scale in SCALES:
            say(f"a log of {MESSAGES * scale:,} messages")
            session = await script.session(PACE_TARGET)
            await script.call(session, "pace", {"count": MESSAGES * scale, "per_second": 0})
            sessions.append(session)
        say("pages and calls, in turns")
        pages = await _in_turns([_page(script, session) for session in sessions])
        calls = await _in_turns([_call(script, session) for session in sessions])
        _rows(part, "GET of the log page", "messages", MESSAGES, pages, ms)
        _rows(part, "one call by JSON", "messages", MESSAGES, calls, ms)


async def _sessions(part: Part, origins: list[str], url: str, say: Say) -> None:
    async with AsyncExitStack() as stack:
        scripts = [await stack.enter_async_context(Script(origin)) for origin in origins]
        firsts = []
        for scale, script in zip(SCALES, scripts, strict=True):
            say(f"a Parley with {scale} of its sessions connected")
            opened = [await script.session({"transport": "http", "url": url}) for _ in range(scale)]
            firsts.append(opened[0])
        say("pages and calls, in turns")
        pairs = list(zip(scripts, firsts, strict=True))
        pages = await _in_turns([_page(script, session) for script, session in pairs])
        calls = await _in_turns([_call(script, session) for script, session in pairs])
        _rows(part, "GET of the log page", "sessions", 1, pages, ms)
        _rows(part, "one call by JSON", "sessions", 1, calls, ms)


def _page(script: Script, session: str) -> Act:
    return lambda: script.send("GET", f"{session}/log", accept="text/html")


def _call(script: Script, session: str) -> Act:
    return lambda: script.call(session, "echo", {"message": "hello"})


async def _in_turns(acts: list[Act]) -> list[list[float]]:
    found: list[list[float]] = [[] for _ in acts]
    for number in range(ROUNDS + 5):
        for act, values in zip(acts, found, strict=True):
            began = time.perf_counter()
            await act()
            if number >= 5:
                values.append(time.perf_counter() - began)
    return found


def _rows(part: Part, what: str, of: str, base: int, found: list[list[float]], show: Callable[[float], str]) -> None:
    for scale, values in zip(SCALES, found, strict=True):
        middle = p50(values)
        ratio = times(middle / p50(found[0]))
        noun = of.removesuffix("s") if base * scale == 1 else of
        part.add(f"{what}, {base * scale:,} {noun}", show(middle), p95=show(p95(values)), ratio=ratio)


@contextmanager
def _roomy() -> Iterator[Parley]:
    """A Parley with room for more sessions than one person may have by default."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "parley.toml"
        config.write_text("[limits]\nsessions_per_identity = 200\nsessions = 200\n", encoding="utf-8")
        with saving("--config", str(config)) as parley:
            yield parley
