"""The one door to all models: each writes piece by piece and is finished then, or fails in a sentence."""

from __future__ import annotations

import importlib
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from anyio import to_thread

from app.egress import Egress
from app.models.base import OFFLINE, Finished, Model, ModelFault, Writing
from app.models.offline import offline


async def written(
    model: Model, key: str, params: dict[str, Any], egress: Egress
) -> AsyncGenerator[Writing | Finished, None]:
    """What a model writes to a sampling request. Ends with what it answered, or raises ModelFault.

    Closing it, or cancelling whoever reads it, ends the request to the provider at once."""
    if model.provider in OFFLINE:
        pieces = offline(model, params)
    else:
        try:
            provider, speaks = await to_thread.run_sync(_loaded, model.provider, abandon_on_cancel=True)
        except ImportError:
            words = "Models need the extra of that name: in the folder of Parley, pip install '.[models]'."
            raise ModelFault("missing", words) from None
        pieces = provider.provided(model, key, params, egress, speaks)
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece


def _loaded(provider: str) -> tuple[Any, Any]:
    """What asks a provider, and how this one is spoken to. Large: not imported before somebody wants it."""
    speaks = importlib.import_module(f"app.models.by_{provider}").speaks
    provided = importlib.import_module("app.models.provider")
    # What is asked and answered is for the page, not for the log. After the imports, for a client that is imported sets
    # its own level, by a variable of the environment.
    for noisy in ("httpx2", "openai", "anthropic", "pydantic_ai"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return provided, speaks
