"""Links of a team: a child is an entry of the catalogue, started behind the walls of this machine, or nothing.

This is the last place before a process begins, so it decides by itself, whatever a page let through: what names no
entry is refused here too (S25). Imported by team mode alone.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from app import isolation
from app import team_bounds as bounds
from app.core.catalogue import Catalogue, Entry
from app.core.errors import Trouble
from app.core.log import MessageLog
from app.core.targets import AnyTarget, HttpTarget, StdioTarget
from app.egress import Egress
from app.process import Start
from app.protocol.links import Opener, open_http
from app.protocol.links.base import Link, LinkError, LinkHost
from app.protocol.links.stdio import demo_command, open_stdio, start_trouble
from app.reach import closed_to
from app.settings import Limits

Secret = Callable[[str, str], str | None]
"""What an admin keeps for a variable of an entry; None when there is nothing."""


def _none(entry: str, name: str) -> str | None:
    return None


def opener(catalogue: Callable[[], Catalogue], walls: isolation.Isolation, secret: Secret = _none) -> Opener:
    """Opens links by the catalogue as it is at that moment."""

    def open_link(
        target: AnyTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog
    ) -> AbstractAsyncContextManager[Link]:
        if isinstance(target, HttpTarget):
            return open_http(target, limits, egress, host, log)
        return _open_child(target, catalogue(), walls, limits, host, secret)

    return open_link


@asynccontextmanager
async def _open_child(
    target: AnyTarget, catalogue: Catalogue, walls: isolation.Isolation, limits: Limits, host: LinkHost, secret: Secret
) -> AsyncGenerator[Link, None]:
    entry = catalogue.started_by(target) if isinstance(target, StdioTarget) else None
    if entry is not None and isinstance(target, StdioTarget):
        wanted = await _wanted(entry, target, secret)
    elif not isinstance(target, StdioTarget) and (entry := catalogue.entry_of(target)) is not None:
        wanted = _demo()
    else:
        raise LinkError(Trouble("not-in-catalogue", "This is no server of the catalogue.", "Pick one of its servers."))
    # What an admin wrote is not for whoever uses it: words about it name the entry.
    named = StdioTarget(command=entry.name or entry.id)
    async with _behind(walls, wanted, named) as start, open_stdio(named, limits, host.stderr_line, start) as link:
        yield link


@asynccontextmanager
async def _behind(
    walls: isolation.Isolation, wanted: isolation.Wanted, named: StdioTarget
) -> AsyncGenerator[Start, None]:
    """The walls, put up and taken down in a thread: there are files to make and to remove."""
    around = walls.start(wanted)

    def begin() -> Start:
        if closed_to(walls, wanted):
            words = f"{named.command} cannot be started: the user that servers run as may not read its files."
            advice = "Tell an admin: the page Isolation says which, and what to do."
            raise LinkError(Trouble("not-readable", words, advice))
        return around.__enter__()

    try:
        with anyio.CancelScope(shield=True):
            start = await anyio.to_thread.run_sync(begin)
    except isolation.NoUserLeft as fault:
        raise LinkError(Trouble("full", str(fault))) from None
    except OSError as fault:
        trouble, advice = start_trouble(named, fault), "Tell an admin: its entry has to be put right."
        raise LinkError(Trouble(trouble.kind, trouble.message, advice)) from None
    try:
        yield start
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(around.__exit__, None, None, None)


async def _wanted(entry: Entry, target: StdioTarget, secret: Secret) -> isolation.Wanted:
    admins = {one.name: await _value(entry, one.file) for one in entry.variables if one.file}
    admins |= {one.name: _kept(entry, secret(entry.id, one.name)) for one in entry.variables if one.kept}
    return replace(_bare(entry), env={**entry.env, **target.env, **admins})


def _bare(entry: Entry) -> isolation.Wanted:
    """What an entry starts, without the values that it is given."""
    room = isolation.Room(
        memory_bytes=entry.memory_mib * bounds.MIB,
        processes=entry.processes,
        open_files=entry.open_files,
        file_bytes=entry.file_mib * bounds.MIB,
        cpu_seconds=entry.cpu_seconds,
    )
    return isolation.Wanted(
        entry.command,
        entry.args,
        {},
        entry.cwd or None,
        entry.path or isolation.PATH,
        entry.reads,
        entry.network,
        room,
    )


async def _value(entry: Entry, file: str) -> str:
    try:
        text = await anyio.to_thread.run_sync(Path(file).read_text)
    except (OSError, ValueError):
        raise _lacks(entry, "Tell an admin: its file is missing.") from None
    return text.rstrip("\r\n")


def _kept(entry: Entry, value: str | None) -> str:
    if value is None:
        raise _lacks(entry, "Tell an admin: it has to be typed again in the catalogue.")
    return value


def _lacks(entry: Entry, advice: str) -> LinkError:
    return LinkError(Trouble("secret", f"A value that {entry.name} needs cannot be read.", advice))


def _demo() -> isolation.Wanted:
    program = demo_command()
    reads = dict.fromkeys(filter(None, (sys.prefix, sys.base_prefix, program.cwd)))
    return isolation.Wanted(program.command, program.args, {}, program.cwd, reads=tuple(reads))


def cannot_start(entry: Entry, walls: isolation.Isolation) -> str:
    """Why an entry cannot start on this machine, and what to do, for admins: it names files. Empty when it can, as far
    as that shows without starting it. Blocks."""
    if entry.transport not in ("stdio", "demo"):
        return ""
    wanted = _demo() if entry.transport == "demo" else _bare(entry)
    try:
        closed = closed_to(walls, wanted)
    except OSError as fault:
        return f"{fault.filename or wanted.command}: {fault.strerror or fault}. Install it, or correct the entry."
    if not closed:
        return ""
    what = f"{closed} is not open to the users that servers run as."
    if entry.transport == "demo":
        return f"{what} Install Parley with a Python that everybody may read, such as /usr/bin/python3, in /opt."
    return f"{what} Let everybody read it (chmod o+rX), or move the program, to /opt for example."
