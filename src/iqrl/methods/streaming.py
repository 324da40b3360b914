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

import jax
import jax.numpy as jnp
import optax

from iqrl.core.agent import QLearner
from iqrl.core.layers import sparse_kernel, sparse_uniform
from iqrl.core.losses import huber, prediction, td_error
from iqrl.core.preprocessors import Preprocessor, identity, normalise
from iqrl.core.types import LossInputs
from iqrl.envs.base import Task
from iqrl.methods.base import Method, convolutions, q_learner, q_network
from iqrl.methods.rainbow import DistributionSettings, c51_loss, support_of
from iqrl.settings import Run, Settings, setting


class StreamingSettings(Settings):
    """streaming"""

    trace_decay: float = setting(0.8, "λ of the eligibility traces", minimum=0, maximum=1)
    step_bound: float = setting(2.0, "κ: larger takes shorter steps where many weights would move", minimum=0)


class NormalisationSettings(Settings):
    """normalisation"""

    normalise: bool = setting(True, "states by their running mean and deviation, rewards by that of the running return")
    sparse_init: float = setting(0.9, "share of each unit's incoming weights that start at 0", minimum=0, maximum=1)


def traced_q(inputs: LossInputs) -> jax.Array:
    """A loss in name: its value is that of the TD error, its gradient is ∇Q(s, a), which the traces are made of."""
    q = prediction(inputs)
    return jax.lax.stop_gradient(huber(td_error(inputs)) - q) + q


def bounded_traces(rate: float, bound: float, decay: float) -> optax.GradientTransformationExtraArgs:
    """The optimiser (ObGD) to go with it; `decay` is γλ."""

    def init(params: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, params)

    def update(gradient: Any, traces: Any, params: Any = None, *, inputs: LossInputs, **rest: Any) -> tuple[Any, Any]:
        error = -td_error(inputs)[0]  # the stream's batch is one step
        traces = jax.tree.map(lambda z, g: decay * z + g, traces, gradient)
        size = sum(jnp.sum(jnp.abs(z)) for z in jax.tree.leaves(traces))
        step = rate / jnp.maximum(rate * bound * jnp.maximum(jnp.abs(error), 1.0) * size, 1.0)
        updates = jax.tree.map(lambda z: step * error * z, traces)
        cut = inputs.transition.done[0] | ~inputs.transition.greedy[0]
        return updates, jax.tree.map(lambda z: jnp.where(cut, 0.0, z), traces)

    return optax.GradientTransformationExtraArgs(init, update)  # ty: ignore[invalid-argument-type]


def stream_preprocessor(run: Run, task: Task) -> Preprocessor:
    return normalise(task.obs_size, run.gamma) if run.normalise else identity(task.obs_size)


def sparse_start(run: Run, task: Task) -> dict[str, Any]:
    encoder = convolutions(run, task, sparse_kernel(run.sparse_init))
    return {"initialiser": sparse_uniform(run.sparse_init), "encoder": encoder}


def stream_q(run: Run, task: Task) -> QLearner:
    preprocessor = stream_preprocessor(run, task)
    return q_learner(
        run,
        task,
        preprocessor=preprocessor,
        network=q_network(run, task, preprocessor, 1, **sparse_start(run, task)),
        value_loss=traced_q,
        optimiser=bounded_traces(run.learning_rate, run.step_bound, run.gamma * run.trace_decay),
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
        settings=(StreamingSettings, NormalisationSettings),
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
    ),
    Method(
        name="stream-c51",
        summary="the distribution of the return from the stream alone, with Adam",
        paper="Gogianu et al. 2026; Bellemare et al. 2017",
        build=stream_c51,
        settings=(NormalisationSettings, DistributionSettings),
        defaults=NETWORK | {"learning_starts": 0, "optimiser": "adam", "learning_rate": 5e-4},
        fixed=NOTHING_STORED,
        covered_by=("stream-q", "rainbow-iq"),
    ),
)
