"""Server-sent events, as a stream of bytes carries them: chunks in, events out. Knows no HTTP and no MCP."""

from __future__ import annotations

from dataclasses import dataclass

from app import bounds
from app.protocol.links.base import Oversized

_BOM = b"\xef\xbb\xbf"
_BEFORE_DATA = len(_BOM + b"data: ")


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
        self._after_cr = False
        self._first = True
        self._data: list[bytes] = []
        self._size = 0
        self._event, self._id, self._retry = "", None, None  # type: str, str | None, int | None

    def feed(self, chunk: bytes) -> list[SseEvent | Oversized]:
        """The events that this chunk completes."""
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        events: list[SseEvent | Oversized] = []
        for piece in chunk.splitlines(keepends=True):
            self._buffer += piece
            if piece.endswith((b"\r", b"\n")):
                event = self._line(self._take().rstrip(b"\r\n"))
                if event is not None:
                    events.append(event)
        size = self._size + len(self._buffer)
        if size > self._limit + _BEFORE_DATA:
            events.append(self._refused(size, self._take()))
        return events

    def _take(self) -> bytes:
        """What has come of the line, which begins anew; the first line of a stream may have a mark before it."""
        line = bytes(self._buffer)
        self._buffer.clear()
        if self._first:
            self._first, line = False, line.removeprefix(_BOM)
        return line

    def _refused(self, size: int, rest: bytes = b"") -> Oversized:
        prefix = b"".join(self._data) or rest.removeprefix(b"data:").removeprefix(b" ")
        self._data, self._size = [], 0
        return Oversized(prefix[: bounds.REFUSAL_BYTES], size, False)

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
            return self._refused(self._size - 1)
        found = SseEvent(self._event or "message", b"\n".join(self._data), self._id, self._retry)
        empty = not self._data and self._id is None and self._retry is None
        self._data, self._size, self._event, self._id, self._retry = [], 0, "", None, None
        return None if empty else found
