"""A tool: what its link, its line in the list, its page and its form show of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from app.core.tasks.running import Support, support_of
from app.sessions.lists import ListName
from app.web.kit import format, json_tree
from app.web.kit.words import text_of
from app.web.lists.item import Item

HEAVY = 64 * 1024
"""A schema or a form with more text than this is handled in a thread."""
_ARGUMENTS = 200
_HINTS = {
    "readOnlyHint": ("only reads", "changes things"),
    "destructiveHint": ("may destroy", "does not destroy"),
    "idempotentHint": ("repeatable", "not repeatable"),
    "openWorldHint": ("reaches outside", "stays inside"),
}


@dataclass(slots=True, frozen=True)
class Argument:
    """One argument of a tool, with its schema."""

    given_name: str
    schema: Any
    required: bool

    @property
    def name(self) -> str:
        long = len(self.given_name) > json_tree.MAX_KEY
        return format.gist(self.given_name, json_tree.MAX_KEY) if long else self.given_name

    @property
    def _said(self) -> dict[str, Any]:
        return self.schema if isinstance(self.schema, dict) else {}

    @property
    def description(self) -> str:
        return text_of(self._said.get("description")) or text_of(self._said.get("title"))

    @property
    def default(self) -> str:
        return format.gist(self._said["default"], 60) if "default" in self._said else ""


@dataclass(frozen=True)
class Tool(Item):
    """One tool of a session."""

    list_name: ClassVar[ListName] = "tools"
    path: ClassVar[str] = "tools"
    kind: ClassVar[str] = "tool"
    heading: ClassVar[str] = "Tools"
    about: ClassVar[str] = "As the server listed them. Names, descriptions and annotations are its words."
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
        return ", ".join(one.name for one in self._arguments(12)) or "no arguments"

    @property
    def hints(self) -> tuple[str, ...]:
        """What the server says about it, in words."""
        given = self._annotations
        return tuple(words[not given[key]] for key, words in _HINTS.items() if isinstance(given.get(key), bool))

    @property
    def task(self) -> str:
        """Whether it runs as a task, in words; "" when it says nothing of that."""
        capable = self.session.client_tasks.capable
        return support_of(self.said, capable).badge if capable.tools_call else ""

    @property
    def notes(self) -> tuple[str, ...]:
        task = self.task
        return (*self.hints, task) if task else self.hints

    @property
    def schema(self) -> Any:
        """What its arguments have to fit."""
        return self.said.get("inputSchema", {"type": "object"})

    @cached_property
    def heavy(self) -> bool:
        """Whether its schema is better handled in a thread."""
        return weighs(self.schema)

    @property
    def arguments(self) -> list[Argument]:
        """The arguments that its schema names; [] when that is no object schema."""
        return self._arguments(_ARGUMENTS)

    def _arguments(self, most: int) -> list[Argument]:
        schema = self.said.get("inputSchema")
        if not isinstance(schema, dict) or not isinstance(properties := schema.get("properties"), dict):
            return []
        wanted = schema.get("required")
        required = {one for one in wanted if isinstance(one, str)} if isinstance(wanted, list) else set()
        return [Argument(name, sub, name in required) for name, sub in islice(properties.items(), most)]

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
