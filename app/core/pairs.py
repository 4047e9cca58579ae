"""Two calls side by side: which ask of the one is which of the other, and whether an answer may be given again.

Pure functions over asks. Knows no wire, no session and no page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from app.core.asks import Answer, AnsweredBy, Ask, roots_result
from app.core.json.values import same
from app.core.sampling import blocks

Verdict = Literal["equal", "answer", "question", "left", "right", "waiting"]
Pair = tuple[Ask | None, Ask | None]


def question(ask: Ask) -> str:
    """What is asked, in the server's words; of a sampling request the last that was said in it."""
    if ask.kind != "sampling" or ask.message:
        return ask.message
    messages = ask.params.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    said = [each.get("text") for each in blocks(last) if isinstance(each, dict)] if isinstance(last, dict) else []
    return "\n".join(text for text in said if isinstance(text, str))


def matched(left: Iterable[Ask], right: Iterable[Ask]) -> list[Pair]:
    """The asks of two calls in pairs: by kind and question, then by kind in their order; the rest alone.

    In the order of the left, each that only the right has after its neighbour there."""
    ours, theirs = list(left), list(right)
    partner: dict[int, int] = {}
    back: dict[int, int] = {}
    for by_words in (True, False):
        free: dict[tuple[str, str], deque[int]] = {}
        for to, two in enumerate(theirs):
            if to not in back:
                free.setdefault((two.kind, question(two) if by_words else ""), deque()).append(to)
        for at, one in enumerate(ours):
            waiting = free.get((one.kind, question(one) if by_words else "")) if at not in partner else None
            if waiting:
                partner[at] = waiting.popleft()
                back[partner[at]] = at
    after: dict[int, list[int]] = {}
    neighbour = -1
    for to in range(len(theirs)):
        if to in back:
            neighbour = back[to]
        else:
            after.setdefault(neighbour, []).append(to)
    pairs: list[Pair] = [(None, theirs[to]) for to in after.get(-1, [])]
    for at, one in enumerate(ours):
        pairs.append((one, theirs[partner[at]] if at in partner else None))
        pairs += [(None, theirs[to]) for to in after.get(at, [])]
    return pairs


def verdict(left: Ask | None, right: Ask | None) -> Verdict:
    """What there is to say of a pair."""
    if any(ask is not None and not ask.settled for ask in (left, right)):
        return "waiting"
    if left is None or right is None:
        return "right" if left is None else "left"
    if question(left) != question(right):
        return "question"
    return "equal" if _said(left) == _said(right) or same(_said(left), _said(right)) else "answer"


def _said(ask: Ask) -> Any:
    """What became of an ask, to be held against another."""
    answer = ask.answer
    if ask.state != "answered" or answer is None:
        return [ask.state]
    return [answer.action, answer.result, None if answer.error is None else answer.error.wire()]


# ------------------------------------------------------------------------------------------------- the same answers


def repeatable(ask: Ask, before: Ask) -> bool:
    """Whether the answer to `before` answers this one too: the same question about the same, word for word, of the same
    server: what was told to one is for nobody else. Not of a link: only who opens it can say that they did."""
    if ask.server != before.server:
        return False
    if ask.kind != before.kind or ask.kind == "url" or before.state != "answered" or before.answer is None:
        return False
    return question(ask) == question(before) and same(_asked(ask), _asked(before))


def _asked(ask: Ask) -> Any:
    if ask.kind == "form":
        return ask.schema
    return {key: value for key, value in ask.params.items() if key not in ("_meta", "task")}


def repeated(ask: Ask, before: Ask, by: AnsweredBy, roots: list[dict[str, str]]) -> Answer:
    """The answer to `before`, given again by somebody. Roots are those of today."""
    answer = before.answer
    if answer is None or (ask.kind == "roots" and answer.error is None):
        return roots_result(roots, by)
    return replace(answer, by=by)


def to_repeat(open_ask: Ask, asked: Iterable[Ask], before: Iterable[Ask]) -> Ask | None:
    """Whose answer an ask gets: of the same questions of the other call the one that comes as often before it."""
    alike = [one for one in before if repeatable(open_ask, one)]
    if not alike:
        return None
    earlier = 0
    for one in asked:
        if one is open_ask:
            break
        earlier += one.kind == open_ask.kind and question(one) == question(open_ask)
    return alike[min(earlier, len(alike) - 1)]
