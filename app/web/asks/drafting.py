"""Sampling by a model, as its card shows it: three steps, of which two are checkpoints of a person.

Check request, Model writes, Check answer: where an ask stands is read off its draft, so every tab shows the same.
Knows asks and the models of a session; knows no route and no template.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from app.core import links, sampling
from app.core.asks import Ask, Draft
from app.core.forms import Entries
from app.models.base import OFFLINE, Model
from app.web.door.denied import Denied
from app.web.kit import format, request_bodies

if TYPE_CHECKING:
    from app.sessions import Workspace

Step = Literal["request", "writes", "failed", "answer"]
_FLOW: tuple[tuple[Step, str], ...] = (
    ("request", "Check request"),
    ("writes", "Model writes"),
    ("answer", "Check answer"),
)
_FAULTS = {
    "key": "The key was refused.",
    "limit": "Rate limit reached.",
    "timeout": "No answer in time.",
    "cut": "The answer was cut off.",
    "filtered": "Stopped by a content filter.",
    "refused": "The request was refused.",
    "unreachable": "The provider could not be reached.",
    "failed": "The provider failed.",
}
_ROWS = 12


class Pick(NamedTuple):
    """One model to choose."""

    name: str
    about: str
    reason: str
    fits: bool
    """A hint of the server names it."""
    chosen: bool


class Mark(NamedTuple):
    """One of the three steps."""

    words: str
    state: Literal["", "did", "now", "halt"]


class Block(NamedTuple):
    """One part of the answer, to be changed before it leaves."""

    name: str
    label: str
    text: str
    """As the model wrote it."""
    is_text: bool
    rows: int


@dataclass(slots=True)
class Drafting:
    """Where an ask stands on its way through a model."""

    session: Workspace
    ask: Ask
    wanted: str = ""
    """The model that was chosen and not asked yet."""

    @property
    def draft(self) -> Draft | None:
        return drafted(self.ask)

    @property
    def step(self) -> Step:
        if self.draft is None:
            return "request"
        return {"streaming": "writes", "ready": "answer", "failed": "failed"}[self.draft.state]  # type: ignore[return-value]

    @property
    def flow(self) -> list[Mark]:
        """The three steps, the one that it stands at marked."""
        names = [name for name, _ in _FLOW]
        at = names.index("writes" if self.step == "failed" else self.step)
        found = []
        for place, (_, words) in enumerate(_FLOW):
            if place != at:
                found.append(Mark(words, "did" if place < at else ""))
            elif self.step == "failed":
                found.append(Mark("Model stopped" if self.stopped else "Model failed", "halt"))
            else:
                found.append(Mark(words, "now"))
        return found

    @property
    def stopped(self) -> bool:
        """Somebody let it write no further."""
        return self.draft is not None and self.draft.fault == "stopped"

    @property
    def picks(self) -> list[Pick]:
        """The models, the best first, that one chosen which a person took, else the best that can be asked and was not
        just now."""
        known = self.session.models
        fitting, _ = known.fitting(self.ask)
        names = [one.name for one in fitting]
        last = self.draft.by.name if self.draft is not None else ""
        usable = [name for name in names if known.has_key(name) and name != last]
        chosen = self.wanted if self.wanted in names else (usable or names)[0]
        hinted = bool(self.hints)
        return [
            Pick(
                one.name,
                about(one.name, one.model),
                _reason(one.reason, one.model, has_key=known.has_key(one.name), hinted=hinted),
                one.reason.startswith("matches"),
                one.name == chosen,
            )
            for one in fitting
        ]

    @property
    def hints(self) -> list[tuple[str, bool]]:
        """What the server would like, in its order, and whether there is such a model here."""
        preferences = self.ask.request.get("modelPreferences")
        given = preferences.get("hints") if isinstance(preferences, dict) else None
        names = [one.get("name") for one in given if isinstance(one, dict)] if isinstance(given, list) else []
        nobody = set(self.session.models.fitting(self.ask)[1])
        return [(name, name not in nobody) for name in names[:20] if isinstance(name, str) and name]

    @property
    def headline(self) -> str:
        """What went wrong, in a few words of ours; the provider's own stand beside it."""
        if self.draft is None:
            return ""
        return _FAULTS.get(self.draft.fault, self.draft.problem) if self.draft.said else self.draft.problem

    @property
    def after(self) -> str:
        """How long it took until it failed."""
        draft = self.draft
        return "" if draft is None else format.duration(1000 * max(0.0, draft.updated_at - draft.started_at))

    @property
    def retry_at(self) -> float | None:
        """When another attempt may go better, as the provider says."""
        draft = self.draft
        return None if draft is None or draft.retry_after is None else draft.updated_at + draft.retry_after

    @property
    def result(self) -> dict[str, Any]:
        """What the model answered."""
        content = None if self.draft is None else self.draft.content
        return content if isinstance(content, dict) else {}

    @property
    def blocks(self) -> list[Block]:
        """The parts of the answer that can be changed."""
        found = []
        listed = sampling.blocks(self.result) if self.result else []
        alone = len(listed) == 1
        for at, block in enumerate(listed):
            if not isinstance(block, dict):
                continue
            if block.get("type") == "text":
                text = str(block.get("text", ""))
                rows = min(_ROWS, max(2, text.count("\n") + 1 + len(text) // 70))
                found.append(Block(f"block-{at}", "Answer" if alone else f"Text {at + 1}", text, True, rows))
            elif block.get("type") == "tool_use":
                name = format.gist(block.get("name"), 60)
                text = json.dumps(block.get("input"), ensure_ascii=False, indent=2)
                rows = min(_ROWS, text.count("\n") + 1)
                found.append(Block(f"block-{at}", f"Input of {name}, as JSON", text, False, rows))
        return found

    @property
    def figures(self) -> list[tuple[str, str, bool]]:
        """What it took: label, value, and whether that is to be read letter by letter."""
        draft = self.draft
        took = None if draft is None else draft.took
        found = [("Model used", format.gist(self.result.get("model"), 80), True)]
        if took is not None:
            inside = f"{took.input_tokens:,} in, " if took.input_tokens else ""
            if took.input_tokens or took.output_tokens:
                found.append(("Tokens", f"{inside}{took.output_tokens:,} out", False))
            found.append(("Latency", format.duration(1000 * took.seconds), False))
        if isinstance(stop := self.result.get("stopReason"), str):
            found.append(("Stop reason", stop[:60], True))
        return found

    @property
    def first(self) -> str:
        """How long the first words took; "" when nobody knows."""
        took = None if self.draft is None else self.draft.took
        return "" if took is None or took.first_seconds is None else format.duration(1000 * took.first_seconds)


def drafted(ask: Ask) -> Draft | None:
    """The draft of a model for a sampling, as far as it has come."""
    draft = ask.draft
    return draft if draft is not None and ask.kind == "sampling" and draft.by.kind == "model" else None


def about(name: str, model: Model) -> str:
    """What a model is, in a few words."""
    if model.provider in OFFLINE:
        words = {"echo": "says the question again", "canned": "always says the same", "script": "streams a few words"}
        return f"built in, {words[model.provider]}"
    where = None if model.base_url is None else links.read(model.base_url)
    place = "" if where is None else "on this machine" if where.loopback else f"at {where.host}"
    kind = model.provider if model.base_url is None else f"{model.provider} format"
    said = [f"{kind} {place}".strip()]
    if model.model and model.model != name:
        said.insert(0, model.model[:80])
    for value, word in ((model.speed, "fast"), (model.cost, "low cost"), (model.intelligence, "thorough")):
        if value >= 0.75:
            said.append(word)
    return ", ".join(said)


def _reason(reason: str, model: Model, *, has_key: bool, hinted: bool) -> str:
    if not has_key:
        return "no key"
    if reason.startswith("matches"):
        return reason
    if model.provider in OFFLINE:
        return "no key needed"
    return reason or ("no hint" if hinted else "")


def answered(ask: Ask, form: Entries) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """What the model wrote with what a person changed in it, as the result to send; and what cannot be read."""
    draft = drafted(ask)
    if draft is not None and draft.state == "streaming":
        return {}, {"/draft": ["The model is still writing. Stop it first, or wait."]}
    if draft is None or not isinstance(draft.content, dict):
        return {}, {"/draft": ["There is no answer of a model yet. Send the request to one first."]}
    if form.first("draft") not in (None, str(draft.number)):
        return {}, {"/draft": ["Another draft came meanwhile. Look at it, then send."]}
    result = copy.deepcopy(draft.content)
    errors: dict[str, list[str]] = {}
    for at, block in enumerate(sampling.blocks(result)):
        typed = form.first(f"block-{at}")
        if typed is None or not isinstance(block, dict):
            continue
        if block.get("type") == "text":
            # A browser sends every line break as one of its own: what nobody touched stays as it was.
            if typed != str(block.get("text", "")).replace("\r\n", "\n").replace("\r", "\n"):
                block["text"] = typed
        else:
            try:
                given = request_bodies.strict_json(typed)
                if not isinstance(given, dict):
                    raise Denied(400, "malformed", "The input of a tool is a JSON object, like {}.")
                block["input"] = given
            except Denied as fault:
                errors[f"/block/{at}"] = [f"Input of {format.gist(block.get('name'), 60)}: {fault.message}"]
    return result, errors


def edits_of(draft: Draft, result: dict[str, Any]) -> list[tuple[str, str]]:
    """The texts that a person changed in what a model wrote, each as it was and as it left."""
    before = sampling.blocks(draft.content) if isinstance(draft.content, dict) else []
    found = []
    for old, new in zip(before, sampling.blocks(result), strict=False):
        if old != new:
            found.append((_told(old), _told(new)))
    return found


def _told(block: Any) -> str:
    if isinstance(block, dict) and isinstance(block.get("text"), str):
        return str(block["text"])
    return json.dumps(block, ensure_ascii=False, indent=2)
