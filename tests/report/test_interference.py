import re

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from iqrl.errors import BadInput
from iqrl.report.interference import _readable_scale, plot_interference, plot_negative_interference
from iqrl.settings import resolve


def measured(seeds=3, periods=8, scale=1.0):
    random = np.random.default_rng(0)
    seed, step = np.divmod(np.arange(seeds * periods), periods)
    size = scale * np.exp(random.normal(size=seed.size))
    returns = np.where(step == 0, np.nan, 100 + 10 * random.normal(size=seed.size))
    columns = {"aei": size - scale, "aei_largest": 500 * size, "negative_interference": np.where(step == 0, 0.0, size)}
    return pl.DataFrame({"seed": seed, "step": (step + 1) * 100, "return": returns} | columns)


def axes_of(path):
    """Axes, and those beside them, in an SVG file."""
    return len(re.findall(r'id="axes_\d+"', path.read_text()))


RUN = resolve("CartPole-v0", "dqn")


def test_a_panel_per_seed_with_two_scales(tmp_path):
    path = plot_interference(RUN, measured(), tmp_path / "seeds.svg")
    assert axes_of(path) == 2 * 3
    text = path.read_text()
    for words in ("dqn on CartPole-v0, N=100", "seed 2", "AEI", "return", "environment steps", "raise the error"):
        assert words in text
    assert axes_of(plot_interference(RUN, measured(seeds=9), tmp_path / "many.svg")) == 2 * 6


def test_one_seed_alone(tmp_path):
    path = plot_interference(RUN, measured(), tmp_path / "one.svg", seed=1)
    assert axes_of(path) == 2
    assert "seed 1" in path.read_text()
    with pytest.raises(BadInput, match="seed 7 is not in the run; it has 0, 1, 2"):
        plot_interference(RUN, measured(), tmp_path / "one.svg", seed=7)


def test_the_scale_is_logarithmic_where_values_span_orders_of_magnitude():
    scale = lambda *curves: _scale_of(*map(np.asarray, curves))
    assert scale([0.1, -0.2, 0.3], [1.0, 2.0, np.nan]) == "linear"
    assert scale([0.1, -0.2, 0.3], [100.0, 20.0, np.nan]) == "symlog"
    assert scale([0.0, 0.0], [0.0, np.nan]) == "linear"


def _scale_of(*curves):
    axis = Figure().subplots()
    _readable_scale(axis, *curves)
    return axis.get_yscale()


def test_negative_interference_has_a_panel_per_task_and_buffer_size(tmp_path):
    runs = [(resolve("CartPole-v0", method, buffer_size=n), measured()) for n in (1, 100) for method in ("dqn", "iq")]
    runs.append((resolve("Acrobot-v1", "iq"), measured(scale=1e-3)))
    path = plot_negative_interference(runs, tmp_path / "negative.svg")
    assert axes_of(path) == 3
    text = path.read_text()
    for words in ("CartPole-v0, N=1<", "CartPole-v0, N=100", "Acrobot-v1, N=100", ">dqn<", ">iq<"):
        assert words in text


def test_a_run_without_measurement_and_a_name_without_format_are_refused(tmp_path):
    with pytest.raises(BadInput, match="did not measure interference: its metrics have no negative_interference"):
        plot_interference(RUN, measured().drop("negative_interference"), tmp_path / "a.svg")
    with pytest.raises(BadInput, match="no negative_interference"):
        plot_negative_interference([(RUN, measured().drop("negative_interference"))], tmp_path / "a.svg")
    with pytest.raises(BadInput, match=r"cannot draw a\.gif"):
        plot_interference(RUN, measured(), tmp_path / "a.gif")
    with pytest.raises(BadInput, match="no runs"):
        plot_negative_interference([], tmp_path / "a.svg")
