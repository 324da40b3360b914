"""Comparisons of methods as tables of text, for the page and for Markdown, and in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from iqrl.explain.words import count, listing, return_text
from iqrl.report.arrangement import size_name, unique
from iqrl.report.comparisons import (
    ABOVE,
    APART,
    BELOW,
    LEVEL,
    CellDifference,
    Comparison,
    Difference,
    Standing,
    verdict_of,
)
from iqrl.report.grid import MEASURED
from iqrl.statistics.bootstrap import Interval
from iqrl.statistics.permutation import MOST_SPLITS

QUESTION = "Which differences are real?"
ALL = "all cells"
LEVEL_TEXT = f"{LEVEL:g}".removeprefix("0")
MARK = "*"
MOST_NAMED = 4
"""cells that are left out and named; of more, the number is said"""


class Text(NamedTuple):
    text: str = ""
    strong: bool = False


class Section(NamedTuple):
    name: str
    rows: list[tuple[str, list[Text]]]


class Sheet(NamedTuple):
    """Columns in groups of one width each; rows in sections."""

    title: str
    caption: str
    groups: list[str]
    columns: list[str]
    """of every group"""
    sections: list[Section]


# In words


def headlines(comparisons: Sequence[Comparison]) -> list[str]:
    """A sentence per variant: which methods the reference is told apart from."""
    return [_headline(one, named=len(comparisons) > 1) for one in comparisons if one.overall]


def _headline(comparison: Comparison, named: bool) -> str:
    over_all = [one for one in comparison.overall if one.buffer_size is None]
    parts = []
    for verdict, words in ((ABOVE, "above"), (BELOW, "below"), (APART, "not told apart from")):
        rivals = [one.rival for one in over_all if verdict_of(one) == verdict]
        parts += [f"{words} {listing(rivals)}"] if rivals else []
    start = f"{variant_name(comparison)}: over" if named else "Over"
    cells = count(max(one.cells for one in over_all), "cell")
    return f"{start} {cells}, {comparison.reference} is {'; '.join(parts)}."


def notes(comparisons: Sequence[Comparison]) -> list[str]:
    """What the tables do not show, and what they cannot."""
    found = [(one, note) for one in comparisons for note in _notes(one)]
    # What holds of every variant is said once.
    texts = unique(note for _, note in found)
    about = {text: [variant_name(one) for one, note in found if note == text] for text in texts}
    said_of_all = lambda text: len(about[text]) == len(comparisons)
    return [text if said_of_all(text) else f"{listing(about[text])}: {text}" for text in texts]


def _notes(comparison: Comparison) -> list[str]:
    notes = []
    if comparison.left_out:
        named = comparison.left_out[:MOST_NAMED]
        more = len(comparison.left_out) - len(named)
        named += [f"{more:,} more"] if more else []
        notes.append(f"Left out, having fewer than two seeds with a known return: {listing(named)}.")
    if comparison.unscaled:
        notes.append(f"No scale is known for {listing(comparison.unscaled)}: left out of what is normalised.")
    if comparison.none_can_hold:
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


# As tables


def improvement_sheet(comparisons: Sequence[Comparison]) -> Sheet:
    """The reference against each rival, over all cells and per buffer size."""
    references = unique(one.reference for one in comparisons)
    name = references[0] if len(references) == 1 else "reference"
    groups = [variant_name(one) + (f" ({one.reference})" if len(references) > 1 else "") for one in comparisons]
    tables = [{(one.buffer_size, one.rival): one for one in comparison.overall} for comparison in comparisons]
    caption = (
        f"P: how likely a run of {name} has a larger area under the curve than a run of the other method in the same "
        f"cell, averaged over cells, with its 95% bootstrap interval; one half is no difference. p: two-sided "
        f"permutation test within cells, corrected for the number of methods (Holm); bold below {LEVEL_TEXT}"
    )
    return Sheet(
        f"Probability of improvement of {name} over", caption, groups, ["P [95%]", "p"],
        _sections(tables, lambda one, most: [_share(one.improvement, one, most), _p(one.adjusted)]),
    )  # fmt: skip


def standing_sheet(comparisons: Sequence[Comparison]) -> Sheet:
    """Each method on one scale, over all cells and per buffer size."""
    tables = [{(one.buffer_size, one.method): one for one in comparison.standings} for comparison in comparisons]
    caption = (
        "Interquartile mean (the middle half of all runs) of final and area under the curve, each task on its own "
        "scale: 0 is the worst return of the task, 1 a good one; with 95% bootstrap intervals stratified by cell"
    )
    return Sheet(
        "Normalised scores", caption, [variant_name(one) for one in comparisons], ["final [95%]", "AUC [95%]"],
        _sections(tables, lambda one, most: [Text(_interval(one.final) + _fewer(one, most)), Text(_interval(one.auc))]),
    )  # fmt: skip


def cell_sheet(comparison: Comparison) -> Sheet:
    """The reference against each rival in every cell."""
    caption = (
        f"Area under the curve, {comparison.reference} minus the other method. p: permutation test of the seeds "
        f"(exact up to {MOST_SPLITS:,} splits), {MARK} below {LEVEL_TEXT}; corrected (Holm) for the "
        f"{count(len(comparison.cells), 'test')} of this table, bold below {LEVEL_TEXT}. P: as above, within the cell"
    )
    sections = [
        Section(cell.text, [(one.rival, _cell_texts(one)) for one in comparison.cells if one.cell == cell])
        for cell in unique(one.cell for one in comparison.cells)
    ]
    title = f"Cell by cell: {comparison.reference} against each method"
    title += f", {comparison.variant}" if comparison.variant else ""
    return Sheet(title, caption, [""], ["difference", "p", "p corrected", "P [95%]"], sections)


def _sections(tables: Sequence[dict], texts: Callable[..., list[Text]]) -> list[Section]:
    """A section per buffer size, a row per method; empty where a variant has none. `tables` has one per group."""
    keys = unique(key for table in tables for key in table)
    sections = []
    for size in unique(size for size, _ in keys):
        most = [max((one.cells for (at, _), one in table.items() if at == size), default=0) for table in tables]
        rows = []
        for name in unique(name for at, name in keys if at == size):
            found = [(table.get((size, name)), cells) for table, cells in zip(tables, most, strict=True)]
            rows.append((name, [it for one, cells in found for it in (texts(one, cells) if one else [Text()] * 2)]))
        sections.append(Section(scope_name(size), rows))
    return sections


def _share(interval: Interval, one: Difference, most: int) -> Text:
    return Text(_interval(interval) + _fewer(one, most), one.adjusted < LEVEL)


def _fewer(one: Difference | Standing, most: int) -> str:
    """Said of a method that lacks cells others have: its number is not of the same."""
    return f" ({one.cells} of {most} cells)" if one.cells < most else ""


def _cell_texts(one: CellDifference) -> list[Text]:
    mark = f" {MARK}" if one.p < LEVEL else ""
    sign = "+" if one.difference > 0 else ""
    difference, holds = f"{sign}{return_text(one.difference)}", one.adjusted < LEVEL
    return [Text(difference, holds), Text(p_text(one.p) + mark), _p(one.adjusted), Text(_interval(one.improvement))]


def _p(p: float) -> Text:
    return Text(p_text(p), p < LEVEL)


def _interval(interval: Interval) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*interval)


def p_text(p: float) -> str:
    """
    >>> p_text(0.00794), p_text(0.25), p_text(0.00001), p_text(1.0)
    ('.0079', '.250', '<.0001', '1')
    """
    if p < 0.0001:
        return "<.0001"
    return "1" if p > 0.9995 else f"{p:.{4 if p < 0.01 else 3}f}".removeprefix("0")
