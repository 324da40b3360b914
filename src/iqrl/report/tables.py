"""Results as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from iqrl.report.labels import common_settings, distinct_labels
from iqrl.results import Result


def print_results(results: Sequence[Result], console: Console) -> None:
    """Highest, final and AUC of the mean curve, with the range over the seeds."""
    title = f"return of training episodes: {common_settings([result.run for result in results])}"
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    table.add_column("method")
    for name in ("highest", "final", "(seeds)", "AUC", "(seeds)", "steps/s"):
        table.add_column(name, justify="right")
    for result, label in zip(results, distinct_labels([result.run for result in results]), strict=True):
        summary = result.summary()
        final, auc = (_range([seed[name] for seed in summary["seeds"]]) for name in ("final", "auc"))
        speed = result.timing.get("steps_per_second")
        numbers = (_cell(summary["highest"]), _cell(summary["final"]), final, _cell(summary["auc"]), auc)
        table.add_row(label, *numbers, f"{speed:,.0f}" if speed else "")
    console.print(table)


def _cell(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _range(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    digits = 0 if max(map(abs, known), default=0) >= 10 else 2
    return f"{min(known):.{digits}f}…{max(known):.{digits}f}" if len(known) > 1 else ""
