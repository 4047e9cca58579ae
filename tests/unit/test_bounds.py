"""Every size has one place: `settings.Limits` for those that a person may set, `bounds` for the others."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import bounds, team_bounds
from app.settings import Limits

APP = Path(__file__).parents[2] / "app"
HOUSES = ("core", "protocol/links", "sessions")
LOCAL = {
    "core/certificates.py:_SHOWN": "where a name is cut",
    "core/errors.py:_LINE": "where a line is cut in a heading",
    "core/figures.py:_LONGEST": "where a number is cut",
    "core/hidden.py:STACKED": "how many marks of a stack are drawn",
    "core/hidden.py:_RUN": "where a run is cut",
    "core/hidden.py:_EXPLAINED": "how many marks say what they are",
    "core/hidden.py:_CALM_RUN": "how long an ordinary run can be",
    "core/hidden.py:_WINDOW": "how the work is cut into pieces, not how much of it is done",
    "core/log.py:_TRIM_NOTICE": "how often it is said that rows have left",
    "core/log.py:_SWEEP_EVERY": "how the work is cut into pieces",
    "core/summary.py:_LONGEST": "where a summary is cut",
    "core/wire.py:_SHORT": "where a name is cut in its row",
    "core/json/heads.py:_ID_BYTES": "how much of an id is kept in its row",
    "core/json/scan.py:_WINDOW": "how the work is cut into pieces, not how much of it is done",
    "core/json/scan.py:_FIRST_WINDOW": "the same",
    "core/schema/cost.py:_BACKTRACKING": "the weight of a match, in steps",
    "core/json/tables.py:ROWS": "from when on a list is a table",
    "core/json/tables.py:SHARED": "the same",
    "core/json/tables.py:_DEEP": "where a list for a table is looked for",
    "core/json/tables.py:_LOOKED_AT": "how many rows say what the others are like",
    "core/json/tables.py:_SCALARS": "how much stands beside a table",
    "core/forms/tree.py:_COLUMNS": "up to when an item of a list is one row",
    "core/forms/tree.py:_SHOWN": "from when on optional fields are folded",
    "core/forms/words.py:_MAX_PATTERN": "where a pattern is cut",
    "core/forms/words.py:MAX_LABEL": "where a label is cut",
    "core/forms/words.py:MAX_DESCRIPTION": "where a description is cut",
    "core/forms/leaves.py:_LONG": "from when on a text gets a larger box",
    "protocol/links/http_base.py:_LARGE": "from when on a stream makes room for others",
    "protocol/links/http_base.py:_REST_SECONDS": "the rest of one such pause",
    "protocol/links/words.py:_BODY_SHOWN": "where a quoted body is cut",
    "sessions/attention.py:YOUNG_SECONDS": "until when somebody is taken to be waiting right now",
    "sessions/attention.py:MOMENT_SECONDS": "the same",
    "sessions/lists.py:_SOON": "until when a change may have come of a read",
    "sessions/lists.py:_TOO_OFTEN": "from when on changes are no burst",
    "sessions/session.py:_ALONE_SECONDS": "the rest of a flood",
}
"""Numbers that say how something is written or done, and bound nothing."""


def numbers(path: Path) -> Iterator[str]:
    """The constants of a module that are numbers: literals, and products and powers of them. Codes are negative."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant | ast.BinOp):
            parts = [each for each in ast.walk(value) if isinstance(each, ast.expr)]
            if all(isinstance(each, ast.BinOp) or _is_number(each) for each in parts):
                yield f"{path.relative_to(APP)}:{target.id}"


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


@pytest.mark.parametrize("house", HOUSES)
def test_a_size_is_written_where_all_of_them_stand(house: str):
    found = {name for path in sorted((APP / house).rglob("*.py")) for name in numbers(path)}
    assert found - LOCAL.keys() == set(), "a size belongs into settings.Limits or app/bounds.py"


def test_what_is_called_local_is_there():
    found = {name for house in HOUSES for path in (APP / house).rglob("*.py") for name in numbers(path)}
    assert LOCAL.keys() - found == set()


def test_every_bound_is_used_and_more_than_nothing():
    files = [path for path in APP.rglob("*.py") if not path.name.endswith("bounds.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    for name, value in [*vars(bounds).items(), *vars(team_bounds).items()]:
        if name.isupper():
            assert value > 0
            assert name in ("KIB", "MIB") or f"bounds.{name}" in text, f"nobody asks for {name}"


def test_no_number_has_two_homes():
    assert {name.lower() for name in vars(bounds)} & Limits.model_fields.keys() == set()
