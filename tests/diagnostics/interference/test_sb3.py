"""Interference of Stable-Baselines3's DQN."""

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs the extra sb3")

import torch
from stable_baselines3 import A2C, DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from iqrl import BadInput
from iqrl.sb3 import InterferenceCallback

FIRST, SECOND, LAST = np.eye(2, dtype=np.float32)[0], np.eye(2, dtype=np.float32)[1], np.ones(2, np.float32)


class TwoStates(gymnasium.Env):
    """From the first state to the second for 1, from there to the end for 2, whatever is done."""

    observation_space, action_space = gymnasium.spaces.Box(0, 1, (2,)), gymnasium.spaces.Discrete(2)

    def __init__(self, truncate=False):
        self.truncate, self.second = truncate, False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.second = False
        return FIRST, {}

    def step(self, action):
        if not self.second:
            self.second = True
            return SECOND, 1.0, False, False, {}
        return LAST, 2.0, not self.truncate, self.truncate, {}


def linear_dqn(env=None, learning_rate=0.2, **settings):
    """Q(s, a) = W[a] s + b[a], greedy, plain gradient descent; a buffer of one, so that the batch is known."""
    defaults = {"gamma": 0.5, "buffer_size": 1, "learning_starts": 0, "train_freq": 2, "target_update_interval": 1}
    greedy = {"exploration_initial_eps": 0.0, "exploration_final_eps": 0.0}
    kwargs = {"net_arch": [], "optimizer_class": torch.optim.SGD}
    env = env or TwoStates()
    model = DQN("MlpPolicy", env, learning_rate, policy_kwargs=kwargs, seed=0, **(defaults | greedy | settings))
    weights, bias = model.q_net.parameters()
    with torch.no_grad():
        weights.copy_(torch.tensor([[0.5, 0.25], [0.0, 1.5]]))
        bias.zero_()
    return model


def measure(model, steps, **options):
    callback = InterferenceCallback(**options)
    model.learn(steps, callback=callback)
    return callback


def test_one_update_by_hand():
    """Q(first) = (0.5, 0), Q(second) = (0.25, 1.5); greedy takes action 0, then action 1.

    δ: 1 + 0.5·1.5 - 0.5 = 1.25 and, the end, 2 - 1.5 = 0.5. The buffer holds the second transition only. Its Huber
    gradient is -0.5 by Q(second, 1), so W[1, 1] and b[1] grow by 0.2·0.5 = 0.1 each and Q(second, 1) becomes 1.7;
    Q(first) = (0.5, 0.1). δ: 1 + 0.5·1.7 - 0.5 = 1.35 and 2 - 1.7 = 0.3.
    """
    callback = measure(linear_dqn(), steps=2)
    assert callback.meter.steps.tolist() == [2]
    assert callback.meter.squared_td_error == pytest.approx([(1.25**2 + 0.5**2) / 2])
    assert callback.meter.aei == pytest.approx([(1.35**2 - 1.25**2 + 0.3**2 - 0.5**2) / 2])
    assert callback.meter.aei == pytest.approx([0.05])
    table = callback.frame(2)
    assert table["return"].to_list() == [3.0]
    assert table["raised_share"].to_list() == [1.0]


def test_a_truncated_episode_goes_on_from_its_own_last_observation():
    """Q(last) = (0.75, 1.5), so the second δ is 2 + 0.5·1.5 - 1.5 = 1.25; Q of the next first state would be 0.5."""
    callback = measure(linear_dqn(TwoStates(truncate=True)), steps=2)
    assert callback.meter.squared_td_error == pytest.approx([1.25**2])


def test_several_environments():
    """Both do the same, so all is as with one."""
    model = linear_dqn(make_vec_env(TwoStates, 2), buffer_size=2, target_update_interval=2)
    callback = measure(model, steps=4)
    assert callback.meter.aei == pytest.approx([0.05])
    assert callback.meter.steps.tolist() == [4]
    assert callback.frame(4)["return"].to_list() == [3.0]


def test_no_interference_without_learning():
    callback = measure(linear_dqn(learning_rate=0.0, train_freq=1), steps=40)
    assert callback.meter.aei.tolist() == [0.0] * 40


