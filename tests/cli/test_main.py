"""The parser, errors, exit codes and signals."""

import os
import re
import signal
import subprocess
import sys
from importlib import metadata

import pytest

from iqrl.cli.main import main
from iqrl.errors import BadInput, RunFailed

LIGHT_COMMANDS = """
import contextlib, sys
from iqrl.cli.main import main

for arguments in (
    "", "--help", "--version", "resume --help", "watch --help", "watch", "interference --help",
    "study --help", "study run --help", "tran", "trian", "train", "train CartPole-v0 --lr 3",
    "train CartPole-v0 --total-timesteps=9", "train CartPole-v0 extra", "train CartPole-v0 --steps many",
    "train x --config no.toml", "interference x --updates 5", "study run table1 --part 3/2",
    "study run table1 --set gamma", "list task", "paper",
):
    with contextlib.suppress(SystemExit):
        main(arguments.split())
print("imported:", *{"jax", "optax", "gymnasium", "matplotlib", "rich", "numpy", "onnx"} & set(sys.modules))
"""


def test_help_and_errors_in_flags_import_nothing_heavy():
    output = subprocess.run([sys.executable, "-c", LIGHT_COMMANDS], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "imported:"


def test_the_help_has_every_command_with_a_line(run):
    code, out, _ = run()
    assert code == 0
    assert "Deep Q-learning that needs almost no memory." in out
    names = (
        "train, resume, tune, demo, evaluate, watch, plot, export, explain, interference, cost, study, report, paper, "
        "list, check, completion"
    )
    assert [line.split()[0] for line in out.splitlines() if re.match(r" {2}\w", line)] == names.split(", ")
    titles = ["train:", "use an agent:", "see why:", "many runs:", "look around:"]
    assert [line for line in out.splitlines() if re.fullmatch(r"[a-z ]+:", line)] == titles


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"iqrl {metadata.version('iqrl')}\n"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BadInput("no such task."), 2, "iqrl: no such task.\n"),
        (RunFailed("out of memory."), 1, "iqrl: out of memory.\n"),
        (KeyboardInterrupt("saved"), 130, "iqrl: saved\n"),
        (KeyboardInterrupt(), 130, "iqrl: stopped at once\n"),
    ],
)
def test_errors_and_exit_codes(run, monkeypatch, error, code, message):
    def fail(options):
        raise error

    monkeypatch.setattr("iqrl.cli.listing.list_all", fail)
    assert run("list") == (code, "", message)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian", "CartPole-v0"], "unknown command 'trian'; did you mean train?"),
        (["compare", "runs/a"], "unknown command 'compare'; did you mean plot, which takes several runs?"),
        (["results"], "unknown command 'results'; did you mean list, as in iqrl list runs?"),
        (["list", "task"], "unknown argument of iqrl list 'task'; did you mean tasks?"),
        (["study", "rn"], "unknown command 'rn'; did you mean run?"),
        (["train", "CartPole-v0", "--lr", "1"], "unknown argument '--lr'; did you mean --learning-rate?"),
        (["train", "x", "--total-timesteps=5"], "unknown argument '--total-timesteps'; did you mean --steps?"),
        (["resume", "x", "--total-timesteps", "5"], "unknown argument '--total-timesteps'; did you mean --steps?"),
        (["--vers"], "unknown argument '--vers'; did you mean --version?"),
        (["train", "CartPole-v0", "--gama", "0.9"], "unknown argument '--gama'; did you mean --gamma?"),
        (["train", "CartPole-v0", "--gam", "0.9"], "unknown argument '--gam'; did you mean --gamma?"),
        (["train", "CartPole-v0", "extra"], "unexpected argument 'extra'; see iqrl train --help."),
        (["train", "CartPole-v0", "--steps", "many"], "argument --steps: 'many' is not a whole number"),
        (["train", "CartPole-v0", "--gamma", "high"], "argument --gamma: 'high' is not a number"),
        (["train", "CartPole-v0", "--device", "abacus"], "device abacus is not one that JAX finds here, which is cpu"),
        (["watch", "cart.iqrl", "--terminal"], "unknown argument '--terminal'; see iqrl watch --help."),
        (["study", "run", "mine.toml", "--worker", "2"], "unknown argument '--worker'; did you mean --workers?"),
        (["study", "status", ".", "extra"], "unexpected argument 'extra'; see iqrl study status --help."),
        (["report"], "the following arguments are required: DIR; see iqrl report --help."),
        (["plot"], "the following arguments are required: RUN (iqrl list runs names them); see iqrl plot --help."),
    ],
)
def test_errors_in_arguments_are_one_sentence(refused, arguments, words):
    assert words in refused(*arguments)


WAITING_COMMAND = """
import signal, sys
from iqrl.cli import listing
from iqrl.cli.main import main

def wait(options):
    import polars
    print("in", flush=True)
    signal.pause()

listing.list_all = wait
sys.exit(main(["list"]))
"""


def test_an_interruption_before_training_ends_the_process_at_once():
    """Libraries that are imported before must not keep the signal to themselves."""
    process = subprocess.Popen([sys.executable, "-c", WAITING_COMMAND], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGINT


def test_a_reader_that_goes_ends_a_command_in_silence():
    """As in `iqrl list tasks | head -1`; tables are printed by rich, which ends the program with 1 then."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "iqrl", "study", "list"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("module", ["iqrl", "iqrl.cli"])
def test_the_command_is_a_module_too(module):
    output = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert output.stdout.startswith("iqrl ")
