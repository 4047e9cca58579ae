"""What only PostgreSQL has: tables made in one step or by every migration alike, two versions side by side, a store
that is gone and comes back. With `--store postgres`, in `make test-team`."""

import logging
import time
from pathlib import Path
from typing import Any

import anyio
import psutil
import psycopg
import pytest
from sqlalchemy import create_engine, insert, text
from sqlalchemy.pool import NullPool

from app import bounds
from app.store import Store, engine, postgres, sqlite
from app.store.bodies import Adding, Unwritable
from app.store.people import NotSaved, People
from app.store.shared import SharedDatabase
from app.store.shared_bodies import SharedBodies
from app.store.tables import revisions
from tests.conftest import Clock
from tests.postgres import Postgres

pytestmark = pytest.mark.of_postgres
HOUR = 3600.0


def columns(url: str) -> list[Any]:
    query = """SELECT table_name, column_name, data_type, is_nullable, column_default IS NOT NULL
        FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2"""
    keys = """SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY indexname"""
    with psycopg.connect(url) as connection:
        schema = connection.execute("SELECT current_schema()").fetchone()[0]  # type: ignore[index]
        found = connection.execute(keys.encode()).fetchall()
        return [connection.execute(query.encode()).fetchall(), [one[0].replace(f"{schema}.", "") for one in found]]


def opened(url: str, clock: Clock) -> People:
    return People(Store(Path("/nowhere"), url=url).database, clock.wall, login_seconds=12 * HOUR, idle_seconds=2 * HOUR)


async def test_every_migration_in_turn_makes_the_tables_that_are_made_at_once(server: Postgres):
    at_once, in_turn = server.database(), server.database()
    postgres.bring_up(postgres.address(at_once))
    made = create_engine(postgres.address(in_turn), poolclass=NullPool)
    with made.begin() as connection:
        engine.migrate(connection)
    assert columns(in_turn) == columns(at_once)
    postgres.bring_up(postgres.address(at_once))  # and again it changes nothing
    assert columns(in_turn) == columns(at_once)


async def test_replicas_that_start_at_the_same_moment_wait_for_each_other(server: Postgres, clock: Clock):
    url = server.database()
    many = [opened(url, clock) for _ in range(3)]
    async with anyio.create_task_group() as group:
        for one in many:
            group.start_soon(one.open)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)
    for one in many:
        await one._database.close()


@pytest.mark.requirement("T27")
async def test_a_newer_version_that_only_added_leaves_the_older_one_at_work(server: Postgres, clock: Clock):
    """Half of the replicas are replaced: those of this version meet tables of the next."""
    url = server.database()
    people = opened(url, clock)
    await people.open()
    code, _ = await people.invite("Grace", "admin", "test", HOUR)
    with create_engine(postgres.address(url), poolclass=NullPool).begin() as later:
        later.execute(text("ALTER TABLE people ADD COLUMN team TEXT NOT NULL DEFAULT ''"))
        later.execute(text("ALTER TABLE logins ADD COLUMN device TEXT"))
        later.execute(revisions.update().values(version_num=f"{sqlite.VERSION + 1:04d}"))
    await people.enter(code, "Firefox")
    again = opened(url, clock)
    await again.open()
    assert [one.name for one in again.all()] == ["Grace"], "one that starts now reads and writes as well"
    with create_engine(postgres.address(url), poolclass=NullPool).begin() as later:
        later.execute(text("UPDATE forms SET needs = :needs"), {"needs": sqlite.VERSION + 1})
    refused = opened(url, clock)
    with pytest.raises(NotSaved, match="form that this version of Parley does not know"):
        await refused.open()
    for one in (people, again, refused):
        await one._database.close()


async def test_texts_that_postgresql_cannot_hold_cost_a_character_and_not_the_store(server: Postgres, clock: Clock):
    people = opened(server.database(), clock)
    await people.open()
    person = await people.known_as("proxy", "a\0b\ud800", "Odd name", "user")
    again = People(people._database, clock.wall, login_seconds=HOUR, idle_seconds=HOUR)
    await again.open()
    assert [one.id for one in again.all()] == [person.id] and not people._database.trouble
    await people._database.close()


@pytest.mark.requirement("F26")
async def test_a_store_that_is_gone_is_said_at_once_and_found_again(clock: Clock, caplog: pytest.LogCaptureFixture):
    server = Postgres()
    try:
        url = server.database().replace("parley@", "parley:s3cret-canary@")
        people = opened(url, clock)
        await people.open()
        code, _ = await people.invite("Grace", "admin", "test", HOUR)
        _, _, secret = await people.enter(code, "")
        bodies = SharedBodies(url)
        body = bodies.create("rec-1")
        body.append(b"one\n")
        server.stop()
        with caplog.at_level(logging.INFO), pytest.raises(NotSaved, match="does not answer") as told:
            await people.invite("Ada", "user", "test", HOUR)
        assert "canary" not in caplog.text + str(told.value)
        assert people.by_login(secret) is not None, "who is in stays in"
        with anyio.fail_after(2):  # nobody waits for it again within a second
            with pytest.raises(NotSaved):
                await people.invite("Ada", "user", "test", HOUR)
        body.append(b"two\n")
        body.append(b"three\n")
        assert (body.behind, body.size) == (10, 14)
        body.sync()
        assert body.behind == 10, "it goes on waiting"
        server.start()
        database = people._database
        assert isinstance(database, SharedDatabase)
        database._again = bodies._not_before = 0.0
        await people.invite("Ada", "user", "test", HOUR)
        assert not database.trouble
        body.append(b"four\n")
        assert bodies.open("rec-1").read(0, 99) == b"one\ntwo\nthree\nfour\n" and body.behind == 0
        bodies.close()
        await database.close()
    finally:
        server.remove()


