"""Streaming methods: every step is learned from once; no replay, no target network.

    stream-q    Q(λ) with eligibility traces and a step that cannot overshoot (Elsayed, Vasan & Mahmood 2024)
                z <- γλ z + ∇Q(s, a)
                θ <- θ + α' δ z,  α' = α / max(1, α κ max(|δ|, 1) ‖z‖₁)
                z <- 0 where the episode ended or the action was not the greedy one
    stream-c51  the distribution of the return, with Adam (Gogianu et al. 2026; Bellemare et al. 2017)

They need no code of their own in `core/agent.py`: a buffer of one transition, the network as its own target, and an
optimiser that gets the loss inputs beside the gradient, from which it takes the TD error and where traces end.
"""

from __future__ import annotations

from typing import Any

from iqrl.core.agent import QLearner
from iqrl.core.bounded_step import traced_q
from iqrl.core.layers import sparse_kernel, sparse_uniform
from iqrl.core.preprocessors import Preprocessor, identity, normalise
from iqrl.envs.base import Task
from iqrl.methods.base import BoundedSettings, Method, Span, bounded_step, encoder_before_layers, q_learner, q_network
from iqrl.methods.rainbow import DistributionSettings, c51_loss, support_of
from iqrl.settings import Run, Settings, setting


class NormalisationSettings(Settings):
    """normalisation"""

    normalise: bool = setting(True, "states by their running mean and deviation, rewards by that of the running return")


class SparseStart(Settings):
    """sparse start"""

    sparse_init: float = setting(0.9, "share of each unit's incoming weights that start at 0", minimum=0, maximum=1)


def stream_preprocessor(run: Run, task: Task) -> Preprocessor:
    if not run.normalise:
        return identity(task.obs_size)
    return normalise(task.obs_size, run.gamma, n_envs=run.env_count)


def sparse_start(run: Run, task: Task) -> dict[str, Any]:
    encoder = encoder_before_layers(run, task, sparse_kernel(run.sparse_init))
    return {"initialiser": sparse_uniform(run.sparse_init), "encoder": encoder}


def stream_q(run: Run, task: Task) -> QLearner:
    preprocessor = stream_preprocessor(run, task)
    return q_learner(
        run,
        task,
        preprocessor=preprocessor,
        network=q_network(run, task, preprocessor, 1, **sparse_start(run, task)),
        value_loss=traced_q(),
        optimiser=bounded_step(run),
    )


def stream_c51(run: Run, task: Task) -> QLearner:
    preprocessor, support = stream_preprocessor(run, task), support_of(run)
    network = q_network(run, task, preprocessor, 1, support=support, **sparse_start(run, task))
    return q_learner(run, task, preprocessor=preprocessor, network=network, value_loss=c51_loss(run, support))


NOTHING_STORED = {
    "buffer_size": 1, "batch_size": 1, "sampling": "uniform", "update_every": 1, "gradient_steps": 1,
    "target_period": 1, "double_q": False, "td_error": "huber",
}  # fmt: skip
"""nothing is stored, every step is learned from once, and there is no target network"""
NETWORK = {"hidden": (32, 32), "activation": "leaky-relu", "layer_norm": True}

METHODS = (
    Method(
        name="stream-q",
        summary="Q(λ) from the stream alone: traces, a bounded step, no replay, no target network",
        paper="Elsayed et al. 2024",
        build=stream_q,
        settings=(BoundedSettings, NormalisationSettings, SparseStart),
        defaults=NETWORK | {"learning_rate": 1.0},
        fixed=NOTHING_STORED | {"learning_starts": 0, "n_step": 1, "gradient_clip": 0.0, "adam_epsilon": 1e-8},
        presets={
            "original": {
                "epsilon_final": 0.01,
                "epsilon_decay": lambda steps: steps // 20,
                "bootstrap_time_limit": False,
                "steps": 500_000,
            }
        },
        search={"step_bound": Span(1.0, 8.0, log=True), "trace_decay": Span(0.0, 0.95)},
    ),
    Method(
        name="stream-c51",
        summary="the distribution of the return from the stream alone, with Adam",
        paper="Gogianu et al. 2026; Bellemare et al. 2017",
        build=stream_c51,
        settings=(NormalisationSettings, SparseStart, DistributionSettings),
        defaults=NETWORK | {"learning_starts": 0, "optimiser": "adam", "learning_rate": 5e-4},
        fixed=NOTHING_STORED,
        covered_by=("stream-q", "rainbow-iq"),
    ),
)
