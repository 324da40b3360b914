"""What was measured of runs, as numbers, as a table and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from iqrl.config import Run
from iqrl.measure.tails import across_iterations
from iqrl.report.labels import common_settings, distinct_labels
from iqrl.results import mean_known

Measured = tuple[Run, pl.DataFrame]

MEANS = ("aei", "negative_interference", "raised_share", "squared_td_error", "update_interference")
LAST = ("held_out_max_q", "action_gap", "dormant_units")


def is_measured(metrics: pl.DataFrame) -> bool:
    return "aei" in metrics.columns


def interference_of(metrics: pl.DataFrame) -> list[dict[str, Any]]:
    """Per seed: means over the periods in which something was measured, and the probes at the end."""
    return [_of_seed(rows) for rows in metrics.sort("seed", "step").partition_by("seed", maintain_order=True)]


def _of_seed(rows: pl.DataFrame) -> dict[str, Any]:
    cosines = np.asarray(rows["gradient_cosine"].to_list(), np.float64)
    last_half = mean_known(cosines[len(cosines) // 2 :], axis=0)
    pairs = last_half[np.triu_indices(len(last_half), 1)]
    return {
        "seed": rows["seed"][0],
        **{name: _known(rows[name].drop_nans().mean()) for name in MEANS},
        # Values of another size have errors of another size: the share of the error is what methods can be compared by.
        "relative_interference": _known((rows["negative_interference"] / rows["squared_td_error"]).drop_nans().mean()),
        "aei_largest": _known(rows["aei_largest"].drop_nans().max()),
        "interference_across_iterations": _known(across_iterations(rows["update_interference"].to_numpy())),
        "lowest_gradient_cosine": _known(np.nanmin(pairs) if np.isfinite(pairs).any() else None),
        **{name: _known(rows[name][-1]) for name in LAST},
    }


def _known(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


COLUMNS = {
    "negative_interference": "negative",
    "relative_interference": "of the TD error",
    "raised_share": "updates that raise",
    "aei_largest": "largest AEI",
    "interference_across_iterations": "across iterations",
    "lowest_gradient_cosine": "lowest cosine",
    "dormant_units": "dormant units",
}


def print_interference(runs: Sequence[Measured], console: Console) -> None:
    """Means over seeds, one row per run."""
    several_tasks = len({run.task for run, _ in runs}) > 1
    title = "interference" + ("" if several_tasks else f": {common_settings([run for run, _ in runs])}")
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    table.add_column("method", overflow="fold")
    for name in COLUMNS.values():
        table.add_column(name, justify="right")
    for (run, metrics), label in zip(runs, distinct_labels([run for run, _ in runs]), strict=True):
        seeds = interference_of(metrics)
        table.add_row(
            f"{label} {run.task}" if several_tasks else label,
            *[_cell(name, [seed[name] for seed in seeds]) for name in COLUMNS],
        )
    console.print(table)


def _cell(name: str, values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "none"
    mean = float(np.mean(known))
    if name == "relative_interference":
        return f"{100 * mean:.2g}%"
    return f"{mean:.0%}" if name in ("raised_share", "dormant_units") else f"{mean:.3g}"


def names_of(paths: Sequence[Path]) -> list[str]:
    """A name for the pictures of each run: its directory's, with the one above it where that is not enough."""
    paths = [path.resolve() for path in paths]
    names = [path.name for path in paths]
    return [
        name if names.count(name) == 1 else "-".join(path.parts[-2:]) for name, path in zip(names, paths, strict=True)
    ]


def draw_measured(runs: Sequence[Measured], names: Sequence[str], folder: Path) -> list[Path]:
    """AEI and return of each run over the same steps; negative interference of several in one picture."""
    from iqrl.report.interference import plot_interference, plot_negative_interference

    drawn = [
        plot_interference(run, metrics, folder / f"{name}-interference.png")
        for (run, metrics), name in zip(runs, names, strict=True)
    ]
    together = [plot_negative_interference(runs, folder / "negative-interference.png")] if len(runs) > 1 else []
    return [*drawn, *together]
