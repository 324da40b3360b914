"""The interference among contexts as a heat map."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from iqrl.analysis.context_matrix import ContextMatrix
from iqrl.config import Run
from iqrl.report.figures import drawing
from iqrl.report.labels import common_settings


def plot_context_matrix(matrix: ContextMatrix, run: Run, path: str | Path) -> Path:
    """Mean over seeds of the change of each context's loss, and the range over seeds below it.

    Red is a loss that grew: interference. Blue is one that shrank.
    """
    mean, contexts = matrix.mean_change, matrix.counts.shape[1]
    with drawing(path, 2.8 + 1.35 * contexts, 2.3 + 1.0 * contexts) as figure:
        axis = figure.subplots()
        axis.set_facecolor("#dddddd")
        limit = colour_limit(mean)
        shown = axis.imshow(mean, cmap="RdBu_r", vmin=-limit, vmax=limit)
        for i, j in np.ndindex(mean.shape):
            _write(axis, matrix.change[:, i, j], mean[i, j], (j, i), limit)
        names = [f"context {c}" for c in range(contexts)]
        shares = [
            f"{name}\n{share:.0%} of states" for name, share in zip(names, matrix.shares.mean(axis=0), strict=True)
        ]
        axis.set_xticks(range(contexts), shares, fontsize=9)
        axis.set_yticks(range(contexts), names, fontsize=9)
        axis.set_xlabel("change of the loss on")
        axis.set_ylabel("trained on")
        axis.set_title(_title(matrix, run), fontsize=10)
        axis.spines[:].set_visible(False)
        figure.colorbar(shown, ax=axis, format="{x:+.0%}", extend="both", shrink=0.85)
    return Path(path)


def colour_limit(mean: np.ndarray) -> float:
    """Where colours end: a few cells may go beyond it, so that one large number does not leave the others pale."""
    known = np.abs(mean[np.isfinite(mean)])
    return max(float(np.quantile(known, 0.8)), 1e-3) if known.size else 1.0


def _write(axis: Axes, changes: np.ndarray, mean: float, place: tuple[int, int], limit: float) -> None:
    """The numbers of a cell, in white on dark colours."""
    if np.isnan(mean):
        axis.text(*place, "too few", ha="center", va="center", fontsize=9, color="#555555")
        return
    colour = "white" if abs(mean) > 0.6 * limit else "black"
    write = partial(axis.annotate, xy=place, textcoords="offset points", ha="center", color=colour)
    write(percent(mean), xytext=(0, 3))
    known = changes[np.isfinite(changes)]
    if known.size > 1:
        write(f"{percent(known.min())} … {percent(known.max())}", xytext=(0, -11), fontsize=7.5)


def percent(change: float) -> str:
    """With a decimal where it would be one digit, and without a sign where it would be none."""
    text = f"{change:+.1%}" if abs(change) < 0.0995 else f"{change:+.0%}"
    return "0%" if text in ("+0.0%", "-0.0%") else text.replace("-", "−")


def _title(matrix: ContextMatrix, run: Run) -> str:
    seeds, left_out = len(matrix.counts), len(matrix.left_out)
    of = "the agent's own contexts" if matrix.own else "clusters of its states"
    lines = [f"{run.method} on {common_settings([run])}", f"{of}, {seeds} seed{'s' if seeds > 1 else ''}"]
    if left_out:
        lines.append(f"{left_out} of {matrix.counts.size} contexts have too few transitions and are left out")
    return "\n".join(lines)
