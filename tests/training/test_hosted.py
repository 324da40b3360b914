"""The hosted driver against the compiled one: the same task inside the program and outside it."""

import itertools

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import iqrl
from iqrl.core.encoders import MINATAR, Image
from iqrl.envs.base import Task
from iqrl.envs.external import task_of_environment
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.training import compilation
from iqrl.training import loop as training
from iqrl.training.compilation import compile_driver
from iqrl.training.compiled import Driver
from iqrl.training.hosted import HostedDriver, HostedProgram
from iqrl.training.run_directory import RunStore

HERE = __name__
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
    return Task(
        name="walk",
        actions=2,
        low=(0.0,) * size,
        high=(1.0,) * size,
        time_limit=LIMIT,
        reset=lambda _: jnp.int32(2),
        step=walk,
        observe=shown,
        num_reset_uniforms=0,
        **pictured,
    )


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
    return task_of_environment("walk", Walk("vector"), lambda seed: Walk("vector"))


def image_walk(options):
    return task_of_environment("walk", Walk("image"), lambda seed: Walk("image"))


def forgetful_walk(options):
    return task_of_environment("walk", ForgetfulWalk("vector"), lambda seed: ForgetfulWalk("vector"))


SMALL = {
    "steps": 300, "period": 100, "seeds": 2, "learning_starts": 60, "target_period": 40, "buffer_size": 50,
    "hidden": (16,), "batch_size": 8, "update_every": 1,
}  # fmt: skip
KINDS = {
    "vector": [("iq", {"update_every": 4, "n_step": 3}), ("dqn", {"measure_every": 10, "noisy": True})],
    "image": [("iq-te", {"update_every": 4, "contexts": 3})],
}
CASES = [(kind, method, settings) for kind, cases in KINDS.items() for method, settings in cases]


def drivers(kind, method, settings):
    inside = task_of(kind)
    network = {} if kind == "vector" else {"activation": "relu", "own_layers": 1}
    run = resolve(f"{HERE}:{kind}_walk", method, **(SMALL | network | settings))
    agent = build_agent(run, inside)
    outside = task_of_environment("walk", Walk(kind), lambda seed: Walk(kind))
    return Driver(run, inside, agent), HostedDriver(run, outside, agent)


def hosted(method, settings):
    """The program, whose states can be taken apart and put together."""
    driver = drivers("vector", method, settings)[1]
    return HostedProgram(driver, compilation.compile_parts(driver))


@pytest.mark.parametrize(("kind", "method", "settings"), CASES)
def test_it_makes_the_steps_that_the_compiled_driver_makes(kind, method, settings):
    inside, outside = map(compile_driver, drivers(kind, method, settings))
    states = [inside.init(), outside.init()]
    for stop in (100, 200):
        (states[0], period), (states[1], hosted) = (
            program.advance(state, np.int32(stop)) for program, state in zip((inside, outside), states, strict=True)
        )
        np.testing.assert_array_equal(period.episodes, hosted.episodes)
        np.testing.assert_allclose(period.returns, hosted.returns, rtol=1e-5)
        for name, tolerance in (("occupancy", 1e-5), ("value_loss", 1e-2)):
            np.testing.assert_allclose(period.metrics[name], hosted.metrics[name], rtol=tolerance, atol=tolerance / 10)
        if stop == 100:
            whole = (inside.whole(states[0]), outside.whole(states[1]))
            for x, y in zip(*(jax.tree.leaves(state.agent.params) for state in whole), strict=True):
                np.testing.assert_allclose(x, y, atol=5e-3)
    # Two programs round differently, and learning amplifies that; another action would make another episode.
    np.testing.assert_array_equal(inside.whole(states[0]).env.inputs.obs, outside.whole(states[1]).env.inputs.obs)


def test_a_run_on_images_goes_on_bit_for_bit(tmp_path):
    """Stopped in the middle of episodes, in a period that ends neither with a sync nor with an update."""
    name, method, settings = f"{HERE}:image_walk", "dqn", SMALL | {"steps": 200, "period": 50, "epsilon_decay": 30}
    whole = iqrl.train(name, method, **settings)
    iqrl.train(name, method, **(settings | {"steps": 150}), out=tmp_path / "run")
    resumed = iqrl.resume(tmp_path / "run", steps=200)
    assert whole.metrics.equals(resumed.metrics, null_equal=True)
    for x, y in zip(jax.tree.leaves(whole.agent_state), jax.tree.leaves(resumed.agent_state), strict=True):
        np.testing.assert_array_equal(x, y)


