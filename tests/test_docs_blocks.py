"""Every command and every piece of Python on a page is checked: commands are parsed, Python runs with few steps.

Nothing here trains for long. Bash reads the commands, loops and comments included, with a function in the place of each
program that writes down how it was called. Python runs page by page, in order, in one namespace.
"""

import functools
import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import iqrl
from iqrl import plugins
from iqrl.cli.main import parse
from iqrl.cli.settings import read_request
from iqrl.errors import BadInput
from iqrl.experiments.study.study import find_study
from iqrl.make_run import resolve

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = {"docs/interference.md": "needs Stable-Baselines3"}
"""pages whose Python is only compiled"""
STUB = "from gymnasium.envs.classic_control import CartPoleEnv\nMyEnv = SlowEnv = make_env = CartPoleEnv\n"
"""what pages call my_module, my_env and my_file"""
SPELLED = {"iqrl": "iqrl", "python": "python", ".venv/bin/python": "python", "pip": "pip"}
SCRIPTS = {f"scripts/{path.name}": "script" for path in (ROOT / "scripts").iterdir()}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def named(path):
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def calls():
    """[page, program, arguments …] of every command of every page."""
    stubs = [f"{name}() {{ printf '%s\\0' \"$PAGE\" {name} \"$@\" ''; }}" for name in SPELLED | SCRIPTS]
    ours = "cd() { :; }; .() { :; }; git() { :; }; set -eu"
    parts = [f"PAGE={named(page)}\n{block}" for page in PAGES for block in blocks(page, "sh")]
    script = "\n".join([*stubs, ours, *parts])
    bash = [shutil.which("bash"), "-c", script]
    done = subprocess.run(bash, capture_output=True, text=True, env={"PATH": ""}, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\0") for line in done.stdout.strip("\0").split("\0\0")]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder with what pages take for granted: files of their own, the results of the repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(ROOT / "examples"), *sys.path])
    monkeypatch.setattr(plugins, "_trusted", set())
    for name in ("my_module.py", "my_env.py", "my_file.py"):
        (tmp_path / name).write_text(STUB)
    (tmp_path / "tuning" / "CartPole-v1-dqn").mkdir(parents=True)
    (tmp_path / "tuning" / "CartPole-v1-dqn" / "best.toml").write_text('task = "CartPole-v1"\nmethod = "dqn"\n')
    (tmp_path / "own_network.py").write_text((ROOT / "examples" / "own_network.py").read_text())
    (tmp_path / "results").symlink_to(ROOT / "results")
    for page in PAGES:
        for block in blocks(page, "toml"):
            assert block.startswith("# "), f"{page}: a file of settings says its name in its first line"
            (tmp_path / block.split()[1]).write_text(block)
    return tmp_path


def test_commands_of_iqrl_are_understood(calls, elsewhere):
    commands = [(page, arguments) for page, program, *arguments in calls if SPELLED.get(program) == "iqrl"]
    assert len(commands) > 80
    for page, arguments in commands:
        try:
            check_command(arguments)
        except BadInput as error:
            pytest.fail(f"{page}: iqrl {' '.join(arguments)}: {error}")


def check_command(arguments):
    """Its flags are there; of a run, its settings make sense together."""
    if arguments[-1] in ("--help", "--help-all"):
        return
    options = parse(arguments)
    if arguments[0] == "train" and not arguments[1].startswith(("ALE/", "LunarLander", "highway_env")):
        request = read_request(options)
        resolve(request.task, request.method, request.preset, **request.settings)


def test_studies_of_pages_can_be_read(elsewhere):
    assert len(find_study("mine.toml").runs) == 18
    assert len(find_study("search.toml").runs) == 2 * 11


def test_scripts_and_packages_that_are_named_are_there(calls):
    for page, program, *arguments in calls:
        if SPELLED.get(program) == "python" and not arguments[0].startswith("-"):
            assert (ROOT / arguments[0]).is_file(), f"{page} names {arguments[0]}"
        if program == "pip":
            for extra in re.findall(r"^(?:\.|iqrl)\[(\w+)\]$", "\n".join(arguments), re.M):
                assert extra in EXTRAS, f"{page} names the extra {extra}"


SHORTER = {
    '"local-q", **settings': '"dqn", buffer_size=1, measure_every=100, **settings',
    "buffer_size=50_000": "buffer_size=1",
    "_000": "0",
    "seed=0": "seed=0, hidden=(8,)",
    "measure_every=100": "measure_every=5",
    '"seeds": 3': '"seeds": 2, "learning_starts": 50',
}


def shortened(code):
    """A thousandth of the steps, or so, and a small network: one and the same run on all pages, compiled once."""
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    return code


def run_python(page):
    """What the page's Python leaves behind, run in order in one namespace."""
    namespace = {"__name__": "page"}
    program = compile(shortened("\n".join(blocks(page, "python"))), named(page), "exec")
    if named(page) not in NOT_RUN:
        exec(program, namespace)
    return namespace


MODELS = ROOT / "docs" / "models.md"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python") and page != MODELS], ids=named)
def test_python_runs(page, elsewhere, monkeypatch):
    monkeypatch.delitem(sys.modules, "agent", raising=False)  # which the page on exports writes
    run_python(page)


def test_python_on_models_does_what_the_page_says(elsewhere, capsys):
    model = run_python(MODELS)["model"]
    assert {path.name for path in elsewhere.iterdir()} >= {"best.iqrl", "agent.iqrl", "whole.iqrl", "tracking"}
    assert model.changes[0]["learning_rate"] == [1.0, 0.5]
    assert "epsilon_final 0.01 from step" in capsys.readouterr().out


NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_show_what_is_stored(path, monkeypatch):
    """Fewer steps give other numbers, and the same kinds of output. Runs that are alike then are made once."""
    monkeypatch.setattr(iqrl, "train", functools.cache(iqrl.train))
    script = runpy.run_path(str(ROOT / "scripts" / "notebooks"))
    stored = json.loads(path.read_text())
    assert stored["metadata"]["executed"] == script["digest"](stored), "run scripts/notebooks"
    kinds = lambda notebook: [[o["output_type"] for o in cell.get("outputs", [])] for cell in notebook["cells"]]
    assert kinds(script["execute"](stored, shortened)) == kinds(stored)
    assert path.stat().st_size < 200_000
