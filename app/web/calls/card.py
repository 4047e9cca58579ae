"""Calls: a card with its result, a line in the list, a page of its own, and the JSON of each."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import anyio
import anyio.lowlevel

from app import bounds
from app.core import links
from app.core.calls import Call, RequiredLink
from app.core.figures import measured
from app.core.json import scan as jsonscan
from app.core.json import text as jsontext
from app.core.json.values import same
from app.core.lane import apart
from app.core.targets import HttpTarget
from app.core.times import wire_time
from app.core.wire import Finding
from app.sessions import Workspace
from app.sessions.lists import ListName
from app.web.asks import card as ask_views
from app.web.calls import media
from app.web.calls.compare import can_compare
from app.web.calls.rounds import RoundsView, rounds_json, rounds_view
from app.web.kit import html as show
from app.web.kit.frame import Context, Shell, Twofold, key_at, shell, text_of
from app.web.kit.html import Html
from app.web.tasks import running as task_views
from app.web.tasks import sequence

CARDS = 20
"""Cards of recent calls on a tool's page."""
CARD_BLOCKS = 40
CARD_TEXT = 6_000
_RAW_ALONE = 32 * 1024
"""How much of a raw reply a page shows, unless it is asked for the whole."""
CARD_REPLY_BYTES = 128 * 1024
CARD_SEPARATORS = 20_000
"""A larger reply, or one with more in it, is read in a thread, when a tab asks for it."""
_SEARCHABLE = 4_000
"""A text with more characters than this can be searched;"""
_SEARCHABLE_TREE = 5 * _SEARCHABLE
"""a tree of a value, which is mostly markup, with more than this."""

# ------------------------------------------------------------------------------------------------------------- calls


def is_large(call: Call) -> bool:
    """Whether the reply of a call is too much to be read beside everything else."""
    reply = call.reply or b""
    return len(reply) > CARD_REPLY_BYTES or jsonscan.at_most(reply) > CARD_SEPARATORS


def recent_calls(session: Workspace) -> list[Call]:
    """The calls a person made, newest first."""
    return [call for call in session.calls.newest if not call.quiet]


