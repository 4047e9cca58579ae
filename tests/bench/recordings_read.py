"""Reading a recording of 100,000 messages, some 100 MB: its first rows, its first page once it is indexed, its filters,
and what all that takes of memory. In a process of its own, which does nothing else."""

import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from itertools import islice
from pathlib import Path

import anyio
import anyio.to_thread
import psutil

from app.core.folds import folded, worth
from app.core.found import Search
from app.recordings.arriving import arrive
from app.recordings.lines import frame_line, header_line
from app.recordings.nouns import Frame, Header
from app.recordings.recording import RecordedSession
from app.recordings.shelf import Shelf
from app.sessions import Identity, SessionRegistry
from app.settings import local
from tests.bench.table import Part, Say, mb, ms

PAIRS = 50_000
FIRST, FILTER, GROWS = 0.5, 0.3, 96 * 1024 * 1024
ME = Identity("local", "you")
FILTERS = {
    "a word that is rare": Search(words=("needle",)),
    "a word that nobody said": Search(words=("haystack-none",)),
    "two words that all say": Search(words=("hay", "echo")),
    "what came in": Search(direction="in"),
    "a method": Search(method="tools/"),
}


def measure(say: Say) -> Part:
    part = Part("recordings, read")
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as directory:
        anyio.run(_measure, part, Path(directory), say)
    return part


async def _lines() -> AsyncIterator[bytes]:
    yield header_line(Header(1, "Parley", 1763403306.0, title="100,000 messages"))
    for at in range(PAIRS):
        text = "a needle" if at % 1000 == 0 else "hay" * 300
        asked = {
            "jsonrpc": "2.0",
            "id": at,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"t": text}},
        }
        said = {"jsonrpc": "2.0", "id": at, "result": {"content": [{"type": "text", "text": "Echo " + "hay" * 290}]}}
        ours, theirs, when = json.dumps(asked).encode(), json.dumps(said).encode(), 1763403306.0 + at / 100
        seq = 2 * at + 1
        reply = Frame(
            seq + 1, when, "in", len(theirs), seq + 1, theirs, answers=seq, latency_ms=5.0, method="tools/call"
        )
        yield frame_line(Frame(seq, when, "out", len(ours), seq, ours)) + frame_line(reply)


async def _measure(part: Part, directory: Path, say: Say) -> None:
    async with SessionRegistry(local(data_dir=directory)) as registry:
        say("a recording of 100,000 messages")
        row = await arrive(registry, ME, _lines())
        shelf, process = Shelf(registry), psutil.Process()
        before = process.memory_info().rss
        began = time.perf_counter()
        session = await shelf.open(ME, row)
        first = time.perf_counter() - began
        part.add("size", mb(row.size))
        part.judge(
            "opened for the first time, until its first rows", ms(first), f"<= {ms(FIRST * 2)}", first <= FIRST * 2
        )
        say("indexing")
        session = await shelf.open(ME, row, whole=True)
        part.add("read to its end, in a thread", ms(time.perf_counter() - began))
        await shelf.close()
        began = time.perf_counter()
        session = await shelf.open(ME, row)
        _page(session)
        took = time.perf_counter() - began
        part.judge("indexed, until its first page", ms(took), f"<= {ms(FIRST)}", took <= FIRST)
        for name, wanted in FILTERS.items():
            say(name)
            took = min([await _timed(session, wanted) for _ in range(3)])
            part.judge(f"filter, {name}", ms(took), f"<= {ms(FILTER)}", took <= FILTER)
        grown = process.memory_info().rss - before
        part.judge("memory, more than before it was opened", mb(grown), f"<= {mb(GROWS)}", grown <= GROWS)
        await shelf.close()


def _page(session: RecordedSession) -> None:
    log = session.messages
    assert folded(log.back(), worth(log), 200)[0]


async def _timed(session: RecordedSession, wanted: Search) -> float:
    look: Callable[[], object] = session.messages.search(wanted)
    began = time.perf_counter()
    found = await anyio.to_thread.run_sync(look)
    list(islice(found.back(), 200))  # type: ignore[attr-defined]
    return time.perf_counter() - began
