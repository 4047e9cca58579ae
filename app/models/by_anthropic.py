"""Models of Anthropic's messages."""

from __future__ import annotations

import httpx2
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from app.models.base import Model
from app.models.transport import NOT_THE_KEY

HOME = "https://api.anthropic.com"


def speaks(model: Model, client: httpx2.AsyncClient) -> AnthropicModel:  # noqa: TID251
    """A model there, by a client that has no way out but ours."""
    provider = AnthropicProvider(api_key=NOT_THE_KEY, base_url=model.base_url or HOME, http_client=client)
    return AnthropicModel(model.model, provider=provider)