def test_nothing_is_read_before_learning_starts_and_every_third_after():
    """Training begins at step 6 and is measured at its third call, step 8."""
    callback = measure(linear_dqn(train_freq=1, learning_starts=5), steps=14, every=3)
    assert callback.meter.steps.tolist() == [8, 11, 14]
    assert len(measure(linear_dqn(gradient_steps=0), steps=4).meter.aei) == 0


def test_the_last_reading_is_without_dropout_as_the_others():
    """SB3 leaves the network in training mode where it ends with an update."""
    kwargs = {"net_arch": [4], "activation_fn": torch.nn.Dropout}
    model = DQN("MlpPolicy", TwoStates(), 0.0, buffer_size=1, learning_starts=0, train_freq=1, policy_kwargs=kwargs)
    assert measure(model, steps=3).meter.aei.tolist() == [0.0] * 3
    assert model.q_net.training


def cartpole(callback=None):
    settings = {"buffer_size": 50, "learning_starts": 20, "train_freq": 1, "batch_size": 8}
    model = DQN("MlpPolicy", "CartPole-v1", 1e-3, policy_kwargs={"net_arch": [16, 16]}, seed=3, **settings)
    return model.learn(140, callback=callback)


def test_training_is_the_same_to_the_last_bit():
    """Parameters, mode, and the random numbers that come next."""
    outcomes = []
    for callback in (InterferenceCallback(), None):
        model = cartpole(callback)
        outcomes.append((model, torch.rand(1), np.random.rand(), model.action_space.sample()))
    (measured, *draws), (alone, *draws_alone) = outcomes
    assert draws == draws_alone
    assert measured.policy.training == alone.policy.training
    for key, value in alone.policy.state_dict().items():
        assert torch.equal(measured.policy.state_dict()[key], value)


def test_going_on_from_the_last_reading_changes_no_bit():
    class Naive(InterferenceCallback):
        def _parameters(self):
            return [object()]

    quick, naive = InterferenceCallback(capacity=60), Naive(capacity=60)
    cartpole(quick)
    cartpole(naive)
    assert quick.meter.aei.tolist() == naive.meter.aei.tolist()
    assert len(quick.meter.aei) == 120


class Disturb(BaseCallback):
    """Someone else's callback, which changes the network between two updates."""

    def _on_step(self):
        with torch.no_grad():
            self.model.q_net.q_net[0].weight.mul_(0.9)
        return True


def test_changes_between_updates_are_not_the_update_s():
    model = linear_dqn(learning_rate=0.0, train_freq=1)
    callback = InterferenceCallback()
    model.learn(20, callback=[Disturb(), callback])
    assert callback.meter.aei.tolist() == [0.0] * 20
    assert len(set(callback.meter.squared_td_error)) == 20


def test_training_goes_on_or_starts_anew():
    model, callback = linear_dqn(), InterferenceCallback()
    model.learn(2, callback=callback)
    model.learn(2, callback=callback, reset_num_timesteps=False)
    assert callback.meter.steps.tolist() == [2, 4]
    model.learn(2, callback=callback)
    assert callback.meter.steps.tolist() == [2]


def test_log(monkeypatch):
    model, lines = linear_dqn(), []
    monkeypatch.setattr("stable_baselines3.common.logger.Logger.dump", lambda self, step=0: lines.append(step))
    measure(model, steps=2)
    logged = {key: value for key, value in model.logger.name_to_value.items() if key.startswith("interference/")}
    assert logged == {
        "interference/aei": pytest.approx(0.05),
        "interference/negative_interference": pytest.approx(0.05),
        "interference/raised_share": 1.0,
        "interference/aei_largest": pytest.approx(0.05),
        "interference/squared_td_error": pytest.approx(0.90625),
    }


def test_what_cannot_be_measured():
    with pytest.raises(BadInput, match="every must be at least 1"):
        InterferenceCallback(every=0)
    with pytest.raises(BadInput, match="nothing was measured yet"):
        InterferenceCallback().frame(10)
    with pytest.raises(BadInput, match="A2C has none"):
        A2C("MlpPolicy", TwoStates()).learn(10, callback=InterferenceCallback())
    with pytest.raises(BadInput, match="VecNormalize"):
        linear_dqn(VecNormalize(make_vec_env(TwoStates, 1))).learn(10, callback=InterferenceCallback())
