"""iqrl train, resume, evaluate, plot and demo."""

import dataclasses
import json
import os
import runpy
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import iqrl
from iqrl.training.model_file import write_model
from iqrl.training.run_directory import RunStore

SMALL = ["--steps", "1000", "--period", "250", "--seeds", "2", "--learning-starts", "200"]
AS_TRAINED = ["CartPole-v0", "--method", "dqn", *SMALL]
"""the run of the fixture `trained`"""


def test_train_saves_a_run_and_prints_its_summary(run):
    code, out, err = result = run("train", *AS_TRAINED, "--json")
    assert code == 0
    assert out.count("\n") == 1
    assert {"highest", "final", "auc", "seeds", "steps_per_second", "compile_seconds", "run"} <= result.json.keys()
    assert [seed["seed"] for seed in result.json["seeds"]] == [0, 1]
    assert "1,000 of 1,000 steps" in err
    assert "highest" in err
    (path,) = Path("runs").iterdir()
    assert result.json["run"] == str(path)
    assert iqrl.load(path).summary()["auc"] == result.json["auc"]


def test_a_finished_run_is_not_trained_again(run, trained):
    code, out, err = run("train", "--config", trained / "run.json", "--out", trained)
    assert (code, err) == (0, "runs/dqn holds this run, finished.\n")
    assert out.splitlines()[-1] == "run: runs/dqn"


def test_resume_continues_a_run(run, trained):
    code, _, err = result = run("resume", trained, "--steps", 1500, "--json")
    assert code == 0
    assert "runs/dqn holds this run up to step 1,000; continuing." in err
    assert result.json == json.loads(json.dumps(iqrl.load(trained).summary()))
    assert iqrl.load(trained).steps[-1] == 1500


@pytest.mark.parametrize(("found", "note"), [(3, ""), (1, "; one context has one head, so distillation does nothing")])
def test_contexts_auto_prints_what_was_found(run, monkeypatch, found, note):
    resolve = iqrl.resolve
    monkeypatch.setattr("iqrl.make_run.resolve", lambda *names, contexts: resolve("CartPole-v0", "iq", contexts=found))
    monkeypatch.setattr("iqrl.cli.training._train_and_report", lambda store, options, driver: None)
    code, _, err = run("train", "CartPole-v0", "--method", "iq", "--contexts", "auto")
    assert (code, err) == (0, f"contexts: {found}, found in the states of a random policy{note}\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which task? name one, such as CartPole-v0"),
        (["CartPol-v0"], "unknown task 'CartPol-v0'; did you mean CartPole-v0?"),
        (["ReachEnv"], "unknown task 'ReachEnv'; choose from "),  # Reacher-v5 has no discrete actions
        (["ReachEnv"], "Your own: file.py:ReachEnv."),
        (["CartPole-v0", "--method", "iqq"], "unknown method 'iqq'; did you mean iq?"),
        (["CartPole-v0", "--preset", "papr"], "unknown preset 'papr'; did you mean paper?"),
        (["CartPole-v0", "--activation", "tan"], "unknown activation 'tan'; did you mean tanh?"),
        (["CartPole-v0", "--buffer-size", "0"], "buffer_size must be at least 1, got 0."),
        (["CartPole-v0", "--buffer-size", "100000000000"], "buffer_size must be at most"),
        (["CartPole-v0", "--contexts", "0"], "contexts must be at least 1, got 0."),
        (["CartPole-v0", "--contexts", "atuo"], "'atuo' is not a whole number, nor auto"),
        (["CartPole-v0", "--method", "dqn", "--contexts", "2"], "contexts does not apply to it."),
        (["CartPole-v0", "--method", "dsom", "--hidden", "60"], "must be a square such as 64."),
        (
            ["CartPole-v0", "--method", "stream-q", "--buffer-size", "9"],
            "stream-q stores nothing and has no buffer_size",
        ),
        (["CartPole-v0", "--torques", "3"], "it does not apply to CartPole-v0."),
        (["CartPole-v0", "--seeds", "100000000"], "GB of memory; fewer seeds"),
        (["CartPole-v0", "--hidden", "1000000", "1000000"], "GB of memory; fewer seeds"),
        (["CartPole-v0", "--measure-recent", "500"], "measure_recent does nothing while nothing is measured"),
        (["CartPole-v0", "--measure-every", "1", "--measure-recent", "1500"], "a multiple of 1000"),
        (["CartPole-v0", "--measure-every", "100", "--steps", "2000"], "a period of 50 steps has 50 learning steps"),
        (["CartPole-v0", "--out", "taken"], "taken exists and is not a run"),
        (["CartPole-v0", "--out", "taken/mine.txt"], "taken/mine.txt exists and is not a run"),
        (["CartPole-v0", "--out", "/proc/iqrl"], "cannot write to /proc/iqrl"),
    ],
)
def test_a_run_that_cannot_be_trained(refused, arguments, words):
    Path("taken").mkdir()
    Path("taken/mine.txt").write_text("mine")
    assert words in refused("train", *arguments)


