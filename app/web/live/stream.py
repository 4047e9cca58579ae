"""Server-sent events: a session's stream to each tab, and to scripts.

After a silence the first change leaves at once; while changes keep coming, one message leaves each window, and what
somebody waits for may leave before its end. What a message says is made by `tab`; here is when it leaves, how it is
written on the wire, and how many streams there may be.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app import bounds
from app.core.events import Event, EventKind
from app.core.signal import Signal, first_of
from app.core.times import wire_time
from app.sessions import Workspace
from app.settings import Limits
from app.web.door.denied import Denied
from app.web.door.reader import reader
from app.web.kit.html import drawn
from app.web.live.page import Pages
from app.web.live.parts import Drawings, View
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
    owner: str = ""
    """The person, by whichever browser or script."""
    token: str = ""
    """What the script of a team sent; empty for a browser."""
    ended: Signal = field(default_factory=Signal)
    reason: str = ""

    def end(self, reason: str) -> None:
        """Say the last word: `parked`, `closed`, `signed-out`, `revoked`, `rights` (draw it anew) or `shutdown`. The
        first one counts."""
        self.reason = self.reason or reason
        self.ended.set()


class StreamHub:
    """All open streams. A browser has six connections to us at most, so it may hold four of them by streams."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._streams: dict[Stream, None] = {}
        self._drawings: WeakKeyDictionary[Workspace, Drawings] = WeakKeyDictionary()
        self._stopped = False

    def __len__(self) -> int:
        return len(self._streams)

    def refuse(self, browser: str | None, owner: str) -> None:
        """Raise Denied when somebody may not have one more: a script of theirs over their own number, or anybody while
        there are too many and nobody has more than they. A browser parks one of its own instead."""
        counts = Counter(one.owner for one in self._streams if not one.reason)
        mine, limits, headers = counts[owner], self._limits, {"retry-after": "15"}
        if mine >= limits.streams_per_identity and browser is None:
            words = f"You have {mine} streams open, which is the limit. Close one first."
            raise Denied(429, "too_many", words, headers=headers)
        if len(self._streams) >= limits.streams and max(counts.values(), default=0) <= mine + 1:
            raise Denied(429, "too_many", "Too many streams are open.", headers=headers)

    def open(self, browser: str | None, owner: str = "", token: str = "") -> Stream:
        """A new stream; the oldest of the same browser is parked when there are too many, and so is the oldest of
        whoever has most of them when all together are."""
        stream = Stream(browser, owner, token)
        if len(self._streams) >= self._limits.streams:
            counts = Counter(one.owner for one in self._streams if not one.reason)
            if counts:
                self._park(counts.most_common(1)[0][0])
        if browser is not None:
            mine = [one for one in self._streams if one.owner == owner and not one.reason]
            for oldest in mine[: max(0, len(mine) - self._limits.streams_per_identity + 1)]:
                oldest.end("parked")
        if self._stopped:
            stream.end("shutdown")
        if browser is not None:
            same = [one for one in self._streams if one.browser == browser and not one.reason]
            for oldest in same[: max(0, len(same) - self._limits.streams_per_browser + 1)]:
                oldest.end("parked")
        self._streams[stream] = None
        return stream

    def many(self, owner: str) -> int:
        """How many somebody has."""
        return sum(one.owner == owner and not one.reason for one in self._streams)

    def owners(self) -> set[str]:
        """Who watches something now."""
        return {one.owner for one in self._streams if not one.reason}

    def _park(self, owner: str) -> None:
        """Park the oldest of somebody's."""
        next(one for one in self._streams if one.owner == owner and not one.reason).end("parked")

    def drawings(self, session: Workspace) -> Drawings:
        """What the tabs of a session share."""
        return self._drawings.setdefault(session, Drawings())

    def close(self, stream: Stream) -> None:
        """It is over."""
        self._streams.pop(stream, None)

    async def end_signed_out(self, gone: Callable[[], set[str]]) -> None:
        """Look now and then which browsers were signed out, perhaps by another Parley. Runs until cancelled."""
        while True:
            await anyio.sleep(bounds.SIGNED_OUT_SECONDS)
            self.sign_out(gone())

    def sign_out(self, gone: set[str]) -> None:
        """Nobody who is signed out hears on, by these browsers or tokens."""
        for stream in self._streams:
            if stream.browser in gone or stream.token in gone:
                stream.end("signed-out")

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
    state = request.app.state
    hub, limits, pages = cast(StreamHub, state.streams), cast(Limits, state.settings.limits), cast(Pages, state.pages)
    since, query = _since(request), request.query_params
    who = getattr(request.state, "browser", None), request.state.identity.id, getattr(request.state, "token", "")
    hub.refuse(*who[:2])
    if query.get("format") == "json":
        content: Content = JsonContent(session, since, limits, query.get("of", ""))
        return _response(_watched(content, hub, who, session), limits)
    rights, drawings = session.rights_of(request.state.identity), hub.drawings(session)
    view = View(session, query.get("page", ""), query.get("of", ""), rights, limits, drawings)
    tab = Tab(view, pages.shown(view.page, kept=session.read_only), since)
    return _response(_shared(drawings, _watched(PatchContent(tab, limits), hub, who, session)), limits)


