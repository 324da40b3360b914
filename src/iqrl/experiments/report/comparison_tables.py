"""Comparisons of methods as tables and as sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from iqrl.diagnostics.text import count, listing, return_text
from iqrl.experiments.report.arrangement import size_name, unique
from iqrl.experiments.report.cells import MEASURED
from iqrl.experiments.report.comparisons import (
    ABOVE,
    APART,
    BELOW,
    LEVEL,
    CellDifference,
    Comparison,
    Difference,
    Standing,
    rank,
)
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table
from iqrl.statistics.intervals import Interval
from iqrl.statistics.significance import MOST_SPLITS

QUESTION = "Which differences are real?"
ALL = "all cells"
LEVEL_TEXT = f"{LEVEL:g}".removeprefix("0")
MARK = "*"
MOST_NAMED = 4
"""cells that are left out and named; of more, the number is given"""


# Sentences


def headlines(comparisons: Sequence[Comparison]) -> list[str]:
    """A sentence per variant: which methods the reference is told apart from."""
    return [_headline(one, named=len(comparisons) > 1) for one in comparisons if one.overall]


def _headline(comparison: Comparison, named: bool) -> str:
    over_all = [one for one in comparison.overall if one.buffer_size is None]
    parts = []
    for place, words in ((ABOVE, "above"), (BELOW, "below"), (APART, "not told apart from")):
        rivals = [one.rival for one in over_all if rank(one) == place]
        parts += [f"{words} {listing(rivals)}"] if rivals else []
    start = f"{variant_name(comparison)}: over" if named else "Over"
    cells = count(max(one.cells for one in over_all), "cell")
    return f"{start} {cells}, {comparison.reference} is {'; '.join(parts)}."


def notes(comparisons: Sequence[Comparison]) -> list[str]:
    """What the tables leave out. A note on every variant is given once; others name their variants."""
    found = [(one, note) for one in comparisons for note in _notes(one)]
    texts = unique(note for _, note in found)
    variants = {text: [variant_name(one) for one, note in found if note == text] for text in texts}
    is_general = lambda text: len(variants[text]) == len(comparisons)
    return [text if is_general(text) else f"{listing(variants[text])}: {text}" for text in texts]


def _notes(comparison: Comparison) -> list[str]:
    notes = []
    if comparison.left_out:
        named = comparison.left_out[:MOST_NAMED]
        more = len(comparison.left_out) - len(named)
        named += [f"{more:,} more"] if more else []
        notes.append(f"Left out, having fewer than two seeds with a known return: {listing(named)}.")
    if comparison.unscaled:
        notes.append(f"No scale is known for {listing(comparison.unscaled)}: left out of what is normalised.")
    if comparison.too_few_seeds:
        tests, least = len(comparison.cells), min(one.smallest for one in comparison.cells)
        notes.append(
            f"So few seeds give no p below {p_text(least)}, and the least of {tests:,} must be below "
            f"{p_text(LEVEL / tests)} to hold once it is corrected: no single cell can; the test over all cells may."
        )
    return notes


def variant_name(comparison: Comparison) -> str:
    return comparison.variant or MEASURED


def scope_name(buffer_size: int | None) -> str:
    return ALL if buffer_size is None else size_name(buffer_size)


# Tables


def improvement_table(comparisons: Sequence[Comparison]) -> Table:
    """The reference against each rival, over all cells and per buffer size."""
    references = unique(one.reference for one in comparisons)
    name = references[0] if len(references) == 1 else "reference"
    groups = [variant_name(one) + (f" ({one.reference})" if len(references) > 1 else "") for one in comparisons]
    by_group = [{(one.buffer_size, one.rival): one for one in comparison.overall} for comparison in comparisons]
    caption = (
        f"P: how likely a run of {name} has a larger area under the curve than a run of the other method in the same "
        f"cell, averaged over cells, with its 95% bootstrap interval; one half is no difference. p: two-sided "
        f"permutation test within cells, corrected for the number of methods (Holm); bold below {LEVEL_TEXT}"
    )
    return Table(
        title=f"Probability of improvement of {name} over",
        caption=caption,
        columns=_grouped_columns(groups, ["P [95%]", "p"]),
        sections=_sections(by_group, lambda one, most: [_improvement_cell(one, most), _p_cell(one.adjusted)]),
    )


def standing_table(comparisons: Sequence[Comparison]) -> Table:
    """Each method on one scale, over all cells and per buffer size."""
    by_group = [{(one.buffer_size, one.method): one for one in comparison.standings} for comparison in comparisons]
    caption = (
        "Interquartile mean (the middle half of all runs) of final and area under the curve, each task on its own "
        "scale: 0 is the worst return of the task, 1 a good one; with 95% bootstrap intervals stratified by cell"
    )
    return Table(
        title="Normalised scores",
        caption=caption,
        columns=_grouped_columns([variant_name(one) for one in comparisons], ["final [95%]", "AUC [95%]"]),
        sections=_sections(by_group, _standing_cells),
    )


def cell_table(comparison: Comparison) -> Table:
    """The reference against each rival in every cell."""
    caption = (
        f"Area under the curve, {comparison.reference} minus the other method. p: permutation test of the seeds "
        f"(exact up to {MOST_SPLITS:,} splits), {MARK} below {LEVEL_TEXT}; corrected (Holm) for the "
        f"{count(len(comparison.cells), 'test')} of this table, bold below {LEVEL_TEXT}. P: as above, within the cell"
    )
    sections = [
        Section(
            name=cell.text,
            rows=[Row(name=one.rival, cells=_difference_cells(one)) for one in comparison.cells if one.cell == cell],
        )
        for cell in unique(one.cell for one in comparison.cells)
    ]
    title = f"Cell by cell: {comparison.reference} against each method"
    title += f", {comparison.variant}" if comparison.variant else ""
    columns = _grouped_columns([""], ["difference", "p", "p corrected", "P [95%]"])
    return Table(title=title, caption=caption, columns=columns, sections=sections)


def _grouped_columns(groups: Sequence[str], names: Sequence[str]) -> list[Column]:
    """The same columns in every group; a group that stands alone needs no name."""
    return [Column(name=name, group=group if len(groups) > 1 else "") for group in groups for name in names]


Key = tuple[int | None, str]
"""buffer size and method"""


def _sections(by_group: Sequence[dict[Key, Any]], cells_of: Callable[[Any, int], list[Cell]]) -> list[Section]:
    """A section per buffer size, a row per method; empty where a variant has none.

    `by_group` has what to show in each group of columns; `cells_of` makes two cells of it, given how many cells of the
    study the others have.
    """
    keys = unique(key for group in by_group for key in group)
    sections = []
    for size in unique(size for size, _ in keys):
        most = [max((one.cells for (at, _), one in group.items() if at == size), default=0) for group in by_group]
        rows = []
        for name in unique(name for at, name in keys if at == size):
            found = [(group.get((size, name)), cells) for group, cells in zip(by_group, most, strict=True)]
            parts = [cells_of(one, cells) if one else [Cell(), Cell()] for one, cells in found]
            rows.append(Row(name=name, cells=[cell for part in parts for cell in part]))
        sections.append(Section(name=scope_name(size), rows=rows))
    return sections


def _standing_cells(one: Standing, most: int) -> list[Cell]:
    final = _interval_text(one.final) + _fewer_cells_text(one, most)
    return [Cell(text=final), Cell(text=_interval_text(one.auc))]


def _improvement_cell(one: Difference, most: int) -> Cell:
    text = _interval_text(one.improvement) + _fewer_cells_text(one, most)
    return Cell(text=text, strong=one.adjusted < LEVEL)


def _fewer_cells_text(one: Difference | Standing, most: int) -> str:
    """A method that lacks cells others have: its number is not of the same cells."""
    return f" ({one.cells} of {most} cells)" if one.cells < most else ""


def _difference_cells(one: CellDifference) -> list[Cell]:
    mark = f" {MARK}" if one.p < LEVEL else ""
    sign = "+" if one.difference > 0 else ""
    return [
        Cell(text=f"{sign}{return_text(one.difference)}", strong=one.adjusted < LEVEL),
        Cell(text=p_text(one.p) + mark),
        _p_cell(one.adjusted),
        Cell(text=_interval_text(one.improvement)),
    ]


def _p_cell(p: float) -> Cell:
    return Cell(text=p_text(p), strong=p < LEVEL)


def _interval_text(interval: Interval) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*interval)


def p_text(p: float) -> str:
    """
    >>> p_text(0.00794), p_text(0.25), p_text(0.00001), p_text(1.0)
    ('.0079', '.250', '<.0001', '1')
    """
    if p < 0.0001:
        return "<.0001"
    return "1" if p > 0.9995 else f"{p:.{4 if p < 0.01 else 3}f}".removeprefix("0")