def is_call_of(call: Call, name: Any) -> bool:
    """Whether a call is one of the tool with this name."""
    return call.method == "tools/call" and call.params is not None and call.params.get("name") == name


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
        self.nodes = show.MAX_NODES if alone else 600
        self.parsed: dict[str, Any] = {}
        self.structured: Any = None
        """The structured content, which a text may repeat; None when there is none."""

    def where(self, verb: str, root: str) -> str:
        return address(self.session_id, self.call_id, verb, root)

    def tree(self, value: Any, root: str, label: str, open_depth: int = 3) -> Html:
        marks = [mark.removeprefix(root) for mark in self.marks if mark.startswith(f"{root}/")]
        source = self.where("branch", root)
        return show.tree(value, open_depth=open_depth, max_nodes=self.nodes, marks=marks, label=label, source=source)

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
        elif not media.is_html(mime) and len(text) <= show.MARKDOWN_CHARACTERS and show.MARKED.search(text):
            markdown = self.where("markdown", root)
        return Block("text", label, text[: self.text_limit], cut, markdown=markdown, frame=frame)

    def bytes(self, label: str, data: Any, mime: Any, about: str = "") -> Block:
        found = media.examine(data, mime)
        said = f"{about}, {text_of(mime)[:80] or 'no type'}" if about else text_of(mime)[:80] or "no type"
        if found is None:
            return Block("file", label, f"{said}, not valid base64")
        src = f"/s/{self.session_id}/blobs/{found.sha}?{urlencode({'call': self.call_id})}"
        said = f"{said}, {show.size(found.size)}" + (f". {found.why}" if found.why else "")
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
            said = f"{title}  {uri}" if title else uri
            if link is None:
                return Block("link", "Resource link", said, page=page)
            return Block("link", "Resource link", said, link=link.href, host=link.host, page=page)
        if kind == "resource" and isinstance(item.get("resource"), dict):
            return self.resource(item["resource"], f"{root}/resource")
        label = f"Content of type {show.gist(kind, 40)}" if kind is not None else "Content without a type"
        return Block("json", label, json=self.tree(item, root, label, 2))

    def resource(self, held: dict[str, Any], root: str) -> Block:
        uri = text_of(held.get("uri"))[:2_000]
        if isinstance(held.get("text"), str):
            about = f"Resource {uri}, {text_of(held.get('mimeType'))[:80] or 'no type'}"
            return self.text(about, held["text"], f"{root}/text", held.get("mimeType"))
        return self.bytes("Resource", held.get("blob"), held.get("mimeType"), uri)

    def spoken(self, item: Any, index: int) -> list[Block]:
        """What one message of a prompt says; a list of contents is not allowed there, and shown all the same."""
        root = f"/messages/{index}"
        if not isinstance(item, dict) or "content" not in item:
            return [self.block(item, root)]
        said_by, content = show.gist(item.get("role"), 40), item["content"]
        if not isinstance(content, list):
            return [replace(self.block(content, f"{root}/content"), said_by=said_by)]
        return [
            replace(self.block(one, f"{root}/content/{place}"), said_by=said_by)
            for place, one in enumerate(content[:CARD_BLOCKS])
        ]

    def shown(self, method: str, result: Any) -> Shown:
        many = 500 if self.alone else CARD_BLOCKS
        if isinstance(result, dict) and method == "tools/call" and isinstance(result.get("content"), list):
            content = result["content"]
            self.structured = result.get("structuredContent")
            blocks = [self.block(item, f"/content/{index}") for index, item in enumerate(content[:many])]
            structured, search = None, ""
            if "structuredContent" in result:
                structured = self.tree(self.structured, "/structuredContent", "Structured content")
                search = self.where("search", "/structuredContent") if len(structured) > _SEARCHABLE_TREE else ""
            return Shown(
                blocks=blocks,
                blocks_cut=len(content) - len(blocks),
                structured=structured,
                tool_error=result.get("isError") is True,
                search=search,
                parsed=self.parsed,
            )
        if isinstance(result, dict) and method == "resources/read" and isinstance(result.get("contents"), list):
            content = result["contents"]
            blocks = [
                self.resource(item, f"/contents/{index}")
                if isinstance(item, dict)
                else self.block(item, f"/contents/{index}")
                for index, item in enumerate(content[:many])
            ]
            return Shown(blocks=blocks, blocks_cut=len(content) - len(blocks), parsed=self.parsed)
        if isinstance(result, dict) and method == "prompts/get" and isinstance(result.get("messages"), list):
            content = result["messages"]
            blocks = [one for index, item in enumerate(content[:many]) for one in self.spoken(item, index)]
            return Shown(blocks=blocks[:many], blocks_cut=max(0, len(content) - many), parsed=self.parsed)
        if result is None:
            return Shown()
        plain = self.tree(result, "", "Result")
        return Shown(plain=plain, search=self.where("search", "") if len(plain) > _SEARCHABLE_TREE else "")


def shown_of(session_id: str, call: Call, result: Any, *, alone: bool) -> Shown:
    """A result of `tools/call`, `resources/read` or `prompts/get` as blocks, any other as a tree.

    Every part is fetched by the call that brought it, so it must stay in `session.calls`, quiet or not. In a template:
    `{% import "macros/content.html" as C %}{{ C.blocks(shown, "an-id", "/where/it/is/whole") }}`.
    """
    if call.unread is not None and call.reply is not None:
        raw, cut = show.raw_text(call.reply, _RAW_ALONE if alone else CARD_TEXT)
        return Shown(tool_error=call.tool_error, unread=call.unread, raw=raw, raw_cut=cut)
    method = "tools/call" if call.method == "tasks/result" else call.method
    marks = [one.pointer for one in call.findings if one.pointer is not None]
    return _Shower(session_id, call.id, alone, marks[:50]).shown(method, result)


def error_name(code: int | None) -> str:
    """What a code of JSON-RPC or MCP is called; "" when it has no name."""
    if code is None:
        return ""
    return _CODES.get(code, "Server error" if -32099 <= code <= -32000 else "")


