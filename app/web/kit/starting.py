"""Starting and dialling servers for people: every start is logged (R5-73), and a connection that is gone is made again
before a call.

Knows sessions; knows no form and no page.
"""

from __future__ import annotations

import logging

from starlette.requests import Request

from app.core.errors import Conflict
from app.core.options import Options
from app.core.targets import AnyTarget, DemoTarget, StdioTarget
from app.sessions import Identity, Session, SessionRegistry, Workspace

spawns = logging.getLogger("parley.spawn")

_TOOLS_SECONDS = 10.0
"""How long the tools of a new connection are waited for: how a tool may be called is said there."""


def start(
    registry: SessionRegistry,
    session: Session,
    target: AnyTarget,
    options: Options,
    by: Identity,
    *,
    probe: bool = False,
    kept: AnyTarget | None = None,
) -> None:
    """Begin to connect, and note which command was started. Raises Conflict while connected."""
    session.connect(target, options, by=by, probe=probe, kept=kept)
    registry.consent(by, target)
    if isinstance(target, StdioTarget):
        # Arguments and values may be secrets: how many, and the names, are enough to know what ran.
        spawns.info(
            "session %d starts %r with %d arguments, environment %s, in %r, asked by a %s",
            session.number,
            target.shown_argv[0],
            len(target.args),
            sorted(target.env),
            target.cwd or "the directory of Parley",
            by.kind,
        )
    elif isinstance(target, DemoTarget):
        spawns.info("session %d starts the demo server, asked by a %s", session.number, by.kind)


def is_off(session: Workspace) -> bool:
    """Whether there was a connection, and it can be made again."""
    return isinstance(session, Session) and session.info.state in ("lost", "closed") and session.target is not None


async def reconnected(request: Request, session: Workspace) -> bool:
    """Connect to the same server with the same options, and wait for it. Whether it is ready now; its fault says why
    not. Raises Conflict where a person has to look first."""
    registry: SessionRegistry = request.app.state.registry
    identity: Identity = request.state.identity
    if not isinstance(session, Session) or session.target is None:
        raise Conflict("There is no former connection to repeat. Choose a server.")
    if not registry.consented(identity, session.target):
        raise Conflict("This command has to be confirmed before it is started. Reconnect first, then call again.")
    async with registry.remembered.alone():
        start(registry, session, session.target, session.options, identity)
    await session.wait_connection(registry.settings.limits.wait_seconds)
    if session.info.state == "connecting":
        raise Conflict("The server is still starting, and the call was not sent. Call again when it is connected.")
    if session.info.state != "ready":
        return False
    await session.lists.known("tools", _TOOLS_SECONDS)
    return True
