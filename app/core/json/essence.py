"""What of two results is worth comparing: not what stands there twice, and not what only one revision has."""

from __future__ import annotations

from typing import Any

from app.core.json import text as jsontext
from app.core.json.values import MISSING, same

_APART = {"resultType", "_meta"}
"""Members of a result that only one revision has."""


def essence(left: Any, right: Any) -> tuple[Any, Any, str]:
    """What of two results is worth comparing, and what it is: the structured content without the text that repeats it,
    the text as JSON when it is that and nothing else is there, else all but what only one revision has."""
    both = [
        {key: value for key, value in one.items() if key not in _APART and (key, value) != ("isError", False)}
        if isinstance(one, dict)
        else one
        for one in (left, right)
    ]
    if all(isinstance(one, dict) and isinstance(one.get("structuredContent"), dict) for one in both):
        both = [_unrepeated(one) for one in both]
        if all(one.keys() == {"structuredContent"} for one in both):
            return both[0]["structuredContent"], both[1]["structuredContent"], "structuredContent"
    read = [_only_text(one) for one in both]
    if all(isinstance(one, dict | list) for one in read):
        return read[0], read[1], "text, read as JSON"
    return both[0], both[1], "result"


def _only_text(result: Any) -> Any:
    """The one text of a result that has nothing else, as JSON; MISSING when it is none."""
    content = result.get("content") if isinstance(result, dict) and result.keys() == {"content"} else None
    return _as_json(content[0]) if isinstance(content, list) and len(content) == 1 else MISSING


def _as_json(block: Any) -> Any:
    """A text block as JSON; MISSING when it is none."""
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return MISSING
    parsed = jsontext.parse(text.encode(errors="replace"))
    return MISSING if parsed.problem is not None or parsed.unread is not None else parsed.value


def _unrepeated(result: dict[str, Any]) -> dict[str, Any]:
    """A result without the texts that say the same as its structured content; `{"result": …}` is a wrapper of some."""
    structured, content = result["structuredContent"], result.get("content")
    if not isinstance(content, list):
        return result
    wrapped = structured["result"] if structured.keys() == {"result"} else MISSING

    def repeats(block: Any) -> bool:
        read = _as_json(block)
        if read is not MISSING and (same(read, structured) or (wrapped is not MISSING and same(read, wrapped))):
            return True
        return wrapped is not MISSING and isinstance(block, dict) and block.get("text") == wrapped

    left = [block for block in content if not repeats(block)]
    rest = {key: value for key, value in result.items() if key != "content"}
    return {"content": left, **rest} if left else rest