def test_an_environment_that_cannot_be_brought_back_is_said_and_its_episode_begins_anew(tmp_path):
    name = f"{HERE}:forgetful_walk"
    iqrl.train(name, "dqn", **(SMALL | {"steps": 130, "period": 50}), out=tmp_path / "run")
    with pytest.warns(UserWarning, match="cannot be brought back to where it was; the episode of seed"):
        resumed = iqrl.resume(tmp_path / "run", steps=200)
    # What is told of 130 to 150 is of these steps alone.
    assert resumed.steps.tolist() == [50, 100, 130, 150, 200]
    assert resumed.metrics["occupancy"].list.sum().to_list() == [1.0] * 10


def test_it_is_saved_in_the_middle_of_a_period_and_goes_on_bit_for_bit(tmp_path, monkeypatch):
    """A period may take an hour; what a killed process loses is no more than what passes between two saves."""
    name, settings = f"{HERE}:vector_walk", SMALL | {"period": 300}
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
    name = f"{HERE}:forgetful_walk"
    iqrl.train(name, "dqn", **(SMALL | {"steps": 130, "period": 50}), out=tmp_path / "run")
    store = RunStore.open(tmp_path / "run")
    driver = training.driver_of(store.run)
    saved = store.load(jax.eval_shape(driver.init))
    assert (np.asarray(saved.state.env.length) > 0).any()
    program = compile_driver(driver)
    with pytest.warns(UserWarning, match="begins anew"):
        held = program.restore(saved.state, saved.environments)
    state = program.whole(held)
    np.testing.assert_array_equal(state.env.length, 0)
    np.testing.assert_array_equal(state.env.inputs.score, 0.0)
    np.testing.assert_array_equal(state.env.inputs.obs, state.env.inputs.initial_obs)


def test_steps_of_a_period_are_counted_in_whole_numbers():
    """A period may have more steps than float32 can count one by one: sums of shares do not decide how many there were.

    2^24 steps are pretended to lie in the period so far; two more, with an update each, must not be lost.
    """
    outside = hosted("dqn", {"period": 10})
    held, _ = outside.advance(outside.init(), np.int32(100))
    pending = outside.whole(held).env.state
    assert pending.steps.dtype == jnp.int32
    np.testing.assert_array_equal(pending.steps, 0)
    held, nothing = outside.advance(held, np.int32(110), lambda: True)
    assert nothing is None
    paused = outside.whole(held)
    np.testing.assert_array_equal(paused.env.state.steps, 1)
    many = 2**24
    pending = paused.env.state
    occupancy = jax.tree.map(lambda total: jnp.full_like(total, many), pending.sums.steps)
    sums = pending.sums._replace(steps=occupancy, updates=jax.tree.map(jnp.zeros_like, pending.sums.updates))
    pretended = pending._replace(sums=sums, steps=pending.steps + many)
    held = outside.hold(paused._replace(env=paused.env._replace(state=pretended)))
    for stop in (102, 103):
        held, _ = outside.advance(held, np.int32(stop + 1), lambda: True)
        np.testing.assert_array_equal(outside.whole(held).env.state.steps, many + stop - 100)
    end, period = outside.advance(held, np.int32(104))
    np.testing.assert_allclose(period.metrics["occupancy"], many / (many + 4), rtol=1e-6)
    np.testing.assert_array_equal(outside.whole(end).env.state.steps, 0)


def test_losses_are_means_over_the_updates_of_the_period_however_large_its_sums_are():
    """The number of updates follows from the counted steps: 4 of the period's 10 steps lie before learning starts."""
    settings = {"learning_starts": 64, "period": 10, "target_period": 1000}
    outside = hosted("dqn", settings)
    _, period = outside.advance(outside.advance(outside.init(), np.int32(60))[0], np.int32(70))
    outside = hosted("dqn", settings)
    state = outside.whole(outside.advance(outside.init(), np.int32(60))[0])
    pending = state.env.state
    crowded = pending.sums._replace(steps=jax.tree.map(lambda total: total + 2.0**25, pending.sums.steps))
    state = state._replace(env=state.env._replace(state=pending._replace(sums=crowded)))
    _, of_crowded = outside.advance(outside.hold(state), np.int32(70))
    assert (np.asarray(period.metrics["value_loss"]) > 0).all()
    np.testing.assert_array_equal(of_crowded.metrics["value_loss"], period.metrics["value_loss"])
