"""Numbers for people: the one place that knows how they are written."""

from __future__ import annotations

THIN = "\u202f"
"""The space between groups of three digits."""
_LONGEST = 40


def grouped(number: float) -> str:
    """12 408, in groups of three by thin spaces; what is very long is cut."""
    text = f"{number:,}".replace(",", THIN) if abs(number) < 1e15 else str(number)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def measured(number: float) -> str:
    """A measured number, such as progress, without needless digits."""
    return f"{number:g}" if abs(number) < 1e15 else str(number)
