"""JSON Schema to a form, and what was typed back to a value.

One tree stands between the two: `build` makes it from a schema and either a value or what a browser submitted, the
page draws it, `read` takes the value off it. Types never come from the browser: a control is named by where it stands,
and the schema says what its text means. What no control can show becomes a JSON box for that sub-tree alone, with the
reason. Bounded in depth, fields and choices (S38).

Serves tool arguments and elicitation alike. Knows JSON Schema; knows no HTML, no MCP and no session.
"""

from __future__ import annotations

from app.core.forms.building import build, skeleton
from app.core.forms.reading import read
from app.core.forms.sources import Entries, operate
from app.core.forms.tree import Field, place
from app.core.json.values import MISSING, from_json_text, to_json_text
from app.core.schema.check import unchecked, validate

__all__ = [
    "MISSING",
    "Entries",
    "Field",
    "build",
    "from_json_text",
    "operate",
    "place",
    "read",
    "skeleton",
    "to_json_text",
    "unchecked",
    "validate",
]
