"""The lines of a recording, both ways: what RECORDING.md describes, as data.

A recording is a header, then one line for each frame, each line of stderr, and each state of a noun that was written
down; the last state of a noun counts. Writing never fails; reading trusts nothing, says what is wrong with a line, and
leaves out what a newer version may have added. Pure: knows no file and no session.
"""

from __future__ import annotations

import base64
import binascii
import codecs
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from app import bounds
from app.core.asks import Answer, Ask, Delivery
from app.core.calls import Call
from app.core.errors import Gone
from app.core.json.text import dump, head, parse
from app.core.lists import Listing
from app.core.summary import gist, junk, repeated
from app.core.tasks.received import ReceiverTask
from app.core.tasks.running import ClientTask
from app.core.wire import (
    NO_FINDINGS,
    Findings,
    Message,
    MessageKind,
    kind_of,
    rpc_id_of,
    short,
)
from app.recordings.codec import Unfit, read, shape_of, write
from app.recordings.nouns import (
    KINDS,
    MAGIC,
    NOUNS,
    VERSION,
    Beside,
    End,
    Frame,
    Gap,
    Header,
    InboxState,
    Left,
    Line,
    ListState,
    LogState,
    Masked,
    MaskState,
    Noun,
    OpensAt,
    OptionsState,
    PingState,
    RootsState,
    Row,
    State,
    Totals,
    Why,
)
from app.recordings.shapes import Shape
from app.sessions.subscriptions import Subscription

__all__ = [
    "KINDS",
    "MAGIC",
    "NOUNS",
    "VERSION",
    "Beside",
    "Broken",
    "End",
    "Frame",
    "Gap",
    "Header",
    "InboxState",
    "Left",
    "Line",
    "ListState",
    "LogState",
    "MaskState",
    "Masked",
    "Newer",
    "Noun",
    "OpensAt",
    "OptionsState",
    "PingState",
    "RootsState",
    "Row",
    "State",
    "Totals",
    "Why",
    "frame_line",
    "frame_of",
    "header_line",
    "line_of",
    "message_of",
    "noun_shapes",
    "read_line",
    "reply_members",
    "state_line",
    "state_value",
    "text_or_base64",
]


class Broken(ValueError):
    """A line that cannot be read, and why, as the end of a sentence."""


class Newer(Broken):
    """A header of a version that this Parley does not know."""


# ------------------------------------------------------------------------------------------------------------ writing


@cache
def noun_shapes() -> dict[str, Shape]:
    """What each noun is made of, for whoever masks it."""
    return {kind: shape_of(cast("Hashable", noun)) for kind, noun in NOUNS.items()}


def header_line(header: Header) -> bytes:
    return dump({"parley": MAGIC, **write(header)}) + b"\n"


def frame_of(message: Message, raw: bytes | None, exchange: int | None) -> Frame:
    """A message of the log as it is recorded, before anything is masked."""
    reply = message.answers is not None
    row = None
    if raw is None:
        kept = (message.method, message.rpc_id, message.gist, message.problem, message.unread, message.step)
        row = Row(message.kind, *kept)
    return Frame(
        seq=message.seq,
        at=message.at,
        direction=message.direction,
        size=message.size,
        number=message.number,
        raw=raw,
        quiet=message.quiet,
        exchange=exchange,
        answers=message.answers,
        latency_ms=message.latency_ms,
        method=message.method if reply else None,
        fold=message.fold if reply else None,
        by=message.by,
        row=row,
    )


def frame_line(frame: Frame) -> bytes:
    found: dict[str, Any] = {"kind": "frame", "seq": frame.seq, "at": frame.at, "direction": frame.direction}
    found |= {"size": frame.size, "number": frame.number}
    for name in ("quiet", "exchange", "answers", "latency_ms", "method", "fold", "by", "masked"):
        value = getattr(frame, name)
        if value not in (None, False, ""):
            found[name] = value
    if frame.row is not None:
        found["row"] = write(frame.row)
    elif frame.raw is not None:
        found |= text_or_base64(frame.raw, "raw")
    return dump(found) + b"\n"


def text_or_base64(raw: bytes, name: str) -> dict[str, str]:
    """Bytes as a text, or as base64 where they are no UTF-8."""
    try:
        return {name: raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}


def state_value(noun: Noun) -> tuple[str, dict[str, Any]]:
    """The kind of a noun, and what is written of it."""
    if isinstance(noun, ListState):
        listing = write(noun.listing)
        if noun.items_from:
            listing.pop("items", None)
        return "list", {"listing": listing, "items_from": list(noun.items_from), "by_page": noun.by_page}
    return KINDS[type(noun)], write(noun)


def state_line(state: State) -> bytes:
    kind, value = state_value(state.noun)
    return line_of(kind, state.id, state.seq, state.at, value, reply_members(state.reply, kept=state.reply_kept))


def reply_members(reply: bytes | None, *, kept: bool) -> dict[str, Any]:
    """What a line says of the reply of its call: nothing, that it is in the frame, or all of it."""
    return {} if not kept else {"reply": "frame"} if reply is None else text_or_base64(reply, "reply_raw")


def line_of(kind: str, key: str, seq: int, at: float, value: dict[str, Any], more: dict[str, Any]) -> bytes:
    named = {"id": key} if key else {}
    return dump({"kind": kind, "seq": seq, "at": at, **named, **more, "value": value}) + b"\n"


# ------------------------------------------------------------------------------------------------------------ reading


