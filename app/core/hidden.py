"""Characters that do not show: which they are, where they are ordinary, and how they are written out (H08).

A person reads "Adds two numbers." where a model reads an instruction; three tools all read `add`. So every character
with the Unicode property Default_Ignorable_Code_Point is written out, and so are the other controls, blanks and
separators that hide or reorder text. Calm are only the uses that change what is seen: emoji with their selectors and
joiners, the three flags that are spelled in tags, and joiners between letters of scripts that need them. In a name
nothing is calm. More combining marks on one letter than any writing has are counted, not drawn (M07).

Knows text; knows no message and no page. All searches are linear, and plain ASCII costs next to nothing.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from app import bounds

IGNORABLE: Final = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""Default_Ignorable_Code_Point, as Unicode 16.0 has it: 4,174 code points."""
BLANK: Final = (
    *((0x2800, 0x2800), (0xFFF9, 0xFFFB), (0x13430, 0x1343F), (0x1D159, 0x1D159), (0xFDD0, 0xFDEF)),
    *((0x1107F, 0x1107F), (0x16FE4, 0x16FE4)),
    *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000)),
)
"""Others without a glyph: an empty Braille cell, annotations, joins of hieroglyphs, a note without a head, the joiner
of Brahmi numbers, the filler of Khitan, and the noncharacters, two of which Parley uses to mark marks."""
SPACES: Final = (
    *((0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
)
"""Blanks of other widths: ordinary in a text, and not in a name, where one looks like no blank or like another."""
STACKED: Final = 8
"""Combining marks on one letter that are drawn."""
_RUN: Final = 24
"""Characters of one run that are written out each; the rest is counted."""
_EXPLAINED: Final = 500
"""Marks of one text that say what they are; the others only stand there."""


def _letters(ranges: tuple[tuple[int, int], ...]) -> str:
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


_UNSEEN: Final = _letters(IGNORABLE + BLANK)
_CONTROLS: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029"
_HIDDEN: Final = re.compile(f"[{_UNSEEN}]+")
_WRITTEN_OUT: Final = re.compile(f"[{_CONTROLS}]|[{_UNSEEN}]+")
_IN_NAMES: Final = re.compile(f"[{_CONTROLS}]|[{_UNSEEN}{_letters(SPACES)}]+")
_ANY: Final = re.compile(
    f"[{_CONTROLS}{_letters(tuple(one for one in IGNORABLE + BLANK if one[1] <= 0xFFFF))}\U00010000-\U0010ffff]"
)
"""Cheap to search for: of the characters beyond the first 65,536 it takes all."""
_ASCII_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_PICTURE: Final = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21ff\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINING: Final = "\u0620-\u065f\u066e-\u06ef\u06fa-\u06ff\u0710-\u077f\u08a0-\u08ff\u0900-\u0dff"
"""Arabic, Syriac, and the scripts of India: there a joiner between two letters changes how they are written."""
_FLAGS: Final = "|".join("".join(chr(0xE0000 + ord(one)) for one in flag) for flag in ("gbeng", "gbsct", "gbwls"))
_CALM: Final = re.compile(
    f"[{_PICTURE}][\ufe0e\ufe0f][^{_UNSEEN}]?|[0-9#*]\ufe0f\u20e3|[{_PICTURE}]\ufe0f?\u200d[{_PICTURE}]"
    f"|[{_JOINING}][\u200c\u200d][{_JOINING}]|\U0001f3f4(?:{_FLAGS})\U000e007f[^{_UNSEEN}]?"
)
"""One letter before, the run, and one letter after: an ordinary use."""
_CALM_RUN: Final = 6

_STACK_OF: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u109f\u1100-\u1dff\u20d0-\u20ff\u2cef-\u2cf1\u2d7f-\u2dff\u302a-\u302f\u3099"
    "\u309a\ua66f-\uabff\ud7b0-\ud7ff\ufb1e\ufe20-\ufe2f\U00010000-\U0001ffff"
)
_MAY_STACK: Final = re.compile(f"[{_STACK_OF}]{{{STACKED + 1}}}")
"""Wider than the marks, and cheap: where this is not found, there is no stack."""

_BYTES: Final = re.compile(
    rb"\xc2\xad|\xcd\x8f|\xd8\x9c|\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])"
    rb"|\xe2(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xaf]|\xa0\x80)|\xe3\x85\xa4"
    rb"|\xef(?:\xb7[\x90-\xaf]|\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb0-\xbb\xbe\xbf])"
    rb"|\xf0(?:\x91\x81\xbf|\x93\x90[\xb0-\xbf]|\x96\xbf\xa4|\x9b\xb2[\xa0-\xa3]|\x9d\x85[\x99\xb3-\xba])|\xf3\xa0"
    rb"|[\xf0-\xf4][\x8f\x9f\xaf\xbf]\xbf[\xbe\xbf]"
    rb"|\\u(?:00[aA][dD]|034[fF]|061[cC]|115[fF]|1160|17[bB][45]|180[b-fB-F]|20(?:0[b-fB-F]|2[a-eA-E]|6)|2800|3164"
    rb"|[fF](?:[dD][dDeE]|[eE]0|[eE][fF][fF]|[fF][aA]0|[fF][fF])|[dD]80[4dD]|[dD]81[bB]|[dD]82[fF]|[dD]834"
    rb"|[dD][bB]4[0-3]|[dD][89abAB][37bBfF][fF])"
)
_CALMABLE: Final = re.compile(
    rb"\xe2\x80[\x8c\x8d]|\xef\xb8[\x8e\x8f]|\xf3\xa0\x81|\\u(?:200[cCdD]|[fF][eE]0|[dD][bB]40)"
)
_TAG: Final = re.compile("[\U000e0000-\U000e007f]+")
_SELECTOR: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}")


