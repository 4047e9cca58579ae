"""What a call brought: blocks and trees that can be shown, made in a thread when there is much of it."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import re
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import anyio
import anyio.lowlevel

from app import bounds
from app.core import links
from app.core.calls import Call
from app.core.json import scan as jsonscan
from app.core.json import tables
from app.core.json import text as jsontext
from app.core.json.values import MISSING, same
from app.core.lane import apart
from app.sessions import Workspace
from app.web.calls.shown import Block, Shown
from app.web.kit import format, json_table, json_tree, media
from app.web.kit.html import NOTHING, Html, markup
from app.web.kit.markdown import MARKDOWN_CHARACTERS, MARKED
from app.web.kit.words import VIEW_WORDS, text_of

CARD_BLOCKS = 40
CARD_TEXT = 6_000
RAW_ALONE = 32 * 1024
"""How much of a raw reply a page shows, unless it is asked for the whole."""
CARD_REPLY_BYTES = 128 * 1024
CARD_SEPARATORS = 20_000
"""A larger reply, or one with more in it, is read in a thread, when a tab asks for it."""
VIEWS = tuple(VIEW_WORDS)
"""In which ways a result can be shown."""
_SEARCHABLE = 4_000
"""A text with more characters than this can be searched beside the first one."""


def is_large(call: Call) -> bool:
    """Whether the reply of a call is too much to be read beside everything else."""
    reply = call.reply or b""
    return len(reply) > CARD_REPLY_BYTES or jsonscan.at_most(reply) > CARD_SEPARATORS


ROOT_TEXT = re.compile(r"(?:/messages/[0-9]{1,6}/content(?:/[0-9]{1,6})?|/contents?/[0-9]{1,6})(?:/resource)?/text")
"""Pointers to the texts of a result: they may be JSON of their own, or Markdown."""
_JSON_TEXT = 32 * 1024 * 1024


def address(base: str, call_id: str, verb: str, root: str) -> str:
    """Where a part of a result is to be had; `root` is the pointer of the tree that it belongs to."""
    return f"{base}/calls/{call_id}/{verb}?{urlencode({'root': root})}"


class _Shower:
    """Turns a result into blocks, trees and tables."""

    def __init__(self, base: str, call_id: str, alone: bool, marks: list[str], view: str = "") -> None:
        self.base, self.call_id, self.alone, self.marks = base, call_id, alone, marks
        self.view = view
        """In which way it is wanted; "" for the best."""
        self.text_limit = 128 * 1024 if alone else CARD_TEXT
        self.nodes = json_tree.MAX_NODES if alone else 600
        self.parsed: dict[str, Any] = {}
        self.structured: Any = MISSING
        """The structured content, which a text may repeat;"""
        self.wrapped: Any = MISSING
        """what is in it when it is `{"result": …}`, as FastMCP wraps what is no object;"""
        self.echoed = False
        """whether a text says just that, so that the text is the better way to read it."""
        self.tables = 0
        self.drawn: set[str] = set()
        """In which ways something was drawn."""
        self.offered: set[str] = set()
        self.search = ""
        """Where the first value can be searched."""

    def where(self, verb: str, root: str) -> str:
        return address(self.base, self.call_id, verb, root)

    def _marks(self, root: str) -> list[str]:
        return [mark.removeprefix(root) for mark in self.marks if mark.startswith(f"{root}/")]

    def tree(self, value: Any, root: str, label: str, open_depth: int = 3) -> Html:
        source = self.where("branch", root)
        return json_tree.tree(
            value, open_depth=open_depth, max_nodes=self.nodes, marks=self._marks(root), label=label, source=source
        )

    def value(self, value: Any, root: str, label: str) -> Html:
        """A value as a table when it is one and nobody wants the tree, else as a tree with buttons for all of it."""
        inside = isinstance(value, dict | list) and bool(value)
        self.search = self.search or (self.where("search", root) if inside else "")
        self.offered.add("tree")
        table = tables.find(value) if inside and self.view in ("", "table", "tree") else None
        if table is not None:
            self.offered.add("table")
        if table is None or self.view == "tree" or (not self.view and not table.plain):
            self.drawn.add("tree")
            return (json_tree.buttons(value) if inside else NOTHING) + self.tree(value, root, label)
        self.drawn.add("table")
        self.tables += 1
        ident = f"call-{self.call_id}-table-{self.tables}"
        most = json_table.MORE if self.alone else json_table.ROWS
        source = self.where("branch", root)
        shown = json_table.drawn(table, ident, source, marks=self._marks(root), label=label, most=most)
        # A text that is JSON has addresses of its own for its branches; a part of it has none.
        beyond = (
            json_tree.named(at, self.tree(one, f"{root}{at}", at, 1))
            if not ROOT_TEXT.fullmatch(root)
            else json_tree.named(at, json_tree.tree(one, open_depth=1, max_nodes=200, label=at))
            for at, one in table.rest.items()
        )
        return json_table.beside(table) + shown + markup(beyond)

    def text(self, label: str, text: str, root: str, mime: Any = None, *, again: bool = False) -> Block:
        """A text: as a table or a tree when it is JSON; else as text, and on demand as Markdown or in a frame."""
        cut = max(0, len(text) - self.text_limit)
        self.offered.add("text")
        if again:
            return Block("text", label, text[: self.text_limit], cut, again=True)
        if text.lstrip()[:1] in ("{", "[") and len(text) <= _JSON_TEXT:
            parsed = jsontext.parse(text.encode(errors="replace"))
            if isinstance(parsed.value, dict | list) and parsed.value:
                if same(parsed.value, self.structured) or same(parsed.value, self.wrapped):
                    return Block("text", label, text[: self.text_limit], cut, again=True)
                self.parsed[root] = parsed.value
                if self.view != "text":
                    first = not self.search
                    drawn = self.value(parsed.value, root, f"{label}, which is JSON")
                    search = self.where("search", root) if not first and len(text) > _SEARCHABLE else ""
                    return Block("json", label, json=drawn, search=search)
                self.search = self.search or self.where("search", root)
        elif self.wrapped is not MISSING and text == _written(self.wrapped):
            self.echoed = True
            if self.view in ("table", "tree"):
                return Block("text", label, text[: self.text_limit], cut, again=True)
        frame, markdown = "", ""
        if (page := media.page_of(text, mime)) is not None:
            sha = hashlib.sha256(page).hexdigest()
            frame = f"{self.base}/frames/{sha}?{urlencode({'call': self.call_id})}"
        elif not media.is_html(mime) and len(text) <= MARKDOWN_CHARACTERS and MARKED.search(text):
            markdown = self.where("markdown", root)
        rendered = bool(markdown) and isinstance(mime, str) and mime.partition(";")[0].strip() == "text/markdown"
        return Block("text", label, text[: self.text_limit], cut, markdown=markdown, frame=frame, rendered=rendered)

    def bytes(self, label: str, data: Any, mime: Any, about: str = "") -> Block:
        found = media.examine(data, mime)
        said = (f"{about}, " if about else "") + (text_of(mime)[:80] or "no type")
        if found is None:
            return Block("file", label, f"{said}, not valid base64")
        src = f"{self.base}/blobs/{found.sha}?{urlencode({'call': self.call_id})}"
        said = f"{said}, {format.size(found.size)}" + (f". {found.why}" if found.why else "")
        return Block(found.kind.partition("/")[0] or "file", label, said, src=src)

    def block(self, item: Any, root: str) -> Block:
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "text" and isinstance(item.get("text"), str):
            return self.text("Text", item["text"], f"{root}/text")
        if kind in {"image", "audio"}:
            return self.bytes("Image" if kind == "image" else "Audio", item.get("data"), item.get("mimeType"))
        if kind == "resource_link":
            uri = text_of(item.get("uri"))[:2_000]
            title = (text_of(item.get("title")) or text_of(item.get("name")))[:500]
            link = links.read(uri)
            page = f"{self.base}/resources/one?{urlencode({'uri': uri})}" if uri else ""
            href, host = ("", "") if link is None else (link.href, link.host)
            return Block("link", "Resource link", f"{title}  {uri}" if title else uri, link=href, host=host, page=page)
        if kind == "resource" and isinstance(item.get("resource"), dict):
            return self.resource(item["resource"], f"{root}/resource")
        label = f"Content of type {format.gist(kind, 40)}" if kind is not None else "Content without a type"
        return Block("json", label, json=self.tree(item, root, label, 2), odd=True)

    def resource(self, held: dict[str, Any], root: str) -> Block:
        uri = text_of(held.get("uri"))[:2_000]
        if isinstance(held.get("text"), str):
            about = f"Resource {uri}, {text_of(held.get('mimeType'))[:80] or 'no type'}"
            return self.text(about, held["text"], f"{root}/text", held.get("mimeType"))
        return self.bytes("Resource", held.get("blob"), held.get("mimeType"), uri)

    def spoken(self, item: Any, root: str) -> list[Block]:
        """What one message of a prompt says; a list of contents is not allowed there, and shown all the same."""
        if not isinstance(item, dict) or "content" not in item:
            return [self.block(item, root)]
        content, root = item["content"], f"{root}/content"
        if isinstance(content, list):
            said = [self.block(one, f"{root}/{place}") for place, one in enumerate(content[:CARD_BLOCKS])]
        else:
            said = [self.block(content, root)]
        return [replace(one, said_by=format.gist(item.get("role"), 40)) for one in said]

    def item(self, item: Any, member: str, root: str, *, again: bool) -> list[Block]:
        """One of the contents of a result, by the member that holds them; `again` when it says what is said already."""
        if member == "messages":
            return self.spoken(item, root)
        if again:
            return [self.text("Text", item["text"], f"{root}/text", again=True)]
        resource = member == "contents" and isinstance(item, dict)
        return [self.resource(item, root) if resource else self.block(item, root)]

    def repeats(self, items: list[Any]) -> bool:
        """Whether the texts are the items of the list that is wrapped, one each."""
        if not isinstance(self.wrapped, list) or len(items) != len(self.wrapped) or len(items) < 2:
            return False
        return all(_says(item, one) for item, one in zip(items, self.wrapped, strict=True))

    def shown(self, method: str, result: Any) -> Shown:
        member = _MEMBERS.get(method)
        items = result.get(member) if isinstance(result, dict) else None
        if result is None:
            return Shown()
        if member is None or not isinstance(items, list):
            return self._shown(plain=self.value(result, "", "Result"))
        many = 500 if self.alone else CARD_BLOCKS
        structured, root = None, "/structuredContent"
        if method == "tools/call" and root[1:] in result:
            self.structured = result[root[1:]]
            only = self.structured if isinstance(self.structured, dict) and len(self.structured) == 1 else {}
            self.wrapped = only.get("result", MISSING)
            self.search = self.where("search", root) if isinstance(self.structured, dict | list) else ""
        repeated = self.repeats(items[:many])
        drawn = [
            self.item(item, member, f"/{member}/{index}", again=repeated) for index, item in enumerate(items[:many])
        ]
        blocks = list(itertools.chain.from_iterable(drawn))[:many]
        if self.structured is not MISSING:
            self.offered.add("tree")
            identical = self.echoed or (bool(blocks) and all(one.again for one in blocks))
            if self.view != "text" and not (self.echoed and not self.view):
                structured = self.value(self.structured, root, "Structured content")
            if self.view == "text":
                blocks = [replace(one, again=False) for one in blocks]
        else:
            identical = False
        return self._shown(
            blocks=blocks,
            blocks_cut=max(0, len(items) - many),
            structured=structured,
            tool_error=method == "tools/call" and result.get("isError") is True,
            identical=identical,
        )

    def _shown(self, **made: Any) -> Shown:
        ways = tuple(one for one in VIEWS if one in self.offered or one == "raw")
        view = self.view or next((one for one in ("table", "tree") if one in self.drawn), "text")
        return Shown(search=self.search, parsed=self.parsed, view=view, views=ways, **made)


def _written(value: Any) -> str | None:
    """What FastMCP writes of a value that is no object and no list."""
    if isinstance(value, str):
        return value
    return None if isinstance(value, dict | list) else json.dumps(value)


def _says(item: Any, value: Any) -> bool:
    """Whether a block is the text of a value."""
    text = item.get("text") if isinstance(item, dict) else None
    if not isinstance(text, str):
        return False
    if isinstance(value, dict | list):
        parsed = jsontext.parse(text.encode(errors="replace")) if text.lstrip()[:1] in ("{", "[") else None
        return parsed is not None and same(parsed.value, value)
    return text == _written(value)


_MEMBERS = {"tools/call": "content", "resources/read": "contents", "prompts/get": "messages"}
"""What holds the contents of a result, by its method."""


def shown_of(base: str, call: Call, result: Any, *, alone: bool, view: str = "") -> Shown:
    """A result of `tools/call`, `resources/read` or `prompts/get` as blocks, any other as a tree; `view` is one of
    `VIEWS`, "" for the best.

    Every part is fetched by the call that brought it, so it must stay in `session.calls`, quiet or not. In a template:
    `{% import "macros/content.html" as C %}{{ C.blocks(shown, "an-id", "/where/it/is/whole") }}`.
    """
    if call.unread is not None and call.reply is not None:
        raw, cut = format.raw_text(call.reply, RAW_ALONE if alone else CARD_TEXT)
        return Shown(tool_error=call.tool_error, unread=call.unread, raw=raw, raw_cut=cut)
    method = "tools/call" if call.method == "tasks/result" else call.method
    if view == "raw":
        raw, cut = format.raw_text(call.reply or b"", RAW_ALONE)
        return Shown(view="raw", raw=raw, raw_cut=cut)
    marks = [one.pointer for one in call.findings if one.pointer is not None]
    return _Shower(base, call.id, alone, marks[:50], view).shown(method, result)


# ------------------------------------------------------------------------------------------------------ parsed values


class _Values:
    """Results that were read a moment ago: whoever opens a branch of a large one does not read it all again.

    Bounded by their number and by what is in them together."""

    most, seconds = 3, 60.0

    def __init__(self) -> None:
        self._held: dict[tuple[str, str, str], tuple[bytes, Any, float, int]] = {}

    def get(self, key: tuple[str, str, str], reply: bytes) -> tuple[bool, Any]:
        found = self._held.pop(key, None)
        if found is None or found[0] is not reply:
            return False, None
        self._held[key] = (reply, found[1], time.monotonic(), found[3])
        return True, found[1]

    async def put(self, key: tuple[str, str, str], reply: bytes, value: Any) -> None:
        """Hold a value. What is in it is not more than what stands in the reply, those in its texts counted."""
        weight = await apart(jsonscan.at_most, reply)
        self._held.pop(key, None)
        self._held[key] = (reply, value, time.monotonic(), weight)
        while len(self._held) > 1 and (len(self._held) > self.most or self._weight() > bounds.JSON_SEPARATORS):
            del self._held[next(iter(self._held))]
        asyncio.get_running_loop().call_later(self.seconds + 1, self._forget)

    def closed(self, session_id: str) -> None:
        """A session is gone, and with it what was read for it."""
        self._held = {key: held for key, held in self._held.items() if key[0] != session_id}

    def _weight(self) -> int:
        return sum(weight for _, _, _, weight in self._held.values())

    def _forget(self) -> None:
        old = time.monotonic() - self.seconds
        self._held = {key: held for key, held in self._held.items() if held[2] >= old}


values = _Values()
_reading: anyio.lowlevel.RunVar[anyio.Lock] = anyio.lowlevel.RunVar("reading")


def _one_at_a_time() -> anyio.Lock:
    """Held while a large result is read and until it is shown: pages that want the same one find it read, and trees
    of others do not stand side by side."""
    try:
        return _reading.get()
    except LookupError:
        lock = anyio.Lock()
        _reading.set(lock)
        return lock


async def result_of(session: Workspace, call: Call, root: str = "") -> Any:
    """A result, or the JSON that a text in it holds (`root` is that text's pointer). KeyError when there is none."""
    if not is_large(call):
        return await _result_of(session, call, root)
    async with _one_at_a_time():
        return await _result_of(session, call, root)


async def _result_of(session: Workspace, call: Call, root: str = "") -> Any:
    if call.reply is None or call.state != "done":
        return None
    key = (session.id, call.id, root if ROOT_TEXT.fullmatch(root) else "")
    known, value = values.get(key, call.reply)
    if not known:
        if key[2]:
            text = json_tree.at_pointer(await _result_of(session, call), root)
            if not isinstance(text, str):
                raise KeyError(root)
            value = (await jsontext.parse_async(text.encode(errors="replace"))).value
        else:
            value = await session.result(call)
        if is_large(call):
            await values.put(key, call.reply, value)
    return value if key[2] else json_tree.at_pointer(value, root)


async def text_at(session: Workspace, call: Call, root: str) -> str:
    """The text of a result at its pointer. KeyError when there is none."""
    found = json_tree.at_pointer(await result_of(session, call), root) if ROOT_TEXT.fullmatch(root) else None
    if not isinstance(found, str):
        raise KeyError(root)
    return found


async def show_result(session: Workspace, call: Call, *, alone: bool, view: str = "") -> Shown:
    """`shown_of` the result of a call, in a thread when it is large."""
    if view == "raw":
        return shown_of(session.base, call, None, alone=alone, view=view)
    if call.reply is None or not is_large(call):
        return shown_of(session.base, call, await _result_of(session, call), alone=alone, view=view)
    async with _one_at_a_time():
        made = await apart(shown_of, session.base, call, await _result_of(session, call), alone=alone, view=view)
    for root, value in made.parsed.items():
        await values.put((session.id, call.id, root), call.reply, value)
    return made
