"""Figures of interference."""

import io
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from iqrl.diagnostics.analysis.context_matrix import ContextMatrix
from iqrl.diagnostics.metrics import heading_of
from iqrl.errors import BadInput
from iqrl.experiments.report.arrangement import squared_unit
from iqrl.experiments.report.figures.curves import percent
from iqrl.experiments.report.figures.interference import (
    _readable_scale,
    figure_names,
    plot_context_matrix,
    plot_interference,
    plot_negative_interference,
)
from iqrl.experiments.report.terminal import COLUMNS, _interference_legend
from iqrl.experiments.report.terminal_table import print_table
from iqrl.make_run import resolve


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
    for words in ("DQN on CartPole-v0, N = 100", "seed 2", "AEI", "return", "environment steps", "raise the error"):
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
    for words in ("CartPole-v0, N = 1<", "CartPole-v0, N = 100", "Acrobot-v1, N = 100", ">DQN<", ">IQ<"):
        assert words in text


def test_the_unit_is_that_of_the_rewards_that_are_learned_from(tmp_path):
    local, dqn = resolve("CartPole-v0", "stream-q"), resolve("CartPole-v0", "dqn", buffer_size=1)
    assert squared_unit([dqn, dqn]) == "reward²"
    assert squared_unit([resolve("CartPole-v0", "local-q")]) == squared_unit([local]) == "scaled reward²"
    assert squared_unit([resolve("CartPole-v0", "dqn", reward_scale=0.1)]) == "scaled reward²"
    assert ">AEI, scaled reward²<" in plot_interference(local, measured(), tmp_path / "a.svg").read_text()
    assert ">AEI, reward²<" in plot_interference(dqn, measured(), tmp_path / "a.svg").read_text()
    both = [(local, measured()), (dqn, measured())]
    drawn = plot_negative_interference(both, tmp_path / "b.svg").read_text()
    assert ">negative interference, reward² (stream-q: scaled reward²)<" in drawn


def test_the_heads_of_the_table_are_one_word_and_stand_in_one_line():
    file = io.StringIO()
    runs = [(resolve("CartPole-v0", "local-q", share_step=share), measured()) for share in (0.5, 0.6)]
    console = Console(file=file, width=80)
    print_table(
        console, "interference", ["method", *map(heading_of, COLUMNS)], [["local-q share_step=0.5", *"1234567"]]
    )
    head = next(line for line in file.getvalue().splitlines() if "negative" in line)
    assert head.split() == ["method", "negative", "relative", "raising", "largest", "tail", "cosine", "dormant"]
    legend = "\n".join(_interference_legend([run for run, _ in runs]))
    for word in head.split()[1:]:
        assert f"{word}:" in legend
    assert legend.endswith("unit of negative, largest and tail: scaled reward²")


def test_a_run_without_measurement_and_a_name_without_format_are_refused(tmp_path):
    with pytest.raises(BadInput, match="did not measure interference: its metrics have no negative_interference"):
        plot_interference(RUN, measured().drop("negative_interference"), tmp_path / "a.svg")
    with pytest.raises(BadInput, match="no negative_interference"):
        plot_negative_interference([(RUN, measured().drop("negative_interference"))], tmp_path / "a.svg")
    with pytest.raises(BadInput, match=r"cannot draw a\.gif"):
        plot_interference(RUN, measured(), tmp_path / "a.gif")
    with pytest.raises(BadInput, match="no runs"):
        plot_negative_interference([], tmp_path / "a.svg")


def test_runs_of_one_name_are_told_apart_by_the_directory_above():
    assert figure_names([Path("a/same"), Path("b/same"), Path("c/other")]) == ["a-same", "b-same", "other"]


# Among contexts


def test_the_heat_map_says_mean_range_shares_and_what_is_left_out(tmp_path):
    change = np.array([[[-0.5, np.nan, 0.2]] * 3, [[-0.7, np.nan, 3.0]] * 3])
    counts = np.array([[600, 10, 390], [800, 20, 180]])
    matrix = ContextMatrix(change, np.ones((2, 3)), counts, np.tile(np.arange(3), (2, 1)), True)
    text = plot_context_matrix(matrix, resolve("CartPole-v0", "iq"), tmp_path / "matrix.svg").read_text()
    for words in ("IQ on CartPole-v0, N = 100", "−60%", "+160%", "−70% … −50%", "70% of states", "too few"):
        assert words in text
    assert "2 of 6 contexts have too few transitions and are left out" in text
    assert text.count("context 1") == 2


def test_a_matrix_of_nothing_is_drawn(tmp_path):
    nothing = np.full((1, 2, 2), np.nan)
    matrix = ContextMatrix(nothing, nothing[0], np.array([[9, 9]]), np.array([[0, 1]]), False)
    text = plot_context_matrix(matrix, resolve("CartPole-v0", "dqn"), tmp_path / "matrix.svg").read_text()
    assert "clusters of its states, 1 seed<" in text


def test_numbers_are_short():
    assert [percent(x) for x in (0.0, -1e-5, 0.012, -0.0996, 0.5, 12.0)] == [
        "0%",
        "0%",
        "+1.2%",
        "−10%",
        "+50%",
        "+1200%",
    ]
