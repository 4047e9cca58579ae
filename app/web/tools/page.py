"""The list of tools and the page of one: what they show, and their JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from app.sessions import Workspace
from app.web.calls.card import (
    CARDS,
    CallCard,
    is_call_of,
    recent_calls,
)
from app.web.kit import format, json_tree
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.templates import Context
from app.web.kit.words import text_of
from app.web.lists.keys import find_item, key_at, keys_of
from app.web.lists.view import Entry, ListView, Window, list_json, list_view
from app.web.tools.form import ToolForm
from app.web.tools.links import Argument, annotation_words, arguments_of, tool_link


def tools_view(session: Workspace, window: Window | None = None) -> ListView:
    """The list of tools; also a part of the stream (`#tools`)."""
    keys = keys_of(session.tools)

    def entry(index: int, item: dict[str, Any]) -> Entry:
        link = tool_link(session, keys[index], item)
        words = link.arguments or "no arguments"
        notes = (*link.notes, link.task) if link.task else link.notes
        return Entry(link.name, link.href, link.title, link.description, words, notes)

    return list_view(session, "tools", window or Window(), entry, href=f"/s/{session.id}/tools")


@dataclass(slots=True)
class Tools(Context):
    """Every tool the server listed."""

    template: ClassVar[str] = "tools/page.html"
    part: ClassVar[str | None] = "tools/_list.html"

    shell: Shell
    tools: ListView


def tools_json(session: Workspace) -> dict[str, Any]:
    """The server's objects as received."""
    return list_json(session, "tools", "tools") | {"keys": keys_of(session.tools)}


def tools_page(session: Workspace, window: Window | None = None) -> Tools:
    """The list of tools."""
    return Tools(
        shell=shell(session, "tools", "Tools"),
        tools=tools_view(session, window),
    )


@dataclass(slots=True)
class Tool(Context):
    """One tool: what it says of itself, its arguments, a box to call it, and its recent calls."""

    template: ClassVar[str] = "tools/tool.html"

    shell: Shell
    key: str
    name: str
    title: str
    description: str
    notes: tuple[str, ...]
    arguments: list[Argument]
    input_schema: Html | None
    output_schema: Html | None
    whole: Html
    time_limit: str
    cards: list[CallCard]


def tool_page(session: Workspace, key: str) -> Tool | None:
    """The page of one tool; None when the server lists no such tool."""
    index = find_item(session.tools, key)
    if index is None:
        return None
    raw = session.tools.items[index]
    item = raw if isinstance(raw, dict) else {}
    own_key = key_at(session.tools, index)
    link = tool_link(session, own_key, item)
    hints = item.get("annotations")
    title = text_of(item.get("title")) or (text_of(hints.get("title")) if isinstance(hints, dict) else "") or link.name
    schema = item.get("inputSchema")
    options = session.options
    time_limit = f"time limit {format.duration(options.request_timeout_ms)}"
    recent = [call for call in recent_calls(session) if is_call_of(call, item.get("name"))][:CARDS]
    return Tool(
        shell=shell(session, "tool", f"{link.name}", of=own_key, tool_key=own_key),
        key=own_key,
        name=text_of(item.get("name")),
        title=title,
        description=text_of(item.get("description")),
        notes=annotation_words(hints),
        arguments=arguments_of(schema),
        input_schema=json_tree.tree(schema, open_depth=2, label="Input schema") if schema is not None else None,
        output_schema=json_tree.tree(item["outputSchema"], open_depth=2, label="Output schema")
        if "outputSchema" in item
        else None,
        whole=json_tree.tree(raw, open_depth=2, label="The tool as the server listed it"),
        time_limit=time_limit + (", renewed by progress" if options.reset_timeout_on_progress else ""),
        cards=[CallCard(session, call) for call in recent],
    )


@dataclass(slots=True)
class ToolPage(Tool):
    """One tool: what it says of itself, its form, and its recent calls."""

    template: ClassVar[str] = "tools/tool.html"
    tool_form: ToolForm

    def values(self) -> dict[str, Any]:
        return Tool.values(self) | self.tool_form.values()
