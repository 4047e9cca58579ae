"""The tour: ten steps through the demo server. Which one somebody is at, and what each does when its button is pressed.

A step does one real thing in the session, or shows a page of it; nothing is played. Kept with the session, so it goes
on where it was. Knows sessions and calls; knows no page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from app import guest_bounds as bounds
from app.core.errors import Conflict

if TYPE_CHECKING:
    from app.core.asks import Ask
    from app.sessions.identity import Identity
    from app.sessions.workspace import Workspace


class Step(NamedTuple):
    """One step: a sentence before its button, and one after, with what to look at."""

    key: str
    title: str
    before: str
    button: str
    after: str
    page: str
    """Where it is seen, below the session; `{call}` stands for the call that it is about."""
    look: str
    """What to look at there, as a selector."""
    tool: str = ""
    arguments: dict[str, Any] = {}  # noqa: RUF012 - a constant of a constant


STEPS: tuple[Step, ...] = (
    Step(
        "connection",
        "Connected",
        "Parley keeps one live connection to a server for you, and writes down every byte of it.",
        "Show the connection",
        "Here is what both sides agreed on: the revision of the protocol, and what the server can do.",
        "",
        "#connection",
    ),
    Step(
        "tools",
        "Tools",
        "A server offers tools: functions that a model, or you, may call.",
        "List the tools",
        "These are the tools of the demo server. Each has a form, made from the schema that the server sent.",
        "/tools",
        "#tools",
    ),
    Step(
        "call",
        "A call",
        "Calling a tool sends its name and arguments, and waits for a result.",
        "Add 2 and 3",
        "The answer is 5, checked against the schema of the result, with the time that it took.",
        "/calls/{call}",
        "#call-{call}",
        "add",
        {"a": 2, "b": 3},
    ),
    Step(
        "log",
        "The log",
        "Everything that was said on the wire stands in the log, both ways.",
        "Open the log",
        "Warm is what the server sent, cool is what we sent. Open a row to read its bytes.",
        "/log",
        "#logscroll",
    ),
    Step(
        "progress",
        "Progress",
        "A call may take its time, and report how far it is.",
        "Count waves, slowly",
        "Progress and log messages arrive while the call runs; you could cancel it.",
        "/calls/{call}",
        "#call-{call}",
        "slow_count",
        {"steps": 8, "delay": 0.4},
    ),
    Step(
        "form",
        "The server asks",
        "The other way round: a server may ask you something in the middle of a call, by elicitation.",
        "Let it ask with a form",
        "The call waits, and its form is yours to fill in. Nothing is answered for you.",
        "/calls/{call}",
        ".ask[data-s='open']",
        "preferences",
    ),
    Step(
        "answer",
        "You answer",
        "What you fill in is checked against what the server asked for, and sent once.",
        "Accept with Markdown",
        "The answer left, and the call went on to its end.",
        "/calls/{call}",
        "#call-{call}",
    ),
    Step(
        "sampling",
        "A model is wanted",
        "A server may also ask for words of a language model, by sampling; you decide whether it gets any.",
        "Let it ask for a caption",
        "You see the request before anything leaves: answer it yourself, let a model draft it, or deny it.",
        "/calls/{call}",
        ".ask[data-s='open']",
        "write_caption",
    ),
    Step(
        "words",
        "You are the model",
        "Whoever answers plays the model, so a person can too.",
        "Write a caption",
        "The server got your caption in the place of a model's, and finished its call.",
        "/calls/{call}",
        "#call-{call}",
    ),
    Step(
        "timeline",
        "Where the time went",
        "Calls, questions and the time that each side took are easiest to see side by side.",
        "Open the timeline",
        "Hollow and warm: the server worked. Hatched: it waited for you. That was the tour.",
        "/timeline",
        "#tl-rows",
    ),
)


@dataclass(slots=True)
class Tour:
    """Where somebody is on the tour."""

    at: int = 0
    done: bool = False
    """The button of this step was pressed."""
    left: bool = False
    """They went away from it, and may come back."""
    calls: dict[str, str] = field(default_factory=dict)
    """Which call a step began."""

    @property
    def step(self) -> Step:
        return STEPS[self.at]

    @property
    def over(self) -> bool:
        return self.done and self.at == len(STEPS) - 1

    def move(self, to: int) -> None:
        """To another step, before its button."""
        self.at, self.done, self.left = min(max(to, 0), len(STEPS) - 1), False, False

    @property
    def call(self) -> str:
        """The call that this step is about."""
        begun = {"answer": "form", "words": "sampling"}.get(self.step.key, self.step.key)
        return self.calls.get(begun, "")

    def filled(self, text: str) -> str:
        """An address or a selector of this step, with its call."""
        return text.replace("{call}", self.call or "none")


async def press(session: Workspace, tour: Tour, by: Identity) -> None:
    """Do what the button of a step says. Raises Conflict when the server does not offer it."""
    step = tour.step
    # Whoever has just come may be faster than the handshake, or than the first list.
    await session.wait_connection(bounds.TOUR_SECONDS)
    await session.until(lambda: session.tools.state != "loading", bounds.TOUR_SECONDS)
    if step.tool:
        if session.tools.by_name(step.tool) is None:
            raise Conflict("This tour is about the demo server, and this server is another. Connect to the demo.")
        params = {"name": step.tool, "arguments": dict(step.arguments)}
        call = session.start_call("tools/call", params, by=by)
        tour.calls[step.key] = call.id
        asks = step.key in ("form", "sampling")
        await session.until(
            lambda: call.settled or not asks or _open(session, call.id) is not None, bounds.TOUR_SECONDS
        )
        if step.key == "call":
            await session.until(lambda: call.settled, bounds.TOUR_SECONDS)
    elif step.key in ("answer", "words"):
        await _answer(session, tour, by)
    tour.done = True


async def _answer(session: Workspace, tour: Tour, by: Identity) -> None:
    ask = _open(session, tour.call)
    if ask is not None:
        content = {"outputFormat": "markdown"}
        words = {"type": "text", "text": "A quiet harbour, and the last ferry home."}
        said: dict[str, Any] = {"action": "accept", "content": content}
        if ask.kind == "sampling":
            result = {"role": "assistant", "content": words, "model": "a person", "stopReason": "endTurn"}
            said = {"action": "respond", "result": result}
        await session.asks.answer(ask, said, by)
    call = session.calls.get(tour.call)
    if call is not None:
        await session.until(lambda: call.settled, bounds.TOUR_SECONDS)


def _open(session: Workspace, call: str) -> Ask | None:
    """What a call waits for."""
    return next((ask for ask in session.inbox.open if call and ask.call_id == call), None)
