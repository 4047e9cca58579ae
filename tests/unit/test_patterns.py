"""Every regular expression of Parley, what outside text it meets, and that its time grows with the text and no faster.

One of them took 14 s for a `Location` of 16 KB, under the interpreter's lock (H03). So each is found in the source, has
a row here that says what it meets and what bounds it, and is fed its worst: runs of every kind of character it knows,
every beginning of what it matches repeated, such beginnings before such runs, and what a row adds. A pattern without a
row fails, and so does a row without a pattern.
"""

import ast
import importlib
import itertools
import json
import re
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app import secrecy, secret_names
from app.core import hidden
from app.core.forms import clocks, words
from app.web.connect.consent import _WARNINGS, warnings_of
from tests import peers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import sre_constants as sre
    import sre_parse

pytestmark = pytest.mark.requirement("H03")
ROOT = peers.ROOT
MAKERS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer", "template"}
SIZES = (512, 2048, 8192, 32768)
"""Four times as much at each step: a cubic pattern shows at the first, a fast quadratic one at the last."""
SLOW = 0.03
"""Seconds of this thread below which nobody looks at growth: noise, and not a freeze."""
GROWS = 9.0
"""How much longer four times the text may take: 4 is linear, 16 is quadratic."""


@dataclass(frozen=True)
class Row:
    meets: str
    """Whose text it reads."""
    most: int | None = None
    """How much text reaches it at most, where that is its bound; None: it is linear by construction."""
    worst: tuple[str, ...] = ()
    """Beginnings that no generator would think of; each is repeated to the size of the text."""
    patterns: Callable[[], Iterable[str]] | None = None
    """Where the source has no literal: what is compiled there."""
    only: tuple[str, ...] | None = None
    """All that can reach it, where it is given only text that was judged before."""
    anchored: bool = False
    """It is only tried at the beginning of a text."""


def _rules() -> list[str]:
    return [pattern for pair in secret_names.PATTERNS.values() for pattern in pair]


