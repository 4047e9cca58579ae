"""Tool uses as a person composes them: a form made from the schema of each tool that a server offers with a sampling.

Several uses stand in one form, so the names of a use's controls begin with its number. What is typed is checked against
the schemas before it leaves; `core.sampling` says whether the whole fits (R3-08). Knows requests; knows no route.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from app import bounds
from app.core import forms
from app.core.forms import MISSING, Entries, Field

_MOST = 20
"""Uses in one answer."""


class Offered(NamedTuple):
    """A tool that the server offers."""

    name: str
    description: str
    schema: Any


@dataclass(slots=True)
class Use:
    """One tool use: of which tool, under which id, and the form of its input."""

    prefix: str
    id: str
    tool: Offered
    tree: Field
    errors: list[str] = field(default_factory=list)
    """What is wrong and has no field to stand beside."""


@dataclass(slots=True)
class Uses:
    """What is being composed."""

    tools: list[Offered]
    choice: str
    """`auto`, `required` or `none`."""
    round: int
    text: str = ""
    uses: list[Use] = field(default_factory=list)

    @property
    def at_limit(self) -> bool:
        """Whether so many rounds in a row look like a loop (R3-21)."""
        return self.round >= bounds.TOOL_ROUNDS

    @property
    def limit(self) -> int:
        return bounds.TOOL_ROUNDS

    @property
    def full(self) -> bool:
        return len(self.uses) >= _MOST

    @property
    def rule(self) -> str:
        """What the server wants, in a sentence; "" when it leaves that open."""
        words = {"required": "The server wants at least one tool use.", "none": "The server allows no tool use here."}
        return words.get(self.choice, "")


def offered(request: dict[str, Any]) -> list[Offered]:
    """The tools of a sampling request."""
    listed = request.get("tools")
    tools = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [
        Offered(str(one.get("name", "")), str(one.get("description") or ""), one.get("inputSchema")) for one in tools
    ]


def composed(request: dict[str, Any], number: int, form: Entries | None = None) -> Uses:
    """What is being composed: as it was submitted, or as it begins, with a form when there is only one to choose."""
    mode = request.get("toolChoice")
    choice = str(mode.get("mode", "auto")) if isinstance(mode, dict) else "auto"
    tools = offered(request)
    made = Uses(tools, choice, number)
    if form is None or not form.has("uses"):
        if len(tools) == 1 and choice != "none":
            made.uses.append(_fresh(tools[0], 0))
        return made
    made.text = form.first("use-text") or ""
    operation = form.first("_op") or ""
    for index in _indices(form):
        prefix = f"use-{index}"
        if operation == f"drop-use:{index}":
            continue
        tool = _named(tools, form.first(f"{prefix}-tool") or "")
        if tool is not None:
            made.uses.append(_read(tool, prefix, form, operation))
    wanted = _named(tools, form.first("tool") or "")
    if operation == "add-use" and wanted is not None and not made.full:
        made.uses.append(_fresh(wanted, max((int(one) for one in _indices(form)), default=-1) + 1))
    return made


def answered(made: Uses, model: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The result that the uses say, and what is wrong with their inputs; that stands beside the fields too."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": made.text}] if made.text else []
    wrong: dict[str, list[str]] = {}
    for number, use in enumerate(made.uses, 1):
        read = forms.read(use.tree)
        value = {} if read.value is MISSING else read.value
        errors = {**forms.validate(use.tool.schema, value), **read.errors}
        if errors:
            use.errors = forms.place(use.tree, errors)
            wrong[f"/use/{number}"] = [f"Tool use {number}, {use.tool.name[:60]}: see the marked fields."]
        blocks.append({"type": "tool_use", "id": use.id, "name": use.tool.name, "input": value})
    if not made.uses:
        wrong["/content"] = ["Add a tool use first."]
    content: Any = blocks[0] if len(blocks) == 1 else blocks
    return {"role": "assistant", "content": content, "model": model or "human", "stopReason": "toolUse"}, wrong


def _indices(form: Entries) -> list[str]:
    found = (each for each in form.all("use") if each.isascii() and each.isdigit() and len(each) < 5)
    return list(dict.fromkeys(found))[:_MOST]


def _named(tools: list[Offered], name: str) -> Offered | None:
    return next((one for one in tools if one.name == name), None)


def _fresh(tool: Offered, index: int) -> Use:
    prefix = f"use-{index}"
    # An id is the client's to choose, and other rounds of the same talk have theirs.
    return Use(prefix, f"use_{uuid.uuid4().hex[:12]}", tool, _called(forms.build(tool.schema), prefix))


def _read(tool: Offered, prefix: str, form: Entries, operation: str) -> Use:
    starts = (f"{prefix}/", f"{prefix}#")
    own = Entries((name[len(prefix) :], text) for name, text in form.pairs() if name.startswith(starts))
    verb, _, place = operation.partition(":")
    if place.startswith(starts):
        forms.operate(own, f"{verb}:{place[len(prefix) :]}")
    given = form.first(f"{prefix}-id") or ""
    name = given[:100] if given.strip() else f"use_{uuid.uuid4().hex[:12]}"
    return Use(prefix, name, tool, _called(forms.build(tool.schema, form=own), prefix))


def _called(tree: Field, prefix: str) -> Field:
    """The same tree with names that are this use's own."""
    for one in tree.walk():
        one.name = prefix + one.name
        one.kept = [(prefix + name, text) for name, text in one.kept]
    return tree
