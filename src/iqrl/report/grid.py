"""The two tables of a study: the highest returns beside the paper's, and finals and areas with their intervals."""

from __future__ import annotations

from typing import NamedTuple

from iqrl.explain.words import return_text
from iqrl.report.arrangement import Place, Placed, arranged, size_name, unique
from iqrl.report.cells import Cell, cells_of
from iqrl.report.verdicts import ABOVE, AS_PRINTED, BELOW
from iqrl.statistics.bootstrap import Interval
from iqrl.studies.results import StudyResults

PAPER, MEASURED = "paper", "measured"
NOT_RUN, NO_EPISODE = "", "none"


class Column(NamedTuple):
    buffer_size: int | None
    variant: str | None
    """None: the paper's numbers"""

    @property
    def group(self) -> str:
        return "" if self.buffer_size is None else size_name(self.buffer_size)

    @property
    def name(self) -> str:
        return PAPER if self.variant is None else self.variant or MEASURED


class Entry(NamedTuple):
    text: str
    best: bool
    """none of the same column and task is higher, as far as it is written"""
    cell: Cell | None
    """what was measured; None in a column of the paper, and where there is no run"""


class Row(NamedTuple):
    task: str
    label: str
    entries: list[Entry]


class Grid(NamedTuple):
    columns: list[Column]
    rows: list[Row]


class Detail(NamedTuple):
    """A run in the second table."""

    task: str
    group: str
    label: str
    variant: str
    final: str
    auc: str
    seeds: str


Found = list[tuple[Placed, Cell]]


def placed_cells(study: StudyResults) -> Found:
    """The cells of a study in the order of its tables."""
    cell_of_run = {id(cell.run): cell for cell in cells_of(study)}
    return [(placed, cell_of_run[id(placed.run)]) for placed in arranged(study)]


def highest_grid(found: Found) -> Grid:
    """A row per task and line, a column per buffer size for the paper, the runs and each variant of them."""
    columns = _columns(found)
    rows: list[Row] = []
    for task in unique(placed.place.task for placed, _ in found):
        rows += _rows_of(task, [(placed, cell) for placed, cell in found if placed.place.task == task], columns)
    return Grid(columns, rows)


def grids(found: Found) -> list[Grid]:
    """One grid; where there are variants, one per buffer size, each with as many columns as can be read at once."""
    if len(unique(placed.variant for placed, _ in found)) < 2:
        return [highest_grid(found)]
    sizes = sorted({placed.place.buffer_size for placed, _ in found}, key=lambda size: size or 0)
    return [highest_grid([pair for pair in found if pair[0].place.buffer_size == size]) for size in sizes]


def details(found: Found) -> list[Detail]:
    """A line per run: final and area under the curve with their intervals, and every seed's final."""
    return [
        Detail(
            task=placed.place.task,
            group=Column(placed.place.buffer_size, "").group,
            label=placed.label,
            variant=placed.variant,
            final=interval_text(cell.final, cell),
            auc=interval_text(cell.auc, cell),
            seeds=seeds_text(cell),
        )
        for placed, cell in found
    ]


def verdict_counts(found: Found) -> dict[str, int]:
    """How many cells have which verdict, variants apart if they are not all there is; empty without printed numbers."""
    plain = [pair for pair in found if not pair[0].variant] or found
    words = [cell.verdict.word for _, cell in plain if cell.verdict]
    return {word: words.count(word) for word in (AS_PRINTED, ABOVE, BELOW)} if words else {}


def interval_text(interval: Interval | None, cell: Cell) -> str:
    """The value and its interval, which takes two seeds at least."""
    if interval is None:
        return NO_EPISODE
    value, low, high = map(return_text, interval)
    several = sum(final is not None for final in cell.finals) > 1
    return f"{value} [{low}, {high}]" if several else value


def seeds_text(cell: Cell) -> str:
    return ", ".join(NO_EPISODE if final is None else return_text(final) for final in cell.finals)


def _columns(found: Found) -> list[Column]:
    """The paper's first, the runs without a variant before those with one."""
    columns = []
    for size in sorted({placed.place.buffer_size for placed, _ in found}, key=lambda size: size or 0):
        here = [(placed, cell) for placed, cell in found if placed.place.buffer_size == size]
        if any(cell.printed is not None for _, cell in here):
            columns.append(Column(size, None))
        variants = unique(placed.variant for placed, _ in here)
        columns += [Column(size, variant) for variant in sorted(variants, key=bool)]
    return columns


def _rows_of(task: str, found: Found, columns: list[Column]) -> list[Row]:
    labels = unique(placed.label for placed, _ in found)
    at = {(placed.place, placed.variant, placed.label): cell for placed, cell in found}
    by_column = [[_looked_up(at, task, column, label) for label in labels] for column in columns]
    entries = [_entries(column, cells) for column, cells in zip(columns, by_column, strict=True)]
    return [Row(task, label, [column[i] for column in entries]) for i, label in enumerate(labels)]


def _looked_up(at: dict, task: str, column: Column, label: str) -> Cell | None:
    """The paper's number is that of any variant: they share task, method and buffer size."""
    place = Place(task, column.buffer_size)
    if column.variant is not None:
        return at.get((place, column.variant, label))
    return next((cell for (where, _, what), cell in at.items() if where == place and what == label), None)


def _entries(column: Column, cells: list[Cell | None]) -> list[Entry]:
    from_paper = column.variant is None
    values = [cell and (cell.printed if from_paper else cell.highest) for cell in cells]
    known = [round(value, 1) for value in values if value is not None]
    entries = []
    for cell, value in zip(cells, values, strict=True):
        missing = NOT_RUN if cell is None or from_paper else NO_EPISODE
        best = value is not None and len(known) > 1 and round(value, 1) == max(known)
        entries.append(Entry(missing if value is None else return_text(value), best, None if from_paper else cell))
    return entries


def unfinished_text(study: StudyResults) -> str:
    """What is missing, in a sentence; empty where nothing is."""
    are = "runs are" if study.unfinished > 1 else "run is"
    return f"{study.unfinished:,} planned {are} not finished and left out." if study.unfinished else ""
