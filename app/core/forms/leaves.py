"""Fields without fields inside: texts, numbers, choices, boxes for JSON, and what holds for every field.

A control may never change what it holds. A date that a browser's control would not give back as it was gets a text
field; what no text field keeps (a carriage return) gets the JSON box.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from app.core.forms import clocks
from app.core.forms.sources import Given, Source, Submitted
from app.core.forms.tree import Field, Kind, Spot, State
from app.core.forms.words import MAX_DESCRIPTION, MAX_LABEL, differs, hints, text_of, type_text
from app.core.json import pointer
from app.core.json.values import MISSING, is_number, number_of, same, show, to_json_text
from app.core.schema.plain import Option

_FORMATS: dict[str, Kind] = {
    "date": "date",
    "time": "time",
    "date-time": "datetime",
    "email": "email",
    "idn-email": "email",
    "uri": "uri",
    "url": "uri",
    "iri": "uri",
    "password": "password",
    "byte": "file",
    "binary": "file",
    **dict.fromkeys(("markdown", "multiline", "textarea", "html", "code"), "long"),
}
_LONG = 200
_UNTYPEABLE = re.compile("[\r\x00\ud800-\udfff]")


class NoControl(Exception):
    """Nothing but a box for JSON can show what stands here. The message says why, as a sentence."""


def common(kind: Kind, schema: Mapping[str, Any], spot: Spot, options: int = 0) -> Field:
    """A field with what every kind has."""
    given = schema.get("examples")
    examples = given if isinstance(given, list) else []
    default = schema.get("default")
    key = to_json_text(spot.key) if spot.key.isspace() else spot.key[:MAX_LABEL]
    title = text_of(schema, "title", MAX_LABEL)
    return Field(
        pointer=spot.pointer,
        name=spot.name,
        key=spot.key,
        required=spot.required,
        depth=spot.depth,
        kind=kind,
        label=title or key,
        word=key,
        title=title if key and differs(title, key) else "",
        description=text_of(schema, "description", MAX_DESCRIPTION),
        type_text=type_text(kind, schema, options)[:100],
        hints=hints(kind, schema),
        default="" if default is None or default == "" else show(default, 60),
        examples=[show(each, 60) for each in examples[:3]],
        suggestion=examples[0] if examples else MISSING,
        deprecated=schema.get("deprecated") is True,
        read_only=schema.get("readOnly") is True,
    )


def taken(source: Source, fits: Callable[[Any], bool], why: str) -> Any:
    """The value that a source gives; MISSING when it gives none, or one that is only carried and does not fit.

    Raises NoControl when a value that must be shown does not fit."""
    if source.value is MISSING or fits(source.value):
        return source.value
    if isinstance(source, Given) and source.carried:
        return MISSING
    raise NoControl(why)


def typeable(text: Any) -> bool:
    """Whether a value is a text that comes back from a browser as it was sent."""
    return isinstance(text, str) and _UNTYPEABLE.search(text) is None


def json_box(schema: Mapping[str, Any], spot: Spot, source: Source, why: str) -> Field:
    """A box for any JSON, with the reason why there is nothing better."""
    made = common("json", schema, spot)
    made.note = why
    value = schema.get("default", MISSING) if type(source) is Source else source.value
    try:
        made.text = source.text() or to_json_text(value)
    except ValueError:
        made.errors = ["The value cannot be written as JSON."]
    return made


def fixed(schema: Mapping[str, Any], value: Any, spot: Spot, source: Source) -> Field:
    """A value that nobody can change, or a choice of that one where it may be left out. MISSING is always left out."""
    always = spot.required or schema.get("readOnly") is True
    if value is not MISSING and (source.is_nothing or not always):
        return choice(schema, [Option(value, show(value))], spot, source)
    taken(source, lambda given: same(given, value), "The value is not the one that the schema fixes.")
    made = common("const", schema, spot)
    made.value = value
    made.text = to_json_text(value, indent=None)
    return made


def choice(schema: Mapping[str, Any], options: list[Option], spot: Spot, source: Source) -> Field:
    """One of several values. The browser sends an index, so that 1, "1", true and null stay apart."""

    def chosen(given: Any) -> int | None:
        return next((at for at, option in enumerate(options) if same(option.value, given)), None)

    value = taken(source, lambda given: chosen(given) is not None, "The value is none of the choices.")
    made = common("choice", schema, spot, len(options))
    made.options = options
    made.chosen = pointer.index(source.text(), len(options)) if value is MISSING else chosen(value)
    made.value = MISSING if made.chosen is None else options[made.chosen].value
    made.state = _state(source, value, made.value is not MISSING, spot)
    return made


def ticks(options: list[Option], value: list[Any]) -> list[int] | None:
    """Which of the options a list is; None when ticks cannot show it: others, another order, one twice."""
    left = iter(range(len(options)))
    found = [next((at for at in left if same(options[at].value, each)), -1) for each in value]
    return found if -1 not in found else None


def multi(schema: Mapping[str, Any], options: list[Option], chosen: list[int], spot: Spot, source: Source) -> Field:
    """Any of several values, as ticks."""
    made = common("multi", schema, spot, len(options))
    made.options, made.chosen_many = options, chosen
    if isinstance(source, Submitted):
        picked = {pointer.index(each, len(options)) for each in source.form.all(source.name)}
        made.chosen_many = sorted(each for each in picked if each is not None)
    value = taken(source, lambda given: isinstance(given, list), "The value is not a list.")
    made.state = _state(source, value, bool(made.chosen_many), spot)
    empty = made.state == "empty" or (spot.required and not made.state)
    made.value = [options[at].value for at in made.chosen_many] if made.chosen_many or empty else MISSING
    return made


def _state(source: Source, value: Any, filled: bool, spot: Spot) -> State:
    """What is sent where nothing is typed or ticked: what somebody chose, or what the value says (R4-08)."""
    if filled:
        return ""
    chosen = source.text("#as")
    if chosen in ("out", "empty"):
        return "out" if chosen == "out" else "empty"
    if value is not MISSING and value in ("", []):
        return "empty"
    is_absent = isinstance(source, Given) and source.is_nothing
    return "out" if is_absent or not spot.required else ""


def boolean(schema: Mapping[str, Any], spot: Spot, source: Source, *, prefill: bool) -> Field:
    """True or false. Where there must be an answer, a form that is filled with defaults begins with false."""
    value = taken(source, lambda given: isinstance(given, bool), "The value is neither true nor false.")
    text = source.text() or to_json_text(value)
    text = text if text in ("true", "false") else ""
    answered = spot.required and not source.is_nothing and (prefill or text != "")
    made = common("checkbox" if answered else "threeway", schema, spot)
    made.text = text or ("false" if answered else "")
    made.value = made.text == "true" if made.text else MISSING
    made.state = _state(source, value, made.text != "", spot)
    return made


def number(schema: Mapping[str, Any], kind: Literal["integer", "number"], spot: Spot, source: Source) -> Field:
    """A number as a text, so that a browser cannot round it."""
    value = taken(source, is_number, "The value is not a number.")
    made = common(kind, schema, spot)
    whole = kind == "integer"
    if whole and isinstance(value, float) and value.is_integer():
        value = int(value)
    made.text = source.text().strip().replace("\n", " ") or to_json_text(value)
    said = number_of(made.text, whole=whole) if made.text else MISSING
    if isinstance(said, str):
        made.problem = said
    else:
        made.value = said
    made.state = _state(source, value, made.text != "", spot)
    if made.suggestion is MISSING:
        low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
        made.suggestion = low if is_number(low) else above + 1 if is_number(above) and above >= 0 else 0
    return made


def string(schema: Mapping[str, Any], spot: Spot, source: Source) -> Field:
    """A text in the control that suits its format and leaves it as it is."""
    unkept = isinstance(source.value, str)
    why = "The text has a character that no text field keeps." if unkept else "The value is not a string."
    value = taken(source, typeable, why)
    suited = kind = _suited(schema)
    text = source.text() or value or ""
    if suited in clocks.WRITTEN and text:
        from_clock = isinstance(source, Submitted) and not source.has("#kind")
        shown = text if from_clock else clocks.written(suited, text)
        if shown is not None and clocks.writes(suited, shown):
            text = shown
        else:
            kind = "text"
    if kind not in ("long", "file") and ("\n" in text or (kind == "text" and len(text) > _LONG)):
        kind = "long"
    made = common(kind, schema, spot)
    made.text = text
    made.plainer = suited in clocks.WRITTEN and kind != suited
    made.state = _state(source, value, text != "", spot)
    implied = spot.required and kind in ("text", "long")  # an empty text is sent where one must stand
    empty = made.state == "empty" or (implied and not made.state)
    made.value = clocks.sent(kind, text) if text or empty else MISSING
    made.suggestion = "" if made.suggestion is MISSING else made.suggestion
    return made


def _suited(schema: Mapping[str, Any]) -> Kind:
    """The control that a schema suggests for a text."""
    form, longest, media = (schema.get(word) for word in ("format", "maxLength", "contentMediaType"))
    if schema.get("contentEncoding") in ("base64", "base64url"):
        return "file"
    kind = _FORMATS.get(form, "text") if isinstance(form, str) else "text"
    is_long = isinstance(longest, int) and longest > _LONG
    is_document = isinstance(media, str) and media.startswith(("text/", "application/"))
    return "long" if kind == "text" and (is_long or is_document) else kind
