"""The shape of JSON: keys and types without values, merged over everything that a walk has seen of one address.

A shape is a text of types joined by `|` (`"null|string"`), a list of one shape, or an object of shapes in which a key
that was sometimes absent ends with `?`. What a server or a person supplied is opaque: `"…"`.
"""

from __future__ import annotations

from typing import Any

OPAQUE = "…"
Shape = Any

AS_RECEIVED = frozenset(
    {
        "params",
        "result",
        "arguments",
        "content",
        "data",
        "raw",
        "server_info",
        "server_capabilities",
        "client_capabilities",
        "meta",
        "extensions",
        "request",
        "headers",
        "env",
        "value",
        "request_headers",
        "response_headers",
        "limits",
    }
)
"""Members whose inside is not ours."""
LISTS_AS_RECEIVED = frozenset({"tools", "resources", "templates", "prompts"})
"""Lists of the server's own objects."""


def shape_of(value: Any, name: str = "") -> Shape:
    """The shape of one value that stands under this name."""
    if isinstance(value, dict):
        if name in AS_RECEIVED:
            return OPAQUE
        return {key: shape_of(child, key) for key, child in value.items()}
    if isinstance(value, list):
        if name in LISTS_AS_RECEIVED or name in AS_RECEIVED:
            return OPAQUE
        merged: Shape = None
        for child in value:
            merged = merge(merged, shape_of(child))
        return [merged] if merged is not None else []
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


def merge(one: Shape, other: Shape) -> Shape:
    """The shape that both fit. Scalars and opaque parts join as a sorted list of types."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if _is_object(one) and _is_object(other):
        return _merge_objects(one, other)
    if isinstance(one, list) and isinstance(other, list):
        inside = merge(one[0] if one else None, other[0] if other else None)
        return [] if inside is None else [inside]
    options = [part for each in (one, other) for part in _parts(each)]
    return _joined(options)


def _merge_objects(one: dict[str, Shape], other: dict[str, Shape]) -> dict[str, Shape]:
    merged: dict[str, Shape] = {}
    for key in sorted({each.rstrip("?") for each in (*one, *other)}):
        pair = [each.get(key, each.get(f"{key}?")) for each in (one, other)]
        always = key in one and key in other
        merged[key if always else f"{key}?"] = merge(pair[0], pair[1])
    return merged


def _parts(shape: Shape) -> list[Shape]:
    if isinstance(shape, str):
        return list(shape.split("|"))
    if isinstance(shape, dict) and not _is_object(shape):
        return list(shape["or"])
    return [shape]


def _is_object(shape: Shape) -> bool:
    """Whether it is the shape of an object, not a choice between shapes."""
    return isinstance(shape, dict) and set(shape) != {"or"}


def _joined(parts: list[Shape]) -> Shape:
    """Types as one text; where an object or a list is among them, an object `{"or": [...]}`."""
    words = sorted({each for each in parts if isinstance(each, str)})
    whole: Shape = None
    for each in parts:
        if isinstance(each, dict):
            whole = merge(whole, each) if isinstance(whole, dict) or whole is None else whole
    lists: Shape = None
    for each in parts:
        if isinstance(each, list):
            lists = merge(lists, each)
    rest = [each for each in (whole, lists) if each is not None]
    return {"or": [*words, *rest]} if rest else "|".join(words)


def differences(golden: Shape, seen: Shape, where: str = "") -> list[str]:
    """How what was seen breaks the promise: a key gone, a type that was never there, a key that nobody wrote down."""
    if golden == seen:
        return []
    if _is_object(golden) and _is_object(seen):
        return _object_differences(golden, seen, where)
    if isinstance(golden, list) and isinstance(seen, list):
        if not seen:
            return []
        return differences(golden[0], seen[0], f"{where}[]") if golden else [f"{where}: holds something now"]
    allowed = _parts(golden)
    found: list[str] = []
    for part in _parts(seen):
        if isinstance(part, str):
            if part not in allowed:
                found.append(f"{where}: {part} is new")
            continue
        same = [each for each in allowed if type(each) is type(part)]
        found += differences(same[0], part, where) if same else [f"{where}: {type(part).__name__} is new"]
    return found


def _object_differences(golden: dict[str, Shape], seen: dict[str, Shape], where: str) -> list[str]:
    found = []
    for key, shape in golden.items():
        bare = key.rstrip("?")
        if bare in seen:
            found += differences(shape, seen[bare], f"{where}/{bare}")
        elif f"{bare}?" in seen:
            if not key.endswith("?"):
                found.append(f"{where}/{bare}: is sometimes absent")
            found += differences(shape, seen[f"{bare}?"], f"{where}/{bare}")
        elif not key.endswith("?"):
            found.append(f"{where}/{bare}: is gone")
    known = {key.rstrip("?") for key in golden}
    found += [f"{where}/{key.rstrip('?')}: is new" for key in seen if key.rstrip("?") not in known]
    return found
