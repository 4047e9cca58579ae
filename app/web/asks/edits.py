"""What was changed in a text, word by word, so that a page can mark it in place: what is gone and what came.

Pure functions over texts; bounded, for a server may send any.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal, NamedTuple

_MOST = 160
"""Words and gaps between the first change and the last that are compared one by one; more are one change."""


class Piece(NamedTuple):
    """A part of a text: as it was, gone, or new."""

    kind: Literal["", "del", "ins"]
    text: str


def pieces(before: str, after: str) -> list[Piece]:
    """Both texts in one: what they share once, what is gone before what came in its place."""
    old, new = _words(before), _words(after)
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    found = [
        Piece("", "".join(old[:start])),
        *_between(old[start : len(old) - end], new[start : len(new) - end]),
        Piece("", "".join(old[len(old) - end :])),
    ]
    return [one for one in found if one.text]


def _words(text: str) -> list[str]:
    return ["".join(run) for _, run in groupby(text, str.isspace)]


def _shared(one: list[str], two: list[str]) -> int:
    """How many words both begin with."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(two)))


def _between(old: list[str], new: list[str]) -> list[Piece]:
    if len(old) > _MOST or len(new) > _MOST:
        return [Piece("del", "".join(old)), Piece("ins", "".join(new))]
    found: list[Piece] = []
    gone, came = "", ""
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal" and not "".join(old[i1:i2]).isspace():
            found += [Piece("del", gone), Piece("ins", came), Piece("", "".join(old[i1:i2]))]
            gone, came = "", ""
        else:  # a gap between two changed words belongs to the change
            gone, came = gone + "".join(old[i1:i2]), came + "".join(new[j1:j2])
    return [*found, Piece("del", gone), Piece("ins", came)]
