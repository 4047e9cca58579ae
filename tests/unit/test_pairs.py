"""Which ask of one call is which of another, and when an answer may be given again."""

from typing import Any

import pytest

from app.core.asks import Answer, AnsweredBy, Ask, AskKind, Delivery
from app.core.pairs import matched, repeatable, repeated, to_repeat, verdict

ME = AnsweredBy("person", "you")
METHODS = {"sampling": "sampling/createMessage", "roots": "roots/list"}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


async def nowhere(_: Ask, __: Answer) -> Delivery:
    return "sent"


def ask(aid: str, words: str = "", kind: AskKind = "form", *, said: Any = None, **params: Any) -> Ask:
    """An ask; answered when something was said."""
    given: dict[str, Any] = {"message": words, "requestedSchema": SCHEMA} if kind != "sampling" else {}
    if kind == "sampling":
        given = {"messages": [{"role": "user", "content": {"type": "text", "text": words}}], "maxTokens": 9}
    made = Ask(aid, kind, "request", METHODS.get(kind, "elicitation/create"), given | params, 0.0, None, 1, nowhere)
    if said is not None:
        made.begin(Answer("accept", {"action": "accept", "content": said}, None, ME))
        made.sent(1.0)
    return made


def names(left: list[Ask], right: list[Ask]) -> list[tuple[str, str]]:
    return [("" if one is None else one.id, "" if two is None else two.id) for one, two in matched(left, right)]


def test_the_same_words_find_each_other_whatever_the_order() -> None:
    left = [ask("a1", "Name?"), ask("a2", "Address?"), ask("a3", "Sure?")]
    right = [ask("b1", "Address?"), ask("b2", "Name?"), ask("b3", "Sure?")]
    assert names(left, right) == [("a1", "b2"), ("a2", "b1"), ("a3", "b3")]


def test_other_words_of_the_same_kind_follow_by_order_and_the_rest_stands_alone() -> None:
    left = [ask("a1", "Name of acc_1?"), ask("a2", "Link", "url")]
    right = [ask("b0", "Write", "sampling"), ask("b1", "Name of acc_2?"), ask("b2", "Really?")]
    assert names(left, right) == [("", "b0"), ("a1", "b1"), ("", "b2"), ("a2", "")]
    assert names([], right) == [("", "b0"), ("", "b1"), ("", "b2")] and names(left, []) == [("a1", ""), ("a2", "")]


def test_a_question_that_is_asked_twice_is_two() -> None:
    left, right = [ask("a1", "More?"), ask("a2", "More?")], [ask("b1", "More?"), ask("b2", "More?"), ask("b3", "More?")]
    assert names(left, right) == [("a1", "b1"), ("a2", "b2"), ("", "b3")]


def test_verdicts() -> None:
    done, other, same = (ask(name, "Name?", said={"name": said}) for name, said in (("a", "A"), ("b", "B"), ("c", "A")))
    assert verdict(done, same) == "equal" and verdict(done, other) == "answer"
    assert verdict(done, None) == "left" and verdict(None, done) == "right"
    assert verdict(done, ask("d", "Name?")) == "waiting"
    assert verdict(done, ask("e", "Surname?", said={"name": "A"})) == "question"
    lost, gone = ask("f", "Name?"), ask("g", "Name?")
    for each in (lost, gone):
        each.end("lost", "", 1.0)
    assert verdict(lost, gone) == "equal" and verdict(lost, done) == "answer"


def test_an_answer_is_given_again_for_the_same_question_and_schema_only() -> None:
    before = ask("a1", "Name?", said={"name": "A"})
    assert repeatable(ask("b1", "Name?"), before)
    assert not repeatable(ask("b1", "Your name?"), before)
    assert not repeatable(ask("b1", "Name?", requestedSchema={"type": "object"}), before)
    assert not repeatable(ask("b1", "Name?"), ask("a2", "Name?"))  # nobody has answered that one
    assert not repeatable(ask("b1", "Name?", "url"), ask("a3", "Name?", "url", said={}))  # who opens it says so
    sampling = ask("a4", "Write", "sampling", said={})
    assert repeatable(ask("b1", "Write", "sampling", _meta={"progressToken": 3}), sampling)
    assert not repeatable(ask("b1", "Write", "sampling", maxTokens=10), sampling)


def test_the_answer_is_the_persons_and_roots_are_those_of_today() -> None:
    you = AnsweredBy("script", "a script")
    before = ask("a1", "Name?", said={"name": "A"})
    again = repeated(ask("b1", "Name?"), before, you, [])
    assert (again.by, again.result, again.action) == (you, before.answer and before.answer.result, "accept")
    roots = repeated(ask("b2", "", "roots"), ask("a2", "", "roots", said={}), you, [{"uri": "file:///now"}])
    assert roots.result == {"roots": [{"uri": "file:///now"}]}


@pytest.mark.parametrize(("earlier", "answer"), [(0, "first"), (1, "second"), (2, "second")])
def test_of_equal_questions_the_one_that_comes_as_often_before_it(earlier: int, answer: str) -> None:
    before = [ask("a1", "More?", said={"name": "first"}), ask("a2", "More?", said={"name": "second"})]
    asked = [ask(f"b{at}", "More?") for at in range(earlier + 1)]
    found = to_repeat(asked[-1], asked, before)
    assert found is not None and found.answer is not None and found.answer.result is not None
    assert found.answer.result["content"] == {"name": answer}
    assert to_repeat(ask("c", "Else?"), [], before) is None
