"""A list of objects as a table: some rows at a time, in any order, with the JSON index of each. Knows no session.

Everything is capped, as in a tree: rows, columns and lengths are the peer's choice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from app.core.figures import grouped
from app.core.json import pointer as pointers
from app.core.json import tables
from app.core.json.tables import Table
from app.web.door.root import at
from app.web.kit.format import plural
from app.web.kit.html import ICONS, Html, esc, esc_exact, markup

ROWS: Final = 100
"""Rows in a card at first;"""
MORE: Final = 500
"""rows that come with one press."""
COLUMNS: Final = 12
"""Columns before the rest is asked for."""
_CELL = 120
"""Characters of one cell; the rest is in the tree and in what is copied."""
_BESIDE = 60
_LITERALS = frozenset({"", "true", "false", "null"})
_STEPS = (24, 32, 40, 48, 56, 64, 72, 80)
"""Widths that the style knows, in rem: a table that fits has its head stay in sight, a wider one scrolls sideways."""


@dataclass(slots=True, frozen=True)
class Order:
    """In which order rows are shown, from which one on, and how many columns."""

    by: str | None = None
    descending: bool = False
    offset: int = 0
    wide: bool = False
    """Every column."""


def _icon(name: str) -> str:
    return f'<svg class="i" aria-hidden="true"><use href="{esc(at(ICONS))}#{esc(name)}"/></svg>'


def _cut(text: str) -> str:
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def _cell(value: Any) -> tuple[str, str]:
    """What stands in a cell as text, and its class."""
    if isinstance(value, str):
        if _ambiguous(value[:_CELL]):
            return json.dumps(value[:_CELL], ensure_ascii=False), "js"
        return _cut(value), "nm" if " " in value else ""
    if isinstance(value, dict | list):
        text = json.dumps(_head(value), ensure_ascii=False, default=str)
        more = f" … {plural(len(value), 'member' if isinstance(value, dict) else 'item')}" if len(value) > 3 else ""
        return (text if len(text) <= 60 else text[:59] + "…") + more, "jc"
    if value is None or isinstance(value, bool):
        return json.dumps(value), "jb"
    return str(value)[:_CELL], ""


def _ambiguous(text: str) -> bool:
    """Whether a text would be read as something else, or not be seen at all: it keeps its quotes."""
    if text in _LITERALS or text != text.strip():
        return True
    try:
        float(text if text[:1] in "-0123456789" else "a word")
    except ValueError:
        return False
    return True


def _head(value: Any, depth: int = 0) -> Any:
    """The beginning of a branch, small enough to be written on a line."""
    if isinstance(value, str):
        return value[:40]
    if isinstance(value, dict):
        return {key[:40]: _head(value[key], depth + 1) for key in list(value)[:3]} if depth < 2 else {}
    if isinstance(value, list):
        return [_head(one, depth + 1) for one in value[:3]] if depth < 2 else []
    return value


class _Writer:
    def __init__(self, table: Table, order: Order, marks: Collection[str], most: int) -> None:
        self.table, self.order, self.marks = table, order, frozenset(marks)
        self.columns = table.columns if order.wide else table.columns[:COLUMNS]
        places = tables.ordered(table.rows, order.by, descending=order.descending)
        self.places = places[order.offset : order.offset + most]
        self.left = max(0, len(places) - order.offset - most)
        self.numeric = {one: tables.numeric(table.rows[at].get(one) for at in self.places) for one in self.columns}
        self.width = {one: len(one) + 3 for one in self.columns}

    def row(self, place: int) -> str:
        row, out = self.table.rows[place], [f'<tr data-k="{place:d}"><td class="num ix">{place:d}</td>']
        for name in self.columns:
            if name not in row:
                out.append("<td></td>")
                continue
            words, kind = _cell(row[name])
            self.width[name] = max(self.width[name], min(len(words), 42))
            kinds = [kind, "num" if self.numeric[name] else "", "zero" if row[name] == 0 and not kind else ""]
            where = f"/{place}/{pointers.escape(name)}" if self.marks else ""
            found = where and any(one == where or one.startswith(f"{where}/") for one in self.marks)
            mark = f' {_icon("must")}<span class="sr">finding</span>' if found else ""
            names = " ".join(filter(None, [*kinds, "jh" if found else ""]))
            held = f' class="{esc(names)}"' if names else ""
            out.append(f"<td{held}>{esc(words)}{mark}</td>")
        out.append("</tr>")
        return "".join(out)

    def head(self, ident: str) -> Html:
        out: list[Html] = []
        for place, name in enumerate(self.columns):
            here = self.order.by == name
            way = ("descending" if self.order.descending else "ascending") if here else ""
            said = f' aria-sort="{esc(way)}"' if here else ""
            icon = _icon("down" if self.order.descending else "up") if here else ""
            number = ' class="num"' if self.numeric[name] else ""
            cell = (
                f'<th scope="col" data-k="{esc_exact(pointers.escape(name))}"{number}{said}>'
                f'<button type="button" id="{esc(ident)}-by-{place:d}" data-sort>{esc(name[:80])}{icon}</button></th>'
            )
            out.append(Markup(cell))
        return Markup(f'<thead><tr><th scope="col" class="num ix">#</th>{markup(out)}</tr></thead>')

    def foot(self) -> str:
        hidden, rows, more = len(self.table.columns) - len(self.columns), "", ""
        if hidden:
            more = f'<button type="button" class="linkish" data-columns>+ {plural(hidden, "column")}</button>'
        if self.left:
            begin, step = self.order.offset + len(self.places), min(MORE, self.left)
            rows = (
                f'<button type="button" class="linkish" data-rows="{begin:d}">Show {grouped(step)} more of '
                f"{grouped(self.left)}</button>"
            )
        if not more and not rows:
            return ""
        return f'<tfoot><tr><td colspan="{len(self.columns) + 1:d}">{rows} {more}</td></tr></tfoot>'

    @property
    def fits(self) -> int:
        """The width that it needs in rem, as a step that the style knows; 0 when it is wider than any."""
        need = (sum(self.width.values()) * 7.4 + 22 * len(self.width) + 60) / 16
        return next((step for step in _STEPS if need <= step), 0)


def scalar(value: Any) -> Html:
    """A scalar on a line, as it stands in JSON."""
    kind = "js" if isinstance(value, str) else "jb" if value is None or isinstance(value, bool) else "jn"
    text = json.dumps(value[:_BESIDE], ensure_ascii=False) if isinstance(value, str) else None
    if text is None:
        text = json.dumps(value) if kind == "jb" else "{}" if value == {} else "[]" if value == [] else str(value)
    more = "…" if isinstance(value, str) and len(value) > _BESIDE else ""
    return Markup(f'<code class="{kind}">{esc(text[:200])}{more}</code>')


def in_short(value: Any) -> Html:
    """Any value on a line: a scalar as it stands, of a branch the beginning."""
    if not isinstance(value, dict | list) or not value:
        return scalar(value)
    text = json.dumps(_head(value), ensure_ascii=False, default=str)
    more = "…" if len(text) > _BESIDE or len(value) > 3 else ""
    return Markup(f'<code class="js">{esc(text[:_BESIDE])}{more}</code>')


def beside(table: Table) -> Html:
    """Where the list stands, how large it is, and what stands beside it."""
    rest = markup(Markup(f"<span><code>{esc(name[:80])}</code> {scalar(one)}</span>") for name, one in table.beside)
    line = '<span class="sep"></span>' if table.beside else ""
    return Markup(
        f'<div class="outside" hx-ignore><span class="path"><code>{esc(table.pointer[:200] or "/")}</code></span>'
        f"<span>{plural(len(table.rows), 'row')}, {plural(len(table.columns), 'column')}</span>{line}{rest}</div>"
    )


def drawn(
    table: Table,
    ident: str,
    source: str,
    *,
    order: Order | None = None,
    marks: Iterable[str] = (),
    label: str = "Result",
    most: int = ROWS,
) -> Html:
    """The table. `ident` is its id, `source` the address that gives it in another order, or more of it."""
    inside = [one.removeprefix(table.pointer) for one in marks if one.startswith(f"{table.pointer}/")]
    writer = _Writer(table, order or Order(), inside, most)
    rows = "".join(writer.row(place) for place in writer.places)
    return Markup(
        f'<div class="tbl" id="{esc(ident)}" data-w="{writer.fits:d}" data-at="{esc_exact(table.pointer)}" '
        f'data-tree="{esc(at(source))}"{" data-wide" if writer.order.wide else ""} tabindex="0" role="group" '
        f'aria-label="{esc(label)} as a table" hx-ignore><table class="data">{writer.head(ident)}'
        f"<tbody>{rows}</tbody>{writer.foot()}</table></div>"
    )
