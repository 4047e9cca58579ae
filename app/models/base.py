"""What a model is to Parley, and what comes of asking it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, model_validator

from app import bounds
from app.core.strict import Strict

Provider = Literal["openai", "anthropic", "echo", "canned", "script"]
OFFLINE: frozenset[Provider] = frozenset({"echo", "canned", "script"})
"""These need no network and no key: for the demo, and for who wants to see the way of an answer."""
_OWN_NAMES: dict[Provider, str] = {
    "echo": "parley-echo",
    "canned": "parley-canned",
    "script": "parley-small-talk",
}
FaultKind = Literal["key", "limit", "timeout", "cut", "filtered", "refused", "unreachable", "missing", "failed"]


class Model(Strict):
    """A model as a settings file or a form names it. Its key is not part of it: `key_env` says where it stands."""

    provider: Provider
    base_url: str | None = Field(default=None, max_length=bounds.MODEL_URL, pattern=r"^https?://")
    model: str = Field(default="", max_length=bounds.MODEL_NAME)
    key_env: str | None = Field(default=None, max_length=bounds.MODEL_NAME)
    text: str = Field(default="", max_length=bounds.RULE_TEXT)
    """What a canned one always says."""
    cost: float = Field(default=0.5, ge=0, le=1)
    speed: float = Field(default=0.5, ge=0, le=1)
    intelligence: float = Field(default=0.5, ge=0, le=1)
    """How well it does, 0 to 1: held against the priorities of a request."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Model:
        if self.provider not in OFFLINE and not self.model:
            raise ValueError("say which model")
        if self.provider in OFFLINE and (self.base_url or self.key_env):
            raise ValueError(f"{self.provider} needs no address and no key")
        return self

    @property
    def label(self) -> str:
        """What it calls itself in a result. What needs nobody is no model, and says whose words they are."""
        return self.model or _OWN_NAMES.get(self.provider, self.provider)


@dataclass(slots=True, frozen=True)
class Usage:
    """What a request cost, as far as the provider says."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True, frozen=True)
class Writing:
    """What a model has written so far."""

    text: str


@dataclass(slots=True, frozen=True)
class Finished:
    """What a model answered: the result of `sampling/createMessage`, and what it took."""

    result: dict[str, Any]
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    """What of the request was not used, in sentences."""


class ModelFault(Exception):
    """No answer. The words say why and what to do; they hold no key."""

    def __init__(self, kind: FaultKind, words: str, *, said: str = "", retry_after: float | None = None) -> None:
        super().__init__(words)
        self.kind: FaultKind = kind
        self.said = said
        """The provider's own words, which stand among ours."""
        self.retry_after = retry_after
