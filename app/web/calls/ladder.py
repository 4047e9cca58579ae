"""The rounds of a call as a ladder: on the left what Parley sent, on the right what the server answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from app.core.asks import Ask
from app.core.calls import Call, Leg
from app.core.json import text as jsontext
from app.sessions import Workspace
from app.web.asks.card import AskCard
from app.web.asks.words import did, line_of, question_of
from app.web.calls.rounds import RoundLine
from app.web.kit import format

_ARGUMENTS = 40
_TIMES = {1: "once", 2: "twice"}


class Told(NamedTuple):
    """A question and its answer, or an argument and its value."""

    what: str
    text: str


@dataclass(slots=True, frozen=True)
class Slot:
    """One request of a round."""

    key: str
    word: str
    ask: Ask | None
    """None when it is no longer kept."""
    session: Workspace

    @property
    def card(self) -> AskCard | None:
        return None if self.ask is None else AskCard(self.session, self.ask)

    @property
    def waits(self) -> bool:
        return self.ask is not None and self.ask.state == "open"

    @property
    def question(self) -> str:
        return "" if self.ask is None else question_of(self.ask, kind=False)

    @property
    def took(self) -> str:
        """How it was answered, and how long that took."""
        ask = self.ask
        if ask is None or ask.state not in ("answered", "held"):
            return ""
        ms = None if ask.settled_at is None else (ask.settled_at - ask.asked_at) * 1000
        done = did(ask) or "answered"
        # What is held counts from when it leaves: until then nobody knows how long it took.
        return done if ms is None or ask.state == "held" or ask.recorded else f"{done} in {format.duration(ms)}"


@dataclass(slots=True, frozen=True)
class Rung:
    """One request of ours and what came back."""

    number: int
    session: Workspace
    call: Call
    leg: Leg | None
    before: RoundLine | None
    """The round whose answers went out with it; None for the first request."""
    line: RoundLine | None
    """The round that came back; None for what ended the call, or nothing yet."""

    @property
    def told(self) -> list[Told]:
        """What was sent: the arguments, then the answers, each with its question."""
        if self.before is None:
            return [Told(key, _text(value)) for key, value in list(self.arguments.items())[:_ARGUMENTS]]
        return [
            Told(key, "no longer kept") if ask is None else Told(question_of(ask), line_of(ask))
            for key, _, ask in self.before.asked
        ]

    @property
    def arguments(self) -> dict[str, Any]:
        params = self.call.params or {}
        wanted = params.get("arguments") if self.call.method in ("tools/call", "prompts/get") else params
        return wanted if isinstance(wanted, dict) else {}

    @property
    def head(self) -> str:
        """What was sent, in words behind the method."""
        if self.before is not None:
            return f"again with {format.plural(len(self.before.turn.methods), 'answer')}"
        return f"with {format.plural(len(self.arguments), 'argument')}" if self.arguments else "without arguments"

    @property
    def slots(self) -> list[Slot]:
        if self.line is None:
            return []
        return [Slot(key, word, ask, self.session) for key, word, ask in self.line.asked]

    @property
    def came(self) -> str:
        """What came back, in words behind `input_required`."""
        if self.line is None:
            return ""
        turn = self.line.turn
        asks = format.plural(len(turn.methods), "ask") if turn.methods else "nothing to answer"
        return f"with {asks}, {self.line.state_words}"

    @property
    def ms(self) -> float | None:
        """How long the server took."""
        return _between(self.session, self.leg)

    @property
    def sent_seq(self) -> int | None:
        return None if self.leg is None else self.leg.request_seq

    @property
    def came_seq(self) -> int | None:
        return None if self.leg is None else self.leg.reply_seq


class Ladder:
    """All rounds of a call, and their figures."""

    def __init__(self, session: Workspace, call: Call) -> None:
        self.session, self.call = session, call
        self.lines = [RoundLine(session, turn) for turn in call.rounds]

    @property
    def rungs(self) -> list[Rung]:
        lines = self.lines
        made = [
            Rung(line.turn.number, self.session, self.call, self._leg(line.turn.reply_seq), before, line)
            for before, line in zip([None, *lines], lines, strict=False)
        ]
        if lines and lines[-1].turn.outcome == "sent":
            leg = next((one for one in self.call.legs if one.request_seq == lines[-1].turn.retry_seq), None)
            last = self.call.legs[-1] if self.call.legs and self.call.settled else leg
            made.append(Rung(len(lines) + 1, self.session, self.call, last, lines[-1], None))
        return made

    def _leg(self, reply_seq: int | None) -> Leg | None:
        found = (one for one in self.call.legs if one.reply_seq == reply_seq)
        return None if reply_seq is None else next(found, None)

    @property
    def asks(self) -> str:
        found = [slot for rung in self.rungs for slot in rung.slots]
        waiting = sum(slot.waits for slot in found)
        return f"{len(found)}, {waiting} open" if waiting else str(len(found))

    @property
    def with_you(self) -> str:
        """How long the server waited for answers, so far."""
        total = 0.0
        for turn in self.call.rounds:
            asked, sent = self._at(turn.reply_seq), self._at(turn.retry_seq)
            until = sent if sent is not None else (self.call.ended_at or self.session.wall())
            total += 0.0 if asked is None else max(0.0, until - asked)
        return format.duration(total * 1000)

    @property
    def with_server(self) -> str:
        """How long Parley waited for the server."""
        spans = [ms for leg in self.call.legs if (ms := _between(self.session, leg)) is not None]
        return format.duration(sum(spans)) if spans else "…"

    @property
    def echoed(self) -> tuple[str, str]:
        """What became of the server's state: in words, and whether that is as it must be (`ok`), broken on purpose
        (`mk`), or neither."""
        echoes = [turn.echo for turn in self.call.rounds if turn.echo is not None]
        broken = [str(turn.number) for turn in self.call.rounds if turn.echo in ("dropped", "older", "changed")]
        if broken:
            return f"broken on purpose in round {', '.join(broken)}", "mk"
        same = echoes.count("same")
        if same:
            return f"echoed unchanged, {_TIMES.get(same, f'{same} times')}", "ok"
        return ("none given" if not any(turn.has_state for turn in self.call.rounds) else "not sent back yet"), ""

    def _at(self, seq: int | None) -> float | None:
        message = None if seq is None else self.session.messages.get(seq)
        return None if message is None else message.at


def _between(session: Workspace, leg: Leg | None) -> float | None:
    if leg is None or leg.request_seq is None or leg.reply_seq is None:
        return None
    sent, came = session.messages.get(leg.request_seq), session.messages.get(leg.reply_seq)
    return None if sent is None or came is None else max(0.0, (came.at - sent.at) * 1000)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return format.gist(value, 300)
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return format.gist(", ".join(value), 300)
    return format.gist(jsontext.dump(value).decode(errors="replace"), 300)
