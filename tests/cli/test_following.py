"""iqrl train, resume, evaluate and check with evaluations on the way, early stop, the best model and trackers."""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import iqrl
from iqrl.files import read_json, write_json
from iqrl.training.run_directory import RunStore

AS_TRAINED = ["CartPole-v0", "--method", "dqn", "--steps", 1000, "--period", 250, "--seeds", 2]
AS_TRAINED += ["--learning-starts", 200, "--out", "run"]
"""the run of the fixture `trained`"""
FOLLOWED = ["--eval-every", 250, "--eval-episodes", 3, "--keep-best", "--patience", 1, "--track", "csv"]


@pytest.fixture
def falling(monkeypatch):
    """Evaluations without episodes: each is one lower than the one before."""
    play = lambda result, episodes, seed: np.full((2, episodes), 50.0 - result.step / 250)
    monkeypatch.setattr("iqrl.model.evaluate", play)


def test_a_run_is_followed_stopped_and_goes_on(run, trained, falling):
    """All of it in one test: it is one run, compiled thrice."""
    code, out, err = run("train", *AS_TRAINED, *FOLLOWED)
    assert code == 0, err
    reason = "stopped at step 500 of 1,000: the return of the evaluation was no better than 49 the last time"
    assert err.splitlines()[-1] == f"run: {reason}."
    assert "evaluation 49.0" in err
    assert "best evaluation: 49.0 at step 250: run/best.iqrl\n" in out
    table = pl.read_parquet("run/evaluations.parquet")
    assert table.select("seed", "step", "return", "episodes").rows() == [
        (0, 250, 49.0, 3), (1, 250, 49.0, 3), (0, 500, 48.0, 3), (1, 500, 48.0, 3),
    ]  # fmt: skip
    assert pl.read_csv("run/tracking.csv")["evaluation"].to_list() == [49.0, 48.0]
    assert iqrl.load("run/best.iqrl").num_timesteps == 250

    # It is at its end, for the same command and for resume, until it gets another rule.
    for again in (["train", *AS_TRAINED], ["resume", "run"]):
        code, _, err = run(*again)
        assert (code, err) == (0, f"run holds this run; {reason}.\n")
    assert iqrl.load("run").step == 500

    code, _, err = run("resume", "run", "--patience", 0)
    assert (code, "continuing" in err) == (0, True)
    finished = iqrl.load("run")
    assert finished.metrics.equals(iqrl.load(trained).metrics)
    assert finished.run == iqrl.load(trained).run
    kept = json.loads(Path("run/run.json").read_text())
    assert kept["following"] | {"patience": 1} == {
        "eval_every": 250, "eval_episodes": 3, "keep_best": True, "stop_at": "never", "patience": 1, "track": "csv",
    }  # fmt: skip
    assert kept["id"] == json.loads((trained / "run.json").read_text())["id"]
    assert pl.read_parquet("run/evaluations.parquet")["step"].unique().to_list() == [250, 500, 750, 1000]
    assert pl.read_csv("run/tracking.csv")["step"].to_list() == [250, 500, 750, 1000]

    # Its files are known to iqrl check.
    assert run("check", "run").out.count("intact") == 6
    for name in ("evaluations.parquet", "best.iqrl"):
        data = bytearray((Path("run") / name).read_bytes())
        data[len(data) // 2] ^= 1
        (Path("run") / name).write_bytes(data)
        code, out, _ = run("check", "run")
        assert code == 1
        assert f"run/{name} is damaged" in out
    code, _, err = run("evaluate", "run", "--episodes", 1)
    assert (code, "run/evaluations.parquet is damaged" in err) == (2, True)


def test_evaluate_says_at_which_step_an_unfinished_run_is(run, trained):
    assert "at step" not in run("evaluate", trained, "--episodes", 1).out
    store = RunStore.open(trained)
    store.extend(4000)
    store.write_info()
    assert run("evaluate", trained, "--episodes", 1).out.splitlines()[0] == "at step 1,000 of 4,000"
    numbers = run("evaluate", trained, "--episodes", 1, "--json").json
    assert (numbers["step"], numbers["steps"]) == (1000, 4000)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--keep-best"], "keep_best is for a run that is evaluated; give eval_every."),
        (["--eval-every", "-5"], "eval_every must be at least 0, got -5."),
        (["--eval-every", "100", "--eval-episodes", "0"], "eval_episodes must be at least 1, got 0."),
        (["--stop-at", "high"], "'high' is not a number, nor never"),
        (["--track", "tensorbord"], "unknown track 'tensorbord'; did you mean tensorboard?"),
    ],
)
def test_flags_that_do_not_fit_are_refused_before_anything_is_written(refused, trained, flags, words):
    assert words in refused("train", *AS_TRAINED, *flags)
    assert words in refused("resume", trained, *flags)


def test_a_tracker_that_is_not_installed(refused, trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert "pip install wandb." in refused("train", *AS_TRAINED, "--track", "wandb")
    assert "pip install wandb." in refused("resume", trained, "--track", "wandb")


def test_kept_rules_that_are_not_rules_are_refused(refused, trained):
    content = read_json(trained / "run.json", "run")
    for wrong in ({"eval_every": "x"}, {"unknown": 1}, 5):
        write_json(trained / "run.json", "run", content | {"following": wrong})
        assert "run.json cannot be read as a run" in refused("resume", trained)
