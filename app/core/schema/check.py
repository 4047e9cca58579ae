"""Whether a value fits its schema: the one validator, and what it finds in sentences by pointer.

Fetches nothing, cannot be made to hang, and says when it could not look at all (S38, R6-11). The schema is taken as
it came: conditions, patterns and dependencies that no form shows are checked here.
"""

from __future__ import annotations

from typing import Any

from app import bounds
from app.core.json import pointer
from app.core.json.values import MISSING
from app.core.schema import cost
from app.core.schema.explain import sentences
from app.core.schema.refs import with_known_dialect


class Check:
    """One schema, made ready to hold values against it. `why` says why it cannot be used, when it cannot.

    That of an output is taken at its word: a dialect that nobody knows makes it useless, and `format` only describes.
    Elsewhere such a dialect counts as 2020-12, and formats are checked, because a person is about to be helped."""

    def __init__(self, schema: Any, *, of_output: bool = False) -> None:
        import jsonschema_rs

        self.why = self.cause = ""
        """The cause is what the validator says about a schema that it does not take."""
        try:
            self._cost = cost.Cost(schema)
            self._validator = jsonschema_rs.validator_for(
                schema if of_output else with_known_dialect(schema),
                retriever=_refuse,
                validate_formats=not of_output,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=bounds.BACKTRACKS),
            )
        except cost.TooCostly as fault:
            self.why = str(fault)
        except (ValueError, jsonschema_rs.ReferencingError, RecursionError) as fault:
            self.cause = (str(fault).splitlines() or ["no reason"])[0][:200]
            self.why = "The schema cannot be used for checking."
            if isinstance(fault, jsonschema_rs.ValidationError):
                at = pointer.join(fault.instance_path)[:80]
                self.why = f"The schema itself is not valid JSON Schema{f', at {at}' if at else ''}."
                if isinstance(fault.kind, jsonschema_rs.ValidationErrorKind.Referencing):
                    self.why = "The schema points to something that is not in it, and Parley fetches nothing."

    def errors(self, value: Any) -> list[Any] | None:
        """The errors of the validator about a value; None when it does not fit, and there is too much of it to say
        where. Of a large one only the first is looked for. Raises TooCostly when it is not checked at all, and
        ValueError when the validator gives up."""
        import jsonschema_rs

        steps = self._cost.of(value)
        if steps > bounds.CHECK_STEPS:
            raise cost.TooCostly("A check of this value would take too long.")
        if steps <= bounds.EXPLAIN_STEPS:
            return list(self._validator.iter_errors(value))
        if self._validator.is_valid(value):
            return []
        if self._cost.alternatives:
            return None
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as first:
            return [first]
        return []


def unchecked(schema: Any) -> str:
    """Why values cannot be checked against a schema, as a sentence; "" when they can."""
    return Check(schema).why


def validate(schema: Any, value: Any) -> dict[str, list[str]]:
    """What is wrong with a value, in sentences, by pointer. A missing key is named at its own place.

    {} also when the schema cannot be used: `unchecked` tells the two apart.
    """
    check, value = Check(schema), {} if value is MISSING else value
    if check.why:
        return {}
    errors: dict[str, list[str]] = {}
    try:
        found = check.errors(value)
        if found is None:
            return {"": ["It does not fit the schema, and there is too much of it to say where."]}
        places = [place for error in found[: bounds.CHECK_ERRORS] for place in sentences(error, schema)]
    except cost.TooCostly as fault:
        return {"": [str(fault)]}
    except ValueError as fault:
        return {"": [f"It cannot be checked: {str(fault)[:120]}."]}
    for where, sentence in places[: bounds.CHECK_ERRORS]:
        if sentence not in errors.setdefault(where, []):
            errors[where].append(sentence)
    return errors


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri[:200]} is not fetched")
