"""Limits that hold for somebody on all replicas together, over the store that these share."""

from pathlib import Path

import pytest
from sqlalchemy import event

from app import team_bounds as bounds
from app.core.rate import SharedRate
from app.store import Store
from app.store.spent import Spent
from app.store.used import Used
from tests.conftest import Clock

pytestmark = pytest.mark.requirement("T20", "T28")


class Replica:
    """One of several: its counts, and the clock that all of them share."""

    def __init__(self, folder: Path, name: str, clock: Clock) -> None:
        self.database, self.clock = Store(folder).database, clock
        self.rates = {kind: SharedRate(5, 60.0, clock.mono) for kind in ("calls", "requests")}
        self.used = Used(self.database, name)

    async def now(self, _: object) -> float:
        return self.clock.wall()

    async def exchange(self, *, sweep: bool = False) -> None:
        assert await self.used.exchange(self.rates, self.now, sweep=sweep)


async def test_calls_on_one_replica_count_on_the_other(tmp_path: Path, clock: Clock):
    one, two = (Replica(tmp_path, name, clock) for name in ("r1", "r2"))
    for _ in range(3):
        assert one.rates["calls"].take("grace") == 0
    await one.exchange()
    assert one.rates["calls"].take("grace") == 0
    await one.exchange()  # a second time tells nothing twice
    await one.exchange()
    await two.exchange()
    calls = two.rates["calls"]
    assert (calls.left("grace"), calls.left("ada"), two.rates["requests"].left("grace")) == (1, 5, 5)
    assert calls.take("grace") == 0 and 55 <= calls.take("grace") <= 65
    await two.exchange()
    await one.exchange()
    assert one.rates["calls"].left("grace") == 0, "its own calls are counted once"
    clock.wall_shift += 70.0
    clock.mono_shift += 70.0
    await two.exchange(sweep=True)
    assert calls.left("grace") == 5
    await one.database.close()
    await two.database.close()


async def test_without_the_store_each_counts_for_itself_and_is_caught_up_with(tmp_path: Path, clock: Clock):
    one, two = Replica(tmp_path, "r1", clock), Replica(tmp_path, "r2", clock)
    await two.exchange()
    gone = Replica(tmp_path, "r1", clock)
    await gone.database.close()
    gone.rates = one.rates
    assert one.rates["calls"].take("grace") == 0
    assert not await gone.used.exchange(gone.rates, gone.now)
    assert len(one.rates["calls"].untold()) == 1 and one.rates["calls"].take("grace") == 0
    await one.exchange()
    await two.exchange()
    assert two.rates["calls"].left("grace") == 3
    await one.database.close()
    await two.database.close()


async def test_a_crowd_of_addresses_neither_fills_the_table_nor_hides_whoever_does_much(tmp_path: Path, clock: Clock):
    """Whoever has many addresses asks once from each: that is told row by row, and no store keeps up with it."""
    one, two = (Replica(tmp_path, name, clock) for name in ("r1", "r2"))
    statements: list[str] = []
    await one.exchange()
    engine = one.database._engine
    assert engine is not None
    event.listen(engine.sync_engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    for number in range(3 * bounds.USED_TOLD):
        assert one.rates["requests"].take(f"from 192.0.2.{number}") == 0
    for _ in range(4):
        assert one.rates["requests"].take("grace") == 0
    for number in range(3):
        assert one.rates["calls"].take(f"person {number}") == 0
    await one.exchange()
    assert len(statements) < 20, "a moment for the store, however many they are"
    assert one.rates["requests"].untold() == [], "what was too much to tell is not told later"
    await two.exchange()
    assert two.rates["requests"].left("grace") == 1
    assert [two.rates["calls"].left(f"person {number}") for number in range(3)] == [4, 4, 4]
    heard = two.rates["requests"]._others
    assert len(heard) == bounds.USED_TOLD
    await one.database.close()
    await two.database.close()


@pytest.mark.requirement("S16")
async def test_what_counts_once_counts_once_for_all_replicas(tmp_path: Path, clock: Clock):
    one, two = (Spent(Store(tmp_path).database, clock.wall) for _ in range(2))
    assert await one.once("state", 600.0)
    assert not await two.once("state", 600.0) and not await one.once("state", 600.0)
    assert await two.once("another", 600.0)
    clock.wall_shift += 1500.0
    assert await two.once("state", 600.0), "long after nobody can come with it any more, it is forgotten"
    for each in (one, two):
        await each._database.close()
