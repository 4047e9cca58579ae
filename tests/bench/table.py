"""Figures and the table they end in. Knows how to sum up and print, not how anything is measured."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Say = Callable[[str], None]
"""Tells the person who waits what is being measured now."""


@dataclass(slots=True, frozen=True)
class Row:
    """One figure. `ok` is None when it has no target."""

    what: str
    figure: str
    p95: str = ""
    ratio: str = ""
    target: str = ""
    ok: bool | None = None


@dataclass(slots=True)
class Part:
    """The rows of one section, and what a reader must know to judge them."""

    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, what: str, figure: str, *, p95: str = "", ratio: str = "") -> None:
        """A figure without a target."""
        self.rows.append(Row(what, figure, p95, ratio))

    def judge(self, what: str, figure: str, target: str, ok: bool, *, p95: str = "", ratio: str = "") -> None:
        """A figure and whether it met its target."""
        self.rows.append(Row(what, figure, p95, ratio, target, ok))


def p50(values: Sequence[float]) -> float:
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    """The smallest value that 95 % of the values do not exceed."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs"


def mb(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


def kib(size: float) -> str:
    return f"{size / 1024:.0f} KiB"


def times(value: float) -> str:
    return f"{value:.2f} ×"


_HEADS = ("", "figure", "p95", "ratio", "target", "")


def render(parts: Sequence[Part]) -> str:
    """All sections as one table of plain text, then the notes."""
    lines = [_cells(row) for part in parts for row in part.rows]
    widths = [max(len(line[column]) for line in [_HEADS, *lines]) for column in range(len(_HEADS))]
    for part in parts:
        widths[0] = max(widths[0], len(part.title))
    text = [_line(_HEADS, widths), "-" * (sum(widths) + 2 * len(widths))]
    for part in parts:
        text += ["", part.title.upper(), *(_line(_cells(row), widths) for row in part.rows)]
    notes = [f"  {part.title}: {note}" for part in parts for note in part.notes]
    if notes:
        text += ["", "Notes", *notes]
    over = [row for part in parts for row in part.rows if row.ok is False]
    judged = sum(row.ok is not None for part in parts for row in part.rows)
    text.append("")
    if over:
        text.append(f"!!! {len(over)} OF {judged} FIGURES ARE OVER THEIR TARGET:")
        text += [
            f"!!!   {row.what}: {row.ratio if '×' in row.target else row.figure}, not {row.target}" for row in over
        ]
    else:
        text.append(f"All {judged} figures with a target meet it.")
    return "\n".join(text)


def _cells(row: Row) -> tuple[str, ...]:
    mark = {None: "", True: "ok", False: "OVER"}[row.ok]
    return f"  {row.what}", row.figure, row.p95, row.ratio, row.target, mark


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if column in (0, 5) else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
