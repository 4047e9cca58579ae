"""Answer rules at work: which are there, in which order, and what the first one that matches says.

A person comes first: a claimed ask is left alone until its claim has ended. Without a delay a rule answers before the
ask is ever open; with one, the ask stands in the inbox and says when it will be answered. Knows asks and a clock.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import anyio

from app import bounds
from app.core import answer_rules, sampling
from app.core.answer_rules import Rule
from app.core.asks import Answer, Ask, Draft
from app.core.errors import Conflict, Invalid
from app.core.json.text import dump
from app.sessions.answerers.base import Answerer


@dataclass(slots=True)
class Kept:
    """A rule of a session, by our own id, and what it has done."""

    id: str
    rule: Rule
    answered: int = 0
    promised: int = 0
    """Asks that stand open and that it will answer."""
    times: deque[float] = field(default_factory=deque)
    """When it answered within the last minute; monotonic."""
    problem: str = ""
    """Why its last answer did not fit, and was not sent."""
    key: str = ""
    """What it is kept by with its server; "" for one that is not."""
    missing: tuple[str, ...] = ()
    """Secrets of it that were not written down: it stays off until somebody has typed them again."""
    came_back: bool = False
    """It came back with its server, and nobody has touched it since."""
    was_on: bool = False
    """Such a one was on when somebody left."""

    @property
    def used_up(self) -> bool:
        return self.rule.most is not None and self.answered + self.promised >= self.rule.most


MODEL_WRITES: Final = "a model would write the answer"
"""Why a trial has no answer of a rule that matches."""


class Trial(NamedTuple):
    """What a rule would have done with one ask."""

    ask: Ask
    answer: Answer | None
    reason: str
    """Why it would have said nothing."""


class About(NamedTuple):
    """What a rule wants to know of an ask besides the ask."""

    server: str
    tool: str


class Rules(Answerer):
    """The answer rules of one session."""

    def __init__(
        self,
        about: Callable[[Ask], About],
        roots: Callable[[], list[dict[str, str]]],
        clocks: tuple[Callable[[], float], Callable[[], float]],
        changed: Callable[[], None],
        write: Callable[[Ask, str | None], Awaitable[Draft | None]],
        promised: Callable[[Ask], None] = lambda _: None,
    ) -> None:
        self._about, self._roots, self._changed, self._write = about, roots, changed, write
        self._wall, self._mono = clocks
        self._told = promised
        self._promises: dict[str, Ask] = {}
        """The open asks that some rule will answer."""
        self._ids = itertools.count(1)
        self.all: dict[str, Kept] = {}
        """In the order in which they are asked."""
        self.paused = False
        """No rule answers, whatever each says of itself."""

    # ---- keeping them

    @property
    def active(self) -> list[Kept]:
        """Those that answer now."""
        return [] if self.paused else [one for one in self.all.values() if one.rule.on]

    @property
    def switched(self) -> bool:
        """Whether any is on, be they paused or not."""
        return any(one.rule.on for one in self.all.values())

    @staticmethod
    def check(rule: Rule) -> None:
        """Raises Invalid for what is too large."""
        if len(dump(rule.model_dump(mode="json"))) > bounds.RULE_BYTES:
            raise Invalid("This rule is too large.", {"": [f"At most {bounds.RULE_BYTES // bounds.KIB} KiB as JSON."]})

    def add(self, rule: Rule) -> Kept:
        """One more, behind all others. Raises Invalid for what is too large, Conflict when there are too many."""
        self.check(rule)
        # A script that says each time what it wants finds what came back with the server, and not a second one.
        same = next((one for one in self.all.values() if one.came_back and _returns(one, rule)), None)
        if same is not None:
            self.change(same, rule)
            return same
        if len(self.all) >= bounds.RULES:
            raise Conflict(f"There are {bounds.RULES} rules, which is the limit. Delete one first.")
        kept = Kept(f"r{next(self._ids)}", rule)
        self.all[kept.id] = kept
        self._changed()
        return kept

    def change(self, kept: Kept, rule: Rule) -> None:
        """Another text for a rule; what it has done is forgotten unless only its switch moved. Raises Invalid for one
        that is to be on and lacks what was not kept."""
        self.check(rule)
        if not _alike(rule, kept.rule):
            kept.answered, kept.problem, kept.missing = 0, "", ()
            kept.times.clear()
        elif rule.on and kept.missing:
            raise Invalid("A secret of this rule was not kept.", {one: ["Type it again."] for one in kept.missing})
        kept.rule, kept.came_back, kept.was_on = rule, False, False
        self._moved()

    def switch(self, kept: Kept, on: bool) -> None:
        """Only its switch. Raises as `change` does."""
        self.change(kept, kept.rule.model_copy(update={"on": on}))

    def remove(self, kept: Kept) -> None:
        self.all.pop(kept.id, None)
        for ask in [one for one in self._promises.values() if one.rule_id == kept.id]:
            self.let_go(ask)
        self._moved()

    def come_back(self, found: Sequence[tuple[str, Rule, tuple[str, ...]]], *, alone: bool) -> None:
        """Rules that were kept with the server, by their keys and with what is missing in them. They come back off;
        `alone` they take the place of those that are there, else they stand behind them."""
        known = {one.key for one in self.all.values()}
        if alone:
            self.all, self.paused = {}, False
        for key, rule, missing in found:
            if key not in known and len(self.all) < bounds.RULES:
                kept = Kept(f"r{next(self._ids)}", rule.model_copy(update={"on": False}), key=key, missing=missing)
                kept.came_back, kept.was_on = True, rule.on and not missing
                self.all[kept.id] = kept
        self._moved()

    def resume(self) -> None:
        """Switch those on again that were on when somebody left."""
        for one in self.all.values():
            if one.was_on:
                one.rule, one.came_back, one.was_on = one.rule.model_copy(update={"on": True}), False, False
        self._moved()

    def order(self, ids: Sequence[str]) -> None:
        """Ask them in this order. Raises Invalid unless each is named once."""
        if sorted(ids) != sorted(self.all):
            raise Invalid("Name every rule once.", {"/order": [f"The rules are {', '.join(self.all) or 'none'}."]})
        self.all = {each: self.all[each] for each in ids}
        self._changed()

    def move(self, kept: Kept, by: int) -> None:
        """One place up, or down; at the end it stays where it is."""
        ids = list(self.all)
        here = ids.index(kept.id)
        there = min(max(here + by, 0), len(ids) - 1)
        ids.insert(there, ids.pop(here))
        self.order(ids)

    def pause(self, paused: bool) -> None:
        self.paused = paused
        self._moved()

    def _moved(self) -> None:
        """What is on may be other rules now: those who see a promise see whether it still holds."""
        self._changed()
        for ask in list(self._promises.values()):
            self._told(ask)

    # ---- answering

    def at_once(self, ask: Ask) -> Answer | None:
        """What the first rule says that matches, unless it lets people have a look first."""
        kept = self._first(ask)
        if kept is None:
            return None
        if kept.rule.delay_ms or kept.rule.do.action == "model":
            self._promise(kept, ask)
            return None
        return self._said(kept, ask)

    async def consider(self, ask: Ask) -> Answer | None:
        """The same after the delay, and never while a person has the ask in hand."""
        kept = self.all.get(ask.rule_id or "") or self._first(ask)
        if kept is None:
            return None
        if ask.rule_id is None:
            self._promise(kept, ask)
            self._told(ask)
        try:
            # A claim may be made, or made anew, while this sleeps.
            while (wait := self._wait(ask)) > 0:  # noqa: ASYNC110
                await anyio.sleep(min(wait, bounds.CLAIM_LOOK_SECONDS))
            if not self._still(kept, ask) or ask.state != "open" or self._late(kept):
                return None
            result = await self._written(kept, ask) if kept.rule.do.action == "model" else None
        finally:
            self.let_go(ask)
        if kept.rule.do.action == "model" and (result is None or not self._still(kept, ask)):
            return None
        return self._said(kept, ask, result)

    def _still(self, kept: Kept, ask: Ask) -> bool:
        """Whether a rule that was to answer still is: somebody may have changed, paused or deleted it meanwhile."""
        here = self.all.get(kept.id) is kept and self._answers(kept)
        return here and not self._misses(kept.rule, ask, self._about(ask))

    def let_go(self, ask: Ask) -> None:
        """No rule will answer this ask any more."""
        self._promises.pop(ask.id, None)
        if ask.rule_id is not None:
            if (kept := self.all.get(ask.rule_id)) is not None:
                kept.promised -= 1
            ask.rule_id, ask.rule_at = None, None
            if ask.state == "open":
                self._told(ask)

    def promise(self, ask: Ask) -> Kept | None:
        """The rule that will answer an open ask, unless somebody has switched it off meanwhile."""
        kept = self.all.get(ask.rule_id or "")
        return kept if kept is not None and self._answers(kept) else None

    def _answers(self, kept: Kept) -> bool:
        return kept.rule.on and not self.paused

    def _promise(self, kept: Kept, ask: Ask) -> None:
        """Say with the ask which rule will answer it, and when."""
        if ask.rule_id is None:
            kept.promised += 1
            ask.rule_id, ask.rule_at = kept.id, self._wall() + kept.rule.delay_ms / 1000
            self._promises[ask.id] = ask

    def _wait(self, ask: Ask) -> float:
        """Seconds until a rule may answer: its delay, and the claim of a person."""
        now = self._wall()
        return max((ask.rule_at or now) - now, 0.0, ask.claimed_for(now))

    def _first(self, ask: Ask) -> Kept | None:
        """The first rule that is on, matches, and has not done enough."""
        about = self._about(ask)
        for kept in self.active:
            if not kept.used_up and not self._late(kept) and not self._misses(kept.rule, ask, about):
                return kept
        return None

    @staticmethod
    def _misses(rule: Rule, ask: Ask, about: About) -> str:
        return answer_rules.misses(rule, ask, server=about.server, tool=about.tool)

    def _late(self, kept: Kept) -> bool:
        """Whether a rule has answered as often within a minute as it may."""
        now = self._mono()
        while kept.times and kept.times[0] <= now - 60:
            kept.times.popleft()
        most = kept.rule.per_minute
        if most is None and kept.rule.do.action == "model":
            most = bounds.RULE_MODEL_PER_MINUTE
        return most is not None and len(kept.times) >= most

    async def _written(self, kept: Kept, ask: Ask) -> dict[str, Any] | None:
        """What a model writes in the name of a rule; None, with the reason kept, when that is for a person to look at.
        It counts against the minute as soon as it is asked, for that is what costs."""
        if ask.tool_round > bounds.TOOL_ROUNDS:
            kept.problem = f"more than {bounds.TOOL_ROUNDS} rounds of tool use in a row are left to a person"
            self._changed()
            return None
        kept.times.append(self._mono())
        try:
            draft = await self._write(ask, kept.rule.do.model)
        except (Conflict, Invalid) as fault:
            kept.problem = _words(fault) if isinstance(fault, Invalid) else str(fault)
            self._changed()
            return None
        if draft is None or draft.state != "ready" or ask.claimed_for(self._wall()) > 0:
            kept.problem = "" if draft is None else draft.problem
            self._changed()
            return None
        found: dict[str, Any] = draft.content
        if doubts := sampling.doubts(ask.params, found):
            kept.problem = doubts[0]
            self._changed()
            return None
        return found

    def _said(self, kept: Kept, ask: Ask, result: dict[str, Any] | None = None) -> Answer | None:
        """Its answer, counted; None, with the reason kept, for one that does not fit."""
        try:
            answer = answer_rules.answer(kept.rule, ask, self._roots(), result)
        except Invalid as misfit:
            kept.problem = _words(misfit)
            self._changed()
            return None
        kept.answered += 1
        if kept.rule.per_minute is not None and result is None:
            kept.times.append(self._mono())
        self._changed()
        return answer

    # ---- trying one

    def tried(self, rule: Rule, asks: Sequence[Ask], *, before: Kept | None = None) -> list[Trial]:
        """What a rule would have said to each of these, alone among the active ones that stand before it."""
        return [self._tried(rule, ask, before) for ask in asks]

    def _tried(self, rule: Rule, ask: Ask, before: Kept | None) -> Trial:
        about = self._about(ask)
        if reason := self._misses(rule, ask, about):
            return Trial(ask, None, reason)
        for other in self.all.values():
            if other is before:
                break
            if other.rule.on and not self._misses(other.rule, ask, about):
                return Trial(ask, None, f"rule {other.rule.name!r} answers first")
        if rule.do.action == "model":
            return Trial(ask, None, MODEL_WRITES)
        try:
            return Trial(ask, answer_rules.answer(rule, ask, self._roots()), "")
        except Invalid as misfit:
            return Trial(ask, None, f"the answer does not fit: {_words(misfit)}")


def _alike(one: Rule, two: Rule) -> bool:
    """Whether two rules differ by their switch at most."""
    return one.model_copy(update={"on": two.on}) == two


def _returns(kept: Kept, rule: Rule) -> bool:
    """Whether a rule is one that came back: the same, but for what was not kept of it."""
    if kept.missing:
        return (kept.rule.name, kept.rule.when, kept.rule.do.action) == (rule.name, rule.when, rule.do.action)
    return _alike(kept.rule, rule)


def _words(misfit: Invalid) -> str:
    """Why an answer did not fit, in one line."""
    found = [f"{pointer} {text}".strip() for pointer, texts in misfit.fields.items() for text in texts]
    return "; ".join(found[:3]) or str(misfit)
