"""The folding view of a JSON value, its branches on demand, and a search in it.

Everything is capped: depth, nodes and lengths are the peer's choice. Knows no session.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from markupsafe import Markup

from app.core.figures import grouped
from app.core.json import pointer as pointers
from app.secrecy import MASK
from app.web.door.root import at
from app.web.kit.format import plural
from app.web.kit.html import Html, esc, esc_exact, markup

MAX_NODES: Final = 2_000
MAX_STRING: Final = 4_000
MAX_DEPTH: Final = 60
MAX_KEY: Final = 500
"""A longer key is shown by its beginning, and addressed by its place."""
LINES: Final = 400
"""A tree with more lines than this scrolls in a box of its own."""
_SHORT = 72


def _scalar(value: Any, max_string: int) -> str:
    if isinstance(value, str):
        more, look = "", "js mask" if value == MASK else "js"  # a recording shows that by a word
        if len(value) > max_string:
            more = f'<span class="jc"> … {grouped(len(value) - max_string)} more characters</span>'
            value = value[:max_string]
        return f'<span class="{look}">{esc(json.dumps(value, ensure_ascii=False))}</span>{more}'
    if value is None or isinstance(value, bool):
        return f'<span class="jb">{esc(json.dumps(value))}</span>'
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return f'<span class="jn">{esc(str(value)[:max_string])}</span>'


def _on_one_line(value: list[Any]) -> bool:
    width = 0
    for item in value:
        if isinstance(item, dict | list):
            return False
        width += len(item) + 4 if isinstance(item, str) else 8
        if width > _SHORT:
            return False
    return True


def step(name: str, place: int | None = None) -> str:
    """One part of a JSON Pointer. With its `place` among its siblings, a very long name is `~@` and that number: no
    name is written so, and `at_pointer` knows it."""
    if place is not None and len(name) > MAX_KEY:
        return f"~@{place}"
    return pointers.escape(name)


def _key(name: str) -> str:
    more = f'<span class="jc"> … {grouped(len(name) - MAX_KEY)} more characters</span>' if len(name) > MAX_KEY else ""
    return f'<span class="jk">{esc(name[:MAX_KEY])}{more}</span>: '


class _Tree:
    """Writes one value as nested `<details>`; stops at the caps and says so.

    A lazy one can be asked for the rest: every line says the last part of its pointer, a branch beyond the caps is
    empty until it is opened, and a button stands for the members that follow.
    """

    def __init__(
        self, open_depth: int, max_nodes: int, max_string: int, marks: frozenset[str], lazy: bool = False
    ) -> None:
        self.open_depth, self.left, self.max_string, self.marks = open_depth, max_nodes, max_string, marks
        self.lazy = lazy
        self.cut = self.lines = 0
        self.out: list[str] = []

    @property
    def html(self) -> Markup:
        """What was written so far."""
        return Markup("".join(self.out))

    def write(self, key: str | None, value: Any, depth: int, pointer: str, part: str = "") -> None:
        self.left -= 1
        self.lines += 1
        label = _key(key) if key is not None else ""
        marked = " jh" if pointer in self.marks else ""
        at = f' data-k="{esc_exact(part)}"' if self.lazy and depth else ""
        if isinstance(value, list) and value and _on_one_line(value):
            self.left -= len(value)
            inside = ", ".join(_scalar(item, self.max_string) for item in value)
            self.out.append(f'<div class="l{marked}"{at}>{label}[{inside}]</div>')
        elif isinstance(value, dict | list) and value:
            self._branch(Markup(label), value, depth, pointer, Markup(marked), Markup(at))
        else:
            self.out.append(f'<div class="l{marked}"{at}>{label}{_scalar(value, self.max_string)}</div>')

    def _branch(
        self, label: Html, value: dict[str, Any] | list[Any], depth: int, pointer: str, marked: Html, at: Html
    ) -> None:
        begin, end, word = ("{", "}", "member") if isinstance(value, dict) else ("[", "]", "item")
        beyond = depth >= MAX_DEPTH or self.left <= 0
        if beyond:
            self.cut += 1
        if beyond and not self.lazy:
            self.out.append(
                f'<div class="l{marked}">{label}{begin}<span class="jc"> {plural(len(value), word)}, not shown '
                f"</span>{end}</div>"
            )
            return
        opened = " data-lazy" if beyond else " open" if depth < self.open_depth else ""
        self.lines += 2
        self.out.append(
            f'<details{opened}{at}><summary class="{marked}" tabindex="-1">{label}{begin}<span class="jc"> '
            f"{plural(len(value), word)} {end}</span></summary><div>"
        )
        if not beyond:
            self.members(value, depth, pointer)
        self.out.append(f'</div><div class="l jz">{end}</div></details>')

    def members(
        self, value: dict[str, Any] | list[Any], depth: int, pointer: str, offset: int = 0, until: int = 0
    ) -> None:
        """The members of a branch, from one of them on, before `until` when that is given."""
        word = "member" if isinstance(value, dict) else "item"
        end = until or len(value)
        pairs: Iterable[tuple[str, Any]] = (
            islice(value.items(), offset, end)
            if isinstance(value, dict)
            else ((str(offset + index), item) for index, item in enumerate(islice(value, offset, end)))
        )
        for written, (name, item) in enumerate(pairs):
            if self.left <= 0 and written >= 3:
                self.more(end - offset - written, offset + written, word, until)
                break
            part = step(name, offset + written)
            self.write(name if isinstance(value, dict) else None, item, depth + 1, f"{pointer}/{part}", part)

    def more(self, rest: int, following: int, word: str, until: int) -> None:
        """A line that stands for members which are not written: in a lazy tree a button that fetches them."""
        self.cut += rest
        said = f"… {plural(rest, 'more ' + word, 'more ' + word + 's')}"
        end = f' data-until="{until:d}"' if until else ""
        button = (
            f'<button type="button" class="l jc" tabindex="-1" data-more="{following:d}"{end}>'
            f"{said}, show the next</button>"
        )
        self.out.append(button if self.lazy else f'<div class="l jc">{said}</div>')


def _framed(writer: _Tree, label: str, source: str) -> Markup:
    """What was written, as an element; `source` is the address that gives the rest."""
    inside = writer.html
    asks = f' data-tree="{esc(at(source))}"' if source else ""
    tall = " tall" if writer.lines > LINES else ""
    return Markup(
        f'<div class="json{tall}" role="group" aria-label="{esc(label)}" tabindex="0"{asks} hx-ignore>{inside}</div>'
    )


def tree(
    value: Any,
    *,
    open_depth: int = 2,
    max_nodes: int = MAX_NODES,
    max_string: int = MAX_STRING,
    marks: Iterable[str] = (),
    label: str = "JSON",
    source: str = "",
) -> Markup:
    """A JSON value as a folding view: classes only, so it passes a strict style-src; `marks` are pointers.

    `source` is the address that gives the branches which are not written here.
    """
    writer = _Tree(open_depth, max_nodes, max_string, frozenset(marks), lazy=bool(source))
    writer.write(None, value, 0, "")
    cut = ""
    if writer.cut and not source:
        cut = '<p class="s dim">Too large to show whole; the raw text has the rest.</p>'
    return _framed(writer, label, source) + Markup(cut)


def buttons(value: dict[str, Any] | list[Any]) -> Markup:
    """How much is in a value, and the buttons that fold all of its tree."""
    words = plural(len(value), "member" if isinstance(value, dict) else "item")
    return Markup(
        f'<div class="outside"><span>{words}</span><button type="button" class="linkish" data-fold="open">Expand all'
        '</button><button type="button" class="linkish" data-fold="shut">Collapse all</button></div>'
    )


def named(name: str, inside: Markup) -> Markup:
    """A tree with its name above it."""
    return Markup(f'<div class="outside"><span class="path"><code>{esc(name[:200])}</code></span></div>') + inside


def branch(value: Any, offset: int, *, max_nodes: int = 1_000, max_string: int = MAX_STRING, until: int = 0) -> Markup:
    """The members of one branch of a lazy tree, from `offset` on; before `until`, when there are others from there."""
    writer = _Tree(2, max_nodes, max_string, frozenset(), lazy=True)
    if isinstance(value, dict | list):
        writer.members(value, 0, "", offset, until)
    return writer.html


def around(value: Any, part: str, offset: int, until: int, *, max_nodes: int = 200) -> Markup | None:
    """The members of a lazy branch around one of them, between `offset` and `until`: a button for those before it, some
    members, a button for those behind. None when it does not stand there."""
    place = place_of(value, part)
    end = min(until or len(value), len(value)) if isinstance(value, dict | list) else 0
    if place is None or not offset <= place < end:
        return None
    writer = _Tree(2, max_nodes, MAX_STRING, frozenset(), lazy=True)
    begin = max(offset, place - 3)
    if begin > offset:
        writer.more(begin - offset, offset, "member" if isinstance(value, dict) else "item", begin)
    writer.members(value, 0, "", begin, until)
    return writer.html


def place_of(value: Any, part: str) -> int | None:
    """Where a member stands among its siblings, by its part of a pointer."""
    if isinstance(value, list):
        return pointers.index(part, len(value))
    if not isinstance(value, dict):
        return None
    if part.startswith("~@"):
        return pointers.index(part[2:], len(value))
    name = pointers.unescape(part)
    return next((place for place, key in enumerate(value) if key == name), None)


def hits(found: Iterable[tuple[str, Any]]) -> Markup:
    """What a search found, each as a button that shows it where it stands."""
    said = markup(
        Markup(
            f'<li><button type="button" data-show="{esc_exact(pointer)}"><code>{esc(pointer[:200] or "/")}</code> '
            f"{_in_short(value)}</button></li>"
        )
        for pointer, value in found
    )
    return Markup(f'<ol class="hits" hx-ignore>{said}</ol>')


def _in_short(value: Any) -> str:
    if isinstance(value, dict | list) and value:
        return f'<span class="jc">{plural(len(value), "member" if isinstance(value, dict) else "item")}</span>'
    return _scalar(value, 120)


def at_pointer(value: Any, pointer: str) -> Any:
    """The value at a JSON Pointer. KeyError when there is none."""
    for part in pointer.split("/")[1:]:
        if isinstance(value, dict) and part.startswith("~@"):
            value = _at_place(value, part[2:])
        else:
            value = pointers.child(value, pointers.unescape(part))
    return value


def _at_place(value: dict[str, Any], place: str) -> Any:
    if (found := pointers.index(place, len(value))) is None:
        raise KeyError(place)
    return next(islice(value.values(), found, None))


def find(value: Any, text: str, limit: int = 50) -> list[tuple[str, Any]]:
    """Where a text stands in a value, as a key or inside a scalar; in the order of the value, the first `limit`."""
    wanted = text.lower()
    if not isinstance(value, dict | list):
        return [("", value)] if wanted in _words(value) else []
    found: list[tuple[str, Any]] = []
    open_at: list[Iterator[tuple[int, str | None, Any]]] = [_children(value)]
    path = [""]
    """The steps to where we are; pointers are put together for what is found only, as they can be long."""
    while open_at and len(found) < limit:
        for place, name, child in open_at[-1]:
            part = str(place) if name is None else step(name, place)
            inside = isinstance(child, dict | list)
            if (name is not None and wanted in name.lower()) or (not inside and wanted in _words(child)):
                found.append(("/".join([*path, part]), child))
            if inside:
                open_at.append(_children(child))
                path.append(part)
            if inside or len(found) == limit:
                break
        else:
            open_at.pop()
            path.pop()
    return found


def _children(value: dict[str, Any] | list[Any]) -> Iterator[tuple[int, str | None, Any]]:
    """The children of a container, each with its place, and in an object with its name."""
    if isinstance(value, list):
        return ((place, None, child) for place, child in enumerate(value))
    return ((place, name, child) for place, (name, child) in enumerate(value.items()))


def _words(scalar: Any) -> str:
    return scalar.lower() if isinstance(scalar, str) else json.dumps(scalar)
