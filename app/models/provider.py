"""A request of MCP put to a provider, and its answer as a result of MCP, by pydantic-ai's `direct` interface.

Imported on first use, in a thread, with the client of the one provider that is asked: nobody needs either who has no
model. No client ever has the key: that is added on the way out.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx2
from pydantic_ai import exceptions as faults
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model as ProviderModel

from app import bounds
from app.egress import Egress
from app.models.asking import asked
from app.models.base import Finished, Model, ModelFault, Usage, Writing
from app.models.transport import GuardedTransport, TooMuch

_STOPS = {"stop": "endTurn", "length": "maxTokens", "tool_call": "toolUse"}
_LOOKS_SECRET = re.compile(r"\b(sk|key|pk)-[A-Za-z0-9_*.-]{4,200}")


Speaks = Callable[[Model, httpx2.AsyncClient], ProviderModel]  # noqa: TID251
"""How one provider is spoken to: `by_openai` or `by_anthropic`."""


async def provided(
    model: Model, key: str, params: dict[str, Any], egress: Egress, speaks: Speaks
) -> AsyncGenerator[Writing | Finished, None]:
    """What a provider's model writes. Raises ModelFault when it does not come to an end."""
    transport = GuardedTransport(egress, _credentials(model, key))
    # The one client of its kind: it has no other way out than the guarded one.
    async with httpx2.AsyncClient(transport=transport, timeout=None, trust_env=False) as client:  # noqa: TID251
        try:
            there = speaks(model, client)
            messages, settings, tools, notes = asked(model, params, dict(there.profile))
            at_work = model_request_stream(there, messages, model_settings=settings, model_request_parameters=tools)
            async with at_work as stream:
                said = ""
                async for _ in stream:
                    response = stream.get()
                    text = _text(response)
                    if text != said:
                        said = text
                        yield Writing(said)
                response = stream.get()
                used = stream.usage
            _ended(response, transport, notes)
            finished = _finished(model, response, Usage(used.input_tokens, used.output_tokens), tuple(notes))
        except ModelFault:
            raise
        except Exception as fault:  # what the clients of providers make of odd bytes has no common name
            raise _fault(fault, key) from None
    yield finished


def _credentials(model: Model, key: str) -> tuple[str, str] | None:
    """The one header that says who asks; None for a model that wants to know nobody."""
    if not key:
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelFault("key", "The key of this model has characters that no key has. Type it again.")
    return ("x-api-key", key) if model.provider == "anthropic" else ("authorization", f"Bearer {key}")


# -------------------------------------------------------------------------------------------------------- the answer


