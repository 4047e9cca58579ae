"""The base of what people and files give us: frozen, without unknown keys, of characters only."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from app.core.json.text import writable


class Strict(BaseModel):
    """A value object that takes no unknown key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _of_characters(cls, value: Any) -> Any:
        """What is no character can stand in no argument, no variable and no file."""
        if not writable(value):
            raise ValueError("must not contain half of a surrogate pair, which is no character")
        return value