SERVER, PERSON, BROWSER = "text of a server", "text of a person or a script", "a request to Parley"
PYTHON = {
    "app/settings.py:Settings.replica": Row("a setting or an argument of whoever starts Parley", worst=("r1", "r")),
    "app/team.py:_replica()": Row("a setting or an argument of whoever starts Parley", worst=("r1", "r")),
    "app/team_settings.py:TeamSettings.replica": Row(
        "a setting or an argument of whoever starts Parley", worst=("r1", "r")
    ),
    "app/core/placeholders.py:_PLACEHOLDER": Row(PERSON, worst=("${", "${a")),
    "app/core/elicitation.py:_NO_AFTER": Row(SERVER, worst=("not needneed ", "n't.")),
    "app/core/elicitation.py:_NO_BEFORE": Row(SERVER, worst=("instead o",)),
    "app/core/elicitation.py:_SENTENCE": Row(SERVER, worst=(". \n",)),
    "app/core/rules/hidden_text.py:_REORDERING": Row(SERVER),
    "app/core/rules/param_headers.py:_PLAIN": Row(SERVER),
    "app/core/rules/param_headers.py:_TOKEN": Row(SERVER),
    "app/core/schema/cost.py:_FANCY": Row("patterns in schemas of a server"),
    "app/core/forms/clocks.py:WRITTEN": Row(
        PERSON, worst=("00:00:00.0",), patterns=lambda: [each.pattern for each in clocks.WRITTEN.values()]
    ),
    "app/core/forms/leaves.py:_UNTYPEABLE": Row("defaults in schemas of a server"),
    "app/core/schema/explain.py:_date()": Row(PERSON),
    "app/core/schema/explain.py:_time()": Row(PERSON, worst=("00:00:00.0",)),
    "app/core/forms/tree.py:_UNIDENTIFIED": Row("names in schemas of a server"),
    "app/core/forms/tree.py:_UNNAMEABLE": Row("names in schemas of a server"),
    "app/core/json/values.py:_NUMBER": Row(PERSON, worst=("1.", "1e")),
    "app/core/forms/words.py:item_name()": Row(
        "labels in schemas of a server", worst=("ies", "sses"), patterns=lambda: [each[0] for each in words._SINGULARS]
    ),
    "app/core/json/lines.py:_ID": Row(SERVER, most=130, worst=("0x", "a-")),
    "app/core/json/lines.py:_TIME": Row(SERVER, most=130, worst=("2026-01-01T00:00:00.0",)),
    "app/core/json/heads.py:_REST_OF_TEXT": Row(SERVER, worst=("\\", '\\"'), anchored=True),
    "app/core/json/heads.py:_TOKEN": Row(SERVER, worst=('"\\', '"\\"', '"a')),
    "app/core/json/heads.py:_WHOLE": Row(SERVER, most=200),
    "app/core/hidden.py:_ANY": Row(SERVER),
    "app/core/hidden.py:_ASCII_CONTROLS": Row(SERVER),
    "app/core/hidden.py:_BYTES": Row(SERVER, worst=("\\u20", "\\uff")),
    "app/core/hidden.py:_CALM": Row(SERVER, worst=("\u2764\ufe0f\u200d", "\U0001f3f4\U000e0067\U000e0062")),
    "app/core/hidden.py:_CALMABLE": Row(SERVER, worst=("\\u200",)),
    "app/core/hidden.py:_HIDDEN": Row(SERVER),
    "app/core/hidden.py:_IN_NAMES": Row(SERVER),
    "app/core/hidden.py:_MAY_STACK": Row(SERVER, worst=("a" + 8 * "\u0301",)),
    "app/core/hidden.py:_SELECTOR": Row(SERVER, worst=("\ufe0f\ufe0fa",)),
    "app/core/hidden.py:_TAG": Row(SERVER),
    "app/core/hidden.py:_WRITTEN_OUT": Row(SERVER),
    "app/core/hidden.py:_stacks()": Row(
        SERVER, worst=("\u0301", "a" + 8 * "\u0301"), patterns=lambda: [hidden._stacks().pattern]
    ),
    "app/core/json/scan.py:_SCALAR": Row(SERVER, anchored=True),
    "app/core/json/scan.py:_SPACE": Row(SERVER, anchored=True),
    "app/core/json/scan.py:_TOKEN": Row(SERVER, most=64 * 1024 + 1, worst=('"\\"', '"\\\\', "[")),
    "app/core/json/scan.py:_TO_QUOTE": Row(SERVER, most=64 * 1024 + 1, worst=('\\"', "\\\\"), anchored=True),
    "app/core/json/text.py:_HUGE_EXPONENT": Row(SERVER, most=256 * 1024),
    "app/core/json/text.py:_LONE": Row(SERVER),
    "app/core/json/text.py:_SURROGATE": Row(SERVER),
    "app/core/links.py:_ADDRESS": Row(SERVER, most=8192, worst=("https://a", "@", "https://a:b@")),
    "app/core/links.py:_NAME": Row(SERVER, most=253, worst=("a.", "a-")),
    "app/core/links.py:_NUMBER": Row(SERVER, most=253, worst=("1.", "0x")),
    "app/core/links.py:read()": Row(SERVER, most=8192),
    "app/core/targets.py:HttpTarget.url": Row(PERSON, most=4096),
    "app/core/targets.py:_TOKEN": Row(PERSON),
    "app/core/uritemplate.py:_ESCAPED": Row(SERVER),
    "app/core/uritemplate.py:_EXPRESSION": Row(SERVER, worst=("{a{",)),
    "app/core/uritemplate.py:_VARIABLE": Row(SERVER, worst=("a.", "%aa", "a%aa.", "a:1")),
    "app/protocol/links/http.py:_SESSION_ID": Row(SERVER),
    "app/protocol/oauth/answers.py:_NAME": Row(SERVER),
    "app/protocol/oauth/answers.py:_RUN": Row(SERVER, worst=("a" * 15 + ".", "a")),
    "app/protocol/oauth/answers.py:_TURN": Row(SERVER, worst=("aA",)),
    "app/protocol/oauth/answers.py:_WORD": Row(SERVER),
    "app/protocol/rpc.py:_NUMBER": Row(SERVER),
    "app/secrecy.py:_AUTHORITY": Row(SERVER, worst=("://a@", "://")),
    "app/secrecy.py:_BLANK": Row(SERVER),
    "app/secrecy.py:_DELIMITER": Row(SERVER),
    "app/secrecy.py:_DIGEST": Row(PERSON),
    "app/secrecy.py:_LOOKS": Row(SERVER, worst=("-eyJ-", "sk-sk-", "bearer bearer  ", "-----BEGIN RSA ", "•••")),
    "app/secrecy.py:_LOGIN": Row(PERSON, worst=("jdbc:oracle:a:", "jdbc:oracle:a:u/", "a:")),
    "app/secrecy.py:_NOTEWORTHY": Row(SERVER),
    "app/secrecy.py:_NO_USER": Row(PERSON),
    "app/secrecy.py:_OPTION": Row(PERSON),
    "app/secrecy.py:_PAIR": Row(SERVER, worst=("-D", ",a", ",-Da", "'\"", "a   ", "\\", ",password=", 'password:"')),
    "app/secrecy.py:_PARAMETER": Row(SERVER, worst=("?a", "&token=", "?token")),
    "app/secrecy.py:_QUOTE": Row(SERVER, worst=("\\",)),
    "app/secrecy.py:_REFERENCE": Row(SERVER, worst=("${a", "$a")),
    "app/secret_names.py:_SPOKEN": Row(SERVER, worst=("credit card numb", "passwor")),
    "app/secrecy.py:_STRING": Row("a text that was read as JSON", only=('"a": "b", ', '"\\"\\\\": "\\"", ', '"" , ')),
    "app/secrecy.py:_NEXT_PARAMETER": Row(SERVER),
    "app/secrecy.py:_WORD": Row(PERSON, worst=("'\"", "\"'", "a'b\"", "\"a 'b ")),
    "app/secret_names.py:_humps": Row(SERVER, worst=("aA", "AAa", "a1", "-_")),
    "app/secret_names.py:_rules()": Row(SERVER, worst=("max-a-a-", "api-", "passwor", "-1"), patterns=_rules),
    "app/secret_names.py:_rules()#2": Row(SERVER, patterns=list),  # the other half of the same pairs
    "app/web/door/visitors.py:_OWN_PATH": Row(BROWSER),
    "app/web/calls/blobs.py:_RANGE": Row(BROWSER),
    "app/web/calls/blobs.py:_SHA": Row(BROWSER),
    "app/web/calls/result.py:ROOT_TEXT": Row(SERVER),
    "app/web/connect/consent.py:_WARNINGS": Row(
        PERSON,
        worst=("rm -a -b ", "rm -frf", "curl | ", "curl |sh", "dd of=/dev", "sudo", "chmod 777", "-enc  a", "/", "su/"),
        patterns=lambda: [pattern.pattern for patterns, _ in _WARNINGS for pattern in patterns],
    ),
    "app/web/door/files.py:_IMPORT": Row("our own styles"),
    "app/web/door/files.py:_PROPERTY": Row("our own styles"),
    "app/web/door/modules.py:_EXPORT": Row("our own scripts"),
    "app/web/door/modules.py:_IMPORT": Row("our own scripts"),
    "app/web/door/modules.py:_LATER": Row("our own scripts"),
    "app/web/door/modules.py:_UNKNOWN": Row("our own scripts"),
    "app/web/door/guard.py:_AUTHORITY": Row(BROWSER),
    "app/web/connect/mcp_json.py:_NAMED": Row(PERSON, worst=('"\\"', '\\"', '" '), anchored=True),
    "app/web/kit/media.py:_REACHING": Row(SERVER, worst=("href ", "href=", 'attributename="a', "</iframe")),
    "app/models/base.py:Model.base_url": Row(PERSON, anchored=True),
    "app/models/provider.py:_LOOKS_SECRET": Row("a provider's words", worst=("sk-", "sk-a", "key-")),
    "app/web/models/routes.py:AddBody.name": Row(PERSON, anchored=True),
    "app/web/lists/view.py:_PARTS": Row(SERVER, worst=("1", "1a")),
    "app/web/lists/view.py:_PREFIX": Row(SERVER, worst=("a", "1")),
    "app/web/kit/markdown.py:MARKED": Row(SERVER, worst=("\n \t", " \n", "\n1", "\n\n")),
    "app/web/kit/html.py:_MARK_ALONE": Row("tags that Parley wrote", worst=("\ufdd0", "\ufdd0a\ufdd1")),
    "app/web/kit/html.py:_TAG_OR_MARK": Row(
        "pages that Parley wrote", only=("<p class=\"x\" title='y'>a</p>", "\ufdd0U+200B\ufdd1ZERO WIDTH\ufdd2", "<br>")
    ),
    "app/web/kit/html.py:_CODE": Row(SERVER),
    "app/web/guests/listener.py:_FILES": Row(BROWSER, worst=("js-", "js-00000000/")),
    "app/web/kit/markdown.py:_MAIL": Row(SERVER, worst=("mailto:", "mailto:a\n")),
    "app/web/kit/typed.py:_HOST": Row(PERSON, worst=("[::", "a.")),
    "app/web/door/root.py:_KEY": Row("a file of our own", most=200),
    "app/server.py:_CONTROL": Row("lines of our own log"),
    "app/web/kit/templates.py:_ADDRESS": Row("our own templates, when they are compiled", most=20_000),
    "app/web/lists/keys.py:_INDEX": Row(SERVER),
    "app/web/lists/keys.py:_speakable()": Row(SERVER),
    "app/export/snippets.py:_formatted()": Row(PERSON, worst=("\0A", "\0")),
    "app/export/snippets.py:_on_one_line()": Row(SERVER),
    "app/export/snippets.py:_quoted()": Row(PERSON),
    "app/export/snippets.py:_quoted()#2": Row(PERSON, worst=("\0A", "\0")),
    "app/export/snippets.py:variable()": Row(PERSON),
    "app/web/live/stream.py:_BREAK": Row(SERVER),
}
SCRIPT = {
    r"bench.js:/\/(call|get|read|compose|retry)(\/|$)/": Row("the address of an action", worst=("/cal", "/call")),
    r"calls.js:/^[^,]*,/": Row("a file that a person chose, as a data: address", worst=("a;",)),
    r"edits.js:/\s+|\S+/g": Row("an answer that a person edits, in words", worst=(" ", "a")),
    r"message.js:/\/log\/\d+$/": Row("the address of the page", worst=("/log/1",)),
    r"page.js:/\s+/": Row("words that a person types"),
    r"decide.js:/\s+/": Row("words that a person types"),
}


