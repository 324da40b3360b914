"""Models: learn, predict, evaluate, save and load."""

import subprocess
import sys

import gymnasium
import jax
import numpy as np
import pytest

import iqrl
from iqrl.errors import BadInput
from iqrl.files import Damaged
from iqrl.model import MODELS, class_name

SMALL = {"hidden": (8,)}


class Corner(gymnasium.Env):
    """Two numbers; one of four actions is right."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.obs, self.steps = self._draw(), 0
        return self.obs, {}

    def _draw(self):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)

    def step(self, action):
        reward = float(action == 2 * (self.obs[0] > 0) + (self.obs[1] > 0))
        self.obs, self.steps = self._draw(), self.steps + 1
        return self.obs, reward, False, self.steps == 20, {}


@pytest.fixture(scope="module")
def model():
    return iqrl.LocalQ("CartPole-v1", seed=3, seeds=2, **SMALL).learn(1200)


def test_there_is_a_class_for_each_method():
    assert [class_name(method) for method in MODELS] == list(iqrl._MODELS)
    assert {getattr(iqrl, name).method for name in iqrl._MODELS} == set(iqrl.METHODS)
    assert set(dir(iqrl)) == set(iqrl.__all__)


def test_it_learns_as_train_does(model):
    result = iqrl.train("CartPole-v1", "local-q", steps=1200, seed=3, seeds=2, **SMALL)
    np.testing.assert_array_equal(model.result.returns, result.returns)
    assert model.num_timesteps == 1200


def test_learning_again_goes_on():
    """Two calls of half the steps are one call, but for what follows from the steps of the first."""
    settings = SMALL | {"period": 100, "epsilon_decay": 100}
    twice = iqrl.LocalQ("CartPole-v1", **settings).learn(400).learn(400)
    once = iqrl.LocalQ("CartPole-v1", **settings).learn(800)
    assert twice.metrics.equals(once.metrics)
    assert twice.num_timesteps == 800


def test_it_predicts_what_the_agent_of_the_first_seed_does(model):
    obs = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    actions, state = model.predict(obs, state="kept")
    np.testing.assert_array_equal(actions, model.agents[0].predict(obs))
    assert state == "kept"
    assert model.predict(obs[0])[0] == actions[0]
    with pytest.raises(BadInput, match=r"shape \(4,\) is expected, or \(n, 4\) for several; this is 'left'\."):
        model.predict("left")
    obs[2, 1] = np.inf
    with pytest.raises(BadInput, match=r"number 2 of the 4 in observation 3 is inf; each must be finite\."):
        model.predict(obs)


def test_a_callback_sees_each_period_and_stops():
    seen = []

    def callback(model, progress):
        seen.append((progress.step, len(model.result.steps)))
        return np.bool_(len(seen) < 3)  # as a comparison of arrays gives it

    model = iqrl.LocalQ("CartPole-v1", period=50, **SMALL).learn(1000, callback)
    assert seen == [(50, 1), (100, 2), (150, 3)]
    assert model.num_timesteps == 150
    assert model.learn(50).num_timesteps == 200


def test_what_was_learned_is_kept_when_a_callback_fails():
    def callback(model, progress):
        if progress.step == 100:
            raise OSError("the display is gone")

    model = iqrl.LocalQ("CartPole-v1", period=50, **SMALL)
    with pytest.raises(OSError, match="the display is gone"):
        model.learn(500, callback)
    assert model.num_timesteps == 100
    assert len(model.metrics) == 2


def test_a_saved_model_acts_the_same(model, tmp_path):
    loaded = iqrl.load(model.save(tmp_path / "agent.iqrl"))
    obs = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    assert isinstance(loaded, iqrl.LocalQ)
    np.testing.assert_array_equal(loaded.predict(obs)[0], model.predict(obs)[0])
    np.testing.assert_array_equal(loaded.agents[1].predict(obs), model.agents[1].predict(obs))
    assert loaded.metrics.equals(model.metrics)
    assert loaded.result.memory == model.result.memory  # of one that learns
    np.testing.assert_array_equal(loaded.evaluate(1), model.evaluate(1))
    with pytest.raises(BadInput, match="save it with learning=True"):
        loaded.learn(10)
    assert isinstance(iqrl.LocalQ.load(tmp_path / "agent.iqrl"), iqrl.LocalQ)
    with pytest.raises(BadInput, match="is a model of local-q; load it by iqrl"):
        iqrl.DQN.load(tmp_path / "agent.iqrl")


@pytest.mark.parametrize(("method", "settings"), [("LocalQ", {}), ("IQ", {"buffer_size": 50, "learning_starts": 100})])
def test_a_model_saved_whole_goes_on_learning_bit_for_bit(tmp_path, method, settings):
    settings = SMALL | settings | {"period": 100, "epsilon_decay": 100}
    model = getattr(iqrl, method)("CartPole-v1", **settings).learn(300)
    loaded = iqrl.load(model.save(tmp_path / "agent.iqrl", learning=True))
    assert loaded.learn(200).metrics.equals(model.learn(200).metrics)


def test_a_model_acts_where_its_environment_is_not(tmp_path, monkeypatch):
    model = iqrl.LocalQ(Corner, **SMALL).learn(400)
    path = model.save(tmp_path / "agent.iqrl")
    obs = [[0.5, 0.5], [-0.5, 0.2]]
    code = f"import iqrl; print(iqrl.load({str(path)!r}).predict({obs})[0].tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == str(model.predict(np.array(obs))[0].tolist()), done.stderr
    again = iqrl.load(path, env=Corner)
    np.testing.assert_array_equal(again.evaluate(2), model.evaluate(2))
    monkeypatch.setattr("iqrl.plugins._trusted", set())
    np.testing.assert_array_equal(iqrl.load(path).evaluate(2), model.evaluate(2))  # this installation made it
    monkeypatch.setattr("iqrl.plugins._trusted", set())
    monkeypatch.setattr("iqrl.plugins.source_of", lambda name: "edited")
    with pytest.raises(BadInput, match=r"test_model.py has changed since this was made.*--trust test_model"):
        iqrl.load(path).evaluate(2)


def test_without_its_environment_it_cannot_be_evaluated(tmp_path, monkeypatch):
    path = iqrl.LocalQ(Corner(), **SMALL).learn(100).save(tmp_path / "agent.iqrl")
    monkeypatch.setattr("iqrl.plugins._held", {})  # as in another process
    with pytest.raises(BadInput, match="was an object of the process that made it"):
        iqrl.load(path).evaluate(1)


def damage(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.99])
def test_a_damaged_file_is_refused(model, tmp_path, place):
    path = model.save(tmp_path / "agent.iqrl")
    data = path.read_bytes()
    path.write_bytes(damage(data, int(place * len(data))))
    with pytest.raises(BadInput, match=r"agent\.iqrl"):
        iqrl.load(path)


def test_truncated_foreign_and_future_files_are_refused(model, tmp_path, monkeypatch):
    path = model.save(tmp_path / "agent.iqrl")
    (tmp_path / "short.iqrl").write_bytes(path.read_bytes()[:-100])
    (tmp_path / "other.iqrl").write_text("hello")
    for name in ("short.iqrl", "other.iqrl"):
        with pytest.raises(Damaged, match=name):
            iqrl.load(tmp_path / name)
    monkeypatch.setattr("iqrl.training.model_file.FORMAT", 2)
    future = model.save(tmp_path / "future.iqrl")
    monkeypatch.undo()
    with pytest.raises(BadInput, match="written by a later version of iqrl"):
        iqrl.load(future)
    with pytest.raises(BadInput, match=r"there is no file .*gone\.iqrl"):
        iqrl.load(tmp_path / "gone.iqrl")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: iqrl.DQN("CartPole-v1", steps=100), "steps is the argument of learn"),
        (lambda: iqrl.DQN("CartPole-v1").predict([0, 0, 0, 0]), "has not learned yet"),
        (lambda: iqrl.DQN("CartPole-v1").learn(0), "total_timesteps must be a whole number of at least 1, got 0"),
        (lambda: iqrl.DQN("CartPole-v1", gama=1), "unknown setting 'gama'"),
        (lambda: iqrl.LocalQ("MlpPolicy", Signs), r"LocalQ takes no policy: write iqrl.LocalQ\(Signs\);.*hidden=\(64"),
        (lambda: iqrl.LocalQ("MlpPolicy", env=Signs), r"takes no policy: write iqrl.LocalQ\(Signs\);"),
        (lambda: iqrl.LocalQ("CnnPolicy", env=Signs()), r"takes no policy: write iqrl.LocalQ\(env\);"),
        (lambda: iqrl.DQN("MlpPolicy", "CartPole-v1"), r'takes no policy: write iqrl.DQN\("CartPole-v1"\);'),
        (lambda: iqrl.DQN("MlpPolicy", "CartPole-v1", 1e-3), r'takes no policy: write iqrl.DQN\("CartPole-v1"\);'),
        (lambda: iqrl.DQN("CartPole-v1", 1e-3), "iqrl.DQN takes the environment first, and all else by name"),
        (
            lambda: iqrl.LocalQ("CartPole-v1", verbose=1),
            "unknown setting 'verbose'; .* give progress_bar=True to learn",
        ),
        (lambda: iqrl.DQN(policy="MlpPolicy", env="CartPole-v1"), "the network follows from the observations"),
    ],
)
def test_misuse_is_a_sentence(use, words):
    with pytest.raises(BadInput, match=words):
        use()


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A model of DQN in a file from which it goes on learning."""
    settings = SMALL | {"period": 100, "learning_starts": 100, "epsilon_decay": 100, "buffer_size": 50}
    model = iqrl.DQN("CartPole-v1", **settings).learn(200)
    return model.save(tmp_path_factory.mktemp("learned") / "agent.iqrl", learning=True)


