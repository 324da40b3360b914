"""Environments of Gymnasium as tasks: what is taken, and what is refused in one sentence."""

import dataclasses
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from untrained_runs import untrained

import iqrl
from iqrl.core.encoders import Image
from iqrl.envs.episodes import Environments
from iqrl.envs.external import make_environment, task_of_environment
from iqrl.envs.random_policy import random_inputs
from iqrl.envs.registry import make_task
from iqrl.errors import PackagesMissing


class Line(gymnasium.Env):
    """A number that actions move up and down; after ten steps it is over."""

    observation_space = Box(-10.0, 10.0, (2,), np.float32)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = int(self.np_random.integers(-2, 3)), 0
        return self._seen(), {}

    def step(self, action):
        self.place, self.steps = self.place + (1 if action else -1), self.steps + 1
        return self._seen(), float(self.place), self.steps == 10, False, {}

    def _seen(self):
        return np.array([self.place, self.steps], np.float32)


class Broken(Line):
    """After four steps what is seen is no number."""

    def _seen(self):
        return np.array([self.place, np.nan if self.steps == 4 else 0.0], np.float32)


class Continuous(Line):
    action_space = Box(-1.0, 1.0, (1,), np.float32)


class FloatPictures(Line):
    observation_space = Box(0.0, 1.0, (40, 40, 3), np.float32)


class Failing(Line):
    def __init__(self):
        raise OSError("no such device\nat all")


class Raising(Line):
    """Fails in the second episode."""

    def reset(self, *, seed=None, options=None):
        self.episode = getattr(self, "episode", 0) + 1
        return super().reset(seed=seed)

    def step(self, action):
        if self.episode == 2 and self.steps == 3:
            raise OSError("the cable came out")
        return super().step(action)


class Unrewarding(Line):
    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, np.nan if self.steps == 7 else reward, *rest


class Growing(Line):
    """Shows one number more than at first after six steps."""

    def _seen(self):
        return np.zeros(3 if self.steps > 5 else 2, np.float32)


class OtherShape(Line):
    observation_space = Box(-10.0, 10.0, (3,), np.float32)


class OldReset(Line):
    def reset(self):
        return super().reset()


class OldResetResult(Line):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class OldStep(Line):
    def step(self, action):
        obs, reward, terminated, _, info = super().step(action)
        return obs, reward, terminated, info


class FailingStep(Line):
    def step(self, action):
        raise OSError("no hand")


class NotANumber(Line):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.full(2, np.nan, np.float32), {}


class Grey(Line):
    """Pictures without channels: how far the episode is."""

    observation_space = Box(0, 255, (12, 12), np.uint8)

    def _seen(self):
        return np.full((12, 12), 10 * self.steps + 1, np.uint8)


class FloatGrey(Grey):
    def _seen(self):
        return super()._seen() / 255


class NoEnvironment:
    def reset(self):
        return np.zeros(2)


def a_line():
    return Line()


def a_line_of(length):
    return gymnasium.wrappers.TimeLimit(Line(), 3)


def a_number():
    return 3


def a_failure():
    raise OSError("no such line")