_CODES = {
    -32700: "Parse error",
    -32600: "Invalid request",
    -32601: "Method not found",
    -32602: "Invalid params",
    -32603: "Internal error",
    -32002: "Resource not found",
    -32042: "URL elicitation required",
    -32001: "Request timed out",
    -32020: "Header mismatch",
    -32021: "Missing required client capability",
    -32022: "Unsupported protocol version",
    -1: "User rejected",
}


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
        for key in [key for key in self._held if key[0] == session_id]:
            del self._held[key]

    def _weight(self) -> int:
        return sum(weight for _, _, _, weight in self._held.values())

    def _forget(self) -> None:
        old = time.monotonic() - self.seconds
        for key in [key for key, (_, _, used, _) in self._held.items() if used < old]:
            del self._held[key]


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
            text = show.at_pointer(await _result_of(session, call), root)
            if not isinstance(text, str):
                raise KeyError(root)
            value = (await jsontext.parse_async(text.encode(errors="replace"))).value
        else:
            value = await session.result(call)
        if is_large(call):
            await values.put(key, call.reply, value)
    return value if key[2] else show.at_pointer(value, root)


async def text_at(session: Workspace, call: Call, root: str) -> str:
    """The text of a result at its pointer. KeyError when there is none."""
    found = show.at_pointer(await result_of(session, call), root) if ROOT_TEXT.fullmatch(root) else None
    if not isinstance(found, str):
        raise KeyError(root)
    return found


@dataclass(slots=True)
class CallCard:
    """One call with its result, as a card; also a part of the stream (`#call-{id}`)."""

    id: str
    base: str
    number: str
    method: str
    subject: str
    gist: str
    state: str
    tool_error: bool
    took: str
    started: str
    deadline: str | None
    progress: Any
    progress_words: str
    logs: list[tuple[str, str, str]]
    logs_dropped: int
    findings: list[Finding]
    shown: Shown
    error: Any
    error_name: str
    error_data: Html | None
    cancel_reason: str
    notification: bool
    size: str
    request_seq: int | None
    reply_seq: int | None
    legs: int
    raw: str
    raw_cut: int
    full: bool
    alone: bool
    too_large: bool
    again: str
    """Where it can be changed and sent again: the form of its tool or prompt, else the composer."""
    copies: list[tuple[str, str]]
    """In which forms it can be copied, and where each is."""
    asks: list[tuple[str, str, str, bool]]
    """What the server asked while it ran: id, kind, state in words, whether it waits."""
    links: list[ask_views.LinkCard]
    """What error -32042 wants opened before it is tried again."""
    retry_of: str | None
    rounds: RoundsView | None
    """What the server asked before it answered (2026-07-28)."""
    compare: str
    """The revision of the other era, when the call could be run there too."""
    compared: bool
    task: task_views.ClientTaskCard | None
    """The task that it became."""
    cancelling: bool
    """It was asked to end, and the server has not said so yet."""

    @property
    def settled(self) -> bool:
        return self.state in {"done", "failed", "cancelled"}


def call_card(
    session: Workspace, call: Call, *, shown: Shown | None = None, alone: bool = False, full: bool = False
) -> CallCard:
    """One call as a card. `alone` on its own page, which brings a large result as `shown`; elsewhere the tab fetches
    that by itself."""
    too_large = shown is None and call.unread is None and is_large(call)
    if shown is None:
        result = None
        if call.reply is not None and not too_large and call.has_result:
            value = jsontext.parse(call.reply).value
            result = value.get("result") if isinstance(value, dict) else None
        shown = shown_of(session.id, call, result, alone=alone)
    raw, raw_cut = ("", 0)
    if alone and call.reply is not None:
        raw, raw_cut = show.raw_text(call.reply, len(call.reply) if full else _RAW_ALONE)
    progress = call.progress
    words = ""
    if progress is not None:
        words = measured(progress.progress)
        words += f" of {measured(progress.total)}" if progress.total is not None else ""
    params = call.params or {}
    given = params.get("arguments") if call.method in _FORMS else params
    leg = call.legs[-1] if call.legs else None
    task = session.client_tasks.tasks.get(call.task_id or "")
    return CallCard(
        id=call.id,
        base=f"/s/{session.id}",
        number=call.id.lstrip("c"),
        method=call.method,
        subject=call.subject,
        gist=show.gist(given, 100) if given else "",
        state=call.state,
        tool_error=call.tool_error and call.method in ("tools/call", "tasks/result"),
        took=show.duration(call.duration_ms),
        started=wire_time(call.started_at),
        deadline=wire_time(call.deadline_at) if call.deadline_at is not None else None,
        progress=progress,
        progress_words=words,
        logs=[(show.clock(one.at), one.level, show.gist(one.data, 400)) for one in call.logs],
        logs_dropped=call.logs_dropped,
        findings=call.findings[:20],
        shown=shown,
        error=call.error,
        error_name=error_name(call.error.code) if call.error is not None else "",
        error_data=show.tree(call.error.data, open_depth=2, max_nodes=400, label="Error data")
        if call.error is not None and call.error.data is not None
        else None,
        cancel_reason=call.cancel_reason or "",
        notification=call.notification,
        size=show.size(call.head.size) if call.head is not None else "",
        request_seq=leg.request_seq if leg is not None else None,
        reply_seq=leg.reply_seq if leg is not None else None,
        legs=len(call.legs),
        raw=raw,
        raw_cut=raw_cut,
        full=full,
        alone=alone,
        too_large=too_large,
        again=_again(session, call),
        copies=_copies(session, call),
        asks=ask_views.asks_of(session, call.asks),
        links=ask_views.link_cards(call.links),
        retry_of=call.retry_of,
        rounds=rounds_view(session, call),
        compare=can_compare(session, call) if alone else "",
        compared=call.id in session.comparisons.by_call,
        task=None if task is None else task_views.task_card(session, task),
        cancelling=not call.settled and (call.cancel_wanted or (task is not None and task.cancelling)),
    )


