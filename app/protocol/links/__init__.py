"""What carries frames to one server and back: a child process, or HTTP in two kinds. A target says which."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from app.core.log import MessageLog
from app.core.targets import AnyTarget, DemoTarget, HttpTarget
from app.egress import Egress
from app.protocol.links.base import Link, LinkHost
from app.protocol.links.http import open_http
from app.protocol.links.stdio import demo_command, open_stdio
from app.settings import Limits


class Opener(Protocol):
    """Opens links. Another one than `open_link` joins a session to something that is no server: a test, a recording."""

    def __call__(
        self, target: AnyTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog
    ) -> AbstractAsyncContextManager[Link]:
        """The link to a target, as an async context manager. Raises LinkError when it cannot be opened."""
        ...


def open_link(
    target: AnyTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog
) -> AbstractAsyncContextManager[Link]:
    """The link to a target: it is started, or dialled."""
    if isinstance(target, HttpTarget):
        return open_http(target, limits, egress, host, log)
    command = demo_command() if isinstance(target, DemoTarget) else target
    return open_stdio(command, limits, host.stderr_line)
