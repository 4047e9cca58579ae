"""Fields without fields inside: texts, numbers, choices, boxes for JSON, and what holds for every field.

A control may never change what it holds. A text that an input would not give back as it was (a carriage return, a
date that is none) gets a plainer control, in the end the JSON box.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any, Literal

from app.core.forms.sources import Carried, Given, Source, Submitted
from app.core.forms.tree import Field, Kind
from app.core.forms.words import MAX_DESCRIPTION, MAX_LABEL, asks_for_secret, text_of, type_text
from app.core.json.values import MISSING, is_number, same, show, to_json_text
from app.core.schema.refs import Option

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
}
_LONG_FORMATS = frozenset({"markdown", "multiline", "textarea", "html", "code"})
_LONG = 200
_CLOCKS = ("date", "time", "datetime")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_MOMENT = re.compile(_DAY.pattern + "T" + _TIME.pattern)
_LOCAL_TIME = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?")
_LOCAL_MOMENT = re.compile(_DAY.pattern + "T" + _LOCAL_TIME.pattern)
_UNTYPEABLE = re.compile("[\r\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Spot:
    """The place of a field: where its value stands, what its controls are called, and how deep it is."""

    pointer: str
    name: str
    key: str
    required: bool
    depth: int

    def child(self, pointer: str, name: str, key: str, required: bool) -> Spot:
        """The place of a property or an item."""
        return replace(
            self, pointer=self.pointer + pointer, name=name, key=key, required=required, depth=self.depth + 1
        )


def common(kind: Kind, schema: Mapping[str, Any], spot: Spot, options: int = 0) -> Field:
    """A field with what every kind has."""
    given = schema.get("examples")
    examples = given if isinstance(given, list) else []
    default = schema.get("default")
    title = text_of(schema, "title", MAX_LABEL)
    return Field(
        pointer=spot.pointer,
        name=spot.name,
        kind=kind,
        key=spot.key,
        label=title or (spot.key[:MAX_LABEL] if not spot.key.isspace() else to_json_text(spot.key)),
        description=text_of(schema, "description", MAX_DESCRIPTION),
        required=spot.required,
        type_text=type_text(kind, schema, options)[:100],
        default="" if default is None or default == "" else show(default, 60),
        examples=[show(each, 60) for each in examples[:3]],
        suggestion=examples[0] if examples else MISSING,
        deprecated=schema.get("deprecated") is True,
        read_only=schema.get("readOnly") is True,
        secret=schema.get("format") == "password" or asks_for_secret(spot.key, title),
    )


def taken(source: Source, fits: Callable[[Any], bool]) -> tuple[Any, bool]:
    """The value that a source gives, if it gives one; and whether it can be shown. What is only carried need not be."""
    if not isinstance(source, Given) or source.value is MISSING:
        return MISSING, True
    if fits(source.value):
        return source.value, True
    return (MISSING, True) if isinstance(source, Carried) else (source.value, False)


def exact(source: Source) -> bool:
    """Whether a source is a value of which nothing may be lost and to which nothing may be added."""
    return isinstance(source, Given) and not isinstance(source, Carried)


def is_open(source: Source, kind: str) -> bool:
    """Whether a value that must be there was left out, and may stay so: its control is then of another kind."""
    if isinstance(source, Submitted):
        return source.text("#kind") == kind
    return isinstance(source, Given) and exact(source) and source.value is MISSING


def typeable(text: str, lines: bool = True) -> bool:
    """Whether a text comes back from a browser as it was sent."""
    return _UNTYPEABLE.search(text) is None and (lines or "\n" not in text)


def index_of(text: str, length: int) -> int | None:
    """An index that a browser sent; None when it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 and int(text) < length else None


def json_box(schema: Mapping[str, Any], spot: Spot, source: Source, why: str, words: str = "") -> Field:
    """A box for any JSON, with the reason why there is nothing better."""
    made = common("json", schema, spot)
    made.note = why
    made.type_text = words or made.type_text
    if isinstance(source, Submitted):
        made.text = source.text()
        return made
    value = source.value if isinstance(source, Given) else schema.get("default", MISSING)
    try:
        made.text = to_json_text(value)
    except ValueError:
        made.errors = ["The value cannot be written as JSON."]
    return made


def fixed(schema: Mapping[str, Any], spot: Spot, source: Source, value: Any) -> Field:
    """A value that nobody can change; MISSING is shown as nothing and left out."""
    if isinstance(source, Given) and exact(source) and source.value is not MISSING and not same(source.value, value):
        return json_box(schema, spot, source, "The value is not the one that the schema fixes.")
    made = common("const", schema, spot)
    made.plainer = value is not MISSING and is_open(source, "const")
    value = MISSING if made.plainer else value
    made.fixed = value
    made.text = to_json_text(value, indent=None)
    return made


def choice(schema: Mapping[str, Any], options: list[Option], spot: Spot, source: Source) -> Field:
    """One of several values. The browser sends an index, so that 1, "1", true and null stay apart."""

    def chosen(given: Any) -> int | None:
        return next((at for at, option in enumerate(options) if same(option.value, given)), None)

    value, fits = taken(source, lambda given: chosen(given) is not None)
    if not fits:
        return json_box(schema, spot, source, "The value is none of the choices.")
    made = common("choice", schema, spot, len(options))
    made.options = options
    made.chosen = index_of(source.text(), len(options)) if isinstance(source, Submitted) else None
    if value is not MISSING:
        made.chosen = chosen(value)
    return made


