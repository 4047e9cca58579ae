"""Which list of a value reads better as a table: objects with mostly the same keys. Decides, and draws nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from app import bounds
from app.core.json import pointer as pointers

ROWS = 2
"""So many objects make a table, when they"""
SHARED = 0.6
"""have this share of all their keys on the average, and not more keys than `bounds.TABLE_COLUMNS` in all."""
_DEEP = 4
_LOOKED_AT = 20
_SCALARS = 20


@dataclass(slots=True, frozen=True)
class Table:
    """A list of objects inside a value, and what stands beside it."""

    pointer: str
    """Where the list stands in the value."""
    rows: list[dict[str, Any]]
    columns: list[str]
    """Every key of every row, in the order in which they come first."""
    beside: list[tuple[str, Any]] = field(default_factory=list)
    """Scalars beside the list, each by its name."""
    rest: dict[str, Any] = field(default_factory=dict)
    """Lists and objects beside it, by their pointers in the value: no table shows them."""

    @property
    def plain(self) -> bool:
        """Whether the table says all there is: nothing large stands beside it, and most cells hold no branch."""
        cells = [one for row in islice(self.rows, _LOOKED_AT) for one in row.values()]
        return not self.rest and sum(_inside(one) for one in cells) * 2 <= len(cells)


def find(value: Any) -> Table | None:
    """The list that is worth a table: the value itself, the longest among its members, or one in its only object."""
    at, beside, rest = "", list[tuple[str, Any]](), dict[str, Any]()
    for _ in range(_DEEP):
        if not isinstance(value, dict):
            columns = columns_of(value)
            return None if columns is None else Table(at, value, columns, beside, rest)
        inside = {key: one for key, one in value.items() if _inside(one)}
        beside += islice(((key, one) for key, one in value.items() if key not in inside), _SCALARS - len(beside))
        if len(inside) > bounds.TABLE_COLUMNS:
            return None
        lists = {key: found for key, one in inside.items() if (found := columns_of(one)) is not None}
        objects = [key for key, one in inside.items() if isinstance(one, dict)]
        if not lists and len(objects) != 1:
            return None
        chosen = max(lists, key=lambda key: len(inside[key])) if lists else objects[0]
        if len(chosen) > bounds.TABLE_KEY:
            return None
        rest |= {f"{at}/{pointers.escape(key)}": one for key, one in inside.items() if key != chosen}
        at, value = f"{at}/{pointers.escape(chosen)}", inside[chosen]
        if lists:
            return Table(at, value, lists[chosen], beside, rest)
    return None


def columns_of(value: Any) -> list[str] | None:
    """The columns of a list of objects; None when it is no such list, or its objects have too little in common."""
    if not isinstance(value, list) or len(value) < ROWS:
        return None
    if not all(isinstance(one, dict) and one for one in value):
        return None
    columns: dict[str, None] = {}
    for row in value:
        if not columns.keys() >= row.keys():
            columns.update(dict.fromkeys(row))
            if len(columns) > bounds.TABLE_COLUMNS or any(len(key) > bounds.TABLE_KEY for key in row):
                return None
    held = sum(map(len, value))
    return list(columns) if held >= SHARED * len(value) * len(columns) else None


def ordered(rows: list[dict[str, Any]], by: str | None, *, descending: bool = False) -> list[int]:
    """The places of the rows in the order of one column; a row without it comes last either way."""
    if by is None:
        return list(range(len(rows)))
    having = [place for place, row in enumerate(rows) if row.get(by) is not None]
    having.sort(key=lambda place: _rank(rows[place][by]), reverse=descending)
    return [*having, *(place for place, row in enumerate(rows) if row.get(by) is None)]


def numeric(values: Iterable[Any]) -> bool:
    """Whether a column holds numbers alone, apart from what is not there."""
    there = [one for one in values if one is not None]
    return bool(there) and all(isinstance(one, int | float) and not isinstance(one, bool) for one in there)


def _rank(value: Any) -> tuple[int, float, str]:
    if isinstance(value, bool):
        return 0, float(value), ""
    if isinstance(value, int | float):
        return 1, _number(value), ""
    if isinstance(value, str):
        return 2, 0.0, value[:200].casefold()
    return 3, float(len(value)) if isinstance(value, dict | list) else 0.0, ""


def _number(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _inside(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)
