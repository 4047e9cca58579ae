"""Server-sent events, as a stream of bytes carries them: chunks in, events out. Knows no HTTP and no MCP."""

from __future__ import annotations

from dataclasses import dataclass

from app import bounds
from app.protocol.links.base import Oversized

_BOM = b"\xef\xbb\xbf"
_FIELD_NAME = len(b"data: ")


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


def _first(parts: list[bytes]) -> bytes:
    """The beginning of an event that was refused, without putting the rest of it together."""
    found = b""
    for part in parts:
        found += part[: bounds.REFUSAL_BYTES]
        if len(found) >= bounds.REFUSAL_BYTES:
            break
    return found[: bounds.REFUSAL_BYTES]
