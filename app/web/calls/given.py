"""What a call was given, and how two calls differ in that, in words. Knows calls; knows no page."""

from __future__ import annotations

from itertools import islice
from typing import Any

from app.core.calls import Call
from app.core.json import text as jsontext
from app.core.json.values import MISSING, same
from app.web.kit import format, json_table
from app.web.kit.html import Html

NAMED = ("tools/call", "prompts/get")
"""Calls whose arguments stand apart from the name of what is called."""
_TOLD = 3
_VALUE = 24
_LOOKED_AT = 200


def given_of(call: Call) -> Any:
    """What was asked, apart from what the name says."""
    params = call.params or {}
    return params.get("arguments") if call.method in NAMED else params


def plain_of(call: Call) -> dict[str, Any]:
    """The same as an object, without what the protocol adds to it."""
    given = given_of(call)
    return (
        {key: value for key, value in given.items() if key not in ("_meta", "task")} if isinstance(given, dict) else {}
    )


def on_a_line(call: Call, most: int) -> list[tuple[str, Html]]:
    """What was asked, as names and values; the first of them."""
    given = given_of(call)
    pairs = given.items() if isinstance(given, dict) else [("", given)] if given is not None else []
    return [(name, json_table.in_short(value)) for name, value in islice(pairs, most)]


def differs(call: Call, other: Call) -> str:
    """How what another call was given differs from this one, in the other's values."""
    mine, there = plain_of(call), plain_of(other)
    keys = list(islice(dict.fromkeys([*there, *mine]), _LOOKED_AT))
    found = [key for key in keys if not _alike(mine.get(key, MISSING), there.get(key, MISSING))]
    if not found:
        return "same arguments"
    told = [f"{format.gist(key, _VALUE)} {_value(there.get(key, MISSING))}" for key in found[:_TOLD]]
    return ", ".join([*told, *([f"{len(found) - _TOLD} more"] if len(found) > _TOLD else [])])


def _alike(one: Any, two: Any) -> bool:
    return one is two if MISSING in (one, two) else same(one, two)


def _value(value: Any) -> str:
    return "not set" if value is MISSING else format.gist(jsontext.dump(value).decode(errors="replace"), _VALUE)
