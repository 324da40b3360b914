"""The examples run."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(*arguments, folder):
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compare(tmp_path):
    out = run(str(EXAMPLES / "compare.py"), "4000", folder=tmp_path)
    assert "greedy in Gymnasium" in out


def test_own_task_is_learned_from_the_command_line(tmp_path):
    """Starts are 0 to 4, the end is 9: 5 to 9 steps. The best mean return is 1 - 0.05 · 6 = 0.7."""
    settings = ["--steps", "20000", "--seeds", "2", "--cells", "10"]
    settings += ["--out", str(tmp_path / "run"), "--json"]
    out = run("-m", "iqrl.cli", "train", "own_task:corridor", *settings, folder=EXAMPLES)
    assert json.loads(out.splitlines()[-1])["final"] > 0.6


def test_own_method_is_short_and_learns_from_the_command_line(tmp_path):
    """Its own network and two settings: flags, in run.json, in the help, refused when out of range."""
    assert len((EXAMPLES / "own_method.py").read_text().splitlines()) < 60
    train = ["-m", "iqrl.cli", "train", "CartPole-v0", "--method", "own_method:fourier"]
    settings = ["--steps", "20000", "--buffer-size", "5000", "--target-period", "100", "--fourier-features", "200"]
    settings += ["--epsilon-decay", "5000", "--seeds", "2", "--out", str(tmp_path / "run"), "--json"]
    out = run(*train, *settings, folder=EXAMPLES)
    assert json.loads(out.splitlines()[-1])["final"] > 60
    config = json.loads((tmp_path / "run" / "run.json").read_text())["config"]
    # Where its file is not found, the run can still be read and drawn.
    assert run("-m", "iqrl.cli", "plot", str(tmp_path / "run"), folder=tmp_path) == "curves.png\n"
    assert (config["fourier_features"], config["fourier_width"]) == (200, 0.5)
    assert "--fourier-width" in run(*train, "--help", folder=EXAMPLES)
    command = [sys.executable, *train, "--fourier-width", "0"]
    refused = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True)
    assert (refused.returncode, refused.stderr) == (2, "iqrl: fourier_width must be above 0, got 0.0.\n")


def test_own_environment_trains_from_the_command_line(tmp_path):
    settings = ["--steps", "400", "--learning-starts", "200", "--frame-stack", "2", "--out", str(tmp_path / "run")]
    out = run(
        "-m", "iqrl.cli", "train", "own_environment:rewarded_catch", "--method", "dqn", *settings, folder=EXAMPLES
    )
    assert "run: " in out


@pytest.mark.skipif(find_spec("stable_baselines3") is None, reason="needs the extra sb3")
def test_interference_of_stable_baselines3(tmp_path):
    out = run(str(EXAMPLES / "sb3_interference.py"), "--steps", "400", folder=tmp_path)
    assert "negative_interference" in out
    assert (tmp_path / "sb3_interference.png").stat().st_size > 0


def test_context_figures(tmp_path):
    out = run(str(EXAMPLES / "context_figures.py"), "--steps", "1500", "--states", "100", folder=tmp_path)
    assert "trained on    context 0" in out
    assert {path.name for path in tmp_path.iterdir()} == {"context_matrix.png", "context_states.png"}


def test_encoder_neighbours_draws_or_says_what_is_missing(tmp_path):
    command = [sys.executable, str(EXAMPLES / "encoder_neighbours.py"), "--steps", "100"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if done.returncode == 0:
        assert {path.name for path in tmp_path.iterdir()} == {"neighbours.png", "neighbour_map.png"}
    else:
        assert done.stderr.splitlines()[-1].startswith("the games are not installed; pip install")
        assert "Traceback" not in done.stderr


def test_interference_over_time(tmp_path):
    command = [str(EXAMPLES / "interference_over_time.py"), "--steps", "1200", "--seeds", "1", "--folder", "here"]
    assert "# Why did it collapse? dqn on CartPole-v0" in run(*command, folder=tmp_path)
    assert (tmp_path / "here" / "interference.png").stat().st_size > 0
