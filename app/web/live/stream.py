"""Server-sent events: a session's stream to each tab, and to scripts.

After a silence the first change leaves at once; while changes keep coming, one message leaves each window, and what
somebody waits for may leave before its end. What a message says is made by `patches`; here is when it leaves, how it is
written on the wire, and how many streams there may be.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.lowlevel
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.core.events import Event
from app.core.times import wire_time
from app.sessions import Workspace
from app.settings import Limits
from app.web.door.denied import Denied
from app.web.kit.html import drawn
from app.web.live.tab import Tab

logger = logging.getLogger("parley.stream")

_BREAK = re.compile("\r\n|\r|\n")
_SEED_EVENTS: dict[str, str] = {
    "task.created": "taskCreated",
    "task.changed": "taskStatusChange",
    "task.completed": "taskCompleted",
    "task.failed": "taskFailed",
    "task.cancelled": "taskCancelled",
    "tasks.listed": "tasksChange",
    "call.settled": "toolCallResultChange",
}
"""What the founding note S003 calls what we call so."""


# ------------------------------------------------------------------------------------------------------------ the hub


@dataclass(eq=False, slots=True)
class Stream:
    """One open stream of one browser, or of a script."""

    browser: str | None
    ended: anyio.Event = field(default_factory=anyio.Event)
    reason: str = ""

    def end(self, reason: str) -> None:
        """Say the last word: `parked`, `closed` or `shutdown`. The first one counts."""
        self.reason = self.reason or reason
        self.ended.set()


class StreamHub:
    """All open streams. A browser has six connections to us at most, so it may hold four of them by streams."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._streams: dict[Stream, None] = {}
        self._stopped = False

    def __len__(self) -> int:
        return len(self._streams)

    def open(self, browser: str | None) -> Stream:
        """A new stream; the oldest of the same browser is parked when there are too many."""
        stream = Stream(browser)
        if self._stopped:
            stream.end("shutdown")
        if browser is not None:
            same = [one for one in self._streams if one.browser == browser and not one.reason]
            for oldest in same[: max(0, len(same) - self._limits.streams_per_browser + 1)]:
                oldest.end("parked")
        self._streams[stream] = None
        return stream

    def close(self, stream: Stream) -> None:
        self._streams.pop(stream, None)

    def shutdown(self) -> None:
        """Tell every tab that Parley stops; none is taken in any more."""
        self._stopped = True
        for stream in self._streams:
            stream.end("shutdown")


# ---------------------------------------------------------------------------------------------------- the response


def encode(data: str, *, seq: int | None = None, event: str = "") -> bytes:
    """One message on the wire. Every line of the data gets its own field, so no text can begin another one (S31)."""
    lines = [f"event: {event}"] if event else []
    if seq is not None:
        lines.append(f"id: {seq}")
    lines += [f"data: {line}" for line in _BREAK.split(data)]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "backslashreplace")