def read_line(line: bytes, log: Findings = NO_FINDINGS) -> Line | None:
    """What one line says; None for a kind that this version does not know. `log` is who will know what was remarked.
    Raises Broken, Newer for a header of a newer version."""
    value = _json(line)
    if not isinstance(value, dict):
        raise Broken("is no object")
    if "parley" in value:
        return _header(value)
    kind = value.get("kind")
    if not isinstance(kind, str):
        raise Broken("does not say what it is")
    try:
        if kind == "frame":
            return _frame(value)
        noun = NOUNS.get(kind)
        return None if noun is None else _state(kind, noun, value, log)
    except Unfit as wrong:
        raise Broken(f"is no {kind}: {wrong}") from None


def _json(line: bytes) -> Any:
    if len(line) > bounds.RECORDING_LINE:
        raise Broken(f"is longer than {bounds.RECORDING_LINE // bounds.MIB} MiB")
    parsed = parse(line.removeprefix(codecs.BOM_UTF8))
    if parsed.unread is not None:
        raise Broken("holds more than Parley reads at once")
    if parsed.problem is not None:
        raise Broken(f"is nested deeper than {bounds.JSON_DEPTH} levels" if parsed.our_limit else "is no JSON")
    if parsed.remarks:  # a key twice, or half of a character: nobody could say what is meant
        raise Broken("is no proper JSON")
    return parsed.value


def _header(value: dict[str, Any]) -> Header:
    if value["parley"] != MAGIC:
        raise Broken("is the beginning of something else")
    version = value.get("version")
    if type(version) is not int or version < 1:
        raise Broken("says no version of the format")
    if version > VERSION:
        made = value.get("made_by")
        by = f", made by {made[:60]}" if isinstance(made, str) else ""
        raise Newer(f"is of version {version} of the format{by}; this Parley reads version {VERSION}")
    try:
        return read(Header, value)
    except Unfit as wrong:
        raise Broken(f"is no header: {wrong}") from None


def _frame(value: dict[str, Any]) -> Frame:
    row = value.get("row")
    raw = None if row is not None else _bytes(value, "raw")
    if row is None and raw is None:
        raise Unfit("there", "raw")
    plain = {key: one for key, one in value.items() if key not in ("row", "raw")}
    return read(Frame, plain, raw=raw, row=None if row is None else read(Row, row))


def _bytes(value: dict[str, Any], name: str) -> bytes | None:
    text, coded = value.get(name), value.get(f"{name}_base64")
    if text is None and coded is None:
        return None
    try:
        if isinstance(text, str):
            return text.encode()
        if isinstance(coded, str):
            return base64.b64decode(coded, validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        pass
    raise Unfit("a text", name)


def _state(kind: str, noun: type[Noun], value: dict[str, Any], log: Findings) -> State:
    given, what = value.get("value"), dict[str, Any]()
    if not isinstance(given, dict):
        raise Unfit("an object", "value")
    if noun is Call:
        what = {"started": given.get("started_at"), "log": log}
    elif noun is Ask:
        what = {"deliver": _nobody, "log": log}
    elif noun is ClientTask:
        what = {"began": given.get("began_at"), "log": log}
    elif noun is ReceiverTask:
        what = {"began": given.get("began_at")}
    elif noun is Subscription:
        what = {"log": log, "scope": None}  # there is no request, and where lines are read there may be no loop
    if noun is ListState:
        given, what = {**given, "listing": {}}, {"listing": read(Listing, given.get("listing"), log=log)}
    key = value.get("id", "")
    if not isinstance(key, str):
        raise Unfit("a text", "id")
    head = read(_Head, value)
    reply = _bytes(value, "reply_raw")
    kept = reply is not None or value.get("reply") == "frame"
    return State(kind, key, head.seq, head.at, read(noun, given, **what), reply, kept)


@dataclass(slots=True, frozen=True)
class _Head:
    seq: int
    at: float


async def _nobody(ask: Ask, answer: Answer) -> Delivery:
    """The reply channel of an ask that was recorded."""
    raise Gone("This was recorded. Nobody waits for an answer.")


def message_of(frame: Frame) -> Message:
    """The row of the log that a frame had, without its findings. Everything but what its request says of a reply is
    read from its bytes, so that it needs no other frame."""
    if frame.row is not None:
        row = frame.row
        return Message(
            seq=frame.seq,
            direction=frame.direction,
            at=frame.at,
            size=frame.size,
            kind=row.kind,
            method=row.method,
            rpc_id=row.rpc_id,
            gist=row.gist,
            answers=frame.answers,
            latency_ms=frame.latency_ms,
            problem=row.problem,
            quiet=frame.quiet,
            unread=row.unread,
            number=frame.number,
            fold=frame.fold,
            step=row.step,
            by=frame.by,
        )
    raw, quiet, fold = frame.raw or b"", frame.quiet, frame.fold
    parsed = parse(raw)
    if parsed.unread is not None:
        parsed = head(raw, parsed)
    value = parsed.value
    kind: MessageKind = "invalid" if parsed.problem is not None else kind_of(value)
    method = short(value["method"]) if kind in ("request", "notification") else None
    step = ""
    if frame.answers is None:
        fold, step = repeated(kind, method, value, quiet=quiet)
    else:
        method = frame.method
    if parsed.problem is None:
        said = gist(kind, method, value, raw)
    else:
        said = parsed.problem if parsed.our_limit else junk(raw)
    rpc_id = rpc_id_of(value)
    return Message(
        seq=frame.seq,
        direction=frame.direction,
        at=frame.at,
        size=frame.size,
        kind=kind,
        method=method,
        rpc_id=short(rpc_id) if isinstance(rpc_id, str) else rpc_id,
        gist=said,
        answers=frame.answers,
        latency_ms=frame.latency_ms,
        problem=parsed.problem,
        quiet=quiet,
        unread=parsed.unread,
        number=frame.number,
        fold=fold,
        step=step,
        by=frame.by,
    )