def multi(schema: Mapping[str, Any], options: list[Option], spot: Spot, source: Source) -> Field:
    """Any of several values, as ticks."""
    value, _ = taken(source, lambda given: isinstance(given, list))
    made = common("multi", schema, spot, len(options))
    made.options = options
    if isinstance(source, Submitted):
        picked = {index_of(each, len(options)) for each in source.form.all(source.name)}
        made.chosen_many = sorted(each for each in picked if each is not None)
    elif value is not MISSING:
        made.chosen_many = [at for at, option in enumerate(options) if any(same(option.value, each) for each in value)]
    _emptiness(made, spot.required, value, [], bool(schema.get("default")), source)
    return made


def _emptiness(made: Field, implied: bool, value: Any, nothing: Any, asked: bool, source: Source) -> None:
    """What it means when nothing is typed or ticked. A tick asks for it where the schema does not say it (R4-08)."""
    if isinstance(source, Submitted):
        made.can_be_empty = source.has("#maybe") or (asked and not implied)
        made.empty = source.has("#empty") if made.can_be_empty else implied
        return
    left_out = exact(source) and value is MISSING
    made.empty = value == nothing or (implied and not left_out)
    made.can_be_empty = (implied and left_out) or (not implied and (asked or made.empty))


def boolean(schema: Mapping[str, Any], spot: Spot, source: Source) -> Field:
    """A tick where there must be an answer; where there need not be one, three ways."""
    value, fits = taken(source, lambda given: isinstance(given, bool))
    if not fits:
        return json_box(schema, spot, source, "The value is neither true nor false.")
    open_still = is_open(source, "threeway")
    made = common("checkbox" if spot.required and not open_still else "threeway", schema, spot)
    made.plainer = open_still and spot.required
    if isinstance(source, Submitted):
        made.text = source.text() if source.text() in ("true", "false") else ""
    elif value is not MISSING:
        made.text = "true" if value else "false"
    made.checked = made.text == "true"
    return made


def number(schema: Mapping[str, Any], kind: Literal["integer", "number"], spot: Spot, source: Source) -> Field:
    """A number as a text, so that a browser cannot round it."""
    value, fits = taken(source, is_number)
    if not fits:
        return json_box(schema, spot, source, "The value is not a number.")
    made = common(kind, schema, spot)
    if isinstance(source, Submitted):
        made.text = source.text().strip().replace("\n", " ")
    elif value is not MISSING:
        whole = kind == "integer" and isinstance(value, float) and value.is_integer()
        made.text = to_json_text(int(value) if whole else value)
    if made.suggestion is MISSING:
        low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
        made.suggestion = low if is_number(low) else above + 1 if is_number(above) and above >= 0 else 0
    return made


def string(schema: Mapping[str, Any], spot: Spot, source: Source) -> Field:
    """A text in the control that suits its format and leaves it as it is."""
    value, fits = taken(source, lambda given: isinstance(given, str) and typeable(given))
    if not fits:
        told = "The text has a character that no text field keeps." if isinstance(value, str) else ""
        return json_box(schema, spot, source, told or "The value is not a string.")
    suited = kind = _suited(schema)
    text = "" if value is MISSING else str(value)
    if isinstance(source, Submitted):
        text, was = source.text(), source.text("#kind")
        if was == "long" or (was == "text" and (kind not in _CLOCKS or not _held(kind, text))):
            kind = "long" if was == "long" else "text"
        elif kind in _CLOCKS and was != "text" and not _left_by_control(kind, text):
            kind = "text"
        elif was == "text":
            text = _in_control(kind, text)
    elif kind in _CLOCKS and text:
        kind = kind if _held(kind, text) else "text"
        text = _in_control(kind, text)
    if kind not in ("long", "file") and ("\n" in text or (kind == "text" and len(text) > _LONG)):
        kind = "long"
    made = common(kind, schema, spot)
    made.text = text
    made.plainer = kind != suited
    default = schema.get("default")
    implied = spot.required and kind in ("text", "long")  # an empty text is sent where one must stand
    _emptiness(made, implied, value, "", isinstance(default, str) and bool(default), source)
    return made


def _suited(schema: Mapping[str, Any]) -> Kind:
    """The control that a schema suggests for a text."""
    form = schema.get("format")
    kind: Kind = _FORMATS.get(form, "text") if isinstance(form, str) else "text"
    if schema.get("contentEncoding") in ("base64", "base64url") or form in ("byte", "binary"):
        return "file"
    longest = schema.get("maxLength")
    media = schema.get("contentMediaType")
    if kind == "text" and (
        (isinstance(longest, int) and longest > _LONG)
        or (isinstance(media, str) and media.startswith(("text/", "application/")))
        or (isinstance(form, str) and form in _LONG_FORMATS)
    ):
        return "long"
    return kind


def _held(kind: Kind, text: str) -> bool:
    """Whether a browser's date or time control can hold a text of the schema's format (times are UTC there)."""
    if kind == "date":
        return _DAY.fullmatch(text) is not None and _is_real(kind, text)
    pattern = _TIME if kind == "time" else _MOMENT
    return pattern.fullmatch(text) is not None and text.endswith("Z") and _is_real(kind, text[:-1])


def _left_by_control(kind: Kind, text: str) -> bool:
    """Whether a text can have come from such a control."""
    pattern = {"date": _DAY, "time": _LOCAL_TIME}.get(kind, _LOCAL_MOMENT)
    return not text or (pattern.fullmatch(text) is not None and _is_real(kind, text))


def _is_real(kind: Kind, text: str) -> bool:
    try:
        match kind:
            case "date":
                date.fromisoformat(text)
            case "time":
                time.fromisoformat(text)
            case _:
                datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _in_control(kind: Kind, text: str) -> str:
    """A text as the control writes it: without the zone, and a moment without seconds that are none."""
    if kind == "datetime" and text.endswith(":00Z"):
        return text[:-4]
    return text.removesuffix("Z") if kind in ("time", "datetime") else text
