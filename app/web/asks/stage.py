"""The presenter's page: what a server asks, one thing after the other, at the size of a projector.

Works for any server; with the demo server it also starts the parade. Knows the session; knows no route.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from app.web.asks.card import KINDS, STATES, gist_of
from app.web.asks.live import ON
from app.web.kit.frame import Shell, shell
from app.web.kit.templates import Context, fragment
from app.web.live.parts import Part

if TYPE_CHECKING:
    from app.core.calls import Call
    from app.sessions import Workspace

PARADE = "parade"
_SHOWN = 24


@dataclass(slots=True, frozen=True)
class Scene:
    """One ask in the sequence."""

    id: str
    number: int
    icon: str
    kind: str
    message: str
    state: str
    word: str
    task: bool


@dataclass(slots=True)
class StageView:
    """The sequence beside the inbox."""

    base: str
    server: str
    state: str
    scenes: list[Scene]
    earlier: int
    """Scenes before those."""
    act: str
    """What the server says about where it is."""
    done: float | None
    total: float | None
    call_id: str | None
    running: bool
    over: bool
    can_start: bool
    stateless: str
    """The revision, when it is one in which servers send no requests and so no receiver tasks."""

    def as_json(self) -> dict[str, Any]:
        return {
            "server": self.server,
            "act": self.act,
            "progress": self.done,
            "total": self.total,
            "call_id": self.call_id,
            "running": self.running,
            "can_start": self.can_start,
            "scenes": [{"ask": one.id, "kind": one.kind, "state": one.state} for one in self.scenes],
        }


def stage_view(session: Workspace) -> StageView:
    """What has been asked so far. While a parade runs, or after the last one, only what belongs to it."""
    call = _parade(session)
    listed = list(session.inbox.asks.values())
    if call is not None:
        listed = [ask for ask in listed if ask.asked_at >= call.started_at]
    cut = max(0, len(listed) - _SHOWN)
    progress = None if call is None else call.progress
    offered = session.tools.by_name(PARADE) is not None
    running = call is not None and not call.settled
    return StageView(
        base=f"/s/{session.id}",
        server=session.label,
        state=session.info.state,
        scenes=[
            Scene(
                id=ask.id,
                number=at + 1,
                icon=KINDS[ask.kind][0],
                kind=KINDS[ask.kind][1],
                message=gist_of(ask),
                state=ask.state,
                word=STATES[ask.state],
                task=ask.task_id is not None,
            )
            for at, ask in enumerate(listed)
            if at >= cut
        ],
        earlier=cut,
        act="" if progress is None or not running else progress.message or "",
        done=None if progress is None else progress.progress,
        total=None if progress is None else progress.total,
        call_id=None if call is None else call.id,
        running=running,
        over=call is not None and call.settled,
        can_start=session.info.state == "ready" and offered and not running,
        stateless=version if (version := session.info.protocol_version or "") >= "2026" else "",
    )


def _parade(session: Workspace) -> Call | None:
    """The newest call of the parade."""
    for call in session.calls.newest:
        if call.method == "tools/call" and call.params is not None and call.params.get("name") == PARADE:
            return call
    return None


@dataclass(slots=True)
class StagePage(Context):
    """The stage: the sequence, and the inbox in the middle."""

    template: ClassVar[str] = "asks/stage.html"
    part: ClassVar[str | None] = "asks/_stage.html"
    shell: Shell
    stage: StageView


def stage_page(session: Workspace) -> StagePage:
    """The page of one session."""
    return StagePage(shell(session, "stage", "Stage"), stage_view(session))


STAGE = Part(
    "#stage",
    (*ON, "call.*", "connection.changed", "listing.changed"),
    lambda view: fragment("asks/_stage.html", stage=stage_view(view.session)),
)
"""The whole of it, whenever the conversation moves."""
