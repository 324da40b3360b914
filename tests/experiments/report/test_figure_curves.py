"""Figures of curves."""

import numpy as np
import pytest

from iqrl.colours import COLOURS, METHODS
from iqrl.errors import BadInput
from iqrl.experiments.report.arrangement import plot_labels
from iqrl.experiments.report.figures import curves
from iqrl.experiments.report.figures.curves import DASHES, SHADES, _band, _line_styles, plot_curves, shade
from iqrl.make_run import resolve


def test_figure_has_a_panel_per_task_and_bridges_gaps(tmp_path):
    steps = np.arange(5) * 100
    returns = np.random.default_rng(0).normal(size=(3, 5))
    returns[0, 2] = np.nan
    drawn = [(resolve(task, "iq"), steps, returns) for task in ("CartPole-v0", "Acrobot-v1")]
    path = plot_curves(drawn, tmp_path / "two.svg")
    text = path.read_text()
    assert "CartPole-v0" in text
    assert "Acrobot-v1" in text


def test_a_figure_of_no_returns_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no episode has ended yet"):
        plot_curves([(resolve("CartPole-v0", "iq"), np.arange(2), np.full((1, 2), np.nan))], tmp_path / "none.svg")
    assert not list(tmp_path.iterdir())


def test_a_method_has_one_colour_in_all_panels_and_shades_and_dashes_where_it_is_drawn_twice():
    runs = [
        resolve(task, method, buffer_size=size)
        for task, method, size in (
            ("CartPole-v0", "dqn", 1), ("CartPole-v0", "dqn", 100), ("CartPole-v0", "iq", 1), ("Acrobot-v1", "dqn", 1),
        )
    ]  # fmt: skip
    labels = plot_labels(runs)
    assert labels == ["DQN, N = 1", "DQN, N = 100", "IQ, N = 1", "DQN, N = 1"]
    (one, solid), (two, dash), (other, _), again = _line_styles(runs, labels)
    assert one == COLOURS[METHODS["dqn"]]
    assert two == shade(one, SHADES[1]) != one
    assert other == COLOURS[METHODS["iq"]]
    assert solid != dash
    assert again == (one, solid)


def test_four_runs_of_one_method_have_four_shades_and_dashes():
    runs = [resolve("CartPole-v0", "local-q", share_step=share) for share in (0.5, 0.6, 0.7, 0.8)]
    styles = _line_styles(runs, plot_labels(runs))
    assert len({colour for colour, _ in styles}) == len(SHADES) == 4
    assert [dash for _, dash in styles] == list(DASHES)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_legend_is_never_cut(tmp_path, monkeypatch, count):
    """Labels of several settings: side by side they are wider than the figure, five of them even one by one."""
    steps, returns = np.arange(5) * 100, np.ones((2, 5)).cumsum(axis=1)
    many = {"learning_rate": 0.5, "step_bound": 2.5, "act_average": 0.01, "average_fall": 1000, "target_average": 0.5}
    runs = [resolve("CartPole-v0", "local-q", share_step=0.1 * i, **(many if i else {})) for i in range(count)]
    seen, save = [], curves._save

    def keep(figure, path):
        save(figure, path)
        seen.append(figure)

    monkeypatch.setattr(curves, "_save", keep)
    plot_curves([(run, steps, returns) for run in runs], tmp_path / "a.png")
    (figure,) = seen
    (legend,) = figure.legends
    box, panel = legend.get_window_extent(), figure.axes[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert 0 <= box.y0 < box.y1 < panel.y0
    assert panel.height > 0.6 * 4.4 * figure.dpi
    assert len(legend.get_texts()) == count
    words = {text.get_text().replace("\n", " ") for text in legend.get_texts()}
    assert words == set(plot_labels(runs))


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


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_what_is_drawn_twice_is_the_same_file(tmp_path, monkeypatch, form):
    files = []
    for day in ("0", "86400"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", day)  # what matplotlib takes for now
        path = tmp_path / f"{day}.{form}"
        with curves.drawing(path, 2, 2) as figure:
            figure.subplots().plot([0, 1], clip_on=True)
        files.append(path.read_bytes())
    assert files[0] == files[1]
