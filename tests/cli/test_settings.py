"""Settings as flags and in files. Nothing is trained here."""

import json
from pathlib import Path

import pytest

from iqrl.cli.main import main, parse
from iqrl.cli.settings import read_request
from iqrl.make_run import groups_for, resolve
from iqrl.methods.registry import METHODS
from iqrl.settings import settings_of


def run_of(*arguments):
    """The run that the arguments of `iqrl train` describe."""
    request = read_request(parse(["train", *map(str, arguments)]))
    return resolve(request.task, request.method, request.preset, **request.settings)


def test_flags_and_keywords_are_the_same():
    flags = "--steps 4,000 --gamma 0.9 --hidden 16 8 --no-double-q --distill-actions all --sampling whole --contexts 4"
    settings = {"gamma": 0.9, "hidden": (16, 8), "double_q": False, "distill_actions": "all", "contexts": 4}
    expected = resolve("CartPole-v0", "iq", steps=4000, sampling="whole", **settings)
    assert run_of("CartPole-v0", "--method", "iq", *flags.split()) == expected


def test_without_flags_all_is_at_its_default():
    assert run_of("CartPole-v0") == resolve("CartPole-v0", "local-q")
    assert run_of("Acrobot-v1", "--method", "dqn", "--preset", "paper") == resolve("Acrobot-v1", "dqn", "paper")


def test_every_setting_of_every_method_and_task_is_a_flag_with_help(monkeypatch):
    actions = {action.dest: action for action in parse(["train", "x", "--contexts", "3"]).parser._actions}
    for name, field in settings_of(groups_for()).items():
        assert actions[name].option_strings[0] == "--" + name.replace("_", "-")
        assert actions[name].help.startswith(field.metadata["help"].replace("%", "%%"))
        assert "%" not in actions[name].help.replace("%%", "")


OWN_METHOD = """
from iqrl import Method, Settings, setting
from iqrl.methods.base import q_learner

class LeakSettings(Settings):
    'a leak'
    leak: float = setting(0.1, "share that leaks", minimum=0)
    leak_label: str = setting("slow", "name of the leak")

leaky = Method("leaky", "DQN with a leak", "me", build=q_learner, settings=(LeakSettings,))
"""


def test_an_own_method_has_flags_for_its_settings(refused, capsys, monkeypatch):
    Path("leaks.py").write_text(OWN_METHOD)
    monkeypatch.syspath_prepend(".")
    method = ["--method", "leaks:leaky"]
    made = run_of("--leak", "0.5", "CartPole-v0", *method, "--leak-label", "quick")
    assert (made.task, made.leak, made.leak_label) == ("CartPole-v0", 0.5, "quick")
    Path("my.toml").write_text('task = "CartPole-v0"\nmethod = "leaks:leaky"\nleak = 0.2\n')
    assert run_of("--config", "my.toml").leak == 0.2
    assert run_of("--config", "my.toml", "--leak", 0.3).leak == 0.3
    assert "leak must be at least 0, got -1" in refused("train", "CartPole-v0", *method, "--leak", "-1.0")
    assert "unknown argument '--leek'; did you mean --leak?" in refused("train", "CartPole-v0", *method, "--leek", "1")
    with pytest.raises(SystemExit):
        main(["train", *method, "--help"])
    assert "--leak X" in (text := capsys.readouterr().out)
    assert "share that leaks (default: 0.1)" in text


def test_a_file_of_settings_and_flags_over_it():
    Path("my.toml").write_text(
        'task = "Acrobot-v1"\nmethod = "dqn"\npreset = "paper"\n[learning]\nsteps = 1000\nperiod = 250\ngamma = 0.5\n'
        "[other]\nseeds = 3\n"
    )
    settings = {"steps": 1000, "period": 250, "gamma": 0.5}
    assert run_of("--config", "my.toml") == resolve("Acrobot-v1", "dqn", "paper", **settings, seeds=3)
    flags = ["CartPole-v0", "--method", "iq", "--seeds", 2]
    assert run_of(*flags, "--config", "my.toml") == resolve("CartPole-v0", "iq", "paper", **settings, seeds=2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("changed", [{}, {"layer_norm": False, "gamma": 0.5}])
def test_the_run_file_of_every_method_describes_the_same_run(method, changed):
    task = "MinAtar/Breakout-v1" if METHODS[method].observations == "images" else "CartPole-v0"
    made = resolve(task, method, **changed)
    Path("run.json").write_text(json.dumps({"config": made.to_dict()}))
    assert run_of("--config", "run.json") == made


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read my.toml: No such file or directory."),
        (b"steps = = 3", "my.toml is not valid TOML"),
        (b"\xff\xfe\x00", "cannot read my.toml"),
        (b"gama = 0.5", "in my.toml: unknown setting 'gama'; did you mean gamma?"),
        (b'buffer_size = "10"', "in my.toml: buffer_size must be a finite number"),
    ],
)
def test_a_file_that_cannot_be_used(refused, content, words):
    if content is not None:
        Path("my.toml").write_bytes(content)
    assert words in refused("train", "CartPole-v0", "--config", "my.toml")
