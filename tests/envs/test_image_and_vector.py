"""Observations that are images and a vector: the convolutions see the image, the layers after them both."""

from collections import deque
from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple
from records import step as transition
from untrained_runs import untrained

import iqrl
import iqrl.model
from iqrl.core.encoders import Image, beside_vector, convolutional, picture
from iqrl.core.replay.frames import frame_replay
from iqrl.core.replay.sampling import uniform
from iqrl.envs.registry import make_task
from iqrl.envs.spaces import encode_observation, in_known_spaces
from iqrl.errors import BadInput
from iqrl.methods.base import encoder_before_layers
from iqrl.methods.registry import build_agent

SIDE = 6


class Signs(gymnasium.Env):
    """A light in the left or right half of a picture, and a switch. The right action is the side of the light, or the
    other one where the switch is on: neither of the two says anything alone."""

    def __init__(self):
        self.observation_space = Dict(camera=Box(0, 255, (SIDE, SIDE), np.uint8), switch=Box(-1, 1, (1,)))
        self.action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.show(), {}

    def show(self):
        self.light, self.switch = self.np_random.integers(2, size=2)
        row, column = self.np_random.integers((SIDE, SIDE // 2))
        camera = np.zeros((SIDE, SIDE), np.uint8)
        camera[row, self.light * SIDE // 2 + column] = 255
        return {"camera": camera, "switch": np.float32([2 * self.switch - 1])}

    def step(self, action):
        reward = float(action == self.light ^ self.switch)
        self.steps += 1
        return self.show(), reward, self.steps == 5, False, {}


# Spaces


def shown(space, obs):
    class Once(gymnasium.Env):
        observation_space, action_space = space, Discrete(2)
        reset = lambda self, *, seed=None, options=None: (obs, {})

    return in_known_spaces("once", Once())


def test_images_come_first_and_the_other_parts_follow():
    grey, colours = np.full((5, 6), 7, np.uint8), np.arange(90, dtype=np.uint8).reshape(3, 5, 6)
    space = Dict(a=Discrete(3), b=Box(0, 255, (3, 5, 6), np.uint8), c=Tuple((Box(0, 255, (5, 6), np.uint8), Box(0, 9))))
    env = shown(space, {"a": 1, "b": colours, "c": (grey, np.float32([0.1]))})
    seen, _ = env.reset(seed=0)
    assert env.image == Image(5, 6, 4, vector=4)
    assert seen.dtype == np.float32
    pixels = seen[: env.image.frame].reshape(5, 6, 4)
    np.testing.assert_array_equal(pixels, np.concatenate([np.moveaxis(colours, 0, -1), grey[..., None]], axis=-1))
    np.testing.assert_array_equal(seen[env.image.frame :], np.float32([0, 1, 0, 0.1]))
    assert env.observation_space.contains(seen)


def test_images_alone_in_a_dict_are_an_image_of_bytes():
    env = shown(Dict(a=Box(0, 1, (4, 4, 2), np.uint8), b=Box(0, 1, (4, 4), np.uint8)), None)
    assert env.observation_space == Box(0, 1, (4, 4, 3), np.uint8)


def test_a_table_of_bytes_too_small_for_convolutions_is_part_of_the_vector():
    assert shown(Dict(a=Box(0, 9, (2, 8), np.uint8), b=Box(0, 1, (1,))), None).observation_space.shape == (17,)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"a": Box(0, 255, (4, 4), np.uint8), "b": Box(0, 255, (8, 8), np.uint8)}, "images of several sizes"),
        ({"a": Box(0, 255, (4, 4), np.uint8), "b": Box(0, 1, (4, 4), np.uint8)}, "images of several sizes or highest"),
        ({"a": Box(0, 1, (40, 40, 3))}, r"images of float32; they must be bytes \(uint8\)"),
        ({"a": Box(0, 255, (4, 4), np.uint8), "b": Box(0, 1, (5000,))}, "flatten to 5,000 numbers"),
        ({"a": Box(0, 255, (4, 4), np.uint8), "b": Text(3)}, "cannot be flattened to a vector"),
        ({"a": Text(3)}, "of the kind Dict, which cannot be flattened to a vector"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(parts, words):
    with pytest.raises(BadInput, match=words):
        shown(Dict(parts), None)


class Wrong(Signs):
    def __init__(self, **parts):
        super().__init__()
        self.parts = parts

    def show(self):
        return super().show() | self.parts


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"camera": np.zeros((SIDE, SIDE))}, "an image of float64 and shape"),
        ({"camera": np.zeros((9, 4), np.uint8)}, r"shape \(9, 4\), but its space has \(6, 6\)"),
        ({"switch": np.float32([np.nan])}, "an observation that is not finite"),
        ({"switch": np.float32([0, 0])}, r"an observation of shape \(38,\), but its space has \(37,\)"),
    ],
)
def test_observations_that_are_not_of_their_space_are_refused(parts, words):
    with pytest.raises(BadInput, match=words):
        iqrl.resolve(partial(Wrong, **parts), "dqn")


