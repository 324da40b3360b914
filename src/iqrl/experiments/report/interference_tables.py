"""Interference of the runs of a study: what was measured while they trained, and which method has less of it.

Numbers are per seed, over the periods in which something was measured. They are heavy-tailed, and their unit differs
from task to task. So methods are compared by the ratio of their geometric means in each cell, a task with a buffer
size, with a permutation test of the logarithms, and by how likely a run of one has less than a run of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from iqrl.diagnostics.metrics import heading_of
from iqrl.diagnostics.text import return_text
from iqrl.experiments.report.arrangement import unique
from iqrl.experiments.report.cells import RunSummary, interval_text
from iqrl.experiments.report.comparison_tables import p_text
from iqrl.experiments.report.comparisons import LEVEL, REFERENCE
from iqrl.experiments.report.margins import run_name
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table
from iqrl.experiments.study.results import StudyResults
from iqrl.methods.registry import METHODS
from iqrl.statistics.curves import across_iterations, mean_finite
from iqrl.statistics.intervals import Interval, difference_interval, mean_interval
from iqrl.statistics.significance import holm, mean_difference_tests, probability_of_improvement

# One seed of one run

MEANS = ("aei", "negative_interference", "raised_share", "squared_td_error", "update_interference")
LAST = ("held_out_max_q", "action_gap", "dormant_units")


NEEDED = (*MEANS, *LAST, "aei_largest", "gradient_cosine")


def is_measured(metrics: pl.DataFrame) -> bool:
    return "aei" in metrics.columns


def is_measured_whole(metrics: pl.DataFrame) -> bool:
    """Runs of a study, or of several that are shown together, may be measured in part."""
    return set(NEEDED) <= set(metrics.columns) and not metrics["gradient_cosine"].is_null().any()


def summarise_interference(metrics: pl.DataFrame) -> list[dict[str, Any]]:
    """Per seed: means over the periods in which something was measured, and the probes at the end."""
    return [_summarise_seed(rows) for rows in metrics.sort("seed", "step").partition_by("seed", maintain_order=True)]


def _summarise_seed(rows: pl.DataFrame) -> dict[str, Any]:
    cosines = np.asarray(rows["gradient_cosine"].to_list(), np.float64)
    last_half = mean_finite(cosines[len(cosines) // 2 :], axis=0)
    pairs = last_half[np.triu_indices(len(last_half), 1)]
    return {
        "seed": rows["seed"][0],
        **{name: _finite(rows[name].drop_nans().mean()) for name in MEANS},
        # Values of another size have errors of another size: the share of the error is what methods can be compared by.
        "relative_interference": _finite((rows["negative_interference"] / rows["squared_td_error"]).drop_nans().mean()),
        "relative_aei": _finite((rows["aei"] / rows["squared_td_error"]).drop_nans().mean()),
        "aei_largest": _finite(rows["aei_largest"].drop_nans().max()),
        "interference_across_iterations": _finite(across_iterations(rows["update_interference"].to_numpy())),
        "lowest_gradient_cosine": _finite(np.nanmin(pairs) if np.isfinite(pairs).any() else None),
        **{name: _finite(rows[name][-1]) for name in LAST},
    }


def _finite(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def interference_text(name: str, value: float) -> str:
    if name.startswith("relative_"):
        return f"{100 * value:.2g}%"
    return f"{value:.0%}" if name in ("raised_share", "dormant_units") else f"{value:.3g}"


# A study

SHOWN = (
    "negative_interference", "relative_interference", "interference_across_iterations", "relative_aei",
    "lowest_gradient_cosine", "raised_share",
)  # fmt: skip
COMPARED = SHOWN[:3]
"""less is better"""


class MeasuredCell(NamedTuple):
    """A run of a study with what was measured: a number per seed of each."""

    summary: RunSummary
    seeds: dict[str, np.ndarray]

    @property
    def cell(self) -> tuple[str, int]:
        return self.summary.placed.place.task, self.summary.placed.run.config["buffer_size"]

    @property
    def method(self) -> str:
        return self.summary.placed.run.config["method"]

    @property
    def scale(self) -> tuple[Any, ...]:
        """What the unit of its errors depends on."""
        config, method = self.summary.placed.run.config, METHODS.get(self.method)
        streaming = method is not None and any("normalise" in group.__annotations__ for group in method.settings)
        scaled = config.get("normalise_inputs", False) or (streaming and config.get("normalise", False))
        return scaled, config.get("reward_scale", 1.0)


def interference_tables(study: StudyResults, summaries: Sequence[RunSummary]) -> list[Table]:
    """What was measured, the reference of the study beside the others, and what training on one context did."""
    trained = _matrix_table([it for it in summaries if _changes(it) is not None])
    return [*_measured_tables(study, summaries), *([trained] if trained.sections else [])]


def _measured_tables(study: StudyResults, summaries: Sequence[RunSummary]) -> list[Table]:
    """Empty where nothing was measured while the runs trained."""
    if not set(NEEDED) <= set(study.curves.columns):
        return []
    by_run = study.curves.partition_by("run", as_dict=True)
    curves = {it.placed.run.id: by_run[(it.placed.run.id,)] for it in summaries}
    measured = [it for it in summaries if is_measured_whole(curves[it.placed.run.id])]
    if not measured:
        return []
    cells = [_measure(it, curves[it.placed.run.id]) for it in measured]
    compared = _beside_table(cells, study.content.get("reference", REFERENCE))
    return [_measured_table(cells), *([compared] if compared.sections else [])]


def _measure(summary: RunSummary, curves: pl.DataFrame) -> MeasuredCell:
    seeds = summarise_interference(curves)
    known = lambda name: np.array([seed[name] for seed in seeds if seed[name] is not None])
    return MeasuredCell(summary, {name: known(name) for name in SHOWN})


def _measured_table(cells: Sequence[MeasuredCell]) -> Table:
    sections = [
        Section(name=task, rows=[_row(it) for it in cells if it.cell[0] == task])
        for task in unique(it.cell[0] for it in cells)
    ]
    meanings = "; ".join(f"{heading_of(name)}: {meaning}" for name, meaning in MEANINGS.items())
    return Table(
        title="Interference",
        caption=f"Means over seeds of the means over periods, with 95% bootstrap intervals. {meanings[0].upper()}"
        f"{meanings[1:]}. The unit of {heading_of(SHOWN[0])} and {heading_of(SHOWN[2])} is the square of the reward as "
        f"the method scales it",
        columns=[*[Column(name=heading_of(name)) for name in SHOWN], Column(name="final return")],
        sections=sections,
        section_header="task",
        row_header="run",
    )


MEANINGS = {
    "negative_interference": "mean AEI of the updates that raise the TD error",
    "relative_interference": "as a share of the squared TD error",
    "interference_across_iterations": "the largest tenth of the update interference in the second half",
    "relative_aei": "AEI of all updates as a share of the squared TD error, below 0 where they lower it",
    "lowest_gradient_cosine": "lowest of two contexts' gradients",
    "raised_share": "share of the updates that raise the error",
}


def _row(cell: MeasuredCell) -> Row:
    texts = [_mean_text(name, cell.seeds[name]) for name in SHOWN]
    final = return_text(cell.summary.final.value) if cell.summary.final else ""
    return Row(name=run_name(cell.summary), cells=[Cell(text=text) for text in [*texts, final]])


def _mean_text(name: str, values: np.ndarray) -> str:
    if not len(values):
        return "none"
    return interval_text(mean_interval(values), lambda value: interference_text(name, value))


class Less(NamedTuple):
    """How often the reference has less interference than a rival, by one number."""

    rival: str
    name: str
    cells: int
    lower: int
    """cells in which its mean is lower"""
    ratio: Interval
    """its amount by the rival's, the geometric mean over seeds and cells"""
    wins: Interval
    """how likely one of its runs has less, averaged over cells"""
    p: float
    """of the logarithm of the ratio, corrected"""


