"""The examples run."""

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(*arguments, folder):
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compare(tmp_path):
    out = run(str(EXAMPLES / "compare.py"), "4000", folder=tmp_path)
    assert "greedy in Gymnasium" in out


def test_own_task_is_learned_from_the_command_line(tmp_path):
    """Nine cells from the left end at most: the best mean return is 1 - 0.05 · 6 = 0.7."""
    settings = ["--steps", "20000", "--buffer-size", "1000", "--target-period", "100"]
    settings += ["--out", str(tmp_path / "run"), "--json"]
    out = run("-m", "iqrl.cli", "train", "own_task:corridor", *settings, folder=EXAMPLES)
    assert json.loads(out.splitlines()[-1])["final"] > 0.6


def test_own_method_is_short_and_learns_from_the_command_line(tmp_path):
    assert len((EXAMPLES / "own_method.py").read_text().splitlines()) < 40
    settings = ["--steps", "20000", "--buffer-size", "5000", "--target-period", "100", "--learning-rate", "0.001"]
    settings += ["--epsilon-decay", "5000", "--seeds", "2", "--out", str(tmp_path / "run"), "--json"]
    out = run("-m", "iqrl.cli", "train", "CartPole-v0", "--method", "own_method:leaning", *settings, folder=EXAMPLES)
    assert json.loads(out.splitlines()[-1])["final"] > 45
