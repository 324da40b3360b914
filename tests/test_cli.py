"""The command line as a user meets it."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import iqrl
from iqrl import cli
from iqrl.cli_settings import read_config
from iqrl.config import OPTIONS
from iqrl.methods import METHODS
from iqrl.settings import resolve

SMALL = ["--steps", "1000", "--period", "250", "--seeds", "2", "--learning-starts", "200"]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments):
    """Exit code, stdout, stderr."""
    code = cli.main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def test_train_prints_the_summary_as_json(capsys):
    code, out, err = run(capsys, "train", "CartPole-v0", "--method", "iq", "--buffer-size", 1, *SMALL, "--json")
    summary = last_json(out)
    assert code == 0
    assert {"highest", "final", "auc", "seeds", "steps_per_second", "compile_seconds", "run"} <= summary.keys()
    assert len(summary["seeds"]) == 2
    assert {"highest", "final", "auc"} <= summary["seeds"][0].keys()
    assert len(out.strip().splitlines()) == 1
    assert "1,000 of 1,000 steps" in err
    assert "highest" in err
    loaded = iqrl.load(summary["run"])
    assert loaded.summary()["auc"] == summary["auc"]


def test_flags_and_keywords_mean_the_same(capsys):
    flags = ["--gamma", "0.9", "--hidden", "16", "8", "--no-double-q", "--distill-actions", "all"]
    _, out, _ = run(capsys, "train", "CartPole-v0", *SMALL, *flags, "--out", "here", "--json")
    settings = {"steps": 1000, "period": 250, "seeds": 2, "learning_starts": 200}
    same = iqrl.train("CartPole-v0", gamma=0.9, hidden=(16, 8), double_q=False, distill_actions="all", **settings)
    assert last_json(out)["auc"] == same.summary()["auc"]
    assert last_json(out)["run"] == "here"


def test_every_setting_is_a_flag_with_help(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for name in OPTIONS:
        assert "--" + name.replace("_", "-") in text


def test_task_and_preset_may_come_from_the_config_file(capsys):
    Path("all.toml").write_text('task = "Acrobot-v1"\nmethod = "dqn"\npreset = "paper"\nsteps = 2000\nseeds = 1\n')
    code, out, _ = run(capsys, "train", "--config", "all.toml", "--json")
    summary = last_json(out)
    assert code == 0
    assert (summary["task"], summary["method"], iqrl.load(summary["run"]).run.gamma) == ("Acrobot-v1", "dqn", 0.995)


def test_config_file_and_flags_over_it(capsys):
    Path("my.toml").write_text(
        'method = "dqn"\n[learning]\nsteps = 1000\nperiod = 250\ngamma = 0.5\n[other]\nseeds = 3\n'
    )
    code, out, _ = run(capsys, "train", "CartPole-v0", "--config", "my.toml", "--seeds", 2, "--json")
    loaded = iqrl.load(last_json(out)["run"]).run
    assert code == 0
    assert (loaded.method, loaded.steps, loaded.gamma, loaded.seeds) == ("dqn", 1000, 0.5, 2)
    # The run.json of a run is a config file too.
    code, out, err = run(capsys, "train", "CartPole-v0", "--config", Path(last_json(out)["run"]) / "run.json", "--json")
    assert code == 0
    assert "holds this run, finished" in err


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("changed", [{}, {"layer_norm": False, "gamma": 0.5}])
def test_the_run_file_of_every_method_names_the_same_run(tmp_path, method, changed):
    made = resolve("CartPole-v0", method, **changed)
    (tmp_path / "run.json").write_text(json.dumps({"config": made.to_dict()}))
    settings = read_config(tmp_path / "run.json")
    assert resolve(settings.pop("task"), settings.pop("method"), **settings) == made


def test_contexts_auto_says_what_it_found(capsys):
    code, out, err = run(capsys, "train", "CartPole-v0", "--contexts", "auto", *SMALL, "--json")
    assert code == 0
    assert "contexts: 3, found in the states of a random policy" in err
    assert iqrl.load(last_json(out)["run"]).run.contexts == 3


def test_list_names_every_method_with_its_paper(capsys):
    lines = run(capsys, "list", "methods")[1].splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(METHODS)
    assert all(method.source in line for line, method in zip(lines, METHODS.values(), strict=True))


def test_the_rest_of_a_session(capsys):
    for method in ("dqn", "iq"):
        run(capsys, "train", "CartPole-v0", "--method", method, *SMALL, "--out", f"runs/{method}")
    code, out, _ = run(capsys, "list")
    assert code == 0
    assert all(word in out for word in ("CartPole-v0", "Acrobot-v1", "dqn", "iq", "runs/dqn", "runs/iq"))
    code, out, _ = run(capsys, "list", "methods")
    assert "Zhang et al. 2022" in out
    assert "runs/dqn" not in out
    for name in ("a.png", "a.svg"):
        code, out, _ = run(capsys, "plot", "runs/dqn", "runs/iq", "--out", name)
        assert (code, out.strip()) == (0, name)
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert all(f">{method}<" in Path("a.svg").read_text() for method in ("dqn", "iq"))
    code, out, err = run(capsys, "evaluate", "runs/iq", "--episodes", 2, "--seed", 3, "--json")
    assert code == 0
    assert "all: mean" in err
    expected = iqrl.evaluate(iqrl.load("runs/iq"), 2, 3)
    np.testing.assert_array_equal([seed["returns"] for seed in last_json(out)["seeds"]], expected)
    code, out, _ = run(capsys, "resume", "runs/iq", "--steps", 1500, "--json")
    assert code == 0
    assert iqrl.load("runs/iq").steps[-1] == 1500


def test_a_measured_run(capsys):
    """Measured, drawn and explained; one run serves all three, since each takes its time to compile."""
    measuring = ["--measure-every", "50", "--measure-recent", "500", "--measure-sample", "100"]
    run(capsys, "train", "CartPole-v0", "--method", "iq", *SMALL, *measuring, "--out", "here")
    columns = set(iqrl.load("here").metrics.columns)
    assert {"aei", "negative_interference", "gradient_cosine", "held_out_max_q", "centroid_movement"} <= columns

    code, out, err = run(capsys, "interference", "here", "--matrix", "--updates", 20, "--settle", 20, "--json")
    numbers = last_json(out)
    assert code == 0
    assert [seed["seed"] for seed in numbers["runs"]["here"]] == [0, 1]
    assert numbers["runs"]["here"][0]["raised_share"] is not None
    assert np.shape(numbers["matrices"]["here"]["change"]) == (2, 3, 3)
    assert "negative" in err
    assert "context 2" in err
    drawn = {path.name for path in Path("interference").iterdir()}
    assert drawn == {"here-interference.png", "here-matrix.png"}

    code, out, _ = run(capsys, "explain", "here")
    assert code == 0
    assert out.startswith("# Why did it collapse? iq on CartPole-v0")
    assert Path("here/explain.md").read_text() == out


def test_cost_says_how_far_the_run_is(capsys, monkeypatch):
    """What is counted is tested beside the counting; here only how it is told."""
    run(capsys, "train", "CartPole-v0", "--method", "dqn", *SMALL, "--out", "here")
    counted = ({"steps": 1000}, ["dqn on CartPole-v0", "", "numbers"])
    monkeypatch.setattr("iqrl.analysis.cost.cost_report", lambda store: (counted[0], list(counted[1])))
    code, out, err = run(capsys, "cost", "here", "--json")
    assert (code, last_json(out)) == (0, {"steps": 1000})
    assert "numbers" in err
    assert "counted to its end" not in err
    Path("here/metrics.parquet").unlink()
    assert "not begun, and counted to its end" in run(capsys, "cost", "here")[1]


def test_what_was_not_measured_cannot_be_shown(capsys):
    run(capsys, "train", "CartPole-v0", "--method", "dqn", *SMALL, "--out", "here")
    code, _, err = run(capsys, "interference", "here")
    assert code == 2
    assert err.strip().endswith(
        "here was not measured; train with --measure-every 100, or ask for what can be found afterwards: "
        "--matrix, --map."
    )
    assert not Path("interference").exists()
    code, out, _ = run(capsys, "explain", "here")
    assert code == 0
    assert "interference was not measured" in out
    for flags, words in [
        (["explain", "here", "--drop", "1.5"], "drop must be more than 0 and at most 1, got 1.5"),
        (["explain", "here", "--out", "nowhere/a.md"], "cannot write nowhere/a.md: No such file"),
        (["interference", "here", "--matrix", "--updates", "0"], "updates is 0; it must be at least 1"),
        (["interference", "here", "--matrix", "--contexts", "1"], "contexts is 1; it must be at least 2"),
        (["interference", "here", "--map", "--updates", "5"], "--updates is for --matrix; give both or neither"),
        (["cost", "elsewhere"], "elsewhere holds no run"),
    ]:
        code, _, err = run(capsys, *flags)
        assert code == 2
        assert words in err
        assert len(err.strip().splitlines()) == 1
    assert not Path("interference").exists()


def test_demo(capsys):
    code, out, _ = run(capsys, "demo", "--steps", 2000, "--seeds", 2)
    assert code == 0
    assert out.strip().splitlines()[-1] == "demo/demo.png"
    assert Path("demo/demo.png").stat().st_size > 10_000
    assert "dqn" in out
    assert "iq" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "CartPol-v0"], "unknown task 'CartPol-v0'; did you mean CartPole-v0?"),
        (["train", "CartPole-v0", "--method", "iqq"], "unknown method 'iqq'; did you mean iq?"),
        (["train", "CartPole-v0", "--buffer-size", "0"], "buffer_size must be at least 1, got 0."),
        (["train", "CartPole-v0", "--contexts", "0"], "contexts must be at least 1, got 0."),
        (["train", "CartPole-v0", "--batch-size", "0"], "batch_size must be at least 1, got 0."),
        (["train", "CartPole-v0", "--steps", "-3"], "steps must be at least 1, got -3."),
        (["train", "CartPole-v0", "--steps", "many"], "argument --steps: 'many' is not a whole number"),
        (["train", "CartPole-v0", "--gama", "0.9"], "unknown argument '--gama'; did you mean --gamma?"),
        (["train", "CartPole-v0", "--activation", "tan"], "unknown activation 'tan'; did you mean tanh?"),
        (["train", "CartPole-v0", "--preset", "papr"], "unknown preset 'papr'; did you mean paper?"),
        (["train", "CartPole-v0", "--config", "none.toml"], "cannot read none.toml: No such file or directory."),
        (["train", "CartPole-v0", "--config", "bad.toml"], "bad.toml is not valid TOML"),
        (
            ["train", "CartPole-v0", "--config", "keys.toml"],
            "in keys.toml: unknown setting 'gama'; did you mean gamma?",
        ),
        (["train", "CartPole-v0", "--config", "bytes.toml"], "cannot read bytes.toml"),
        (["train", "CartPole-v0", "--out", "taken"], "taken exists and is not a run"),
        (["train", "CartPole-v0", "--out", "bad.toml"], "bad.toml exists and is not a run"),
        (["train", "CartPole-v0", "--method", "dqn", "--contexts", "2"], "contexts does not apply to it."),
        (["train", "CartPole-v0", "--contexts", "atuo"], "'atuo' is not a whole number, nor auto"),
        (["train", "CartPole-v0", "--method", "dsom", "--hidden", "60"], "must be a square such as 64."),
        (
            ["train", "CartPole-v0", "--method", "stream-q", "--buffer-size", "9"],
            "buffer_size is always 1 for stream-q",
        ),
        (["train", "CartPole-v0", "--device", "abacus"], "device abacus is not one that JAX finds here, which is cpu"),
        (["train"], "which task? name one, such as CartPole-v0"),
        (["train", "CartPole-v0", "extra"], "unexpected argument 'extra'"),
        (["train", "CartPole-v0", "--torques", "3"], "it does not apply to CartPole-v0."),
        (["train", "CartPole-v0", "--seeds", "100000000"], "GB of memory; fewer seeds"),
        (["train", "CartPole-v0", "--hidden", "1000000", "1000000"], "GB of memory; fewer seeds"),
        (["train", "CartPole-v0", "--measure-recent", "500"], "measure_recent does nothing while nothing is measured"),
        (["train", "CartPole-v0", "--measure-every", "1", "--measure-recent", "1500"], "a multiple of 1000"),
        (["train", "CartPole-v0", "--measure-every", "100", "--steps", "2000"], "a period of 50 steps has 50 times"),
        (["train", "CartPole-v0", "--measure-every", "-1"], "measure_every must be at least 0"),
        (["train", "CartPole-v0", "--buffer-size", "100000000000"], "buffer_size must be at most"),
        (["train", "CartPole-v0", "--config", "types.toml"], "in types.toml: buffer_size must be a finite number"),
        (["tran", "CartPole-v0"], "'tran'"),
        (["resume", "nowhere"], "nowhere holds no run"),
        (["evaluate", "nowhere"], "nowhere holds no run"),
        (["plot", "nowhere"], "nowhere holds no run"),
        (["list", "task"], "'task'"),
        (["demo", "--steps", "0"], "steps must be at least 1, got 0."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(capsys, arguments, words):
    Path("bad.toml").write_text("steps = = 3")
    Path("keys.toml").write_text("gama = 0.5")
    Path("types.toml").write_text('buffer_size = "10"')
    Path("bytes.toml").write_bytes(b"\xff\xfe\x00")
    Path("taken").mkdir()
    Path("taken/mine.txt").write_text("mine")
    before = sorted(path.name for path in Path().rglob("*"))
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert words in err
    assert out == ""
    assert err.startswith("iqrl: ")
    assert len(err.strip().splitlines()) == 1
    assert sorted(path.name for path in Path().rglob("*")) == before


def test_a_folder_that_cannot_be_written_is_exit_2(capsys):
    code, _, err = run(capsys, "train", "CartPole-v0", *SMALL, "--out", "/proc/iqrl-cannot-write-here")
    assert code == 2
    assert "cannot write to /proc/iqrl-cannot-write-here" in err


def test_infinite_parameters_are_exit_1(capsys):
    code, _, err = run(capsys, "train", "CartPole-v0", *SMALL, "--learning-rate", "1e38", "--gamma", "1")
    assert code == 1
    assert err.strip().splitlines()[-1].startswith("iqrl: the parameters of seed 0, 1 became infinite or NaN")


def test_plot_of_an_unknown_format(capsys):
    run(capsys, "train", "CartPole-v0", *SMALL, "--out", "r")
    code, _, err = run(capsys, "plot", "r", "--out", "a.bmp")
    assert code == 2
    assert "end the name in .png, .svg, .pdf" in err


def test_an_own_task_that_does_not_work_gets_a_sentence(capsys):
    good = (
        "import jax.numpy as jnp\nfrom iqrl import Task\n"
        "def reset(u): return jnp.zeros(1)\n"
        "def step(s, a, u): return s, jnp.float32(1), jnp.bool_(True)\n"
        "it = Task('it', 2, (0.,), (1.,), 9, reset, step, lambda s: s, 1)\n"
    )
    broken = {
        "syntax": ("def broken(:", "importing 'syntax' failed with SyntaxError"),
        "missing": (
            good.replace(", lambda s: s, 1)", ")"),
            "importing 'missing' failed with TypeError at missing.py:5",
        ),
        "branch": (good.replace("return s, jnp.f", "return (s if a > 0 else s), jnp.f"), "step failed with Tracer"),
        "shape": (good.replace("zeros(1)", "zeros(2)"), "observe gives shape (2,), but low and high have 1, 1"),
        "two": (good.replace(", jnp.bool_(True)", ""), "step must return (state, reward, terminated)"),
        "over": (good.replace("jnp.bool_(True)", "jnp.float32(0)"), "a boolean scalar that says whether it is over"),
    }
    for name, (source, words) in broken.items():
        Path(f"{name}.py").write_text(source)
        code, _, err = run(capsys, "train", f"{name}:it", *SMALL)
        assert code == 2
        assert words in err
        assert len(err.strip().splitlines()) == 1
    Path("m.py").write_text("from iqrl import Method\nwrong = Method('s', 's', lambda run, task: 3)\n")
    code, _, err = run(capsys, "train", "CartPole-v0", "--method", "m:wrong", *SMALL)
    assert (code, "compose gave int, not an iqrl.agent.Agent" in err) == (2, True)
    assert not Path("runs").exists()


def test_an_edited_task_is_another_run(tmp_path):
    source = (Path(__file__).parent.parent / "examples" / "own_task.py").read_text()
    Path("edited.py").write_text(source)
    first = iqrl.resolve("edited:corridor", "iq").identity
    Path("edited.py").write_text(source.replace("-0.05", "-0.5"))
    assert iqrl.resolve("edited:corridor", "iq").identity != first


def test_two_processes_do_not_train_one_run():
    settings = ["--steps", "2000000", "--period", "2000", "--seeds", "1", "--method", "dqn", "--out", "one"]
    first = start("train", "CartPole-v0", *settings)
    wait_for("of 2,000,000 steps", first)
    second = start("train", "CartPole-v0", *settings)
    _, err = second.communicate(timeout=60)
    first.kill()
    first.communicate()
    assert second.returncode == 2
    assert "one is being trained by another process" in err


def test_an_interruption_while_compiling_is_heard():
    settings = ["--steps", "300000", "--period", "2000", "--seeds", "7", "--batch-size", "37", "--out", "early"]
    process = start("train", "CartPole-v0", *settings)
    wait_for("compiling", process)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "continue with: iqrl resume early" in err


WAITING_COMMAND = """
import signal, sys
from iqrl import cli

