"""Rounds of several environments: what the agent observes of them, when it learns, and that runs go on."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from records import assert_same
from scripted import GAMMA, TRANSITIONS, Scripted

import iqrl
from iqrl.envs.external import task_of_environment
from iqrl.errors import BadInput
from iqrl.make_run import resolve
from iqrl.training.compilation import compile_driver
from iqrl.training.loop import driver_of
from iqrl.training.rounds import RoundDriver

HERE = __name__
STEPS, ENVS, SEEDS = 30, 3, 2
STARTS, EVERY, PERIOD = 8, 2, 10
"""learning starts within a round, and so do updates and syncs"""


class Diary(NamedTuple):
    """What an agent was told, by step."""

    seen: Any
    """[STEPS, 8]: s, r, discount, s', done, the step at which the action was chosen"""
    warm_up: Any
    learned: Any
    synced: Any
    """[STEPS + 1]: how many steps had been observed at a sync"""
    started: Any
    count: Any


class Choice(NamedTuple):
    action: Any
    step: Any


class Writer:
    """An agent that writes down what it is told."""

    act_uniforms, observe_uniforms, learn_uniforms, syncs = 1, 1, 1, True
    step_metrics, update_metrics = {}, ("updates",)

    def init(self, key):
        none = lambda *shape: jnp.zeros(shape)
        return Diary(none(STEPS, 8), none(STEPS), none(STEPS), none(STEPS + 1), none(STEPS + 1), jnp.int32(0))

    encoder_of = parameters = lambda self, state: state.seen
    embed = lambda self, encoder, inputs: inputs
    step_report = report = lambda self, choice: {}

    def act(self, state, inputs, step, random):
        return Choice(action=jnp.int32(0), step=step)

    def observe(self, state, experience, step, random, warm_up=False):
        end = jnp.stack([experience.done, experience.choice.step])
        row = [experience.before.obs, experience.reward[None], experience.discount[None], experience.after.obs, end]
        seen = state.seen.at[step].set(jnp.concatenate(row))
        return state._replace(seen=seen, warm_up=state.warm_up.at[step].set(warm_up), count=state.count + 1), ()

    def learn(self, state, step, random):
        return state._replace(learned=state.learned.at[step].add(1)), {"updates": jnp.float32(1)}

    def sync(self, state):
        return state._replace(synced=state.synced.at[state.count].add(1))

    def start_learning(self, state, key):
        return state._replace(started=state.started.at[state.count].add(1))


@pytest.fixture(scope="module")
def told():
    """The diary of the first seed, and what the periods say."""
    settings = {"steps": STEPS, "period": 6, "seeds": SEEDS, "learning_starts": STARTS, "update_every": EVERY}
    run = resolve(Scripted, "dqn", n_envs=ENVS, gamma=GAMMA, target_period=PERIOD, **settings)
    task = task_of_environment("scripted", Scripted(), lambda seed: Scripted())
    program = compile_driver(RoundDriver(run, task, Writer()))
    state, periods = program.init(), []
    for stop in range(6, STEPS + 1, 6):
        state, period = program.advance(state, np.int32(stop))
        periods.append(jax.device_get(period))
    return jax.device_get(jax.tree.map(lambda each: each[0], program.whole(state).agent)), periods


def test_what_is_observed_is_what_the_environments_did(told):
    """Step t is one of environment t modulo 3, in each of the four cases of an end."""
    expected = [(*s, r, discount, *after, done) for s, r, discount, after, done in TRANSITIONS]
    np.testing.assert_array_equal(told[0].seen[:, :7], np.repeat(expected, ENVS, axis=0))
    np.testing.assert_array_equal(told[0].seen[:, 7], np.arange(STEPS), "every step has an ε of its own")


def test_there_are_as_many_updates_per_step_as_the_settings_say(told):
    diary = told[0]
    steps = np.arange(STEPS)
    np.testing.assert_array_equal(diary.warm_up, steps < STARTS)
    np.testing.assert_array_equal(diary.learned, (steps >= STARTS) & ((steps - STARTS) % EVERY == EVERY - 1))
    assert np.flatnonzero(diary.started).tolist() == [STARTS]
    assert np.flatnonzero(diary.synced).tolist() == [10, 20, 30]
    assert [period.metrics["updates"].tolist() for period in told[1]] == [[0, 0], [1, 1], [1, 1], [1, 1], [1, 1]]


def test_returns_are_of_the_episodes_that_ended_in_any_environment(told):
    """The first two steps of each environment end one episode of 1 + 2."""
    assert [period.episodes.tolist() for period in told[1]] == [[3, 3], [3, 3], [3, 3], [3, 3], [3, 3]]
    assert [float(period.returns[0]) for period in told[1]] == [3.0, 3.0, 9.0, 21.0, 3.0]


class Wandering(Scripted):
    """The same, but an episode is drawn, and the states with it."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode = int(self.np_random.integers(50))
        return self.seen(), {}


def test_a_run_in_processes_goes_on_bit_for_bit_as_one_that_was_never_stopped(tmp_path):
    """Here and in processes; stopped within episodes, with n-step returns and normalised inputs of each environment."""
    settings = {
        "steps": 90, "period": 15, "seeds": 2, "learning_starts": 20, "target_period": 16, "buffer_size": 20,
        "hidden": (4,), "batch_size": 4, "n_envs": 3, "n_step": 2, "normalise_inputs": True, "epsilon_decay": 9,
    }  # fmt: skip
    name = f"{HERE}:Wandering"
    whole = iqrl.train(name, "dqn", **settings)
    iqrl.train(name, "dqn", **(settings | {"steps": 45, "env_processes": 2}), out=tmp_path / "run")
    resumed = iqrl.resume(tmp_path / "run", steps=90)
    assert whole.metrics.equals(resumed.metrics, null_equal=True)
    assert_same(whole.agent_state, resumed.agent_state)


@pytest.mark.parametrize(
    ("task", "method", "settings", "said"),
    [
        (f"{HERE}:Wandering", "dqn", {"period": 10, "learning_starts": 100}, "period is 10; it must be a multiple of"),
        (f"{HERE}:Wandering", "dqn", {"learning_starts": 5, "n_step": 3}, "n_step is 3, so it must be at least 9"),
        (f"{HERE}:Wandering", "stream-q", {}, "trace_decay is 0.8; traces follow one episode"),
        ("CartPole-v1", "dqn", {}, "n_envs is a setting of environments outside the program; it does not apply"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(task, method, settings, said):
    with pytest.raises(BadInput, match=said):
        driver_of(resolve(task, method, n_envs=4, steps=400, **settings))


def test_periods_are_whole_rounds_where_they_are_not_given():
    run = resolve(f"{HERE}:Wandering", "dqn", n_envs=3, steps=600, update_every=2, learning_starts=10)
    assert run.period == 12


def test_one_environment_is_the_run_that_it_was():
    """By identity: settings that are at their defaults are no part of it."""
    runs = [resolve(f"{HERE}:Wandering", "dqn", **given) for given in ({}, {"n_envs": 1}, {"n_envs": 2})]
    assert runs[0].identity == runs[1].identity != runs[2].identity
    assert not isinstance(driver_of(runs[0]), RoundDriver)
