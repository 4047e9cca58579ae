"""The two verbs of a team on the command line: `parley team` serves, `parley invite` makes a way in.

Sentences and exit codes are those of the rest of the command line, which hands over what says them. Imported when one
of the two is typed, and by nothing else.
"""

from __future__ import annotations

import argparse
import os
import re
import tomllib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from logging import Formatter

    from app.core.catalogue import Role
    from app.isolation import Isolation
    from app.store.people import People
    from app.store.replicas import Replicas
    from app.team_settings import TeamSettings

Say = Callable[[str], bool]
Words = Callable[..., str]
VERBS = ("team", "invite", "drain")


class Stop(Exception):
    """It ends here: one sentence, and the exit code."""

    def __init__(self, sentence: str, code: int = 2) -> None:
        super().__init__(sentence)
        self.code = code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Stop(f"{message[:200]}; see {self.prog} --help")


def run(argv: Sequence[str], say: Say, complain: Callable[[str], None], words: Words) -> int:
    """Do what the first word says; the exit code."""
    try:
        _run(argv, say, words)
    except Stop as stop:
        complain(str(stop))
        return stop.code
    return 0


def _run(argv: Sequence[str], say: Say, words: Words) -> None:
    arguments = _arguments(argv)
    settings = read_settings(arguments.config, words)
    if getattr(arguments, "replica", None):
        settings = settings.model_copy(update={"replica": arguments.replica})
    if arguments.verb == "drain":
        _drain(settings, arguments.name, say)
        return
    if arguments.verb == "invite":
        _invite(settings, arguments.name, arguments.role, say)
        return
    found = _walls(settings)
    for line in found.lines:
        say(f"{'on     ' if line.state == 'on' else 'MISSING'}  {line.name}: {line.words}")
    for name, why in _cannot(settings, found):
        say(f"CANNOT START  {name}: {why}")
    _refuse_without_walls(settings, found)
    if arguments.check:
        say(f"The settings are safe; people would find Parley at {settings.origin}")
        return
    _serve(settings, found, say)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog="parley", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=_Parser)
    team = verbs.add_parser("team", allow_abbrev=False, help="serve Parley for a team, behind a proxy")
    team.add_argument("--check", action="store_true", help="look at the settings and this machine, and serve nothing")
    invite = verbs.add_parser("invite", allow_abbrev=False, help="print a link that lets one person in once")
    invite.add_argument("name", metavar="NAME", help="the name by which the team will know them")
    invite.add_argument("--role", choices=("viewer", "user", "admin"), default="user", help="what they may do (user)")
    team.add_argument(
        "--replica", type=_replica, metavar="NAME", help="what this process is called (r0), among several"
    )
    drain = verbs.add_parser("drain", allow_abbrev=False, help="let a replica take in nobody, and end when it is empty")
    drain.add_argument("name", type=_replica, metavar="NAME", help="the replica, like r1")
    for one in (team, invite, drain):
        one.add_argument("--config", type=Path, metavar="FILE", help="the settings of the team, in TOML")
    return parser.parse_args(list(argv))


def _replica(text: str) -> str:
    if not re.fullmatch("r[0-9]{1,4}", text):
        raise argparse.ArgumentTypeError("a replica is called r0, r1 and so on")
    return text


# ------------------------------------------------------------------------------------------------------------ settings


def read_settings(file: Path | None, words: Words) -> TeamSettings:
    """The settings of a team, safe to start with. Raises Stop."""
    from pydantic import ValidationError

    from app.team_settings import TeamSettings, Unsafe, check

    given = file or (Path(os.environ["PARLEY_CONFIG"]) if os.environ.get("PARLEY_CONFIG") else None)
    if given is None:
        raise Stop("a team has its settings in a file; name it with --config team.toml")
    try:
        tables: dict[str, Any] = tomllib.loads(given.read_text(encoding="utf-8"))
    except OSError as fault:
        raise Stop(f"the config file {given} cannot be read: {fault.strerror}", 1) from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise Stop(f"the config file {given} is not TOML: {fault}", 1) from fault
    try:
        settings = TeamSettings.model_validate(tables)
        check(settings, os.environ)
    except ValidationError as fault:
        raise Stop(words(fault, lambda key: f"{key or 'a setting'} in {given}")) from fault
    except Unsafe as fault:
        raise Stop(str(fault)) from fault
    return settings


def _walls(settings: TeamSettings) -> Isolation:
    from app import isolation

    try:
        return isolation.look(settings.child_user)
    except isolation.CannotConfine as fault:
        raise Stop(str(fault)) from fault


def _cannot(settings: TeamSettings, found: Isolation) -> list[tuple[str, str]]:
    """Servers of the settings file that would not start, each with why. They stop nothing else."""
    from app.protocol.links.confined import cannot_start

    said = [(one.name or one.id, cannot_start(one, found)) for one in settings.entries]
    return [(name, why) for name, why in said if why]


def _refuse_without_walls(settings: TeamSettings, found: Isolation) -> None:
    from app.team_settings import Unsafe, check_isolation

    try:
        check_isolation(settings, found)
    except Unsafe as fault:
        raise Stop(str(fault)) from fault


