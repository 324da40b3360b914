"""The analyses that a study can make of each finished run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def context_matrix(path: Path) -> dict[str, Any]:
    """How training on one context changes the losses of the others: see `iqrl interference --matrix`."""
    from iqrl.diagnostics.analysis.context_matrix import context_matrix as matrix_of
    from iqrl.training.loop import load

    matrix = matrix_of(load(path))
    return {
        "matrix": finite_or_none(matrix.mean_change.tolist()),
        "per_seed": finite_or_none(matrix.change.tolist()),
        "counts": matrix.counts.tolist(),
        "own": matrix.own,
    }


def cost(path: Path) -> dict[str, Any]:
    """Operations and where the time goes: see `iqrl cost`."""
    from iqrl.diagnostics.analysis.cost import measure_cost
    from iqrl.training.run_directory import RunStore

    cost = measure_cost(RunStore.open(path).run)
    flops = cost["flops_per_seed"]
    return {
        "flops": {"by the paper's formula": flops["formula"], "in the compiled program": flops["compiled"]},
        "seconds_per_million_steps": cost["microseconds_per_step"]["total"],
        "details": cost,
    }


ANALYSES: Mapping[str, Callable[[Path], dict[str, Any]]] = {"context_matrix": context_matrix, "cost": cost}


def finite_or_none(values: Any) -> Any:
    """Numbers in lists of lists for JSON: None where one is not finite."""
    if isinstance(values, list):
        return [finite_or_none(value) for value in values]
    return values if math.isfinite(values) else None
