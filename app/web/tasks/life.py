"""The life of a task as lines, whichever side executes it; a run of polls is one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

# ------------------------------------------------------------------------------------------------------------ tasks


@dataclass(slots=True, frozen=True)
class LifeStep:
    """One line of a task's life; runs of polls are one."""

    at: str
    side: str
    glyph: str
    code: str
    text: str
    status: str
    """A status by its name on the wire, after the text."""
    seq: int | None
    end: bool = False


SHOWN = 200
"""Rows of each kind on the Tasks page."""
