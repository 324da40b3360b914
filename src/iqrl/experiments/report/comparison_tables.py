"""Comparisons of methods as tables and as sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from iqrl.diagnostics.text import count, listing, return_text
from iqrl.experiments.report.arrangement import size_name, unique
from iqrl.experiments.report.cells import MEASURED, NO_SPREAD, interval_text
from iqrl.experiments.report.comparisons import (
    APART,
    BETTER,
    LEVEL,
    MEASURES,
    SUGGESTED,
    TOO_FEW,
    WORSE,
    CellDifference,
    Comparison,
    Difference,
    Measure,
    Standing,
    is_ahead,
    rank,
)
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table
from iqrl.statistics.intervals import Interval

QUESTION = "Which differences are real?"
ALL = "all cells"
LEVEL_TEXT = f"{LEVEL:g}".removeprefix("0")
MOST_NAMED = 4
"""cells that are left out and named; of more, the number is given"""


# Sentences


def headlines(comparisons: Sequence[Comparison]) -> list[str]:
    """A sentence per variant and measure: from which methods the reference differs, and by how much."""
    return [_headline(one, name, measure) for one in comparisons if one.overall for name, measure in MEASURES.items()]


def _headline(comparison: Comparison, name: str, measure: Measure) -> str:
    over_all = [one for one in comparison.overall if one.buffer_size is None and one.measure == name]
    words = {
        (BETTER, True): f"IT {measure.better} RIVALS",
        (WORSE, False): f"IT {measure.worse} RIVALS",
        (SUGGESTED, True): f"IT {measure.better} RIVALS, which the corrected test does not confirm",
        (SUGGESTED, False): f"IT {measure.worse} RIVALS, which the corrected test does not confirm",
        (APART, None): "IT shows no clear difference from RIVALS",
        (TOO_FEW, None): "IT has too few seeds to be tested against RIVALS",
    }
    parts = []
    for key, clause in words.items():
        rivals = [f"{one.rival} {_effect_note(one)}" for one in over_all if _place(one, comparison.tests) == key]
        subject = "it" if parts else comparison.reference
        parts += [clause.replace("IT", subject, 1).replace("RIVALS", listing(rivals))] if rivals else []
    start = measure.name[0].upper() + measure.name[1:] + (f", {comparison.variant}" if comparison.variant else "")
    cells = count(max(one.cells for one in over_all), "cell")
    scale = ", in percent of the range" if any(one.share for one in over_all) else ""
    return f"{start} ({cells}{scale}): {'; '.join(parts)}."


def _place(one: Difference, tests: int) -> tuple[str, bool | None]:
    """Where the reference stands, and whether it is ahead, where that is said."""
    place = rank(one, tests)
    if place in (BETTER, WORSE):
        return place, place == BETTER
    return place, is_ahead(one) if place == SUGGESTED else None


def _effect_note(one: Difference) -> str:
    """By how much and how often, since one does not follow from the other."""
    effect = _mean_text(one)
    return f"({f'{effect}, ' if effect else ''}P {one.improvement.value:.2f})"


def _mean_text(one: Difference) -> str:
    """In percent of the range, or in returns where no range is known."""
    if one.share:
        return interval_text(one.share, percent_text)
    return interval_text(one.effect, _signed_text) if one.effect else ""


def _signed_text(value: float) -> str:
    return f"{'+' if value > 0 else ''}{return_text(value)}"


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
    over_all = [one for one in comparison.overall if one.buffer_size is None]
    if over_all and all(one.smallest * comparison.tests > LEVEL for one in over_all):
        least = min(one.smallest for one in over_all)
        notes.append(
            f"So few seeds give no p below {p_text(least)}, and the least of the page's "
            f"{count(comparison.tests, 'test')} must be below {p_text(LEVEL / comparison.tests)} to hold once it is "
            f"corrected: read the intervals."
        )
    return notes


def variant_name(comparison: Comparison) -> str:
    return comparison.variant or MEASURED


def scope_name(buffer_size: int | None) -> str:
    return ALL if buffer_size is None else size_name(buffer_size)


# Tables


EFFECT, WINS = "difference [95%]", "P [95%]"


def improvement_tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """A table per variant: the reference against each rival, over all cells and per buffer size."""
    return [_improvement_table(one, first=i == 0) for i, one in enumerate(comparisons) if one.overall]


def _improvement_table(comparison: Comparison, first: bool) -> Table:
    name = comparison.reference
    caption = (
        f"Difference: {name} minus the other method, in percent of the task's range of returns, or in returns where no "
        f"range is known, averaged over cells, with its 95% bootstrap interval. P: how likely a run of {name} is "
        f"better than a run of the other method in the same cell; one half is no difference; for deterioration the run "
        f"that loses less is the better one. Where all runs of one side are better, the interval of P is exact "
        f"(Clopper–Pearson). p: two-sided permutation test of the difference, the seeds split within cells, corrected "
        f"(Holm) for all {comparison.tests:,} tests of this page; difference and p in bold where p is below "
        f"{LEVEL_TEXT}. The intervals are not corrected. Where difference and P disagree in sign, neither method is "
        f"better throughout: one wins less often, and by more. "
        f"{NO_SPREAD.capitalize()}: all seeds agree, which is not certainty"
    )
    keys = unique((one.buffer_size, one.rival) for one in comparison.overall)
    found = {(one.buffer_size, one.rival, one.measure): one for one in comparison.overall}
    sections = []
    for size in unique(size for size, _ in keys):
        most = max(one.cells for one in comparison.overall if one.buffer_size == size)
        rows = [
            Row(
                name=rival, cells=[it for name in MEASURES for it in _improvement_cells(found[size, rival, name], most)]
            )
            for at, rival in keys
            if at == size
        ]
        sections.append(Section(name=scope_name(size), rows=rows))
    title = f"{name} against each method" + (f", {variant_name(comparison)}" if comparison.variant else "")
    columns = _by_measure([EFFECT, WINS, "p"])
    return Table(title=title, caption=caption if first else "", columns=columns, sections=sections)


def standing_table(comparisons: Sequence[Comparison]) -> Table:
    """Each method on one scale, over all cells and per buffer size."""
    by_group = [{(one.buffer_size, one.method): one for one in comparison.standings} for comparison in comparisons]
    caption = (
        "Interquartile mean (the middle half of all runs) of final, AUC and deterioration, each task "
        "on its own scale: 0 is the worst return of the task, 1 a good one; with 95% bootstrap intervals stratified by "
        "cell"
    )
    names = ["final [95%]", "AUC [95%]", "deterioration [95%]"]
    return Table(
        title="Normalised scores",
        caption=caption,
        columns=_grouped_columns([variant_name(one) for one in comparisons], names),
        sections=_sections(by_group, _standing_cells, len(names)),
    )


def cell_table(comparison: Comparison) -> Table:
    """The reference against each rival in every cell."""
    caption = (
        f"{comparison.reference} minus the other method: returns, and in percent of the task's range with its 95% "
        f"bootstrap interval; bold where the interval excludes 0. P: how likely a run of {comparison.reference} is "
        f"the better one. Less deterioration is better. Single cells are not tested: of so many, some intervals "
        f"exclude 0 by chance"
    )
    found = {(one.cell, one.rival, one.measure): one for one in comparison.cells}
    pairs = unique((one.cell, one.rival) for one in comparison.cells)
    sections = [
        Section(
            name=cell.text,
            rows=[
                Row(name=rival, cells=[it for name in MEASURES for it in _difference_cells(found[cell, rival, name])])
                for at, rival in pairs
                if at == cell
            ],
        )
        for cell in unique(cell for cell, _ in pairs)
    ]
    title = f"Cell by cell: {comparison.reference} against each method"
    title += f", {comparison.variant}" if comparison.variant else ""
    columns = _by_measure(["difference", "of the range [95%]", "P"])
    return Table(title=title, caption=caption, columns=columns, sections=sections)


def _by_measure(names: Sequence[str]) -> list[Column]:
    return [Column(name=name, group=measure.column) for measure in MEASURES.values() for name in names]


def _grouped_columns(groups: Sequence[str], names: Sequence[str]) -> list[Column]:
    """The same columns in every group; a group that stands alone needs no name."""
    return [Column(name=name, group=group if len(groups) > 1 else "") for group in groups for name in names]


Key = tuple[int | None, str]
"""buffer size and method"""


def _sections(
    by_group: Sequence[dict[Key, Any]], cells_of: Callable[[Any, int], list[Cell]], width: int
) -> list[Section]:
    """A section per buffer size, a row per method; empty where a variant has none.

    `by_group` has what to show in each group of columns; `cells_of` makes `width` cells of it, given how many cells of
    the study the others have.
    """
    keys = unique(key for group in by_group for key in group)
    sections = []
    for size in unique(size for size, _ in keys):
        most = [max((one.cells for (at, _), one in group.items() if at == size), default=0) for group in by_group]
        rows = []
        for name in unique(name for at, name in keys if at == size):
            found = [(group.get((size, name)), cells) for group, cells in zip(by_group, most, strict=True)]
            parts = [cells_of(one, cells) if one else [Cell()] * width for one, cells in found]
            rows.append(Row(name=name, cells=[cell for part in parts for cell in part]))
        sections.append(Section(name=scope_name(size), rows=rows))
    return sections


def _standing_cells(one: Standing, most: int) -> list[Cell]:
    final = _decimal_text(one.final) + _fewer_cells_text(one, most)
    return [Cell(text=final), *[Cell(text=_decimal_text(it)) for it in (one.auc, one.fall)]]


def _improvement_cells(one: Difference, most: int) -> list[Cell]:
    return [
        Cell(text=_mean_text(one) + _fewer_cells_text(one, most), strong=one.adjusted < LEVEL),
        Cell(text=_decimal_text(one.improvement)),
        _p_cell(one.adjusted),
    ]


def _fewer_cells_text(one: Difference | Standing, most: int) -> str:
    """A method that lacks cells others have: its number is not of the same cells."""
    return f" ({one.cells} of {most} cells)" if one.cells < most else ""


def _difference_cells(one: CellDifference) -> list[Cell]:
    apart = one.effect.low > 0 or one.effect.high < 0
    effect = _signed_text(one.effect.value) if one.share else interval_text(one.effect, _signed_text)
    return [
        Cell(text=effect, strong=apart),
        Cell(text=interval_text(one.share, percent_text) if one.share else ""),
        Cell(text=f"{one.improvement:.2f}"),
    ]


def _p_cell(p: float) -> Cell:
    return Cell(text=p_text(p), strong=p < LEVEL)


def _decimal_text(interval: Interval) -> str:
    return interval_text(interval, "{:.2f}".format)


def percent_text(share: float) -> str:
    """
    >>> percent_text(0.123), percent_text(-0.004), percent_text(0.00001)
    ('+12%', '-0.4%', '0%')
    """
    text = f"{100 * share:+.0f}%" if abs(share) >= 0.0095 else f"{100 * share:+.1f}%"
    return "0%" if text in ("+0.0%", "-0.0%") else text


def p_text(p: float) -> str:
    """
    >>> p_text(0.00794), p_text(0.25), p_text(0.00001), p_text(1.0)
    ('.0079', '.250', '<.0001', '1')
    """
    if p < 0.0001:
        return "<.0001"
    return "1" if p > 0.9995 else f"{p:.{4 if p < 0.01 else 3}f}".removeprefix("0")