@pytest.mark.parametrize("command", ["resume", "evaluate", "plot"])
def test_a_directory_without_a_run(refused, command):
    assert "nowhere holds no run: there is no such directory" in refused(command, "nowhere")


def test_a_run_is_trained_by_one_process_at_a_time(run, trained):
    with RunStore.open(trained).locked():
        code, out, err = run("resume", trained, "--steps", 1500)
    assert (code, out) == (2, "")
    assert "runs/dqn is being trained by another process" in err


# Interruptions


def interrupt(monkeypatch, number):
    """Let the first report of progress send a signal to this process."""
    from iqrl.experiments.report import terminal

    class Display(terminal.PlainDisplay):
        def __call__(self, report):
            os.kill(os.getpid(), number)

    monkeypatch.setattr(terminal, "show_training", lambda label: Display(terminal.Console(stderr=True), label))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_saved_and_can_be_resumed(run, trained, monkeypatch, number):
    interrupt(monkeypatch, number)
    code, _, err = run("train", *AS_TRAINED, "--out", "stopped")
    assert code == 130
    last = "iqrl: stopped at step 250 of 1,000; saved; continue with: iqrl resume stopped"
    assert err.splitlines()[-1] == last
    assert iqrl.resume("stopped").metrics.equals(iqrl.load(trained).metrics)


def test_an_interruption_while_compiling(run, monkeypatch):
    from iqrl.training import loop

    compile_driver = loop.compile_driver

    def compile_and_interrupt(driver):
        os.kill(os.getpid(), signal.SIGINT)
        return compile_driver(driver)

    monkeypatch.setattr(loop, "compile_driver", compile_and_interrupt)
    code, _, err = run("train", *AS_TRAINED, "--out", "early")
    assert code == 130
    assert err.splitlines()[-1] == "iqrl: stopped at step 0 of 1,000; continue with: iqrl resume early"


# Tasks and methods of one's own

OWN_TASK = (
    "import jax.numpy as jnp\nfrom iqrl import Task\n"
    "def reset(u): return jnp.zeros(1)\n"
    "def step(s, a, u): return s, jnp.float32(1), jnp.bool_(True)\n"
    "it = Task('it', 2, (0.,), (1.,), 9, reset, step, lambda s: s, 1)\n"
)


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("syntax", "def broken(:", "importing 'syntax' failed with SyntaxError"),
        (
            "missing",
            OWN_TASK.replace(", lambda s: s, 1)", ")"),
            "importing 'missing' failed with TypeError at missing.py:5",
        ),
        ("branch", OWN_TASK.replace("return s, jnp.f", "return (s if a > 0 else s), jnp.f"), "step failed with Tracer"),
        ("shape", OWN_TASK.replace("zeros(1)", "zeros(2)"), "observe gives shape (2,), but low and high have 1, 1"),
        ("two", OWN_TASK.replace(", jnp.bool_(True)", ""), "step must return (state, reward, terminated)"),
        ("done", OWN_TASK.replace("jnp.bool_(True)", "jnp.float32(0)"), "a boolean scalar"),
    ],
)
def test_an_own_task_that_does_not_work(run, name, source, words):
    Path(f"{name}.py").write_text(source)
    code, _, err = run("train", f"{name}:it", *SMALL)
    assert (code, err.count("\n")) == (2, 1)
    assert words in err
    assert not Path("runs").exists()


