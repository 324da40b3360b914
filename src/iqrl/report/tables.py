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
    settings = {(result.run.task, result.run.buffer_size) for result in results}
    title = ", ".join(f"{task}, N={size:,}" for task, size in sorted(settings))
    table = Table(title=f"return of training episodes: {title}", title_justify="left", box=None, header_style="bold")
    table.add_column("method")
    for name in ("highest", "final", "(seeds)", "AUC", "(seeds)", "steps/s"):
        table.add_column(name, justify="right")
    for result, label in zip(results, distinct_labels([result.run for result in results]), strict=True):
        summary = result.summary()
        final, auc = (_range([seed[name] for seed in summary["seeds"]]) for name in ("final", "auc"))
        speed = result.timing.get("steps_per_second")
        numbers = (_cell(summary["highest"]), _cell(summary["final"]), final, _cell(summary["auc"]), auc)
        table.add_row(label, *numbers, f"{speed:,.0f}" if speed else "")
    Console(stderr=True).print(table)


def _range(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known):.0f}…{max(known):.0f}" if known else "none"
