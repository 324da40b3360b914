import dataclasses
import json
import typing
from itertools import product

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iqrl.config import GROUPS, OPTIONS, Run, TaskOptions, fields_of
from iqrl.errors import BadInput
from iqrl.methods import METHODS, build_agent
from iqrl.settings import resolve
from iqrl.tasks import TASKS, make_task


def test_every_field_belongs_to_one_group_and_has_help():
    names = [field.name for group in GROUPS for field in fields_of(group)]
    assert len(names) == len(set(names))
    assert {*names, "task", "method"} == {field.name for field in dataclasses.fields(Run)}
    assert all(OPTIONS[name].metadata["help"] for name in names)


IN_PAPER = [name for name, make in TASKS.items() if make(TaskOptions()).paper_steps]


@pytest.mark.parametrize(("task", "preset"), [*product(TASKS, [None]), *product(IN_PAPER, ["paper"])])
@pytest.mark.parametrize("method", METHODS)
def test_every_task_and_method_resolves(task, method, preset):
    run = resolve(task, method, preset)
    assert None not in (run.steps, run.period, run.epsilon_decay)
    assert Run(**json.loads(json.dumps(run.to_dict()))) == run
    assert Run(**json.loads(json.dumps(run.to_dict()))).identity == run.identity


def test_paper_preset():
    run = resolve("CartPole-v1", "iq", "paper")
    expected = {
        "steps": 1_000_000, "period": 20_000, "epsilon_decay": 100_000, "gamma": 0.995, "double_q": False,
        "bootstrap_time_limit": False, "batch_size": 32, "learning_rate": 5e-4, "hidden": (64,), "activation": "tanh",
        "learning_starts": 1000, "target_period": 1000, "epsilon_final": 0.02, "contexts": 3,
    }  # fmt: skip
    assert {name: getattr(run, name) for name in expected} == expected
    assert resolve("CartPole-v0", "dqn", "paper").double_q is True
    assert resolve("CartPole-v0", "dqn", "paper").steps == 400_000
    pendulum = resolve("Pendulum-v0", "dqn", "paper")
    assert (pendulum.torques, pendulum.reward_scale) == (11, 0.1)
    assert resolve("CartPole-v0", "dqn", "paper").reward_scale == 1


def test_settings_win_over_the_preset():
    run = resolve("CartPole-v0", "dqn", "paper", gamma=0.9, double_q=False, steps=5000)
    assert (run.gamma, run.double_q, run.steps) == (0.9, False, 5000)


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
        ({"hidden": ()}, "hidden must name at least one layer"),
        ({"hidden": (64, 0)}, "hidden must be at least 1"),
        ({"activation": "tahn"}, "did you mean tanh"),
        ({"double_q": 1}, "double_q must be true or false"),
        ({"buffersize": 3}, "did you mean buffer_size"),
        ({"steps": 100, "period": 200}, "period is 200; it must be at most steps, 100"),
        ({"steps": 1001, "update_every": 2}, "must be a multiple of update_every"),
        ({"learning_starts": 2}, "must be at least the number of contexts"),
        ({"seed": 2**32}, "seed must be at most"),
        ({"steps": 10**14}, "steps must be at most"),
        ({"steps": 2000, "learning_starts": 50_000}, "learning_starts is 50000; it must be at most steps, 2000"),
        ({"steps": 2000, "update_every": 5000}, "steps is 2000; it must be a multiple of update_every, 5000"),
        ({"n_step": 5, "learning_starts": 4, "context_init": "random"}, "n_step is 5, so it must be at least 5"),
        (
            {"sampling": "whole", "buffer_size": 5000},
            "sampling whole waits for a full buffer, so it must be at least 5000",
        ),
        ({"contexts": "many"}, "contexts must be a finite number, got 'many'"),
        ({"context_init": "given"}, "centroids go with context_init given"),
        ({"centroids": [1, 2]}, "centroids go with context_init given"),
        ({"centroids": [1, 2], "context_init": "given"}, "centroids has 2 numbers; 3 contexts of 4 variables need 12"),
        ({"torques": 3}, "torques is a setting of Pendulum-v0; it does not apply to CartPole-v0"),
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
        ("math:", "iq", "'math:' is not a name of the form module:attribute"),
        ("math:nothing", "iq", "module 'math' has no 'nothing'"),
        ("math:pi", "iq", "is float, not an iqrl.Task"),
        ("CartPole-v0", "math:pi", "is float, not an iqrl.Method"),
    ],
)
def test_unknown_names_suggest_the_nearest(task, method, words):
    with pytest.raises(BadInput, match=words):
        resolve(task, method)


