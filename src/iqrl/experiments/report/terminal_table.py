"""A table that fits its terminal: headers and numbers are never cut.

Where the table is too wide, headers are broken between words; where that does not help, each row becomes a list.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

PADDING, LEAST_LABEL = 2, 12
"""columns between two columns of the table, and of its labels at least"""


def print_table(
    console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], colours: Sequence[str] = ()
) -> None:
    """The first column has labels, which may be broken; the others have numbers. `colours`: of the labels."""
    labels = [Text(row[0], colour) for row, colour in zip(rows, colours or [""] * len(rows), strict=True)]
    cells = [[row[i] for row in rows] for i in range(len(columns))]
    longest = [max(map(len, column), default=0) for column in cells]
    whole = [max(len(name), size) for name, size in zip(columns, longest, strict=True)]
    broken = [max(*map(len, name.split()), size) for name, size in zip(columns, longest, strict=True)]
    spaces = PADDING * len(columns)
    if sum(whole) + spaces <= console.width:
        _print_columns(console, title, columns, rows, labels, [None] * len(columns))
    elif (room := console.width - sum(broken[1:]) - spaces) >= min(LEAST_LABEL, whole[0]):
        _print_columns(console, title, columns, rows, labels, [min(room, whole[0]), *broken[1:]])
    else:
        _print_lists(console, title, columns, rows)


def _print_columns(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    labels: Sequence[Text],
    widths: Sequence[int | None],
) -> None:
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for i, (name, width) in enumerate(zip(columns, widths, strict=True)):
        table.add_column(name, justify="right" if i else "left", overflow="fold", width=width)
    for label, row in zip(labels, rows, strict=True):
        table.add_row(label, *map(Text, row[1:]))
    console.print(table)


def _print_lists(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(len, columns[1:]))
    console.print(Text(title, "italic"))
    for row in rows:
        console.print(Text(row[0], "bold"))
        for name, cell in zip(columns[1:], row[1:], strict=True):
            console.print(Text(f"  {name:{width}}  {cell}"))
