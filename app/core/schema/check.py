"""Whether a value fits its schema, in sentences beside the fields.

Fetches nothing, cannot be made to hang, and says when it could not look at all (S38, R6-11). The schema is taken as
it came: conditions, patterns and dependencies that no form shows are checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.core.forms.tree import Field
from app.core.forms.values import MISSING
from app.core.json import pointer
from app.core.json.text import deeper_than
from app.core.schema.explain import Place, sentences
from app.core.schema.labour import burden, labour, tangle
from app.core.schema.refs import with_known_dialect

MAX_ERRORS = 100
MAX_VALUE_DEPTH = 200
BACKTRACK_LIMIT = 100_000
_OWN = frozenset(
    {"type", "properties", "required", "additionalProperties", "unevaluatedProperties", "patternProperties", "items"}
    | {
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "enum",
        "const",
        "$ref",
        "dependentRequired",
        "dependencies",
    }
    | {"dependentSchemas", "propertyNames", "minProperties", "maxProperties", "default", "examples"}
)
"""What a schema says about its own value, and not about the parts that others point to."""


def validator(schema: Any) -> tuple[Any, str]:
    """A validator that fetches nothing and cannot hang; or None, and the sentence that says why there is none."""
    import jsonschema_rs

    if not isinstance(schema, dict | bool):
        return None, "The schema is neither an object nor true or false."
    if why := burden(schema) or tangle(schema):
        return None, why
    try:
        made = jsonschema_rs.validator_for(
            with_known_dialect(schema),
            retriever=_refuse,
            validate_formats=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT),
        )
    except jsonschema_rs.ValidationError as fault:
        if isinstance(fault.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            return None, "The schema points to something that is not in it, and Parley fetches nothing."
        at = pointer.join(fault.instance_path)[:80]
        return None, f"The schema itself is not valid JSON Schema{f', at {at}' if at else ''}."
    except (ValueError, jsonschema_rs.ReferencingError, RecursionError):
        return None, "The schema cannot be used for checking."
    return made, ""


def unchecked(schema: Any) -> str:
    """Why values cannot be checked against a schema, as a sentence; "" when they can."""
    return validator(schema)[1]


def fits(schema: Any, value: Any, root: Any = None) -> bool:
    """Whether a value fits a schema; an unusable schema fits nothing. `root` holds what `$ref` points to."""
    whole = with_definitions(schema, root)
    return fits_validator(validator(whole)[0], whole, value)


def with_definitions(schema: Any, root: Any) -> Any:
    """A part of a schema as one that stands alone."""
    if not isinstance(schema, dict) or not isinstance(root, dict):
        return schema
    return {**{key: part for key, part in root.items() if key not in _OWN}, **schema}


def fits_validator(check: Any, schema: Any, value: Any) -> bool:
    """The same for a validator that has been made."""
    if check is None or deeper_than(value, MAX_VALUE_DEPTH) or labour(schema, value):
        return False
    try:
        return bool(check.is_valid(value))
    except ValueError:
        return False


def validate(schema: Any, value: Any) -> dict[str, list[str]]:
    """What is wrong with a value, in sentences, by pointer. A missing key is named at its own place.

    {} also when the schema cannot be used: `unchecked` tells the two apart.
    """
    check, _ = validator(schema)
    if check is None:
        return {}
    if deeper_than(value, MAX_VALUE_DEPTH):
        return {"": [f"It is nested deeper than {MAX_VALUE_DEPTH} levels, too deep to be checked."]}
    if why := labour(schema, value):
        return {"": [why]}
    errors: dict[str, list[str]] = {}
    try:
        wrong = check.iter_errors({} if value is MISSING else value)
        found: Iterable[Place] = (said for error in wrong for said in sentences(error, schema))
        for count, (where, sentence) in enumerate(found):
            if count == MAX_ERRORS:
                break
            if sentence not in errors.setdefault(where, []):
                errors[where].append(sentence)
    except ValueError as fault:
        return {"": [f"It cannot be checked: {str(fault)[:120]}."]}
    return errors


def place(tree: Field, errors: Mapping[str, list[str]]) -> list[str]:
    """Put sentences beside their fields, or the nearest ones above; what has no home is returned."""
    homes: dict[str, Field] = {}
    for one in tree.walk():
        if one.kind == "oneof" and one.children:
            continue  # its alternative stands at the same place
        if not one.more and (one.pointer or one.kind != "object"):
            homes.setdefault(one.pointer, one)
    homeless: list[str] = []
    for where, said in errors.items():
        at = where
        while at not in homes and at:
            at = at.rpartition("/")[0]
        home = homes.get(at)
        inside = where[len(at) :]
        told = [f"{inside[:80]}: {sentence}" if inside else sentence for sentence in said]
        if home is None:
            homeless += told
        else:
            home.errors += [each for each in told if each not in home.errors]
    return homeless


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri[:200]} is not fetched")
