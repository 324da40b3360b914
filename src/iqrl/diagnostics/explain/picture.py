"""The picture of `iqrl explain`: the learning curve, with the falls marked on it."""

from __future__ import annotations

import numpy as np

from iqrl.colours import method_colour
from iqrl.curve_svg import Mark, draw_curve
from iqrl.diagnostics.explain.diagnosis import Diagnosis
from iqrl.diagnostics.explain.evidence import FallEvidence
from iqrl.methods.registry import in_words


def draw_falls(diagnosis: Diagnosis) -> str:
    """An SVG drawing. The falls are numbered as on the page."""
    seeds = diagnosis.seeds
    steps = max((seed.steps for seed in seeds), key=len)
    returns = np.full((len(seeds), len(steps)), np.nan)
    for row, seed in zip(returns, seeds, strict=True):
        row[: len(seed.returns)] = seed.returns
    run = diagnosis.run
    title = f"{in_words(run)}: {diagnosis.fate.fate}"
    marks = [_mark(i, it, diagnosis.lasted(it)) for i, it in enumerate(diagnosis.falls, 1)]
    return draw_curve(steps, returns, title, marks, method_colour(run.method))


def _mark(place: int, evidence: FallEvidence, lasting: bool) -> Mark:
    seed, fall = evidence.seed, evidence.fall
    path = zip(seed.steps[fall.peak : fall.trough + 1], seed.returns[fall.peak : fall.trough + 1], strict=True)
    return Mark(
        start=float(seed.steps[fall.last_high]),
        end=float(seed.steps[fall.first_low]),
        path=tuple((float(step), float(value)) for step, value in path if np.isfinite(value)),
        lasting=lasting,
        label=str(place),
    )
