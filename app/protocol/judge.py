"""What the specification's own types say of a result, as findings. The only place that knows the SDK's tables."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.core.json.text import THREAD_ABOVE
from app.core.lane import apart
from app.core.rules import results, stateless
from app.core.wire import Finding

_JUDGED = 500
"""So many items of a list are judged: validation holds the interpreter, 50 us for each faulty one."""


def load() -> None:
    """Import the tables, 0.3 s of it: done in a thread after the start, so that no first result waits for them."""
    from mcp_types import methods  # noqa: F401


async def judge(method: str, version: str | None, result: Any, size: int) -> list[Finding]:
    """The findings about a result of a method in a revision. Large ones are judged in a thread."""
    if version is None or not isinstance(result, dict):
        return []
    if stateless.is_stateless(version):
        result = {"resultType": "complete", **result}  # absent means complete (R6-04)
    if size <= THREAD_ABOVE:
        return _judged(method, version, result)
    return await apart(_judged, method, version, result)


def _judged(method: str, version: str, result: dict[str, Any]) -> list[Finding]:
    complaints = _complaints(method, version, result)
    found = [results.result_shape(method, version, complaints)] if complaints else []
    return found + results.base64_parts(method, result)


def _complaints(method: str, version: str, result: dict[str, Any]) -> list[str]:
    """In words, what the tables object to."""
    table = _table(method, version)
    if table is None:
        return []
    result = {key: value[:_JUDGED] if isinstance(value, list) else value for key, value in result.items()}
    try:
        table.validate_python(result, by_name=False)
    except ValidationError as fault:
        errors = fault.errors(include_url=False, include_input=False, include_context=False)
        found = (_complaint(error["loc"], error["msg"], result, version) for error in errors)
        return list(dict.fromkeys(each for each in found if each is not None))[:20]
    return []


@lru_cache(maxsize=256)
def _table(method: str, version: str) -> TypeAdapter[Any] | None:
    """What a result of a method is in a revision; None for what the specification does not know.

    Not by the SDK's own function, which also writes the result anew: half of the time that a small one takes."""
    from mcp_types import methods

    shape: Any = methods.SERVER_RESULTS.get((method, version))
    return None if shape is None else TypeAdapter(shape)


_BLOCKS = {
    "TextContent": "text",
    "ImageContent": "image",
    "AudioContent": "audio",
    "ResourceLink": "resource_link",
    "EmbeddedResource": "resource",
}
_CONTENTS = {"TextResourceContents": "text", "BlobResourceContents": "blob"}


def _complaint(loc: tuple[int | str, ...], said: str, result: Any, version: str) -> str | None:
    """One error in words; None for what the validator says of the kinds of content that a block does not even try to
    be: it names every kind that there is."""
    path: list[str] = []
    value = result
    for part in loc:
        where = "/".join(path)[:200]
        if part in _BLOCKS:
            kind = value.get("type") if isinstance(value, dict) else None
            if not isinstance(value, dict):
                return f"`{where}` is no object"
            if kind is None:
                return f"`{where}/type` is missing"
            if not isinstance(kind, str):
                return f"`{where}/type` is no string"
            if kind not in _BLOCKS.values():
                return f"`{where}/type` is {json.dumps(kind[:60])}, which is no kind of content in {version}"
            if kind != _BLOCKS[str(part)]:
                return None
        elif part in _CONTENTS:
            if not isinstance(value, dict):
                return f"`{where}` is no object"
            if not value.keys() & {"text", "blob"}:
                return f"`{where}` has neither `text` nor `blob`"
            if _CONTENTS[str(part)] not in value:
                return None
        else:
            path.append(str(part))
            below = isinstance(value, dict) and part in value
            inside = isinstance(value, list) and isinstance(part, int) and part < len(value)
            value = value[part] if below or inside else None
    return f"`{'/'.join(path)[:200]}` {said.lower()[:200]}"
