"""Which model fits a request: hints in their order, then priorities; and what is no model."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.models import Model, choices

MODELS = {
    "big": Model(provider="anthropic", model="opus-9", intelligence=0.9, speed=0.2, cost=0.1),
    "small": Model(provider="openai", model="mini-4", intelligence=0.3, speed=0.9, cost=0.9),
    "local": Model(provider="openai", model="llama-3", base_url="http://localhost:11434/v1"),
}


def order(**preferences: Any) -> list[str]:
    return [one.name for one in choices(MODELS, {"modelPreferences": preferences})[0]]


def test_the_first_hint_that_names_a_model_chooses_it():
    found, nobody = choices(
        MODELS, {"modelPreferences": {"hints": [{"name": "gpt"}, {"name": "LLAMA"}, {"name": "opus"}]}}
    )
    assert [one.name for one in found] == ["local", "big", "small"]
    assert [one.reason for one in found] == ["matches hint 2", "matches hint 3", ""]
    assert nobody == ["gpt"]


def test_priorities_choose_where_no_hint_does():
    assert order(intelligencePriority=1)[0] == "big"
    assert order(speedPriority=1, costPriority=0.5)[0] == "small"
    assert order(speedPriority=1, hints=[{"name": "opus"}])[0] == "big", "hints come first"
    assert choices(MODELS, {"modelPreferences": {"speedPriority": 1}})[0][0].reason == "by the priorities"


@pytest.mark.parametrize("odd", [None, 7, {"hints": 3}, {"hints": [1, {"name": 2}]}, {"speedPriority": "much"}])
def test_odd_preferences_are_none(odd: Any):
    assert [one.name for one in choices(MODELS, {"modelPreferences": odd})[0]] == list(MODELS)


@pytest.mark.parametrize(
    "text",
    [
        {"provider": "other", "model": "m"},
        {"provider": "openai"},
        {"provider": "openai", "model": "m", "key": "sk-1"},
        {"provider": "openai", "model": "m", "base_url": "file:///x"},
        {"provider": "echo", "key_env": "KEY"},
        {"provider": "openai", "model": "m", "speed": 2},
    ],
)
def test_what_is_no_model_is_refused(text: dict[str, Any]):
    with pytest.raises(ValidationError):
        Model.model_validate(text)
