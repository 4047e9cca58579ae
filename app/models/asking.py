"""A sampling request of MCP in the words of pydantic-ai: messages, settings and tools.

What the messages of a provider cannot carry is refused in a sentence, for an answer to half of a question is worse than
none; what only steers the model and cannot be sent is left out, and said. Imported with the provider.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from app.core import sampling
from app.core.json.text import dump
from app.models.base import Model, ModelFault

_SOUNDS = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"})
"""What OpenAI's chat completions take."""
_METADATA_KEYS = 16
"""As many as OpenAI takes."""


class Asked(NamedTuple):
    """A request as a provider gets it, and what of it was left out, in sentences."""

    messages: list[ModelMessage]
    settings: ModelSettings
    tools: ModelRequestParameters
    notes: list[str]


def asked(model: Model, params: dict[str, Any], profile: dict[str, Any]) -> Asked:
    """A request of MCP for a model, of which `profile` says what it takes. Raises ModelFault for one that it cannot
    carry."""
    if not params["messages"]:
        raise ModelFault("refused", "The request has no message, so there is nothing to answer.")
    notes: list[str] = []
    return Asked(_Conversation(model).told(params), _settings(model, params, profile, notes), _tools(params), notes)


class _Conversation:
    """The messages, one after the other. What a tool said is told by the tool's name, which stands with its use."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._names: dict[str, str] = {}

    def told(self, params: dict[str, Any]) -> list[ModelMessage]:
        found: list[ModelMessage] = []
        first: list[ModelRequestPart] = []
        if isinstance(system := params.get("systemPrompt"), str) and system:
            first.append(SystemPromptPart(system))
        for message in params["messages"]:
            blocks = sampling.blocks(message)
            if message["role"] == "assistant":
                if first:
                    found.append(ModelRequest(parts=first))
                found.append(ModelResponse(parts=[self._said(block) for block in blocks]))
            else:
                found.append(ModelRequest(parts=[*first, *self._asked(blocks)]))
            first = []
        return found

    def _said(self, block: dict[str, Any]) -> ModelResponsePart:
        if block["type"] == "text":
            return TextPart(str(block.get("text", "")))
        if block["type"] == "tool_use":
            name, used, given = str(block.get("name", "")), str(block.get("id", "")), block.get("input")
            self._names[used] = name
            return ToolCallPart(name, given if isinstance(given, dict) else {}, used)
        raise _cannot(f"No provider takes {_kind(block)} that the assistant said.")

    def _asked(self, blocks: list[dict[str, Any]]) -> list[ModelRequestPart]:
        parts: list[ModelRequestPart] = []
        content: list[UserContent] = []
        for block in blocks:
            if block["type"] == "text":
                content.append(str(block.get("text", "")))
            elif block["type"] in ("image", "audio"):
                content.append(self._binary(block))
            elif block["type"] == "tool_result":
                parts.append(self._returned(block))
            else:
                raise _cannot(f"No provider takes {_kind(block)} in a message.")
        if content:
            parts.append(UserPromptPart(content))
        return parts

    def _binary(self, block: dict[str, Any]) -> BinaryContent:
        kind, media = block["type"], str(block.get("mimeType", "")).partition(";")[0].strip().lower()
        try:
            data = base64.b64decode(str(block.get("data", "")), validate=True)
        except (binascii.Error, ValueError):
            raise _cannot(f"The {kind} in the request is not base64.") from None
        if not media.startswith(f"{kind}/"):
            raise _cannot(f"The {kind} in the request says that it is {media[:60]!r}.")
        if kind == "audio" and self._model.provider == "anthropic":
            raise _cannot("Anthropic's models take no sound.")
        if kind == "audio" and media not in _SOUNDS:
            raise _cannot(f"OpenAI's interface takes sounds as WAV or MP3, not as {media[:60]}.")
        return BinaryContent(data, media_type=media)

    def _returned(self, block: dict[str, Any]) -> ToolReturnPart[Any]:
        """What a tool gave back: its structured content, else its texts; and its pictures and sounds."""
        listed = block.get("content")
        content = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        files = [self._binary(one) for one in content if one.get("type") in ("image", "audio")]
        said: list[Any] = [
            str(one.get("text", "")) if one.get("type") == "text" else dump(one).decode()
            for one in content
            if one.get("type") not in ("image", "audio")
        ]
        structured = block.get("structuredContent")
        value: Any = structured if structured is not None else "\n".join(said)
        used = str(block.get("toolUseId", ""))
        return ToolReturnPart(
            self._names.get(used, "tool"),
            [value, *files] if files else value,
            used,
            outcome="failed" if block.get("isError") is True else "success",
        )


def _kind(block: dict[str, Any]) -> str:
    kind = str(block["type"])[:40]
    return {"image": "an image", "audio": "a sound", "tool_use": "a tool use"}.get(
        kind, f"a block of the type {kind!r}"
    )


def _cannot(words: str) -> ModelFault:
    return ModelFault("refused", f"{words} Edit the request, or answer it yourself.")


def _settings(model: Model, params: dict[str, Any], profile: dict[str, Any], notes: list[str]) -> ModelSettings:
    """Temperature, stops and the number of tokens, as the server wants them (R3-12); one attempt, for a person decides
    on the next."""
    settings = ModelSettings(max_tokens=int(params["maxTokens"]), max_retries=0)
    if isinstance(heat := params.get("temperature"), int | float) and not isinstance(heat, bool):
        if _takes_temperature(profile):
            settings["temperature"] = float(heat)
        else:
            notes.append(f"{model.label} takes no temperature, so it was left out.")
    if isinstance(stops := params.get("stopSequences"), list) and stops:
        settings["stop_sequences"] = [str(stop) for stop in stops]
    choice = params.get("toolChoice")
    mode = choice.get("mode") if isinstance(choice, dict) else None
    if params.get("tools") and mode in ("auto", "required", "none"):
        settings["tool_choice"] = mode
    if params.get("includeContext") in ("thisServer", "allServers"):
        notes.append(f"The context of {params['includeContext']} was not included.")
    if isinstance(metadata := params.get("metadata"), dict) and metadata:
        sent = _metadata(model, metadata)
        if sent:
            settings["extra_body"] = {"metadata": sent}
        if left := [key for key in metadata if key not in sent]:
            notes.append(f"The provider has no place for metadata {', '.join(left)[:100]}, which was left out.")
    return settings


def _takes_temperature(profile: dict[str, Any]) -> bool:
    """Whether a model takes one: those that reason before they speak do not, unless they can do without."""
    if profile.get("anthropic_disallows_sampling_settings"):
        return False
    idle = profile.get("openai_supports_reasoning_effort_none") and not profile.get("thinking_enabled_by_default")
    return not profile.get("openai_supports_reasoning") or bool(idle)


def _metadata(model: Model, given: dict[str, Any]) -> dict[str, str]:
    """What of the metadata a provider has a place for: Anthropic knows a user's id, OpenAI short texts by name."""
    texts = {key: value for key, value in given.items() if isinstance(value, str)}
    if model.provider == "anthropic":
        return {key: value for key, value in texts.items() if key == "user_id"}
    fitting = {key: value for key, value in texts.items() if len(key) <= 64 and len(value) <= 512}
    return dict(list(fitting.items())[:_METADATA_KEYS])


def _tools(params: dict[str, Any]) -> ModelRequestParameters:
    given = params.get("tools")
    made = []
    for one in given if isinstance(given, list) else []:
        if isinstance(one, dict):
            schema = one.get("inputSchema")
            made.append(
                ToolDefinition(
                    name=str(one.get("name", "")),
                    description=str(one.get("description", "")) or None,
                    parameters_json_schema=schema if isinstance(schema, dict) else {"type": "object"},
                    strict=False,
                )
            )
    return ModelRequestParameters(function_tools=made, allow_text_output=True)
