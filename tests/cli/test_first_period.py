"""A run that is stopped before its first point, and a display that fails: nothing is lost."""

import os
import shutil
import signal

import numpy as np
import polars as pl
import pytest

import iqrl
from iqrl.training import loop
from iqrl.training.run_directory import RunStore

SETTINGS = {"steps": 40, "period": 40, "seeds": 1, "learning_starts": 20, "target_period": 10}
FLAGS = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]


class Stop(Exception):
    """Of a display of the user's own."""


def stop_at(step):
    def display(progress):
        if progress.step >= step:
            raise Stop

    return display


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    """A hosted run that was stopped at step 30 of a period of 40."""
    path = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(loop, "SAVING_SHARE", np.inf)
        with pytest.raises(Stop):
            iqrl.train("gymnasium:CartPole-v1", "dqn", out=path, display=stop_at(30), **SETTINGS)
    return path


@pytest.fixture
def stopped(stopped_once, own_directory):
    return str(shutil.copytree(stopped_once, "runs/stopped"))


def test_it_is_listed_described_and_goes_on(stopped, run, refused):
    assert "dqn on gymnasium:CartPole-v1" in run("list", "runs").out
    assert "stopped in its first period, at 30" in run("list", "runs").out
    for command in ("plot", "explain"):
        assert "runs/stopped has no results yet: stopped in its first period" in refused(command, stopped)
    assert "has no measurements" in refused("interference", stopped)
    assert run("check", stopped).code == 0
    assert run("resume", stopped).code == 0
    whole = iqrl.train("gymnasium:CartPole-v1", "dqn", **SETTINGS)  # compiled when it was stopped
    assert RunStore.open(stopped).metrics().equals(whole.metrics)


@pytest.fixture(scope="module")
def within_the_second(tmp_path_factory):
    """A hosted run that was stopped at step 30, in its second period of 20, and what its display was told."""
    path, told = tmp_path_factory.mktemp("within") / "run", []

    def display(progress):
        told.append(progress)
        stop_at(30)(progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(loop, "SAVING_SHARE", np.inf)
        with pytest.raises(Stop):
            iqrl.train("gymnasium:CartPole-v1", "dqn", out=path, display=display, **SETTINGS | {"period": 20})
    return path, told


def test_within_a_period_the_last_known_return_is_shown(within_the_second):
    _, told = within_the_second
    first = [progress for progress in told if progress.step < 20]
    assert first
    assert not any(progress.known for progress in first)
    ended = next(progress for progress in told if progress.step == 20)
    later = [progress for progress in told if progress.step > 20]
    assert later
    for progress in [ended, *later]:
        assert progress.known
        np.testing.assert_array_equal(progress.returns, ended.returns)


def test_every_command_names_the_step_and_the_end_of_the_curves(within_the_second, run):
    path = str(within_the_second[0])
    within = RunStore.open(path)
    assert (within.trained_step, within.last_step) == (30, 20)
    assert "stopped at 30, curves to 20" in run("list", "runs", "--dir", str(within.path.parent)).out
    out = run("explain", path, "--out", "page.md").out
    assert "the run stopped at step 30 of 40, curves to 20;" in out.splitlines()[0]
    assert "; stopped at step 30 of 40, curves to 20." in out


def test_an_interruption_within_a_period_says_how_far_the_curves_go(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(loop, "SAVING_SHARE", np.inf)
    interrupt = lambda progress: os.kill(os.getpid(), signal.SIGINT) if progress.step == 30 else None
    said = "stopped at step 30 of 40; curves to 20; saved; continue with: iqrl resume "
    with pytest.raises(KeyboardInterrupt, match=said):
        iqrl.train("gymnasium:CartPole-v1", "dqn", out=tmp_path / "run", display=interrupt, **SETTINGS | {"period": 20})


def test_the_same_command_goes_on_from_a_table_without_columns(stopped, run):
    """As an earlier version wrote it."""
    pl.DataFrame().write_parquet(f"{stopped}/metrics.parquet")
    assert "stopped in its first period" in run("list", "runs").out
    code, _, err = run("train", "gymnasium:CartPole-v1", "--method", "dqn", *FLAGS, "--out", stopped)
    assert code == 0
    assert "holds this run up to step 30; continuing" in err


def test_one_of_several_runs_does_not_hide_the_others(stopped, trained, run):
    shutil.copytree(stopped, "runs/broken")
    with open("runs/broken/metrics.parquet", "wb") as file:
        file.write(b"x")
    code, out, _ = run("list", "runs")
    assert code == 0
    assert "runs/dqn: dqn on CartPole-v0" in out
    assert "runs/broken: damaged; runs/broken/metrics.parquet is not valid Parquet" in out


def test_an_error_in_a_display_saves_first(tmp_path):
    settings = {"steps": 400, "period": 100, "seeds": 2, "learning_starts": 100}
    with pytest.raises(Stop):
        iqrl.train("CartPole-v0", "dqn", out=tmp_path / "run", display=stop_at(200), **settings)
    assert RunStore.open(tmp_path / "run").last_step == 200
    assert RunStore.open(tmp_path / "run").has_checkpoint