async def test_a_commit_that_nobody_heard_of_is_not_written_twice(server: Postgres):
    url = server.database()
    postgres.bring_up(postgres.address(url))
    bodies = SharedBodies(url)
    body = bodies.create("rec-1")
    body.append(b"one\n")
    body._waiting += b"two\n"  # and it came to its end, but the answer was lost
    body._certain = None
    with create_engine(postgres.address(url), poolclass=NullPool).begin() as other:
        from app.store.tables import recording_chunks

        other.execute(insert(recording_chunks).values(recording="rec-1", start=4, data=b"two\n"))
    body.append(b"three\n")
    assert bodies.open("rec-1").read(0, 99) == b"one\ntwo\nthree\n" and body.size == 14
    bodies.close()


async def test_what_several_recordings_have_is_one_transaction_and_none_is_lost_with_the_store():
    server = Postgres()
    try:
        url = server.database()
        postgres.bring_up(postgres.address(url))
        bodies = SharedBodies(url)
        many = [bodies.create(f"rec-{number}") for number in range(5)]

        def add(word: bytes) -> list[Unwritable | None]:
            adding = Adding([(body, b"%s %d\n" % (word, at)) for at, body in enumerate(many)])
            bodies.add(adding)
            return adding.done

        assert add(b"one") == [None] * 5
        with psycopg.connect(url) as connection:
            told = connection.execute("SELECT count(*), count(DISTINCT xmin::text) FROM recording_chunks").fetchone()
        assert told == (5, 1)
        server.stop()
        assert add(b"two") == add(b"three") == [None] * 5
        assert [body.behind for body in many] == [len(b"two 0\nthree 0\n")] * 5
        began = time.monotonic()
        for _ in range(100):
            bodies.add(Adding([(body, b"") for body in many]))
        assert time.monotonic() - began < 10, "who asks again at once is told so without another try"
        server.start()
        bodies._not_before = 0.0
        assert add(b"four") == [None] * 5
        for at in range(5):
            read = bodies.open(f"rec-{at}").read(0, 999)
            assert read == b"".join(b"%s %d\n" % (word, at) for word in (b"one", b"two", b"three", b"four"))
        assert not any(body.behind for body in many)
        bodies.close()
    finally:
        server.remove()


async def test_a_store_that_hangs_holds_nobody_up_and_gets_everything_later(monkeypatch: pytest.MonkeyPatch):
    server = Postgres()
    try:
        url = server.database()
        postgres.bring_up(postgres.address(url))
        monkeypatch.setattr(bounds, "RECORDING_KEEP_SECONDS", 0.5)
        store = Store(Path("/nowhere"), url=url)
        bodies = SharedBodies(url)
        monkeypatch.setattr(store.recordings, "_bodies", bodies)
        one, two = bodies.create("rec-1"), bodies.create("rec-2")
        assert await store.recordings.add([(one, b"a\n"), (two, b"b\n")]) == [None, None]
        (main,) = [one for one in psutil.process_iter(["cmdline"]) if str(server.data) in (one.info["cmdline"] or [])]
        hung = [main, *main.children()]
        for process in hung:
            process.suspend()
        try:
            with anyio.fail_after(20):
                for _ in range(3):
                    assert await store.recordings.add([(one, b"c\n"), (two, b"d\n")]) == [None, None]
        finally:
            for process in hung:
                process.resume()
        with anyio.fail_after(30):
            while one.behind or two.behind:
                bodies._not_before = 0.0
                await store.recordings.add([(one, b""), (two, b"")])
        assert bodies.open("rec-1").read(0, 99) == b"a\n" + b"c\n" * 3
        assert bodies.open("rec-2").read(0, 99) == b"b\n" + b"d\n" * 3
        bodies.close()
        await store.database.close()
    finally:
        server.remove()


async def test_a_store_that_another_one_takes_over_from_and_that_has_less_leaves_no_hole(server: Postgres):
    url = server.database()
    postgres.bring_up(postgres.address(url))
    bodies = SharedBodies(url)
    body = bodies.create("rec-1")
    body.append(b"one\n")
    body.append(b"two\n")
    with psycopg.connect(url) as connection:  # the one that answers now never heard of the last
        connection.execute("DELETE FROM recording_chunks WHERE start = 4")
    for connection in bodies._connections._idle:
        connection.close()
    bodies.lost += 1
    body.append(b"three\n")
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT start, data FROM recording_chunks ORDER BY start").fetchall()
    assert rows == [(0, b"one\n"), (4, b"three\n")]
    bodies.close()


def test_an_address_is_never_shown(clock: Clock):
    url = postgres.address("postgresql://parley:canary@db.internal/parley?sslmode=require")
    assert "canary" not in repr(url) + postgres.shown(url) and postgres.shown(url) == "PostgreSQL at db.internal"
    for wrong in ("mysql://parley:canary@x/y", "postgresql://parley:canary@x", "canary"):
        with pytest.raises(postgres.BadAddress) as told:
            postgres.address(wrong)
        assert "canary" not in str(told.value)