# -------------------------------------------------------------------------------------------------- finding all of them


def in_python(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Each call that makes or uses a regular expression, by where it stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules, names = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name for each in node.names if each.name == "re"}
        elif isinstance(node, ast.ImportFrom) and node.module == "re":
            names |= {each.asname or each.name for each in node.names}

    def visit(node: ast.AST, scope: tuple[str, ...], name: str) -> Iterator[tuple[str, ast.Call]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope = (*scope, node.name + ("" if isinstance(node, ast.ClassDef) else "()"))
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(targets[0], ast.Name) and not any(part.endswith("()") for part in scope):
            name = targets[0].id
        if isinstance(node, ast.Call):
            called = node.func
            is_re = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)
            of_module = is_re and called.value.id in modules and called.attr in MAKERS  # type: ignore[attr-defined]
            of_name = isinstance(called, ast.Name) and called.id in names
            if of_module or of_name or any(each.arg in ("pattern", "regex") for each in node.keywords):
                yield ".".join((*scope, *([name] if name else []))), node
        for child in ast.iter_child_nodes(node):
            yield from visit(child, scope, name)

    yield from visit(tree, (), "")


@cache
def all_python() -> dict[str, list[str]]:
    """The sources of all patterns of Python, by where they stand."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "app").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        seen: dict[str, int] = {}
        for scope, call in in_python(path):
            name = scope.split(".")[-1] if scope.endswith(")") else scope
            if name in seen and not name.endswith(")"):
                continue  # several patterns in one value: its row has them all
            seen[name] = seen.get(name, 0) + 1
            key = f"{place}:{name}" + (f"#{seen[name]}" if seen[name] > 1 else "")
            found[key] = sources(place, name, call)
    return found


def sources(place: str, name: str, call: ast.Call) -> list[str]:
    given = [each.value for each in call.keywords if each.arg in ("pattern", "regex")] or call.args[:1]
    if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str):
        return [given[0].value]
    module = importlib.import_module(place.removesuffix(".py").replace("/", "."))
    value = getattr(module, name, None)
    if not isinstance(value, re.Pattern):
        return []
    return [value.pattern if isinstance(value.pattern, str) else value.pattern.decode("latin-1")]


# After these, a slash begins a regular expression; after anything else it divides.
BEFORE = re.compile(r"(?:^|[(,=:\[!&|?{};+]|\b(?:return|typeof|case))\s*$")
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`|new RegExp\([^)]*\)|\$\{|[{}]"
    r"|/(?![/*])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*",
    re.DOTALL,
)


def in_script(text: str) -> list[str]:
    """The regular expressions of a script: literals, and what is made of a text."""
    found, at, nested = [], 0, [""]
    while at < len(text):
        if nested[-1] == "`":
            end = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL).match(text, at)
            assert end is not None
            at = end.end()
            if text[at : at + 2] == "${":
                nested.append("{")
                at += 2
            else:
                nested.pop()
                at += 1
            continue
        token = TOKEN.match(text, at)
        if token is None:
            at += 1
            continue
        word = token.group()
        if word.startswith("/") and not word.startswith(("//", "/*")):
            if not BEFORE.search(text[max(0, at - 20) : at]):
                at += 1
                continue
            found.append(word)
        elif word.startswith("new RegExp"):
            found.append(word)
        elif word == "`" or word == "{":
            nested.append(word)
        elif word == "}" and len(nested) > 1:
            nested.pop()
        at = token.end()
    return found


@cache
def all_script() -> list[str]:
    files = sorted(path for path in (ROOT / "static").rglob("*.js") if "vendor" not in path.parts)
    return [f"{path.name}:{one}" for path in files for one in in_script(path.read_text(encoding="utf-8"))]


def test_h03_every_regular_expression_of_python_has_a_row():
    assert sorted(all_python()) == sorted(PYTHON), "say in a row what it meets, and what bounds it"
    assert [key for key, found in all_python().items() if not found and PYTHON[key].patterns is None] == []


def test_h03_every_regular_expression_of_our_scripts_has_a_row():
    assert sorted(set(all_script())) == sorted(SCRIPT), "say in a row what it meets, and what bounds it"


def test_h03_the_finder_finds():
    text = "import re as r\nfrom re import compile as c\nX = r.compile('a')\ndef f():\n  return r.sub('b', '', '')\n"
    path = ROOT / "app" / "__init__.py"
    assert list(in_python(path)) == []
    assert in_script("a = b / c / d; e = /x[/]y/g; f(`${/z/.test(1)} / 2 /`); // /no/\ng = '/no/'; return /r/") == [
        "/x[/]y/g", "/z/", "/r/",
    ]  # fmt: skip
    tree = ast.parse(text)
    assert len([node for node in ast.walk(tree) if isinstance(node, ast.Call)]) == 2


def test_h03_no_other_engine_of_patterns_is_in_use():
    """`fnmatch` and `regex` would be found by nobody here; a schema's patterns have a limit wherever they are used."""
    for path in (ROOT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {each.name for each in node.names} | {getattr(node, "module", None)}
                assert not names & {"fnmatch", "regex", "glob", "re2", "sre_compile"}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = getattr(node.func.value, "id", "")
                if owner == "jsonschema_rs" and node.func.attr != "FancyRegexOptions":
                    given = {each.arg: ast.unparse(each.value) for each in node.keywords}
                    assert "backtrack_limit" in given.get("pattern_options", ""), (path, node.lineno)


# ---------------------------------------------------------------------------------------------------- their worst cases


def char_of(items: list[Any]) -> str:
    """One character of a class."""
    categories = {sre.CATEGORY_DIGIT: "0", sre.CATEGORY_SPACE: " ", sre.CATEGORY_WORD: "a"}
    negated = items[0][0] is sre.NEGATE
    inside = "".join(
        chr(value) if kind is sre.LITERAL else chr(value[0]) if kind is sre.RANGE else categories.get(value, "-")
        for kind, value in items
        if kind is not sre.NEGATE
    )
    return next((char for char in "ab0 -/.\n" if char not in inside), "é") if negated else inside[:1]


def alphabet(tree: Any) -> Iterator[str]:
    """A character of each kind that a pattern knows."""
    for kind, value in tree:
        if kind is sre.LITERAL:
            yield chr(value)
        elif kind is sre.IN:
            yield char_of(value)
        elif kind is sre.ANY:
            yield "x"
        for part in value if isinstance(value, tuple | list) else ():
            for below in part if isinstance(part, list) else [part]:
                if isinstance(below, sre_parse.SubPattern):
                    yield from alphabet(below)


def samples(tree: Any, most: int = 6) -> list[str]:
    """A few texts that a pattern matches, or nearly."""
    found = [""]
    for kind, value in tree:
        parts = [""]
        if kind is sre.LITERAL:
            parts = [chr(value)]
        elif kind is sre.IN:
            parts = [char_of(value)]
        elif kind is sre.ANY:
            parts = ["x"]
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, getattr(sre, "POSSESSIVE_REPEAT", None)):
            least, _, below = value
            parts = [one * min(max(1, least), 60) for one in samples(below, most)]
        elif kind is sre.SUBPATTERN:
            parts = samples(value[3], most)
        elif kind is sre.BRANCH:
            parts = [one for below in value[1] for one in samples(below, 2)]
        found = [before + part for part in parts for before in found][: most * 4]
    return list(dict.fromkeys(found))


