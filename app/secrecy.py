"""Where in a text a secret stands, and how it is hidden: for page, JSON, log, export, store and snippets.

An argument, an address, a header, a line of anything: whoever shows or writes one replaces those places by `•••`,
whoever fills a form in again finds the value by the name of its place. Which names sound secret, `secret_names` says.

Every text may come from outside, so all of it is linear: no pattern here has two open ends that compete for the same
characters (tests/unit/test_patterns.py feeds each its worst case).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote_plus

from app import bounds
from app.secret_names import NAME_LONGEST, sounds_secret

MASK: Final = "•••"
AGAIN: Final = f"{MASK}again"
"""Stands in a form for a secret that was typed, did not come back to the page, and has to be typed again."""
CREDENTIALS: Final = "user and password"
"""The name of what stands before the `@` of an address."""
ITSELF: Final = "secret"
"""The name of what looks like a secret by itself, whatever it is called."""

_PREFIXES = (
    "sk-|sk_live_|sk_test_|rk_live_|rk_test_|gh[oprsu]_|github_pat_|glpat-|glsa_|xox[abeoprs]-|xapp-|ya29\\.|hf_|npm_|pypi-"
    "|dop_v1_|shpat_|lin_api_|ntn_|figd_|gsk_|xai-|tvly-|r8_|sntry[su]_|SG\\.|AIza|AGE-SECRET-KEY-|eyJ"
)
_LOOKS = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?:{_PREFIXES})[A-Za-z0-9_.-]{{16,}}+|(?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9]))"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*+(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
    r"|(?i:(?<![a-z0-9])(?:bearer|basic)[ ]{1,4})(?P<after>[A-Za-z0-9+/_.~-]{8,}+={0,2}+(?![\w\"=]))"
    rf"|{AGAIN}|{MASK}"
)
"""What is a secret by the looks of it: keys of well-known services, signed tokens, private keys; and our own mask."""

_OPTION = re.compile(r"[A-Za-z0-9_.:\[\]-]+")
_REFERENCE = re.compile(r"\$\{[^{}]*\}|\$[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\"|['\"])+")
_PARAMETER = re.compile(r"[?&#;]([^=?&#;]{1,200})=")
_DELIMITER = re.compile(r"[?&#;]")
_NEXT_PARAMETER = re.compile(r"[&#;]")
_AUTHORITY = re.compile(r"://([^/?#&]*)")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*:)?')
_PAIR = re.compile(
    r"(?:^|(?<=[\s,;'\"{]))(?:-D|[-/]p:|[-/]{0,2})"
    r"([A-Za-z_][A-Za-z0-9_.\[\]-]*+)\\{0,7}['\"]?[ \t]{0,4}([:=])[ \t]{0,4}"
)
"""A name and what parts it from its value, at the start or after a comma, blank or quote: also `-Dname=`, `/name:`."""
_QUOTE = re.compile(r"\\{0,7}['\"]")
_LOGIN = re.compile(r"^(?:jdbc:oracle:[a-z0-9]{1,20}:[^\s:/@]*+/|([^\s:/@\\=,;'\"(]++):)(?=[^\s@])")
"""A user and what parts it from the password, in an address without a scheme."""
_NO_USER = re.compile(
    r"(?i:npm|jsr|file|pkg|mailto|sips?|acct|xmpp|github|gitlab|bitbucket|gist|git|workspace|link|portal|patch|catalog"
    r"|docker|oci|docker-image|node|deno|pypi|jdbc)"
)
"""What stands before a colon and is no user, as in `npm:name@1.0`."""
_DIGEST = re.compile(r"sha[0-9]{1,4}:")
_HEADER_OPTIONS = frozenset({"-H", "--header", "--headers", "--http-header", "--extra-header"})
_USER_OPTIONS = frozenset({"-u", "--user", "--proxy-user"})
_SHELL_OPTIONS = frozenset({"-c", "-lc", "-ec", "-ic", "-xc", "/c", "/C", "-Command", "-command"})
"""What comes next is a line for a shell, of which all has to be seen but the secrets."""
_NOTEWORTHY = re.compile(r"=|://")
"""Without one of these the value of a header has no parts with names of their own."""
_BLANK = re.compile(r"\s")


@dataclass(slots=True, frozen=True)
class Hidden:
    """A place in a text where a secret stands, and what that secret is called."""

    start: int
    end: int
    name: str


def in_text(text: str) -> list[Hidden]:
    """The secrets in one argument, one value, one line of anything."""
    return _tidy(_found(text, bounds.SECRET_DEPTH))


def in_url(url: str) -> list[Hidden]:
    """The secrets in an address, with or without its origin: before the `@`, in the query and in the fragment."""
    return _tidy([*_in_address(url, bounds.SECRET_DEPTH), *_by_looks(url)])


def in_header(name: str, value: str) -> list[Hidden]:
    """The secrets in the value of a header."""
    if not value:
        return []
    if sounds_secret(name, "header"):
        return [] if _REFERENCE.fullmatch(value) else [Hidden(0, len(value), name)]
    if _NOTEWORTHY.search(value) is None and _LOOKS.search(value) is None:
        return []
    return _tidy([*in_url(value), *_in_pairs(value)])


@lru_cache(maxsize=64)
def in_arguments(args: tuple[str, ...]) -> tuple[tuple[Hidden, ...], ...]:
    """The secrets in each part of a command line: `--name value`, `--name=value`, `NAME=value`, `-H "Name: value"`."""
    return tuple(tuple(_tidy(found)) for found in _in_vector(args, bounds.SECRET_DEPTH))


def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable is kept back as a whole: by its name, or because there is a secret in its value."""
    return sounds_secret(name, "variable") or bool(in_text(value))


