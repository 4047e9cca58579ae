"""Models that need nobody: one says the question again, one always the same, one speaks like a very small model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio

from app.core import sampling
from app.models.base import Finished, Model, Usage, Writing

_PAUSE = 0.03
"""Between two words: fast enough to wait for, slow enough to see."""
_LINES = (
    "Here is a short answer from a model that lives in Parley and knows nothing.",
    "It streams word by word, so that both checkpoints can be seen without a network.",
)


async def offline(model: Model, params: dict[str, Any]) -> AsyncGenerator[Writing | Finished, None]:
    """The words of an offline model, one after the other, within `maxTokens` of them."""
    words = _text(model, params).split(" ")
    most = params.get("maxTokens")
    allowed = most if isinstance(most, int) and most > 0 else len(words)
    said = ""
    for word in words[:allowed]:
        said = f"{said} {word}" if said else word
        yield Writing(said)
        await anyio.sleep(_PAUSE if model.provider == "script" else 0)
    stop = "maxTokens" if len(words) > allowed else "endTurn"
    content = {"type": "text", "text": said}
    result = {"role": "assistant", "content": content, "model": model.label, "stopReason": stop}
    yield Finished(result, Usage(output_tokens=len(words[:allowed])))


def _text(model: Model, params: dict[str, Any]) -> str:
    asked = last_text(params)
    match model.provider:
        case "echo":
            return asked or "(nothing was asked)"
        case "canned":
            return model.text or "This is the canned answer."
        case _:
            return " ".join([*_LINES, f"You asked: {asked}" if asked else ""]).strip()


def last_text(params: dict[str, Any]) -> str:
    """The last text of a request."""
    messages = params.get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        for block in reversed(sampling.blocks(message) if isinstance(message, dict) else []):
            if isinstance(block, dict) and isinstance(block.get("text"), str):
                return str(block["text"])
    return ""