OWN_METHOD = """
import jax.numpy as jnp
from iqrl import Method
from iqrl.methods.base import q_learner
from iqrl.core.losses import Regulariser
from iqrl.core.schedules import constant

def method(*losses):
    terms = tuple(Regulariser("mine", constant(0.1), loss) for loss in losses)
    return Method("mine", "mine", "me", lambda run, task: q_learner(run, task, regularisers=terms))

raises = method(lambda now: jnp.ones(3) + jnp.ones(4))
whole = method(lambda inputs: inputs.online_tm1.q)
twice = method(lambda now: 0.0, lambda now: 1.0)
wrong = Method("wrong", "wrong", "me", lambda run, task: 3)
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "mine:raises: learning failed with TypeError"),
        ("whole", "mine:whole: regulariser mine gives shape (1, 2, 32); it must give one number per sample"),
        ("twice", "mine:twice: build failed with BadInput"),
        ("wrong", "mine:wrong: build gave int, which is no agent"),
    ],
)
def test_an_own_method_that_does_not_work(run, monkeypatch, name, words):
    Path("mine.py").write_text(OWN_METHOD)
    monkeypatch.syspath_prepend(".")
    code, _, err = run("train", "CartPole-v0", "--method", f"mine:{name}", *SMALL)
    assert (code, err.count("\n")) == (2, 1)
    assert words in err
    assert not Path("runs").exists()


def test_an_edited_task_is_another_run():
    source = (Path(__file__).parents[2] / "examples" / "own_task.py").read_text()
    Path("edited.py").write_text(source)
    first = iqrl.resolve("edited:corridor", "iq").identity
    Path("edited.py").write_text(source.replace("-0.05", "-0.5"))
    assert iqrl.resolve("edited:corridor", "iq").identity != first


# Evaluate, plot, demo


def test_evaluate_prints_returns(run, trained):
    code, _, err = result = run("evaluate", trained, "--episodes", 2, "--seed", 3, "--json")
    assert code == 0
    expected = iqrl.evaluate(iqrl.load(trained), 2, 3)
    np.testing.assert_array_equal([seed["returns"] for seed in result.json["seeds"]], expected)
    assert (result.json["mean"], result.json["run"]) == (expected.mean(), "runs/dqn")
    digits = 1 if expected.mean() >= 10 else 2
    low, high = (f"{end:.{1 if end >= 10 else 2}f}" for end in np.sort(expected.mean(axis=1)))
    assert err.splitlines()[-1] == (
        f"all: mean {expected.mean():.{digits}f} over 4 greedy episodes: 2 agents on the same 2 starts; "
        f"means of the seeds: {low}…{high}"
    )
    assert [line[:7] for line in err.splitlines()] == ["seed 0:", "seed 1:", "all: me"]


def test_plot_draws_a_curve_per_run(run, trained):
    for name in ("a.png", "a.svg"):
        assert run("plot", trained, trained, "--out", name) == (0, f"wrote {name}\n", "")
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert "DQN" in Path("a.svg").read_text()
    assert run("plot", trained, "--band", "interval", "--out", "b.svg") == (0, "wrote b.svg\n", "")
    assert run("plot", trained, "--band", "interval", "--out", "b.svg") == (0, "replaced b.svg\n", "")
    assert "95% interval of the mean" in Path("b.svg").read_text()
    code, _, err = run("plot", trained, "--out", "a.bmp")
    assert code == 2
    assert "end the name in .png, .svg, .pdf" in err


def test_plot_and_explain_take_the_file_of_a_model(run, refused, trained):
    file = write_model(Path("agent.iqrl"), iqrl.load(trained), None, [])
    assert run("plot", file, trained, "--out", "a.svg").code == 0
    code, out, _ = run("explain", file)
    assert code == 0
    assert "dqn on CartPole-v0, N=100, 2 seeds, 1,000 steps; finished" in out
    assert out.splitlines()[0] == Path("agent.explain.md").read_text().splitlines()[0]
    assert Path("agent.explain.svg").exists()
    assert "agent.iqrl is a file; a run is a directory" in refused("resume", file)
    assert "there is no file none.iqrl" in refused("explain", "none.iqrl")
    file.write_bytes(file.read_bytes()[:-9])
    assert "agent.iqrl is damaged" in refused("plot", file)


@pytest.mark.parametrize(
    "arguments",
    [
        ["FrozenLake-v1", "--env-kwargs", '{"map": "8x8"}'],
        ["--env-kwargs", '{"map": "8x8"}', "FrozenLake-v1"],
        ["FrozenLake-v1", '--env-kwargs={"map": "8x8"}'],
    ],
)
def test_arguments_of_the_environment_are_given_as_json(refused, arguments):
    assert "unexpected keyword argument 'map'" in refused("train", *arguments)


def test_an_environment_is_named_by_its_file_too(refused, monkeypatch):
    source = "import gymnasium\n\n\ndef make():\n    return gymnasium.make('Pendulum-v1')\n"
    Path("task_in_a_file.py").write_text(source)
    assert "task_in_a_file:make has actions Box" in refused("train", "./task_in_a_file.py:make")
    assert "module 'task_in_a_file' has no 'Nope'" in refused("tune", "task_in_a_file.py:Nope")
    assert "task_in_a_file.py is a file; name the environment in it" in refused("train", "task_in_a_file.py")
    monkeypatch.delitem(sys.modules, "task_in_a_file")


def test_demo_compares_methods_without_replay_and_dqn_with_a_large_buffer(run, trained, monkeypatch):
    result = iqrl.load(trained)
    stores = []

    def pretend(store):
        stores.append(store)
        return dataclasses.replace(result, run=store.run)

    monkeypatch.setattr("iqrl.experiments.report.terminal.train_with_display", pretend)
    code, out, _ = run("demo", "--steps", 2000, "--seeds", 2)
    assert code == 0
    runs = [store.run for store in stores]
    assert [(run.method, run.buffer_size, run.steps, run.seeds) for run in runs] == [
        ("dqn", 1, 2000, 2),
        ("iq", 1, 2000, 2),
        ("local-q", 1, 2000, 2),
        ("dqn", 50_000, 2000, 2),
    ]
    assert all(store.path.parent == Path("demo") for store in stores)
    assert out.splitlines()[-1] == "demo/demo.png"
    assert Path("demo/demo.png").stat().st_size > 10_000


def test_demo_with_bad_steps(refused):
    assert "steps must be at least 1, got 0." in refused("demo", "--steps", "0")


def test_export_writes_a_file_that_acts(run, refused, trained):
    done = run("export", trained, "--seed", "1", "--out", "policy.py")
    assert (done.code, done.out) == (0, "policy.py\n")
    assert done.err.startswith("largest difference from the agent: ")
    assert runpy.run_path("policy.py")["predict"]([0.0, 0.0, 0.1, 0.2]) in (0, 1)
    assert "unknown format 'onyx'; did you mean onnx?" in refused("export", trained, "--to", "onyx")


def test_the_example_of_a_network_trains_by_its_file(run, monkeypatch):
    examples = Path(__file__).parents[2] / "examples"
    shutil.copy(examples / "own_network.py", ".")
    monkeypatch.delitem(sys.modules, "own_network", raising=False)
    done = run("train", *AS_TRAINED, "--network", "own_network.py:Residual", "--out", "own")
    assert done.code == 0, done.err
    config = json.loads(Path("own/run.json").read_text())["config"]
    assert (config["network"], config["hidden"]) == ("own_network:Residual", [])
