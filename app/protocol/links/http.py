"""Streamable HTTP, and the older HTTP with SSE: links of our own on the guarded client.

Ours rather than the SDK's transports, which is the simpler way out of their faults: there, a
network error on one POST ends the connection, a 500 leaves a caller hanging, a slow notification delays everybody, the
GET stream is given up after two errors, bodies are read without a limit and parsed in the event loop. Containing each
from outside took more code than the few hundred lines here, and would still not show the exact bytes.

Each message is its own POST (R5-41) in a task of its own, so whatever happens to it happens to it alone. Everything
that arrives on any stream goes through one bounded queue, so a flood pushes back on its own socket. Owns session id,
revision header, resumption and the words for HTTP failures. Knows no JSON-RPC beyond "this POST carries request 7".
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urldefrag, urljoin

import anyio
import anyio.abc

from app import bounds
from app.core.errors import Trouble
from app.core.json.text import parse
from app.core.log import MessageLog
from app.core.rules import catalogue
from app.core.targets import HttpTarget
from app.core.wire import Exchange, Finding, RpcId, id_key
from app.egress import Answer, Egress, EgressError, split
from app.protocol.exchanges import Exchanges, egress_trouble
from app.protocol.links.base import (
    Barrier,
    Failed,
    Frame,
    Inbound,
    Link,
    LinkError,
    LinkHost,
    Outbound,
    Oversized,
    Place,
    Remarked,
)
from app.secrecy import masked_url
from app.settings import Limits

_LARGE = 256 * 1024
_REST_SECONDS = 0.002
_RESUMES_NOTE = "The stream of an answer ended before its reply, and is resumed."
_ENDED_EARLY = Trouble("cut", "The stream ended before the reply came.", "Look at the server's log, then call again.")
_NOT_RESUMED = Trouble(
    "cut",
    "The stream ended before the reply came, and the server resumes no streams (405).",
    "It named an event to resume from, and must then serve it. Call again.",
)
_COMPRESSED = Trouble("encoding", "The answer is compressed, though Parley asked for it not to be.", "")
_SAYS_WHO = frozenset({401, 403, 407, 429})
_OPENING = frozenset({"server/discover", "initialize"})
_WITH_A_BODY = frozenset({"", "text/plain", "application/octet-stream"})
"""Content types that are wrong for a reply, and that replies are found under."""
_FORGOTTEN = Trouble("session-gone", "The server no longer knows this session (404).", "Connect again for a new one.")
_NOT_FOUND_AGAIN = Trouble(
    "cut",
    "The stream ended before the reply came, and the server no longer knows where to resume it (404).",
    "It named an event to resume from, and must then serve it. Call again.",
)
_NOT_NOW = frozenset({429, 502, 503, 504})
"""What is said of a moment, often by somebody in front of the server, and not of the stream that was asked for."""
_BODY_SHOWN = 300
_BOM = b"\xef\xbb\xbf"
_FIELD_NAME = len(b"data: ")
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}")


# ------------------------------------------------------------------------------------------- server-sent events


@dataclass(slots=True, frozen=True)
class SseEvent:
    """One event of a stream: what was sent, exactly."""

    event: str
    data: bytes
    id: str | None
    retry: int | None
    """Milliseconds to wait before coming back, when the server said so."""


class SseParser:
    """Chunks in, events out, in linear time; an event above the limit is an Oversized, and ends the stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._after_cr = False
        self._first = True
        self._data: list[bytes] = []
        self._size = 0
        self._event, self._id, self._retry = "", None, None  # type: str, str | None, int | None

    def feed(self, chunk: bytes) -> list[SseEvent | Oversized]:
        """The events that this chunk completes."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        self._buffer += chunk
        if self._first:
            if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer):
                return []
            self._first = False
            if self._buffer.startswith(_BOM):
                del self._buffer[: len(_BOM)]
        events: list[SseEvent | Oversized] = []
        start, size = 0, len(self._buffer)
        feed, back = self._buffer.find(b"\n", self._searched), self._buffer.find(b"\r", self._searched)
        while feed >= 0 or back >= 0:
            end = min(each for each in (feed, back) if each >= 0)
            line = bytes(self._buffer[start:end])
            start = end + (2 if end == back and feed == back + 1 else 1)
            self._after_cr = end == back and start == size and feed != back + 1
            if 0 <= feed < start:
                feed = self._buffer.find(b"\n", start)
            if 0 <= back < start:
                back = self._buffer.find(b"\r", start)
            event = self._line(line)
            if event is not None:
                events.append(event)
        del self._buffer[:start]
        self._searched = len(self._buffer)
        if self._size + len(self._buffer) > self._limit + _FIELD_NAME:
            events.append(self._refused(bytes(self._buffer[: bounds.REFUSAL_BYTES]), self._size + len(self._buffer)))
            self._buffer.clear()
            self._searched = 0
        return events

    def _refused(self, rest: bytes, size: int) -> Oversized:
        prefix = _first(self._data) or rest.removeprefix(b"data:").removeprefix(b" ")
        self._data, self._size = [], 0
        return Oversized(prefix, size, False)

    def _line(self, line: bytes) -> SseEvent | Oversized | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._size += len(value) + 1
            case b"event":
                self._event = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("latin-1")  # so that the very same bytes go back
            case b"retry" if value.isdigit() and len(value) < 10:
                self._retry = int(value)
        return None

    def _dispatch(self) -> SseEvent | Oversized | None:
        """An empty line ends an event. One without data still carries an id or a retry (R5-43)."""
        if self._size - 1 > self._limit:
            return self._refused(b"", self._size - 1)
        found = SseEvent(self._event or "message", b"\n".join(self._data), self._id, self._retry)
        empty = not self._data and self._id is None and self._retry is None
        self._data, self._size, self._event, self._id, self._retry = [], 0, "", None, None
        return None if empty else found


# ---------------------------------------------------------------------------------------------- words for people


def status_trouble(status: int, url: str, answer: Answer, body: bytes) -> Trouble:
    """What to say of an HTTP status that is not a success."""
    said = "" if _compressed(answer) else _excerpt(body)
    quoted = f" It said: {said}" if said else ""
    kind = f"http-{status}"
    after = answer.header("retry-after")
    match status:
        case 401:
            return Trouble(
                kind,
                f"The server wants to know who you are (401).{quoted}",
                "Add an Authorization header to the target. Signing in with OAuth comes with a later release.",
            )
        case 403:
            return Trouble(
                kind, f"The server refuses this client (403).{quoted}", "Check the headers and the server's rules."
            )
        case 404:
            return Trouble(
                kind, f"There is nothing at this address (404).{quoted}", "Check the path: it often ends in /mcp."
            )
        case 405:
            return Trouble(
                kind,
                f"The address takes no POST (405).{quoted}",
                "Check the path. For a server of the older kind choose the transport SSE.",
            )
        case 429:
            wait = f" Try again in {after} s." if after.isdigit() else " Try again later."
            return Trouble(kind, f"The server says there were too many requests (429).{quoted}", wait.strip())
        case _ if 300 <= status < 400:
            where = _shown_address(answer.header("location"))
            return Trouble(
                kind,
                f"The server redirects ({status}) to {where or 'nowhere'}, and Parley does not follow there.",
                "Connect to that address, if you trust it. Parley follows a 307 or 308 within the origin, once.",
            )
        case _ if status >= 500:
            return Trouble(kind, f"The server failed ({status}).{quoted}", "Look at the server's log.")
        case _:
            return Trouble(
                kind, f"The server refused the request ({status}).{quoted}", "Check the address and the headers."
            )


def content_trouble(content_type: str, body: bytes) -> Trouble:
    """What to say of a success that is no MCP answer."""
    if "html" in content_type or body.lstrip()[:1] == b"<":
        return Trouble(
            "html",
            "The address answers with a web page, not with MCP.",
            "Check the path: the MCP endpoint often ends in /mcp.",
        )
    found = f"is of the type {content_type}" if content_type else "has no content type"
    return Trouble(
        "content-type",
        f"The answer {found}; MCP answers are application/json or text/event-stream.",
        "Check the path, and that the server speaks streamable HTTP.",
    )


def _shown_address(text: str) -> str:
    """An address that a server named, as it may be shown."""
    return masked_url(text) if len(text) <= bounds.SERVER_ADDRESS else f"an address of {len(text):,} characters"


def _excerpt(body: bytes) -> str:
    if body.lstrip()[:1] == b"<":
        return ""
    text = " ".join(body[:_BODY_SHOWN].decode(errors="replace").split())
    return f"“{text}”" if text else ""


def _media_type(answer: Answer) -> str:
    return answer.header("content-type").partition(";")[0].strip().lower()


def _compressed(answer: Answer) -> bool:
    return answer.header("content-encoding").strip().lower() not in ("", "identity")


def _own_error(body: bytes) -> dict[str, Any] | None:
    """The JSON-RPC error in the body of an answer that is no success; None when that is something else, like the
    `{"error": "invalid_token"}` of OAuth."""
    value = parse(body).value if body.lstrip()[:1] == b"{" else None
    return value if isinstance(value, dict) and "jsonrpc" in value and "error" in value else None


def _redirect(answer: Answer, url: str) -> str | None:
    """Where a 307 or 308 leads, which keep method and body, when it stays within the origin; else None."""
    if answer.status not in (307, 308):
        return None
    named = answer.header("location")
    if len(named) > bounds.SERVER_ADDRESS:
        return None
    where = _joined(url, named)
    try:
        return where if where != url and split(where).origin == split(url).origin else None
    except EgressError:
        return None


def _joined(base: str, named: str) -> str:
    """An address that a server named, seen from where we are."""
    try:
        return urldefrag(urljoin(base, named)).url
    except ValueError:
        return named  # and `split` says what is wrong with it


def _type_finding(media: str) -> Finding:
    found = f"is of the type {media[:100]}" if media else "has no content type"
    return catalogue.other_content_type(found=found)


def _status_finding(status: int) -> Finding:
    return catalogue.reply_with_202() if status == 202 else catalogue.reply_with_status(status=status)


def _message_in(event: SseEvent, rule: str = "R5-41") -> tuple[Finding, ...] | None:
    """What to say of the message in an event; None when there is none, as in keep-alives with a type of their own."""
    if not event.data:
        return None
    if event.event == "message":
        return ()
    if b'"jsonrpc"' not in event.data:
        return None
    return (catalogue.other_event_type(rule=rule, event=event.event),)


class _TooLarge(Exception):
    def __init__(self, prefix: bytes, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.prefix, self.size = prefix, size


def _first(parts: list[bytes]) -> bytes:
    """The beginning of an event that was refused, without putting the rest of it together."""
    found = b""
    for part in parts:
        found += part[: bounds.REFUSAL_BYTES]
        if len(found) >= bounds.REFUSAL_BYTES:
            break
    return found[: bounds.REFUSAL_BYTES]


async def _body(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """The whole body, if it is not larger than the limit."""
    found = bytearray()  # and no list: a body may come byte by byte
    async for chunk in chunks:
        found += chunk
        if len(found) > limit:
            raise _TooLarge(bytes(found[: bounds.REFUSAL_BYTES]), len(found))
    return bytes(found)


async def _beginning(answer: Answer, limit: int = bounds.REFUSAL_BYTES) -> bytes:
    """The beginning of a body that is only shown."""
    found = bytearray()
    async for chunk in answer.body:
        found += chunk
        if len(found) >= limit:
            break
    return bytes(found[:limit])


# --------------------------------------------------------------------------------------------------- both links


class _HttpLink:
    """What both HTTP transports share: the queue, the headers, the record of exchanges."""

    def __init__(self, target: HttpTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog) -> None:
        self._target, self._limits, self._host = target, limits, host
        self._exchanges = Exchanges(egress, log, target.secret)
        self._put, self._take = anyio.create_memory_object_stream[Inbound](bounds.LINK_QUEUE)
        self._group: anyio.abc.TaskGroup | None = None
        self._waiting: dict[RpcId, anyio.CancelScope] = {}
        self._stateless: set[RpcId] = set()
        self._trouble: Trouble | None = None
        self._version: str | None = None
        self._moved_to: str | None = None
        """Where the server redirected us to, within its origin."""
        self.pid: int | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Hold the tasks of this link until it is cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            self._host.moved(None)
            self._started()
            task_status.started()
            await anyio.sleep_forever()

    def _started(self) -> None:
        """The task group is open."""

    async def receive(self) -> list[Inbound] | None:
        """What arrived on any of the streams."""
        items: list[Inbound] = []
        try:
            items.append(await self._take.receive())
            while len(items) < bounds.LINK_QUEUE:
                items.append(self._take.receive_nowait())
        except anyio.WouldBlock:
            pass
        except anyio.EndOfStream:
            return items or None
        return items

    def agreed(self, version: str) -> None:
        """From now on every request carries the revision (R5-46)."""
        self._version = version

    def settled(self, rpc_id: RpcId, *, answered: bool) -> None:
        """The stream that waits for this reply may end. In 2026-07-28 closing it is how one cancels (R6-50)."""
        scope = self._waiting.pop(rpc_id, None)
        stateless = rpc_id in self._stateless
        self._stateless.discard(rpc_id)
        if scope is None:
            return
        if stateless and not answered:
            scope.cancel()
        else:
            scope.deadline = anyio.current_time() + bounds.LINGER_SECONDS

    async def ended(self) -> Trouble:
        """Why it ended."""
        return self._trouble or Trouble("closed", "The server closed the connection.", "Connect again.")

    def close(self) -> None:
        """Nobody reads any more."""
        self._put.close()
        self._take.close()

    async def goodbye(self) -> None:
        """Tell the server that we leave, where there is a way to say so."""

    def _over(self, trouble: Trouble) -> None:
        """The whole channel has ended."""
        self._trouble = self._trouble or trouble
        self._put.close()

    async def _tell(self, item: Inbound) -> None:
        try:
            await self._put.send(item)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    def _headers(self, accept: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
        headers = [("accept", accept), *more]
        if self._version is not None and not any(name == "mcp-protocol-version" for name, _ in more):
            headers.append(("mcp-protocol-version", self._version))
        return headers + list(self._target.headers.items())

    @property
    def _url(self) -> str:
        return self._moved_to or self._target.url

    def _move(self, where: str) -> str:
        """Use this address from now on."""
        self._moved_to = where
        self._host.moved(where)
        return where

    def _goes_to(self, where: str, status: int) -> str:
        """Say that a redirect is followed, and how, for the exchange that follows it."""
        shown = masked_url(where)
        self._host.step(f"The server redirects ({status}) to {shown}, within its origin, so Parley goes there.")
        return f"The server redirected here ({status})."

    async def _gently(self, answer: Answer) -> AsyncIterator[bytes]:
        """The body in chunks. A large one rests while somebody waits for another session, and its sender with it."""
        read = 0
        async for chunk in answer.body:
            yield chunk
            read += len(chunk)
            if read >= _LARGE and self._host.others_wait():
                await anyio.sleep(_REST_SECONDS)

    async def _events(self, answer: Answer) -> AsyncIterator[SseEvent | Oversized]:
        parser = SseParser(self._limits.message_bytes)
        async for chunk in self._gently(answer):
            for at in range(0, len(chunk), bounds.STREAM_SLICE):
                for event in parser.feed(chunk[at : at + bounds.STREAM_SLICE]):
                    yield event
                    if isinstance(event, Oversized):
                        return

    async def _failed(self, about: Outbound, exchange: Exchange, trouble: Trouble) -> None:
        """One POST got nowhere: its request fails, or a remark stands beside the frame."""
        exchange.error = exchange.error or trouble.message
        if about.delivery is not None:
            about.delivery.failed(trouble)
        if about.kind == "request":
            await self._tell(Failed(about.rpc_id, trouble))
        else:
            await self._tell(Remarked(about.seq, catalogue.post_failed(message=trouble.message, advice=trouble.advice)))


@contextmanager
def _delivering(about: Outbound) -> Iterator[None]:
    """Whatever happens to a POST, whoever waits for its delivery hears of it."""
    try:
        yield
        if about.delivery is not None:
            about.delivery.taken()
    finally:
        if about.delivery is not None:
            about.delivery.failed(Trouble("lost", "The connection ended before this was delivered.", "Connect again."))


# --------------------------------------------------------------------------------------------- streamable HTTP


class StreamableLink(_HttpLink):
    """Streamable HTTP of 2025-03-26 and later (R5-41…R5-46)."""

    def __init__(self, target: HttpTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog) -> None:
        super().__init__(target, limits, egress, host, log)
        self._session_id: str | None = None

    def _headers(self, accept: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
        headers = super()._headers(accept, *more)
        if self._session_id is not None:
            headers.append(("mcp-session-id", self._session_id))
        return headers

    async def send(self, raw: bytes, about: Outbound) -> None:
        """One POST in a task of its own; nobody waits for it unless told to."""
        if self._group is None or self._trouble is not None:
            raise LinkError(await self.ended())
        scope = anyio.CancelScope()
        if about.kind == "request":
            self._waiting[about.rpc_id] = scope
            if about.stateless:
                self._stateless.add(about.rpc_id)
        self._group.start_soon(self._post, raw, about, scope)

    async def _post(self, raw: bytes, about: Outbound, scope: anyio.CancelScope) -> None:
        with scope, _delivering(about):
            resume = await self._posted(raw, about)
            if about.method == "notifications/initialized" and self._group is not None:
                self._group.start_soon(self._listen)
            if resume is not None:
                await self._resume(about, resume)

    async def _posted(self, raw: bytes, about: Outbound) -> _Resume | None:
        url, note = self._url, None  # type: str, str | None
        content = ("content-type", "application/json")
        while True:
            headers = self._headers("application/json, text/event-stream", content, *about.headers)
            exchange = self._exchanges.begin("POST", url, headers, about.seq, note)
            silence = None if about.kind == "request" else bounds.SHORT_READ_SECONDS
            try:
                async with self._exchanges.send(exchange, url, headers, raw, read=silence) as answer:
                    where = _redirect(answer, url) if url == self._target.url else None
                    if where is None or self._moved_to not in (None, where):
                        return await self._take_answer(answer, about, exchange)
                    if self._moved_to is None:
                        note = self._goes_to(where, answer.status)
                    url = self._move(where)
            except EgressError as fault:
                await self._failed(about, exchange, egress_trouble(fault, url))
                return None
            except _TooLarge as fault:
                await self._too_large(about, exchange, fault.prefix, fault.size)
                return None

    async def _take_answer(self, answer: Answer, about: Outbound, exchange: Exchange) -> _Resume | None:
        media = _media_type(answer)
        if not 200 <= answer.status < 300:
            await self._refused(answer, about, exchange)
            return None
        if about.method == "initialize":
            await self._keep_session(answer, about)
        if about.kind != "request":
            if answer.status != 202:
                finding = catalogue.accepted_with_status(kind=about.kind, status=answer.status)
                await self._tell(Remarked(about.seq, finding))
        elif _compressed(answer):
            await self._failed(about, exchange, _COMPRESSED)
        elif media == "text/event-stream":
            if answer.status != 200:
                await self._tell(Remarked(about.seq, _status_finding(answer.status)))
            return await self._stream(answer, about, exchange)
        else:
            await self._take_body(answer, media, about, exchange)
        return None

    async def _take_body(self, answer: Answer, media: str, about: Outbound, exchange: Exchange) -> None:
        """The whole body of a success: the reply, or what came in its place."""
        is_json = media == "application/json"
        if is_json or media.endswith("+json") or media in _WITH_A_BODY:
            body = await _body(self._gently(answer), self._limits.message_bytes)
        else:
            body = await _beginning(answer)
        if body or (is_json and answer.status != 202):
            findings: tuple[Finding, ...] = ()
            meant = body.lstrip()[:1] in (b"{", b"[") and b'"jsonrpc"' in body
            if meant:
                findings += () if is_json else (_type_finding(media),)
                findings += () if answer.status == 200 else (_status_finding(answer.status),)
            place: Place = "body" if is_json or meant else "other"
            await self._tell(Frame(body, about.rpc_id, exchange, place, findings))
            if await self._is_settled(about.rpc_id):
                return
        if answer.status == 202:
            await self._tell(Remarked(about.seq, catalogue.accepted_without_reply()))
        elif is_json:
            trouble = Trouble("no-reply", "The answer does not contain the reply.", "")
            await self._failed(about, exchange, trouble)
        else:
            await self._failed(about, exchange, content_trouble(media, body))

    async def _keep_session(self, answer: Answer, about: Outbound) -> None:
        found = answer.header("mcp-session-id")
        if not found:
            return
        if _SESSION_ID.fullmatch(found) is None:
            await self._tell(Remarked(about.seq, catalogue.improper_session_id()))
            return
        self._session_id = found

    async def _refused(
        self, answer: Answer, about: Outbound, exchange: Exchange, trouble: Trouble | None = None
    ) -> None:
        """A status that is no success: perhaps with a JSON-RPC error inside, which is then the reply."""
        body = await _beginning(answer)
        value = None if _compressed(answer) else _own_error(body)
        is_request = about.kind == "request"
        answers_us = is_request and value is not None and id_key(value.get("id")) == id_key(about.rpc_id)
        forgotten = answer.status == 404 and self._session_id is not None and not answers_us
        if value is not None:
            # Who may come in is said by the status, and by no error inside: it says nothing of the server's era.
            closed_to_us = about.method in _OPENING and answer.status in _SAYS_WHO
            via = about.rpc_id if is_request and not forgotten else None
            await self._tell(Frame(body, via, exchange, "refusal", settles=not closed_to_us))
            if is_request and not forgotten and await self._is_settled(about.rpc_id):
                return
            error = value["error"]
            said = error.get("message") if isinstance(error, dict) else None
            body = said.encode(errors="replace") if isinstance(said, str) else body
        if forgotten:
            quoted = "" if _compressed(answer) else _excerpt(body)
            said = f"{_FORGOTTEN.message} It said: {quoted}." if quoted else _FORGOTTEN.message
            exchange.error = said
            self._session_id = None
            self._over(replace(_FORGOTTEN, message=said))
            return
        await self._failed(about, exchange, trouble or status_trouble(answer.status, self._url, answer, body))

    async def _too_large(self, about: Outbound, exchange: Exchange, prefix: bytes, size: int) -> None:
        limit = self._limits.message_bytes / 1048576
        await self._tell(Oversized(prefix, size, False, exchange))
        await self._failed(
            about,
            exchange,
            Trouble(
                "oversized", f"The answer is larger than {limit:g} MiB, so it was not read.", "Ask for less at a time."
            ),
        )

    # ---- streams

    async def _stream(
        self, answer: Answer, about: Outbound, exchange: Exchange, before: _Resume | None = None
    ) -> _Resume | None:
        """Frames of an SSE answer, until it ends; how to go on when it ended before the reply came."""
        last_id = None if before is None else before.last_id
        retry = bounds.RETRY_SECONDS if before is None else before.after
        cut: EgressError | None = None
        try:
            async for event in self._events(answer):
                if isinstance(event, Oversized):
                    await self._too_large(about, exchange, event.prefix, event.size)
                    return None
                last_id = event.id if event.id is not None else last_id
                retry = max(event.retry / 1000, bounds.RETRY_AT_LEAST) if event.retry is not None else retry
                findings = _message_in(event)
                if findings is not None:
                    await self._tell(Frame(event.data, about.rpc_id, exchange, "event", findings))
        except EgressError as fault:
            cut = fault
        if await self._is_settled(about.rpc_id):
            return None
        if last_id and not about.stateless:  # an empty id takes back the one before
            return _Resume(last_id, retry)
        await self._failed(about, exchange, _ENDED_EARLY if cut is None else egress_trouble(cut, self._url))
        return None

    async def _is_settled(self, rpc_id: RpcId) -> bool:
        """Whether the reply has come, once everything that arrived has been looked at."""
        reached = anyio.Event()
        await self._tell(Barrier(reached))
        if self._trouble is None:
            await reached.wait()
        return rpc_id not in self._waiting

    async def _resume(self, about: Outbound, resume: _Resume) -> None:
        """Come back for the rest of a stream, after exactly the time the server asked for (R5-43)."""
        url, failures = self._url, 0
        while True:
            await anyio.sleep(resume.after if failures == 0 else max(resume.after, 2**failures))
            if about.rpc_id not in self._waiting:
                return
            headers = self._headers("text/event-stream", ("last-event-id", resume.last_id))
            exchange = self._exchanges.begin("GET", url, headers, note=_RESUMES_NOTE)
            try:
                async with self._exchanges.send(exchange, url, headers) as answer:
                    if answer.status in _NOT_NOW and failures + 1 < bounds.RESUMES:
                        failures += 1
                        continue
                    if answer.status == 405:
                        await self._failed(about, exchange, _NOT_RESUMED)
                        return
                    if answer.status != 200 or _media_type(answer) != "text/event-stream":
                        gone = _NOT_FOUND_AGAIN if answer.status == 404 else None
                        await self._refused(answer, about, exchange, gone)
                        return
                    if _compressed(answer):
                        await self._failed(about, exchange, _COMPRESSED)
                        return
                    again = await self._stream(answer, about, exchange, resume)
            except EgressError as fault:
                failures += 1
                if failures == bounds.RESUMES:
                    await self._failed(about, exchange, egress_trouble(fault, url))
                    return
                continue
            if again is None:
                return
            failures, resume = 0, again

    async def _listen(self) -> None:
        """The GET stream, on which a server speaks unasked (R5-42): kept up for as long as the connection lives."""
        url, last_id, wait = self._url, None, bounds.RETRY_SECONDS  # type: str, str | None, float
        opened, retry = False, None  # type: bool, float | None
        while self._trouble is None:
            began, heard, words = None, False, "ended"  # type: float | None, bool, str
            more = (("last-event-id", last_id),) if last_id else ()
            headers = self._headers("text/event-stream", *more)
            exchange = self._exchanges.begin("GET", url, headers)
            try:
                async with self._exchanges.send(exchange, url, headers) as answer:
                    where = _redirect(answer, url) if url == self._target.url else None
                    if where is not None:
                        self._goes_to(where, answer.status)
                        url = where
                        continue
                    if answer.status == 404 and self._session_id is not None and opened:
                        await self._refused(answer, Outbound("notification", 0), exchange)
                        return
                    if answer.status != 200 or _media_type(answer) != "text/event-stream":
                        body = await _beginning(answer)
                        if answer.status < 500 and answer.status != 429:
                            offered = (
                                "not offered by the server (405)"
                                if answer.status == 405
                                else f"refused ({answer.status})"
                            )
                            self._host.stream_changed(offered)
                            return
                        words = exchange.error = status_trouble(answer.status, url, answer, body).message
                    elif _compressed(answer):
                        self._host.stream_changed("not read: it is compressed, though Parley asked for it not to be")
                        self._host.step("The GET stream is compressed, so nothing that comes on it can be read.")
                        return
                    else:
                        opened, began = True, anyio.current_time()
                        self._host.stream_changed("open")
                        async for event in self._events(answer):
                            if isinstance(event, Oversized):
                                await self._tell(Oversized(event.prefix, event.size, False, exchange))
                                last_id = retry = None  # or it would be sent again, at once
                                break
                            heard = True
                            last_id = event.id if event.id is not None else last_id
                            retry = max(event.retry / 1000, bounds.RETRY_AT_LEAST) if event.retry is not None else retry
                            findings = _message_in(event)
                            if findings is not None:
                                await self._tell(Frame(event.data, None, exchange, "unasked", findings))
            except EgressError as fault:
                words = egress_trouble(fault, url).message
            # A stream that somebody in between ends for its silence did not fail, however often that happens.
            if began is not None and (
                heard or retry is not None or anyio.current_time() - began >= bounds.STEADY_SECONDS
            ):
                wait = bounds.RETRY_SECONDS if retry is None else retry
            else:
                wait = min(wait * 2, bounds.RETRY_AT_MOST)
            self._host.stream_changed(f"down, trying again in {wait:g} s: {words}")
            await anyio.sleep(wait)

    async def goodbye(self) -> None:
        """Tell the server that we leave (R5-45); that it does not care is no news."""
        if self._session_id is None or self._trouble is not None:
            return
        headers = self._headers("application/json, text/event-stream")
        exchange = self._exchanges.begin("DELETE", self._url, headers)
        with anyio.move_on_after(bounds.GOODBYE_SECONDS), suppress(EgressError):
            async with self._exchanges.send(exchange, self._url, headers, connect=1, read=bounds.GOODBYE_SECONDS):
                pass


@dataclass(slots=True, frozen=True)
class _Resume:
    """Where and when to go on reading."""

    last_id: str
    after: float


# ----------------------------------------------------------------------------------------------- HTTP with SSE


class SseLink(_HttpLink):
    """HTTP with SSE of 2024-11-05: one stream for everything the server says, POSTs for what we say (R5-47)."""

    def __init__(self, target: HttpTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog) -> None:
        super().__init__(target, limits, egress, host, log)
        self._endpoint: str | None = None
        self._named: str | None = None
        """The endpoint as the server named it, before any redirect."""
        self._known = anyio.Event()

    def _started(self) -> None:
        if self._group is not None:
            self._group.start_soon(self._listen)

    async def send(self, raw: bytes, about: Outbound) -> None:
        """One POST in a task of its own, to where the server said; the reply comes on the stream."""
        if self._group is None:
            raise LinkError(await self.ended())
        await self._known.wait()
        if self._endpoint is None or self._trouble is not None:
            raise LinkError(await self.ended())
        self._group.start_soon(self._post, raw, about, self._endpoint)

    async def _post(self, raw: bytes, about: Outbound, url: str) -> None:
        with _delivering(about):
            await self._posted(raw, about, url)

    async def _posted(self, raw: bytes, about: Outbound, url: str) -> None:
        headers = self._headers("application/json", ("content-type", "application/json"))
        note = None
        while True:
            exchange = self._exchanges.begin("POST", url, headers, about.seq, note)
            try:
                async with self._exchanges.send(exchange, url, headers, raw, read=bounds.SHORT_READ_SECONDS) as answer:
                    where = _redirect(answer, url) if url == self._named else None
                    if where is None:
                        if not 200 <= answer.status < 300:
                            body = await _beginning(answer)
                            await self._failed(about, exchange, status_trouble(answer.status, url, answer, body))
                        return
                    if self._endpoint == self._named:
                        note = self._goes_to(where, answer.status)
                    url = self._endpoint = where
            except EgressError as fault:
                await self._failed(about, exchange, egress_trouble(fault, url))
                return

    async def _listen(self) -> None:
        trouble = Trouble("cut", "The server ended the stream, and with it the connection.", "Connect again.")
        try:
            trouble = await self._listened() or trouble
        except EgressError as fault:
            trouble = egress_trouble(fault, self._url)
        finally:
            self._over(trouble)
            self._known.set()

    async def _listened(self) -> Trouble | None:
        headers = self._headers("text/event-stream")
        while True:
            exchange = self._exchanges.begin("GET", self._url, headers)
            async with self._exchanges.send(exchange, self._url, headers) as answer:
                where = _redirect(answer, self._url) if self._moved_to is None else None
                if where is not None:
                    self._goes_to(where, answer.status)
                    self._move(where)
                else:
                    trouble = await self._heard(answer, exchange)
                    exchange.error = None if trouble is None else trouble.message
                    return trouble

    async def _heard(self, answer: Answer, exchange: Exchange) -> Trouble | None:
        if answer.status != 200:
            return status_trouble(answer.status, self._url, answer, await _beginning(answer))
        if _media_type(answer) != "text/event-stream":
            return content_trouble(_media_type(answer), await _beginning(answer))
        if _compressed(answer):
            return _COMPRESSED
        async for event in self._events(answer):
            if isinstance(event, Oversized):
                await self._tell(Oversized(event.prefix, event.size, True, exchange))
                return None
            if event.event == "endpoint" and self._endpoint is None:
                trouble = self._found_endpoint(event.data)
                if trouble is not None:
                    return trouble
            elif (findings := _message_in(event, "R5-47")) is not None:
                if self._endpoint is None:
                    return Trouble(
                        "no-endpoint", "The stream does not begin with an `endpoint` event.", "Check the address."
                    )
                await self._tell(Frame(event.data, None, exchange, "event", findings))
        return None

    def _found_endpoint(self, data: bytes) -> Trouble | None:
        """Where to POST. It must be of the same origin: a server does not get to aim us at somebody else."""
        if len(data) > bounds.SERVER_ADDRESS:
            said = f"The server named an endpoint of {len(data):,} bytes, and Parley takes {bounds.SERVER_ADDRESS:,}."
            return Trouble("endpoint", said, "Check the server.")
        try:
            where = _joined(self._url, data.decode(errors="replace").strip())
            same = split(where).origin == split(self._target.url).origin
        except (EgressError, ValueError) as fault:
            said = fault.detail if isinstance(fault, EgressError) else "it is not an address"
            return Trouble("endpoint", f"The endpoint the server named cannot be used: {said}.", "Check the server.")
        if not same:
            return Trouble(
                "endpoint",
                f"The server named an endpoint of another origin: {masked_url(where)}.",
                "Parley does not follow.",
            )
        self._endpoint = self._named = where
        self._host.stream_changed("open")
        self._host.step(f"The server takes messages at {masked_url(where)}")
        self._known.set()
        return None


@asynccontextmanager
async def open_http(
    target: HttpTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog
) -> AsyncGenerator[Link, None]:
    """A link to an HTTP server. Nothing is dialled before the first frame, so this cannot fail on the network."""
    try:
        split(target.url)
    except EgressError as fault:
        raise LinkError(egress_trouble(fault, target.url)) from None
    link = (SseLink if target.transport == "sse" else StreamableLink)(target, limits, egress, host, log)
    try:
        yield link
    finally:
        link.close()
        with anyio.CancelScope(shield=True):
            await link.goodbye()