_FORMS: dict[str, ListName] = {"tools/call": "tools", "prompts/get": "prompts"}
"""Calls that have a form of their own."""


def _form_of(session: Workspace, call: Call) -> str:
    """The address of the form of its tool or prompt; "" when it has none, or the server lists none of that name."""
    name = (call.params or {}).get("name")
    if call.method in _FORMS and isinstance(name, str):
        listed = _FORMS[call.method]
        listing = session.lists[listed]
        place = listing.place(name)
        if place is not None:
            return f"/s/{session.id}/{listed}/{quote(key_at(listing, place), safe='~')}"
    return ""


def _again(session: Workspace, call: Call) -> str:
    """The address that loads a call into the form of its tool or prompt, or into the composer."""
    return f"{_form_of(session, call) or f'/s/{session.id}/compose'}?from={call.id}"


def _copies(session: Workspace, call: Call) -> list[tuple[str, str]]:
    """JSON always; curl where the server is reached by streamable HTTP; Python where there is a server at all."""
    base = f"/s/{session.id}/calls/{call.id}/snippet?as="
    kinds = ["json"]
    if isinstance(session.target, HttpTarget) and (session.info.transport or session.target.transport) == "http":
        kinds.append("curl")
    if session.target is not None:
        kinds.append("python")
    words = {"json": "JSON", "curl": "curl", "python": "Python"}
    return [(words[kind], base + kind) for kind in kinds]


def call_json(call: Call, result: Any) -> dict[str, Any]:
    """A call, as scripts read it."""
    progress, error = call.progress, call.error
    return {
        "id": call.id,
        "method": call.method,
        "params": call.params,
        "state": call.state,
        "notification": call.notification,
        "progress": None
        if progress is None
        else {
            "progress": progress.progress,
            "total": progress.total,
            "message": progress.message,
            "at": wire_time(progress.at),
        },
        "legs": [
            {"rpc_id": leg.rpc_id, "request_seq": leg.request_seq, "reply_seq": leg.reply_seq} for leg in call.legs
        ],
        "result": result,
        "result_unread": call.unread,
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "data": error.data, "kind": error.kind},
        "as_task": call.as_task,
        "task_id": call.task_id,
        "asks": list(call.asks),
        "links": links_json(call.links),
        "retry_of": call.retry_of,
        "rounds": rounds_json(call),
        "round_limit": call.round_limit or None,
        "outcome": "abandoned" if call.abandoned else None,
        "findings": [show.finding_json(one) for one in call.findings],
        "logs": [
            {"at": wire_time(one.at), "level": one.level, "logger": one.logger, "data": one.data} for one in call.logs
        ],
        "started_at": wire_time(call.started_at),
        "ended_at": None if call.ended_at is None else wire_time(call.ended_at),
        "duration_ms": call.duration_ms,
        "cancel_reason": call.cancel_reason,
    }


