"""What a server wants of whoever knocks: the challenges of a `WWW-Authenticate` header, read leniently (RFC 9110 §11).

One walk over the text and no pattern, so that no header costs more than its length. Nothing that is named here is ever
fetched. Knows no page.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from app import bounds, secrecy

_TOKEN: Final = frozenset(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~")
_TOKEN68: Final = frozenset(string.ascii_letters + string.digits + "-._~+/")
_BLANK: Final = frozenset(" \t")


@dataclass(slots=True, frozen=True)
class Challenge:
    """One way to prove who one is: its scheme as it was written, and its parameters by their small names."""

    scheme: str
    parameters: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> str:
        """The first value of a parameter; empty when it is not there."""
        return next((value for key, value in self.parameters if key == name), "")

    @property
    def is_bearer(self) -> bool:
        return self.scheme.lower() == "bearer"


def challenges(headers: Iterable[str], *, to_act_on: bool = False) -> tuple[Challenge, ...]:
    """The challenges of all `WWW-Authenticate` headers of an answer, in order, with `•••` where a secret stands: a
    server may quote the token that it refuses. Whoever acts on them needs them as they are, as the scope
    `token:read` shows, and shows nothing of it."""
    found: list[Challenge] = []
    left = bounds.CHALLENGE_CHARACTERS
    for header in headers:
        for scheme, parameters in _read(header[:left]):
            few = parameters[: bounds.CHALLENGE_PARAMETERS]
            shown = few if to_act_on else ((name, secrecy.masked(value)) for name, value in few)
            found.append(Challenge(scheme, tuple(shown)))
            if len(found) == bounds.CHALLENGES:
                return tuple(found)
        left -= len(header)
        if left <= 0:
            break
    return tuple(found)


def _read(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Scheme and parameters of each challenge. What is no token where one should be is passed over."""
    at, scheme = 0, ""
    parameters: list[tuple[str, str]] = []
    while at < len(text):
        end = _run(text, at, _TOKEN)
        if end == at:
            at += 1
            continue
        word, after = text[at:end], _run(text, end, _BLANK)
        if scheme and text[after : after + 1] == "=":
            value, at = _value(text, _run(text, after + 1, _BLANK))
            parameters.append((word.lower(), value))
            continue
        if scheme:
            yield scheme, parameters
        scheme, parameters, at = word, [], _past_token68(text, end, after)
    if scheme:
        yield scheme, parameters


def _run(text: str, at: int, of: frozenset[str]) -> int:
    """Where a run of these characters ends."""
    while at < len(text) and text[at] in of:
        at += 1
    return at


def _value(text: str, at: int) -> tuple[str, int]:
    """A token, or what stands between quotes, and where it ends."""
    if text[at : at + 1] != '"':
        end = at
        while end < len(text) and text[end] not in ", \t":
            end += 1
        return text[at:end], end
    said: list[str] = []
    at += 1
    while at < len(text) and text[at] != '"':
        at += text[at] == "\\" and at + 1 < len(text)
        said.append(text[at])
        at += 1
    return "".join(said), at + 1


def _past_token68(text: str, end: int, after: int) -> int:
    """Where to read on after a scheme: past the one word that may follow it in the place of parameters, as the data of
    NTLM, which says nothing to a person."""
    if after == end:
        return end
    over = _run(text, _run(text, after, _TOKEN68), frozenset("="))
    rest = _run(text, over, _BLANK)
    return over if over > after and (rest == len(text) or text[rest] == ",") else after
