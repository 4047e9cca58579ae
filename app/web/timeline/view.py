"""The timeline as its page draws it, and as scripts read it.

A row has its own small drawing, its places in per cent of the whole scale: the page stretches and shifts all of them at
once to zoom, and the stream brings one call at a time. Knows the workspace; `core/timeline.py` does the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from app import bounds
from app.core import timeline
from app.core.asks import Ask
from app.core.calls import Call
from app.core.tasks.status import POLL, Task
from app.core.timeline import Bar, Group, Polls, Who
from app.core.times import wire_time
from app.sessions import Workspace
from app.web.asks.card import gist_of
from app.web.asks.words import written
from app.web.kit import format
from app.web.kit.format import duration
from app.web.kit.frame import Shell
from app.web.kit.templates import Context
from app.web.kit.words import ASK_KINDS, ASK_STATES, CALL_WORDS

_WORDS: Final = 90
_CLASS: Final[dict[timeline.Part, str]] = {
    "server": "t-s",
    "person": "t-p",
    "model": "t-m",
    "waiting": "t-o",
    "failed": "t-x",
}
LEGEND: Final = (
    ("t-s", "Server"),
    ("t-p", "Waiting for a person"),
    ("t-m", "Model or rule"),
    ("t-o", "Waiting now"),
    ("t-x", "Failed"),
)
WHO: Final[tuple[Who, ...]] = ("server", "person", "model")
LEAST_SECONDS: Final = 0.02
"""The shortest time that fills a page; `static/js/timeline.js` has the same."""
_THIN: Final = 0.02
"""Per cent of the scale that the shortest bar takes."""


# ------------------------------------------------------------------------------------------------------------- facts


def polls_of(session: Workspace, one: Call | Ask) -> Polls:
    """When the task of a call, or the one that an ask is answered by, was asked for."""
    known: dict[str, Any] = session.client_tasks.tasks if isinstance(one, Call) else session.asks.tasks
    task: Task | None = known.get(one.task_id or "")
    if task is None or not task.polls:
        return Polls()
    return Polls(task.id, tuple(visit.at for visit in task.visits if visit.what == POLL), task.polls)


def all_groups(session: Workspace) -> list[Group]:
    """Every call and ask that is still known, in the order in which they began."""
    return timeline.groups(
        session.calls.values(), session.inbox.asks, lambda one: polls_of(session, one), session.wall()
    )


@dataclass(slots=True, frozen=True)
class Scale:
    """From when on the bars are drawn, over how many seconds, and where the last of them ends."""

    start: float
    seconds: float
    end: float
    live: bool

    def place(self, moment: float) -> float:
        """Per cent of the way."""
        return 100 * (moment - self.start) / self.seconds


def scale_of(groups: list[Group], now: float) -> Scale:
    """The scale that holds all of these."""
    if not groups:
        return Scale(now, 1.0, now, live=False)
    start, live = min(group.began for group in groups), any(group.live for group in groups)
    end = max(now if live else start, *(group.ends for group in groups))
    return Scale(start, timeline.scale(end - start), end, live)


# -------------------------------------------------------------------------------------------------------------- rows


def _per_cent(value: float) -> str:
    return f"{max(0.0, value):.5f}".rstrip("0").rstrip(".") + "%"


class Drawn(NamedTuple):
    """One part of a bar: its look, its place and width."""

    cls: str
    x: str
    width: str
    grows: bool


class Growing(NamedTuple):
    """What a page counts on by itself while a call or ask goes on: who is waited for, and the figures when drawn."""

    who: Who
    drawn: str
    """The second of the scale at which that was."""
    ms: str
    total_ms: str


class Row(NamedTuple):
    """One call or ask, ready to be drawn."""

    kind: str
    where: str
    """The rest of its address."""
    icon: str
    look: str
    said: str
    name: str
    note: str
    parts: list[Drawn]
    words: str
    """Who answered, or how it went; beside the bar."""
    words_at: str
    left: bool
    """The words stand at its left, where there is no room at its right."""
    inside: bool
    """Or in it, where there is none on either side."""
    began: str
    waited: list[tuple[Who, str]]
    total: str
    polls: Ticks | None
    grows: Growing | None


class Ticks(NamedTuple):
    """The polls of a task as one row."""

    task: str
    said: str
    at: list[str]
    words: str


class Body(NamedTuple):
    """A call with its asks, or an ask alone, and what the page sums up of it."""

    id: str
    kind: str
    begins: str
    ends: str
    waited: dict[Who, str]
    polls: int
    rows: list[Row]


def _parts(bar: Bar, scale: Scale) -> list[Drawn]:
    last = len(bar.spans) - 1
    return [
        Drawn(
            _CLASS[span.part],
            _per_cent(scale.place(span.began)),
            _per_cent(max(_THIN, 100 * span.seconds / scale.seconds)),
            bar.ended is None and number == last,
        )
        for number, span in enumerate(bar.spans)
    ]


def _growing(bar: Bar, scale: Scale) -> Growing | None:
    if bar.ended is not None or not bar.spans:
        return None
    who = timeline.WHO[bar.spans[-1].part]
    drawn_at = f"{bar.began + bar.total - scale.start:.3f}"
    return Growing(who, drawn_at, f"{1000 * bar.waited(who):.0f}", f"{1000 * bar.total:.0f}")


def _ticks(bar: Bar, scale: Scale) -> Ticks | None:
    polls = bar.polls
    if not polls.many:
        return None
    kept = polls.at[-bounds.TIMELINE_POLLS :]
    every = (kept[-1] - kept[0]) / (len(kept) - 1) if len(kept) > 1 else 0.0
    words = f"tasks/get every {duration(1000 * every)}" if every else "tasks/get"
    places = [_per_cent(scale.place(moment)) for moment in kept]
    return Ticks(polls.task, f"{format.plural(polls.many, 'poll')} folded", places, words)


def by_words(ask: Ask) -> str:
    """Who answered, in few words; or how it stands."""
    if ask.state != "answered" or ask.answer is None:
        return ASK_STATES[ask.state]
    by, wrote = ask.answer.by, written(ask)
    if by.kind == "person":
        return f"{wrote.model}, {'edited by' if wrote.edited else 'then'} you" if wrote.model else "you"
    words = {"rule": "rule", "model": "model", "script": "a script", "roots": "from the list", "limit": "the limit"}
    words |= {"guest": "a guest", "room": "the room"}
    return f"{words[by.kind]} {by.name}".strip() if by.kind in ("rule", "model") else words[by.kind]


def _row(session: Workspace, bar: Bar, scale: Scale) -> Row | None:
    call, ask = session.calls.get(bar.id), session.inbox.asks.get(bar.id)
    if call is not None:
        mark, said = ("x", "Tool error") if call.tool_error else CALL_WORDS[call.state]
        look = {"ok": "i ok", "x": "i bad", "wait": "i theirs"}.get(mark, "i")
        note = f"call {call.id[1:]}{', task' if call.task_id is not None else ''}"
        named = f"calls/{call.id}", mark, look, said, call.subject[:200], note
        words = said.lower() if mark == "x" else ""
    elif ask is not None:
        mark, said = ASK_KINDS[ask.kind]
        look = "tag open" if ask.state == "open" else "tag"
        named = f"asks/{ask.id}", mark, look, said, format.gist(gist_of(ask), _WORDS) or ask.method, ""
        words = by_words(ask)
    else:
        return None
    ends = bar.began + bar.total
    wide = max(scale.end - scale.start, 0.001)
    left = ends - scale.start > 0.75 * wide
    inside = left and bar.began - scale.start < 0.25 * wide  # there is no room on either side
    waited = [(who, duration(1000 * bar.waited(who)) if bar.waited(who) else "–") for who in WHO]
    return Row(
        bar.kind,
        *named,
        _parts(bar, scale),
        words,
        _per_cent(scale.place(bar.began if left and not inside else ends)),
        left,
        inside,
        duration(1000 * (bar.began - scale.start)),
        waited,
        duration(1000 * bar.total),
        _ticks(bar, scale),
        _growing(bar, scale),
    )


def drawn(session: Workspace, group: Group, scale: Scale) -> Body:
    """A call with its asks and polls, or an ask alone."""
    first = group.bars[0]
    return Body(
        group.id,
        first.kind,
        f"{first.began - scale.start:.3f}",
        f"{group.ends - scale.start:.3f}",
        {who: f"{1000 * first.waited(who):.0f}" for who in WHO},
        sum(bar.polls.many for bar in group.bars),
        [row for bar in group.bars if (row := _row(session, bar, scale)) is not None],
    )


# -------------------------------------------------------------------------------------------------------------- page


def axis_words(seconds: float, step: float) -> str:
    """A moment of the axis: 0:30, 1:02:00, or 2.5 s where the marks are closer than a second."""
    if step < 1:
        return f"{seconds:.{2 if step < 0.1 else 1}f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def axis(scale: Scale) -> list[tuple[str, str]]:
    """The marks of the whole axis: where, and what they say."""
    step, found, number = timeline.tick(scale.seconds), list[tuple[str, str]](), 1
    while number * step < scale.seconds * 0.98:
        found.append((_per_cent(100 * number * step / scale.seconds), axis_words(number * step, step)))
        number += 1
    return found


def strip(groups: list[Group], scale: Scale) -> list[Drawn]:
    """All of it in one line. What is alike and close is one, so that it never has more than some hundred parts."""
    columns = bounds.TIMELINE_COLUMNS
    filled: dict[timeline.Part, set[int]] = {part: set() for part in _CLASS}
    for group in groups:
        for span in group.bars[0].spans:
            first, last = (int(columns * scale.place(moment) / 100) for moment in (span.began, span.ended))
            filled[span.part].update(range(max(0, first), min(columns, last + 1)))
    merged: list[tuple[timeline.Part, int, int]] = []
    for part, cells in filled.items():
        for column in sorted(cells):
            if merged and merged[-1][0] == part and merged[-1][2] == column:
                merged[-1] = (part, merged[-1][1], column + 1)
            else:
                merged.append((part, column, column + 1))
    now = int(columns * scale.place(scale.end) / 100) + 1 if scale.live else None
    return [
        Drawn(_CLASS[part], _per_cent(100 * first / columns), _per_cent(100 * (last - first) / columns), last == now)
        for part, first, last in merged
    ]


@dataclass(slots=True)
class TimelineView:
    """The timeline at this moment."""

    session: Workspace
    groups: list[Group]
    scale: Scale

    @property
    def shown(self) -> list[Group]:
        """The newest, where there are more than a page draws."""
        return self.groups[-bounds.TIMELINE_ROWS :]

    @property
    def left_out(self) -> int:
        return len(self.groups) - len(self.shown)

    @property
    def calls(self) -> int:
        return sum(group.bars[0].kind == "call" for group in self.groups)

    @property
    def asks(self) -> int:
        return sum(bar.kind == "ask" for group in self.groups for bar in group.bars)

    @property
    def counts(self) -> str:
        """How much there is, in words."""
        live = ", live" if self.scale.live else ""
        return f"{format.plural(self.calls, 'call')}, {format.plural(self.asks, 'ask')}{live}"

    @property
    def sums(self) -> list[tuple[str, str, str]]:
        """What it took in all: a name for scripts of the page, one for people, the figure."""
        waited = {who: sum(group.bars[0].waited(who) for group in self.groups) for who in WHO}
        polls = sum(bar.polls.many for group in self.groups for bar in group.bars)
        return [
            ("shown", "Shown", f"{duration(1000 * (self.scale.end - self.scale.start))}"),
            ("calls", "Calls", f"{self.calls}"),
            ("server", "Server", duration(1000 * waited["server"])),
            ("person", "Waiting for a person", duration(1000 * waited["person"])),
            ("model", "Model or rule", duration(1000 * waited["model"])),
            ("polls", "Polls folded", f"{polls}"),
        ]

    @property
    def strip(self) -> list[Drawn]:
        return strip(self.groups, self.scale)

    @property
    def strip_width(self) -> str:
        """How wide the whole scale is drawn, so that what has happened fills the strip."""
        return _per_cent(100 * self.scale.seconds / max(self.scale.end - self.scale.start, LEAST_SECONDS))

    @property
    def axis(self) -> list[tuple[str, str]]:
        return axis(self.scale)

    @property
    def bodies(self) -> list[Body]:
        return [drawn(self.session, group, self.scale) for group in self.shown]

    @property
    def now(self) -> str:
        return f"{self.session.wall() - self.scale.start:.3f}"


def view_of(session: Workspace) -> TimelineView:
    groups = all_groups(session)
    return TimelineView(session, groups, scale_of(groups, session.wall()))


@dataclass(slots=True)
class TimelinePage(Context):
    """Calls and asks in time."""

    template: ClassVar[str] = "timeline/page.html"
    part: ClassVar[str | None] = "timeline/_timeline.html"

    shell: Shell
    view: TimelineView
    legend: tuple[tuple[str, str], ...] = LEGEND


def timeline_json(session: Workspace) -> dict[str, Any]:
    """Every bar for scripts: a call, then the asks below it; times as elsewhere, what was waited in milliseconds."""
    groups, now = all_groups(session), session.wall()
    return {"now": wire_time(now), "bars": [_bar_json(session, bar) for group in groups for bar in group.bars]}


def _bar_json(session: Workspace, bar: Bar) -> dict[str, Any]:
    call, ask = session.calls.get(bar.id), session.inbox.asks.get(bar.id)
    one = call if call is not None else ask
    return {
        "id": bar.id,
        "kind": bar.kind,
        "parent": bar.parent,
        "name": call.subject if call is not None else ask.method if ask is not None else "",
        "state": None if one is None else one.state,
        "began": wire_time(bar.began),
        "ended": None if bar.ended is None else wire_time(bar.ended),
        "total_ms": round(1000 * bar.total, 3),
        "waiting": {who: round(1000 * bar.waited(who), 3) for who in WHO},
        "spans": [
            {"part": span.part, "began": wire_time(span.began), "ended": wire_time(span.ended)} for span in bar.spans
        ],
        "polls": bar.polls.many,
    }