def weights_of(model):
    return jax.tree.leaves(model.result.agent.parameters(model.result.agent_state))


def test_settings_change_between_two_calls_of_learn(learned, tmp_path):
    model = iqrl.load(learned)
    before = weights_of(model)
    assert model.set(gamma=0.99).changes == []  # it is 0.99 already
    model.set(learning_rate=0.0, epsilon_final=0.5).learn(100)
    for old, new in zip(before, weights_of(model), strict=True):
        np.testing.assert_array_equal(old, new)
    assert model.metrics["epsilon"][-1] == pytest.approx(0.5, abs=1e-3)
    assert model.metrics["step"].to_list() == [100, 200, 300]
    assert (model.run.learning_rate, model.run.epsilon_final) == (0.0, 0.5)

    changes = [{"step": 200, "learning_rate": [5e-4, 0.0], "epsilon_final": [0.02, 0.5]}]
    for path in (model.save(tmp_path / "whole.iqrl", learning=True), model.save(tmp_path / "acting.iqrl")):
        loaded = iqrl.load(path)
        assert (loaded.changes, loaded.run.learning_rate) == (changes, 0.0)
        words = "<iqrl.DQN on CartPole-v1, 300 steps; learning_rate 0.0, epsilon_final 0.5 from step 200>"
        assert repr(loaded) == words


