"""Interference of a Stable-Baselines3 DQN while it trains: `model.learn(..., callback=InterferenceCallback())`."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from iqrl.diagnostics.interference.any_agent import MEASURES, InterferenceMeter
from iqrl.errors import BadInput

try:
    import torch  # ty: ignore[import-not-found]
    from stable_baselines3.common.callbacks import BaseCallback  # ty: ignore[import-not-found]
except ImportError as error:
    raise ImportError("iqrl.sb3 needs Stable-Baselines3: pip install '.[sb3]' in iqrl's source tree.") from error


LOGGED = {name: f"interference/{name}" for name in MEASURES}
"""metrics by the names they have in SB3's log"""


class InterferenceCallback(BaseCallback):
    """Measures every `every`-th call of the model's `train` on the last `capacity` transitions.

    A call of `train` makes `gradient_steps` updates; one reading spans them all. The callback draws no random number
    and does not change the model: training is the same to the last bit with it and without. It logs `interference/aei`
    and the other metrics, averaged over the updates between two lines of SB3's log.
    """

    def __init__(self, every: int = 1, capacity: int = 10_000, sample: int | None = None, verbose: int = 0):
        super().__init__(verbose)
        if every < 1:
            raise BadInput(f"every must be at least 1, got {every}.")
        self.every, self.capacity, self.sample = every, capacity, sample
        self.meter: InterferenceMeter | None = None
        self._measured: Any = None  # the model that the meter belongs to
        self._trainings, self._measuring = 0, False
        self._parameters_after: Any = None

    def frame(self, period: int) -> pl.DataFrame:
        """A row per period of that many steps: return of the episodes that ended in it, and interference."""
        if self.meter is None:
            raise BadInput("nothing was measured yet; give the callback to model.learn().")
        return self.meter.frame(period)

    def _on_training_start(self) -> None:
        """Start a measurement; training continued with `reset_num_timesteps=False` continues the last one."""
        self._measuring = False
        if self.meter is None or self._measured is not self.model or self.num_timesteps == 0:
            check_model(self.model)
            self.meter = InterferenceMeter(self._q_values, self.model.gamma, capacity=self.capacity, sample=self.sample)
            self._measured, self._trainings, self._parameters_after = self.model, 0, None
        self.meter.cancel()

    def _on_step(self) -> bool:
        """After the environment's step and before the transition is stored: the model's last observation is still s."""
        step = self.locals
        next_obs, infos = np.array(step["new_obs"]), step["infos"]
        for i in np.flatnonzero(step["dones"]):  # there, new_obs is the first of the next episode
            next_obs[i] = infos[i].get("terminal_observation", next_obs[i])
        truncated = np.array([info.get("TimeLimit.truncated", False) for info in infos])
        self.meter.add(
            obs=self.model._last_obs,
            action=step["buffer_actions"],
            reward=step["rewards"],
            next_obs=next_obs,
            terminated=step["dones"] & ~truncated,
        )
        for info in infos:
            if "episode" in info:  # from the Monitor that SB3 wraps around an environment
                self.meter.episode(self.num_timesteps, info["episode"]["r"])
        return True

    def _on_rollout_end(self) -> None:
        """Right before `train`, if SB3 is about to call it: the same condition as in its `learn`."""
        if self.num_timesteps <= self.model.learning_starts or self.model.gradient_steps == 0:
            return
        self._trainings += 1
        if self._trainings % self.every == 0:
            # PyTorch does not count the changes of fused optimisers, so every training must have been measured too.
            self.meter.before(consecutive=self.every == 1 and self._parameters() == self._parameters_after)
            self._measuring = True

    def _on_rollout_start(self) -> None:
        self._finish_reading()

    def _on_training_end(self) -> None:
        self._finish_reading()

    def _finish_reading(self) -> None:
        if not self._measuring:
            return
        self._measuring = False
        aei = self.meter.after(self.num_timesteps)
        self._parameters_after = self._parameters()
        self._log(aei, self.meter.readings.squared_td_error[-1])

    def _log(self, aei: float, squared_td_error: float) -> None:
        means = {"aei": aei, "raised_share": float(aei > 0), "squared_td_error": squared_td_error}
        if aei > 0:
            means["negative_interference"] = aei
        for name, value in means.items():
            self.logger.record_mean(LOGGED[name], value)
        largest = self.logger.name_to_value.get(LOGGED["aei_largest"], aei)
        self.logger.record(LOGGED["aei_largest"], max(aei, largest))

    def _q_values(self, obs: np.ndarray) -> np.ndarray:
        """The network in evaluation mode, in which SB3 acts; `train` leaves it in training mode."""
        network = self.model.q_net
        was_training = network.training
        network.train(False)
        with torch.no_grad():
            values = network(self.model.policy.obs_to_tensor(obs)[0]).cpu().numpy()
        network.train(was_training)
        return values

    def _parameters(self) -> list[tuple[int, int]]:
        """The network's tensors and PyTorch's count of the changes of each; it differs if anything was changed."""
        tensors = self.model.q_net.state_dict(keep_vars=True).values()
        return [(id(tensor), tensor._version) for tensor in tensors]


def check_model(model: Any) -> None:
    """Refuse models whose learner does not see the transitions as they were measured."""
    if not hasattr(model, "q_net"):
        raise BadInput(
            f"interference is measured for models with a q_net, such as DQN; {type(model).__name__} has none."
        )
    if model.observation_space.shape is None:
        raise BadInput("interference is measured on observations that are one array each, not a dictionary.")
    if model.get_vec_normalize_env() is not None:
        # Its statistics keep moving: the learner sees a stored transition differently at every step.
        raise BadInput(
            "interference cannot be measured under VecNormalize; scale observations and rewards by a wrapper."
        )
