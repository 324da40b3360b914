"""The help of iqrl train by method, and completion."""

import subprocess

import pytest

import iqrl
from iqrl.cli.completing import WRITERS, Words, read_parser
from iqrl.cli.main import build_parser, main
from iqrl.cli.settings import Flags
from iqrl.methods.registry import METHODS
from iqrl.other_names import NOTES, OTHER_NAMES
from iqrl.settings import COMMON, Following, settings_of


def help_of(capsys, *arguments):
    with pytest.raises(SystemExit):
        main(["train", *arguments])
    return capsys.readouterr().out


def test_the_help_has_the_settings_of_the_method(capsys):
    default, srnn, whole = (
        help_of(capsys, "--help"),
        help_of(capsys, "--method", "srnn", "-h"),
        help_of(capsys, "--help-all"),
    )
    assert "--srnn-beta" not in default
    text = " ".join(default.split())
    assert "local-q: Q-learning without replay" in text
    assert "Below are its settings, with its defaults." in text
    assert "1 with optimiser bounded (default: 1;" in text
    assert "--buffer-size" not in text
    assert "Other methods have other settings and defaults: iqrl train --method NAME --help" in text
    assert "if not given, the paper's for its tasks, 1,000,000 for MinAtar, else 100,000" in text
    assert "A default is that of dqn" in " ".join(whole.split())
    assert "--srnn-beta" in srnn
    assert "srnn: DQN with hidden units" in srnn
    assert "--distill-weight" not in srnn
    assert "--distill-weight" in whole
    assert srnn.index("--srnn-beta") < srnn.index("--steps N")  # its own come first


def test_the_help_of_a_method_has_its_defaults_and_not_what_it_decides(capsys):
    text = " ".join(help_of(capsys, "Pendulum-v0", "--method", "local-q", "--help").split())
    assert "--act-average" in text
    assert "(default: 0.03; paper: 0)" in text
    assert "False" not in text
    assert "--buffer-size" not in text
    assert "--torques" in text  # of the task
    own = help_of(capsys, "my_module:MyEnv", "--help")  # nothing is imported
    assert "--env-kwargs" in own
    assert "--n-envs" in own
    assert "--act-average" in own  # the recommended method


def test_the_help_has_what_follows_from_the_task(capsys):
    text = lambda *arguments: " ".join(help_of(capsys, *arguments, "--help").split())
    known, unknown, elsewhere = text("CartPole-v1"), text(), text("CartPole-v1", "--method", "iq-re")
    assert "with its defaults on CartPole-v1." in known
    assert "as a multiple of the heads' step (default: 4)" in known
    assert "a unit's range is divided (default: 32)" in known
    assert "as a multiple of the heads' step (default: (units / 64)²; 4 for 128 units)" in unknown
    assert "a unit's range is divided (default: 32 for up to 6 variables, else 16)" in unknown
    assert "iq-re: " in elsewhere  # not for such tasks, and its own defaults are shown


def test_an_unknown_method_has_no_help(refused):
    assert "unknown method 'srn'; did you mean srnn?" in refused("train", "--method", "srn", "--help")


def test_names_of_other_libraries_stand_for_settings():
    groups = (*COMMON, *[group for method in METHODS.values() for group in method.settings], Following)
    ours = {*settings_of(groups), "task", "method", "out", "n_envs", "env_processes", "frame_stack", "sticky"}
    commands = {name for names in build_parser(Flags()).sections.values() for name in names}
    assert set(OTHER_NAMES.values()) <= ours | commands
    assert not set(OTHER_NAMES) & (ours | commands)
    assert set(NOTES) <= set(OTHER_NAMES)


@pytest.mark.parametrize(
    ("name", "here"), [("lr", "learning_rate"), ("total_timesteps", "steps"), ("tau", "target_average")]
)
def test_python_knows_them_too(name, here):
    with pytest.raises(iqrl.BadInput, match=f"unknown setting '{name}'; did you mean {here}"):
        iqrl.resolve("CartPole-v1", "dqn", **{name: 1})


@pytest.fixture(scope="module")
def words():
    read = read_parser(build_parser(Flags()))
    read.values["--method"] = ["dqn", "srnn"]
    read.names["train"] = ["CartPole-v0", "CartPole-v1"]
    return read


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("iqrl tra", "train"),
        ("iqrl train Cart", "CartPole-v0 CartPole-v1"),
        ("iqrl train CartPole-v0 --method s", "srnn"),
        ("iqrl train --learning-r", "--learning-rate"),
        ("iqrl study ex", "export"),
        ("iqrl study run --wor", "--workers"),
        ("iqrl train --optimiser r", "rmsprop"),
        ("iqrl list m", "methods"),
    ],
)
def test_bash_completes(words, line, found):
    ask = 'COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _iqrl; echo "${COMPREPLY[@]}"'
    script = f"{WRITERS['bash'](words)}\n{ask}"
    output = subprocess.run(["bash", "-c", script, "bash", line], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == found


def test_the_other_shells_have_the_same_words(words):
    assert isinstance(words, Words)
    for shell in ("zsh", "fish"):
        text = WRITERS[shell](words)
        assert "learning-rate" in text
        assert "CartPole-v0 CartPole-v1" in text
    assert " place= " in WRITERS["zsh"](words)  # path would be that of the commands
    assert "complete -c iqrl -n '__fish_use_subcommand' -a train -d 'train a method on a task'" in WRITERS["fish"](
        words
    )


def test_completion_names_all_methods(run):
    code, out, _ = run("completion", "bash")
    assert code == 0
    assert all(f"--{name.replace('_', '-')}" in out for name in ("srnn_beta", "distill_weight"))
    assert " ".join(METHODS) in out
