"""A directory that somebody sent is read, and none of its code is run."""

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import iqrl
from iqrl import plugins
from iqrl.cli.main import main
from iqrl.errors import BadInput
from iqrl.training.run_directory import RunStore

PAYLOAD = """
from pathlib import Path

Path("payload-was-run").write_text("")


def task():
    Path("payload-was-called").write_text("")
"""
TASK = """
import jax.numpy as jnp
import iqrl

walk = iqrl.Task(
    name="walk", actions=2, low=(0.0,), high=(5.0,), time_limit=9, num_reset_uniforms=0,
    reset=lambda inputs: jnp.int32(0),
    step=lambda place, action, inputs: (jnp.clip(place + action, 0, 5), jnp.float32(1), place == 5),
    observe=lambda place: place[None].astype(jnp.float32),
)
"""
SMALL = {"steps": 200, "period": 100, "seeds": 1, "learning_starts": 50, "target_period": 50}
STUDY = f"""
[settings]
{chr(10).join(f"{name} = {value}" for name, value in SMALL.items())}
[[runs]]
task = "own_walk:walk"
method = "dqn"
"""


@pytest.fixture(scope="module")
def own_study_once(tmp_path_factory):
    """A study of a task of one's own, run once; its directory, and that of its run."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_walk.py").write_text(TASK)
    (folder / "own.toml").write_text(STUDY)
    command = [sys.executable, "-m", "iqrl", "study", "run", "own.toml", "--out", "study", "--no-report"]
    subprocess.run([*command, "--workers", "1"], cwd=folder, check=True, env=os.environ, capture_output=True)
    return folder


@pytest.fixture
def own_study(own_study_once, own_directory):
    for name in ("own_walk.py", "own.toml", "study"):
        source = own_study_once / name
        shutil.copytree(source, name) if source.is_dir() else shutil.copy(source, name)
    return Path("study")


@pytest.fixture
def received(own_study, monkeypatch):
    """The same directory as it comes from somebody else: no key of theirs is here, and the module is a payload."""
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("other-state").resolve()))
    monkeypatch.setattr(plugins, "_trusted", set())
    monkeypatch.delitem(sys.modules, "own_walk", raising=False)
    Path("own_walk.py").write_text(PAYLOAD)
    return own_study


def run_of(study):
    return next((study / "runs").iterdir())


COMMANDS = {
    "evaluate RUN": 2, "watch RUN": 2, "cost RUN": 2, "resume RUN": 2, "resume RUN --steps 400": 2,
    "interference RUN --matrix": 2, "interference RUN --map": 2, "interference RUN": 2, "plot RUN": 0, "explain RUN": 0,
    "list runs --dir STUDY/runs": 0,
    "study status STUDY": 0, "study export STUDY --out export": 0, "study list own.toml": 0, "report STUDY": 0,
    "study choose STUDY --over steps --out best.toml": 2, "check STUDY RUN": 0,
}  # fmt: skip
"""with their exit codes: what can be shown without the module is shown"""


@pytest.mark.parametrize("command", COMMANDS)
def test_reading_imports_nothing(received, run, command):
    path = list(sys.path)
    words = command.replace("RUN", str(run_of(received))).replace("STUDY", str(received)).split()
    code, out, err = run(*words)
    assert not list(Path().glob("payload-was-*")), "the payload was run"
    assert "own_walk" not in sys.modules
    assert sys.path == path
    assert code == COMMANDS[command], err
    if code == 0:
        assert out


def test_what_is_refused_says_what_to_do(received, run):
    _, _, err = run("evaluate", run_of(received))
    assert "own_walk:walk is code of whoever made this, and was not imported" in err
    assert "--trust own_walk" in err
    _, out, _ = run("study", "list", "own.toml")
    assert "needs --trust own_walk" in " ".join(out.split())


def test_old_studies_without_a_plan_are_refused_without_an_import(received, refused):
    content = json.loads((received / "study.json").read_text())
    (received / "study.json").write_text(json.dumps({"name": "own", "content": content["content"]}))
    assert "--trust own_walk" in refused("study", "status", received)
    assert not list(Path().glob("payload-was-*"))


def test_trust_is_a_flag_or_a_variable(received, run, monkeypatch):
    Path("own_walk.py").write_text(TASK)
    assert run("evaluate", run_of(received), "--episodes", "1").code == 2
    monkeypatch.setenv("IQRL_TRUST", "other,own_walk")
    assert run("evaluate", run_of(received), "--episodes", "1").code == 0
    monkeypatch.delenv("IQRL_TRUST")
    monkeypatch.setattr(plugins, "_trusted", set())
    assert run("evaluate", run_of(received), "--episodes", "1").code == 2
    assert run("evaluate", run_of(received), "--episodes", "1", "--trust", "own_walk").code == 0


def test_what_this_installation_made_is_trusted_while_its_source_is_the_same(own_study, monkeypatch):
    monkeypatch.setattr(plugins, "_trusted", set())
    monkeypatch.delitem(sys.modules, "own_walk", raising=False)
    assert iqrl.load(run_of(own_study)).task.name == "walk"
    monkeypatch.setattr(plugins, "_trusted", set())
    monkeypatch.delitem(sys.modules, "own_walk", raising=False)
    Path("own_walk.py").write_text(PAYLOAD)
    with pytest.raises(BadInput, match=r"own_walk.py has changed since"):
        iqrl.load(run_of(own_study))
    assert not list(Path().glob("payload-was-*"))


def test_an_edited_file_of_ones_own_is_called_that(own_study, run, monkeypatch):
    def fresh():
        monkeypatch.setattr(plugins, "_trusted", set())
        monkeypatch.delitem(sys.modules, "own_walk", raising=False)

    Path("own_walk.py").write_text(f"{TASK}# a comment\n")
    fresh()
    _, _, err = run("evaluate", run_of(own_study))
    assert "own_walk.py has changed since this was made; to use it as it is now, say --trust own_walk" in err
    assert "whoever" not in err
    fresh()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, err = run("resume", run_of(own_study), "--steps", "300", "--trust", "own_walk")
    assert code == 0, err
    assert "own_walk.py has changed since this was made; training goes on with it as it is now" in err
    Path("own_walk.py").write_text(TASK)
    fresh()
    code, _, err = run("resume", run_of(own_study), "--steps", "400")
    assert (code, "changed" in err) == (0, False), "the file is as it was: no warning, which would be an error here"


def test_a_module_that_is_not_there_is_looked_for_and_named(own_study, run, monkeypatch):
    monkeypatch.setattr(plugins, "_trusted", set())
    monkeypatch.delitem(sys.modules, "own_walk", raising=False)
    path = run_of(own_study).resolve()
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    for flags in ((), ("--trust", "own_walk")):
        code, _, err = run("evaluate", path, *flags)
        assert code == 2
        assert "there is no such module in " in err
        assert "elsewhere, nor among the installed packages; run from the folder that holds it" in err
    assert "there is no file nofile.py in " in run("train", "nofile.py:X").err


SCRIPT = """
import sys
import iqrl
from gymnasium.envs.classic_control import CartPoleEnv

