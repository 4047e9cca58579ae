"""Which model fits a request (R3-10): the first hint that names one, else the priorities; a person may take another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.models.base import Model

_PRIORITIES = {"costPriority": "cost", "speedPriority": "speed", "intelligencePriority": "intelligence"}


class Choice(NamedTuple):
    """A model, and why it stands where it stands."""

    name: str
    model: Model
    reason: str


def choices(models: Mapping[str, Model], params: dict[str, Any]) -> tuple[list[Choice], list[str]]:
    """The models, the best first, and the hints that none of them answers to. Hints are parts of names, in the order
    of preference; they count before priorities."""
    preferences = params.get("modelPreferences")
    wanted = preferences if isinstance(preferences, dict) else {}
    hints = _hints(wanted)
    matching = {
        name: next((n for n, hint in enumerate(hints, 1) if _fits(hint, name, model)), None)
        for name, model in models.items()
    }
    scores = {name: _score(wanted, model) for name, model in models.items()}

    def rank(name: str) -> tuple[float, float]:
        hint = matching[name]
        return (float("inf") if hint is None else hint, -scores[name])

    prioritised = any(isinstance(wanted.get(key), int | float) for key in _PRIORITIES)
    found = [Choice(name, models[name], _reason(matching[name], prioritised)) for name in sorted(models, key=rank)]
    nobody = [hint for hint in hints if not any(_fits(hint, name, model) for name, model in models.items())]
    return found, nobody


def _hints(wanted: dict[str, Any]) -> list[str]:
    given = wanted.get("hints")
    named = [hint.get("name") for hint in given if isinstance(hint, dict)] if isinstance(given, list) else []
    return [name for name in named if isinstance(name, str) and name][:20]


def _fits(hint: str, name: str, model: Model) -> bool:
    hint = hint[:200].casefold()
    return hint in model.label.casefold() or hint in name.casefold()


def _score(wanted: dict[str, Any], model: Model) -> float:
    """How well a model does what matters; 0 when nothing is said to matter."""
    total = 0.0
    for key, quality in _PRIORITIES.items():
        weight = wanted.get(key)
        if isinstance(weight, int | float) and not isinstance(weight, bool):
            total += min(1.0, max(0.0, float(weight))) * float(getattr(model, quality))
    return total


def _reason(hint: int | None, prioritised: bool) -> str:
    if hint is not None:
        return f"matches hint {hint}"
    return "by the priorities" if prioritised else ""
