"""A tool as a link with a few words: for the rail, the list, the palette, and the page of the tool itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from app.core.tasks.running import support_of
from app.sessions import Workspace
from app.web.kit import format, json_tree
from app.web.kit.words import text_of
from app.web.lists.keys import keys_of


@dataclass(slots=True, frozen=True)
class ToolLink:
    """One tool in a list: what it calls itself, and where its page is."""

    key: str
    name: str
    title: str
    description: str
    href: str
    notes: tuple[str, ...] = ()
    arguments: str = ""
    task: str = ""
    """Whether it runs as a task, in words; "" when it says nothing of that."""


def tool_link(session: Workspace, key: str, tool: dict[str, Any], *, brief: bool = False) -> ToolLink:
    """One tool of a session as a link."""
    name = text_of(tool.get("name"))
    hints = tool.get("annotations")
    capable = session.client_tasks.capable
    return ToolLink(
        key=key,
        task=support_of(tool, capable).badge if capable.tools_call else "",
        name=name or f"(tool {key[1:]}, without a name)",
        title=text_of(tool.get("title")) or (text_of(hints.get("title")) if isinstance(hints, dict) else ""),
        description=text_of(tool.get("description")),
        href=f"/s/{session.id}/tools/{quote(key, safe='~')}",
        notes=() if brief else annotation_words(hints),
        arguments="" if brief else ", ".join(one.name for one in arguments_of(tool.get("inputSchema"))[:12]),
    )


def tool_links(session: Workspace, limit: int | None = None, *, brief: bool = False) -> list[ToolLink]:
    """The tools of a session as links; in brief only what they are called."""
    items = session.tools.items if limit is None else session.tools.items[:limit]
    return [
        tool_link(session, key, item if isinstance(item, dict) else {}, brief=brief)
        for key, item in zip(keys_of(session.tools), items, strict=False)
    ]


_HINTS = {
    "readOnlyHint": ("only reads", "changes things"),
    "destructiveHint": ("may destroy", "does not destroy"),
    "idempotentHint": ("repeatable", "not repeatable"),
    "openWorldHint": ("reaches outside", "stays inside"),
}


def annotation_words(hints: Any) -> tuple[str, ...]:
    """What the server says about a tool, in words."""
    if not isinstance(hints, dict):
        return ()
    return tuple(
        words[0] if hints[key] else words[1] for key, words in _HINTS.items() if isinstance(hints.get(key), bool)
    )


@dataclass(slots=True, frozen=True)
class Argument:
    """One argument of a tool, in words."""

    name: str
    words: str
    required: bool
    title: str
    description: str
    default: str


def arguments_of(schema: Any) -> list[Argument]:
    """The arguments that an input schema names; [] when it is no object schema."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    wanted = schema.get("required")
    required = {one for one in wanted if isinstance(one, str)} if isinstance(wanted, list) else set()
    return [
        Argument(
            name=format.gist(name, json_tree.MAX_KEY) if len(name) > json_tree.MAX_KEY else name,
            words=format.type_words(sub),
            required=name in required,
            title=text_of(sub.get("title")) if isinstance(sub, dict) else "",
            description=text_of(sub.get("description")) if isinstance(sub, dict) else "",
            default=format.gist(sub["default"], 60) if isinstance(sub, dict) and "default" in sub else "",
        )
        for name, sub in list(properties.items())[:200]
    ]
