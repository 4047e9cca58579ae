"""How tests drive peers of 2026-07-28: the raw one over stdio and HTTP, and what it says it saw."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from app.core.asks import Ask
from app.core.calls import Call
from app.core.targets import HttpTarget, StdioTarget
from app.sessions import Session
from tests import drive_http
from tests.drive import HANG, ME, SERVERS, connected, settled, until

PREFIX = "io.modelcontextprotocol/"
TASKS = f"{PREFIX}tasks"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@dataclass
class Modern:
    """A raw peer of 2026-07-28 and its record."""

    target: StdioTarget | HttpTarget
    record: Path

    def entries(self, kind: str) -> list[dict[str, Any]]:
        return [each for line in self.record.read_bytes().splitlines() if kind in (each := json.loads(line))]

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """The messages it read, all or of one method."""
        read = [each["in"] for each in self.entries("in") if each["in"] is not None]
        return [each for each in read if method in (None, each.get("method"))]

    def headers(self, method: str) -> list[dict[str, str]]:
        """The headers of each request of one method."""
        return [each["headers"] for each in self.entries("in") if each["in"] and each["in"].get("method") == method]

    def verbs(self) -> list[str]:
        """HTTP requests that were no POST."""
        return [each["http"] for each in self.entries("http")]

    def closed(self) -> list[Any]:
        """The ids of requests whose stream was closed, or that were cancelled, while it was still open."""
        return [each["closed"] for each in self.entries("closed")]


def modern_stdio(record: Path, **settings: Any) -> Modern:
    record.touch()
    script = str(SERVERS / "raw_modern.py")
    args = ("-I", "-S", script, "--record", str(record), "--with", json.dumps(settings))
    return Modern(StdioTarget(command=sys.executable, args=args), record)


@contextmanager
def modern_web(record: Path, **settings: Any) -> Iterator[Modern]:
    record.touch()
    argv = [sys.executable, "-I", "-S", str(SERVERS / "raw_modern.py"), "--http", "--record", str(record)]
    with drive_http.started([*argv, "--with", json.dumps(settings)]) as peer:
        yield Modern(peer.target(), record)


@contextmanager
def modern_peer(way: str, record: Path, **settings: Any) -> Iterator[Modern]:
    """The same peer by either transport."""
    if way == "http":
        with modern_web(record, **settings) as peer:
            yield peer
    else:
        yield modern_stdio(record, **settings)


async def reach(session: Session, peer: Modern, **options: Any) -> None:
    """Connect in the era of 2026-07-28."""
    await connected(session, peer.target, **{"era": "modern", **options})


async def witnessed(true: Callable[[], object]) -> None:
    """Wait until the record of a peer shows something; it is a file, so there is nothing to be woken by."""
    with anyio.fail_after(HANG):
        while not true():  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.01)


def ask_form(message: str = "Who?") -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": FORM}}


def ask_link(url: str = "https://example.com/sign-in") -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": url}}


def ask_sampling(text: str = "Say something") -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 10}}


ASK_ROOTS: dict[str, Any] = {"method": "roots/list"}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Ahoy"}, "model": "human", "stopReason": "endTurn"}


def needs(state: Any = None, **requests: Any) -> dict[str, Any]:
    """An `input_required` result."""
    found: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        found["inputRequests"] = requests
    return found if state is None else {**found, "requestState": state}


TELLS: dict[str, Any] = {"resultType": "complete", "$tell": True}
"""The last step of a script: what the server was given, as text."""


async def begin(session: Session, name: str, asks: int = 1) -> tuple[Call, list[Ask]]:
    """Call a tool and wait until so many asks of it are open."""
    call = session.start_call("tools/call", {"name": name, "arguments": {}}, by=ME)
    await until(session, lambda: call.settled or len(session.inbox.open) == asks)
    assert not call.settled, call.error
    return call, session.inbox.open


async def told(session: Session, call: Call) -> dict[str, Any]:
    """What the server was given in the last leg of a call, in its own words."""
    await settled(session, call)
    assert call.state == "done", (call.state, call.error)
    result = await session.result(call)
    found: dict[str, Any] = json.loads(result["content"][0]["text"])
    return found
