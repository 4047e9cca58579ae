"""What a person typed for a shell, though none runs it: recognised, and turned into what does the same without one.

`cd X && cmd` is a directory and a command, `A=1 cmd` a variable and a command, `~` and `$HOME` are paths. What only a
shell can do, like a pipe, becomes `sh -c`. What stands in quotes is left alone. Pure: whoever calls says where home is
and which variables are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app import bounds
from app.core.targets import OPERATORS, typed_line

_BUILT_IN = frozenset({"cd", "source", ".", "export", "alias", "exec", "set", "unset"})
_SEPARATORS = frozenset({"&&", ";"})


@dataclass(slots=True, frozen=True)
class Offer:
    """What a line for a shell comes to without one."""

    found: tuple[str, ...]
    """What of it only a shell knows, as it was typed."""
    command: tuple[str, ...]
    """Empty when nothing can be offered."""
    cwd: str = ""
    env: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    """Variables whose values nobody here knows."""

    @property
    def command_line(self) -> str:
        """The command as it would be typed."""
        return typed_line(self.command)


@dataclass(slots=True)
class _Word:
    """One word of a line: what it is without its quotes, and how a shell would read it."""

    text: str = ""
    raw: str = ""
    quoted: bool = False
    places: list[tuple[int, int, str]] = field(default_factory=list)
    """Variables that a shell would replace in it: from where to where in the text, and the name."""
    runs: bool = False
    """A shell would run something in it: `$(…)` or backticks."""

    @property
    def names(self) -> list[str]:
        return [name for _, _, name in self.places]


def offer(line: str, home: str, variables: Mapping[str, str]) -> Offer | None:
    """What to use instead; None for a line that needs no shell, and for one that cannot be split."""
    words = _words(line) if len(line) <= bounds.TYPED_LINE else []
    if not words:
        return None
    found: list[str] = []
    if _long(words, home, variables):
        return Offer(("$",), ())
    cwd, env, words = _prefixes(words, found)
    if words[0].text in _BUILT_IN and not words[0].quoted:
        return Offer((words[0].text,), ())
    while len(words) > 1 and words[-1].raw == "&":
        found.append(words.pop().text)
    command: tuple[str, ...]
    before = [*([] if cwd is None else [cwd]), *(value for _, value in env)]
    unknown = tuple(name for word in before for name in word.names if name not in variables)
    if any(not word.quoted and word.text in OPERATORS for word in words) or any(word.runs for word in words):
        found += [word.text for word in words if not word.quoted and word.text in OPERATORS]
        found += ["$(…)" for word in words if word.runs]
        command = ("sh", "-c", " ".join(word.raw for word in words))
    else:
        unknown += tuple(name for word in words for name in word.names if name not in variables)
        found += [f"${name}" for word in words for name in word.names]
        found += ["~" for word in words if _is_home(word)]
        command = tuple(_replaced(word, home, variables) for word in words)
    if not found:
        return None
    where = "" if cwd is None else _replaced(cwd, home, variables)
    rows = tuple((name, _replaced(value, home, variables)) for name, value in env)
    unknown = tuple(dict.fromkeys(unknown))
    return Offer(tuple(dict.fromkeys(found)), () if unknown else command, where, rows, unknown)


def _long(words: list[_Word], home: str, variables: Mapping[str, str]) -> bool:
    """Whether it would be longer than any command may be: each variable counts as often as it is named."""
    values = sum(len(variables.get(name, "")) for word in words for name in word.names)
    return values + sum(len(home) for word in words if _is_home(word)) > bounds.TARGET_ARGUMENTS


def _prefixes(words: list[_Word], found: list[str]) -> tuple[_Word | None, list[tuple[str, _Word]], list[_Word]]:
    """A directory and variables before the command, and the command."""
    cwd: _Word | None = None
    env: list[tuple[str, _Word]] = []
    at = 0
    while at < len(words):
        first, left = words[at], len(words) - at
        if first.text == "cd" and left > 3 and not words[at + 2].quoted and words[at + 2].text in _SEPARATORS:
            found += ["cd", words[at + 2].text]
            cwd = words[at + 1]
            at += 3
        elif (pair := _assignment(first)) is not None and left > 1:
            found.append(f"{pair[0]}=")
            env.append(pair)
            at += 1
            if left > 2 and not words[at].quoted and words[at].text in _SEPARATORS:
                at += 1
        elif first.text in ("export", "env") and left > 2 and _assignment(words[at + 1]) is not None:
            found.append(first.text)
            at += 1
        else:
            break
    return cwd, env, words[at:]


def _assignment(word: _Word) -> tuple[str, _Word] | None:
    """`NAME=value` as a pair, when it is one."""
    name, sign, _ = word.raw.partition("=")
    if not sign or not name.isascii() or not name.isidentifier():
        return None
    gone = len(name) + 1
    places = [(start - gone, end - gone, each) for start, end, each in word.places]
    return name, _Word(word.text[gone:], word.raw[gone:], word.quoted, places, word.runs)


def _is_home(word: _Word) -> bool:
    return word.raw == "~" or word.raw.startswith("~/")


def _replaced(word: _Word, home: str, variables: Mapping[str, str]) -> str:
    """A word with what a shell would have put into it, as far as that is known."""
    parts, at = ([home], 1) if _is_home(word) else ([], 0)
    for start, end, name in word.places:
        parts += [word.text[at:start], variables.get(name, word.text[start:end])]
        at = end
    return "".join([*parts, word.text[at:]])


# ----------------------------------------------------------------------------------------------------------- splitting


def _words(line: str) -> list[_Word]:
    """The words of a line, as a shell splits them; none when a quote stays open. One walk over the line."""
    found: list[_Word] = []
    word: _Word | None = None
    quote, at = "", 0
    while at < len(line):
        char, step = line[at], 1
        if not quote and char.isspace():
            _take(found, word)
            word, at = None, at + 1
            continue
        word = _Word() if word is None else word
        if quote:
            if char == quote:
                quote = ""
            elif char == "\\" and quote == '"' and line[at + 1 : at + 2] in ('"', "\\", "$", "`"):
                step = 2
                word.text += line[at + 1]
            else:
                word.text += char
                if quote == '"':
                    _look(word, line, at)
        elif char in "'\"":
            quote = char
            word.quoted = True
        elif char == "\\":
            step = 2
            word.quoted = True
            word.text += line[at + 1 : at + 2]
        else:
            word.text += char
            _look(word, line, at)
        word.raw += line[at : at + step]
        at += step
    _take(found, word)
    return [] if quote else found


def _take(found: list[_Word], word: _Word | None) -> None:
    """Keep a word; a semicolon at its end stands for itself."""
    if word is None:
        return
    if len(word.raw) > 1 and word.raw.endswith(";") and not word.raw.endswith("\\;"):
        found += [_Word(word.text[:-1], word.raw[:-1], word.quoted, word.places, word.runs), _Word(";", ";")]
    else:
        found.append(word)


def _look(word: _Word, line: str, at: int) -> None:
    """Whether a shell would put something here."""
    if line[at] == "`" or line.startswith("$(", at):
        word.runs = True
    elif line[at] == "$":
        brace = line[at + 1 : at + 2] == "{"
        start = end = at + 1 + brace
        while (
            end < len(line) and end - start < 200 and line[end].isascii() and (line[end].isalnum() or line[end] == "_")
        ):
            end += 1
        name = line[start:end]
        if name.isidentifier() and (not brace or line[end : end + 1] == "}"):
            begin = len(word.text) - 1
            word.places.append((begin, begin + 1 + len(name) + 2 * brace, name))
