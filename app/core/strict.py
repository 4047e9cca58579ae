"""The bases of what people, scripts and files give us: frozen, and without unknown keys."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from app.core.json.text import writable


class Closed(BaseModel):
    """A value object that takes no unknown key."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Strict(Closed):
    """The same of what is started or kept: it is made of characters only."""

    @field_validator("*")
    @classmethod
    def _of_characters(cls, value: Any) -> Any:
        """What is no character can stand in no argument, no variable and no file."""
        if not writable(value):
            raise ValueError("must not contain half of a surrogate pair, which is no character")
        return value
