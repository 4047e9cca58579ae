"""A process of its own that masks what is recorded and makes lines of it: `python -m app.recordings.scribe`.

It reads lists of portions from its standard input, each after its length, and answers with the lines that come of each
portion. To look through everything that crosses a wire for secrets takes as long as to send it; in the process that
serves the pages, every call would wait for that. It opens no file, and ends with its input. Light: it imports next to
nothing.
"""

from __future__ import annotations

import base64
import fcntl
import json
import marshal
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from app import bounds
from app.recordings import quick, shapes
from app.recordings.masks import Masks, line_of

Portion = tuple[str, str, Any]
"""What is to be done, for which recording, with what: `open` with values, names, pointers and the shapes of nouns;
`learn` with values; `write` with things, packed; `again` with lines that are there, `anew` before they are read a
second time; `close`."""
_PLAIN: Final = 2
"""The form of `marshal` in which equal values are equal bytes; and the fastest."""
LENGTH: Final = 8
"""So many bytes say how long a value is."""
_PIPE: Final = 1 << 20
_NICE: Final = 10
"""How far others go before it: what it writes can wait for a moment; the session, its server and the page cannot."""


def plain(value: Any) -> bytes:
    """A value as bytes, at once: nobody can change it any more."""
    return marshal.dumps(value, _PLAIN)


def packed(value: Any) -> bytes:
    """One value after its length, as it crosses the pipe."""
    made = plain(value)
    return len(made).to_bytes(LENGTH) + made


def unpacked(value: bytes | memoryview) -> Any:
    """A value that our own other process wrote, without its length: nobody else has the pipe."""
    return marshal.loads(value)  # noqa: S302


class Book:
    """One recording, as far as it is masked."""

    def __init__(
        self, values: list[str], names: list[str], pointers: list[str], nouns: dict[str, shapes.Shape] | None = None
    ) -> None:
        self.masks = Masks(values, names, pointers)
        self._shapes = nouns or {}
        self._makers = {kind: shapes.maker(shape) for kind, shape in self._shapes.items()}
        self._hashes: dict[tuple[str, str], int] = {}
        """What was last written of each noun."""
        self._told = 0
        self.before: list[dict[str, Any]] = []
        """What was masked in a recording that is masked again."""

    def write(self, things: Iterable[tuple[Any, ...]]) -> tuple[bytes, list[tuple[str, str, int]] | None]:
        """The lines of these things, and all that was masked so far when that has changed."""
        lines = b"".join([self._line(thing) for thing in things])
        counts = self.masks.counts
        many = sum(counts.values())
        if many == self._told:
            return lines, None
        self._told = many
        return lines, [(pointer, name, count) for (pointer, name), count in counts.items()]

    def again(self, lines: bytes) -> tuple[bytes, list[tuple[str, str, int]] | None]:
        """Lines of a recording that is there, masked once more. What is no line of ours is left as it is."""
        made = b"".join([self._once_more(line) for line in lines.splitlines(keepends=True)])
        counts = [(pointer, name, count) for (pointer, name), count in self.masks.counts.items()]
        return made, counts or None

    def _once_more(self, line: bytes) -> bytes:
        try:
            return self._read_again(line, json.loads(line))
        except (ValueError, RecursionError):
            return self.masks.text(line.decode(errors="replace")).encode()

    def _read_again(self, line: bytes, value: Any) -> bytes:
        if not isinstance(value, dict):
            return line
        if "parley" in value:
            return self._line(("header", value, None))
        if value.get("kind") in ("masked", "end") and isinstance(value.get("value"), dict):
            value["value"]["masked"] = self._all_masked()
            return line_of(value)
        what = "frame" if value.get("kind") == "frame" else "state"
        if what == "state" and not isinstance(value.get("value"), dict):
            return line_of(self.masks.value(value))
        body = raw_of(value, "raw" if what == "frame" else "reply_raw")
        return self._line((what, value, body))

    def _all_masked(self) -> list[dict[str, Any]]:
        found: dict[tuple[str, str], int] = {}
        told = [(str(one["pointer"]), str(one["name"]), int(one["count"])) for one in self.before]
        for pointer, name, count in [*told, *((*key, many) for key, many in self.masks.counts.items())]:
            found[pointer, name] = found.get((pointer, name), 0) + count
        return [{"pointer": pointer, "name": name, "count": count} for (pointer, name), count in found.items()]

    def _noun(self, kind: str, key: str, seq: int, at: float, noun: Any, more: dict[str, Any], body: Any) -> bytes:
        """The line of a noun as it was taken; nothing when it was written like that before."""
        said = hash(plain((noun, more)))
        if self._hashes.get((kind, key)) == said:
            return b""
        self._hashes[kind, key] = said
        if len(self._hashes) > bounds.RECORDING_NOUNS:
            self._hashes.clear()
        make = self._makers[kind]
        value = noun if make is None else make(noun)
        line = {"kind": kind, "seq": seq, "at": at, **({"id": key} if key else {}), **more, "value": value}
        return (self._mask_state(line, body) and quick.line(line)) or line_of(line)

    def _message(self, message: tuple[Any, ...], exchange: int | None, raw: bytes) -> bytes:
        line, masked = shapes.frame_line(message, exchange), self.masks.frame(raw, typed=message[2] == "out")
        if masked is not raw:
            line["masked"] = True
        line |= text_or_base64(masked, "raw")
        return quick.line(line) or line_of(line)

    def _line(self, thing: tuple[Any, ...]) -> bytes:
        if thing[0] == "noun":
            return self._noun(*thing[1:])
        if thing[0] == "masked":  # what of all that stands before it, also in the same portion
            found = [(pointer, name, count) for (pointer, name), count in self.masks.counts.items()]
            return self._noun("masked", "", thing[1], thing[2], (found,), {}, None) if found else b""
        if thing[0] == "messages":
            return b"".join(map(self._message, *thing[1:]))
        what, line, body = thing
        if what == "frame":
            if body is not None:
                masked = self.masks.frame(body, typed=line.get("direction") == "out")
                if masked is not body:
                    line["masked"] = True
                line |= text_or_base64(masked, "raw")
            else:
                line = self.masks.value(line)
        elif what == "header":
            # The target was written without its secrets already; a member of it may be called `secret`.
            texts = {key: line[key] for key in line.keys() & {"title", "note"}}
            target = self.masks.known(line.get("target"))
            line = {**line, **self.masks.value(texts), **({} if target is None else {"target": target})}
        else:
            self._mask_state(line, body)
        return line_of(line)

    def _mask_state(self, line: dict[str, Any], body: bytes | None) -> bool:
        """Mask the line of a noun; whether there was nothing to mask in the noun."""
        value = line["value"]
        kind = str(line.get("kind"))
        line["value"] = self.masks.noun(kind, value, self._shapes.get(kind))
        if line.get("kind") == "resource" and isinstance(line.get("id"), str):
            line["id"] = self.masks.text(line["id"])
        if body is not None:
            line |= text_or_base64(self.masks.frame(body, typed=False), "reply_raw")
        return line["value"] is value