HERE = __name__


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (f"{HERE}:Continuous", "has actions Box(-1.0, 1.0, (1,), float32); only discrete actions can be learned"),
        (f"{HERE}:FloatPictures", "has images of float32; they must be bytes (uint8)."),
        (f"{HERE}:Failing", "no such device"),
        (f"{HERE}:OtherShape", "reset gives an observation of shape (2,), but its space has (3,)."),
        (f"{HERE}:OldReset", "keyword argument 'seed'; Gymnasium calls reset(seed=…, options=…)."),
        (f"{HERE}:OldResetResult", "reset must return (observation, info)."),
        (f"{HERE}:OldStep", "step must return (observation, reward, terminated, truncated, info)."),
        (f"{HERE}:FailingStep", "step(0) failed with OSError at test_external.py"),
        (f"{HERE}:NotANumber", "reset gives an observation that is not finite."),
        (f"{HERE}:FloatGrey", "reset gives an observation of float64, but its space has bytes (uint8)."),
        (f"{HERE}:NoEnvironment", "makes NoEnvironment, not an iqrl.Task or a gymnasium.Env."),
        (f"{HERE}:a_number", "makes int, not an iqrl.Task or a gymnasium.Env."),
        (f"{HERE}:a_failure", "cannot be made: OSError at test_external.py"),
        (f"{HERE}:Lin-v0", "unknown environment 'Lin-v0'"),
        ("LunarLaner-v3", "did you mean LunarLander-v3?"),
        ("Pendulum-v1", "only discrete actions can be learned by Q values"),
        ("ALE/Pnog-v5", "did you mean"),
        ("Pong-v5", "did you mean ALE/Pong-v5?"),
        ("MinAtar/Brekout-v1", "did you mean MinAtar/Breakout-v1?"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_a_sentence(tmp_path, task, words):
    with pytest.raises(iqrl.BadInput) as refused:
        iqrl.train(task, "dqn", steps=100, out=tmp_path / "run")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "task", "words"),
    [
        ("dsom", "MinAtar/Breakout-v1", "dsom is for states in a vector, and MinAtar/Breakout-v1 has images"),
        ("tcnn", "MinAtar/Breakout-v1", "tcnn is for states in a vector"),
        ("iq-re", "CartPole-v1", "iq-re is for images, and CartPole-v1 has none; for states in a vector take iq."),
        ("iq-te", f"{HERE}:Line", "iq-te is for images"),
        ("iq-initial-states", f"{HERE}:Line", "draws 10,000 initial states beforehand"),
    ],
)
def test_methods_say_what_they_are_not_for(method, task, words):
    with pytest.raises(iqrl.BadInput, match=words):
        iqrl.train(task, method, steps=10_000)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Broken, "gave an observation that is not finite, in episode 1 of seed 0 after 4 steps"),
        (Growing, "gave an observation of shape (3,), but its space has (2,), in episode 1 of seed 0 after 6 steps"),
        (Unrewarding, "gave a reward that is not finite, in episode 1 of seed 0 after 7 steps"),
        (Raising, "the cable came out, in episode 2 of seed 0 after 3 steps"),
    ],
)
def test_an_environment_that_fails_is_named_with_where(kind, words):
    environments = Environments(task_of_environment("line", kind(), lambda seed: kind()), seed=0, seeds=1)
    environments.begin()
    with pytest.raises(iqrl.RunFailed) as failed:
        all(environments.step(np.zeros(1, int)) for _ in range(20))
    assert words in str(failed.value)


def test_an_environment_that_fails_ends_the_run(tmp_path):
    with pytest.raises(iqrl.RunFailed) as failed:
        iqrl.train(f"{HERE}:Raising", "dqn", steps=2000, seeds=1, out=tmp_path / "run")
    assert "the cable came out, in episode 2 of seed 0 after 3 steps" in str(failed.value)
    assert str(failed.value).endswith("; nothing was saved.")


def test_an_environment_that_fails_in_evaluation_is_named():
    result = untrained("dqn", task_of_environment("line", Line(), lambda seed: Line()))
    broken = dataclasses.replace(result, task=task_of_environment("broken", Line(), lambda seed: FailingStep()))
    with pytest.raises(iqrl.RunFailed, match="an episode of broken that began with seed 4 failed with OSError"):
        iqrl.evaluate(broken, episodes=1, seed=4)


@pytest.mark.parametrize(
    ("task", "setting", "words"),
    [
        (f"{HERE}:Line", {"sticky": 0.1}, "sticky is a setting of games, MinAtar/… and ALE/…; it does not apply to"),
        (f"{HERE}:Line", {"frame_stack": 4}, "frame_stack is for images, and .*:Line has none"),
        ("CartPole-v1", {"frame_stack": 4}, "frame_stack is a setting of Gymnasium's environments"),
        ("ALE/Pong-v5", {"frame_stack": 2}, "frame_stack is a setting of Gymnasium's environments"),
        ("ALE/Pong-v5", {"torques": 3}, "torques is a setting of Pendulum-v0; it does not apply to ALE/Pong-v5"),
        ("MountainCar-v0", {"shaping_scale": 2.0}, "shaping_scale is a setting of MountainCar; it does not apply"),
    ],
)
def test_settings_of_other_tasks_are_refused(task, setting, words):
    with pytest.raises(iqrl.BadInput, match=words):
        iqrl.resolve(task, "dqn", **setting)


