import io

import numpy as np
import pytest
from rich.console import Console

from iqrl.errors import BadInput
from iqrl.report.figures import plot_curves
from iqrl.report.labels import distinct_labels
from iqrl.report.progress import LiveDisplay, PlainDisplay, clock, returns_text
from iqrl.settings import resolve
from iqrl.training.loop import Progress


def test_labels_name_what_differs():
    runs = [resolve("CartPole-v0", "iq", buffer_size=n) for n in (1, 100)] + [resolve("CartPole-v0", "dqn")]
    assert distinct_labels(runs) == ["iq N=1", "iq N=100", "dqn N=100"]
    assert distinct_labels(runs[:1]) == ["iq"]


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


REPORT = Progress(2000, 4000, np.array([10.0, np.nan, 30.0]), 0.5, 12345.6, 75.0)


@pytest.mark.parametrize("kind", [LiveDisplay, PlainDisplay])
def test_displays_say_return_epsilon_speed_and_time_left(kind):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=kind is LiveDisplay, width=160)
    with kind(console, "iq on CartPole-v0") as display:
        display(REPORT)
    text = stream.getvalue()
    speed = "12k steps/s" if kind is LiveDisplay else "12,346 steps/s"
    for words in ("iq on CartPole-v0", "return 20.0 (10…30)", "0.50", speed, "1:15 left"):
        assert words in text


def test_small_words():
    assert clock(3661) == "1:01:01"
    assert returns_text(np.array([np.nan])) == "no episode ended"
