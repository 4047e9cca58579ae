"""Streamable HTTP of 2025-03-26 and later: a link of our own on the guarded client.

Ours rather than the SDK's transport, which is the simpler way out of its faults: there, a
network error on one POST ends the connection, a 500 leaves a caller hanging, a slow notification delays everybody, the
GET stream is given up after two errors, bodies are read without a limit and parsed in the event loop. Containing each
from outside took more code than the few hundred lines here, and would still not show the exact bytes.

Each message is its own POST (R5-41) in a task of its own, so whatever happens to it happens to it alone. Owns session
id and resumption. Knows no JSON-RPC beyond "this POST carries request 7".
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import anyio

from app import bounds
from app.core.errors import Trouble
from app.core.json.text import parse
from app.core.log import MessageLog
from app.core.rules import catalogue
from app.core.signal import Signal
from app.core.targets import HttpTarget
from app.core.wire import Exchange, Finding, RpcId, id_key
from app.egress import Answer, Egress, EgressError
from app.protocol.exchanges import egress_trouble
from app.protocol.links.base import Barrier, Frame, LinkError, LinkHost, Outbound, Oversized, Place, Remarked
from app.protocol.links.http_base import (
    HttpLink,
    beginning,
    delivering,
    message_in,
    read_body,
    with_authorization,
)
from app.protocol.links.sse_parser import SseEvent
from app.protocol.links.words import (
    COMPRESSED,
    ENDED_EARLY,
    FORGOTTEN,
    NO_REPLY,
    NOT_FOUND_AGAIN,
    NOT_RESUMED,
    content_trouble,
    excerpt,
    status_trouble,
)
from app.settings import Limits

_RESUMES_NOTE = "The stream of an answer ended before its reply, and is resumed."
_SAYS_WHO = frozenset({401, 403, 407, 429})
_OPENING = frozenset({"server/discover", "initialize"})
_WITH_A_BODY = frozenset({"", "text/plain", "application/octet-stream"})
"""Content types that are wrong for a reply, and that replies are found under."""
_NOT_NOW = frozenset({429, 502, 503, 504})
"""What is said of a moment, often by somebody in front of the server, and not of the stream that was asked for."""
_CONTENT = ("content-type", "application/json")
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}")


class StreamableLink(HttpLink):
    """Streamable HTTP of 2025-03-26 and later (R5-41…R5-46)."""

    def __init__(self, target: HttpTarget, limits: Limits, egress: Egress, host: LinkHost, log: MessageLog) -> None:
        super().__init__(target, limits, egress, host, log)
        self._session_id: str | None = None
        self._waiting: dict[RpcId, tuple[anyio.CancelScope, Outbound]] = {}
        """The POST of each request."""

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
            self._waiting[about.rpc_id] = scope, about
        self._group.start_soon(self._post, raw, about, scope)

    def settled(self, rpc_id: RpcId, *, answered: bool) -> bool:
        """The stream that waits for this reply may end. In 2026-07-28 closing it is how one cancels (R6-50)."""
        scope, about = self._waiting.pop(rpc_id, (None, None))
        if scope is None or about is None:
            return False
        held = about.seq in self._held
        if held or (about.stateless and not answered):
            scope.cancel()
        else:
            scope.deadline = anyio.current_time() + bounds.LINGER_SECONDS
        return held

    async def _post(self, raw: bytes, about: Outbound, scope: anyio.CancelScope) -> None:
        with scope, delivering(about):
            resume = await self._posted(raw, about)
            if about.method == "notifications/initialized" and self._group is not None:
                self._group.start_soon(self._listen)
            if resume is not None:
                await self._resume(about, resume)

    async def _posted(self, raw: bytes, about: Outbound) -> _Cursor | None:
        headers = self._headers("application/json, text/event-stream", _CONTENT, *about.headers)
        silence = None if about.kind == "request" else bounds.SHORT_READ_SECONDS
        try:
            posting = self._request("POST", self._address, headers, raw, seq=about.seq, read=silence)
            async with posting as (answer, exchange):
                return await self._take_answer(answer, about, exchange)
        except EgressError as fault:
            await self._failed(about, await self._why(fault, self._address.url))
            return None

    async def _take_answer(self, answer: Answer, about: Outbound, exchange: Exchange) -> _Cursor | None:
        media = answer.media_type
        if not 200 <= answer.status < 300:
            await self._refused(answer, about, exchange)
            return None
        if about.method == "initialize":
            await self._keep_session(answer, about)
        if about.kind != "request":
            if answer.status != 202:
                finding = catalogue.accepted_with_status(kind=about.kind, status=answer.status)
                await self._tell(Remarked(about.seq, finding))
        elif answer.compressed:
            await self._failed(about, COMPRESSED, exchange)
        elif media == "text/event-stream":
            if answer.status != 200:
                await self._tell(Remarked(about.seq, _status_finding(answer.status)))
            return await self._stream(answer, about, exchange, _Cursor())
        else:
            await self._take_body(answer, media, about, exchange)
        return None

    async def _take_body(self, answer: Answer, media: str, about: Outbound, exchange: Exchange) -> None:
        """The whole body of a success: the reply, or what came in its place."""
        is_json = media == "application/json"
        if is_json or media.endswith("+json") or media in _WITH_A_BODY:
            most = self._limits.message_bytes
            body = await read_body(self._throttled(answer), most + 1)
            if len(body) > most:
                await self._too_large(about, exchange, Oversized(body[: bounds.REFUSAL_BYTES], len(body)))
                return
        else:
            body = await beginning(answer)
        if body or (is_json and answer.status != 202):
            findings: tuple[Finding, ...] = ()
            meant = body.lstrip()[:1] in (b"{", b"[") and b'"jsonrpc"' in body
            if meant:
                found = f"is of the type {media[:100]}" if media else "has no content type"
                findings += () if is_json else (catalogue.other_content_type(found=found),)
                findings += () if answer.status == 200 else (_status_finding(answer.status),)
            place: Place = "body" if is_json or meant else "other"
            await self._tell(Frame(body, about.rpc_id, exchange, place, findings))
            if await self._is_settled(about.rpc_id):
                return
        if answer.status == 202:
            await self._tell(Remarked(about.seq, catalogue.accepted_without_reply()))
        elif is_json:
            await self._failed(about, NO_REPLY, exchange)
        else:
            await self._failed(about, content_trouble(media, body), exchange)

    async def _keep_session(self, answer: Answer, about: Outbound) -> None:
        found = answer.header("mcp-session-id")
        if _SESSION_ID.fullmatch(found):
            self._session_id = found
        elif found:
            await self._tell(Remarked(about.seq, catalogue.improper_session_id()))

    async def _refused(
        self, answer: Answer, about: Outbound, exchange: Exchange, trouble: Trouble | None = None
    ) -> None:
        """A status that is no success: perhaps with a JSON-RPC error inside, which is then the reply."""
        body = await beginning(answer)
        value = None if answer.compressed else _own_error(body)
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
            quoted = "" if answer.compressed else excerpt(body, self._secrets)
            said = f"{FORGOTTEN.message} It said: {quoted}." if quoted else FORGOTTEN.message
            exchange.error = said
            self._session_id = None
            self._over(replace(FORGOTTEN, message=said))
            return
        await self._failed(about, trouble or status_trouble(answer, body, self._address.url, self._secrets), exchange)

    async def _too_large(self, about: Outbound, exchange: Exchange, found: Oversized) -> None:
        limit = self._limits.message_bytes / 1048576
        said = f"The answer is larger than {limit:g} MiB, so it was not read."
        await self._tell(replace(found, fatal=False, exchange=exchange))
        await self._failed(about, Trouble("oversized", said, "Ask for less at a time."), exchange)

    # ---- streams

    async def _stream(self, answer: Answer, about: Outbound, exchange: Exchange, cursor: _Cursor) -> _Cursor | None:
        """Take the frames of an SSE answer, until it ends; where to go on when it ended before the reply came."""
        cut: EgressError | None = None
        try:
            oversized = await self._frames(answer, cursor, exchange, "event", about.rpc_id)
            if oversized is not None:
                await self._too_large(about, exchange, oversized)
                return None
        except EgressError as fault:
            cut = fault
        if await self._is_settled(about.rpc_id):
            return None
        if cursor.last_id and not about.stateless:  # an empty id takes back the one before
            return cursor
        trouble = ENDED_EARLY if cut is None else egress_trouble(cut, self._address.url, self._secrets)
        await self._failed(about, trouble, exchange)
        return None

    async def _frames(
        self, answer: Answer, cursor: _Cursor, exchange: Exchange, place: Place, via: RpcId = None
    ) -> Oversized | None:
        """Take the frames of a stream, and keep its cursor; the event that was too large, when one ended it."""
        async for event in self._events(answer):
            if isinstance(event, Oversized):
                return event
            cursor.take(event)
            findings = message_in(event)
            if findings is not None:
                await self._tell(Frame(event.data, via, exchange, place, findings))
        return None

    async def _is_settled(self, rpc_id: RpcId) -> bool:
        """Whether the reply has come, once everything that arrived has been looked at."""
        reached = Signal()
        await self._tell(Barrier(reached))
        if self._trouble is None:
            await reached.wait()
        return rpc_id not in self._waiting

    async def _resume(self, about: Outbound, cursor: _Cursor) -> None:
        """Come back for the rest of a stream, after exactly the time the server asked for (R5-43)."""
        url, failures = self._address.url, 0
        while True:
            await anyio.sleep(cursor.wait if failures == 0 else max(cursor.wait, 2**failures))
            if about.rpc_id not in self._waiting:
                return
            headers = self._headers("text/event-stream", *cursor.headers)
            try:
                headers = with_authorization(headers, await self._authorization())
                async with self._exchanges.send("GET", url, headers, note=_RESUMES_NOTE) as (answer, exchange):
                    if answer.status in _NOT_NOW and failures + 1 < bounds.RESUMES:
                        failures += 1
                        continue
                    if answer.status == 405:
                        await self._failed(about, NOT_RESUMED, exchange)
                        return
                    if answer.status != 200 or answer.media_type != "text/event-stream":
                        gone = NOT_FOUND_AGAIN if answer.status == 404 else None
                        await self._refused(answer, about, exchange, gone)
                        return
                    if answer.compressed:
                        await self._failed(about, COMPRESSED, exchange)
                        return
                    if await self._stream(answer, about, exchange, cursor) is None:
                        return
                    failures = 0
            except EgressError as fault:
                failures += 1
                if failures == bounds.RESUMES:
                    await self._failed(about, egress_trouble(fault, url, self._secrets))
                    return

    async def _listen(self) -> None:
        """The GET stream, on which a server speaks unasked (R5-42): kept up for as long as the connection lives."""
        address, cursor, wait, opened = replace(self._address), _Cursor(), bounds.RETRY_SECONDS, False
        while self._trouble is None:
            began, words = None, "ended"  # type: float | None, str
            cursor.heard = False
            try:
                headers = self._headers("text/event-stream", *cursor.headers)
                async with self._request("GET", address, headers) as (answer, exchange):
                    if answer.status == 404 and self._session_id is not None and opened:
                        await self._refused(answer, Outbound("notification", 0), exchange)
                        return
                    if answer.status != 200 or answer.media_type != "text/event-stream":
                        body = await beginning(answer)
                        if answer.status < 500 and answer.status != 429:
                            absent = answer.status == 405
                            refused = "not offered by the server (405)" if absent else f"refused ({answer.status})"
                            self._host.stream_changed(refused)
                            return
                        words = exchange.error = status_trouble(answer, body, secrets=self._secrets).message
                    elif answer.compressed:
                        self._host.stream_changed("not read: it is compressed, though Parley asked for it not to be")
                        self._host.step("The GET stream is compressed, so nothing that comes on it can be read.")
                        return
                    else:
                        opened, began = True, anyio.current_time()
                        self._host.stream_changed("open")
                        oversized = await self._frames(answer, cursor, exchange, "unasked")
                        if oversized is not None:
                            await self._tell(replace(oversized, exchange=exchange))
                            cursor = _Cursor(heard=cursor.heard)  # or it would be sent again, at once
            except EgressError as fault:
                words = egress_trouble(fault, address.url, self._secrets).message
            # A stream that somebody in between ends for its silence did not fail, however often that happens.
            steady = began is not None and anyio.current_time() - began >= bounds.STEADY_SECONDS
            if steady or (began is not None and (cursor.heard or cursor.retry is not None)):
                wait = cursor.wait
            else:
                wait = min(wait * 2, bounds.RETRY_AT_MOST)
            self._host.stream_changed(f"down, trying again in {wait:g} s: {words}")
            await anyio.sleep(wait)

    async def goodbye(self) -> None:
        """Tell the server that we leave (R5-45); that it does not care is no news."""
        if self._session_id is None or self._trouble is not None:
            return
        headers = self._headers("application/json, text/event-stream")
        with anyio.move_on_after(bounds.GOODBYE_SECONDS), suppress(EgressError):
            headers = with_authorization(headers, await self._authorization())
            leaving = self._exchanges.send("DELETE", self._address.url, headers, connect=1, read=bounds.GOODBYE_SECONDS)
            async with leaving:
                pass


@dataclass(slots=True)
class _Cursor:
    """Where and when to go on with a stream, as its events say (R5-43)."""

    last_id: str | None = None
    retry: float | None = None
    heard: bool = False

    def take(self, event: SseEvent) -> None:
        """An event came: it may name itself, and say when to come back."""
        self.heard = True
        if event.id is not None:
            self.last_id = event.id
        if event.retry is not None:
            self.retry = max(event.retry / 1000, bounds.RETRY_AT_LEAST)

    @property
    def wait(self) -> float:
        """Seconds before the stream is asked for again."""
        return bounds.RETRY_SECONDS if self.retry is None else self.retry

    @property
    def headers(self) -> list[tuple[str, str]]:
        """What names the event to go on after."""
        return [("last-event-id", self.last_id)] if self.last_id else []


def _own_error(body: bytes) -> dict[str, Any] | None:
    """The JSON-RPC error in the body of an answer that is no success; None when that is something else, like the
    `{"error": "invalid_token"}` of OAuth."""
    value = parse(body).value if body.lstrip()[:1] == b"{" else None
    return value if isinstance(value, dict) and "jsonrpc" in value and "error" in value else None


def _status_finding(status: int) -> Finding:
    return catalogue.reply_with_202() if status == 202 else catalogue.reply_with_status(status=status)
