"""DQN: deep Q-learning with replay and a target network (Mnih et al. 2015)."""

from __future__ import annotations

from iqrl.core.agent import QLearner
from iqrl.envs.base import Task
from iqrl.methods.base import BASELINES, BoundedSettings, Method, q_learner
from iqrl.settings import Run


def build(run: Run, task: Task) -> QLearner:
    return q_learner(run, task)


DQN = Method(
    name="dqn",
    summary="deep Q-learning with replay and a target network",
    paper="Mnih et al. 2015",
    build=build,
    settings=(BoundedSettings,),
    presets={"paper": BASELINES},
)
DQN_LAYERNORM = Method(
    name="dqn-layernorm",
    summary="DQN with layer normalisation",
    paper="Ba et al. 2016",
    build=build,
    settings=(BoundedSettings,),
    defaults={"layer_norm": True},
    presets={"paper": BASELINES},
    reduces_to=("dqn", {"layer_norm": False}),
    covered_by=("dqn",),
)
METHODS = (DQN, DQN_LAYERNORM)
