"""The hosted driver against the compiled one: the same task inside the program and outside it."""

import itertools

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import iqrl
from iqrl.methods import build_agent
from iqrl.parts.encoders import MINATAR, Image
from iqrl.settings import resolve
from iqrl.tasks.base import Task
from iqrl.tasks.hosted import hosted_task
from iqrl.training import loop as training
from iqrl.training.compilation import compile_driver
from iqrl.training.compiled import Driver
from iqrl.training.hosted import HostedDriver
from iqrl.training.store import RunStore

SIDE, LIMIT = 5, 23


def walk(state, action, _):
    """Along a line of SIDE squares and back to its start; its right end pays, and the left one is an end."""
    place = state + jnp.where(action == 1, 1, -1)
    paid = place >= SIDE
    return jnp.where(paid, 2, place), jnp.where(paid, 1.5, -0.25).astype(jnp.float32), place < 0


def as_vector(state):
    return jnp.stack([state / SIDE, jnp.float32(1.0)])


def as_image(state):
    rows, columns, channels = jnp.indices((SIDE, SIDE, 2))
    return ((columns == state) & (channels == 0) | (rows == 1) & (channels == 1)).astype(jnp.uint8)


def task_of(kind):
    shown = {"vector": as_vector, "image": as_image}[kind]
    size = 2 if kind == "vector" else SIDE * SIDE * 2
    pictured = {} if kind == "vector" else {"image": Image(SIDE, SIDE, 2, highest=1.0), "layers": MINATAR}
    start = lambda uniforms: jnp.int32(2)
    return Task("walk", 2, (0.0,) * size, (1.0,) * size, LIMIT, start, walk, shown, 0, **pictured)


