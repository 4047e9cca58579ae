"""The form of an ask on a phone: what of it a thumb needs, and what was sent back.

A guest says yes with values, or no; everything a tester can do besides (send what does not fit, fail it, edit the
request) is not read here, so no field that a guest adds can do it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from app import guest_bounds as bounds
from app.core import elicitation, forms, links
from app.core.asks import Ask
from app.core.forms import Entries, Field
from app.web.asks import words

GUEST_MODEL = "a person"
"""What a sampling answer says of who wrote it, when a guest did."""


@dataclass(slots=True)
class PhoneForm:
    """What a phone shows of an ask."""

    ask: Ask
    tree: Field | None = None
    text: str = ""
    """Of sampling: what was written."""
    name: str = ""
    """Who sends it, if they said so."""
    errors: list[str] = field(default_factory=list)

    @property
    def question(self) -> str:
        return words.question(self.ask)

    @property
    def link(self) -> links.Link | None:
        """The address that a server wants to be opened, when it is one that may be."""
        return links.read(str(self.ask.params.get("url", ""))) if self.ask.kind == "url" else None


def blank(ask: Ask) -> PhoneForm:
    """The form before anybody has touched it, with what the schema suggests."""
    return PhoneForm(ask, forms.build(ask.schema) if ask.kind == "form" else None)


def filled(ask: Ask, form: Entries, action: str | None = None) -> tuple[PhoneForm, dict[str, Any], bool]:
    """What was sent: the form again, what it says in the words of the JSON interface, and whether it can be used."""
    action = action or form.first("action") or ("respond" if ask.kind == "sampling" else "accept")
    name = (form.first("who") or "").strip()[: bounds.LINK_NAME]
    said: dict[str, Any] = {"action": action}
    if ask.kind == "sampling":
        text = (form.first("text") or "").strip()
        shown = PhoneForm(ask, None, text, name)
        if action == "respond":
            if not text or len(text) > bounds.GUEST_TEXT:
                shown.errors = [f"Write something, of at most {bounds.GUEST_TEXT:,} characters."]
            said["result"] = written(text)
        return shown, said, not shown.errors
    if ask.kind != "form" or action != "accept":
        return PhoneForm(ask, forms.build(ask.schema, form=form) if ask.kind == "form" else None, name=name), said, True
    tree = forms.build(ask.schema, form=form)
    read = forms.read(tree)
    said["content"] = value = {} if read.value is forms.MISSING else read.value
    wrong = dict(read.errors) or elicitation.misfits(ask.params, {"action": "accept", "content": value})
    shown = PhoneForm(ask, tree, name=name)
    if wrong:
        shown.errors = forms.place(tree, wrong) or ["Please fix the marked fields."]
    return shown, said, not wrong


def written(text: str) -> dict[str, Any]:
    """A sampling answer that a person wrote."""
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": GUEST_MODEL,
        "stopReason": "endTurn",
    }
