"""H06: the brake of Parley's own log, as a pure filter: what it lets through, what it counts, how much it remembers."""

import logging
import time

import pytest

from app.server import Brake
from app.settings import Limits

pytestmark = pytest.mark.requirement("H06")


def record(name: str, template: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, __file__, 1, template, arguments, None)


@pytest.fixture
def brake() -> Brake:
    made = Brake()
    made.limits = Limits(log_repeats_per_minute=3, log_lines_per_minute=50)
    return made


def test_h06_lines_of_one_template_are_one_kind(brake: Brake, caplog: pytest.LogCaptureFixture):
    assert [brake.filter(record("a", "user %d came", number)) for number in range(1_000)].count(True) == 3
    assert brake.filter(record("a", "user %d left", 1))
    assert brake.filter(record("b", "user %d came", 1))
    brake.tick()
    assert caplog.messages == [], "the minute is not over"
    brake.tick(last=True)
    assert caplog.messages == ["… repeated 997 times: a: user %d came"]
    assert brake.filter(record("a", "user %d came", 1)), "the next minute"


def test_h06_a_minute_ends_by_itself(brake: Brake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    for _ in range(10):
        brake.filter(record("a", "again"))
    later = time.monotonic() + 61
    monkeypatch.setattr("app.server.time.monotonic", lambda: later)
    brake.tick()
    assert caplog.messages == ["… repeated 7 times: a: again"]
    brake.tick()
    assert len(caplog.messages) == 1


def test_h06_a_thousand_kinds_are_bounded_in_lines_and_in_memory(brake: Brake, caplog: pytest.LogCaptureFixture):
    said = [brake.filter(record("a", f"{number} " + "x" * 10_000)) for number in range(1_000)]
    assert said.count(True) == 50
    assert len(brake._kinds) <= Brake.KINDS + 2
    assert max(len(template) for _, template in brake._kinds) <= 200
    brake.tick(last=True)
    assert len(caplog.messages) <= 2, caplog.messages


def test_h06_what_was_started_is_never_held_back(brake: Brake):
    assert all(brake.filter(record("parley.spawn", "session %d starts %r", number, "x")) for number in range(1_000))