def _text(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _ended(response: ModelResponse, transport: GuardedTransport, notes: list[str]) -> None:
    """Whether an answer came to its end. Raises ModelFault for one that did not: it was cut off, or filtered."""
    details = response.provider_details or {}
    if response.finish_reason == "content_filter":
        said = details.get("refusal")
        words = f" It says: {' '.join(said.split())[:200]}" if isinstance(said, str) and said else ""
        raise ModelFault("filtered", f"The provider's content filter stopped the answer. Change the request.{words}")
    if response.finish_reason == "error" or not (details.get("finish_reason") or transport.said_done):
        raise ModelFault("cut", "The answer was cut off before its end. Try again.")
    if not details.get("finish_reason"):
        notes.append("The provider did not say why the answer ends.")


def _finished(model: Model, response: ModelResponse, used: Usage, notes: tuple[str, ...]) -> Finished:
    """The answer as a result of MCP. Raises ModelFault for one that is none."""
    raw = (response.provider_details or {}).get("finish_reason")
    blocks: list[dict[str, Any]] = []
    if text := _text(response):
        blocks.append({"type": "text", "text": text})
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            try:
                given = part.args_as_dict(raise_if_invalid=True)
            except (ValueError, AssertionError):
                words = f"The model wants to use {part.tool_name[:60]}, with input that is no JSON object. Try again."
                raise ModelFault("failed", words) from None
            blocks.append({"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name, "input": given})
    if not blocks:
        raise ModelFault("failed", "The model ended without a word. Try again, or allow more tokens.")
    uses = any(block["type"] == "tool_use" for block in blocks)
    stop = "toolUse" if uses else _STOPS.get(response.finish_reason or "", str(raw or "endTurn")[:60])
    if raw == "stop_sequence":
        stop = "stopSequence"
    content = blocks[0] if len(blocks) == 1 else blocks
    name = response.model_name or model.label
    return Finished({"role": "assistant", "content": content, "model": name, "stopReason": stop}, used, notes)


# -------------------------------------------------------------------------------------------------------- its faults


def _fault(fault: Exception, key: str) -> ModelFault:
    """Why there is no answer, in a sentence without the key."""
    said = _without(_words(fault), key)
    match _wire_fault(fault):
        case TooMuch():
            return ModelFault("failed", "The provider sent more than Parley reads. Ask for less.")
        case httpx2.TimeoutException():
            seconds = f"{bounds.MODEL_SECONDS:g}"
            return ModelFault("timeout", f"The provider said nothing for {seconds} seconds. Try again.")
        case httpx2.RemoteProtocolError():
            return ModelFault("cut", "The answer was cut off before its end. Try again.")
        case httpx2.TransportError() as cause:
            return ModelFault("unreachable", f"The provider could not be reached: {_without(str(cause), key)}.")
    wait = getattr(fault, "retry_after", None)
    retry = float(wait) if isinstance(wait, int | float) and 0 <= wait <= bounds.MODEL_RETRY else None
    match fault:
        case faults.ContentFilterError():
            return ModelFault("filtered", "The provider's content filter stopped the answer. Change the request.")
        case faults.ModelAuthenticationError():
            return ModelFault("key", f"The provider refused the key. {said}", said=said)
        case faults.ModelRateLimitError() | faults.ModelQuotaExceededError():
            return ModelFault("limit", f"The provider says: too many requests. {said}", said=said, retry_after=retry)
        case faults.ModelTimeoutError() | faults.ModelRequestTimeout():
            return ModelFault("timeout", "The provider did not answer in time. Try again.")
        case faults.ModelConnectionError():
            return ModelFault("unreachable", f"The provider could not be reached. {said}", said=said)
        case faults.ModelRequestRejectedError() | faults.UserError():
            return ModelFault("refused", f"The provider refused the request. {said}", said=said)
        case faults.UnexpectedModelBehavior():
            return ModelFault("cut", f"The answer was cut off before its end. {said}", said=said)
        case _:
            return ModelFault("failed", f"The provider failed. {said}", said=said, retry_after=retry)


def _words(fault: Exception) -> str:
    """What a provider says of a failure: its own sentence where there is one."""
    body = getattr(fault, "body", None)
    for _ in range(2):
        if isinstance(body, dict):
            if isinstance(words := body.get("message"), str) and words:
                return words
            body = body.get("error")
    if isinstance(body, str) and body:
        return body
    return str(getattr(fault, "message", "") or fault) or type(fault).__name__


def _wire_fault(fault: BaseException | None) -> httpx2.TransportError | None:
    """What happened on the wire, below what the clients of providers say of it."""
    for _ in range(20):
        if fault is None or isinstance(fault, httpx2.TransportError):
            return fault
        fault = fault.__cause__ or fault.__context__
    return None


def _without(words: str, key: str) -> str:
    """What a provider says may name the key that it refused, also shortened."""
    flat = " ".join(words[:2_000].split())
    flat = _LOOKS_SECRET.sub("•••", flat.replace(key, "•••") if key else flat)
    for part in (key[:8], key[-4:]) if len(key) >= bounds.MODEL_KEY_PARTS else ():
        flat = flat.replace(part, "•••")
    return flat[:300]