_WINDOW: Final = 256 * 1024


def possible(raw: bytes) -> bool:
    """Whether JSON text may hold hidden characters, written as themselves or as escapes. False is certain."""
    if raw.isascii() and b"\\u" not in raw:
        return False
    # By parts, because one search keeps all other threads waiting.
    return any(_BYTES.search(raw, start, start + _WINDOW + 8) for start in range(0, len(raw), _WINDOW))


def certain(raw: bytes) -> bool:
    """Whether it holds hidden characters that are calm nowhere."""
    return any(not _CALMABLE.match(raw, found.start()) for found in islice(_BYTES.finditer(raw), bounds.HIDDEN_RUNS))


def find(text: str) -> Iterator[tuple[int, int]]:
    """Where runs of hidden characters stand, but for the calm ones."""
    for found in islice(_HIDDEN.finditer(text), bounds.HIDDEN_RUNS):
        if not _is_calm(text, *found.span()):
            yield found.span()


def _is_calm(text: str, start: int, end: int) -> bool:
    return end - start <= _CALM_RUN and bool(_CALM.fullmatch(text[max(0, start - 1) : end + 1]))


def visible(text: str, mark: Callable[[str, str], str] = lambda words, about: words, *, strict: bool = False) -> str:
    """The text with everything hidden written out, and tall stacks of combining marks cut.

    `mark` makes a mark of what stands there and of what it is in words; without it the mark is plain text."""
    if text.isascii():
        quiet = text.isprintable() or not _ASCII_CONTROLS.search(text)  # the first is quicker
        return text if quiet else "".join(_written(text, mark, strict))
    if _ANY.search(text) or (strict and _IN_NAMES.search(text)):
        text = "".join(_written(text, mark, strict))
    if _MAY_STACK.search(text):
        text = "".join(_shortened(text, mark))
    return text


def _shortened(text: str, mark: Callable[[str, str], str]) -> Iterator[str]:
    done = 0
    for marks, found in enumerate(_stacks().finditer(text)):
        words, about = _counted(found[2])
        yield text[done : found.end(1)] + (mark(words, about) if marks < _EXPLAINED else words)
        done = found.end()
    yield text[done:]


def _written(text: str, mark: Callable[[str, str], str], strict: bool) -> Iterator[str]:
    done = marks = 0
    for tried, found in enumerate((_IN_NAMES if strict else _WRITTEN_OUT).finditer(text)):
        start, end = found.span()
        if tried == bounds.HIDDEN_RUNS:
            yield text[done:start] + _WRITTEN_OUT.sub("⟨…⟩", text[start:])
            return
        if not strict and _is_calm(text, start, end):
            continue
        yield text[done:start]
        yield mark(written(found[0]), names(found[0])) if marks < _EXPLAINED else written(found[0])
        done, marks = end, marks + 1
    yield text[done:]


@functools.lru_cache(256)
def written(run: str) -> str:
    """A run of hidden characters as text: the letters of tags as such, anything else by its code."""
    if (words := hidden_words(run)) is not None:
        return f"⟨{words}⟩"
    shown = "".join(f"\\u{ord(one):04x}" if ord(one) <= 0xFFFF else f"\\u{{{ord(one):x}}}" for one in run[:_RUN])
    return shown if len(run) <= _RUN else f"{shown}⟨and {len(run) - _RUN} more⟩"


def hidden_words(run: str) -> str | None:
    """What a run says in tags (each stands for a letter) or in variation selectors (each for a byte), cut; or None."""
    if _TAG.fullmatch(run):
        said = "".join(chr(ord(one) - 0xE0000) for one in run[:400])
    elif _SELECTOR.fullmatch(run):
        codes = bytes(ord(one) - (0xFE00 if ord(one) < 0xE0100 else 0xE0100 - 16) for one in run[:400])
        said = codes.decode(errors="replace")
    else:
        return None
    kept = "".join(one for one in said if one.isprintable() and one != "\ufffd")
    return kept + ("…" if len(run) > 400 else "") if len(kept) * 2 > min(len(run), 400) else None


@functools.lru_cache(256)
def names(run: str) -> str:
    """What a run of hidden characters is, for whoever looks closer."""
    one = f"U+{ord(run[0]):04X} {unicodedata.name(run[0], '')}".strip()
    if len(run) == 1:
        return one
    if hidden_words(run) is not None:
        return f"hidden text, written in {len(run)} characters that do not show, the first of them {one}"
    return f"{len(run)} characters that do not show, the first of them {one}"


def _counted(marks: str) -> tuple[str, str]:
    return f"⟨and {len(marks)} more marks⟩", f"{len(marks)} more combining marks on the same letter"


@functools.cache
def _stacks() -> re.Pattern[str]:
    """Runs of more combining marks than are drawn. The characters that this Unicode does not know may be such."""
    wanted = {"Mn", "Me", "Mc", "Cn"}
    marks = [code for code in range(0x300, 0x20000) if unicodedata.category(chr(code)) in wanted]
    ranges: list[tuple[int, int]] = []
    for code in marks:
        ranges[-1:] = [(ranges[-1][0], code)] if ranges and ranges[-1][1] == code - 1 else [*ranges[-1:], (code, code)]
    one = f"[{_letters(tuple(ranges))}]"
    return re.compile(f"({one}{{{STACKED}}})({one}+)")