def links_json(required: list[RequiredLink]) -> list[dict[str, Any]]:
    """The addresses that a call wants opened; `opens` says whether a page would make a link of it."""
    return [
        {
            "elicitation_id": link.elicitation_id,
            "message": link.message,
            "url": link.url,
            "opens": links.read(link.url) is not None,
            "completed": link.completed,
            "findings": [
                {"id": one.id, "level": one.level, "text": one.text, "advice": one.advice}
                for one in links.url_findings(link.url)
            ],
        }
        for link in required
    ]


@dataclass(slots=True, frozen=True)
class CallLine:
    """One call in the list; also a part of the stream (`#call-{id}`)."""

    id: str
    href: str
    number: str
    method: str
    subject: str
    gist: str
    state: str
    took: str
    at: str
    deadline: str | None
    progress: Any
    findings: int
    failure: str
    tool_error: bool
    size: str


def call_line(session: Workspace, call: Call) -> CallLine:
    params = call.params or {}
    given = params.get("arguments") if call.method in _FORMS else params
    return CallLine(
        id=call.id,
        href=f"/s/{session.id}/calls/{call.id}",
        number=call.id.lstrip("c"),
        method=call.method,
        subject=call.subject,
        gist=show.gist(given, 90) if given else "",
        state=call.state,
        took=show.duration(call.duration_ms),
        at=show.time_of_day(call.started_at),
        deadline=wire_time(call.deadline_at) if call.deadline_at is not None else None,
        progress=call.progress,
        findings=len(call.findings),
        failure=show.gist(call.error.message, 120) if call.error is not None else "",
        tool_error=call.tool_error and call.method == "tools/call",
        size=show.size(call.head.size) if call.head is not None else "",
    )


@dataclass(slots=True)
class Calls(Twofold):
    """Every call of the session, newest first."""

    template: ClassVar[str] = "calls/page.html"
    part: ClassVar[str | None] = "calls/_lines.html"


_LISTED_RESULT = 16 * 1024


def _small_result(call: Call) -> dict[str, Any]:
    """In a list, results are given while they are small; `result_omitted` says that one is not."""
    if call.reply is None or len(call.reply) > _LISTED_RESULT:
        return call_json(call, None) | {"result_omitted": call.reply is not None and call.state == "done"}
    if not call.has_result:
        return call_json(call, None) | {"result_omitted": False}
    value = jsontext.parse(call.reply).value
    return call_json(call, value.get("result") if isinstance(value, dict) else None) | {"result_omitted": False}


def calls(session: Workspace) -> Calls:
    """The list of calls."""
    listed = recent_calls(session)
    return Calls(
        page=lambda: {
            "shell": shell(session, "calls", "Calls"),
            "lines": [call_line(session, call) for call in listed],
            "connected": session.info.state == "ready",
        },
        json=lambda: {"calls": [_small_result(call) for call in listed]},
    )


@dataclass(slots=True)
class CallView(Context):
    """One call on its own page. Its JSON is made apart (`call_alone_json`): nothing of the page is in it."""

    template: ClassVar[str] = "calls/call.html"
    part: ClassVar[str | None] = "calls/_card.html"

    shell: Shell
    call: CallCard
    params: Html | None
    tool_href: str
    sequence: sequence.Drawing


async def show_result(session: Workspace, call: Call, *, alone: bool) -> Shown:
    """`shown_of` the result of a call, in a thread when it is large."""
    if call.reply is None or not is_large(call):
        return shown_of(session.id, call, await _result_of(session, call), alone=alone)
    async with _one_at_a_time():
        made = await apart(shown_of, session.id, call, await _result_of(session, call), alone=alone)
    for root, value in made.parsed.items():
        await values.put((session.id, call.id, root), call.reply, value)
    return made


async def call(session: Workspace, call: Call, *, full: bool = False) -> CallView:
    """One call with its result, as a page."""
    shown = await show_result(session, call, alone=True)
    return CallView(
        shell=shell(session, "call", f"Call {call.id.lstrip('c')}", of=call.id),
        call=call_card(session, call, shown=shown, alone=True, full=full),
        params=show.tree(call.params, open_depth=3, label="What was asked") if call.params else None,
        tool_href=_form_of(session, call) if call.method == "tools/call" else "",
        sequence=sequence.of_call(session, call),
    )


async def call_alone_json(session: Workspace, call: Call) -> dict[str, Any]:
    """One call with its result, for scripts."""
    return call_json(call, await result_of(session, call))
