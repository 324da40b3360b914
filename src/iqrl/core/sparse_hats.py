"""SparseHats: Q-learning on hats with the bounded step, computed for the active bins alone.

It computes what `QLearner` does with `features="hats"`, `optimiser="bounded"` and no traces, to rounding. An update
then moves the heads of two bins of each unit, and only these are read and written. The average that acts moves for all
bins, though: the distance m - θ of a bin that is not touched becomes (1 - τ) times as large with every step. So
(m - θ) / G is stored, where G, the product of all (1 - τ), is the same for all bins. Every F steps, before G becomes
too small, the distances of all bins are written, and G begins at 1. So the cost of a step does not depend on the
number of bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from iqrl.core.agent import AgentState, LearnUniforms, QFunction, QLearner
from iqrl.core.bounded_step import bounded_size
from iqrl.core.features import neighbours
from iqrl.core.losses import huber
from iqrl.core.masks import legal_values
from iqrl.core.networks import Params

SMALLEST = 1e-6
"""of G"""


@dataclass(frozen=True)
class SparseHats(QLearner):
    """`params["heads"]` are [units · bins, A]: θ of the heads; `optimiser` are the distances in the same form."""

    bins: int = 16
    rate: float = 1.0
    bound: float = 1.0
    share: float = 0.0
    trunk: float = 1.0
    """the step of the trunk, as a multiple of that of the heads"""

    @property
    def period(self) -> int:
        """F: steps after which G begins anew."""
        return max(int(math.log(SMALLEST) / math.log1p(-self.act_average)), 1) if self.act_average else 1

    # The state in both forms

    def init(self, key: jax.Array) -> AgentState:
        state = super().init(key)
        trunk, heads = without_heads(state.params), state.params["heads"]["w"][0].T
        return state._replace(
            params=trunk | {"heads": heads},
            optimiser=(jnp.zeros_like(heads), jnp.float32(1)) if self.act_average else (),
            average=trunk if self.act_average else (),
            target=(),
        )

    def dense(self, state: AgentState) -> AgentState:
        """The state of the plain computation."""
        trunk, theta = without_heads(state.params), state.params["heads"]
        live, average, target = trunk | {"heads": {"w": theta.T[None]}}, (), ()
        if self.act_average:
            distances, left = state.optimiser
            average = state.average | {"heads": {"w": (theta + left * distances).T[None]}}
            target = QFunction(params=average, preprocessor=state.preprocessor) if self.target_average else ()
        return state._replace(params=live, average=average, target=target, optimiser=self.optimiser.init(live))

    def live(self, state: AgentState) -> QFunction:
        return self.dense(state).q_function

    def acting(self, state: AgentState) -> QFunction:
        return super().acting(self.dense(state))

    def target_of(self, state: AgentState) -> QFunction:
        dense = self.dense(state)
        return dense.target if self.target_average else dense.q_function

    # Acting

    def acting_values(
        self, state: AgentState, obs: jax.Array, context: jax.Array, step: jax.Array, noise: jax.Array
    ) -> jax.Array:
        return self._values(state, obs, averaged=self.act_average > 0)

    def _values(self, state: AgentState, obs: jax.Array, averaged: bool) -> jax.Array:
        """[A]: Q(s, ·) by θ, or by its average."""
        lower, above = neighbours(self._project(state.average if averaged else state.params, state, obs), self.bins)
        active = active_bins(lower, self.bins)
        values = read(state.params["heads"], active)
        if averaged:
            values = values + state.optimiser[1] * read(state.optimiser[0], active)
        return weigh(hat_values(above), values)

    def _project(self, trunk: Params, state: AgentState, obs: jax.Array) -> jax.Array:
        """[units]: places among the bins."""
        assert self.network.project is not None
        return self.network.project(trunk, self.preprocessor.encode(state.preprocessor, obs))

    # Learning

    def update(
        self, state: AgentState, step: jax.Array, random: LearnUniforms
    ) -> tuple[AgentState, dict[str, jax.Array]]:
        batch = self.replay.sample(state.replay, step, random.sample)
        transition = jax.tree.map(lambda each: each[..., 0], batch.transitions)
        trunk = without_heads(state.params)
        places, pull_back = jax.vjp(lambda trunk: self._project(trunk, state, transition.obs_tm1), trunk)
        lower, above = neighbours(places, self.bins)
        active, shares = active_bins(lower, self.bins), hat_values(above)
        theta = read(state.params["heads"], active)
        q, taken = weigh(shares, theta), jnp.arange(theta.shape[-1]) == transition.a_tm1
        of_next = self._values(state, transition.obs_t, averaged=self.target_average > 0)
        next_value = jnp.max(legal_values(of_next, transition.mask_t))
        error = transition.r_t + transition.discount_t * next_value - jnp.sum(jnp.where(taken, q, 0.0))

        # A unit's two hats sum to one, so that ‖∇Q‖₁ over the heads is the number of units.
        move = error * bounded_size(self.rate, self.bound, error, shares.shape[1])
        slope = jnp.sum(jnp.where(taken, theta[1] - theta[0], 0.0), axis=-1)
        far = self.trunk * move
        trunk = jax.tree.map(lambda theta, gradient: theta + far * gradient, trunk, pull_back(slope)[0])
        moved = move * jnp.where(taken, 1.0, self.share) * shares[..., None]
        state = self._follow_sparsely(state, active, moved, step)
        params = trunk | {"heads": write(state.params["heads"], active, theta + moved)}
        average = self.averaged(state.average, trunk, step) if self.act_average else ()
        metrics = {"value_loss": huber(error), "max_q": jnp.max(legal_values(q, transition.mask_tm1))}
        return state._replace(params=params, average=average), metrics

    def _follow_sparsely(self, state: AgentState, active: jax.Array, moved: jax.Array, step: jax.Array) -> AgentState:
        """The distances after θ moved and its average followed: (1 - τ)(m - θ - moved), over G (1 - τ)."""
        if not self.act_average:
            return state
        distances, left = state.optimiser
        new = read(distances, active) - moved / left
        distances = write(distances, active, jnp.where(step == 0, 0.0, new))  # the first step sets m to θ
        left = jnp.where(step == 0, 1.0, left * (1.0 - self.act_rate(step)))
        # A loop of one turn or none: XLA would copy the distances into and out of a condition.
        last = (step + 1) % self.period == 0
        distances = jax.lax.fori_loop(0, jnp.where(last, 1, 0), lambda _, all_bins: left * all_bins, distances)
        return state._replace(optimiser=(distances, jnp.where(last, 1.0, left)))


def active_bins(lower: jax.Array, bins: int) -> jax.Array:
    """[2, units]: where each unit's two active bins are."""
    return jnp.arange(lower.shape[0]) * bins + lower + jnp.arange(2)[:, None]


def hat_values(above: jax.Array) -> jax.Array:
    """[2, units]"""
    return jnp.stack([1.0 - above, above])


def read(heads: jax.Array, active: jax.Array) -> jax.Array:
    """[2, units, A]"""
    return heads.at[active].get(mode="promise_in_bounds")


def write(heads: jax.Array, active: jax.Array, new: jax.Array) -> jax.Array:
    return heads.at[active].set(new, mode="promise_in_bounds", unique_indices=True)


def weigh(shares: jax.Array, values: jax.Array) -> jax.Array:
    """[A]: Σ over units and their two bins."""
    return jnp.sum(shares[..., None] * values, axis=(0, 1))


def without_heads(params: Params) -> Params:
    return {name: part for name, part in params.items() if name != "heads"}
