"""Figures of curves."""

import numpy as np
import pytest

from iqrl.colours import COLOURS, METHODS
from iqrl.errors import BadInput
from iqrl.experiments.report.arrangement import plot_labels
from iqrl.experiments.report.figures.curves import _band, _line_styles, plot_curves
from iqrl.make_run import resolve


def test_figure_has_a_panel_per_task_and_bridges_gaps(tmp_path):
    steps = np.arange(5) * 100
    returns = np.random.default_rng(0).normal(size=(3, 5))
    returns[0, 2] = np.nan
    curves = [(resolve(task, "iq"), steps, returns) for task in ("CartPole-v0", "Acrobot-v1")]
    path = plot_curves(curves, tmp_path / "two.svg")
    text = path.read_text()
    assert "CartPole-v0" in text
    assert "Acrobot-v1" in text


def test_a_figure_of_no_returns_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no episode has ended yet"):
        plot_curves([(resolve("CartPole-v0", "iq"), np.arange(2), np.full((1, 2), np.nan))], tmp_path / "none.svg")
    assert not list(tmp_path.iterdir())


def test_a_method_has_one_colour_in_all_panels_and_dashes_where_it_is_drawn_twice():
    runs = [
        resolve(task, method, buffer_size=size)
        for task, method, size in (
            ("CartPole-v0", "dqn", 1), ("CartPole-v0", "dqn", 100), ("CartPole-v0", "iq", 1), ("Acrobot-v1", "dqn", 1),
        )
    ]  # fmt: skip
    labels = plot_labels(runs)
    assert labels == ["DQN, N = 1", "DQN, N = 100", "IQ, N = 1", "DQN, N = 1"]
    (one, solid), (two, dash), (other, _), again = _line_styles(runs, labels)
    assert one == two == COLOURS[METHODS["dqn"]]
    assert other == COLOURS[METHODS["iq"]]
    assert solid != dash
    assert again == (one, solid)


def test_the_interval_of_the_mean_by_hand():
    returns = np.array([[1.0, 5.0], [3.0, 5.0], [5.0, np.nan]])
    low, high = _band(returns, np.array([3.0, 5.0]), "interval")
    # 3 ± 4.303 · 2 / √3, cut to what the seeds did; two equal seeds have no width.
    assert [low.tolist(), high.tolist()] == [[1.0, 5.0], [5.0, 5.0]]
    wide = np.repeat([[1.0], [3.0], [5.0]], 4, axis=0)
    low, high = _band(wide, np.array([3.0]), "interval")
    deviation = np.std(wide, ddof=1)
    assert high[0] - 3.0 == pytest.approx(2.201 * deviation / np.sqrt(12), rel=1e-3)
    assert 3.0 - low[0] == pytest.approx(high[0] - 3.0)