def test_settings_before_learning_are_those_it_begins_with():
    model = iqrl.DQN("CartPole-v1").set(hidden=(8,), gamma=0.9)
    assert (model._given["hidden"], model.changes) == ((8,), [])
    with pytest.raises(BadInput, match="gamma must be at most 1, got 2"):
        model.set(gamma=2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden": (9,)}, "hidden is settled when a model begins to learn; what may change is .*learning_rate"),
        ({"buffer_size": 60}, "buffer_size is settled"),
        ({"method": "iq"}, "method is settled"),
        ({"target_period": 1}, "the agent's state would have another form; make a new model"),
        ({"learning_rate": -1}, "learning_rate must be at least 0, got -1"),
        ({"learning_rat": 1}, "unknown setting 'learning_rat'; did you mean learning_rate?"),
    ],
)
def test_what_cannot_change_is_refused(learned, settings, words):
    model = iqrl.load(learned)
    with pytest.raises(BadInput, match=words):
        model.set(**settings)
    assert (model.changes, model.num_timesteps) == ([], 200)


def test_settings_do_not_change_in_a_callback_nor_of_a_model_that_only_acts(learned, tmp_path):
    model = iqrl.load(learned)
    with pytest.raises(BadInput, match="a callback cannot change them"):
        model.learn(200, lambda model, progress: model.set(gamma=0.5))
    with pytest.raises(BadInput, match="this model was saved to act"):
        iqrl.load(model.save(tmp_path / "acting.iqrl")).set(gamma=0.5)


class Signs(gymnasium.Env):
    """A number and a sign in a dictionary; actions are two numbers, the first from 5."""

    observation_space = gymnasium.spaces.Dict(
        number=gymnasium.spaces.Discrete(3, start=1), sign=gymnasium.spaces.Box(-1.0, 1.0, (1, 2), np.float32)
    )
    action_space = gymnasium.spaces.MultiDiscrete([2, 3], start=[5, 0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return self.observation_space.sample(), 0.0, bool(self.np_random.random() < 0.1), False, {}


def test_observations_and_actions_are_those_of_the_environment(tmp_path):
    model = iqrl.LocalQ(Signs, **SMALL, max_episode_steps=20).learn(200)
    loaded = iqrl.load(model.save(tmp_path / "agent.iqrl"))
    many = [Signs.observation_space.sample() for _ in range(5)]
    actions, _ = model.predict(many)
    assert all(Signs.action_space.contains(action) for action in actions)
    np.testing.assert_array_equal(model.predict(many[2])[0], actions[2])
    np.testing.assert_array_equal(loaded.predict(many)[0], actions)


def test_an_observation_of_another_shape_is_named_as_it_was_given():
    model = iqrl.LocalQ(Corner, **SMALL).learn(100)
    for wrong, shape in (([0, 0, 0], r"\(3,\)"), ([[0, 0, 0]], r"\(1, 3\)"), (np.zeros((2, 5)), r"\(2, 5\)")):
        with pytest.raises(BadInput, match=rf"shape \(2,\) is expected, or \(n, 2\) for several; got shape {shape}"):
            model.predict(wrong)
    with pytest.raises(BadInput, match=r"shape \(2,\) is expected, or \(n, 2\) for several; this is 'x'\."):
        model.predict("x")
    with pytest.raises(BadInput, match=r"\(n, 2\) for several; this is \[\[0, 1\], \[2\]\]\."):
        model.predict([[0, 1], [2]])
    with pytest.raises(BadInput, match=r"number 1 of the 2 in the observation is nan; each must be finite\."):
        model.predict([np.nan, 0.0])
