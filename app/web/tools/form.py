"""The form of a tool at one moment: drawn from its schema, filled, read, compared with the schema.

What does not fit gets sentences beside the fields. A heavy schema is handled in a thread (S38). Knows no route.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import anyio.to_thread

from app.core import forms
from app.core.calls import Call
from app.core.forms import MISSING, Entries
from app.core.json.text import Fault
from app.store import SavedRequest
from app.web.calls.card import is_call_of, recent_calls
from app.web.door.denied import Fields
from app.web.kit.templates import Context
from app.web.tools.tool import Tool

Mode = Literal["form", "json"]
Result = TypeVar("Result")

_EMPTY = "Required and empty."
_NOT_AN_OBJECT = "The arguments of a tool are a JSON object, like {}."


# ---------------------------------------------------------------------------------------------------------- contexts


@dataclass(slots=True)
class Drawn:
    """What is in the form at one moment, what it says, and what is wrong with it."""

    mode: Mode
    tree: forms.Field | None = None
    text: str = ""
    value: Any = MISSING
    unreadable: Fields = field(default_factory=dict)
    """What cannot be read as a value at all, by pointer."""
    empty: frozenset[str] = frozenset()
    """Where that is only an item without a value."""
    fault: Fault | None = None
    """Where the JSON text is broken, and with which words."""
    wrong: Fields = field(default_factory=dict)
    """What does not fit the schema, by pointer."""
    said: list[str] = field(default_factory=list)
    """What has no field to stand beside."""
    filled_from: str = ""
    """The number of the call whose arguments these are."""
    saved: SavedRequest | None = None
    """The saved request whose arguments these are."""
    looked_at: bool = False
    """It was compared with the schema."""
    ttl: str = ""
    """How long a task may live, as it was typed."""
    ttl_wrong: str = ""
    asked: list[forms.Field] = field(default_factory=list)
    """What must be there and is empty, when nothing else is wrong: the form asks about it before it is sent."""

    @property
    def fields(self) -> list[forms.Field]:
        """The arguments that the schema names."""
        return [one for one in self.tree.children if not one.more] if self.tree is not None else []

    @property
    def sends(self) -> int:
        """How many of them are sent as the form stands."""
        return sum(not one.unset for one in self.fields)

    @property
    def arguments(self) -> Any:
        return {} if self.value is MISSING else self.value

    @property
    def no_json(self) -> bool:
        """Whether it is a text that says nothing yet, which cannot be sent at all."""
        return self.mode == "json" and bool(self.unreadable)

    def place(self) -> None:
        """Put what is wrong beside the fields; in the JSON box it becomes a list."""
        both = {**self.unreadable}
        for pointer, sentences in self.wrong.items():
            if pointer not in both:
                both[pointer] = sentences
        if self.mode == "form" and self.tree is not None:
            self.said = forms.place(self.tree, both)
        else:
            self.said = [f"{at}: {one}" if at else one for at, sentences in both.items() for one in sentences]


@dataclass(slots=True)
class ToolForm(Context):
    """The form as a part of the page."""

    template: ClassVar[str] = "tools/_form.html"
    part: ClassVar[str | None] = "tools/_form.html"

    tool: Tool
    form: Drawn
    unchecked: str
    last: Call | None
    """The newest call of this tool, whose arguments can be taken again."""
    refused: bool
    helper: list[forms.Field]
    """What the arguments are, beside the box for JSON."""


@dataclass(slots=True)
class Checked(Context):
    """What is to be said about a JSON text while it is typed."""

    template: ClassVar[str] = "tools/_check.html"
    part: ClassVar[str | None] = "tools/_check.html"

    form: Drawn
    unchecked: str


# ----------------------------------------------------------------------------------------------------------- drawing


async def off(heavy: bool, work: Callable[[], Result]) -> Result:
    return await anyio.to_thread.run_sync(work) if heavy else work()


def from_value(schema: Any, value: Any) -> Drawn:
    """The form for a value; for one that is no object the JSON box, where everything can stand."""
    if value is not MISSING and not isinstance(value, dict):
        return Drawn("json", text=forms.to_json_text(value), value=value)
    tree = forms.build(schema, value, prefill=False)
    return Drawn("form", tree=tree, value=value)


def from_form(schema: Any, form: Entries) -> Drawn:
    """The form as it was submitted, in either mode."""
    if form.first("_mode") == "json":
        text = form.first("_text") or ""
        typed = forms.from_json_text(text)
        drawn = Drawn("json", text=text, value=typed.value, fault=typed.fault)
        if typed.problem is not None:
            drawn.unreadable[""] = [typed.problem]
        return drawn
    tree = forms.build(schema, form=form, prefill=False)
    filled = forms.read(tree)
    return Drawn("form", tree=tree, value=filled.value, unreadable=filled.errors, empty=frozenset(filled.empty))


def checked(schema: Any, drawn: Drawn) -> Drawn:
    """The same, compared with the schema."""
    drawn.looked_at = True
    if drawn.no_json:
        return drawn
    if drawn.value is not MISSING and not isinstance(drawn.value, dict):
        drawn.wrong[""] = [_NOT_AN_OBJECT]
    for pointer, sentences in forms.validate(schema, drawn.arguments).items():
        drawn.wrong.setdefault(pointer, []).extend(one for one in sentences if one not in drawn.wrong.get(pointer, []))
    return drawn


def asks(drawn: Drawn) -> bool:
    """Whether all that speaks against sending is that something required is empty. Then that is asked about."""
    if drawn.mode != "form" or drawn.tree is None:
        return False
    blank = [one for one in drawn.tree.walk() if one.blank and (one.word or one.kind in ("text", "long"))]
    places = {one.pointer for one in blank}
    if not blank or not places >= {*drawn.wrong, *drawn.unreadable}:
        return False
    drawn.asked, drawn.unreadable = blank, {}
    drawn.wrong = {place: [_EMPTY] for place in places}
    return True


def switched(schema: Any, drawn: Drawn, to: str) -> Drawn:
    """The other mode with the same arguments. What the other one could not say stays where it is, with the reason."""
    if drawn.mode == to:
        return drawn
    lost = {at: said for at, said in drawn.unreadable.items() if at not in drawn.empty}
    if lost:
        drawn.unreadable = lost
        drawn.place()
        return drawn
    if to == "json":
        return Drawn("json", text=forms.to_json_text(drawn.arguments), value=drawn.value)
    if not isinstance(drawn.arguments, dict):
        drawn.wrong[""] = [_NOT_AN_OBJECT]
        drawn.place()
        return drawn
    return from_value(schema, drawn.arguments)


def arguments_of_call(call: Call) -> Any:
    """The arguments that a call was made with; MISSING when it had none."""
    return (call.params or {}).get("arguments", MISSING)


def unchecked_words(schema: Any) -> str:
    why = forms.unchecked(schema)
    return f"{why} The arguments are sent without a check." if why else ""


async def tool_form(tool: Tool, drawn: Drawn, *, refused: bool = False) -> ToolForm:
    def look() -> tuple[str, list[forms.Field]]:
        tree = forms.build(tool.schema, prefill=False) if drawn.mode == "json" else None
        return unchecked_words(tool.schema), [] if tree is None else [one for one in tree.children if not one.more]

    unchecked, helper = await off(tool.heavy, look)
    return ToolForm(tool, drawn, unchecked, last_call(tool), refused, helper)


def last_call(tool: Tool) -> Call | None:
    """The newest call of a tool."""
    return next((call for call in recent_calls(tool.session) if is_call_of(call, tool.name)), None)


def in_json_box(schema: Any, drawn: Drawn) -> Drawn:
    """A form that nobody has touched, in the JSON box. Where there is nothing yet, a value to start from."""
    value = forms.skeleton(schema) if drawn.value is MISSING else drawn.value
    return Drawn("json", text=forms.to_json_text(value), value=value, filled_from=drawn.filled_from, saved=drawn.saved)
