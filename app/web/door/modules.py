"""Scripts as a page fetches them: what is always needed together comes as one file.

A script is a module in `static/js`, and runs in a browser as it lies there. A page that names sixteen of them asks
sixteen times, and small files compress badly. So what is packed for a page is a bundle: the script that it names, and
every module that nobody else needs. What several of these scripts share is a bundle of its own, and runs once.

Who writes a script has to know nothing of that: an entry is a script that no other one imports (a page names it, or
`import()` does), or one that is named here. A module becomes a function that is called once, in the order in which a
browser would have run them; each begins on a line that has its name.
Loaded before the port is open, so it imports little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ALWAYS: Final = "page"
"""On every page, whatever else that page names."""
NAMED: Final = frozenset({ALWAYS, "session"})
"""Entries although others import them: pages name them."""
_IMPORT: Final = re.compile(r"^import (?:\{([^{}]{1,2000})\} from )?'\./([a-z]{1,40})\.js';$", re.MULTILINE)
_LATER: Final = re.compile(r"\bimport\('\./([a-z]{1,40})\.js'\)")
_EXPORT: Final = re.compile(r"^export (?=(?:const|class) ([\w$]{1,80}) )", re.MULTILINE)
_UNKNOWN: Final = re.compile(r"^(?:import|export|await)\b.{0,80}", re.MULTILINE)
"""What a module may not have at the begin of a line once the rest is understood: no bundle could keep what it means."""


class Bundle(NamedTuple):
    """One file for a page: its modules in the order in which they run, and the other bundles that it needs."""

    name: str
    modules: tuple[str, ...]
    needs: tuple[str, ...]


def bundled(folder: Path, name: str) -> str:
    """The text of a bundle, or "" when there is none of that name."""
    found = bundles(folder).get(name)
    return "" if found is None else "\n".join(_lines(folder, found))


@cache
def bundles(folder: Path) -> dict[str, Bundle]:
    """The bundles of a folder of modules, by name."""
    texts = _texts(folder)
    uses = {name: [found[2] for found in _IMPORT.finditer(text)] for name, text in texts.items()}
    entries = sorted(
        {*NAMED, *_later(texts), *(texts.keys() - {used for many in uses.values() for used in many})} & texts.keys()
    )
    order = {entry: _reached(uses, entry) for entry in entries}
    whose = {name: frozenset(entry for entry in entries if name in order[entry]) for name in texts}
    members: dict[frozenset[str], list[str]] = {}
    for name in dict.fromkeys(name for entry in entries for name in order[entry]):
        members.setdefault(whose[name], []).append(name)
    leads = {who: next((name for name in group if name in entries), group[-1]) for who, group in members.items()}
    made = {}
    for who, group in members.items():
        needs = dict.fromkeys(leads[whose[used]] for name in group for used in uses[name])
        made[leads[who]] = Bundle(leads[who], tuple(group), tuple(one for one in needs if one != leads[who]))
    return made


def needed(folder: Path, name: str) -> list[str]:
    """The bundles that a page has to have for one of them, that one last."""
    found = bundles(folder)
    return _reached({each.name: list(each.needs) for each in found.values()}, name)


@cache
def _texts(folder: Path) -> dict[str, str]:
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.js"))}


def _later(texts: dict[str, str]) -> set[str]:
    """What is asked for by `import()`."""
    return {found[1] for text in texts.values() for found in _LATER.finditer(text)}


def _given(text: str) -> list[str]:
    """The names that a module exports."""
    return [found[1] for found in _EXPORT.finditer(text)]


def _reached(uses: dict[str, list[str]], entry: str) -> list[str]:
    """A module and all that it imports, in the order in which a browser runs them."""
    found: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"{name}.js imports itself, by {' and '.join(above)}")
        if name not in found:
            for used in uses[name]:
                visit(used, (*above, name))
            found.append(name)

    visit(entry, ())
    return found


def _lines(folder: Path, bundle: Bundle) -> Iterator[str]:
    texts, others = _texts(folder), bundles(folder)
    uses = {found[2] for name in bundle.modules for found in _IMPORT.finditer(texts[name])}
    for other in bundle.needs:
        taken = ", ".join(f"{name} as ${name}" for name in others[other].modules if name in uses)
        yield f"import {{ {taken} }} from './{other}.js';" if taken else f"import './{other}.js';"
    for name in bundle.modules:
        yield f"const ${name} = (() => {{ // {name}.js"
        yield _inside(name, texts[name])
        yield "})();"
    yield f"export {{ {', '.join(f'${name} as {name}' for name in bundle.modules)} }};"
    if given := _given(texts[bundle.name]) if bundle.name in _later(texts) else []:
        yield f"export const {{ {', '.join(given)} }} = ${bundle.name};"


def _inside(name: str, text: str) -> str:
    """The text of a module as the inside of a function that returns what it exports. Lines keep their distance."""

    def taken(found: re.Match[str]) -> str:
        if found[1] is None:
            return ""
        return f"const {{{found[1].replace(' as ', ': ')}}} = ${found[2]};"

    given = _given(text)
    text = _EXPORT.sub("", _IMPORT.sub(taken, text))
    if odd := _UNKNOWN.search(text):
        raise ValueError(f"{name}.js: a bundle cannot keep what this means: {odd[0]}")
    return f"{text.rstrip()}\nreturn {{ {', '.join(given)} }};" if given else text.rstrip()