def compare_interference(cells: Sequence[MeasuredCell], reference: str) -> list[Less]:
    """The reference against each rival over the cells that both have; p is corrected for all of them."""
    plain = [it for it in cells if not it.summary.placed.variant]
    rivals = unique(it.method for it in plain if it.method != reference)
    asked = [(rival, name) for rival in rivals for name in COMPARED]
    sides = {one: _sides(plain, reference, *one) for one in asked}
    sides = {one: both for one, both in sides.items() if both[0]}
    logs = [logarithms(own, others) for own, others in sides.values()]
    corrected = holm([test.p for test in mean_difference_tests(logs)]).tolist() if logs else []
    return [
        Less(
            rival=rival,
            name=name,
            cells=len(own),
            lower=sum(mine.mean() < other.mean() for mine, other in zip(own, others, strict=True)),
            ratio=Interval(*np.exp(difference_interval(own, others)).tolist()),
            wins=probability_of_improvement(others, own),
            p=p,
        )
        for (rival, name), (own, others), p in zip(sides, logs, corrected, strict=True)
    ]


def logarithms(own: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Of both sides in each cell. A 0, such as of a run that never raised an error, counts as half of the least."""
    least = [
        min((value for side in both for value in side if value > 0), default=1.0) / 2
        for both in zip(own, others, strict=True)
    ]
    both = [[np.log(np.maximum(x, floor)) for x, floor in zip(side, least, strict=True)] for side in (own, others)]
    return both[0], both[1]


def _sides(
    cells: Sequence[MeasuredCell], reference: str, rival: str, name: str
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The numbers of both in each cell that can be compared: shares always, others in one unit."""
    own, others = (
        {it.cell: it for it in cells if it.method == method and len(it.seeds[name])} for method in (reference, rival)
    )
    one_unit = lambda cell: name == "relative_interference" or own[cell].scale == others[cell].scale
    shared = [cell for cell in own if cell in others and one_unit(cell)]
    return [own[cell].seeds[name] for cell in shared], [others[cell].seeds[name] for cell in shared]


def _beside_table(cells: Sequence[MeasuredCell], reference: str) -> Table:
    found = {(one.rival, one.name): one for one in compare_interference(cells, reference)}
    rows = [
        Row(name=rival, cells=[cell for name in COMPARED for cell in _less_cells(found.get((rival, name)))])
        for rival in unique(rival for rival, _ in found)
    ]
    names = ("lower in", "ratio [95%]", "P", "p")
    columns = [Column(name=it, group=heading_of(name)) for name in COMPARED for it in names]
    return Table(
        title=f"Interference of {reference} beside the others",
        caption="Lower in: in how many cells, a task with a buffer size, its geometric mean is lower. Ratio: its "
        "amount by the other's, the geometric mean over seeds and cells, with its 95% bootstrap interval. P: how "
        "likely one of its runs has less than a run of the other method in the same cell. p: two-sided permutation "
        f"test of the logarithm of the ratio, seeds split within cells, corrected (Holm) for all {len(found)} tests of "
        f"this table; in bold where p is below {LEVEL:g}",
        columns=columns,
        sections=[Section(name="", rows=rows)] if rows else [],
        section_header=None,
        row_header="beside",
    )


def _less_cells(one: Less | None) -> list[Cell]:
    if one is None:
        return [Cell(text="")] * 4
    ratio, strong = interval_text(one.ratio, "{:.2g}".format), one.p < LEVEL
    texts = f"{one.lower} of {one.cells}", f"{one.wins.value:.2f}"
    return [
        Cell(text=texts[0]),
        Cell(text=ratio, strong=strong),
        Cell(text=texts[1]),
        Cell(p_text(one.p), strong=strong),
    ]


# One context alone


def _changes(summary: RunSummary) -> np.ndarray | None:
    """[seeds, trained, measured]: the context matrix of each seed; None where no seed has several contexts."""
    per_seed = (summary.placed.run.analyses.get("context_matrix") or {}).get("per_seed")
    if not per_seed:
        return None
    changes = np.array(per_seed, np.float64)
    return changes if np.isfinite(changes[:, ~np.eye(changes.shape[1], dtype=bool)]).any() else None


def _matrix_table(summaries: Sequence[RunSummary]) -> Table:
    """Medians, since single cells can be many times the others."""
    tasks = unique(it.placed.place.task for it in summaries)
    return Table(
        title="Training on one context alone",
        caption="Relative change of the Huber loss after training on the transitions of one context: of that context "
        "and of the others, medians over contexts and seeds; how many of all others rose; and of each seed the largest "
        "rise, its median and range over seeds",
        columns=[Column(name=name) for name in ("own", "others", "others that rose", "largest rise", "range")],
        sections=[
            Section(name=task, rows=[_matrix_row(it) for it in summaries if it.placed.place.task == task])
            for task in tasks
        ],
        section_header="task",
        row_header="run",
    )


def _matrix_row(summary: RunSummary) -> Row:
    per_seed: Any = _changes(summary)
    diagonal = np.eye(per_seed.shape[1], dtype=bool)
    own, others = per_seed[:, diagonal], per_seed[:, ~diagonal]
    known, rises = others[np.isfinite(others)], np.nanmax(others[np.isfinite(others).any(axis=1)], axis=1)
    percent = lambda value: f"{value:+.0%}" if abs(value) >= 0.1 else f"{value:+.1%}"
    texts = [
        percent(np.nanmedian(own)),
        percent(np.median(known)),
        f"{(known > 0).sum()} of {len(known)}",
        percent(np.median(rises)),
        f"{percent(rises.min())} to {percent(rises.max())}",
    ]
    return Row(name=run_name(summary), cells=[Cell(text=text) for text in texts])