def test_methods_for_vectors_get_one_where_it_is_asked_for():
    with pytest.raises(BadInput, match=r"iq is for states in a vector.* or make a vector of them by flatten_obs"):
        iqrl.train(Signs, "iq")
    flat = make_task(iqrl.resolve(Signs, "iq", flatten_observations=True))
    assert (flat.image, flat.obs_size) == (None, 37)
    with pytest.raises(BadInput, match="flatten_observations is a setting of Gymnasium's environments"):
        iqrl.resolve("CartPole-v1", "dqn", flatten_observations=True)


# Networks


def test_convolutions_see_the_pixels_and_the_vector_goes_past_them():
    image = Image(5, 5, 2, stack=3, vector=2)
    frames = np.random.default_rng(0).integers(0, 256, (3, 50)).astype(np.float32)
    vector = np.float32([[1, 2], [3, 4], [5, 6]])
    obs = jnp.asarray(np.concatenate([frames, vector], axis=1).ravel())
    alone = image._replace(vector=0)
    np.testing.assert_array_equal(picture(obs, image), picture(jnp.asarray(frames.ravel()), alone))
    encoder, without = (convolutional(each, ((3, 1, 4),)) for each in (image, alone))
    params = encoder.init(jax.random.key(0))
    found = encoder.apply(params, obs)
    assert found.size == encoder.size == without.size + 6
    np.testing.assert_array_equal(found[: without.size], without.apply(params, jnp.asarray(frames.ravel())))
    np.testing.assert_array_equal(found[without.size :], [1, 2, 3, 4, 5, 6])
    assert beside_vector(without, alone) is without


METHODS = ("dqn", "local-q", "stream-q", "rainbow-iq-re", "iq-re", "iq-te", "medqn-u", "srnn")


@pytest.mark.parametrize("method", METHODS)
def test_q_values_depend_on_image_and_vector(method):
    run = iqrl.resolve(Signs, method, steps=10_000)
    agent = build_agent(run, make_task(run))
    params = agent.network.init(jax.random.key(0))
    drawn = lambda w: jnp.asarray(np.random.default_rng(0).normal(size=w.shape), jnp.float32)  # some heads start at 0
    seen = np.zeros((3, 37), np.float32)
    seen[1, 8], seen[2, -1] = 255, 1
    dark, light, switch = jax.vmap(lambda obs: agent.network.apply(jax.tree.map(drawn, params), obs).q)(seen)
    assert not np.array_equal(dark, light)
    assert not np.array_equal(dark, switch)


class FirstPixel:
    """A module of the user's own, which gives one pixel."""

    init = staticmethod(lambda key, obs: {"w": jnp.ones(1)})
    apply = staticmethod(lambda params, obs: params["w"] * obs[0, 0])


def test_a_module_of_ones_own_sees_the_image_and_the_vector_goes_past_it():
    run = iqrl.resolve(Signs, "dqn", network=FirstPixel())
    encoder = encoder_before_layers(run, make_task(run))
    seen = np.full(37, 51, np.float32)
    seen[-1] = 0.5
    np.testing.assert_allclose(encoder.apply({"w": jnp.ones(1)}, jnp.asarray(seen)), [0.2, 0.5])


# Replay