def test_a_time_limit_beyond_the_games_own_is_refused():
    run = iqrl.resolve("ALE/Pong-v5", "dqn", max_episode_steps=27_001)
    with pytest.raises(iqrl.BadInput, match="max_episode_steps is 27001; ALE/Pong-v5 ends after 27000 steps"):
        make_task(run)


def test_an_environment_can_be_named_in_several_ways(monkeypatch):
    named = lambda task: iqrl.resolve(task, "dqn").task
    assert named(Line) == f"{HERE}:Line"
    assert named(a_line) == f"{HERE}:a_line"
    assert named("gymnasium:CartPole-v1") == "gymnasium:CartPole-v1"
    assert make_task(iqrl.resolve(f"{HERE}:a_line_of", "dqn")).actions == 2
    assert named(type("Inner", (Line,), {"__qualname__": "f.<locals>.Inner"})).startswith("object:f_locals_Inner_")
    with pytest.raises(iqrl.BadInput, match="or classes and functions of your own, not int objects"):
        iqrl.resolve(3, "dqn")
    monkeypatch.setattr(sys.modules["__main__"], "MyLine", Line, raising=False)
    assert make_task(iqrl.resolve("__main__:MyLine", "dqn")).external(0).unwrapped.reset(seed=0)[0].shape == (2,)


def test_grey_pictures_are_seen_in_stacks():
    task = make_task(iqrl.resolve(f"{HERE}:Grey", "dqn", frame_stack=3))
    result = untrained("dqn", task, seeds=1, buffer_size=50, hidden=(8,))
    assert result.task.image == Image(12, 12, 1, 3, 255.0)
    env = result.task.external(0)
    env.reset(seed=0)
    seen = env.step(1)[0]
    assert [int(frame[0, 0]) for frame in seen] == [0, 1, 11]
    agent = result.agents[0]
    several = np.stack([seen, np.zeros_like(seen)])
    np.testing.assert_allclose(agent.q_values(several)[0], agent.q_values(seen[..., None]), rtol=1e-5)
    with pytest.raises(iqrl.BadInput, match=r"of shape \(3, 12, 12, 1\) is expected, .* got shape \(12, 12, 3\)"):
        agent.predict(np.moveaxis(seen, 0, 2))
    assert iqrl.evaluate(result, episodes=1).shape == (1, 1)


def test_an_environment_of_ones_own_trains_can_be_measured_and_is_evaluated():
    settings = {"steps": 300, "seeds": 2, "learning_starts": 100, "period": 100}
    result = iqrl.train(f"{HERE}:Line", "dqn", **settings)
    assert result.returns.shape == (2, 3)
    assert np.isfinite(result.returns).any()
    assert iqrl.evaluate(result, episodes=2).shape == (2, 2)
    measured = iqrl.train(f"{HERE}:Line", "dqn", **settings, measure_every=10, measure_recent=300)
    assert measured.metrics["aei"].is_not_null().any()
    np.testing.assert_array_equal(measured.returns, result.returns)


def test_inputs_of_a_hosted_task_are_those_of_whole_episodes():
    task = task_of_environment("line", Line(), lambda seed: Line())
    found = random_inputs(task, 500, seed=3)
    obs, first = np.asarray(found.obs), np.asarray(found.initial_obs)
    assert obs.shape == (500, 2)
    assert set(obs[:, 1]) == set(range(10))
    assert set(first[:, 0]) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert (first[:, 1] == 0).all()
    np.testing.assert_array_equal(obs, np.asarray(random_inputs(task, 500, seed=3).obs))


def test_a_package_that_an_environment_needs_is_named():
    def make():
        raise gymnasium.error.DependencyNotInstalled('Box2D is not installed: pip install "gymnasium[box2d]"')

    with pytest.raises(PackagesMissing, match=r"Lander cannot be made: .*Box2D is not installed"):
        make_environment("Lander", make)
