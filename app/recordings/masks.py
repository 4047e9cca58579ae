"""What of a recording is a secret, and how it is masked: in messages and nouns, before anything is written.

A place is masked by the name of its member, by what its text looks like, or because the very text was typed as a secret
somewhere in this session: into the target, or into a field with such a name. What is masked is counted by its place.
JSON stays JSON. Light: it is all that the process needs which writes recordings, and knows no session and no file.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from html import escape
from math import isfinite
from typing import Any, Final
from urllib.parse import quote, quote_plus

from app import bounds, secrecy
from app.core.globs import matches
from app.recordings import quick, shapes
from app.recordings.protocol_names import PROTOCOL_NAMES
from app.recordings.suspects import CLEAN, hidden, in_prose, is_clean_text
from app.secret_names import NAME_LONGEST, sounds_secret

MASK: Final = secrecy.MASK
_DEEPEST: Final = 420
"""More than Parley itself reads, and less than what ends this process; what is nested deeper is masked as a text."""
_TYPED: Final = {"call": frozenset({"params"}), "ask": frozenset({"answer", "edited", "draft"})}
"""Members of nouns in which stands what people typed: names that may be secret are, and all that is below them."""
_NEVER: Final = frozenset(
    {"progressToken", "cursor", "nextCursor", "$ref", "jsonrpc", "method", "id", "rpc_id", "taskId"}
)
"""Members of the protocol that are no secrets whatever they sound like."""
_PROSE: Final = ("/description", "/instructions", "/title")
"""Members of the protocol whose texts explain something."""
_SHORTEST_CODED: Final = 10
_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})
_SCHEMA: Final = frozenset({"properties", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"})
_TYPES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")


class Masks:
    """What is masked in one recording."""

    def __init__(self, values: Iterable[str] = (), names: Iterable[str] = (), pointers: Iterable[str] = ()) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        """How often something was masked, by its pointer and its name."""
        self._values: list[str] = []
        self._sought: list[str] = []
        """These, and what becomes of them in an address, in base64 and in a text within a text; the longest first."""
        wanted = {name.strip().casefold() for name in names if name.strip()}
        self._globs = tuple(sorted(name for name in wanted if "*" in name))
        self._names = frozenset(wanted.difference(self._globs))
        self._pointers = {one: parts for one in pointers if (parts := _parts(one))}
        self._any_name = bool(wanted or self._pointers)
        """Whether any name may be meant."""
        self._met: set[str] = set()
        """Which of these names, globs and pointers were met."""
        self.learn(values)

    # ---- what is known

    def learn(self, values: Iterable[str]) -> None:
        """From now on these texts are masked wherever they stand; not words that every message is made of."""
        for value in values:
            for one in (value, value.strip()):
                if len(one) < bounds.MASK_SHORTEST or one in PROTOCOL_NAMES:
                    continue
                if one not in self._values and len(self._values) < bounds.MASKS:
                    self._values.append(one)
                    self._sought.append(one)
                    if len(self._sought) < bounds.MASKS:
                        self._sought += [form for form in _forms(one) if form not in self._sought]
        self._sought.sort(key=len, reverse=True)

    def unmet(self, wanted: Iterable[str]) -> list[str]:
        """Which of the names and pointers of a person nothing had so far."""
        return [one for one in wanted if one not in self._met and one.strip().casefold() not in self._met]

    def _wants(self, key: str) -> bool:
        """Whether a person wants a member of this name to be masked."""
        if not self._names and not self._globs:
            return False
        small = key.casefold()
        met = [small] if small in self._names else [one for one in self._globs if matches(one, small)]
        self._met.update(met)
        return bool(met)

    def _typed(self, name: str, value: str) -> None:
        """A secret that somebody typed may come again anywhere. A short word would be masked in every sentence."""
        plain = value.isalpha() and len(value) < bounds.MASK_WORD
        if not plain or sounds_secret(name, "field") or self._wants(name):
            self.learn([value])

    # ---- texts

    def frame(self, raw: bytes, *, typed: bool) -> bytes:
        """The bytes of a message without its secrets; the same bytes when there are none. `typed`: it is ours."""
        text = _text(raw)
        if text is None:
            return self.quoted(raw)
        try:
            if self._is_clean(quick.read(raw), _sounds_of(typed)) and not _has_one(text, self._sought):
                return raw
        except ValueError:
            pass  # it may be read all the same
        try:
            value = json.loads(text)
            masked = self._walk(value, (), typed, _DEEPEST)
        except (ValueError, RecursionError):
            return self.text(text).encode() if self._is_hidden(text) else raw
        if masked is value:
            # What is written twice, or in another way, is not seen in the value: the text is looked at too.
            sought = [one for one in self._sought if one in text]
            told = dump(value).decode() if sought else ""
            return self.text(text).encode() if any(text.count(one) > told.count(one) for one in sought) else raw
        return dump(masked)

    def text(self, text: str, pointer: str = "") -> str:
        """A text without its secrets."""
        found = (in_prose if pointer.endswith(_PROSE) else hidden)(text)
        if found and any(text[one.start : one.end] not in (MASK, secrecy.AGAIN) for one in found):
            for one in found:
                self._count(pointer, one.name.rstrip(":= "))
            text = secrecy.replaced(text, found, lambda _: MASK)
        for value in self._sought:
            if value in text:
                self._count(pointer, "a secret that was typed")
                text = text.replace(value, MASK)
        return text

    def quoted(self, raw: bytes) -> bytes:
        """A JSON text, or anything else, without the texts that are known to be secrets."""
        for value in self._sought:
            raw = raw.replace(value.encode(errors="surrogatepass"), MASK.encode())
        return raw

    def known(self, value: Any) -> Any:
        """A JSON value without the texts that are known to be secrets."""
        if isinstance(value, str):
            return self.quoted(value.encode()).decode()
        if isinstance(value, dict):
            return {key: self.known(one) for key, one in value.items()}
        return [self.known(one) for one in value] if isinstance(value, list) else value

    def _is_hidden(self, text: str) -> bool:
        return self.text(text) != text

    # ---- values

    def noun(self, kind: str, value: dict[str, Any], shape: shapes.Shape = None) -> dict[str, Any]:
        """What is written of a noun, without its secrets; the very same object when there are none."""
        if self._is_clean(value, _SOUNDS_EITHER):
            return value
        below = shapes.members_of(shape)
        typed = _TYPED.get(kind, frozenset())
        return {key: self._member(key, one, below.get(key), (), key in typed) for key, one in value.items()}

    def _member(self, key: str, value: Any, shape: shapes.Shape, at: tuple[str, ...], typed: bool) -> Any:
        """A member of a noun: its name is Parley's, and whoever reads it must find what the noun is made of."""
        path = (*at, key)
        if shape is not None or type(value) not in (str, dict, list):
            return self._own(value, shape, path, typed)
        now = None if key in _NEVER else self._named(key, value, path, typed)
        return _alike(value, self._walk(value, path, typed, _DEEPEST) if now is None else now)

    def _own(self, value: Any, shape: shapes.Shape, at: tuple[str, ...], typed: bool) -> Any:
        """What is Parley's own: words and numbers of it are no secrets, but what others said stands inside it."""
        if shape is None:
            return _alike(value, self._walk(value, at, typed, _DEEPEST))
        if type(shape) is tuple and value is not None:
            kind, inside = shape
            if kind == shapes.NOUN and type(value) is dict:
                below = shapes.members_of(shape)
                return {key: self._member(key, one, below.get(key), at, typed) for key, one in value.items()}
            if kind == shapes.MEMBERS and type(value) is dict:
                return {self._name(key, at): self._own(one, inside, (*at, key), typed) for key, one in value.items()}
            if kind == shapes.EACH and type(value) is list:
                return [self._own(one, inside, (*at, "*"), typed) for one in value]
            if kind == shapes.PARTS and type(value) is list and len(value) == len(inside):
                return [self._own(one, below, (*at, "*"), typed) for one, below in zip(value, inside, strict=True)]
        return value

    def value(self, value: Any, *, typed: bool = False) -> Any:
        """A JSON value without its secrets; the very same object when there are none."""
        if self._is_clean(value, _sounds_of(typed)):
            return value
        return self._walk(value, (), typed, _DEEPEST)

    def _is_clean(self, value: Any, sounds: _Sounds) -> bool:
        """Whether nothing at all would be masked in a value: no name in it sounds secret, no text in it looks like one
        or has one of those that are sought; and no number is none. Most values are, and this is a fraction of the work
        of masking one."""
        if self._any_name:
            return False
        sought, level = self._sought, [value if type(value) is dict or type(value) is list else [value]]
        for _ in range(_DEEPEST):
            below: list[Any] = []
            for several in level:
                values: Iterable[Any] = several
                if type(several) is dict:
                    if not sounds.quiet.issuperset(several) and sounds.any_of(several):
                        return False
                    if sought and any(_has_one(name, sought) for name in several):
                        return False
                    values = several.values()
                for one in values:
                    kind = type(one)
                    if kind is str:
                        if (one not in CLEAN and not is_clean_text(one)) or (sought and _has_one(one, sought)):
                            return False
                    elif kind is dict or kind is list:
                        below.append(one)
                    elif kind is float and not isfinite(one):
                        return False
            if not below:
                return True
            level = below
        return False

    def _walk(self, value: Any, at: tuple[str, ...], typed: bool, depth: int) -> Any:
        if self._pointers and at and value not in (None, MASK) and self._is_pointed_at(at):
            self._count(_pointer(at), "a pointer of yours")
            self._learn_all(value)
            return MASK
        kind = type(value)
        if kind is str:
            return self._string(value, at)
        if depth <= 0:
            raise RecursionError("nested too deep to be looked through")
        if kind is dict:
            return self._object(value, at, typed, depth - 1)
        if kind is list:
            made = [self._walk(one, (*at, "*"), typed, depth - 1) for one in value]
            return value if all(one is two for one, two in zip(made, value, strict=True)) else made
        return value

    def _string(self, value: str, at: tuple[str, ...]) -> str:
        if not hidden(value) and not _has_one(value, self._sought):
            return value
        masked = self.text(value, _pointer(at))
        return value if masked == value else masked

    def _object(self, value: dict[str, Any], at: tuple[str, ...], typed: bool, depth: int) -> dict[str, Any]:
        made: dict[str, Any] | None = None
        for key, one in value.items():
            path = (*at, key)
            now = None
            if one is not None and key not in _NEVER and (type(one) is not bool or self._wants(key)):
                now = self._named(key, one, path, typed)
            if now is None:
                now = self._walk(one, path, typed, depth)
            name = self._name(key, at)
            if made is None and (now is not one or name is not key):
                made = dict(value)
            if made is not None:
                if name is not key:
                    made.pop(key, None)
                made[name] = now
        return value if made is None else made

    def _name(self, key: str, at: tuple[str, ...]) -> str:
        """What a member is called without secrets."""
        if not self._sought or key in PROTOCOL_NAMES or not _has_one(key, self._sought):
            return key
        return self.text(key, _pointer(at))

    def _named(self, key: str, value: Any, path: tuple[str, ...], typed: bool) -> Any:
        """What stands in the place of a member whose name is that of a secret; None when it is not."""
        wanted = self._wants(key)
        if not wanted and not _sounds(key, typed):
            return None
        if isinstance(value, dict) and (_is_schema(value) or not (typed or wanted)):
            return None  # a schema speaks of a secret, and has none
        if isinstance(value, list) and not wanted and not typed and not all(isinstance(one, str) for one in value):
            return None
        if value in ("", MASK, secrecy.AGAIN) or (isinstance(value, dict | list) and not value):
            return value
        self._count(_pointer(path), key)
        if typed or wanted:
            self._learn_all(value, key)
        if isinstance(value, list) and not wanted:
            return [MASK for _ in value]
        return MASK

    def _learn_all(self, value: Any, name: str = "password") -> None:
        """What is masked as a whole may come again in parts."""
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                self._typed(name, one)
            elif isinstance(one, dict):
                waiting += one.values()
            elif isinstance(one, list):
                waiting += one

    def _is_pointed_at(self, at: tuple[str, ...]) -> bool:
        met = [
            pointer
            for pointer, parts in self._pointers.items()
            if len(parts) == len(at)
            and all(one in ("*", step) or (step == "*" and one.isdigit()) for one, step in zip(parts, at, strict=True))
        ]
        self._met.update(met)
        return bool(met)

    def _count(self, pointer: str, name: str) -> None:
        key = (pointer[: bounds.MASK_POINTER], name[: bounds.MASK_NAME])
        if key in self.counts or len(self.counts) < bounds.MASK_PLACES:
            self.counts[key] = self.counts.get(key, 0) + 1


