"""How names, presets and settings become a run, what is refused with a sentence, and what is read from run.json."""

import dataclasses
import json
from itertools import product

import numpy as np
import pytest

from iqrl.envs.registry import TASKS, make_task
from iqrl.errors import BadInput
from iqrl.make_run import groups_for, read_run, resolve
from iqrl.methods.medqn import ConsolidationSettings
from iqrl.methods.registry import METHODS, build_agent
from iqrl.settings import COMMON, Run, settings_of

IN_PAPER = [name for name in TASKS if make_task(resolve(name, "dqn")).paper_steps]


@pytest.mark.parametrize(("task", "preset"), [*product(TASKS, [None]), *product(IN_PAPER, ["paper"])])
@pytest.mark.parametrize("method", METHODS)
def test_every_task_and_method_resolves_and_is_read_again(task, method, preset):
    run = resolve(task, method, preset)
    assert None not in (run.steps, run.period, run.epsilon_decay)
    again = read_run(json.loads(json.dumps(run.to_dict())))
    assert again == run
    assert again.identity == run.identity
    own = {*settings_of((*COMMON, *METHODS[method].settings, *TASKS[task].settings)), "task", "method"}
    assert own == {field.name for field in dataclasses.fields(run)}, "a run has the settings of its method and task"


# Presets


def test_paper_preset():
    run = resolve("CartPole-v1", "iq", "paper")
    expected = {
        "steps": 1_000_000, "period": 20_000, "epsilon_decay": 100_000, "gamma": 0.995, "double_q": False,
        "bootstrap_time_limit": False, "batch_size": 32, "learning_rate": 5e-4, "hidden": (64,), "activation": "tanh",
        "learning_starts": 1000, "target_period": 1000, "epsilon_final": 0.02, "contexts": 3,
    }  # fmt: skip
    assert {name: getattr(run, name) for name in expected} == expected
    assert resolve("CartPole-v0", "dqn", "paper").steps == 400_000
    pendulum = resolve("Pendulum-v0", "dqn", "paper")
    assert (pendulum.torques, pendulum.reward_scale) == (11, 0.1)
    assert resolve("CartPole-v0", "dqn", "paper").reward_scale == 1
    with pytest.raises(BadInput, match="the paper has no settings for probe-sign"):
        resolve("probe-sign", "iq", "paper")


def test_rivals_that_are_dqn_have_its_base_at_the_papers_settings():
    """All that reduce to DQN by a term or an input, but for IQ and its ablations."""
    rivals = [name for name, method in METHODS.items() if "double_q" in method.presets.get("paper", {})]
    assert {"dqn", "srnn", "dsom", "tcnn"} <= set(rivals)
    for method in rivals:
        assert resolve("CartPole-v0", method, "paper").double_q


def test_settings_win_over_the_preset():
    run = resolve("CartPole-v0", "dqn", "paper", gamma=0.9, double_q=False, steps=5000)
    assert (run.gamma, run.double_q, run.steps) == (0.9, False, 5000)


def test_the_learning_rate_follows_from_the_step_and_the_features_unless_it_is_given():
    rate = lambda **given: resolve("CartPole-v1", "dqn", **given).learning_rate
    assert rate() == 5e-4
    assert rate(features="hats") == 2e-5
    assert rate(features="hats", learning_rate=1e-3) == 1e-3
    assert rate(features="hats", optimiser="bounded", buffer_size=1) == 1.0
    assert resolve("MinAtar/Breakout-v1", "dqn", features="hats", own_layers=0).learning_rate == 2.5e-4


def test_original_preset():
    with pytest.raises(
        BadInput, match="the preset original is for states in a vector, and MinAtar/Asterix-v1 has images"
    ):
        resolve("MinAtar/Asterix-v1", "medqn-u", "original")
    run = resolve("Acrobot-v1", "medqn-u", "original")
    assert (run.buffer_size, run.sampling, run.hidden, run.steps) == (32, "whole", (32, 32), 100_000)
    assert run.consolidation_growth == 100_000
    run = resolve("Acrobot-v1", "stream-q", "original", steps=40_000)
    assert (run.epsilon_decay, run.epsilon_final, run.learning_rate) == (2000, 0.01, 1.0)
    run = resolve("Acrobot-v1", "srnn", "original")
    assert (run.srnn_form, run.activation) == ("units", "relu")