def test_a_setting_the_method_does_not_use_is_refused():
    with pytest.raises(BadInput, match="method 'dqn' has no contexts; contexts does not apply"):
        resolve("CartPole-v0", "dqn", contexts=3)


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("dqn", {"srnn_beta": 0.2}, "method 'dqn' has no sparse representations; srnn_beta does not apply"),
        ("iq-no-multi-head", {"contexts": 3}, "has no contexts; contexts does not apply"),
        ("iq-no-clustering", {"context_init": "kmeans"}, "context_init is always random for iq-no-clustering"),
        ("stream-q", {"buffer_size": 100}, "buffer_size is always 1 for stream-q; leave it out"),
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


def test_rivals_that_are_dqn_have_its_base_at_the_papers_settings():
    for method in ("dqn", "srnn", "dsom", "tcnn", "dqn-layernorm", "medqn-u", "medqn-r"):
        assert resolve("CartPole-v0", method, "paper").double_q


def test_a_fixed_setting_may_be_given_as_it_is():
    assert resolve("CartPole-v0", "stream-q", buffer_size=1).buffer_size == 1


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


@pytest.mark.parametrize("scaling", ["task", "running"])
def test_contexts_are_found_in_the_states_of_a_random_policy(scaling):
    """On CartPole there are three, by the pushes so far; the pole falls away from the cart's motion."""
    run = resolve("CartPole-v0", "iq", contexts="auto", context_scaling=scaling)
    assert (run.contexts, run.context_init, len(run.centroids)) == (3, "given", 12)
    velocities = np.reshape(run.centroids, (3, 4))[:, [1, 3]]
    order = np.argsort(velocities[:, 0])
    np.testing.assert_array_equal(np.sign(velocities[order[[0, 2]]]), [[-1, 1], [1, -1]])
    np.testing.assert_allclose(velocities[order[1]], 0.0, atol=0.1)
    assert run == resolve("CartPole-v0", "iq", contexts="auto", context_scaling=scaling)


def test_contexts_found_can_start_by_kmeans():
    run = resolve("CartPole-v0", "iq", contexts="auto", context_init="kmeans")
    assert (run.contexts, run.context_init, run.centroids) == (3, "kmeans", ())


def test_the_found_centroids_are_where_training_starts():
    run = resolve("CartPole-v0", "iq", contexts="auto")
    state = build_agent(run, make_task(run)).init(jax.random.key(0))
    np.testing.assert_array_equal(state.contexts.live, np.float32(run.centroids).reshape(3, 4))


def test_unknown_preset():
    with pytest.raises(BadInput, match="did you mean paper"):
        resolve("CartPole-v0", "iq", "papr")
    with pytest.raises(BadInput, match="the paper has no settings for probe-sign"):
        resolve("probe-sign", "iq", "paper")


VALUES = {int: st.integers(1, 10**6), float: st.floats(0, 1), bool: st.booleans()}


@given(data=st.data(), name=st.sampled_from(sorted(OPTIONS)))
def test_identity_follows_the_content(data, name):
    hint = typing.get_type_hints(Run)[name]
    kind = next((kind for kind in (bool, int, float) if hint in (kind, kind | None)), None)
    if kind is None:
        return
    value = data.draw(VALUES[kind])
    base = resolve("CartPole-v0", "iq", steps=10**6, period=1)
    try:
        other = dataclasses.replace(base, **{name: value})
    except BadInput:
        return
    same = name == "steps" or getattr(other, name) == getattr(base, name)
    assert (other.identity == base.identity) == same


def test_numbers_of_other_libraries_are_numbers():
    run = resolve("CartPole-v0", "iq", steps=np.int64(2000), gamma=np.float32(0.5), buffer_size=1e3)
    assert (run.steps, run.gamma, run.buffer_size) == (2000, 0.5, 1000)
    assert all(type(value) in (int, float) for value in (run.steps, run.gamma, run.buffer_size))


def test_a_task_record_is_not_a_name():
    with pytest.raises(BadInput, match="task and method are names"):
        resolve(object(), "iq")
