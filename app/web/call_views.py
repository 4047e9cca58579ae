"""Calls: a card with its result, a line in the list, a page of its own, and the JSON of each."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import anyio.to_thread

from app.core import jsontext
from app.core.model import (
    Call,
    Finding,
    wire_time,
)
from app.sessions import Session
from app.web import ask_views, media
from app.web import render as show
from app.web.render import Html
from app.web.shell import Context, Shell, shell, text_of, tool_keys, tool_links

CARDS = 20
"""Cards of recent calls on a tool's page."""
CARD_BLOCKS = 40
CARD_TEXT = 6_000
CARD_REPLY_BYTES = 128 * 1024
"""A larger reply is read in a thread, when a tab asks for it."""
_SEARCHABLE = 4_000

# ------------------------------------------------------------------------------------------------------------- calls


def recent_calls(session: Session) -> list[Call]:
    """The calls a person made, newest first."""
    return [call for call in reversed(session.calls.values()) if not call.quiet]


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
    search: str = ""
    """Where its tree can be searched."""


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

    @property
    def empty(self) -> bool:
        return not self.blocks and self.structured is None and self.plain is None


ROOT_TEXT = re.compile(r"/contents?/[0-9]{1,6}(?:/resource)?/text")
"""Pointers to texts that may be JSON of their own."""
_WEB = re.compile(r"https?://[^\s<>\"'\\]{1,2000}", re.IGNORECASE)
_JSON_TEXT = 32 * 1024 * 1024


def address(session_id: str, call_id: str, verb: str, root: str) -> str:
    """Where a part of a result is to be had; `root` is the pointer of the tree that it belongs to."""
    return f"/s/{session_id}/calls/{call_id}/{verb}?{urlencode({'root': root})}"


