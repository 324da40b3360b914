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
