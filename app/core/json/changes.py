"""What was changed in a JSON value, place by place: a pure function."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from app import bounds
from app.core.json.pointer import escape

_NOTHING = object()


def changes(before: Any, after: Any) -> list[dict[str, Any]]:
    """What was changed, place by place: its pointer, and what stood and what stands there. A place that was not there
    has no `before`, one that is gone no `after`."""
    found: list[dict[str, Any]] = []
    stack: list[tuple[str, Any, Any]] = [("", before, after)]
    while stack and len(found) < bounds.CHANGES:
        at, one, two = stack.pop()
        if isinstance(one, dict) and isinstance(two, dict):
            keys = [*one, *(key for key in two if key not in one)]
            stack += [(f"{at}/{escape(key)}", one.get(key, _NOTHING), two.get(key, _NOTHING)) for key in reversed(keys)]
        elif isinstance(one, list) and isinstance(two, list):
            both = list(zip_longest(one, two, fillvalue=_NOTHING))
            stack += [(f"{at}/{index}", *both[index]) for index in reversed(range(len(both)))]
        elif type(one) is not type(two) or one != two:
            sides = {"before": one, "after": two}
            found.append({"pointer": at, **{side: value for side, value in sides.items() if value is not _NOTHING}})
    return found