@pytest.mark.parametrize(("stack", "n_envs"), [(1, 1), (3, 2)])
def test_the_replay_gives_back_every_number(stack, n_envs):
    """The vector is stored as bytes, and comes back as it was; before the episode all is 0."""
    random, capacity = np.random.default_rng(0), 8
    replay = frame_replay(capacity, 4, stack, uniform(64), n_envs=n_envs, vector=2)
    kept, add = replay.init(), jax.jit(replay.add)
    assert kept.frames.shape[1] == 4 + 2 * 4
    draw = lambda: np.concatenate([random.integers(0, 256, 4), random.normal(size=2) * 1e-9]).astype(np.float32)
    episodes = [deque([np.zeros(6, np.float32)] * (stack - 1) + [draw()], maxlen=stack) for _ in range(n_envs)]
    before, after = {}, {}
    for t in range(12):
        frames = episodes[t % n_envs]
        before[t] = np.concatenate(frames)
        frames.append(draw())
        after[t] = np.concatenate(frames)
        given = transition(jnp.asarray(before[t]), jnp.asarray(after[t]), r_t=float(t))
        kept = add(kept, jax.tree.map(jnp.asarray, given), jnp.int32(t))
    batch = replay.sample(kept, jnp.int32(11), jnp.asarray(random.random(replay.num_uniforms), jnp.float32))
    steps = batch.transitions
    assert set(np.asarray(steps.r_t)) == set(range(4, 12))
    for i, t in enumerate(np.asarray(steps.r_t).astype(int)):
        np.testing.assert_array_equal(steps.obs_tm1[:, i], before[t])
        np.testing.assert_array_equal(steps.obs_t[:, i], after[t])


# Models


@pytest.fixture(scope="module")
def model():
    settings = {"hidden": (32,), "buffer_size": 1000, "learning_starts": 100, "update_every": 2, "learning_rate": 2e-3}
    settings |= {"target_period": 50, "gamma": 0.1, "epsilon_decay": 300, "period": 100}
    return iqrl.DQN(Signs, n_envs=2, **settings).learn(2000)


def observations(count):
    env = Signs()
    return [env.reset(seed=0)[0], *(env.step(0)[0] for _ in range(count - 1))]


def test_what_needs_both_parts_is_learned(model):
    """By one of them alone half of the actions are right."""
    assert model.evaluate(episodes=10).mean() > 4.5


def test_a_model_acts_on_the_observations_of_the_environment(model, tmp_path):
    seen = observations(20)
    actions, _ = model.predict(seen)
    light = [int(np.argmax(obs["camera"].sum(0)) >= SIDE // 2) for obs in seen]
    right = [side ^ int(obs["switch"][0] > 0) for side, obs in zip(light, seen, strict=True)]
    assert np.mean(actions == np.array(right)) > 0.8
    assert model.predict(seen[3])[0] == actions[3]
    loaded = iqrl.load(model.save(tmp_path / "agent.iqrl"))
    np.testing.assert_array_equal(loaded.predict(seen)[0], actions)
    for wrong in ({"camera": seen[0]["camera"]}, {"camera": np.zeros(3), "switch": [0.0]}, 3):
        with pytest.raises(BadInput, match="the observation is none of Dict") as caught:
            model.predict(wrong)
        assert "functools" not in str(caught.value)  # no code of the user's


def test_learning_goes_on_exactly(model, tmp_path):
    loaded = iqrl.load(model.save(tmp_path / "agent.iqrl", learning=True), env=Signs)
    weights = [jax.tree.leaves(each.learn(100).result.agent_state) for each in (model, loaded)]
    assert any(leaf.dtype == np.uint8 and leaf.shape[-1] == SIDE * SIDE + 4 for leaf in weights[0])  # of the replay
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_file_of_numpy_takes_the_observations_of_the_environment(model, tmp_path):
    exported = model.export(tmp_path / "agent.py")
    functions = {}
    exec(exported.path.read_text(), functions)
    seen = observations(20)
    np.testing.assert_array_equal(functions["predict"](seen), model.predict(seen)[0])


def test_stacked_frames_have_the_vectors_of_their_time():
    run = iqrl.resolve(Signs, "dqn", frame_stack=3)
    task = make_task(run)
    assert task.image == Image(SIDE, SIDE, 1, stack=3, vector=1)
    env, seen = task.external(0), observations(2)
    np.testing.assert_array_equal(env.reset(seed=0)[0], encode_observation(task.spaces[0], seen[:1], task.image))
    second = env.step(0)[0]
    np.testing.assert_array_equal(second, encode_observation(task.spaces[0], tuple(seen), task.image))
    np.testing.assert_array_equal(second[:, -1], [0, seen[0]["switch"][0], seen[1]["switch"][0]])
    result = untrained.__wrapped__("dqn", task, seeds=1)
    acting = iqrl.model._empty(result.run)
    acting._result = result
    assert acting.predict(tuple(seen))[0] in (0, 1)
    assert acting.predict([tuple(seen), tuple(seen[:1])])[0].shape == (2,)
    with pytest.raises(BadInput, match="frame_stack is 3, so it must be a tuple of the last 3"):
        acting.predict(seen[0])
