"""Two JSON values side by side, line by line: what is equal, what changed, what only one of them has. Pure functions.

Objects are compared by key, whatever the order; lists by their longest common run, large ones by place; texts of
several lines by line. Ids and times can be left out of account. The work is bounded: what comes after the last row that
is made is said to be left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, Literal, TypeVar

from app import bounds
from app.core.json.values import MISSING, same

RowKind = Literal["equal", "changed", "removed", "added"]
Part = tuple[str, str]
"""A piece of a line, by what it is: `k` key, `s` text, `n` number, `b` true, false or null, `p` the rest."""
T = TypeVar("T")

IGNORED = (
    "Left out of account: UUIDs, hexadecimal texts of 16 digits or more, RFC 3339 times, "
    "and whatever stands under a key that is id or ends in _id or Id."
)
"""What `ignore` means, for people."""
_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?:0x)?[0-9a-fA-F]{16,128}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,12})?(?:[Zz]|[+-]\d\d:?\d\d)?")


@dataclass(slots=True, frozen=True)
class Row:
    """One line of both values, or of the one that has it."""

    kind: RowKind
    depth: int
    left: tuple[Part, ...] = ()
    right: tuple[Part, ...] = ()
    ignored: bool = False
    """It differs only by an id or a time."""
    goes_on: bool = False
    """It differs together with the row before: both are lines of one value."""


@dataclass(slots=True, frozen=True)
class Run:
    """Rows that stand together: a difference with what is around it, or equal ones that are folded."""

    rows: tuple[Row, ...]
    folded: bool


@dataclass(slots=True)
class Difference:
    """Two values, line by line."""

    rows: list[Row] = field(default_factory=list)
    ignored: int = 0
    cut: bool = False
    """There was more than is compared line by line."""

    @property
    def count(self) -> int:
        """How many lines differ."""
        return sum(row.kind != "equal" for row in self.rows)

    @property
    def changes(self) -> int:
        """How many values differ: one that is added as a whole is one, however many lines it has."""
        return sum(row.kind != "equal" and not row.goes_on for row in self.rows)

    @property
    def runs(self) -> list[Run]:
        """The rows, with what is equal and far from every difference folded."""
        return list(_runs(self.rows))


def compared(left: Any, right: Any, *, ignore: bool = False) -> Difference:
    """Two values line by line; with `ignore`, ids and times that differ count as equal."""
    found = Difference()
    for row in _top(left, right, ignore):
        if len(found.rows) >= bounds.DIFFERENCE_ROWS:
            found.cut = True
            break
        found.rows.append(row)
        found.ignored += row.ignored
    return found


def is_ignored(key: str, left: Any, right: Any) -> bool:
    """Whether two values that differ are ids or times: by the name of their key, or both by their form."""
    if isinstance(left, dict | list) or isinstance(right, dict | list):
        return False
    if key.lower() == "id" or key.endswith(("_id", "Id")):
        return True
    if not isinstance(left, str) or not isinstance(right, str) or max(len(left), len(right)) > 130:
        return False
    return any(form.fullmatch(left) and form.fullmatch(right) for form in (_ID, _TIME))


# ------------------------------------------------------------------------------------------------------------- rows


def _top(left: Any, right: Any, ignore: bool) -> Iterator[Row]:
    """The rows of both; the brackets around all of it say nothing."""
    if isinstance(left, dict) and isinstance(right, dict) and (left or right):
        for name in _union(left, right):
            yield from _rows(name, left.get(name, MISSING), right.get(name, MISSING), 0, name, ignore)
    else:
        yield from _rows("", left, right, 0, "", ignore)


def _rows(label: str, left: Any, right: Any, depth: int, key: str, ignore: bool) -> Iterator[Row]:
    """The rows of one place; `label` is the key before it, "" where there is none."""
    if left is MISSING or right is MISSING:
        kind: RowKind = "removed" if right is MISSING else "added"
        made = _lines(label, right if left is MISSING else left, depth)
        for number, (at, parts) in enumerate(made):
            one, two = (parts, ()) if kind == "removed" else ((), parts)
            yield Row(kind, at, one, two, goes_on=number > 0)
    elif isinstance(left, dict) and isinstance(right, dict) and (left or right) and depth < bounds.DIFFERENCE_DEPTH:
        yield _both(label, "{", depth)
        for name in _union(left, right):
            yield from _rows(name, left.get(name, MISSING), right.get(name, MISSING), depth + 1, name, ignore)
        yield _both("", "}", depth)
    elif isinstance(left, list) and isinstance(right, list) and (left or right) and depth < bounds.DIFFERENCE_DEPTH:
        yield _both(label, "[", depth)
        for one, two in _items(left, right):
            yield from _rows("", one, two, depth + 1, key, ignore)
        yield _both("", "]", depth)
    elif same(left, right):
        for at, parts in _lines(label, left, depth):
            yield Row("equal", at, parts, parts)
    elif ignore and is_ignored(key, left, right):
        yield Row("equal", depth, _line(label, left), _line(label, right), ignored=True)
    elif _is_long(left) and _is_long(right):
        yield Row("equal", depth, _text(label, "text"), _text(label, "text"))
        for line, other in _items(left.split("\n"), right.split("\n")):
            yield _text_row(line, other, depth + 1)
    elif _is_plain(left) and _is_plain(right) and not _is_long(left) and not _is_long(right):
        yield Row("changed", depth, _line(label, left), _line(label, right))
    else:
        yield from _rows(label, left, MISSING, depth, key, ignore)
        for row in _rows(label, MISSING, right, depth, key, ignore):
            yield replace(row, goes_on=True)


def _text_row(left: Any, right: Any, depth: int) -> Row:
    shown = tuple(() if one is MISSING else (("s", _cut(one)),) for one in (left, right))
    if left is MISSING or right is MISSING:
        return Row("removed" if right is MISSING else "added", depth, shown[0], shown[1])
    return Row("equal" if left == right else "changed", depth, shown[0], shown[1])


def _lines(label: str, value: Any, depth: int) -> Iterator[tuple[int, tuple[Part, ...]]]:
    """One value as lines, each with how deep it stands."""
    if _is_long(value):
        yield depth, _text(label, "text")
        for line in value.split("\n"):
            yield depth + 1, (("s", _cut(line)),)
        return
    if _is_plain(value) or depth >= bounds.DIFFERENCE_DEPTH:
        yield depth, _line(label, value)
        return
    is_object = isinstance(value, dict)
    yield depth, _text(label, "{" if is_object else "[")
    for name, one in value.items() if is_object else (("", each) for each in value):
        yield from _lines(name, one, depth + 1)
    yield depth, (("p", "}" if is_object else "]"),)


def _both(label: str, text: str, depth: int) -> Row:
    parts = _text(label, text)
    return Row("equal", depth, parts, parts)


def _text(label: str, text: str) -> tuple[Part, ...]:
    return (("k", _cut(label)), ("p", f": {text}")) if label else (("p", text),)


def _line(label: str, value: Any) -> tuple[Part, ...]:
    kind = "s" if isinstance(value, str) else "b" if value is None or isinstance(value, bool) else "n"
    shown = (kind if not isinstance(value, dict | list) else "p", _cut(json.dumps(value, ensure_ascii=False)))
    return (("k", _cut(label)), ("p", ": "), shown) if label else (shown,)


def _cut(text: str) -> str:
    most = bounds.DIFFERENCE_TEXT
    return text if len(text) <= most else f"{text[:most]}… {len(text) - most:,} more characters"


def _is_plain(value: Any) -> bool:
    return not isinstance(value, dict | list) or not value


def _is_long(value: Any) -> bool:
    """A text of several lines is shown as such."""
    return isinstance(value, str) and "\n" in value.strip("\n")


def _union(left: dict[str, Any], right: dict[str, Any]) -> list[str]:
    """The keys of both: those of the left in their order, each that only the right has after its neighbour there."""
    places: dict[str | None, list[str]] = {}
    before: str | None = None
    for name in right:
        if name in left:
            before = name
        else:
            places.setdefault(before, []).append(name)
    return [*places.get(None, ()), *(each for name in left for each in (name, *places.get(name, ())))]


def _items(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The items of two lists in pairs, MISSING where one has none. What both begin and end with is set aside first, so
    that only what lies between has to be short."""
    one, two = ([json.dumps(each, sort_keys=True) for each in side] for side in (left, right))
    most = min(len(one), len(two))
    head = next((at for at in range(most) if one[at] != two[at]), most)
    tail = next((at for at in range(most - head) if one[-1 - at] != two[-1 - at]), most - head)
    yield from zip(left[:head], right[:head], strict=True)
    ends = len(one) - tail, len(two) - tail
    middle = left[head : ends[0]], right[head : ends[1]]
    if max(map(len, middle)) > bounds.DIFFERENCE_ITEMS:
        yield from _padded(*middle)
    else:
        for how, a, b, c, d in SequenceMatcher(None, one[head : ends[0]], two[head : ends[1]], False).get_opcodes():
            # What was replaced is compared in pairs: an item that changed is no other item.
            pairs = middle[0][a:b], middle[1][c:d]
            yield from zip(*pairs, strict=True) if how == "equal" else _padded(*pairs)
    yield from zip(left[ends[0] :], right[ends[1] :], strict=True)


def _padded(left: Sequence[T], right: Sequence[T]) -> Iterator[tuple[Any, Any]]:
    for at in range(max(len(left), len(right))):
        yield left[at] if at < len(left) else MISSING, right[at] if at < len(right) else MISSING


# ------------------------------------------------------------------------------------------------------------ folds


def _runs(rows: list[Row]) -> Iterator[Run]:
    near = bounds.DIFFERENCE_CONTEXT
    kept = [False] * len(rows)
    for at, row in enumerate(rows):
        if row.kind != "equal":
            for close in range(max(0, at - near), min(len(rows), at + near + 1)):
                kept[close] = True
    start = 0
    for at in range(1, len(rows) + 1):
        if at < len(rows) and kept[at] == kept[start]:
            continue
        # Three lines are as quick to read as the line that would stand for them.
        short = at - start <= bounds.DIFFERENCE_CONTEXT + 1 and any(kept)
        yield Run(tuple(rows[start:at]), not kept[start] and not short)
        start = at
