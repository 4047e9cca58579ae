"""What carries frames to one server and back: a child process, or HTTP in two kinds. A target says which."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import anyio

from app.core.log import MessageLog
from app.core.targets import AnyTarget, DemoTarget, HttpTarget
from app.egress import Egress, EgressError, split
from app.protocol.exchanges import egress_trouble
from app.protocol.links.base import Link, LinkError, LinkHost
from app.protocol.links.http import StreamableLink
from app.protocol.links.legacy_sse import SseLink
from app.protocol.links.stdio import demo_command, open_stdio
from app.settings import Limits


class Opener(Protocol):
    """Opens links. Another one than `open_link` joins a session to something that is no server: a test, a recording."""

    def __call__(
        self, target: AnyTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog
    ) -> AbstractAsyncContextManager[Link]:
        """The link to a target, as an async context manager. Raises LinkError when it cannot be opened."""


def open_link(
    target: AnyTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog
) -> AbstractAsyncContextManager[Link]:
    """The link to a target: it is started, or dialled."""
    if isinstance(target, HttpTarget):
        return open_http(target, limits, egress, host, log)
    command = demo_command() if isinstance(target, DemoTarget) else target
    return open_stdio(command, limits, host.stderr_line)


@asynccontextmanager
async def open_http(
    target: HttpTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog
) -> AsyncGenerator[Link, None]:
    """A link to an HTTP server. Nothing is dialled before the first frame, so this cannot fail on the network."""
    try:
        split(target.url)
    except EgressError as fault:
        raise LinkError(egress_trouble(fault, target.url, target.secret_values)) from None
    link = (SseLink if target.transport == "sse" else StreamableLink)(target, limits, egress, host, log)
    try:
        yield link
    finally:
        link.close()
        with anyio.CancelScope(shield=True):
            try:
                await link.goodbye()
            finally:
                await link.gone()
