"""What a study can do with each finished run, beyond its curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def context_matrix(path: Path) -> dict[str, Any]:
    """What training on one context does to the losses of the others: see `iqrl interference --matrix`."""
    from iqrl.analysis.context_matrix import context_matrix as matrix_of
    from iqrl.training.loop import load

    matrix = matrix_of(load(path))
    return {
        "matrix": known(matrix.mean_change.tolist()),
        "per_seed": known(matrix.change.tolist()),
        "counts": matrix.counts.tolist(),
        "own": matrix.own,
    }


def cost(path: Path) -> dict[str, Any]:
    """Operations and where the time goes: see `iqrl cost`."""
    from iqrl.analysis.cost import cost_of
    from iqrl.training.store import RunStore

    cost = cost_of(RunStore.open(path).run)
    flops = cost["flops_per_seed"]
    return {
        "flops": {"by the paper's formula": flops["formula"], "in the compiled program": flops["compiled"]},
        "seconds_per_million_steps": cost["microseconds_per_step"]["total"],
        "details": cost,
    }


ANALYSES: Mapping[str, Callable[[Path], dict[str, Any]]] = {"context_matrix": context_matrix, "cost": cost}


def known(values: Any) -> Any:
    """None for what is not a number, as JSON has it."""
    if isinstance(values, list):
        return [known(value) for value in values]
    return values if math.isfinite(values) else None