def worst_of(pattern: str, row: Row) -> list[str]:
    """Pieces of text; each is repeated to a size, or stands before a run of one character."""
    if row.only is not None:
        return list(row.only)
    tree = sre_parse.parse(pattern)
    chars = list(dict.fromkeys([*alphabet(tree), " ", "a", "0"]))[:16]
    beginnings = [sample[:end] for sample in samples(tree)[:8] for end in {1, 2, 3, len(sample) // 2, len(sample) - 1}]
    pieces = [*row.worst, *chars, *samples(tree)[:8], *beginnings]
    return [piece for piece in dict.fromkeys(pieces) if piece]


def texts_of(pieces: list[str], size: int, *, before_runs: bool = True) -> Iterator[str]:
    """Each piece again and again; and, where the text is not too long for so many, before a run of one character."""
    for piece in pieces:
        yield (piece * (size // len(piece) + 1))[:size]
        yield (piece * (size // len(piece) + 1))[:size] + "\0"
    for run in [piece for piece in pieces if len(piece) == 1][:10] if before_runs and size < SIZES[-1] else []:
        yield from (piece + run * size + "\0" for piece in pieces)


def best(run: Callable[[str], object], text: str, times: int) -> float:
    """The least time of this thread: what other processes take of the machine does not count."""
    taken = []
    for _ in range(times):
        began = time.thread_time()
        run(text)
        taken.append(time.thread_time() - began)
    return min(taken)


def grows_too_fast(
    run: Callable[[str], object], pieces: list[str], most: int | None = None, *, before_runs: bool = True
) -> str | None:
    """The first text that takes far more than four times as long when there is four times as much of it."""
    if most is not None:
        slow = [text for text in texts_of(pieces, most) if best(run, text, 3) > 10 * SLOW]
        return f"{slow[0][:40]!r} takes too long even at its bound" if slow else None
    for at, size in enumerate(SIZES if before_runs else SIZES[1:3]):
        for number, text in enumerate(texts_of(pieces, size, before_runs=before_runs)):
            if best(run, text, 1) < SLOW:
                continue
            smaller = next(itertools.islice(texts_of(pieces, size // 4), number, None)) if at else ""
            before, now = best(run, smaller, 5), best(run, text, 3)
            if now > SLOW and now > before * GROWS:
                return f"{text[:40]!r}… of {len(text):,}: {now:.3f} s, of a quarter {before:.4f} s"
    return None


def runs(pattern: str, anchored: bool = False) -> Callable[[str], object]:
    compiled = re.compile(pattern)

    def run(text: str) -> None:
        compiled.fullmatch(text)
        compiled.match(text)
        for _ in () if anchored else compiled.finditer(text):
            pass

    return run


@pytest.mark.parametrize("key", sorted(PYTHON))
def test_h03_the_time_grows_with_the_text_and_no_faster(key: str):
    row = PYTHON[key]
    for pattern in row.patterns() if row.patterns is not None else all_python()[key]:
        assert grows_too_fast(runs(pattern, row.anchored), worst_of(pattern, row), row.most) is None, pattern


@pytest.mark.parametrize(
    "pattern",
    [
        r"([?&][^=&#]*(?:auth|token|key)[^=&#]*=)[^&#]+",
        r"--?[\w.-]*(?:auth|token|passw)[\w.-]*",
        r"\bdd\s+.*\bof=/dev/|\bmkfs\b",
        r"\b(curl|wget)\b.*\|\s*(ba|z|da|k)?sh\b",
        r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)",
        r"\$\{[^}]*\}",
    ],
)
def test_h03_the_measure_finds_the_patterns_that_froze_everything(pattern: str):
    row = Row("", worst=("?token", "?", "curl ", "dd ", "${"))
    assert grows_too_fast(runs(pattern), worst_of(pattern, row)) is not None


SCRIPT_RUNNER = """
const work = JSON.parse(require('fs').readFileSync(0, 'utf-8'));
const best = (one, text, times) => {
  let least = Infinity;
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    one.lastIndex = 0; one.test(text); one.lastIndex = 0; text.replace(one, ''); text.split(one);
    least = Math.min(least, performance.now() - began);
  }
  return least;
};
const bad = [];
for (const { key, source, flags, texts } of work) {
  const one = new RegExp(source, flags);
  for (const [smaller, text] of texts) {
    if (best(one, text, 1) < 20) continue;
    const now = best(one, text, 3), before = best(one, smaller, 3);
    if (now >= 20 && now > before * 9) { bad.push([key, text.slice(0, 40), now, before]); break; }
  }
}
console.log(JSON.stringify(bad));
"""


def test_h03_the_time_of_our_scripts_grows_with_the_text_and_no_faster(tmp_path: Path):
    work = []
    for key, row in SCRIPT.items():
        written = key.partition(":")[2]
        flags = written.rpartition("/")[2] if written.startswith("/") else ""
        found = [written[1 : written.rindex("/")]] if row.patterns is None else list(row.patterns())
        for source in found:
            pieces = worst_of(source.replace("\\/", "/"), row)
            sizes = (2048, 8192) if row.most is None else (row.most, row.most)
            texts = list(zip(*(texts_of(pieces, size) for size in sizes), strict=True))
            work.append({"key": key, "source": source, "flags": flags, "texts": texts})
    file = tmp_path / "run.cjs"
    file.write_text(SCRIPT_RUNNER, encoding="utf-8")
    command = [str(peers.node()), str(file)]
    done = subprocess.run(command, input=json.dumps(work), capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout) == []


# ------------------------------------------------------------------------------------------- what uses several in a row

HOSTILE = [
    "?token=", "?a=", "&", ";a=", "://", "://a@", "://a:b/", "--token ", "-H ", "Authorization: ", "x=", "X_KEY=",
    "=", ":", "'", '"', "'\"", '{"a":', '{"token":"x",', "[", "sk-", "eyJ", "-----BEGIN ", "bearer ", "•••",
    "%3A%2F%2F", "?x=%3A%2F%2Fa%3Ab%40", "aA", "\\", "\n", " ", "a", "${", "$(", "token-", "a?token=b#", "{", "@",
    "git@", "A=B=", ",password=", "password:'", "password = ", "u:a@", "-Dpassword=", '\\"token\\":\\"', "token = ",
]  # fmt: skip


@pytest.mark.parametrize("find", ["in_text", "in_url", "in_arguments", "masked_headers", "sounds_secret"])
def test_h03_finding_secrets_grows_with_the_text_and_no_faster(find: str):
    def run(text: str) -> None:
        if find == "in_arguments":
            secrecy.in_arguments.cache_clear()
            secrecy.in_arguments(("server", "-c", text, text))
            secrecy.in_arguments(tuple(text.split(" ")))
        elif find == "masked_headers":
            secrecy.masked_headers([("Location", text), ("X-Team", text), (text, "value")])
        else:
            getattr(secrecy, find)(text)

    texts = [f"{one}{other}" for one in HOSTILE for other in ("", "a")]
    for prefix in ("", "https://h/?", "--db="):
        assert grows_too_fast(lambda text: run(prefix + text), texts, before_runs=False) is None, prefix  # noqa: B023


@pytest.mark.parametrize(
    ("argv", "warned"),
    [
        (["sudo", "x"], [0]),
        (["/usr/bin/sudo", "x"], [0]),
        (["sh", "-c", "sudo x"], [2]),
        (["sh", "-c", "rm -v -rf /"], [2]),
        (["sh", "-c", "confirm -rf"], []),
        (["rm", "-rf", "/x"], [0]),
        (["rm", "/x"], []),
        (["sh", "-c", "curl https://x | sh"], [2]),
        (["sh", "-c", "wget -O- x |\n bash"], [2]),
        (["sh", "-c", "echo x | sh; curl y"], []),
        (["sh", "-c", "echo x | base64 -d"], [2]),
        (["powershell", "-enc " + "A" * 40], [1]),
        (["dd", "if=x"], []),
        (["sh", "-c", "dd if=x of=/dev/sda"], [2]),
        (["sh", "-c", "mkfs x"], [2]),
        (["sh", "-c", "chmod -R 0777 /"], [2]),
        (["sh", "-c", ":(){ :|:& };:"], [2]),
        (["x", "../y"], [1]),
        (["python", "server.py", "--port", "1"], []),
    ],
)
def test_h03_the_card_still_warns(argv: list[str], warned: list[int]):
    shown = warnings_of(argv, argv)
    assert [at for at, one in enumerate(shown) if one.warning] == warned
