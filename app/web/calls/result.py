"""What a call brought: blocks and trees that can be shown, made in a thread when there is much of it."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import re
import time
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import anyio
import anyio.lowlevel

from app import bounds
from app.core import links
from app.core.calls import Call
from app.core.json import scan as jsonscan
from app.core.json import text as jsontext
from app.core.json.values import same
from app.core.lane import apart
from app.sessions import Workspace
from app.web.calls import media
from app.web.kit import format, json_tree
from app.web.kit.html import Html
from app.web.kit.markdown import MARKDOWN_CHARACTERS, MARKED
from app.web.kit.words import text_of

CARD_BLOCKS = 40
CARD_TEXT = 6_000
RAW_ALONE = 32 * 1024
"""How much of a raw reply a page shows, unless it is asked for the whole."""
CARD_REPLY_BYTES = 128 * 1024
CARD_SEPARATORS = 20_000
"""A larger reply, or one with more in it, is read in a thread, when a tab asks for it."""
_SEARCHABLE = 4_000
"""A text with more characters than this can be searched;"""
_SEARCHABLE_TREE = 5 * _SEARCHABLE
"""a tree of a value, which is mostly markup, with more than this."""


def is_large(call: Call) -> bool:
    """Whether the reply of a call is too much to be read beside everything else."""
    reply = call.reply or b""
    return len(reply) > CARD_REPLY_BYTES or jsonscan.at_most(reply) > CARD_SEPARATORS


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
    frame: str = ""
    """Where the text is to be had as a page, for a sandboxed frame; "" when it is no HTML."""
    said_by: str = ""
    """The role of who says it, in a prompt."""
    again: bool = False
    """It says what the structured content says, and stands folded below it."""


@dataclass(slots=True, frozen=True)
class Shown:
    """A result, as it can be shown. Made without the session, so a thread can make it."""

    blocks: list[Block] = field(default_factory=list)
    blocks_cut: int = 0
    structured: Html | None = None
    plain: Html | None = None
    tool_error: bool = False
    search: str = ""
    """Where the structured or plain tree can be searched."""
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


ROOT_TEXT = re.compile(r"(?:/messages/[0-9]{1,6}/content(?:/[0-9]{1,6})?|/contents?/[0-9]{1,6})(?:/resource)?/text")
"""Pointers to the texts of a result: they may be JSON of their own, or Markdown."""
_JSON_TEXT = 32 * 1024 * 1024


def address(session_id: str, call_id: str, verb: str, root: str) -> str:
    """Where a part of a result is to be had; `root` is the pointer of the tree that it belongs to."""
    return f"/s/{session_id}/calls/{call_id}/{verb}?{urlencode({'root': root})}"


class _Shower:
    """Turns a result into blocks and trees."""

    def __init__(self, session_id: str, call_id: str, alone: bool, marks: list[str]) -> None:
        self.session_id, self.call_id, self.alone, self.marks = session_id, call_id, alone, marks
        self.text_limit = 128 * 1024 if alone else CARD_TEXT
        self.nodes = json_tree.MAX_NODES if alone else 600
        self.parsed: dict[str, Any] = {}
        self.structured: Any = None
        """The structured content, which a text may repeat; None when there is none."""

    def where(self, verb: str, root: str) -> str:
        return address(self.session_id, self.call_id, verb, root)

    def tree(self, value: Any, root: str, label: str, open_depth: int = 3) -> Html:
        marks = [mark.removeprefix(root) for mark in self.marks if mark.startswith(f"{root}/")]
        source = self.where("branch", root)
        return json_tree.tree(
            value, open_depth=open_depth, max_nodes=self.nodes, marks=marks, label=label, source=source
        )

    def text(self, label: str, text: str, root: str, mime: Any = None) -> Block:
        """A text: as a tree when it is JSON; else as text, and on demand as Markdown or as a page in a frame."""
        cut = max(0, len(text) - self.text_limit)
        if text.lstrip()[:1] in ("{", "[") and len(text) <= _JSON_TEXT:
            parsed = jsontext.parse(text.encode(errors="replace"))
            if isinstance(parsed.value, dict | list) and parsed.value:
                if same(parsed.value, self.structured):
                    return Block("text", label, text[: self.text_limit], cut, again=True)
                self.parsed[root] = parsed.value
                tree = self.tree(parsed.value, root, label)
                search = self.where("search", root) if len(text) > _SEARCHABLE else ""
                return Block("json", f"{label}, which is JSON", text[: self.text_limit], cut, tree, search=search)
        frame, markdown = "", ""
        if (page := media.page_of(text, mime)) is not None:
            sha = hashlib.sha256(page).hexdigest()
            frame = f"/s/{self.session_id}/frames/{sha}?{urlencode({'call': self.call_id})}"
        elif not media.is_html(mime) and len(text) <= MARKDOWN_CHARACTERS and MARKED.search(text):
            markdown = self.where("markdown", root)
        return Block("text", label, text[: self.text_limit], cut, markdown=markdown, frame=frame)

    def bytes(self, label: str, data: Any, mime: Any, about: str = "") -> Block:
        found = media.examine(data, mime)
        said = (f"{about}, " if about else "") + (text_of(mime)[:80] or "no type")
        if found is None:
            return Block("file", label, f"{said}, not valid base64")
        src = f"/s/{self.session_id}/blobs/{found.sha}?{urlencode({'call': self.call_id})}"
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
            page = f"/s/{self.session_id}/resources/one?{urlencode({'uri': uri})}" if uri else ""
            href, host = ("", "") if link is None else (link.href, link.host)
            return Block("link", "Resource link", f"{title}  {uri}" if title else uri, link=href, host=host, page=page)
        if kind == "resource" and isinstance(item.get("resource"), dict):
            return self.resource(item["resource"], f"{root}/resource")
        label = f"Content of type {format.gist(kind, 40)}" if kind is not None else "Content without a type"
        return Block("json", label, json=self.tree(item, root, label, 2))

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

    def item(self, item: Any, member: str, root: str) -> list[Block]:
        """One of the contents of a result, by the member that holds them."""
        if member == "messages":
            return self.spoken(item, root)
        resource = member == "contents" and isinstance(item, dict)
        return [self.resource(item, root) if resource else self.block(item, root)]

    def shown(self, method: str, result: Any) -> Shown:
        member = _MEMBERS.get(method)
        items = result.get(member) if isinstance(result, dict) else None
        if result is None:
            return Shown()
        if member is None or not isinstance(items, list):
            plain = self.tree(result, "", "Result")
            return Shown(plain=plain, search=self.where("search", "") if len(plain) > _SEARCHABLE_TREE else "")
        many = 500 if self.alone else CARD_BLOCKS
        structured, search = None, ""
        if method == "tools/call" and "structuredContent" in result:
            self.structured = result["structuredContent"]
            structured = self.tree(self.structured, "/structuredContent", "Structured content")
            search = self.where("search", "/structuredContent") if len(structured) > _SEARCHABLE_TREE else ""
        drawn = [self.item(item, member, f"/{member}/{index}") for index, item in enumerate(items[:many])]
        return Shown(
            blocks=list(itertools.chain.from_iterable(drawn))[:many],
            blocks_cut=max(0, len(items) - many),
            structured=structured,
            tool_error=method == "tools/call" and result.get("isError") is True,
            search=search,
            parsed=self.parsed,
        )


_MEMBERS = {"tools/call": "content", "resources/read": "contents", "prompts/get": "messages"}
"""What holds the contents of a result, by its method."""


def shown_of(session_id: str, call: Call, result: Any, *, alone: bool) -> Shown:
    """A result of `tools/call`, `resources/read` or `prompts/get` as blocks, any other as a tree.

    Every part is fetched by the call that brought it, so it must stay in `session.calls`, quiet or not. In a template:
    `{% import "macros/content.html" as C %}{{ C.blocks(shown, "an-id", "/where/it/is/whole") }}`.
    """
    if call.unread is not None and call.reply is not None:
        raw, cut = format.raw_text(call.reply, RAW_ALONE if alone else CARD_TEXT)
        return Shown(tool_error=call.tool_error, unread=call.unread, raw=raw, raw_cut=cut)
    method = "tools/call" if call.method == "tasks/result" else call.method
    marks = [one.pointer for one in call.findings if one.pointer is not None]
    return _Shower(session_id, call.id, alone, marks[:50]).shown(method, result)


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


async def show_result(session: Workspace, call: Call, *, alone: bool) -> Shown:
    """`shown_of` the result of a call, in a thread when it is large."""
    if call.reply is None or not is_large(call):
        return shown_of(session.id, call, await _result_of(session, call), alone=alone)
    async with _one_at_a_time():
        made = await apart(shown_of, session.id, call, await _result_of(session, call), alone=alone)
    for root, value in made.parsed.items():
        await values.put((session.id, call.id, root), call.reply, value)
    return made
