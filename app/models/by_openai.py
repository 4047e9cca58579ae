"""Models of OpenAI's chat completions, and of what is compatible with them: Ollama, vLLM, LM Studio and others."""

from __future__ import annotations

import httpx2
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile, openai_model_profile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from app.models.base import Model
from app.models.transport import NOT_THE_KEY

HOME = "https://api.openai.com/v1"


def speaks(model: Model, client: httpx2.AsyncClient) -> OpenAIChatModel:  # noqa: TID251
    """A model there, by a client that has no way out but ours."""
    base = (model.base_url or HOME).rstrip("/")
    if base == HOME:
        return OpenAIChatModel(
            model.model, provider=OpenAIProvider(base_url=base, api_key=NOT_THE_KEY, http_client=client)
        )
    # What is compatible knows the older name of `maxTokens`; only models that reason insist on the newer one.
    reasons = bool(openai_model_profile(model.model).get("openai_supports_reasoning"))
    like = OpenAICompatibleProvider("compatible", base_url=base, api_key=NOT_THE_KEY, http_client=client)
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=reasons)
    return OpenAIChatModel(model.model, provider=like, profile=profile)
