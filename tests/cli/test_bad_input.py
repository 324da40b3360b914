"""Inputs that were once answered with a traceback, with silence, or by doing what they said."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iqrl.cli.main import main
from iqrl.diagnostics.explain.page import explain
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table, markdown
from iqrl.make_run import read_run, resolve
from iqrl.training.run_directory import RunStore

HUGE = "9" * 400
BLOCK = '[[runs]]\ntask = "CartPole-v0"\nmethod = "dqn"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"seeds = {HUGE}", "seeds must be at most 2147483647, got an integer of"),
        (f"gamma = {HUGE}", "gamma must be at most 1, got an integer of"),
        ("preset = 3", "preset must be text, got 3"),
        ("method = []", "method must be text, got []"),
        ("buffer_size = {}", "buffer_size is a setting, and must have a value instead of a table"),
        ("hidden = [[64], 64]", "hidden must be a finite number, got [64]"),
        ("hidden = [1e300]", "hidden must be at most 2147483647, got 1e+300"),
        (f"a = {'[' * 5000}", "is not valid TOML"),
        ("activation = [1]", "unknown activation '[1]'"),
    ],
)
def test_files_of_settings(refused, text, words):
    Path("c.toml").write_text(text)
    assert words in refused("train", "CartPole-v0", "--config", "c.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"analyses = [[]]\n{BLOCK}", "analyses must be a list of names"),
        (f"charts = [[]]\n{BLOCK}", "charts must be a list of names"),
        (f"{BLOCK}variant = [1]", "variant must be text, got [1]"),
        (f"{BLOCK}preset = 3", "unknown preset '3'"),
        (f"{BLOCK}hidden = [[64], 64]", "numbers beside lists"),
        (f"{BLOCK}seed = [{', '.join(map(str, range(400)))}]\ngamma = [{', '.join(['0.5'] * 400)}]", "160,000 runs"),
    ],
)
def test_study_files(refused, text, words):
    Path("s.toml").write_text(text)
    assert words in refused("study", "run", "s.toml", "--out", "out")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--out", ""], "'' is not a path"),
        (["--out", "a" * 300], "has a name of more than 255 bytes"),
        (["--hidden", "1e300"], "is not a whole number"),
        (["--method", ""], "unknown method ''"),
        (["--batch-size", "2147483647"], "the run's state takes"),
        (["--batch-size", "2147483648"], "batch_size must be at most 2147483647"),
        (["--preset", "x" * 100_000], "unknown preset"),
        (["--gamma", "x" * 100_000], "is not a number"),
        (["--config", "/dev/null"], "/dev/null is not a regular file"),
    ],
)
def test_flags(refused, flags, words):
    message = refused("train", "CartPole-v0", "--method", "iq", *flags)
    assert words in message
    assert len(message) < 500


def test_a_pipe_as_a_file_of_settings_is_not_waited_for(refused):
    os.mkfifo("pipe.toml")
    assert "is not a regular file" in refused("train", "CartPole-v0", "--config", "pipe.toml")
    assert "is not a regular file" in refused("study", "list", "pipe.toml")


def test_devices_are_written_to_and_never_replaced(trained, run):
    assert run("explain", trained, "--out", "/dev/null").code == 0
    assert not Path("/dev/null").is_file()
    code, _, err = run("explain", trained, "--out", "/dev/full")
    assert (code, err) == (2, "iqrl: cannot write /dev/full: No space left on device.\n")
    Path("link.md").symlink_to("elsewhere.md")
    code, _, err = run("explain", trained, "--out", "link.md")
    assert (code, err) == (2, "iqrl: cannot write link.md: it is a link; name the file itself.\n")
    Path("full").mkdir()
    assert run("explain", trained, "--out", "full").err == "iqrl: cannot write full: it is a directory.\n"


def command(text, **environment):
    line = f"{sys.executable} -m iqrl {text}"
    return subprocess.run(line, shell=True, capture_output=True, text=True, env=os.environ | environment)


def test_a_full_disk_behind_the_standard_output():
    for words in ("", "--help"):
        done = command(f"{words} > /dev/full")
        assert done.returncode == 1
        assert done.stderr == "iqrl: cannot write to the standard output: No space left on device.\n"


def test_a_terminal_that_has_only_ascii():
    done = command("train --help", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "discount factor ?" in done.stdout
    done = command("train CartPole-γ", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_read_only_directory_and_a_lock_are_a_sentence(refused, monkeypatch):
    """Root may write anywhere, so the system's answer is pretended."""
    opened = os.open

    def read_only(path, flags, *rest, **named):
        if str(path).endswith("out") and not flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *rest, **named)

    Path("s.toml").write_text(BLOCK + "steps = 100\nlearning_starts = 10\n")
    monkeypatch.setattr(os, "open", read_only)
    code = main(["study", "run", "s.toml", "--out", "out"])
    assert code == 2


@pytest.mark.parametrize("name", ["[x](javascript:alert(1))", "\x1b[31m", "a" * 201, "", "a b", "<script>"])
def test_names_that_a_page_or_a_terminal_would_obey_are_none(name):
    config = resolve("CartPole-v0", "dqn").to_dict()
    for key in ("task", "method"):
        with pytest.raises(ValueError, match="task and method must be names"):
            read_run(config | {key: name})


def test_text_in_a_markdown_table_stays_in_its_cell():
    evil = "a | b\n\n[x](javascript:alert(1)) <img src=x>"
    table = Table((Column(evil),), (Section(evil, (Row(evil, (Cell(evil),)),)),))
    lines = markdown(table).splitlines()
    assert len(lines) == 3
    assert all(r"\[x\](javascript:alert(1)) \<img src=x\>" in lines[i] for i in (0, 2))


def test_a_page_of_a_run_quotes_names_alone(trained):
    store = RunStore.open(trained)
    assert "javascript" not in explain(store.run, store.metrics())


def test_a_message_is_one_line(run):
    code, _, err = run("train", "a\n\x1b[31mb" * 1000)
    assert code == 2
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert len(err) < 500
