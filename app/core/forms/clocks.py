"""Dates and times as the controls of a browser write them: without a zone, which is UTC then."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Any

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?"
WRITTEN = {
    "date": re.compile(_DAY),
    "time": re.compile(_CLOCK),
    "datetime": re.compile(f"{_DAY}T{_CLOCK}"),
}
_READ: dict[str, Any] = {"date": date, "time": time, "datetime": datetime}


def writes(kind: str, text: str) -> bool:
    """Whether a control of a kind can have written a text."""
    if WRITTEN[kind].fullmatch(text) is None:
        return False
    try:
        _READ[kind].fromisoformat(text)
    except ValueError:
        return False
    return True


def sent(kind: str, text: str) -> str:
    """What is sent for the text of a control; a text that no such control writes is sent as it is."""
    if kind not in ("time", "datetime") or not writes(kind, text):
        return text
    return text + (":00Z" if text.count(":") == 1 else "Z")


def written(kind: str, value: str) -> str | None:
    """A value as the text of a control; None when such a control could not give it back as it is."""
    text = value.removesuffix("Z")
    if kind == "datetime" and text.count(":") == 2:
        text = text.removesuffix(":00")
    return text if "." not in text and sent(kind, text) == value else None
