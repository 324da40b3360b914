"""Results as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from iqrl.report.figures import distinct_labels
from iqrl.results import Result


def _cell(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"


def print_results(results: Sequence[Result]) -> None:
    """Highest, final and AUC of the mean curve, with the range over the seeds."""
    table = Table(box=None, header_style="bold")
    for name, justify in (("task", "left"), ("method", "left"), ("N", "right"), ("highest", "right")):
        table.add_column(name, justify=justify)
    for name in ("final", "worst…best seed", "AUC", "worst…best seed", "steps/s"):
        table.add_column(name, justify="right")
    for result, label in zip(results, distinct_labels([result.run for result in results]), strict=True):
        summary = result.summary()
        ranges = [_range([seed[name] for seed in summary["seeds"]]) for name in ("final", "auc")]
        speed = result.timing.get("steps_per_second")
        table.add_row(
            result.run.task, label, f"{result.run.buffer_size:,}", _cell(summary["highest"]),
            _cell(summary["final"]), ranges[0], _cell(summary["auc"]), ranges[1], f"{speed:,.0f}" if speed else "",
        )  # fmt: skip
    Console(stderr=True).print(table)


def _range(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{_cell(min(known))}…{_cell(max(known))}" if known else "none"