class EventStream(EventSourceResponse):
    """sse-starlette's, without a traceback for each tab that stops reading."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            logger.info("a tab stopped reading, its stream was closed")


def _since(request: Request) -> int | None:
    """Where the tab stands: `Last-Event-ID` of a reconnect, else what the page says; None when unknown."""
    text = request.headers.get("last-event-id") or request.query_params.get("since", "0")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


async def events(request: Request) -> Response:
    """The stream of one session: patches for a page, or with `format=json` the events themselves."""
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    session: Workspace = request.state.session
    hub: StreamHub = request.app.state.streams
    limits: Limits = request.app.state.settings.limits
    if len(hub) >= limits.streams:
        raise Denied(429, "too_many", "Too many streams are open.", headers={"retry-after": "15"})
    since, query = _since(request), request.query_params
    if query.get("format") == "json":
        content: Content = JsonContent(session, since, limits, query.get("of", ""))
    else:
        content = PatchContent(Tab(session, query.get("page", ""), query.get("of", ""), since, limits), limits)
    return EventStream(
        _watched(content, hub, getattr(request.state, "browser", None), session),
        ping=limits.stream_ping_seconds,
        send_timeout=limits.stream_send_seconds,
        sep="\n",
    )


async def _watched(content: Content, hub: StreamHub, browser: str | None, session: Workspace) -> AsyncIterator[bytes]:
    """Count the stream in and out, and end it with one last word."""
    stream = hub.open(browser)
    session.stream_opened()
    try:
        while True:
            async for message in content.now():
                yield message
            if stream.ended.is_set() or session.closed:
                yield encode(stream.reason or "closed", event="bye")
                return
            await _wait(stream, content)
    finally:
        session.stream_closed()
        hub.close(stream)


async def _wait(stream: Stream, content: Content) -> None:
    """Until there is something to say, or the stream is ended from outside."""
    async with anyio.create_task_group() as group:

        async def until_ended() -> None:
            await stream.ended.wait()
            group.cancel_scope.cancel()

        group.start_soon(until_ended)
        await content.more()
        group.cancel_scope.cancel()


class Content:
    """What a stream says: all of it for now, and a wait until there is more."""

    def now(self) -> AsyncIterator[bytes]:
        raise NotImplementedError

    async def more(self) -> None:
        raise NotImplementedError


_URGENT: Final = frozenset({"call.settled", "ask.added", "ask.reopened", "ask.settled", "ask.withdrawn"})
"""What somebody is waiting for: it does not wait for the end of a window."""
_TURNS: Final = 6
"""Turns of the loop that a first patch waits for what follows from the same message: its ask, its settled call."""
_LOOKS: Final = 8
"""How often a window looks whether something urgent came; in a burst it then waits for its end."""


class PatchContent(Content):
    """Patches of one tab, with a leading edge and a window. What is urgent ends the window, now and then."""

    def __init__(self, tab: Tab, limits: Limits) -> None:
        self._tab, self._window = tab, limits.stream_window_seconds
        self._busy = False
        self._hurried = -math.inf

    async def now(self) -> AsyncIterator[bytes]:
        patch = self._tab.patch()
        self._busy = patch is not None
        if patch is not None and patch.html:
            yield encode(drawn(patch.html), seq=patch.seq)

    async def more(self) -> None:
        if not self._busy:
            await self._tab.session.events.wait(self._tab.mark)
            for _ in range(_TURNS):
                await anyio.lowlevel.checkpoint()
            return
        began = anyio.current_time()
        with anyio.move_on_after(self._window):
            if began - self._hurried > 3 * self._window and await self._urgent():
                self._hurried = anyio.current_time()
                return
            await anyio.sleep(self._window)

    async def _urgent(self) -> bool:
        """Whether something came that is not to wait."""
        events, seen = self._tab.session.events, self._tab.mark
        for _ in range(_LOOKS):
            await events.wait(seen)
            fresh = events.since(seen)
            if fresh is None:
                return False
            if any(event.kind in _URGENT for event in fresh):
                return True
            seen = events.seq
        return False


class JsonContent(Content):
    """The events themselves, for scripts; `of` a call, only those of it and of its task (S003). What can no longer be
    replayed is said by one event `gap`."""

    def __init__(self, session: Workspace, since: int | None, limits: Limits, of: str = "") -> None:
        self._session, self._mark, self._many = session, -1 if since is None else since, limits.stream_rows
        self._of = of

    async def now(self) -> AsyncIterator[bytes]:
        found = self._session.events.since(self._mark)
        if found is None:
            self._mark = self._session.events.seq
            yield encode(json.dumps({"seq": self._mark}), seq=self._mark, event="gap")
            return
        for start in range(0, len(found), self._many):
            portion = found[start : start + self._many]
            self._mark = portion[-1].seq
            told = [event for event in portion if not self._of or self._concerns(event)]
            if told:
                yield b"".join(encode(_event_json(self._session, event), seq=event.seq) for event in told)

    def _concerns(self, event: Event) -> bool:
        call = self._session.calls.get(self._of)
        return event.subject == self._of or (call is not None and event.subject == call.task_id)

    async def more(self) -> None:
        await self._session.events.wait(self._mark)


def _event_json(session: Workspace, event: Event) -> str:
    said: dict[str, Any] = {
        "seq": event.seq,
        "at": wire_time(event.at),
        "kind": event.kind,
        "subject": event.subject,
    }
    return json.dumps(said | _seed_event(session, event))


def _seed_event(session: Workspace, event: Event) -> dict[str, Any]:
    """What S003 calls an event of a task on the server, and what it says with it, as it is now."""
    name = _SEED_EVENTS.get(event.kind)
    task = session.client_tasks.tasks.get(event.subject)
    if event.kind == "tasks.listed":
        return {"event": name, "tasks": [one.object() for one in session.client_tasks.tasks.values()]}
    if task is not None:
        return {"event": name, "taskId": task.task_id, "callId": task.call_id, "task": task.object()}
    call = session.calls.get(event.subject)
    if event.kind == "call.settled" and call is not None and call.method == "tools/call":
        error = None if call.error is None else {"code": call.error.code, "message": call.error.message}
        told = {"toolName": call.subject, "state": call.state, "taskId": None, "error": error}
        made = session.client_tasks.tasks.get(call.task_id or "")
        return {"event": name, **told, **({} if made is None else {"taskId": made.task_id})}
    return {}
