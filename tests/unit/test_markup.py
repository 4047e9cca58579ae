"""No text reaches markup unescaped: a rule for every f-string of the program that builds tags (M11).

Jinja escapes by itself. What is built by hand may hold only: constants, numbers (`{n:d}`), the result of `esc` or of a
function that returns `Html`, and names that were given such a value. What is declared to be `Html` follows the same
rule, and mypy sees to it that nothing else is taken for it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "app"
_TAG = re.compile(r"</?[a-zA-Z]|<!")
_ESCAPES = {"esc", "esc_exact"}
_NUMBERS = {"number", "grouped", "measured", "size", "clock", "duration", "plural"}
"""Of `render`: they write digits, signs and words of ours, whatever they are given."""
_DECLARES = {"Markup", "Html", "rendered"}
_TRUSTED = {"prose", "told", "shown", "markup", "markdown", "rendered", "exact", "drawn", "fragment", "html"}
"""The few functions that make markup of text by escaping, cleaning, joining or rendering it; each has tests."""
_TYPES = {"Html", "Markup", "int"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    return sorted(path for path in APP.rglob("*.py") if "demo" not in path.relative_to(APP).parts)


def texts(node: ast.JoinedStr) -> str:
    return "".join(part.value for part in node.values if isinstance(part, ast.Constant) and isinstance(part.value, str))


class Rule:
    """One module: which of its f-strings build tags, and what in them is not known to be safe."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.makers = _ESCAPES | _NUMBERS | {"markup", "fragment", "shown", "prose", "told", "stamp"}
        for node in ast.walk(self.tree):
            if isinstance(node, Function) and node.returns is not None and ast.unparse(node.returns) in _TYPES:
                self.makers.add(node.name)
        self._find_makers()

    def _find_makers(self) -> None:
        """Functions that return nothing but what is safe, each judged with those found before."""
        functions = [node for node in ast.walk(self.tree) if isinstance(node, Function)]
        before = -1
        while before != len(self.makers):
            before = len(self.makers)
            for one in functions:
                given = [node.value for node in ast.walk(one) if isinstance(node, ast.Return)]
                names = self._names(one)
                if given and all(self._safe(value, names, set()) for value in given):
                    self.makers.add(one.name)

    def objections(self) -> Iterator[str]:
        yield from self._in(self.tree, {})

    def _made(self, node: ast.AST) -> ast.expr | None:
        """What is declared to be markup without a look."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and len(node.args) == 1:
            if ast.unparse(node.func) == "self.out.append":
                return node.args[0]
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            return node.args[0] if name in _DECLARES else None
        return None

    def _in(self, node: ast.AST, names: dict[str, list[ast.expr | None]]) -> Iterator[str]:
        if isinstance(node, Function):
            if node.name in _TRUSTED:
                return
            names = self._names(node)
        made = self._made(node)
        if made is not None and not self._safe(made, names, set()):
            yield f"line {made.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.JoinedStr) and _TAG.search(texts(node)):
            for part in node.values:
                if isinstance(part, ast.FormattedValue) and not self._safe(part, names, set()):
                    yield f"line {part.lineno}: {{{ast.unparse(part.value)}}}"
        for child in ast.iter_child_nodes(node):
            yield from self._in(child, names)

    def _names(self, function: Function) -> dict[str, list[ast.expr | None]]:
        """What each name of a function was given; None where that is not known."""
        found: dict[str, list[ast.expr | None]] = {}
        arguments = function.args
        for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            typed = one.annotation is not None and ast.unparse(one.annotation) in _TYPES
            found[one.arg] = [ast.Constant("")] if typed else [None]
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assigned(target, node.value, found)
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
                found.setdefault(node.target.id, []).append(node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                for name in ast.walk(node.target):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(None)
        return found

    def _assigned(self, target: ast.expr, value: ast.expr, found: dict[str, list[ast.expr | None]]) -> None:
        if isinstance(target, ast.Name):
            found.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple):
            whole = value.body if isinstance(value, ast.IfExp) else value
            other = value.orelse if isinstance(value, ast.IfExp) else value
            for at, part in enumerate(target.elts):
                for one in (whole, other):
                    known = isinstance(one, ast.Tuple) and len(one.elts) == len(target.elts)
                    self._assigned(part, one.elts[at] if known and isinstance(one, ast.Tuple) else _UNKNOWN, found)

    def _safe(self, node: ast.expr | None, names: dict[str, list[ast.expr | None]], seen: set[str]) -> bool:
        match node:
            case None:
                return False
            case ast.Constant():
                return True
            case ast.JoinedStr():
                return all(self._safe(part, names, seen) for part in node.values)
            case ast.FormattedValue(format_spec=ast.JoinedStr(values=[ast.Constant(value=str(spec))])):
                return spec.endswith("d")
            case ast.FormattedValue():
                return node.conversion == -1 and self._safe(node.value, names, seen)
            case ast.IfExp():
                return self._safe(node.body, names, seen) and self._safe(node.orelse, names, seen)
            case ast.BoolOp():
                return all(self._safe(one, names, seen) for one in node.values)
            case ast.BinOp(op=ast.Add()):
                return self._safe(node.left, names, seen) and self._safe(node.right, names, seen)
            case ast.Call() if (made := self._made(node)) is not None:
                return self._safe(made, names, seen)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="html"), attr="escape")):
                return True
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in self.makers:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[ast.GeneratorExp(elt=each)]):
                return self._safe(each, names, seen)
            case ast.Attribute(value=ast.Name(id="writer"), attr="html"):
                return True
            case ast.Name(id=name) if name.strip("_").isupper():
                return True
            case ast.Name(id=name):
                given = names.get(name, [None])
                return name in seen or all(self._safe(one, names, seen | {name}) for one in given)
            case ast.Subscript(value=ast.Name(id=name)):
                return name.strip("_").isupper()
        return False


_UNKNOWN = ast.Await(ast.Constant(None))


def objections(source: str) -> list[str]:
    return list(Rule(source).objections())


@pytest.mark.requirement("M11")
@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(APP)))
def test_m11_an_f_string_that_builds_tags_holds_nothing_unescaped(path: Path):
    assert objections(path.read_text()) == []


@pytest.mark.requirement("M11")
@pytest.mark.parametrize(
    "body",
    [
        "return f'<p>{text}</p>'",
        "return f'<p title=\"{text.title()}\">'",
        "return f'<p>{esc(text)}{text}</p>'",
        "return f'<p>{esc(text) if text else text}</p>'",
        "safe = esc(text)\n    safe = text\n    return f'<p>{safe}</p>'",
        "safe = f'{text}'\n    return f'<p>{safe}</p>'",
        "one, two = text, esc(text)\n    return f'<p>{one}</p>'",
        "return f'<p>{\"\".join(text for one in text)}</p>'",
        "return [f'<p>{one}</p>' for one in text]",
        "return f'<p>{text!r}</p>'",
        "return f'<p>{text:>5}</p>'",
        "return Markup(text)",
        "self.out.append(text)",
        "return show.rendered(text)",
        "text += esc(text)\n    return f'<p>{text}</p>'",
    ],
)
def test_m11_the_rule_objects(body: str):
    assert objections(f"def built(text: str):\n    {body}\n") != []


@pytest.mark.requirement("M11")
@pytest.mark.parametrize(
    "body",
    [
        "return f'<p>{esc(text)}</p>'",
        "return f'<p title=\"{show.esc(text)}\">{n:d} {n}</p>'",
        "safe = esc(text)\n    return f'<p>{safe}</p>'",
        "safe = f' data-k=\"{esc(text)}\"' if text else ''\n    return f'<p{safe}>{ready}</p>'",
        "one, two = ('a', 'b') if text else ('c', 'd')\n    return f'<p class=\"{one}\">{two}</p>'",
        "return f'<p>{\"\".join(esc(one) for one in text)}{MARKS[text]}</p>'",
        "return f'#{text}' + text",
        "return f'{text} < 3'",
    ],
)
def test_m11_the_rule_is_content(body: str):
    assert objections(f"def built(text: str, n: int, ready: Html):\n    {body}\n") == []