def text_or_base64(raw: bytes, name: str) -> dict[str, str]:
    """Bytes as a text, or as base64 where they are no UTF-8."""
    try:
        return {name: raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}


def raw_of(line: dict[str, Any], name: str) -> bytes | None:
    """Take the bytes out of a line."""
    text, coded = line.pop(name, None), line.pop(f"{name}_base64", None)
    if isinstance(text, str):
        return text.encode(errors="surrogatepass")
    try:
        return base64.b64decode(coded) if isinstance(coded, str) else None
    except ValueError:
        return None


def answer(books: dict[str, Book], portion: Portion) -> Any:
    """Do what one portion says."""
    what, rid, given = portion
    if what == "open":
        books[rid] = Book(*given)
    elif what == "learn":
        books[rid].masks.learn(given)
    elif what == "again":
        return books[rid].again(given)
    elif what == "anew":
        books[rid].masks.counts.clear()
        books[rid].before = given
    elif what == "write":
        # A few at a time, while they are at hand: all of them at once would not fit where a processor looks first.
        return books[rid].write(thing for few in given for thing in marshal.loads(few))  # noqa: S302 (see `unpacked`)
    elif what == "close":
        books.pop(rid, None)
    return b"", None


def served(books: dict[str, Book], portion: Portion) -> Any:
    """The same; nothing, and why, when that fails: what one server sent must not end the recordings of all others."""
    try:
        return answer(books, portion)
    except Exception as fault:
        books.pop(portion[1], None)
        return None, f"Parley could not mask it ({type(fault).__name__})"


def main() -> None:
    """Serve until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(_NICE)
    for pipe in (sys.stdin, sys.stdout):
        with suppress(OSError, AttributeError):  # Linux alone has it: fewer turns for what is larger than a pipe
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)
    books: dict[str, Book] = {}
    while len(length := sys.stdin.buffer.read(LENGTH)) == LENGTH:
        portions = unpacked(sys.stdin.buffer.read(int.from_bytes(length)))
        sys.stdout.buffer.write(packed([served(books, portion) for portion in portions]))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
