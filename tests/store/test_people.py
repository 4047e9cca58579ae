"""The people of a team in the file: each way in works as long as it may, and its secret is written nowhere."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from app import team_bounds as bounds
from app.core.errors import Conflict, Gone, Invalid, NotAllowed
from app.core.people import Login, Person
from app.core.targets import StdioTarget
from app.store import FILE, Store
from app.store.people import NotInvited, NotSaved, People
from tests.conftest import Clock
from tests.store.files import asked, on_disk

pytestmark = pytest.mark.requirement("T04")
HOUR = 3600.0


async def opened(folder: Path, clock: Clock) -> People:
    people = People(Store(folder).database, clock.wall, login_seconds=12 * HOUR, idle_seconds=2 * HOUR)
    await people.open()
    return people


@pytest.fixture
async def people(tmp_path: Path, clock: Clock) -> AsyncIterator[People]:
    found = await opened(tmp_path, clock)
    yield found
    await found._database.close()


async def entered(people: People, name: str, role: str = "user") -> tuple[Person, Login, str]:
    code, _ = await people.invite(name, role, "test", HOUR)  # type: ignore[arg-type]
    return await people.enter(code, "Firefox")


async def seen(people: People, login: Login) -> str | None:
    """A browser was used, and the file knows it."""
    secret, tell = people.use(login.id)
    if tell:
        await people.keep(login.id)
    return secret


# ---------------------------------------------------------------------------------------------------------- invitations


async def test_an_invitation_lets_one_in_once_and_is_kept_as_a_digest(people: People, tmp_path: Path):
    code, made = await people.invite(" Grace  Hopper ", "user", "admin", HOUR)
    assert [one.name for one in await people.invitations()] == ["Grace Hopper"]
    person, login, secret = await people.enter(code, "Fire\nfox")
    assert (person.name, person.role, person.door, login.agent) == ("Grace Hopper", "user", "invitation", "Fire fox")
    assert people.by_login(secret) == (person, login)
    with pytest.raises(NotInvited, match="used already"):
        await people.enter(code, "")
    assert await people.invitations() == []
    stored = on_disk(tmp_path)
    assert code.encode() not in stored and secret.encode() not in stored and made.digest.encode() in stored


async def test_of_two_who_come_at_the_same_moment_one_is_let_in(people: People):
    code, _ = await people.invite("Grace", "user", "admin", HOUR)
    came: list[str] = []

    async def come() -> None:
        try:
            came.append((await people.enter(code, ""))[0].name)
        except NotInvited:
            came.append("refused")

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(come)
    assert sorted(came) == ["Grace", *["refused"] * 4]
    assert len(people.all()) == 1


async def test_an_invitation_ends_and_can_be_revoked(people: People, clock: Clock):
    late, _ = await people.invite("Late", "user", "admin", HOUR)
    gone, made = await people.invite("Gone", "user", "admin", 3 * HOUR)
    await people.revoke_invitation(made.digest)
    clock.wall_shift = HOUR + 1
    for code in (late, gone):
        with pytest.raises(NotInvited, match="no longer valid"):
            await people.enter(code, "")
    with pytest.raises(NotInvited, match="not known"):
        await people.enter("something else", "")
    with pytest.raises(Gone):
        await people.revoke_invitation("nothing")
    assert people.all() == []


async def test_another_process_may_invite(people: People, tmp_path: Path, clock: Clock):
    other = await opened(tmp_path, clock)
    code, _ = await other.invite("Grace", "admin", "the command line", HOUR)
    await other._database.close()
    assert (await people.enter(code, ""))[0].role == "admin"


async def test_who_is_there_already_is_let_in_again_as_who_they_are(people: People):
    first, *_ = await entered(people, "Grace")
    again, *_ = await entered(people, "GRACE")
    assert again.id == first.id
    with pytest.raises(Conflict, match="as user"):
        await people.invite("grace", "admin", "admin", HOUR)
    await people.known_as("oidc", "issuer sub", "Ada", "user")
    with pytest.raises(Conflict, match="another door"):
        await people.invite("Ada", "user", "admin", HOUR)
    await entered(people, "boss", "admin")
    await people.switch_off(None, first.id)
    with pytest.raises(Conflict, match="switched off"):
        await people.invite("Grace", "user", "admin", HOUR)


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "a\u202eb", "a\x00b"])
async def test_a_name_is_one_line_that_can_be_read(people: People, name: str):
    with pytest.raises(Invalid):
        await people.invite(name, "user", "admin", HOUR)


# --------------------------------------------------------------------------------------------------------------- logins


async def test_a_login_ends_by_age_by_silence_and_by_signing_out(people: People, clock: Clock):
    _, login, secret = await entered(people, "Grace")
    clock.wall_shift = 1.9 * HOUR
    assert people.by_login(secret) is not None
    clock.wall_shift = 2.1 * HOUR
    assert people.by_login(secret) is None, "nobody used it"
    clock.wall_shift = 0
    for hour in range(1, 12):
        clock.wall_shift = hour * HOUR
        secret = await seen(people, login) or secret
        assert people.by_login(secret) is not None
    clock.wall_shift = 12 * HOUR + 1
    assert people.by_login(secret) is None, "twelve hours are over"
    clock.wall_shift = 0
    _, login, secret = await entered(people, "Grace")
    await people.sign_out(login.id)
    assert people.by_login(secret) is None


async def test_the_secret_of_a_login_is_replaced_while_it_is_used(people: People, clock: Clock, tmp_path: Path):
    person, login, first = await entered(people, "Grace")
    assert await seen(people, login) is None
    clock.wall_shift = bounds.ROTATE_SECONDS + 1
    second = await seen(people, login)
    assert second is not None and second != first
    assert await seen(people, login) is None, "two requests at once get one new secret"
    for secret in (first, second):
        found = people.by_login(secret)
        assert found is not None and found[1].id == login.id
    clock.wall_shift += bounds.ROTATION_GRACE_SECONDS + 1
    assert people.by_login(first) is None
    assert people.by_login(second) is not None
    again = await opened(tmp_path, clock)
    assert (again.by_login(first), again.by_login(second) is not None) == (None, True)
    await again._database.close()
    assert [one.id for one in people.logins(person.id)] == [login.id]


async def test_signing_out_everywhere_ends_every_browser_and_nobody_elses(people: People):
    person, *_ = mine = await entered(people, "Grace")
    more = await people.sign_in(person, "phone")
    _, _, other = await entered(people, "Ada")
    assert set(await people.sign_out_everywhere(person.id)) == {mine[1].id, more[0].id}
    assert people.by_login(mine[2]) is people.by_login(more[1]) is None
    assert people.by_login(other) is not None


async def test_a_person_has_so_many_browsers_and_the_oldest_goes(people: People, clock: Clock):
    person, _, first = await entered(people, "Grace")
    for number in range(bounds.LOGINS_PER_PERSON):
        clock.wall_shift += 1
        await people.sign_in(person, str(number))
    assert len(people.logins(person.id)) == bounds.LOGINS_PER_PERSON
    assert people.by_login(first) is None


# --------------------------------------------------------------------------------------------------------------- tokens


async def test_a_token_is_shown_once_ends_and_can_be_revoked(people: People, clock: Clock, tmp_path: Path):
    person, *_ = await entered(people, "Grace")
    other, *_ = await entered(people, "Ada")
    text, token = await people.make_token(person.id, "CI", "read", 1)
    assert text.startswith("parley_")
    found = people.by_token(text)
    assert found is not None and (found[0].id, found[1].scope) == (person.id, "read")
    assert text.encode() not in on_disk(tmp_path)
    with pytest.raises(Gone):
        await people.revoke_token(other.id, token.id)
    assert people.use_token(token.id) and not people.use_token(token.id)
    await people.keep(token.id)
    assert people.tokens(person.id)[0].seen > 0
    clock.wall_shift = 86_401
    assert (people.by_token(text), people.tokens(person.id)) == (None, [])
    clock.wall_shift = 0
    await people.revoke_token(person.id, token.id)
    assert people.by_token(text) is None
    for days in (0, -1, 367, float("nan")):
        with pytest.raises(Invalid):
            await people.make_token(person.id, "x", "act", days)


# --------------------------------------------------------------------------------------------------------------- admins


async def test_switching_somebody_off_ends_all_that_let_them_in(people: People, tmp_path: Path, clock: Clock):
    await entered(people, "boss", "admin")
    person, _, secret = await entered(people, "Grace")
    text, _ = await people.make_token(person.id, "CI", "act", 30)
    code, _ = await people.invite("Grace", "user", "boss", HOUR)
    await people.switch_off(None, person.id)
    assert (people.by_login(secret), people.by_token(text)) == (None, None)
    with pytest.raises(NotInvited, match="switched off"):
        await people.enter(code, "")
    again = await opened(tmp_path, clock)
    assert (again.by_login(secret), again.by_token(text)) == (None, None)
    await again._database.close()
    await people.switch_on(person.id)
    assert people.by_login(secret) is None
    assert people.by_token(text) is not None


async def test_the_last_admin_stays_and_nobody_takes_their_own_rights(people: People):
    boss, *_ = await entered(people, "boss", "admin")
    assert people.has_admin
    with pytest.raises(NotAllowed, match="only admin"):
        await people.switch_off(None, boss.id)
    with pytest.raises(NotAllowed, match="only admin"):
        await people.change_role(None, boss.id, "user")
    second, *_ = await entered(people, "second", "admin")
    with pytest.raises(NotAllowed, match="own rights"):
        await people.change_role(second, second.id, "viewer")
    assert (await people.change_role(second, boss.id, "viewer")).role == "viewer"
    with pytest.raises(NotAllowed, match="only admin"):
        await people.switch_off(boss, second.id)
    with pytest.raises(Gone):
        await people.switch_on("nobody")


# ------------------------------------------------------------------------------------------------------------- the file


async def test_everybody_is_there_after_a_restart(people: People, tmp_path: Path, clock: Clock):
    person, _, secret = await entered(people, "Grace")
    text, _ = await people.make_token(person.id, "CI", "act", 30)
    again = await opened(tmp_path, clock)
    found, by_token = again.by_login(secret), again.by_token(text)
    assert found is not None and by_token is not None
    assert (found[0].name, by_token[1].name, again.all()) == ("Grace", "CI", people.all())
    await again._database.close()


async def test_what_cannot_be_written_did_not_happen(tmp_path: Path, clock: Clock):
    people = People(Store(None).database, clock.wall, login_seconds=HOUR, idle_seconds=HOUR)
    with pytest.raises(NotSaved, match="no data directory"):
        await people.open()
    with pytest.raises(NotSaved):
        await people.known_as("proxy", "grace", "Grace", "user")
    assert people.all() == []


async def test_a_file_of_before_gets_the_tables(tmp_path: Path, clock: Clock):
    store = Store(tmp_path)
    await store.learn("local", StdioTarget(command="x"), "modern")
    await store.close()
    people = await opened(tmp_path, clock)
    await people._database.close()
    assert asked(tmp_path / FILE, "SELECT count(*) FROM people") == [(0,)]


async def test_what_is_noted_of_somebody_meanwhile_undoes_no_change_of_an_admin(people: People, clock: Clock):
    # Each change was made of what there was before the other one was written, and so took it back.
    boss, _, _ = await entered(people, "boss", "admin")
    guest, _, _ = await entered(people, "guest")
    text, token = await people.make_token(guest.id, "script", "act", 1)
    clock.wall_shift += bounds.SEEN_SECONDS + 1
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(people.switch_off, boss, guest.id)
        tasks.start_soon(people.was_here, guest)
        tasks.start_soon(people.change_role, boss, guest.id, "viewer")
    off = people.find(guest.id)
    assert off is not None and off.off is not None and off.role == "viewer"
    assert people.by_token(text) is None and not people.lets_in(guest.id, token.id)

    # Two admins who take each other's rights at the same moment: one of them stays.
    other, _, _ = await entered(people, "other", "admin")
    done: list[str] = []

    async def demote(by: Person, whom: Person) -> None:
        try:
            await people.change_role(by, whom.id, "user")
            done.append(whom.name)
        except NotAllowed:
            pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(demote, boss, other)
        tasks.start_soon(demote, other, boss)
    assert people.has_admin and len(done) == 1


async def test_whoever_comes_twice_at_the_same_moment_is_one_person(people: People):
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(people.known_as, "oidc", "issuer sub", "Ada", "user")
    assert [one.name for one in people.all()] == ["Ada"]
    codes = [(await people.invite("Grace", "user", "test", HOUR))[0] for _ in range(2)]
    async with anyio.create_task_group() as tasks:
        for code in codes:
            tasks.start_soon(people.enter, code, "Firefox")
    assert [one.name for one in people.all()] == ["Ada", "Grace"]


async def test_two_replicas_change_somebody_and_neither_undoes_the_other(people: People, tmp_path: Path, clock: Clock):
    boss, grace = (await entered(people, "Boss", "admin"))[0], (await entered(people, "Grace"))[0]
    other = await opened(tmp_path, clock)  # what it knows is as old as this
    await people.change_role(boss, grace.id, "viewer")
    await other.switch_off(boss, grace.id)
    await people.decided(grace, "user")
    there = await opened(tmp_path, clock)
    found = there.find(grace.id)
    assert found is not None and (found.role, found.off is None) == ("user", False), "both changes stay"
    assert (await other.switch_on(grace.id)).role == "user", "it writes no role that it happened to know"
    await there._database.close()
    await other._database.close()


async def test_two_replicas_leave_one_admin_and_make_nobody_twice(people: People, tmp_path: Path, clock: Clock):
    admins = [(await entered(people, name, "admin"))[0] for name in ("Ada", "Grace")]
    other = await opened(tmp_path, clock)
    said: list[str] = []

    async def demote(where: People, by: Person, whom: Person) -> None:
        try:
            await where.change_role(by, whom.id, "user")
        except NotAllowed as no:
            said.append(no.message)

    async with anyio.create_task_group() as group:
        group.start_soon(demote, people, admins[0], admins[1])
        group.start_soon(demote, other, admins[1], admins[0])
    assert len(said) == 1 and "the only admin" in said[0]
    codes = [(await people.invite("Linus", "user", "test", HOUR))[0] for _ in range(2)]
    made: list[str] = []

    async def come(where: People, code: str) -> None:
        made.append((await where.enter(code, ""))[0].id)
        made.append((await where.known_as("oidc", "issuer 1", "Ines", "user")).id)

    async with anyio.create_task_group() as group:
        for where, code in zip((people, other), codes, strict=True):
            group.start_soon(come, where, code)
    assert len(made) == 4 and len(set(made)) == 2, "two ways in at the same moment are one person each"
    there = await opened(tmp_path, clock)
    assert sorted(one.name for one in there.all()) == ["Ada", "Grace", "Ines", "Linus"]
    assert sum(one.role == "admin" for one in there.all()) == 1
    await there._database.close()
    await other._database.close()