def test_the_network_as_it_was_released_has_one_more_layer_and_nothing_of_iq():
    for task, hidden in (("MinAtar/Breakout-v1", (128, 128)), ("ALE/Pong-v5", (512, 128))):
        run = resolve(task, "iq-re", "as-released")
        assert (run.hidden, run.own_layers, run.contexts, run.distill_weight) == (hidden, 0, 1, 0.0)
    with pytest.raises(BadInput, match="method 'dqn' has no preset as-released"):
        resolve("MinAtar/Breakout-v1", "dqn", "as-released")


# What is refused


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"buffer_size": 0}, "buffer_size must be at least 1, got 0"),
        ({"contexts": 0}, "contexts must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"steps": -5}, "steps must be at least 1"),
        ({"gamma": 1.5}, "gamma must be at most 1"),
        ({"gamma": float("nan")}, "gamma must be a finite number, got nan"),
        ({"seeds": 2.5}, "seeds must be a whole number"),
        ({"hidden": ()}, "hidden must have at least one value"),
        ({"hidden": (64, 0)}, "hidden must be at least 1"),
        ({"activation": "tahn"}, "did you mean tanh"),
        ({"double_q": 1}, "double_q must be true or false"),
        ({"buffersize": 3}, "did you mean buffer_size"),
        ({"steps": 1100, "period": 2000}, "period is 2000; it must be at most steps, 1100"),
        ({"steps": 1001, "update_every": 2}, "must be a multiple of update_every"),
        ({"learning_starts": 2}, "must be at least the number of contexts"),
        ({"seed": 2**32}, "seed must be at most"),
        ({"steps": 10**14}, "steps must be at most"),
        ({"steps": 2000, "learning_starts": 50_000}, "learning_starts is 50000; it must be at most steps, 2000"),
        (
            {"steps": 500},
            "^iq waits 1,000 steps .learning_starts. before its first update: give more steps than that, or "
            "learning_starts=200.$",
        ),
        ({"steps": 2000, "update_every": 5000}, "steps is 2000; it must be a multiple of update_every, 5000"),
        ({"n_step": 5, "learning_starts": 4, "context_init": "random"}, "n_step is 5, so it must be at least 5"),
        (
            {"sampling": "whole", "buffer_size": 5000},
            "sampling whole waits for a full buffer, so it must be at least 5000",
        ),
        ({"own_layers": 2}, "own_layers is 2, and there are 1 hidden layers"),
        ({"measure_recent": 500}, "measure_recent does nothing while nothing is measured"),
        ({"measure_every": 1, "measure_recent": 1500}, "above 1000 it must be a multiple of 1000"),
        ({"measure_every": 1000, "steps": 2000, "period": 500}, "a period of 500 steps has 500 learning steps"),
        ({"contexts": "many"}, "contexts must be a finite number, got 'many'"),
        ({"context_init": "given"}, "centroids go with context_init given"),
        ({"centroids": [1, 2]}, "centroids go with context_init given"),
        ({"centroids": [1, 2], "context_init": "given"}, "centroids has 2 numbers; 3 contexts of 4 variables need 12"),
        ({"torques": 3}, "torques is a setting of Pendulum-v0; it does not apply to CartPole-v0"),
        ({"preset": "papr"}, "did you mean paper"),
        ({"padding": "same"}, "padding is a setting of convolutions, and CartPole-v0 has no images"),
    ],
)
def test_bad_settings_get_a_sentence(settings, words):
    with pytest.raises(BadInput, match=words.replace("(", r"\(")) as caught:
        resolve("CartPole-v0", "iq", **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("task", "method", "words"),
    [
        ("CartPol-v0", "iq", "did you mean CartPole-v0"),
        ("cartpole-v1", "iq", "did you mean CartPole-v1"),
        ("Chess", "iq", "choose from Acrobot-v1"),
        ("CartPole-v0", "dqnn", "did you mean dqn"),
        ("no_such_module:task", "iq", "cannot import 'no_such_module'.*run from the folder that holds it"),
        ("numpy:", "iq", "'numpy:' is not a name of the form module:attribute"),
        ("numpy:nothing", "iq", "module 'numpy' has no 'nothing'"),
        ("numpy:pi", "iq", "is float, not an iqrl.Task"),
        ("math:pi", "iq", "'math' is a module of Python itself"),
        ("CartPole-v0", "numpy:pi", "is float, not an iqrl.Method"),
        (object(), "iq", "task and method are names"),
    ],
)
def test_unknown_names_suggest_the_nearest(task, method, words):
    with pytest.raises(BadInput, match=words):
        resolve(task, method)


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("dqn", {"contexts": 3}, "method 'dqn' has no contexts; contexts does not apply"),
        ("dqn", {"srnn_beta": 0.2}, "method 'dqn' has no sparse representations; srnn_beta does not apply"),
        ("iq-no-multi-head", {"contexts": 3}, "has no contexts; contexts does not apply"),
        ("iq-no-clustering", {"context_init": "kmeans"}, "context_init is always random for iq-no-clustering"),
        ("stream-q", {"buffer_size": 100}, "stream-q stores nothing and has no buffer_size"),
        ("stream-c51", {"value_low": 3, "value_high": 2}, "value_low is 3.0; it must be less than value_high, 2.0"),
        ("iq-game-score", {"contexts": "auto"}, "contexts auto is for methods that cluster the states"),
        ("iq-game-score", {"score_low": 1, "score_high": 1}, "score_low is 1.0; it must be less than score_high"),
        ("dqn", {"preset": "original"}, "method 'dqn' has no preset original"),
        ("iq", {"target_period": 1}, "target_period is 1, which leaves no target network for the distillation of iq"),
        ("medqn-r", {"target_period": 1}, "no target network for the consolidation of medqn-r"),
        ("stream-q", {"adam_epsilon": 0.1}, "adam_epsilon is always 1e-08 for stream-q"),
    ],
)
def test_what_does_not_fit_a_method_gets_a_sentence(method, settings, words):
    with pytest.raises(BadInput, match=words):
        resolve("CartPole-v0", method, **settings)


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("dsom", {"hidden": 60}, "the last of hidden is 60; .* square such as 64"),
        ("iq-no-clustering", {"context_scaling": "running"}, "iq-no-clustering takes task or none"),
        ("tcnn", {"tilings": 8, "tile_inputs": 4}, "tile_inputs is 4; each of the 8 tilings needs one at least"),
    ],
)
def test_what_no_agent_can_be_made_of_gets_a_sentence(method, settings, words):
    run = resolve("CartPole-v0", method, **settings)
    with pytest.raises(BadInput, match=words):
        build_agent(run, make_task(run))


