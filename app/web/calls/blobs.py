"""Results in parts: binary content by its digest, branches of a large tree, a search in it, a text as Markdown or as a
page, the whole as a file.

Everything is read on demand from the reply that the call keeps. Binary content is shown only after its first bytes
were looked at, and under a policy of its own that lets it do nothing (S33). A page of a server may have a style, and
nothing else: no script, no load, no form, no link that leads away, no origin.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from app.core.json import pointer as pointers
from app.core.json import tables
from app.core.lane import apart
from app.sessions import Workspace
from app.web.calls.card import CallCard, recent_calls
from app.web.calls.result import VIEWS, address, result_of, show_result, text_at
from app.web.door.denied import Denied, invalid, unknown
from app.web.kit import format, json_table, json_tree, media
from app.web.kit import markdown as markup
from app.web.kit.lookup import call_of
from app.web.kit.responses import in_html, in_json, wants_json
from app.web.kit.templates import fragment
from app.web.live.parts import partial

_SHA = re.compile(r"[0-9a-f]{64}")
_HARMLESS = {"content-security-policy": "sandbox; default-src 'none'", "x-content-type-options": "nosniff"}
_FRAMED = {
    "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "x-dns-prefetch-control": "off",
    "cache-control": "private, max-age=3600, immutable",
}
_SEARCHED_CALLS = 50
_PAGE_NODES = 1_000
_COPIED = 8 * 1024 * 1024


async def _value(request: Request, pointer: str = "") -> Any:
    """The value that `root` and `pointer` name."""
    session, call = call_of(request)
    try:
        return json_tree.at_pointer(await result_of(session, call, request.query_params.get("root", "")), pointer)
    except KeyError:
        raise unknown("There is no such place in the result.") from None


async def shown(request: Request) -> Response:
    """The result of a call as a part of its card: for the large ones, which no card brings along, and in another way
    by `view`: table, tree, text or raw; with `alone` as on its own page."""
    session, call = call_of(request)
    query = request.query_params
    view, alone = query.get("view", ""), "alone" in query
    if view and view not in VIEWS:
        raise invalid({"/view": [f"One of {', '.join(VIEWS)}."]})
    ready = await show_result(session, call, alone=alone, view=view)
    card = CallCard(session, call, ready, alone=alone, full="full" in query)
    html = fragment("calls/_result.html", card=card)
    # Which ways there are is known once a large result was read: the switch comes with the first one.
    if not view:
        html += partial(f"#call-{call.id}-views", fragment("calls/_views.html", card=card), "outerHTML")
    return in_html(html)


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise invalid({f"/{name}": ["A whole number, 0 or more."]})
    return int(text)


async def branch(request: Request) -> Response:
    """The members of one branch, from `offset` on, up to `until`; with `around` those beside that member; with `value`
    the value itself as JSON text, for copying."""
    query = request.query_params
    value = await _value(request, query.get("pointer", ""))
    if "value" in query:
        text = await apart(format.pretty, value)
        if len(text) > _COPIED:
            raise Denied(413, "too-large", "That is too large to copy. Download the result instead.")
        return Response(text.encode(), headers=_HARMLESS, media_type="text/plain; charset=utf-8")
    offset, until = _number(request, "offset"), _number(request, "until")
    if "around" not in query:
        return in_html(str(json_tree.branch(value, offset, max_nodes=_PAGE_NODES, until=until)))
    drawn = json_tree.around(value, query["around"], offset, until)
    if drawn is None:
        raise unknown("It does not stand there.")
    return in_html(str(drawn))


async def table(request: Request) -> Response:
    """A list of objects of a result as a table: from `offset` on, in the order of the column `sort`, descending with
    `down`, with every column with `wide`."""
    session, call = call_of(request)
    root, query = request.query_params.get("root", ""), request.query_params
    value = await _value(request)
    found = await apart(tables.find, value)
    if found is None:
        raise unknown("There is no list of equal objects in the result.")
    by = pointers.unescape(query["sort"]) if query.get("sort") else None
    order = json_table.Order(by, "down" in query, _number(request, "offset"), "wide" in query)
    source, ident = address(session.base, call.id, "branch", root), query.get("id", "table")[:80]
    marks = [one.pointer.removeprefix(root) for one in call.findings[:50] if one.pointer is not None]
    most = json_table.MORE if order.offset else json_table.ROWS
    drawn = await apart(json_table.drawn, found, ident, source, order=order, marks=marks, most=most)
    return in_html(str(drawn))


async def search(request: Request) -> Response:
    """Where a text stands in a result: the first places, each with its pointer."""
    wanted = request.query_params.get("q", "").strip()[:200]
    value = await _value(request)
    found = await apart(json_tree.find, value, wanted) if wanted else []
    if wants_json(request):
        return await in_json(lambda: {"found": [{"pointer": pointer, "value": node} for pointer, node in found]})
    hits = json_tree.hits(found) if found else None
    return in_html(fragment("calls/_hits.html", wanted=wanted, hits=hits, count=len(found)))


async def result(request: Request) -> Response:
    """The result as a file; with `raw` the reply exactly as it came."""
    session, call = call_of(request)
    if call.reply is None:
        raise unknown("This call has no reply, or it is no longer kept.")
    if "raw" in request.query_params or call.unread is not None:
        content = call.reply
    else:
        value = await result_of(session, call)
        if value is None and call.error is not None:
            value = {"code": call.error.code, "message": call.error.message, "data": call.error.data}
        content = await apart(lambda: format.pretty(value).encode(errors="backslashreplace"))
    name = f"call-{call.id.lstrip('c')}{'-raw' if content is call.reply else ''}.json"
    headers = {**_HARMLESS, "content-disposition": f'attachment; filename="{name}"'}
    return Response(content, headers=headers, media_type="application/json")


async def markdown(request: Request) -> Response:
    """A text of a result, laid out as Markdown and made harmless; 413 with a sentence when that is too much."""
    session, call = call_of(request)
    try:
        text = await text_at(session, call, request.query_params.get("root", ""))
    except KeyError:
        raise unknown("There is no such text in the result.") from None
    try:
        return in_html(str(await anyio.to_thread.run_sync(markup.markdown, text)))
    except markup.TooMuch as why:
        raise Denied(413, "too-large", str(why)) from None


Content = tuple[bytes, str]
"""Bytes, and the type under which they may be shown; "" when they may not."""


async def _of_digest(request: Request, held: Callable[[Any], Iterator[Content]], *marks: bytes) -> Content | None:
    """What the address names by its digest, among what is `held` in the results whose reply has one of the marks: that
    of the call that the address names, else those of the recent ones."""
    session: Workspace = request.state.session
    sha, hint = request.path_params["sha"], request.query_params.get("call")
    if not _SHA.fullmatch(sha):
        return None

    def find(result: Any) -> Content | None:
        return next((one for one in held(result) if hashlib.sha256(one[0]).hexdigest() == sha), None)

    calls = recent_calls(session)[:_SEARCHED_CALLS] if hint is None else filter(None, [session.calls.get(hint)])
    for call in calls:
        if call.reply is not None and any(mark in call.reply for mark in marks):
            found = await apart(find, await result_of(session, call))
            if found is not None:
                return found
    return None


async def blob(request: Request) -> Response:
    """Binary content of a result: shown when it is what it says and harmless, else a download."""
    if "ask" in request.query_params:
        found = await _of_ask(request)
    else:
        found = await _of_digest(request, media.contents, b'"data"', b'"blob"')
    if found is None:
        raise unknown("There is no such content. The oldest calls and asks are forgotten first.")
    # An address is a digest and has no other version, so nothing can match an If-Range.
    asked = request.headers.get("range") if "if-range" not in request.headers else None
    return _sent(*found, request.path_params["sha"], asked)


async def _of_ask(request: Request) -> Content | None:
    """What the address names by its digest, in what a server asked, or in what a person made of that."""
    session: Workspace = request.state.session
    sha, ask = request.path_params["sha"], session.inbox.asks.get(request.query_params["ask"])
    if not _SHA.fullmatch(sha) or ask is None:
        return None
    requests = [ask.params, ask.edited]

    def find() -> Content | None:
        held = (one for each in requests for one in media.contents(each))
        return next((one for one in held if hashlib.sha256(one[0]).hexdigest() == sha), None)

    return await apart(find)


async def frame(request: Request) -> Response:
    """HTML of a result, for a sandboxed frame."""
    found = await _of_digest(request, media.pages, b"html")
    if found is None:
        raise unknown("There is no such page. The oldest calls are forgotten first.")
    return Response(await apart(media.still, found[0]), headers=_FRAMED, media_type="text/html; charset=utf-8")


_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def _part(asked: str | None, size: int) -> tuple[int, int] | None:
    """The first and the last byte of the one range that is asked for; None for the whole.

    More than one range, or what is no range, is answered with the whole, as HTTP allows. ValueError when the range
    begins behind the end.
    """
    found = _RANGE.fullmatch(asked.strip()) if asked is not None else None
    begin, end = found.groups() if found is not None else ("", "")
    if not (begin or end) or (begin and end and int(end) < int(begin)):
        return None
    first = int(begin) if begin else max(0, size - int(end))
    if first >= size:
        raise ValueError(asked)
    return first, min(int(end), size - 1) if begin and end else size - 1


def _sent(raw: bytes, kind: str, sha: str, asked: str | None) -> Response:
    way = "inline" if kind else "attachment"
    name = f"{sha[:12]}.{media.ENDINGS.get(kind, 'bin')}"
    headers = {
        **_HARMLESS,
        "content-disposition": f'{way}; filename="{name}"',
        "cache-control": "private, max-age=3600, immutable",
        "accept-ranges": "bytes",
    }
    try:
        part = _part(asked, len(raw))
    except ValueError:
        return Response(b"", 416, {**headers, "content-range": f"bytes */{len(raw)}"}, "text/plain")
    if part is None:
        return Response(raw, headers=headers, media_type=kind or "application/octet-stream")
    headers["content-range"] = f"bytes {part[0]}-{part[1]}/{len(raw)}"
    return Response(raw[part[0] : part[1] + 1], 206, headers, kind or "application/octet-stream")
