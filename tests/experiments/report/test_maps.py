import re

import numpy as np
import pytest

from iqrl.colours import COLOURS
from iqrl.diagnostics.analysis.neighbours import nearest_neighbours
from iqrl.envs.classic.cartpole import cartpole
from iqrl.errors import BadInput
from iqrl.experiments.report.figures import maps
from iqrl.experiments.report.figures.maps import plot_neighbour_map, plot_neighbours, plot_states, project

STATES = np.random.default_rng(0).normal(size=(80, 4)).astype(np.float32) + np.repeat([[0.0], [20.0]], 40, axis=0)
CONTEXTS = np.repeat([0, 1], 40)


def marks(path, colour):
    """Points of a colour in an SVG file."""
    return len(re.findall(rf"<use [^>]*fill: {colour}", path.read_text()))


def test_a_map_keeps_apart_what_is_apart_and_is_the_same_each_time():
    points = project(STATES)
    assert points.shape == (80, 2)
    np.testing.assert_array_equal(points, project(STATES))
    middles = points[:40].mean(axis=0), points[40:].mean(axis=0)
    spread = np.linalg.norm(points[:40] - middles[0], axis=1).mean()
    assert np.linalg.norm(middles[0] - middles[1]) > 2 * spread


def test_states_are_coloured_by_context(tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "MOST_POINTS", 60)
    panels = [("initial states", STATES, CONTEXTS), ("all states", STATES, np.zeros(80, int))]
    path = plot_states(panels, tmp_path / "states.svg", cartpole("CartPole-v0", 200, 0, 0))
    text = path.read_text()
    for words in ("initial states", "all states", "context 0", "context 1"):
        assert words in text
    assert len(re.findall(r'id="axes_\d+"', text)) == 2
    # Of both panels, and one more in the legend.
    assert marks(path, COLOURS[0]) + marks(path, COLOURS[1]) == 2 * 60 + 2


def test_distances_are_in_units_of_the_tasks_ranges(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(maps, "project", lambda points: seen.append(points) or points[:, :2])
    task = cartpole("CartPole-v0", 200, 0, 0)
    plot_states([("", STATES, CONTEXTS)], tmp_path / "a.png", task)
    order = np.random.default_rng(0).permutation(80)
    np.testing.assert_allclose(seen[0], STATES[order] / np.subtract(task.high, task.low))


def test_neighbours_in_a_grid_and_on_a_map(tmp_path):
    images = np.zeros((80, 8, 8, 4), np.uint8)
    found = nearest_neighbours(STATES, [3, 50], 5)
    text = plot_neighbours(images, found, tmp_path / "grid.svg").read_text()
    assert len(re.findall(r'id="axes_\d+"', text)) == 2 * 6
    assert text.count(">query<") == 2
    assert f"{found.distances[1, 4]:.3g}" in text
    path = plot_neighbour_map(STATES, found, tmp_path / "map.svg")
    assert "state 50 and its neighbours" in path.read_text()
    # Five neighbours, the query, and the query in the legend.
    assert marks(path, COLOURS[1]) == 7


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(BadInput, match="a map of 3 states"):
        plot_states([("few", STATES[:3], CONTEXTS[:3])], tmp_path / "a.png")
    with pytest.raises(BadInput, match="no states"):
        plot_states([], tmp_path / "a.png")
