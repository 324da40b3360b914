"""Commands run in this process, each test in a directory of its own, and one trained run for all tests."""

import json
import shutil
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

import iqrl
from iqrl.cli.main import main


class Output(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out.strip().splitlines()[-1])


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, stdout and stderr."""
    handler = signal.getsignal(signal.SIGINT)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return Output(code, *capsys.readouterr())

    yield run
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def refused(run):
    """Run a command that must be refused: exit code 2, one sentence on stderr, no file written. The sentence."""

    def refused(*arguments):
        before = sorted(Path().rglob("*"))
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("iqrl: ")
        assert err.count("\n") == 1
        assert sorted(Path().rglob("*")) == before
        return err

    return refused


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "dqn"
    iqrl.train("CartPole-v0", "dqn", out=path, steps=1000, period=250, seeds=2, learning_starts=200)
    return path


@pytest.fixture
def trained(trained_once, own_directory):
    """A finished run of DQN in runs/dqn: 1000 steps, two seeds, nothing measured."""
    return Path(shutil.copytree(trained_once, "runs/dqn"))