def _forms(secret: str) -> Iterator[str]:
    """The other ways in which a text comes along: in an address, in base64 wherever it stands in that, in a JSON text
    within a text, and in markup."""
    try:
        raw = secret.encode()
    except UnicodeEncodeError:
        return
    yield from {quote(secret), quote(secret, safe=""), quote_plus(secret), escape(secret)} - {secret}
    yield from {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]} - {secret}
    for before, first in ((0, 0), (1, 2), (2, 3)):  # what stands around it is no part of what can be known
        coded = b64encode(bytes(before) + raw).decode()[first : (before + len(raw)) * 8 // 6]
        if len(coded) >= _SHORTEST_CODED:
            yield from {coded, coded.replace("+", "-").replace("/", "_")}


def _alike(value: Any, masked: Any) -> Any:
    """What is masked as a whole, as something that can be read in its place."""
    if type(masked) is type(value) or masked != MASK:
        return masked
    return {MASK: MASK} if type(value) is dict else [MASK] if type(value) is list else masked


def _is_schema(value: dict[str, Any]) -> bool:
    return value.get("type") in _TYPES or not _SCHEMA.isdisjoint(value)


def _sounds(name: str, typed: bool) -> bool:
    if typed:
        return sounds_secret(name, "argument") or sounds_secret(name, "field")
    return sounds_secret(name, "field") or name.lower() in _HEADERS


class _Sounds:
    """Whether a member of a name may be a secret, remembered: a session says the same names again and again."""

    def __init__(self, *typed: bool) -> None:
        self._typed = typed
        """What we typed, what the server sent, or both."""
        self.quiet: set[str] = set()
        """Names that are none."""

    def any_of(self, names: Iterable[str]) -> bool:
        """Whether one of these names may be that of a secret."""
        return not all(self._is_quiet(name) for name in names)

    def _is_quiet(self, name: str) -> bool:
        if name in self.quiet:
            return True
        if name not in _NEVER and any(_sounds(name, typed) for typed in self._typed):
            return False
        if len(name) <= NAME_LONGEST:
            if len(self.quiet) >= bounds.MASK_REMEMBERED:
                self.quiet.clear()
            self.quiet.add(name)
        return True


_SOUNDS_TYPED: Final = _Sounds(True)
_SOUNDS: Final = _Sounds(False)
_SOUNDS_EITHER: Final = _Sounds(True, False)


def _sounds_of(typed: bool) -> _Sounds:
    return _SOUNDS_TYPED if typed else _SOUNDS


def _has_one(text: str, sought: list[str]) -> bool:
    for value in sought:  # noqa: SIM110 (a generator takes longer than the search)
        if value in text:
            return True
    return False


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _pointer(at: tuple[str, ...]) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in at)


def _parts(pointer: str) -> tuple[str, ...]:
    """The steps of a pointer; nothing for what is none."""
    if not pointer.startswith("/"):
        return ()
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/"))


_AS_IT_IS: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ESCAPED: Final = json.JSONEncoder(separators=(",", ":"))


def dump(value: Any) -> bytes:
    """One line of JSON; characters stay as they are, unless one of them cannot be written in UTF-8."""
    try:
        return _AS_IT_IS.encode(value).encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(value).encode()


def line_of(value: Any) -> bytes:
    """A whole line. Half of a character, which a server may send and no reader takes for JSON, becomes the sign for
    what is none: otherwise it would keep an ask or a call out of the recording."""
    try:
        return _AS_IT_IS.encode(value).encode() + b"\n"
    except UnicodeEncodeError:
        text = _AS_IT_IS.encode(value).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return text.encode() + b"\n"
