"""Texts in which there may be a secret, told from the many that have none. Light: part of the process that masks."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from app import bounds, secrecy

_SHORTEST: Final = 4
_LONG_WORD: Final = 16
"""A shorter word is none of the keys that are known by their looks; a shorter text has no name and no value."""
CLEAN: Final[set[str]] = set()
"""Texts in which there is no secret, as far as they are remembered."""


def is_clean_text(text: str) -> bool:
    if hidden(text):
        return False
    if len(text) <= bounds.MASK_CACHED:
        if len(CLEAN) >= bounds.MASK_REMEMBERED:
            CLEAN.clear()
        CLEAN.add(text)
    return True


def hidden(text: str) -> tuple[secrecy.Hidden, ...]:
    """The secrets in a text. Most texts have no sign of one, and most others are said again and again."""
    if len(text) > bounds.MASK_CACHED:
        return _in_long(text)
    return _found_before(text) if is_suspect(text) else ()


@lru_cache(maxsize=1)
def _in_long(text: str) -> tuple[secrecy.Hidden, ...]:
    """The same of a long text, which takes seconds where it has millions of words: once, however often it is asked."""
    return tuple(secrecy.in_text(text))


def is_suspect(text: str) -> bool:
    """Whether there may be a secret in a text: it has a sign of one, a long word, or a word that announces one."""
    if len(text) < _SHORTEST:
        return False
    if "=" in text or ":" in text or "@" in text or "-" in text:
        return True
    small = text.lower()
    if "bearer" in small or "basic" in small:
        return True
    return len(text) >= _LONG_WORD and any(len(word) >= _LONG_WORD for word in small.split())


@lru_cache(maxsize=bounds.MASK_REMEMBERED)
def _found_before(text: str) -> tuple[secrecy.Hidden, ...]:
    return tuple(secrecy.in_text(text))


def in_prose(text: str) -> tuple[secrecy.Hidden, ...]:
    """The same of a text that explains: `password: a word of your own` has no password in it."""
    return tuple(one for one in hidden(text) if one.name == secrecy.ITSELF)
