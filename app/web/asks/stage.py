"""The presenter's page: what a server asks, one thing after the other, at the size of a projector.

Works for any server; with the demo server it also starts the parade. Knows the session; knows no route.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from app.web.asks import words
from app.web.asks.live import ON
from app.web.asks.room import RoomView
from app.web.kit.frame import Shell
from app.web.kit.templates import Context, fragment
from app.web.kit.words import ASK_KINDS
from app.web.live.parts import Part

if TYPE_CHECKING:
    from app.core.asks import Ask
    from app.core.calls import Call
    from app.sessions import Workspace

PARADE = "parade"
_SHOWN = 24


class Scene(NamedTuple):
    """One ask in the sequence: its number, its words, and how it came."""

    number: int
    ask: Ask
    gist: str
    origin: str


@dataclass(slots=True)
class Stage:
    """The sequence beside the inbox: what has been asked so far. While a parade runs, or after the last one, only what
    belongs to it."""

    session: Workspace
    call: Call | None
    """The newest call of the parade."""

    @property
    def running(self) -> bool:
        return self.call is not None and not self.call.settled

    @property
    def over(self) -> bool:
        return self.call is not None and self.call.settled

    @property
    def can_start(self) -> bool:
        offered = self.session.tools.by_name(PARADE) is not None
        return self.session.info.state == "ready" and offered and not self.running

    @property
    def scenes(self) -> list[Scene]:
        """The last asks."""
        began = 0.0 if self.call is None else self.call.started_at
        listed = [ask for ask in self.session.inbox.asks.values() if ask.asked_at >= began]
        return [
            Scene(number, ask, words.question(ask), words.origin(ask, self.session.calls.get(ask.call_id or "")))
            for number, ask in list(enumerate(listed, 1))[-_SHOWN:]
        ]


def stage_of(session: Workspace) -> Stage:
    """The stage of a session at this moment."""
    called = (call for call in session.calls.newest if call.method == "tools/call")
    return Stage(session, next((call for call in called if (call.params or {}).get("name") == PARADE), None))


def stage_json(session: Workspace) -> dict[str, Any]:
    """The same for scripts."""
    stage = stage_of(session)
    progress = None if stage.call is None else stage.call.progress
    return {
        "server": session.label,
        "act": (progress.message or "") if progress is not None and stage.running else "",
        "progress": None if progress is None else progress.progress,
        "total": None if progress is None else progress.total,
        "call_id": None if stage.call is None else stage.call.id,
        "running": stage.running,
        "can_start": stage.can_start,
        "scenes": [{"ask": one.id, "kind": ASK_KINDS[one.kind][1], "state": one.state} for _, one, *_ in stage.scenes],
    }


@dataclass(slots=True)
class StagePage(Context):
    """The stage: the sequence, and the inbox in the middle."""

    template: ClassVar[str] = "asks/stage.html"
    part: ClassVar[str | None] = "asks/_stage.html"
    shell: Shell
    stage: Stage
    view: RoomView


STAGE = Part(
    "#stage",
    (*ON, "call.*", "connection.changed", "listing.changed"),
    lambda view: fragment("asks/_stage.html", stage=stage_of(view.session)),
)
"""The whole of it, whenever the conversation moves."""