class Walk(gymnasium.Env):
    """The same walk on the host."""

    def __init__(self, kind):
        self.task = task_of(kind)
        self.shown = jax.jit(self.task.observe)
        self.action_space = Discrete(2)
        shape, highest = ((2,), 1.0) if kind == "vector" else ((SIDE, SIDE, 2), 1)
        self.observation_space = Box(0, highest, shape, np.float32 if kind == "vector" else np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.length = 2, 0
        return np.asarray(self.shown(self.place)), {}

    def step(self, action):
        self.length += 1
        place, reward, terminated = walk(np.int32(self.place), action, None)
        self.place = int(place)
        truncated = self.length >= LIMIT and not terminated
        return np.asarray(self.shown(self.place)), float(reward), bool(terminated), truncated, {}


class ForgetfulWalk(Walk):
    """No two episodes look alike, whatever the seed."""

    episodes = itertools.count(1)

    def reset(self, **given):
        self.episode = next(self.episodes)
        obs, info = super().reset(**given)
        return self.marked(obs), info

    def step(self, action):
        obs, *rest = super().step(action)
        return self.marked(obs), *rest

    def marked(self, obs):
        return np.array([obs[0], 1 / self.episode], np.float32)


def vector_walk(options):
    return hosted_task("walk", Walk("vector"), lambda seed: Walk("vector"))


def image_walk(options):
    return hosted_task("walk", Walk("image"), lambda seed: Walk("image"))


def forgetful_walk(options):
    return hosted_task("walk", ForgetfulWalk("vector"), lambda seed: ForgetfulWalk("vector"))


SMALL = {
    "steps": 300, "period": 100, "seeds": 2, "learning_starts": 60, "target_period": 40, "buffer_size": 50,
    "hidden": (16,), "batch_size": 8, "update_every": 1,
}  # fmt: skip
KINDS = {
    "vector": [("iq", {"update_every": 4, "n_step": 3}), ("dqn", {"measure_every": 10}), ("rainbow", {})],
    "image": [("rainbow-iq-te", {"update_every": 4, "contexts": 3})],
}
CASES = [(kind, method, settings) for kind, cases in KINDS.items() for method, settings in cases]


def both(kind, method, settings):
    inside = task_of(kind)
    network = {} if kind == "vector" else {"activation": "relu", "own_layers": 1}
    run = resolve(f"tests.training.test_hosted:{kind}_walk", method, **(SMALL | network | settings))
    agent = build_agent(run, inside)
    outside = hosted_task("walk", Walk(kind), lambda seed: Walk(kind))
    return compile_driver(Driver(run, inside, agent)), compile_driver(HostedDriver(run, outside, agent))


@pytest.mark.parametrize(("kind", "method", "settings"), CASES)
def test_it_makes_the_steps_that_the_compiled_driver_makes(kind, method, settings):
    inside, outside = both(kind, method, settings)
    states = [inside.init(), outside.init()]
    for stop in (100, 200):
        (states[0], period), (states[1], hosted) = (
            program.advance(state, np.int32(stop)) for program, state in zip((inside, outside), states, strict=True)
        )
        np.testing.assert_array_equal(period.episodes, hosted.episodes)
        np.testing.assert_allclose(period.returns, hosted.returns, rtol=1e-5)
        np.testing.assert_allclose(period.occupancy, hosted.occupancy, rtol=1e-5)
        np.testing.assert_allclose(period.losses.value, hosted.losses.value, rtol=1e-2, atol=1e-3)
        if stop == 100:
            for x, y in zip(*(jax.tree.leaves(state.agent.params) for state in states), strict=True):
                np.testing.assert_allclose(x, y, atol=5e-3)
    # Two programs round differently, and learning amplifies that; another action would make another episode.
    np.testing.assert_array_equal(states[0].env.obs, states[1].env.obs)


@pytest.mark.parametrize(("kind", "method"), [("vector", "iq"), ("image", "iq-re")])
def test_it_goes_on_bit_for_bit(kind, method, tmp_path):
    """Stopped in the middle of episodes, in a period that ends neither with a sync nor with an update."""
    name, settings = f"tests.training.test_hosted:{kind}_walk", SMALL | {"period": 50}
    whole = iqrl.train(name, method, **settings)
    iqrl.train(name, method, **(settings | {"steps": 150, "epsilon_decay": 30}), out=tmp_path / "run")
    resumed = iqrl.resume(tmp_path / "run", steps=300)
    assert whole.metrics.equals(resumed.metrics, null_equal=True)
    for x, y in zip(jax.tree.leaves(whole.agent_state), jax.tree.leaves(resumed.agent_state), strict=True):
        np.testing.assert_array_equal(x, y)


def test_an_environment_that_cannot_be_brought_back_is_said_and_its_episode_begins_anew(tmp_path):
    name = "tests.training.test_hosted:forgetful_walk"
    iqrl.train(name, "dqn", **(SMALL | {"steps": 130, "period": 50}), out=tmp_path / "run")
    with pytest.warns(UserWarning, match="cannot be brought back to where it was; the episode of seed"):
        resumed = iqrl.resume(tmp_path / "run", steps=200)
    # What is told of 130 to 150 is of these steps alone.
    assert resumed.steps.tolist() == [50, 100, 130, 150, 200]
    assert resumed.metrics["occupancy"].list.sum().to_list() == [1.0] * 10


def test_it_is_saved_in_the_middle_of_a_period_and_goes_on_bit_for_bit(tmp_path, monkeypatch):
    """A period may take an hour; what a killed process loses is no more than what passes between two saves."""
    name, settings = "tests.training.test_hosted:vector_walk", SMALL | {"period": 300}
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    whole = iqrl.train(name, "iq", **settings)  # where nothing is saved nothing is waited for
    monkeypatch.setattr(training, "SAVING_SHARE", np.inf)
    saved, save = [], RunStore.save

    def killed_at_the_third(self, state, *given):
        save(self, state, *given)
        saved.append(int(state.step))
        if len(saved) == 3:
            raise Killed

    monkeypatch.setattr(RunStore, "save", killed_at_the_third)
    with pytest.raises(Killed):
        iqrl.train(name, "iq", **settings, out=tmp_path / "run")
    assert 0 < saved[-1] < 300
    monkeypatch.setattr(RunStore, "save", save)
    resumed = iqrl.resume(tmp_path / "run")
    assert whole.metrics.equals(resumed.metrics, null_equal=True)
    for x, y in zip(jax.tree.leaves(whole.agent_state), jax.tree.leaves(resumed.agent_state), strict=True):
        np.testing.assert_array_equal(x, y)


class Killed(Exception):
    pass


def test_an_episode_that_begins_anew_has_no_score(tmp_path):
    name = "tests.training.test_hosted:forgetful_walk"
    iqrl.train(name, "dqn", **(SMALL | {"steps": 130, "period": 50}), out=tmp_path / "run")
    store = RunStore.open(tmp_path / "run")
    driver = training.driver_of(store.run)
    saved = store.load(jax.eval_shape(driver.init))
    assert (np.asarray(saved.state.env.length) > 0).any()
    with pytest.warns(UserWarning, match="begins anew"):
        state = compile_driver(driver).restore(saved.state, saved.outside)
    np.testing.assert_array_equal(state.env.length, 0)
    np.testing.assert_array_equal(state.env.episode_return, 0.0)
    np.testing.assert_array_equal(state.env.obs, state.env.first)
