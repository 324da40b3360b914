"""Figures of curves."""

import numpy as np
import pytest

from iqrl.errors import BadInput
from iqrl.experiments.report.figures.curves import plot_curves
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