class _Shower:
    """Turns a result into blocks and trees."""

    def __init__(self, session_id: str, call_id: str, alone: bool, marks: Iterable[str]) -> None:
        self.session_id, self.call_id, self.alone, self.marks = session_id, call_id, alone, marks
        self.text_limit = 128 * 1024 if alone else CARD_TEXT
        self.nodes = show.MAX_NODES if alone else 600
        self.parsed: dict[str, Any] = {}

    def where(self, verb: str, root: str) -> str:
        return address(self.session_id, self.call_id, verb, root)

    def tree(self, value: Any, root: str, label: str, open_depth: int = 3) -> Html:
        marks = self.marks if root == "/structuredContent" else ()
        source = self.where("branch", root)
        return show.tree(value, open_depth=open_depth, max_nodes=self.nodes, marks=marks, label=label, source=source)

    def text(self, label: str, text: str, root: str) -> Block:
        cut = max(0, len(text) - self.text_limit)
        if text.lstrip()[:1] in ("{", "[") and len(text) <= _JSON_TEXT:
            parsed = jsontext.parse(text.encode(errors="replace"))
            if isinstance(parsed.value, dict | list) and parsed.value:
                self.parsed[root] = parsed.value
                tree = self.tree(parsed.value, root, label)
                search = self.where("search", root) if len(text) > _SEARCHABLE else ""
                return Block("json", f"{label}, which is JSON", text[: self.text_limit], cut, tree, search=search)
        return Block("text", label, text[: self.text_limit], cut)

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
            return Block("link", "Resource link", f"{title}  {uri}" if title else uri, link=web_link(uri))
        if kind == "resource" and isinstance(item.get("resource"), dict):
            return self.resource(item["resource"], f"{root}/resource")
        label = f"Content of type {show.gist(kind, 40)}" if kind is not None else "Content without a type"
        return Block("json", label, json=self.tree(item, root, label, 2))

    def resource(self, held: dict[str, Any], root: str) -> Block:
        uri = text_of(held.get("uri"))[:2_000]
        if isinstance(held.get("text"), str):
            about = f"Resource {uri}, {text_of(held.get('mimeType'))[:80] or 'no type'}"
            return self.text(about, held["text"], f"{root}/text")
        return self.bytes("Resource", held.get("blob"), held.get("mimeType"), uri)

    def shown(self, method: str, result: Any) -> Shown:
        many = 500 if self.alone else CARD_BLOCKS
        if isinstance(result, dict) and method == "tools/call" and isinstance(result.get("content"), list):
            content = result["content"]
            blocks = [self.block(item, f"/content/{index}") for index, item in enumerate(content[:many])]
            structured = None
            if "structuredContent" in result:
                structured = self.tree(result["structuredContent"], "/structuredContent", "Structured content")
            return Shown(
                blocks=blocks,
                blocks_cut=len(content) - len(blocks),
                structured=structured,
                tool_error=result.get("isError") is True,
                search=self.where("search", "/structuredContent") if structured is not None else "",
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
            return Shown(blocks=blocks, blocks_cut=len(content) - len(blocks))
        if result is None:
            return Shown()
        return Shown(plain=self.tree(result, "", "Result"), search=self.where("search", ""))


def web_link(uri: str) -> str:
    """The address when a person may open it from here: http and https only (S32)."""
    return uri if _WEB.fullmatch(uri) else ""


def shown_of(session_id: str, call: Call, result: Any, *, alone: bool) -> Shown:
    """A result, as it can be shown."""
    return _Shower(session_id, call.id, alone, _pointers(call.findings)).shown(call.method, result)


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
    """Results that were read a moment ago: whoever opens a branch of a large one does not read it all again."""

    most, seconds = 3, 60.0

    def __init__(self) -> None:
        self._held: dict[tuple[str, str, str], tuple[bytes, Any, float]] = {}

    def get(self, key: tuple[str, str, str], reply: bytes) -> tuple[bool, Any]:
        found = self._held.pop(key, None)
        if found is None or found[0] is not reply:
            return False, None
        self._held[key] = (reply, found[1], time.monotonic())
        return True, found[1]

    def put(self, key: tuple[str, str, str], reply: bytes, value: Any) -> None:
        self._held[key] = (reply, value, time.monotonic())
        while len(self._held) > self.most:
            del self._held[next(iter(self._held))]
        asyncio.get_running_loop().call_later(self.seconds + 1, self._forget)

    def _forget(self) -> None:
        old = time.monotonic() - self.seconds
        for key in [key for key, (_, _, used) in self._held.items() if used < old]:
            del self._held[key]


_values = _Values()


async def result_of(session: Session, call: Call, root: str = "") -> Any:
    """A result, or the JSON that a text in it holds (`root` is that text's pointer). KeyError when there is none."""
    if call.reply is None or call.state != "done":
        return None
    key = (session.id, call.id, root if ROOT_TEXT.fullmatch(root) else "")
    known, value = _values.get(key, call.reply)
    if not known:
        if key[2]:
            text = show.at_pointer(await result_of(session, call), root)
            if not isinstance(text, str):
                raise KeyError(root)
            value = (await jsontext.parse_async(text.encode(errors="replace"))).value
        else:
            value = await session.result(call)
        if len(call.reply) > CARD_REPLY_BYTES:
            _values.put(key, call.reply, value)
    return value if key[2] else show.at_pointer(value, root)


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
    """The page of its tool with these arguments in the form."""
    asks: list[tuple[str, str, str, bool]]
    """What the server asked while it ran: id, kind, state in words, whether it waits."""

    @property
    def settled(self) -> bool:
        return self.state in {"done", "failed", "cancelled"}


def _pointers(findings: list[Finding]) -> list[str]:
    """The places in the result that findings speak of, where their text names one in `/pointer/form`."""
    found: list[str] = []
    for one in findings:
        found += re.findall(r"`(/[^`\s]{0,200})`", one.text)
    return found[:50]


def call_card(
    session: Session, call: Call, *, shown: Shown | None = None, alone: bool = False, full: bool = False
) -> CallCard:
    """One call as a card. `alone` on its own page, which brings a large result as `shown`; elsewhere the tab fetches
    that by itself."""
    too_large = call.reply is not None and len(call.reply) > CARD_REPLY_BYTES and shown is None
    if shown is None:
        result = None
        if call.reply is not None and not too_large:
            value = jsontext.parse(call.reply).value
            result = value.get("result") if isinstance(value, dict) else None
        shown = shown_of(session.id, call, result, alone=alone)
    raw, raw_cut = ("", 0)
    if alone and call.reply is not None:
        raw, raw_cut = show.raw_text(call.reply, len(call.reply) if full else 32 * 1024)
    progress = call.progress
    words = ""
    if progress is not None:
        words = show.figure(progress.progress)
        words += f" of {show.figure(progress.total)}" if progress.total is not None else ""
    params = call.params or {}
    given = params.get("arguments") if call.method == "tools/call" else params
    leg = call.legs[-1] if call.legs else None
    return CallCard(
        id=call.id,
        base=f"/s/{session.id}",
        number=call.id.lstrip("c"),
        method=call.method,
        subject=call.subject,
        gist=show.gist(given, 100) if given else "",
        state=call.state,
        tool_error=shown.tool_error,
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
        size=show.size(len(call.reply)) if call.reply is not None else "",
        request_seq=leg.request_seq if leg is not None else None,
        reply_seq=leg.reply_seq if leg is not None else None,
        legs=len(call.legs),
        raw=raw,
        raw_cut=raw_cut,
        full=full,
        alone=alone,
        too_large=too_large,
        again=_again(session, call),
        asks=ask_views.asks_of(session, call.asks),
    )


def _again(session: Session, call: Call) -> str:
    """The address that loads the arguments of a call into the form of its tool; "" when that is not listed."""
    if call.method != "tools/call":
        return ""
    for key, item in zip(tool_keys(session.tools.items), session.tools.items, strict=True):
        if isinstance(item, dict) and is_call_of(call, item.get("name")):
            return f"/s/{session.id}/tools/{quote(key, safe='~')}?from={call.id}"
    return ""


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
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "data": error.data, "kind": error.kind},
        "task_id": call.task_id,
        "asks": list(call.asks),
        "findings": [show.finding_json(one) for one in call.findings],
        "logs": [
            {"at": wire_time(one.at), "level": one.level, "logger": one.logger, "data": one.data} for one in call.logs
        ],
        "started_at": wire_time(call.started_at),
        "ended_at": None if call.ended_at is None else wire_time(call.ended_at),
        "duration_ms": call.duration_ms,
        "cancel_reason": call.cancel_reason,
    }


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


