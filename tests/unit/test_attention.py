"""Where somebody waits right now: a request that is answered, a frame that has just come; and no longer than that."""

import json

from app.core.json.text import parse
from app.core.wire import Direction
from app.sessions import Session, SessionRegistry
from app.sessions.attention import MOMENT_SECONDS, YOUNG_SECONDS, Attention
from app.settings import local
from tests.drive import ME


class Hand:
    """A clock that a test turns."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nobody_waits_for_oneself_and_a_moment_passes():
    hand = Hand()
    attention = Attention(hand)
    assert not attention.beside("a")
    attention.moment("a")
    assert attention.beside("b") and not attention.beside("a")
    hand.now += MOMENT_SECONDS
    assert not attention.beside("b")


def test_a_request_counts_while_it_is_young_and_not_while_it_waits_for_something():
    hand = Hand()
    attention = Attention(hand)
    with attention.waiting("a"), attention.waiting(""):
        assert attention.beside("a") and attention.beside("b")
        hand.now += YOUNG_SECONDS
        assert not attention.beside("b"), "it waits for what has not come yet"
        attention.moment("a")
        assert attention.beside("b"), "what it waits for has come"
    hand.now += MOMENT_SECONDS
    assert not attention.beside("b")


def test_one_of_two_requests_that_is_over_leaves_the_other():
    hand = Hand()
    attention = Attention(hand)
    with attention.waiting("a"):
        with attention.waiting("a"):
            pass
        hand.now += MOMENT_SECONDS * 2
        assert attention.beside("b")
    hand.now += MOMENT_SECONDS * 2
    assert not attention.beside("b")


def say(session: Session, direction: Direction, **fields: object) -> None:
    raw = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    message = session.messages.record(direction, raw, parse(raw))
    if direction == "in":
        session.heard(message)


async def test_frames_that_somebody_waits_for_count_and_those_of_a_flood_do_not():
    hand = Hand()
    async with SessionRegistry(local(), mono=hand) as registry:
        here, there = registry.open(ME), registry.open(ME)
        say(there, "out", id=1, method="tools/call")
        assert not here.others_wait(), "the tool takes its time"
        say(there, "in", method="notifications/progress")
        assert here.others_wait() and not there.others_wait(), "it came alone"
        for _ in range(100):
            hand.now += MOMENT_SECONDS / 10
            say(there, "in", method="notifications/progress")
        assert not here.others_wait(), "a flood is not waited for"
        say(there, "in", id=1, result={})
        assert here.others_wait(), "what was asked for has come"
        hand.now += MOMENT_SECONDS
        for _ in range(100):
            hand.now += MOMENT_SECONDS / 10
            say(there, "in", id=1, result={})
        assert not here.others_wait(), "nobody asked for these"
