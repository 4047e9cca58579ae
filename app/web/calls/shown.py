"""A result as it can be shown: what templates draw. Knows no session and no call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from app.web.kit import json_tree
from app.web.kit.html import Html


@dataclass(slots=True, frozen=True)
class Block:
    """One content block of a result, as it can be shown."""

    kind: str
    """`text`, `image`, `audio`, `file`, `link` or `json`."""
    label: str
    text: str = ""
    cut: int = 0
    json: Html | None = None
    src: str = ""
    """Where the bytes are."""
    link: str = ""
    """An address that may be opened."""
    page: str = ""
    """The page of the resource that it names."""
    host: str = ""
    """The host of that address, as it will be looked up."""
    search: str = ""
    """Where its tree can be searched."""
    markdown: str = ""
    """Where the text is to be had as Markdown; "" when that would show nothing new."""
    rendered: bool = False
    """It says that it is Markdown, and opens so."""
    frame: str = ""
    """Where the text is to be had as a page, for a sandboxed frame; "" when it is no HTML."""
    odd: bool = False
    """It is content of a kind that is not known."""
    said_by: str = ""
    """The role of who says it, in a prompt."""
    again: bool = False
    """It says what the structured content says."""

    @property
    def tall(self) -> bool:
        """Whether its text is so long that it scrolls by itself."""
        return self.text.count("\n") > json_tree.LINES


@dataclass(slots=True, frozen=True)
class Shown:
    """A result, as it can be shown. Made without the session, so a thread can make it."""

    blocks: list[Block] = field(default_factory=list)
    blocks_cut: int = 0
    structured: Html | None = None
    plain: Html | None = None
    tool_error: bool = False
    search: str = ""
    """Where its value can be searched."""
    view: str = ""
    """In which way it is drawn: one of `VIEWS`."""
    views: tuple[str, ...] = ()
    """In which ways it can be drawn."""
    identical: bool = False
    """Its texts say what the structured content says."""
    parsed: dict[str, Any] = field(default_factory=dict)
    """The JSON that texts of it turned out to be, by their pointers."""
    unread: str = ""
    """Why it is shown as text only."""
    raw: str = ""
    raw_cut: int = 0
    """The beginning of that text, and how many bytes follow."""

    @property
    def empty(self) -> bool:
        return not self.blocks and self.structured is None and self.plain is None and not self.unread
