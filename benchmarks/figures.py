"""Figures as they are told: a median with its spread, tables of them for people, the same as JSON for programs.

Takes measured numbers, gives text on standard output and a JSON file.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """One number measured several times, in the order of the rounds; at least once."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one; of an even number, the mean of the two in the middle."""
        return median(self.values)

    def ratio_to(self, other: "Figure") -> "Figure":
        """How many times the other, round by round: the two of a round had the same noise. Only the rounds that both have."""
        return Figure(tuple(mine / its for mine, its in zip(self.values, other.values, strict=False)))

    def __str__(self) -> str:
        if len(self.values) == 1:
            return f"{_short(self.median)} (once)"
        return f"{_short(self.median)} ({_short(min(self.values))} to {_short(max(self.values))})"


Cell = Figure | str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Figures under their columns. None is a cell that has no meaning, such as the ratio of something to itself."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def print_table(table: Table) -> None:
    """The table on standard output."""
    from rich.console import Console
    from rich.table import Table as RichTable

    shown = RichTable()
    for number, column in enumerate(table.columns):
        values = [row[number] for row in table.rows]
        shown.add_column(column, justify="left" if all(isinstance(value, str) for value in values) else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*map(_text, row))
    console = Console(width=150, highlight=False, markup=False)
    for part in ("", table.title, shown, *table.notes):
        console.print(part)


def write_json(path: Path, tables: Sequence[Table]) -> None:
    """All tables, each figure with its runs in the order of the rounds."""
    document = [
        {
            "title": table.title,
            "rows": [dict(zip(table.columns, map(_value, row), strict=True)) for row in table.rows],
            "notes": list(table.notes),
        }
        for table in tables
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def _text(cell: Cell) -> str:
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)


def _value(cell: Cell) -> object:
    if not isinstance(cell, Figure):
        return cell
    return {"median": cell.median, "min": min(cell.values), "max": max(cell.values), "runs": list(cell.values)}


def _short(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"