def is_secret_header(name: str, value: str) -> bool:
    """Whether a header is kept back as a whole."""
    return sounds_secret(name, "header") or bool(in_header(name, value))


def _tidy(found: Iterable[Hidden]) -> list[Hidden]:
    """In order; two that overlap are one, of two alike it is the one with a name of its own."""
    kept: list[Hidden] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end, one.name == ITSELF)):
        if one.end > one.start and (not kept or one.start >= kept[-1].end):
            kept.append(one)
        elif kept and one.end > kept[-1].end:
            kept[-1] = Hidden(kept[-1].start, one.end, kept[-1].name)
    return kept


def _moved(found: Iterable[Hidden], by: int) -> Iterator[Hidden]:
    return (Hidden(one.start + by, one.end + by, one.name) for one in found)


def _next(sign: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Where a sign stands next, else the end."""
    found = sign.search(text, start, end)
    return end if found is None else found.start()


def _found(text: str, depth: int) -> list[Hidden]:
    """Secrets in a text whose name says nothing."""
    found = list(_by_looks(text))
    below = _in_json(text) if depth and text.lstrip()[:1] in ("{", "[") and len(text) <= bounds.SECRET_JSON else None
    if below is not None:
        return found + below
    if depth and _BLANK.search(text) is not None:
        return [*found, *_in_words(text, depth - 1), *_in_pairs(text)]
    return [*found, *_in_address(text, depth), *_in_pairs(text), *_in_login(text)]


def _in_pairs(text: str) -> Iterator[Hidden]:
    """The values in `user=u,password=…`, `password:…`, `password = "…"`, `-Dpassword=…` and `{'password': '…'}`."""
    pairs = list(_PAIR.finditer(text))
    covered = 0
    for at, pair in enumerate(pairs):
        start, name = pair.end(), pair[1]
        if pair.start() < covered or not _is_pair(name, pair[2], text, start):
            continue
        quote = _QUOTE.match(text, start)
        if quote is not None:
            start = quote.end()
            end = text.find(quote.group(), start)
            covered = end = end if end >= 0 else len(text)
        else:
            until = pairs[at + 1].start() - 1 if at + 1 < len(pairs) and pairs[at + 1][2] == pair[2] else len(text)
            covered = end = _next(_BLANK, text, start, max(start, until))
            while end > start and text[end - 1] in "'\"":
                end -= 1
        if end > start and _REFERENCE.fullmatch(text, start, end) is None:
            yield Hidden(start, end, name)


def _is_pair(name: str, parted_by: str, text: str, start: int) -> bool:
    """Whether a value is hidden because of the name before it. A colon has more uses, so names are fewer there."""
    if text.startswith(("$(", "`"), start) or not sounds_secret(name, "argument"):
        return False
    return parted_by == "=" or (sounds_secret(name, "field") and not text.startswith("//", start))


def _in_login(text: str) -> Iterator[Hidden]:
    """The password in `user:password@host` and in `jdbc:oracle:thin:user/password@host`."""
    login = _LOGIN.match(text)
    end = text.rfind("@")
    if login is None or "://" in text or not login.end() < end < len(text) - 1 or text[end + 1].isspace():
        return
    user = login[1]
    if user is not None:
        drive = len(user) == 1 and text[login.end()] in "/\\"
        if drive or _NO_USER.fullmatch(user) is not None or _DIGEST.match(text, end + 1) is not None:
            return
    if _REFERENCE.fullmatch(text, login.end(), end) is None:
        yield Hidden(login.end(), end, CREDENTIALS)


def _in_words(text: str, depth: int) -> list[Hidden]:
    """The secrets of a line, cut into words as a shell does."""
    words, starts = [], []
    for match in _WORD.finditer(text):
        word, start = match.group(), match.start()
        if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
            word, start = word[1:-1], start + 1
        words.append(word)
        starts.append(start)
    below = _in_vector(words, depth, as_shell=True)
    return [one for found, start in zip(below, starts, strict=True) for one in _moved(found, start)]


def _by_looks(text: str) -> Iterator[Hidden]:
    for match in _LOOKS.finditer(text):
        group = "after" if match["after"] is not None else 0
        yield Hidden(*match.span(group), ITSELF)


def _in_address(text: str, depth: int) -> Iterator[Hidden]:
    """What stands before an `@`, and parameters whose name sounds secret, in a text without blanks."""
    for at, match in enumerate(_AUTHORITY.finditer(text)):
        start, authority = match.start(1), match[1]
        end = start + authority.rfind("@")
        port = authority.rpartition(":")[2]
        if end < start and at == 0 and ":" in authority and not port.isdigit() and not authority.endswith("]"):
            end = text.rfind("@")  # `u:pa/ss@host`: a slash in a password, which no port can be
        login = text[start:end] if end > start else ""
        if login and not (login == "git" or (text.endswith("ssh", 0, match.start()) and ":" not in login)):
            yield Hidden(start, end, CREDENTIALS)
    covered = 0
    for match in _PARAMETER.finditer(text):
        if match.start() < covered:
            continue
        name = unquote_plus(match[1])
        if sounds_secret(name, "parameter"):
            covered = _next(_NEXT_PARAMETER, text, match.end(), len(text))
            yield Hidden(match.end(), covered, name)
        elif depth:
            until = _next(_DELIMITER, text, match.end(), len(text))
            plain = unquote_plus(text[match.end() : until])
            if "://" in plain and _found(plain, 0):
                yield Hidden(match.end(), until, ITSELF)


def _in_json(text: str) -> list[Hidden] | None:
    """Members of a JSON text that sound secret, as in `{"apiKey": "…"}`; None when it is no JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    found: list[Hidden] = []
    name, named_at = "", 0
    for match in _STRING.finditer(text):  # it is JSON, so every quote has its partner
        if match[2] is not None:
            name = match[1]
            named_at = match.end()
        elif name and not text[named_at : match.start()].strip() and sounds_secret(name, "argument"):
            found.append(Hidden(*match.span(1), name))
        else:
            below = [*_in_address(match[1], 0), *_in_pairs(match[1]), *_in_login(match[1])]
            found += _moved(below, match.start(1))
    return found


def _in_vector(args: Sequence[str], depth: int, *, as_shell: bool = False) -> list[list[Hidden]]:
    """The secrets of each part. In the words of a shell, a value that the shell makes is none of them."""
    found: list[list[Hidden]] = []
    expected = before = ""
    for arg in args:
        if arg == "=" and (
            expected or (_OPTION.fullmatch(before[:NAME_LONGEST]) and sounds_secret(before, "argument"))
        ):
            found.append([])
            expected = expected or before
            continue
        if expected and _is_value(arg):
            found.append(_whole(arg, 0, expected, as_shell))
            expected = before = ""
            continue
        found.append(_in_argument(arg, before, depth, as_shell))
        expected = arg if not found[-1] and _is_option(arg) and sounds_secret(arg, "argument") else ""
        before = arg
        if as_shell and arg.endswith(":") and sounds_secret(arg.lstrip("'\""), "header"):
            expected = arg
    return found


def _is_value(arg: str) -> bool:
    """Whether this is the value of the option before it: a password may begin with a dash, `-v` is an option."""
    if not arg.startswith("-"):
        return True
    if arg.startswith("--") or len(arg) <= 2 or arg in _SHELL_OPTIONS:
        return False
    return not sounds_secret(arg.partition("=")[0], "argument")


def _is_option(arg: str) -> bool:
    return arg.startswith("-") and len(arg) <= NAME_LONGEST and _OPTION.fullmatch(arg) is not None


def _whole(text: str, start: int, name: str, as_shell: bool) -> list[Hidden]:
    """A value that is hidden because of its name; not a reference to one, nor what a shell would run."""
    value = text[start:]
    if as_shell:
        stripped = value.strip("'\"")
        start, value = start + value.find(stripped), stripped
    if not value or _REFERENCE.fullmatch(value) or (as_shell and ("$(" in value or "`" in value)):
        return []
    return [Hidden(start, start + len(value), name)]


def _in_argument(arg: str, before: str, depth: int, as_shell: bool) -> list[Hidden]:
    if before in _HEADER_OPTIONS:
        return _in_header_line(arg, 0)
    if before in _SHELL_OPTIONS:
        return _found(arg, depth)
    if before in _USER_OPTIONS and ":" in arg and not arg.rpartition(":")[2].isdigit():
        return _whole(arg, arg.index(":") + 1, CREDENTIALS, as_shell)
    name, equals, value = arg.partition("=")
    if equals and len(name) <= NAME_LONGEST and _OPTION.fullmatch(name):
        start = len(name) + 1
        if name in _HEADER_OPTIONS:
            return _in_header_line(arg, start)
        if sounds_secret(name, "argument"):
            return _whole(arg, start, name, as_shell)
        below = _in_argument(value, "", depth - 1, as_shell) if depth else []
        return [*_moved(below, start), *_by_looks(arg), *_in_pairs(arg), *_in_login(arg)]
    name, colon, value = arg.partition(":")
    if colon and len(name) <= NAME_LONGEST and _OPTION.fullmatch(name) and not value.startswith("//"):
        plain = name.lower()
        usual = plain.startswith("x-") or plain in ("authorization", "proxy-authorization", "cookie")
        if (usual or value.startswith(" ")) and sounds_secret(name, "header"):
            return _in_header_line(arg, 0)
    return _found(arg, depth)


def _in_header_line(text: str, start: int) -> list[Hidden]:
    name, colon, value = text[start:].partition(":")
    at = start + len(name) + len(colon) + len(value) - len(value.lstrip())
    return list(_moved(in_header(name.strip("'\" "), text[at:]), at)) if colon else list(_moved(in_text(name), start))


# --------------------------------------------------------------------------------------------- hiding, and filling in


def replaced(text: str, found: Iterable[Hidden], make: Callable[[Hidden], str]) -> str:
    """The text with something else in each of these places."""
    parts, at = [], 0
    for one in found:
        parts += [text[at : one.start], make(one)]
        at = one.end
    return "".join([*parts, text[at:]])


def masked(text: str) -> str:
    """A text as it may be shown."""
    return replaced(text, in_text(text), lambda _: MASK)


def without(text: str, values: Iterable[str]) -> str:
    """A text with these secrets hidden, wherever they stand in it: a peer may quote what it was sent."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


def masked_url(url: str) -> str:
    """An address as it may be shown; its path is left as it is."""
    return replaced(url, in_url(url), lambda _: MASK)


def masked_arguments(args: tuple[str, ...]) -> tuple[str, ...]:
    """A command line as it may be shown."""
    return masked_places(args, in_arguments(args))


def masked_places(texts: Sequence[str], places: Places) -> tuple[str, ...]:
    """Texts as they may be shown, by the places that are known."""
    return tuple(replaced(text, found, lambda _: MASK) for text, found in zip(texts, places, strict=True))


def masked_headers(headers: Iterable[tuple[str, str]], marked: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
    """Headers as they may be shown; `marked` are those that somebody called secret."""
    named = {name.lower() for name in marked}
    return tuple(
        (name, MASK if name.lower() in named and value else replaced(value, in_header(name, value), lambda _: MASK))
        for name, value in headers
    )


def without_secrets(value: Any) -> Any:
    """A JSON value without the members that sound secret, and with its texts masked."""
    if isinstance(value, dict):
        return {key: without_secrets(one) for key, one in value.items() if not sounds_secret(str(key), "argument")}
    if isinstance(value, list):
        return [without_secrets(one) for one in value]
    return masked(value) if isinstance(value, str) else value


Places = Sequence[Sequence[Hidden]]
Mark = tuple[int, int, int]
"""Which of several texts, and where in it, a secret stands that nothing else tells from a plain value."""


def with_marks(places: Places, marks: Iterable[Mark]) -> tuple[tuple[Hidden, ...], ...]:
    """The places of secrets, with those that somebody marked."""
    found = [list(each) for each in places]
    for at, start, end in marks:
        found[at].append(Hidden(start, end, ITSELF))
    return tuple(tuple(_tidy(each)) for each in found)


def needed(marks: Iterable[Mark], places: Places) -> tuple[Mark, ...]:
    """The marks in order, each once, without those of places that are found anyway."""
    return tuple(
        (at, start, end)
        for at, start, end in sorted(set(marks))
        if not any(one.start <= start and end <= one.end for one in places[at])
    )


def filled(
    texts: Sequence[str], places: Places, known_texts: Sequence[str], known_places: Places
) -> tuple[tuple[str, ...], tuple[Mark, ...]]:
    """Texts with each `•••` replaced by the secret that stood in the place of that name, the first by the first; and
    where those secrets stand now."""
    known: dict[str, list[str]] = {}
    for text, found in zip(known_texts, known_places, strict=True):
        for one in found:
            known.setdefault(one.name, []).append(text[one.start : one.end])
    seen: dict[str, int] = {}
    made, marks = [], []
    for index, (text, found) in enumerate(zip(texts, places, strict=True)):
        values, longer = {}, 0
        for one in found:
            at = seen.get(one.name, 0)
            seen[one.name] = at + 1
            kept = known.get(one.name, [])
            if text[one.start : one.end] == MASK and at < len(kept):
                values[one] = kept[at]
                marks.append((index, one.start + longer, one.start + longer + len(kept[at])))
                longer += len(kept[at]) - len(MASK)
        made.append(replaced(text, values, values.__getitem__))
    return tuple(made), tuple(marks)


def has_mask(texts: Iterable[str], places: Places) -> bool:
    """Whether a mask stands where a secret should: what was shown came back as if it were the value."""
    return any(
        text[one.start : one.end] in (MASK, AGAIN) for text, found in zip(texts, places, strict=True) for one in found
    )
