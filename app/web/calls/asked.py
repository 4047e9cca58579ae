"""What a server asked while a call ran, as the rows of a table: the question, the answer in words, state and age."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from app.core.asks import Ask
from app.web.asks import words
from app.web.asks.drafting import drafted
from app.web.kit import format
from app.web.kit.words import ASK_KINDS, ASK_MARKS

if TYPE_CHECKING:
    from app.sessions import Workspace

MOST = 50
"""Asks of a call that its card lists; the newest."""
_WORDS = 160
_FIELDS = 8
_COLOURS = {"open": "theirs", "held": "ours", "sending": "ours", "answered": "ok"}
_STEPS = {"": "none yet", "streaming": "model writes", "ready": "draft to check", "failed": "model failed"}
"""Where an answer stands that a model drafts."""


class AskLine(NamedTuple):
    """One ask of a call."""

    id: str
    kind: str
    question: str
    answer: list[tuple[str, str]]
    """What was answered: names and values, or only a value."""
    none: str
    """What to say when there is no answer."""
    state: str
    by: str
    """The rule or model that answered."""
    mark: str
    colour: str
    waits: bool
    asked_at: float
    age: str
    """How long ago it was asked; once it is settled, how long it was open."""
    took: str
    """The same, as exactly as it is known."""
    settled: bool


def ask_lines(session: Workspace, ids: Sequence[str]) -> list[AskLine]:
    """The asks of a call, the oldest first."""
    return [_line(session.inbox.asks[one]) for one in ids[-MOST:] if one in session.inbox.asks]


def _drafted(ask: Ask) -> str:
    """How far the draft of a model is; "" when there is none."""
    draft = drafted(ask)
    if draft is None:
        return ""
    return "" if draft.fault == "stopped" else draft.state


def _line(ask: Ask) -> AskLine:
    mark, colour = ASK_MARKS[ask.state], _COLOURS.get(ask.state, "")
    done = words.given(ask)
    if done is not None and done.action in ("decline", "cancel", "fail"):
        mark, colour = ("ok" if done.action != "fail" else "x"), ""
    none = "nothing" if done is not None else "not sent" if ask.settled else _STEPS[_drafted(ask)]
    end = time.time() if ask.settled_at is None else ask.settled_at
    return AskLine(
        ask.id,
        ASK_KINDS[ask.kind][1],
        format.gist(words.question(ask), _WORDS) or ask.method,
        words.told(ask, _FIELDS),
        none,
        words.outcome(ask),
        words.by(ask),
        mark,
        colour,
        ask.state == "open",
        ask.asked_at,
        format.stopwatch(end - ask.asked_at),
        format.duration(1000 * (end - ask.asked_at)),
        ask.settled,
    )
