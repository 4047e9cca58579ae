"""Arguments that a tool wants repeated as HTTP headers (`x-mcp-header`, 2026-07-28), and how a value is written there.

Pure functions over JSON. A schema may annotate a property only where its place among the arguments is certain: below
the root through `properties` alone (R6-22, R6-23). Every place of a schema is looked at, however deep; references are
not followed, so a hostile schema costs no more than its size.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.core.rules import catalogue
from app.core.wire import Finding

ParamHeaders = dict[tuple[str, ...], str]
"""Which arguments of a tool are repeated: the path of a property, and the last part of the header's name."""

_KEY = "x-mcp-header"
_PREFIX = "Mcp-Param-"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PLAIN = re.compile(r"[ -~]*")
_ENCODED = ("=?base64?", "?=")
_TYPES = ("string", "integer", "boolean")
_ONE_BELOW = frozenset(
    {"items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"}
    | {"not", "if", "then", "else", "contentSchema"}
)
_SOME_BELOW = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED_BELOW = frozenset(("patternProperties", "dependentSchemas", "$defs", "definitions"))


def header_value(text: str) -> str:
    """A text as a header can carry it: as it is when that is safe, else in base64 between marks (R6-22)."""
    looks_encoded = text.startswith(_ENCODED[0]) and text.endswith(_ENCODED[1]) and len(text) >= len("".join(_ENCODED))
    if _PLAIN.fullmatch(text) and text == text.strip() and not looks_encoded:
        return text
    return base64.b64encode(text.encode(errors="surrogatepass")).decode().join(_ENCODED)


def param_headers(wanted: ParamHeaders, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headers of one call. What is not among the arguments, or is no plain value, has none."""
    found = []
    for path, name in wanted.items():
        value: Any = arguments
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        text = _written(value)
        if text is not None:
            found.append((_PREFIX + name, header_value(text)))
    return found


def _written(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:  # a number of more digits than Python writes
        return None


def sift_tools(tools: list[Any]) -> tuple[list[Any], list[tuple[Any, Finding]], dict[str, ParamHeaders]]:
    """The tools to offer, those that must be rejected with the reason, and the headers of the rest (R6-23)."""
    kept: list[Any] = []
    rejected: list[tuple[Any, Finding]] = []
    headers: dict[str, ParamHeaders] = {}
    for tool in tools:
        found, reason = _annotations(tool.get("inputSchema") if isinstance(tool, dict) else None)
        if reason is not None:
            rejected.append((tool, catalogue.tool_rejected(name=tool.get("name"), why=reason)))
            continue
        kept.append(tool)
        if found and isinstance(tool.get("name"), str):
            headers[tool["name"]] = found
    return kept, rejected, headers


def _annotations(schema: Any) -> tuple[ParamHeaders, str | None]:
    """The annotated properties of an input schema, or why one of them is not allowed."""
    found: ParamHeaders = {}
    taken: dict[str, str] = {}
    for path, place in _places(schema):
        if _KEY not in place:
            continue
        if not path:
            return {}, f"`{_KEY}` stands where its property cannot be reached by `properties` alone"
        where, name = ".".join(path), place[_KEY]
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            said = f"`{name[:60]}`" if isinstance(name, str) else "no string"
            return {}, f"the `{_KEY}` of `{where}` is {said}, which is no name for a header"
        if place.get("type") not in _TYPES:
            return {}, f"the property `{where}` has an `{_KEY}` and is no string, integer or boolean"
        if (other := taken.setdefault(name.lower(), where)) != where:
            return {}, f"the properties `{other}` and `{where}` have the same `{_KEY}`"
        found[path] = name
    return found, None


def _places(schema: Any) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Every schema in a schema, with its path of properties; None where something else led there."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    while waiting:
        path, place = waiting.pop()
        if not isinstance(place, dict):
            continue
        yield path, place
        for key, value in place.items():
            if key in _ONE_BELOW:
                waiting.append((None, value))
            elif key in _SOME_BELOW and isinstance(value, list):
                waiting += [(None, each) for each in value]
            elif key in _NAMED_BELOW and isinstance(value, dict):
                waiting += [(None, each) for each in value.values()]
            elif key == "properties" and isinstance(value, dict):
                waiting += [(None if path is None else (*path, name), each) for name, each in value.items()]
