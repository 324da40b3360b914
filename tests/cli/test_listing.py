"""iqrl list."""

import sys
import time

import iqrl
from iqrl.envs.registry import TASKS
from iqrl.methods.registry import METHODS


def test_all_is_listed(run, trained):
    code, out, _ = run("list")
    assert code == 0
    assert [line for line in out.splitlines() if line[0] != " "] == ["tasks", "methods", "runs in runs"]
    final = f"{iqrl.load(trained).summary()['final']:.1f}"
    date = time.strftime("%Y-%m-%d %H:%M", time.localtime((trained / "run.json").stat().st_mtime))
    description = "dqn on CartPole-v0, N=100, 2 seeds, 1,000 steps, finished"
    assert out.splitlines()[-1] == f"  runs/dqn: {description}, final return {final}, {date}"


def test_every_task_has_a_line(run):
    lines = run("list", "tasks").out.splitlines()[1:]
    assert [line.split()[0] for line in lines[: len(TASKS)]] == list(TASKS)
    assert [line.split()[0] for line in lines[len(TASKS) :]] == ["ALE/Pong-v5,", "LunarLander-v3,", "my_module:MyEnv"]


def test_every_method_has_a_line_with_its_paper(run):
    lines = run("list", "methods").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(METHODS)
    assert all(method.paper in line for line, method in zip(lines, METHODS.values(), strict=True))


def test_runs(run, trained):
    assert run("list", "runs", "--dir", "elsewhere").out == "no runs in elsewhere\n"
    (trained / "run.json").write_text("{")
    assert run("list", "runs").out.startswith("runs in runs\n  runs/dqn: damaged; runs/dqn/run.json is not valid JSON")


def test_on_a_narrow_terminal_a_text_stays_beside_its_name(run, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("list", "methods").out.splitlines()[1:]
    assert max(map(len, lines)) <= 60
    assert [line[:22].strip() for line in lines if line[2] != " "] == list(METHODS)