def wait(options):
    import polars
    print("in", flush=True)
    signal.pause()

cli.COMMANDS["list"] = wait
sys.exit(cli.main(["list"]))
"""


def test_an_interruption_before_training_ends_it_at_once():
    """Libraries that are loaded on the way must not take the signal."""
    process = subprocess.Popen([sys.executable, "-c", WAITING_COMMAND], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGINT


def wait_for(words, process):
    """Read what the process says until it says this."""
    assert any(words in line for line in process.stderr)


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "iqrl.cli", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )


@functools.cache
def never_stopped():
    return iqrl.train("CartPole-v0", "dqn", steps=10_000, period=500, buffer_size=100, seeds=2).metrics


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_saves_and_says_how_to_go_on(number):
    """Stopped by a signal, then resumed in a new process: the same run as one never stopped."""
    settings = ["--steps", "10000", "--period", "500", "--buffer-size", "100", "--seeds", "2"]
    process = start("train", "CartPole-v0", "--method", "dqn", *settings, "--out", "stopped")
    wait_for("of 10,000 steps", process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "continue with: iqrl resume stopped" in err.strip().splitlines()[-1]
    stopped_at = iqrl.load("stopped").steps[-1]
    assert 500 <= stopped_at < 10_000
    assert iqrl.resume("stopped").metrics.equals(never_stopped())


OWN_METHOD = """
import jax.numpy as jnp
from iqrl import Method
from iqrl.composition import q_learner
from iqrl.parts.regularisers import Regulariser
from iqrl.parts.schedules import constant

