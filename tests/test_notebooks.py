"""What a notebook shows: results as a curve, and progress."""

import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from untrained_runs import untrained

import iqrl
from iqrl.experiments.report.notebook import in_notebook
from iqrl.experiments.report.terminal import PlainDisplay, show_training
from iqrl.model import load_model
from iqrl.training.loop import Progress


def progress(step):
    return Progress(
        step=step, steps=100, returns=np.array([20.0, 30.0]), report={"epsilon": 0.5}, steps_per_second=1000.0,
        seconds_left=5.0, began=0,
    )  # fmt: skip


def test_a_result_is_shown_with_its_curve():
    shown = untrained()._repr_html_()
    assert shown.startswith("<div><svg ")
    assert "DQN on CartPole-v0, N = " in shown
    assert "2 seeds, 0 of 1,000 steps; return: highest 0.0, final 0.0, auc 0.0; " in shown
    assert "bytes of memory per seed" in shown


def test_a_model_is_shown_once_it_has_learned(tmp_path):
    model = iqrl.DQN("CartPole-v0")
    assert model._repr_html_() is None
    model._result = untrained().__class__(**{**vars(untrained()), "step": 1000})
    assert "<svg " in model._repr_html_()
    loaded = load_model(model.save(tmp_path / "agent.iqrl"))
    assert "<div>" in loaded._repr_html_()


@pytest.fixture
def notebook(monkeypatch):
    """A stand-in of IPython in a kernel; what it shows."""
    shown = []

    def display(content, display_id):
        shown.append(content)
        return SimpleNamespace(update=shown.append)

    page = SimpleNamespace(HTML=lambda text: text, display=display)
    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel, display=page))
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    return shown


def test_progress_in_a_notebook(notebook):
    with show_training("dqn <b>") as display:
        display(progress(50))
        display(progress(60))  # too soon
        display(progress(100))
    assert [text.count("<progress") for text in notebook] == [0, 1, 1]
    assert "dqn &lt;b&gt;: compiling…" in notebook[0]
    assert 'value="100" max="100"' in notebook[2]
    assert "return 25.0 (20.0…30.0)" in notebook[2]


def test_elsewhere_there_is_no_notebook(monkeypatch):
    assert not in_notebook()
    terminal = SimpleNamespace(get_ipython=SimpleNamespace)  # IPython on a terminal has no kernel
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert not in_notebook()
    assert isinstance(show_training("dqn"), PlainDisplay)


@pytest.mark.parametrize("wanted", [False, True])
def test_train_shows_progress_where_it_is_asked_to(monkeypatch, capsys, wanted):
    def trained(run, store, display, driver, follow):
        display(progress(100))
        return "done"

    monkeypatch.setattr("iqrl.api.train_run", trained)
    seen = []
    settings = {"steps": 1000, "progress_bar": wanted, "display": seen.append}
    assert iqrl.train("CartPole-v0", "dqn", **settings) == "done"
    assert len(seen) == 1
    assert ("dqn CartPole-v0: 100 of 100 steps" in capsys.readouterr().err) == wanted


def test_a_run_without_returns_is_shown_too():
    empty = untrained().__class__(**{**vars(untrained()), "metrics": pl.DataFrame()})
    assert empty._repr_html_().startswith("<div>")