class StopCart(CartPoleEnv):
    pass

if sys.argv[1] == "train":
    small = {"steps": 60, "period": 30, "seeds": 1, "learning_starts": 30, "buffer_size": 1, "hidden": (4,)}
    iqrl.train(StopCart, "dqn", out="run", **small)
else:
    print(iqrl.load("run", env=StopCart).task.name)
"""


def test_a_class_of_a_script_is_given(own_directory, run):
    Path("main.py").write_text(SCRIPT)
    for what in ("train", "load"):
        Path("main.py").write_text(f"{SCRIPT}# {what}\n")
        done = subprocess.run([sys.executable, "main.py", what], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "__main__:StopCart"
    for flags in ((), ("--trust", "__main__")):
        code, _, err = run("evaluate", "run", *flags)
        assert code == 2
        assert "StopCart was defined in a script, which cannot be imported" in err
        assert "iqrl.load(path, env=StopCart)" in err


@pytest.mark.parametrize("name", ["os:getpid", "subprocess:run", "gymnasium:make"])
def test_nothing_of_python_is_ever_called(trained, run, monkeypatch, name):
    monkeypatch.setattr(plugins, "_trusted", set())
    content = json.loads((trained / "run.json").read_text())
    content = {"config": content["config"] | {"task": name}, "id": content["id"]}
    (trained / "run.json").write_text(json.dumps(content))
    called = []
    monkeypatch.setattr(os, "getpid", lambda: called.append("getpid"))
    for command in ("evaluate", "resume", "cost"):
        code, _, err = run(command, trained)
        assert code == 2
        assert "is a module of Python itself" in err or "was not imported" in err
    assert called == []
    assert RunStore.open(trained).run.task == name, "what can be shown is shown"


def test_dotted_modules_are_found_without_importing_their_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parcel").mkdir()
    (tmp_path / "parcel" / "__init__.py").write_text(PAYLOAD)
    (tmp_path / "parcel" / "inner.py").write_text("x = 1")
    assert len(plugins.source_of("parcel.inner:x")) == 64
    assert plugins.source_of("parcel.none:x") == plugins.source_of(":") == plugins.source_of("a b:c") == ""
    assert not list(tmp_path.glob("payload-was-*"))
    assert "parcel" not in sys.modules


def test_the_key_is_nobody_elses(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mark = plugins.mark_of("own:task", "dqn")
    assert mark
    assert (tmp_path / "state" / "iqrl" / "key").stat().st_mode & 0o077 == 0
    assert plugins.mark_of("own:task", "dqn") == mark
    assert plugins.mark_of("CartPole-v0", "dqn") == plugins.mark_of("gymnasium:CartPole-v1", "dqn") == ""
    monkeypatch.setattr(plugins, "_trusted", set())
    for wrong in (mark[::-1], "", None, 3, "é"):
        plugins.trust_marked(wrong, "own:task", "dqn")
        assert not plugins.is_trusted("own:task")
    plugins.trust_marked(mark, "own:task", "dqn")
    assert plugins.is_trusted("own:task")


def test_a_home_that_cannot_be_written_to_is_no_error(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/none")
    assert plugins.mark_of("own:task", "dqn") == ""


def test_naming_a_task_is_trusting_it(own_study, capsys):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    assert main(["train", "own_walk:walk", "--method", "dqn", *flags, "--out", "mine"]) == 0
    assert main(["resume", "mine", "--steps", "300"]) == 0
    capsys.readouterr()
