"""JSON Schema to a form, and what was typed back to a value.

One tree stands between the two: `build` makes it from a schema and either a value or what a browser submitted, the
page draws it, `read` takes the value off it, `entries` says what a browser would submit for it. Types never come from
the browser: a control is named by where it stands, and the schema says what its text means. What no control can show
becomes a JSON box for that sub-tree alone, with the reason. Bounded in depth, fields and choices (S38).

Serves tool arguments and elicitation alike. Knows JSON Schema; knows no HTML, no MCP and no session.
"""

from __future__ import annotations

from typing import Any

from app.core.forms import reading
from app.core.forms.building import MAX_FIELDS, build
from app.core.forms.reading import Filled, entries, read
from app.core.forms.sources import Entries, operate
from app.core.forms.tree import Field, place
from app.core.json.values import MISSING, from_json_text, to_json_text
from app.core.schema.check import fits, unchecked, validate
from app.core.schema.refs import Option

__all__ = [
    "MAX_FIELDS",
    "MISSING",
    "Entries",
    "Field",
    "Filled",
    "Option",
    "build",
    "entries",
    "fits",
    "from_json_text",
    "operate",
    "place",
    "read",
    "skeleton",
    "to_json_text",
    "unchecked",
    "validate",
]


def skeleton(schema: Any) -> Any:
    """A value to start from: the defaults, and something for whatever must be there."""
    return reading.skeleton(build(schema))
