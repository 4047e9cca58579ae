"""An ask in words: how it came, what became of it, what was answered; and the sign of each state."""

import dataclasses
import re
from typing import Any

import pytest

from app.core.asks import SETTLED, Answer, AnsweredBy, Ask, AskState, denial, elicited, failure, roots_result, sampled
from app.web.asks import words
from app.web.kit import html
from app.web.kit.words import ASK_MARKS, ASK_STATES

ME = AnsweredBy("person")
FORM = Ask("a1", "form", "request", "elicitation/create", {"message": "Which?"}, 1.0, None, 0, None)  # type: ignore[arg-type]
SAMPLING = dataclasses.replace(FORM, kind="sampling", method="sampling/createMessage", params={"messages": []})
ROOTS = dataclasses.replace(FORM, kind="roots", method="roots/list", params={})


def answered(ask: Ask, answer: Answer) -> Ask:
    return dataclasses.replace(ask, state="answered", answer=answer)


def text(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks), "model": "human"}


@pytest.mark.requirement("U-S2")
@pytest.mark.parametrize(
    ("ask", "outcome", "said"),
    [
        (answered(FORM, elicited(FORM, "accept", {"name": "Alster", "n": 3}, ME)), "accepted", "name: Alster, n: 3"),
        (answered(FORM, elicited(FORM, "accept", {"name": "", "ok": None}, ME)), "accepted", 'name: "", ok: null'),
        (answered(FORM, elicited(FORM, "accept", ["x"], ME, forced=True)), "accepted", '["x"]'),
        (answered(FORM, elicited(FORM, "decline", None, ME)), "declined", ""),
        (answered(FORM, elicited(FORM, "cancel", None, ME)), "cancelled", ""),
        (answered(FORM, failure(-32050, "No desk today", ME)), "failed", "error -32050 No desk today"),
        (answered(SAMPLING, sampled(SAMPLING, text({"type": "text", "text": "Hi"}), ME)), "answered", "“Hi”"),
        (answered(SAMPLING, sampled(SAMPLING, text({"type": "image"}, 7), ME, forced=True)), "answered", "a picture 7"),
        (answered(SAMPLING, denial(ME)), "denied", ""),
        (answered(ROOTS, roots_result([{"uri": "file:///a"}], ME)), "sent", "file:///a"),
        (dataclasses.replace(FORM, state="withdrawn"), "withdrawn", ""),
        (
            dataclasses.replace(FORM, state="held", answer=elicited(FORM, "accept", {"n": 3}, ME)),
            "accepted, not sent yet",
            "n: 3",
        ),
    ],
)
def test_what_became_of_an_ask_and_what_was_answered(ask: Ask, outcome: str, said: str):
    assert (words.outcome(ask), words.answer(ask)) == (outcome, said)


def test_a_long_answer_is_cut():
    long = elicited(FORM, "accept", {f"k{n}": "v" * 10_000 for n in range(50)}, ME)
    said = words.answer(answered(FORM, long))
    assert len(said) < 2_000 and said.endswith("38 more")


@pytest.mark.requirement("U-P19")
def test_an_origin_has_one_name():
    origins = {"request": "direct request", "receiver-task": "as a task", "task-input": "input of a task"}
    for origin, name in origins.items():
        assert words.origin(dataclasses.replace(FORM, origin=origin), None) == name  # type: ignore[arg-type]


@pytest.mark.requirement("U-M14")
def test_every_state_has_a_sign_and_only_what_was_answered_the_tick():
    assert set(ASK_MARKS) == set(ASK_STATES)
    ended: set[AskState] = set(SETTLED) - {"answered"}
    assert len({ASK_MARKS[state] for state in SETTLED}) == 4 and "ok" not in {ASK_MARKS[state] for state in ended}
    drawn = set(re.findall(r'symbol id="([^"]+)"', (html.directory("static") / "icons.svg").read_text("utf-8")))
    assert set(ASK_MARKS.values()) <= drawn
