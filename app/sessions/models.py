"""Models that write drafts of answers to sampling, for people to send, change or deny, and for rules that send them.

A draft begins when somebody asks for it and ends with its ask: an answer, a withdrawal, an expiry or a lost connection
ends the request to the provider at once. Keys stay here: typed ones in memory, others in the environment. Knows the
session it serves and the inbox; knows nothing of the web.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from app import bounds
from app.core import sampling
from app.core.asks import AnsweredBy, Ask, Draft, Took
from app.core.errors import Conflict, Gone, Invalid
from app.core.json.text import whole
from app.models.base import OFFLINE, Finished, Model, ModelFault, Usage, Writing
from app.models.choice import Choice, choices
from app.models.writing import written

if TYPE_CHECKING:
    from app.egress import Egress
    from app.sessions.workspace import Workspace

ALWAYS = {
    "echo": Model(provider="echo"),
    "canned": Model(provider="canned"),
    "small talk": Model(provider="script"),
}
"""There without a provider, so that the way of an answer can be walked offline."""


class Written(NamedTuple):
    """What a draft took."""

    model: str
    seconds: float
    usage: Usage


@dataclass(slots=True, eq=False)
class _Work:
    """A draft that is being written: by whom, from what, and how far it has come."""

    model: Model
    key: str
    request: dict[str, Any]
    began: float
    draft: Draft
    first: float | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Models:
    """The models of one session, and what they are writing."""

    def __init__(self, session: Workspace, configured: dict[str, Model], egress: Callable[[], Egress]) -> None:
        self._session, self._configured, self._egress = session, configured, egress
        self._own: dict[str, Model] = {}
        self._keys: dict[str, str] = {}
        self._at_work: dict[str, _Work] = {}
        self._turns = anyio.Semaphore(bounds.MODELS_AT_WORK)
        """For who asks a model without a person: so many at a time, the others wait."""

    @property
    def took(self) -> dict[str, Written]:
        """What the finished drafts took, by ask."""
        found = {}
        for ask in self._session.inbox.asks.values():
            if ask.draft is not None and (took := ask.draft.took) is not None:
                usage = Usage(took.input_tokens, took.output_tokens)
                found[ask.id] = Written(ask.draft.by.name, took.seconds, usage)
        return found

    @property
    def all(self) -> dict[str, Model]:
        """Every model by its name: of the settings, of this session, and those that need nobody."""
        return {**self._configured, **self._own, **ALWAYS}

    def is_own(self, name: str) -> bool:
        """Whether it was added in this session, and so can be removed."""
        return name in self._own

    def has_key(self, name: str) -> bool:
        """Whether there is a key for it, or it needs none."""
        model = self.all[name]
        return model.provider in OFFLINE or bool(self._key(name)) or (model.base_url is not None and not model.key_env)

    def keeps_key(self, name: str) -> bool:
        """Whether a key for it was typed, and is in memory."""
        return bool(self._keys.get(name))

    def add(self, name: str, model: Model, key: str = "") -> None:
        """One more for this session, its key in memory. Raises Conflict for a name that is taken by the settings."""
        if name in self._configured or name in ALWAYS:
            raise Conflict(f"There is a model named {name!r} already. Choose another name.")
        if len(self._own) >= bounds.MODELS and name not in self._own:
            raise Conflict(f"There are {bounds.MODELS} models, which is the limit. Delete one first.")
        before = self._own.get(name)
        # A key goes nowhere else than where it was typed for.
        moved = before is not None and (before.provider, before.base_url) != (model.provider, model.base_url)
        self._own[name] = model
        if key or moved or name not in self._keys:
            self._keys[name] = key
        self._session.changed("models.changed", "models")

    def remove(self, name: str) -> None:
        """Forget one of this session, and its key. Raises Gone when there is none."""
        if name not in self._own:
            raise Gone("There is no such model of this session.")
        del self._own[name]
        self._keys.pop(name, None)
        self._session.changed("models.changed", "models")

    def fitting(self, ask: Ask) -> tuple[list[Choice], list[str]]:
        """The models for an ask, the best first, and the hints that none answers to."""
        return choices(self.all, ask.request)

    def _key(self, name: str) -> str:
        model = self.all[name]
        return self._keys.get(name, "") or (os.environ.get(model.key_env, "") if model.key_env else "")

    # ---- writing

    def begin(self, ask: Ask, name: str | None = None) -> str:
        """Let a model write, from the request as a person edited it; what another was writing is over. The name of the
        model. Raises Invalid for what is no sampling or no model, Gone when the ask is settled."""
        work = self._take_up(ask, name)
        self._session.start_soon(self._write, ask, work)
        return work.draft.by.name

    async def write(self, ask: Ask, name: str | None = None) -> Draft | None:
        """The same for who answers without a person: the draft, once it is ready or has failed; None when it was
        stopped, or another took its place. Raises as `begin` does."""
        async with self._turns:
            work = self._take_up(ask, name)
            try:
                await self._write(ask, work)
            finally:
                if self._at_work.get(ask.id) is work:
                    self.stop(ask)
        return work.draft if ask.draft == work.draft and work.draft.fault != "stopped" else None

    def stop(self, ask: Ask) -> bool:
        """Whoever writes need not any more; what was written stays. False when nobody was writing."""
        work = self._at_work.get(ask.id)
        if work is None:
            return False
        work.scope.cancel()
        self._show(ask, work, replace(work.draft, state="failed", fault="stopped", problem="Stopped."))
        del self._at_work[ask.id]
        return True

    def _take_up(self, ask: Ask, name: str | None) -> _Work:
        if ask.kind != "sampling":
            raise Invalid(f"A model does not answer a {ask.kind}.", {"/model": ["Only sampling is for models."]})
        if ask.state != "open":
            raise Gone(ask.words())
        chosen = name if name is not None else self.fitting(ask)[0][0].name
        if chosen not in self.all:
            raise Invalid("There is no such model.", {"/model": [f"The models are {', '.join(self.all)}."]})
        self.stop(ask)
        request, notes = _asked(ask)
        number = 1 if ask.draft is None else ask.draft.number + 1
        draft = Draft(AnsweredBy("model", chosen), state="streaming", notes=notes, number=number)
        work = _Work(self.all[chosen], self._key(chosen), request, self._session.mono(), draft)
        self._at_work[ask.id] = work
        self._show(ask, work, draft)
        return work

    async def _write(self, ask: Ask, work: _Work) -> None:
        name = work.draft.by.name
        with work.scope:
            try:
                if not work.key and name in self.all and not self.has_key(name):
                    raise ModelFault("key", _keyless(name, work.model))
                pieces = written(work.model, work.key, work.request, self._egress())
                async with aclosing(pieces):
                    async for piece in pieces:
                        self._show(ask, work, self._further(work, piece))
                        if work.draft.state == "failed":
                            break
            except ModelFault as fault:
                failed = replace(work.draft, state="failed", problem=str(fault), fault=fault.kind, said=fault.said)
                self._show(ask, work, replace(failed, retry_after=fault.retry_after))
        if self._at_work.get(ask.id) is work:
            del self._at_work[ask.id]

    def _further(self, work: _Work, piece: Writing | Finished) -> Draft:
        """The draft with what was written since, or finished."""
        took = self._session.mono() - work.began
        if work.first is None:
            work.first = took
        if isinstance(piece, Writing):
            return replace(work.draft, text=piece.text)
        doubts = [*sampling.doubts(work.request, piece.result)]
        doubts += [words for texts in sampling.misfits(work.request, piece.result).values() for words in texts]
        notes = (*work.draft.notes, *piece.notes, *doubts)[: bounds.MODEL_NOTES]
        used = Took(took, work.first, piece.usage.input_tokens, piece.usage.output_tokens)
        return replace(work.draft, content=piece.result, state="ready", notes=notes, took=used)

    def _show(self, ask: Ask, work: _Work, draft: Draft) -> None:
        """Show how far a draft has come, unless another has taken its place."""
        if self._at_work.get(ask.id) is work:
            before = None if ask.draft is None else _step(ask.draft)
            self._session.inbox.draft(ask, draft)
            work.draft = ask.draft or draft
            if before != _step(work.draft):
                self._session.changed("ask.stepped", ask.id)


def _step(draft: Draft) -> tuple[int, str, bool]:
    """How far a draft is, as people see it: which one, what becomes of it, and whether there is a word of it."""
    return draft.number, draft.state, bool(draft.text)


def _asked(ask: Ask) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a model is asked: the request as a person edited it, and never more tokens than the server wants (R3-12)."""
    request, most = ask.request, whole(ask.params.get("maxTokens"))
    wanted = whole(request.get("maxTokens"))
    if most is None or wanted is None or wanted <= most:
        return request, ()
    words = f"The server wants at most {most} tokens, so the model was asked for {most}."
    return {**request, "maxTokens": most}, (words,)


def _keyless(name: str, model: Model) -> str:
    if model.key_env:
        return f"There is no key for {name}: the variable {model.key_env} is not set where Parley runs."
    return f"There is no key for {name}. Type one with the model."
