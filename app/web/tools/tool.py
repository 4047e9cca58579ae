"""A tool: what its link, its line in the list, its page and its form show of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from app.core.tasks.running import Support, support_of
from app.sessions.lists import ListName
from app.store import SavedRequest
from app.web.kit import format, json_tree
from app.web.kit.words import text_of
from app.web.lists.item import Item

HEAVY = 64 * 1024
"""A schema or a form with more text than this is handled in a thread."""
_NAMED = 12
_HINTS = {
    "readOnlyHint": ("read-only", "not read-only"),
    "destructiveHint": ("destructive", "non-destructive"),
    "idempotentHint": ("idempotent", "not idempotent"),
    "openWorldHint": ("open world", "closed world"),
}


@dataclass(frozen=True)
class Tool(Item):
    """One tool of a session."""

    list_name: ClassVar[ListName] = "tools"
    path: ClassVar[str] = "tools"
    kind: ClassVar[str] = "tool"
    heading: ClassVar[str] = "Tools"
    about: ClassVar[str] = "Names, descriptions and annotations are the server's."
    none: ClassVar[str] = "The server declared `tools` and listed none."
    read_on_sight: ClassVar[bool] = False

    @property
    def _annotations(self) -> dict[str, Any]:
        hints = self.said.get("annotations")
        return hints if isinstance(hints, dict) else {}

    @property
    def title(self) -> str:
        return self.text("title") or text_of(self._annotations.get("title"))

    @property
    def detail(self) -> str:
        """The names of its arguments."""
        schema = self.said.get("inputSchema")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        named = islice(properties, _NAMED) if isinstance(properties, dict) else ()
        short = (format.gist(one, json_tree.MAX_KEY) if len(one) > json_tree.MAX_KEY else one for one in named)
        return ", ".join(short) or "no arguments"

    @property
    def hints(self) -> dict[str, str]:
        """What the server says about it, in words, by the name of the hint."""
        given = self._annotations
        return {key: words[not given[key]] for key, words in _HINTS.items() if isinstance(given.get(key), bool)}

    @property
    def task(self) -> str:
        """Whether it runs as a task, in words; "" when it says nothing of that."""
        capable = self.session.client_tasks.capable
        return support_of(self.said, capable).badge if capable.tools_call else ""

    @property
    def notes(self) -> tuple[str, ...]:
        hints = tuple(self.hints.values())
        return (*hints, self.task) if self.task else hints

    @property
    def schema(self) -> Any:
        """What its arguments have to fit."""
        return self.said.get("inputSchema", {"type": "object"})

    @cached_property
    def heavy(self) -> bool:
        """Whether its schema is better handled in a thread."""
        return weighs(self.schema)

    @property
    def saved(self) -> list[SavedRequest]:
        """The calls of it that somebody saved."""
        return self.session.saved.of("tools/call", self.name)

    @property
    def support(self) -> Support:
        """Whether it may be called as a task, and plainly."""
        return self.session.client_tasks.support(self.name)

    @property
    def speaks_tasks(self) -> bool:
        """Whether there is anything to say about tasks here."""
        return self.session.client_tasks.capable.tools_call or self.support.said in ("required", "optional")


def weighs(value: Any, limit: int = HEAVY) -> bool:
    """Whether a value holds more text than `limit`; stops looking as soon as it knows."""
    total, stack = 0, [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            total += sum(len(key) for key in node) + 4 * len(node)
            stack.extend(node.values())
        elif isinstance(node, list):
            total += 2 * len(node)
            stack.extend(node)
        else:
            total += len(node) if isinstance(node, str) else 4
        if total > limit:
            return True
    return False