_IS_ERROR = re.compile(rb'"isError"\s*:\s*true')


def _reports_error(call: Call) -> bool:
    """Whether a tool answered with `isError`. The text is searched first: most replies need no second reading."""
    if call.method != "tools/call" or call.reply is None or len(call.reply) > CARD_REPLY_BYTES:
        return False
    if _IS_ERROR.search(call.reply) is None:
        return False
    value = jsontext.parse(call.reply).value
    result = value.get("result") if isinstance(value, dict) else None
    return isinstance(result, dict) and result.get("isError") is True


def call_line(session: Session, call: Call) -> CallLine:
    params = call.params or {}
    given = params.get("arguments") if call.method == "tools/call" else params
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
        tool_error=_reports_error(call),
    )


@dataclass(slots=True)
class Calls(Context):
    """Every call of the session, newest first."""

    template: ClassVar[str] = "pages/calls.html"
    part: ClassVar[str | None] = "parts/_calls.html"

    shell: Shell
    lines: list[CallLine]
    connected: bool
    json: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {"calls": self.json}


_LISTED_RESULT = 16 * 1024


def _small_result(call: Call) -> dict[str, Any]:
    """In a list, results are given while they are small; `result_omitted` says that one is not."""
    if call.reply is None or len(call.reply) > _LISTED_RESULT:
        return call_json(call, None) | {"result_omitted": call.reply is not None and call.state == "done"}
    value = jsontext.parse(call.reply).value
    return call_json(call, value.get("result") if isinstance(value, dict) else None) | {"result_omitted": False}


def calls(session: Session) -> Calls:
    """The list of calls."""
    listed = recent_calls(session)
    return Calls(
        shell=shell(session, "calls", "Calls"),
        lines=[call_line(session, call) for call in listed],
        connected=session.info.state == "ready",
        json=[_small_result(call) for call in listed],
    )


@dataclass(slots=True)
class CallView(Context):
    """One call on its own page."""

    template: ClassVar[str] = "pages/call.html"
    part: ClassVar[str | None] = "parts/_call.html"

    shell: Shell
    call: CallCard
    params: Html | None
    tool_href: str
    json: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.json


async def show_result(session: Session, call: Call, result: Any, *, alone: bool) -> Shown:
    """`shown_of`, in a thread when the result is large."""
    if call.reply is None or len(call.reply) <= CARD_REPLY_BYTES:
        return shown_of(session.id, call, result, alone=alone)
    made = await anyio.to_thread.run_sync(lambda: shown_of(session.id, call, result, alone=alone))
    for root, value in made.parsed.items():
        _values.put((session.id, call.id, root), call.reply, value)
    return made


async def call(session: Session, call: Call, *, full: bool = False) -> CallView:
    """One call with its result."""
    result = await result_of(session, call)
    tool_href = ""
    if call.method == "tools/call":
        names = {link.name: link.href for link in tool_links(session)}
        tool_href = names.get(call.subject, "")
    return CallView(
        shell=shell(session, "call", f"Call {call.id.lstrip('c')}", of=call.id),
        call=call_card(
            session, call, shown=await show_result(session, call, result, alone=True), alone=True, full=full
        ),
        params=show.tree(call.params, open_depth=3, label="What was asked") if call.params else None,
        tool_href=tool_href,
        json=call_json(call, result),
    )
