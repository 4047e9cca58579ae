"""JSON at speed, for what most lines of a recording are: messages and nouns in which nothing is masked.

`json` takes longer to write a call than everything else that is done with it. What this cannot do as `json` does it, it
does not do. Part of the process that masks: whoever else looks through a message imports the library then, and not
before.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


@cache
def _library() -> ModuleType | None:
    try:
        import orjson
    except ImportError:  # it lies where the process of its own cannot look
        return None
    return orjson


def read(raw: bytes) -> Any:
    """A JSON text as a value that is looked at and not written again: a long number has lost digits. Raises ValueError
    for what is none, and for some of what `json` reads as well."""
    library = _library()
    if library is None:
        raise ValueError("it cannot be read quickly")
    return library.loads(raw)


def line(value: Any) -> bytes | None:
    """A whole line; None where `json` is needed: for a long number, half a character, and what is nested deep. There
    must be no number in it that JSON has no word for."""
    library = _library()
    if library is None:
        return None
    try:
        made: bytes = library.dumps(value, option=library.OPT_APPEND_NEWLINE)
    except TypeError:
        return None
    return made