def method(*losses):
    terms = tuple(Regulariser("mine", constant(0.1), loss) for loss in losses)
    return Method("mine", "me", lambda run, task: q_learner(run, task, regularisers=terms))

good = method(lambda now: (now.samples.online_tm1.q ** 2).mean(axis=(0, 1)))
raises = method(lambda now: jnp.ones(3) + jnp.ones(4))
whole = method(lambda now: now.samples.online_tm1.q)
twice = method(lambda now: 0.0, lambda now: 1.0)
"""


def test_an_own_method_that_does_not_work_gets_a_sentence(capsys, monkeypatch):
    Path("mine.py").write_text(OWN_METHOD)
    monkeypatch.syspath_prepend(".")
    for name, words in (
        ("raises", "mine:raises: learning failed with TypeError"),
        ("whole", "mine:whole: regulariser mine gives an array of (1, 2, 32); it must be one number per sample."),
        ("twice", "regularisers are told apart by their names, and these are mine, mine"),
    ):
        code, _, err = run(capsys, "train", "CartPole-v0", "--method", f"mine:{name}", *SMALL)
        assert code == 2
        assert words in err
        assert len(err.strip().splitlines()) == 1
    assert not Path("runs").exists()
    code, out, _ = run(capsys, "train", "CartPole-v0", "--method", "mine:good", *SMALL, "--json")
    assert code == 0
    assert {"mine_loss", "mine_weight"} <= set(iqrl.load(last_json(out)["run"]).metrics.columns)
