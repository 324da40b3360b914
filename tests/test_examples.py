"""The examples run: in this process, since importing JAX anew would take longer than most of them."""

import json
import runpy
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import iqrl
from iqrl import plugins
from iqrl.cli.main import main
from iqrl.diagnostics.analysis import context_matrix

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch, tmp_path):
    """Neither paths nor modules nor trust; and a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(plugins, "_trusted", set())
    for name in ("own_task", "own_method", "own_environment"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def script(monkeypatch, capsys):
    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture
def command(monkeypatch, capsys):
    """A command in a folder; its output."""

    def run(folder, *arguments):
        monkeypatch.chdir(folder)
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    return run


def test_compare(script):
    assert "greedy in Gymnasium" in script("compare.py", "3000")


def test_own_task_is_learned_from_the_command_line(command, tmp_path):
    """Starts are 0 to 4, the end is 9: 5 to 9 steps. The best mean return is 1 - 0.05 · 6 = 0.7."""
    settings = ["--steps", "20000", "--seeds", "2", "--cells", "10", "--out", tmp_path / "run", "--json"]
    out = command(EXAMPLES, "train", "own_task:corridor", *settings)
    assert json.loads(out.splitlines()[-1])["final"] > 0.6


def test_own_method_is_short_and_learns_from_the_command_line(command, tmp_path, monkeypatch, capsys):
    """Its own network and two settings: flags, in run.json, in the help, refused when out of range."""
    assert len((EXAMPLES / "own_method.py").read_text().splitlines()) < 60
    train = ["train", "CartPole-v0", "--method", "own_method:fourier"]
    settings = ["--steps", "12000", "--buffer-size", "5000", "--target-period", "100", "--fourier-features", "200"]
    settings += ["--epsilon-decay", "3000", "--seeds", "2", "--out", tmp_path / "run", "--json"]
    out = command(EXAMPLES, *train, *settings)
    assert json.loads(out.splitlines()[-1])["final"] > 50
    config = json.loads((tmp_path / "run" / "run.json").read_text())["config"]
    assert (config["fourier_features"], config["fourier_width"]) == (200, 0.5)
    with pytest.raises(SystemExit):
        main([*train, "--help"])
    assert "--fourier-width" in capsys.readouterr().out
    assert main([*train, "--fourier-width", "0"]) == 2
    assert capsys.readouterr().err == "iqrl: fourier_width must be above 0, got 0.0.\n"
    # Where its file is not found, the run can still be read and drawn.
    monkeypatch.delitem(sys.modules, "own_method")
    monkeypatch.setattr(plugins, "_trusted", set())
    monkeypatch.setattr(sys, "path", [path for path in sys.path if Path(path) != EXAMPLES])
    assert command(tmp_path, "plot", tmp_path / "run") == "wrote curves.png\n"
    assert "own_method" not in sys.modules


def test_own_environment_trains_from_the_command_line(command, tmp_path):
    settings = ["--steps", "300", "--learning-starts", "200", "--frame-stack", "2", "--out", tmp_path / "run"]
    out = command(EXAMPLES, "train", "own_environment:rewarded_catch", "--method", "dqn", "--seeds", "1", *settings)
    assert "run: " in out


@pytest.mark.skipif(find_spec("stable_baselines3") is None, reason="needs the extra sb3")
def test_interference_of_stable_baselines3(script, tmp_path):
    assert "negative_interference" in script("sb3_interference.py", "--steps", "400")
    assert (tmp_path / "sb3_interference.png").stat().st_size > 0


def test_context_figures(script, tmp_path, monkeypatch):
    monkeypatch.setattr(context_matrix, "context_matrix", partial(context_matrix.context_matrix, updates=9, settle=9))
    out = script("context_figures.py", "--steps", "1500", "--states", "100")
    assert "trained on    context 0" in out
    assert {path.name for path in tmp_path.iterdir()} == {"context_matrix.png", "context_states.png"}


def test_encoder_neighbours_draws(script, tmp_path):
    pytest.importorskip("ale_py", reason="ale-py plays the Atari games: pip install '.[atari]'")
    script("encoder_neighbours.py", "--steps", "100")
    assert {path.name for path in tmp_path.iterdir()} == {"neighbours.png", "neighbour_map.png"}


def test_encoder_neighbours_says_what_is_missing(script, monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(SystemExit, match=r"^the games are not installed; pip install"):
        script("encoder_neighbours.py", "--steps", "100")


def test_interference_over_time(script, tmp_path, monkeypatch):
    monkeypatch.setattr(iqrl, "train", partial(iqrl.train, measure_recent=200, measure_reservoir=100))
    out = script("interference_over_time.py", "--steps", "1100", "--seeds", "1", "--folder", "here")
    assert "**With it:** " in out
    assert (tmp_path / "here" / "interference.png").stat().st_size > 0


def test_shared_bins_reads_the_features_of_the_agent(script):
    """Its own hats, times the heads that act, are the values of the agent."""
    assert "CartPole-v1" in script("shared_bins.py", "--tasks", "CartPole-v1", "--steps", "2000")
    features = runpy.run_path(str(EXAMPLES / "shared_bins.py"))["features"]
    agent = iqrl.LocalQ("CartPole-v1", seeds=1, seed=3).learn(2000).agents[0]
    states = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    live, distance = np.split(np.asarray(agent.state.params["heads"]), 2, axis=1)
    acting = live + agent.state.optimiser * distance
    assert np.allclose(features(states, agent, 32) @ acting, agent.q_values(states), atol=1e-4)
