"""What is known about the one link of a session, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from app.core.errors import Trouble
from app.core.json import Json
from app.core.revisions import HANDSHAKE, STATELESS, Era, Wire

ConnectionState = Literal["none", "connecting", "ready", "lost", "closed"]
Side = Literal["us", "them", "parley"]
EraFrom = Literal["options", "target", "memory", "probe"]
"""How the era of a connection came about: by an option, by the kind of target, remembered, or found out."""


@dataclass(slots=True, frozen=True)
class Step:
    """One step of how a connection came about, for the overview."""

    after_ms: float
    text: str
    side: Side = "parley"
    seq: int | None = None
    code: str | None = None
    """A wire name shown in mono before the text."""
    start: int = 0
    """Which start of the server it belongs to, from 1 on; 0 before the first."""
    expected: bool = False
    """A refusal of our version check, as every older server gives one."""


_NEEDS = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "resources/subscribe": "resources",
    "resources/unsubscribe": "resources",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "completion/complete": "completions",
    "logging/setLevel": "logging",
    "tasks/list": "tasks",
    "tasks/get": "tasks",
    "tasks/result": "tasks",
    "tasks/cancel": "tasks",
}
"""Which capability a server must have declared before a method is used (R5-04)."""


@dataclass(slots=True)
class ConnectionInfo:
    """What is known about the one link of a session. Survives the link, so that a lost one can be explained."""

    state: ConnectionState = "none"
    number: int = 0
    """Counts the connections of this session."""
    era: Era | None = None
    era_from: EraFrom | None = None
    protocol_version: str | None = None
    server_info: Json = None
    server_capabilities: Json = None
    client_capabilities: Json = None
    instructions: str | None = None
    pid: int | None = None
    began_at: float | None = None
    ready_at: float | None = None
    ended_at: float | None = None
    connect_ms: float | None = None
    deadline_at: float | None = None
    """While connecting: when the time limit of the handshake strikes."""
    waits: float | None = None
    """While connecting: how long the server may take from the last step on, in seconds."""
    transport: str | None = None
    """What carries it in the end: a target of `http` may turn out to speak the older `sse`."""
    moved_to: str | None = None
    """The address that the connection uses, where the server redirected from that of the target; as it is, unmasked."""
    stream: str | None = None
    """What became of the stream on which an HTTP server speaks unasked, in words."""
    steps: list[Step] = field(default_factory=list)
    starts: int = 0
    """How often the server was started or dialled for this connection."""
    trouble: Trouble | None = None
    renewed: str | None = None
    """Why Parley began this connection by itself: the server had forgotten the session of the one before (R5-45)."""

    @property
    def calls_itself(self) -> str:
        """The name that the server gives itself; "" when it gave none."""
        named = self.server_info if isinstance(self.server_info, dict) else {}
        said = [named[key] for key in ("title", "name") if isinstance(named.get(key), str) and named[key].strip()]
        return said[0] if said else ""

    @property
    def earlier_steps(self) -> list[Step]:
        """Those of starts that ended in the version check, where the last start is the one that counts."""
        return [one for one in self.steps if one.start < self.starts] if self.restarted else []

    @property
    def last_steps(self) -> list[Step]:
        """Those of the start that counts."""
        return [one for one in self.steps if one.start >= self.starts] if self.restarted else self.steps

    @property
    def restarted(self) -> bool:
        """Whether a process was started a second time."""
        return self.starts > 1 and self.transport == "stdio"

    @property
    def wire(self) -> Wire:
        """What the agreed revision has; before one is agreed, what the older ones have."""
        return STATELESS if self.era == STATELESS.era else HANDSHAKE

    def offers(self, capability: str) -> bool:
        """Whether the server declared a capability (R5-04)."""
        return isinstance(self.server_capabilities, dict) and isinstance(self.server_capabilities.get(capability), dict)

    def undeclared(self, method: str) -> str | None:
        """The capability that a method needs and the server did not declare, if that is so (R5-04)."""
        needed = _NEEDS.get(method)
        return None if needed is None or self.offers(needed) else needed

    def declares(self, capability: str, member: str) -> bool:
        """Whether the server declared one member of a capability, like `resources.subscribe`."""
        given = self.server_capabilities.get(capability) if isinstance(self.server_capabilities, dict) else None
        return isinstance(given, dict) and given.get(member) is True
