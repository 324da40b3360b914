"""Fused update: the same learner, whose update is one kernel of C++ (`fused_update.cc`), for all seeds at once.

XLA makes a kernel for every product, every activation and every sum of an update. Those of a small network are so short
that most of their time is lost between them. The kernel gathers the batch, evaluates the network, differentiates the
loss and moves the parameters. Its numbers are those of `QLearner.update` to rounding, and the state has the same form.

It knows dense layers with linear heads, the Huber loss of a Q-learning step with or without distillation, and Adam.
`iqrl.accelerator` compiles it and makes it known to JAX; `methods/base.py` decides which learners it is for.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax

from iqrl.core.agent import AgentState, LearnUniforms, QLearner
from iqrl.core.cached_targets import CachedTargets
from iqrl.core.losses import HeldHeads
from iqrl.core.networks import Params

ACTIVATIONS = ("tanh", "relu", "leaky-relu")
"""in the order of the kernel's numbers for them"""
VALUES, UPDATE = "iqrl_values", "iqrl_update"
FIRST, SECOND = 0.9, 0.999
"""β₁ and β₂ of Adam"""
NOT_HELD = HeldHeads(own_head=False, share=0.0)


@dataclass(frozen=True)
class FusedUpdate(QLearner):
    activation: str = "tanh"
    rate: float = 5e-4
    adam_epsilon: float = 1e-8

    def batch_values(self, params: Params, states: jax.Array) -> jax.Array:
        """[k A, n] of states [n, d]; not to be differentiated."""
        call = jax.ffi.ffi_call(VALUES, _floats(self._outputs, states.shape[0]), vmap_method="broadcast_all")
        return call(states, *_leaves(params), activation=self._kind)

    def update(
        self, state: AgentState, step: jax.Array, random: LearnUniforms
    ) -> tuple[AgentState, dict[str, jax.Array]]:
        rows, batch = state.replay.rows, self.replay.sample(state.replay, step, random.sample)
        slots = jnp.arange(rows.shape[0]) if batch.slots is None else batch.slots
        targets, theta = self._targets(state)
        clip, (averages, scale) = state.optimiser
        count = optax.safe_increment(averages.count)
        term = self.regularisers[0] if self.regularisers else None
        held = (term.form if term else None) or NOT_HELD
        weight = jnp.asarray(term.weight(step) if term else 0.0, jnp.float32)
        moved = [leaf for part in (state.params, averages.mu, averages.nu) for leaf in _leaves(part)]
        call = jax.ffi.ffi_call(
            UPDATE,
            [_floats(3), *(_floats(*leaf.shape) for leaf in moved)],
            vmap_method="broadcast_all",
            input_output_aliases={number + 5: number + 1 for number in range(len(moved))},
        )
        numbers = {"held": held.share, "rate": self.rate, "epsilon": self.adam_epsilon}
        metrics, *moved = call(
            rows, slots, targets, weight, count, *moved, *theta,
            activation=self._kind, heads=np.int32(self.contexts.count), own_head=held.own_head,
            first=np.float64(FIRST), second=np.float64(SECOND),
            **{name: np.float32(value) for name, value in numbers.items()},
        )  # fmt: skip
        size = len(moved) // 3
        params, mean, square = (_params(moved[n * size : (n + 1) * size]) for n in range(3))
        memory = (clip, (averages._replace(count=count, mu=mean, nu=square), scale))
        state = state._replace(params=params, optimiser=memory)
        named = {"value_loss": metrics[0], "max_q": metrics[1]} | ({f"{term.name}_loss": metrics[2]} if term else {})
        return self.follow(state, step), named

    def _targets(self, state: AgentState) -> tuple[jax.Array, list[jax.Array]]:
        """What θ⁻ has on the two states of each row, [N, 2 k A], or θ⁻, for the kernel to compute it."""
        return jnp.zeros((1, 1)), _leaves(self.target_of(state).params)

    @property
    def _outputs(self) -> int:
        return self.contexts.count * self.network.width

    @property
    def _kind(self) -> np.int32:
        return np.int32(ACTIVATIONS.index(self.activation))


@dataclass(frozen=True)
class FusedCachedUpdate(FusedUpdate, CachedTargets):
    """The same with cached targets."""

    def _values(self, state: AgentState, numbers: jax.Array) -> jax.Array:
        states = self.replay.states.get(state.replay, numbers)
        return self.batch_values(state.target.params, states).T

    def _targets(self, state: AgentState) -> tuple[jax.Array, list[jax.Array]]:
        return state.cache.reshape(-1, 2 * self._outputs), []


def _leaves(params: Params) -> list[jax.Array]:
    """w and b of the heads, then of each layer below them."""
    return [layer[name] for layer in (params["heads"], *params["trunk"]) for name in ("w", "b")]


def _params(leaves: list[jax.Array]) -> Params:
    """The parameters with these leaves."""
    heads, *trunk = ({"w": w, "b": b} for w, b in zip(leaves[::2], leaves[1::2], strict=True))
    return {"trunk": tuple(trunk), "heads": heads}


def _floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)
