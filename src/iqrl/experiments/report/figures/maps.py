"""States on a map in two dimensions by t-SNE, and states beside their nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from iqrl.colours import cycle_colours
from iqrl.core.agent import as_q_learner
from iqrl.diagnostics.analysis.context_matrix import cluster_states
from iqrl.diagnostics.analysis.experience import gather
from iqrl.diagnostics.analysis.neighbours import Neighbours
from iqrl.diagnostics.interference.td_errors import CLUSTERS
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.experiments.report.arrangement import plot_labels
from iqrl.experiments.report.figures.curves import drawing
from iqrl.training.results import Result

MOST_POINTS = 2000
"""points of a map: more take minutes and show no more"""

Panel = tuple[str, np.ndarray, np.ndarray]
"""a title, states [n, d] and their contexts [n]"""


def plot_context_maps(results: Sequence[Result], path: str | Path) -> Path:
    """The states that the first seed of each run meets, coloured by its contexts, or by clusters where it has one."""
    panels = []
    for result, label in zip(results, plot_labels([result.run for result in results]), strict=True):
        met = gather(result, count=MOST_POINTS)
        alone = as_q_learner(result.agent).contexts.count == 1
        contexts = cluster_states(met.states, result.task, CLUSTERS)[0] if alone else met.contexts
        title = f"{label} on {result.run.task}" + (", clusters of states" if alone else "")
        panels.append((title, met.states[0], contexts[0]))
    same_task = len({result.run.task for result in results}) == 1
    return plot_states(panels, path, results[0].task if same_task else None)


def plot_states(panels: Sequence[Panel], path: str | Path, task: Task | None = None) -> Path:
    """A map per panel, coloured by context; distances are in units of the task's ranges, or of each variable's own.

    With one panel for contexts of initial states and one for contexts of all states, this is the paper's comparison.
    """
    if not panels:
        raise BadInput("there are no states to draw.")
    most = 1 + max(int(np.max(contexts)) for _, _, contexts in panels)
    with drawing(path, 4.4 * len(panels), 4.6) as figure:
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, (title, states, contexts) in zip(axes, panels, strict=True):
            chosen = _sample(len(states), MOST_POINTS)
            points = project(_scale(np.asarray(states)[chosen], task))
            for context, colour in enumerate(cycle_colours(most)):
                x, y = points[np.asarray(contexts)[chosen] == context].T
                axis.scatter(x, y, s=7, color=colour, alpha=0.7, linewidths=0, label=f"context {context}")
            axis.set_title(title)
            _strip(axis)
        handles, labels = axes[0].get_legend_handles_labels()
        place = {"loc": "outside lower center", "ncols": min(most, 3 * len(panels)), "frameon": False}
        figure.legend(handles, labels, **place, markerscale=2.5)
    return Path(path)


def plot_neighbours(images: np.ndarray, neighbours: Neighbours, path: str | Path) -> Path:
    """A row per query: its image [H, W] or the last of its stack [H, W, C], and to the right those nearest to it."""
    rows, columns = neighbours.indices.shape
    images = images[..., -1] if images.ndim == 4 else images
    with drawing(path, 1.35 * (columns + 1), 1.6 * rows + 0.3) as figure:
        grid = figure.subplots(rows, columns + 1, squeeze=False)
        for axes, query, near, distances in zip(grid, *neighbours, strict=True):
            titles = ["query", *(f"{distance:.3g}" for distance in distances)]
            for axis, index, title in zip(axes, [query, *near], titles, strict=True):
                axis.imshow(images[index], cmap="gray", vmin=0, vmax=255)
                axis.set_title(title, fontsize=9)
                _strip(axis)
            axes[0].spines[:].set(visible=True, color=cycle_colours(1)[0], linewidth=2)
    return Path(path)


def plot_neighbour_map(codes: np.ndarray, neighbours: Neighbours, path: str | Path) -> Path:
    """All codes in grey, each query as a star and its neighbours in its colour."""
    special = np.unique(np.concatenate([neighbours.queries, neighbours.indices.ravel()]))
    others = np.setdiff1d(np.arange(len(codes)), special)
    shown = np.concatenate([special, others[_sample(len(others), max(MOST_POINTS - len(special), 0))]])
    points = np.full((len(codes), 2), np.nan)
    points[shown] = project(codes[shown])
    with drawing(path, 8.0, 5.4) as figure:
        axis = figure.subplots()
        axis.scatter(*points.T, s=6, color="#bbbbbb", linewidths=0)
        for query, near, colour in zip(*neighbours[:2], cycle_colours(len(neighbours.queries)), strict=True):
            axis.scatter(*points[near].T, s=26, color=colour, alpha=0.8, linewidths=0)
            star = partial(axis.scatter, marker="*", s=150, edgecolors="white", linewidths=0.8)
            star(*points[query], color=colour, label=f"state {query} and its neighbours")
        axis.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        _strip(axis)
    return Path(path)


def project(points: np.ndarray) -> np.ndarray:
    """[n, 2]: the points by t-SNE, the same each time."""
    from sklearn.manifold import TSNE  # takes a second to load

    if len(points) < 4:
        raise BadInput(f"a map of {len(points)} states shows nothing; give it four or more.")
    # As many neighbours as are usual, or as there are.
    perplexity = min(30.0, (len(points) - 1) / 3)
    return TSNE(init="pca", perplexity=perplexity, random_state=0).fit_transform(np.asarray(points, np.float32))


def _sample(count: int, most: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(count)[:most]


def _scale(states: np.ndarray, task: Task | None) -> np.ndarray:
    ranges = np.subtract(task.high, task.low) if task else np.maximum(np.ptp(states, axis=0), 1e-12)
    return states / ranges


def _strip(axis) -> None:
    """Remove ticks and frame: positions on a map have no unit."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