# --------------------------------------------------------------------------------------------------------------- serve


def _serve(settings: TeamSettings, walls: Isolation, say: Say) -> None:
    """Serve until a signal. The first start makes the admin's way in."""
    from app import garbage, isolation, server
    from app.core.errors import ParleyError
    from app.web.team.app import create_team_app
    from app.web.team.house import House

    # Secrets of people are in this memory: no child of the same user looks into it.
    isolation.hide_process()
    _wait_for_name(settings, say)
    try:
        sockets = server.bind(settings.process())
    except server.CannotListen as fault:
        raise Stop(str(fault), 1) from fault
    settings = settings.model_copy(update={"port": sockets[0].getsockname()[1]})
    _free(settings.metrics_port)
    server.set_up_log(settings.limits, _formatter(settings))
    house = House(settings, walls)
    try:
        application = create_team_app(house)
    except ParleyError as fault:
        raise Stop(fault.message.rstrip("."), 1) from fault

    async def listening() -> None:
        try:
            if settings.door == "invitation" and not house.people.has_admin:
                say(await invited(house.people, settings, "admin", "admin", "the first start"))
        except ParleyError as fault:
            say(fault.message)
        where = f"behind the proxy on {settings.host} port {settings.port}"
        say(f"Parley for a team is at {settings.origin}, {where}, as {settings.replica}")
        garbage.begin()

    parley = server.Server(application, settings.process(), listening)
    parley.run(sockets)
    if parley.broken or not parley.started:
        raise Stop("it broke inside and had to stop; the log above has the reason", 1)


def _formatter(settings: TeamSettings) -> Formatter | None:
    if settings.log == "text":
        return None
    from app.team_log import JsonLines

    return JsonLines()


def _free(port: int) -> None:
    """Raise Stop when the port of the figures is taken: found out before anything is begun."""
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as fault:
            raise Stop(f"metrics_port = {port} cannot be had: {fault.strerror}", 1) from fault


def _wait_for_name(settings: TeamSettings, say: Say) -> None:
    """One process has a name at a time. One that was killed keeps it until its lease is over; nothing listens here
    meanwhile, so that the proxy asks another replica."""
    url = settings.process().store_url
    if url is None:
        return
    import anyio

    from app.web.team.replica import until_free

    async def free() -> bool:
        async with _store_of(settings) as replicas:
            return await until_free(replicas, say)

    if not anyio.run(free):
        raise Stop(f"{settings.replica} is being served by another process; give this one another name by --replica", 1)


@asynccontextmanager
async def _store_of(settings: TeamSettings) -> AsyncIterator[Replicas]:
    """The replicas of the team, for a moment."""
    import time

    from app.store import Store
    from app.store.replicas import Replicas

    database = Store(settings.data_dir, url=settings.process().store_url or "").database
    try:
        yield Replicas(database, settings.replica, "", "", time.time)
    finally:
        await database.close()


def _drain(settings: TeamSettings, name: str, say: Say) -> None:
    """Ask a replica to take in nobody, by the store that they share."""
    import anyio

    from app.core.errors import ParleyError

    async def ask() -> bool:
        async with _store_of(settings) as replicas:
            return await replicas.want(name, "drain")

    try:
        if not anyio.run(ask):
            raise Stop(f"there is no replica {name} that runs", 1)
    except ParleyError as fault:
        raise Stop(fault.message.rstrip("."), 1) from fault
    minutes = f"{settings.drain_minutes:g} minutes"
    say(f"{name} opens no session any more, and ends when it has none, at the latest in {minutes}")


# --------------------------------------------------------------------------------------------------------- invitations


def link(settings: TeamSettings, code: str) -> str:
    """Where an invitation is used. Opening it shows who is invited; a button there uses it up."""
    return f"{settings.origin}/invite/{code}"


async def invited(people: People, settings: TeamSettings, name: str, role: Role, by: str) -> str:
    """A new invitation, as a sentence with its link. Raises ParleyError."""
    code, made = await people.invite(name, role, by, settings.invitation_hours * 3600)
    hours = f"{settings.invitation_hours:g} hours"
    return f"Invitation for {made.name} ({made.role}), works once and for {hours}: {link(settings, code)}"


def _invite(settings: TeamSettings, name: str, role: Role, say: Say) -> None:
    if settings.door != "invitation":
        raise Stop(f'people come in by door = "{settings.door}" here, and need no invitation')
    import anyio

    from app.core.errors import ParleyError
    from app.store import Store
    from app.store.audit import Audit
    from app.store.people import People

    async def make() -> str:
        import time

        database = Store(settings.data_dir, url=settings.process().store_url or "").database
        people = People(database, time.time, login_seconds=1, idle_seconds=1)
        audit = Audit(database, time.time)
        try:
            await people.open()
            sentence = await invited(people, settings, name, role, "the command line")
            audit.note("", "the command line", "invited", f"{name} as {role}")
            await audit.flush()
            return sentence
        finally:
            await database.close()

    try:
        sentence = anyio.run(make)
    except ParleyError as fault:
        raise Stop(fault.message.rstrip("."), 1) from fault
    if not say(sentence):
        raise Stop("the invitation cannot be shown, because nothing reads the standard output", 1)