def test_a_fixed_setting_may_be_given_as_it_is():
    assert resolve("CartPole-v0", "stream-q", buffer_size=1).buffer_size == 1


def test_numbers_of_other_libraries_are_numbers():
    run = resolve("CartPole-v0", "iq", steps=np.int64(2000), gamma=np.float32(0.5), buffer_size=1e3)
    assert (run.steps, run.gamma, run.buffer_size) == (2000, 0.5, 1000)
    assert all(type(value) in (int, float) for value in (run.steps, run.gamma, run.buffer_size))


# Runs saved before methods and tasks declared their settings


def old_config(run):
    """Every setting there is, those of other methods and tasks at their defaults."""
    as_json = lambda value: list(value) if isinstance(value, tuple) else value
    every = {name: as_json(field.default) for name, field in settings_of(groups_for()).items()}
    return json.loads(json.dumps(every | run.to_dict()))


@pytest.mark.parametrize("method", METHODS)
def test_an_old_run_with_the_settings_of_all_methods_is_read(method):
    run = resolve("CartPole-v0", method, steps=5000)
    config = old_config(run)
    assert len(config) > len(run.to_dict())
    assert read_run(config) == run
    assert read_run(config).identity == run.identity


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"srnn_beta": 0.5}, "srnn_beta is 0.5, and the run has no such setting"),
        ({"centroids": [1.0]}, r"centroids is \[1.0\], and the run has no such setting"),
        ({"torques": 3}, "torques is 3, and the run has no such setting"),
        ({"srnn_bta": 0.1}, "unknown setting 'srnn_bta'; did you mean srnn_beta"),
        ({"gamma": 2.0}, "gamma must be at most 1, got 2.0"),
    ],
)
def test_an_old_run_with_other_values_of_what_it_does_not_have_is_refused(changed, words):
    with pytest.raises(BadInput, match=words):
        read_run(old_config(resolve("CartPole-v0", "dqn")) | changed)


def test_a_run_has_no_settings_but_its_own():
    assert set(dataclasses.asdict(resolve("CartPole-v0", "medqn-r"))) == {
        *settings_of((*COMMON, ConsolidationSettings)), "task", "method",
    }  # fmt: skip
    assert isinstance(resolve("CartPole-v0", "iq"), Run)


def test_without_a_method_it_is_the_recommended_one():
    assert resolve("CartPole-v0").method == "local-q"
    assert resolve("MinAtar/Breakout-v1").method == "dqn"
    with pytest.raises(BadInput, match="local-q is the method here where none is named"):
        resolve("CartPole-v0", buffer_size=100)
    with pytest.raises(BadInput, match=r"^unknown setting 'gama'; did you mean gamma\?$"):
        resolve("CartPole-v0", gama=0.9)