def _response(messages: AsyncIterator[bytes], limits: Limits) -> Response:
    return EventStream(messages, ping=limits.stream_ping_seconds, send_timeout=limits.stream_send_seconds, sep="\n")


async def _shared(drawings: Drawings, messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Count a tab among those that share what is drawn."""
    drawings.opened()
    try:
        async for message in messages:
            yield message
    finally:
        drawings.closed()


async def _watched(
    content: Content, hub: StreamHub, who: tuple[str | None, str, str], session: Workspace
) -> AsyncIterator[bytes]:
    """Count the stream in and out, and end it with one last word."""
    stream = hub.open(*who)
    session.stream_opened()
    left = reader().together.came(stream, session, reader())
    try:
        while True:
            if stream.reason != "revoked":  # who has lost a session hears nothing more of it
                async for message in content.now():
                    yield message
            if stream.ended.is_set() or session.closed:
                yield encode(stream.reason or "closed", event="bye")
                return
            await content.more(stream.ended)
    finally:
        left()
        session.stream_closed()
        hub.close(stream)


class Content(Protocol):
    """What a stream says: all of it for now, and a wait until there is more."""

    def now(self) -> AsyncIterator[bytes]:
        """The messages that say what there is to say."""

    async def more(self, ended: Signal) -> None:
        """Return when there is more to say, or the stream is ended from outside."""


_URGENT: Final[frozenset[EventKind]] = frozenset(
    {"call.settled", "ask.added", "ask.draft", "ask.reopened", "ask.settled", "ask.withdrawn"}
)
"""What a person is waiting for."""
_STEPS: Final[frozenset[EventKind]] = frozenset({"ask.stepped"})
"""What a person looks at and waits for: a draft that begins, its first word, its end."""
_STEPS_IN_A_ROW: Final = 3
"""So many of them leave at once before a window is whole: a burst of drafts is paced like any other."""
_TURNS: Final = 6
"""Turns of the loop in which what follows from the same message happens: its ask, its settled call."""


class PatchContent:
    """Patches of one tab, paced. After a silence a change leaves at once, with what follows from the same message.
    While changes keep coming, one message leaves each window. What a person waits for ends a window; the next one is
    whole, unless it is a step of a draft that ends it."""

    def __init__(self, tab: Tab, limits: Limits) -> None:
        self._tab, self._window = tab, limits.stream_window_seconds
        self._busy, self._hurried = False, 0
        """Whether the tab has just been told something, and how many windows in a row were cut short."""

    async def now(self) -> AsyncIterator[bytes]:
        """One patch."""
        patch = self._tab.patch()
        self._busy = patch is not None
        if patch is not None and patch.html:
            yield encode(drawn(patch.html), seq=patch.seq)

    async def more(self, ended: Signal) -> None:
        """Return at the next change after a silence, at the end of a window, or in it when that is urgent."""
        events = self._tab.session.events
        if self._busy:
            hurried, self._hurried = self._hurried, 0
            urgent = (self._urgent(_STEPS if hurried else _URGENT),) if hurried <= _STEPS_IN_A_ROW else ()
            with anyio.move_on_after(self._window):
                await first_of(ended, *urgent)
                self._hurried = hurried + 1
            return
        self._hurried = 0
        await first_of(ended, events.after(self._tab.mark))
        for _ in range(_TURNS):
            await anyio.lowlevel.checkpoint()

    def _urgent(self, kinds: frozenset[EventKind]) -> Signal:
        """Set when something came that a person waits for, perhaps while the last patch was on its way."""
        events = self._tab.session.events
        missed = events.since(self._tab.mark)
        if missed is None or any(event.kind in kinds for event in missed):
            return events.after(-1)
        return events.next_of_kind(kinds)


class JsonContent:
    """The events themselves, for scripts; `of` a call, only those of it and of its task (S003). What can no longer be
    replayed is said by one event `gap`."""

    def __init__(self, session: Workspace, since: int | None, limits: Limits, of: str = "") -> None:
        self._session, self._mark, self._many = session, -1 if since is None else since, limits.stream_rows
        self._of = of

    async def now(self) -> AsyncIterator[bytes]:
        """The events that the reader has not heard of, in portions."""
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

    async def more(self, ended: Signal) -> None:
        """Return at the next event."""
        await first_of(ended, self._session.events.after(self._mark))


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
