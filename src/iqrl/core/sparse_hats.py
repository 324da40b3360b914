"""SparseHats: Q-learning on hats with the bounded step, computed for the active bins alone.

It computes what `QLearner` does with `features="hats"`, `optimiser="bounded"` and no traces, to rounding. An update
then moves the heads of two bins of each unit, and only these are read and written. The average that acts moves for all
bins, though: the distance m - θ of a bin that is not touched becomes (1 - τ) times as large with every step. So
(m - θ) / G is stored, where G, the product of all (1 - τ), is the same for all bins. Every F steps, before G becomes
too small, the distances of all bins are written, and G begins at 1. So the cost of a step does not depend on the
number of bins.

A bin has one row of 2A numbers: its θ, then its distances. A row is read and written as a whole where both are needed.
The lower and the upper bin of a unit are read and written apart: XLA's loops over one index are the faster ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

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
    """`params["heads"]` are the rows of all bins, [units · bins, 2A], or [units · bins, A] where nothing is averaged.

    `optimiser` is G.
    """

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
        trunk, theta = without_heads(state.params), state.params["heads"]["w"][0].T
        rows = jnp.concatenate([theta, jnp.zeros_like(theta)], axis=1) if self.act_average else theta
        return state._replace(
            params=trunk | {"heads": rows},
            optimiser=jnp.float32(1) if self.act_average else (),
            average=trunk if self.act_average else (),
            target=(),
        )

    def dense(self, state: AgentState) -> AgentState:
        """The state of the plain computation."""
        trunk, rows, average, target = without_heads(state.params), state.params["heads"], (), ()
        theta = rows[:, : self._actions(state)]
        live = trunk | {"heads": {"w": theta.T[None]}}
        if self.act_average:
            followed = theta + state.optimiser * rows[:, self._actions(state) :]
            average = state.average | {"heads": {"w": followed.T[None]}}
            target = QFunction(params=average, preprocessor=state.preprocessor) if self.target_average else ()
        return state._replace(params=live, average=average, target=target, optimiser=self.optimiser.init(live))

    def _actions(self, state: AgentState) -> int:
        width = state.params["heads"].shape[-1]
        return width // 2 if self.act_average else width

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
        actions = self._actions(state)
        if not averaged:
            return weigh(above, read(state.params["heads"], active, actions))
        both = weigh(above, read(state.params["heads"], active, 2 * actions))
        return both[:actions] + state.optimiser * both[actions:]

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
        active = active_bins(lower, self.bins)
        theta = read(state.params["heads"], active, self._actions(state))
        q, taken = weigh(above, theta), jnp.arange(self._actions(state)) == transition.a_tm1
        of_next = self._values(state, transition.obs_t, averaged=self.target_average > 0)
        next_value = jnp.max(legal_values(of_next, transition.mask_t))
        error = transition.r_t + transition.discount_t * next_value - jnp.sum(jnp.where(taken, q, 0.0))

        # A unit's two hats sum to one, so that ‖∇Q‖₁ over the heads is the number of units.
        move = error * bounded_size(self.rate, self.bound, error, above.shape[0])
        slope = jnp.sum(jnp.where(taken, theta.upper - theta.lower, 0.0), axis=-1)
        far = self.trunk * move
        trunk = jax.tree.map(lambda theta, gradient: theta + far * gradient, trunk, pull_back(slope)[0])
        state = self._move_heads(state, active, above, move * jnp.where(taken, 1.0, self.share), step)
        params = trunk | {"heads": state.params["heads"]}
        average = self.averaged(state.average, trunk, step) if self.act_average else ()
        metrics = {"value_loss": huber(error), "max_q": jnp.max(legal_values(q, transition.mask_tm1))}
        return state._replace(params=params, average=average), metrics

    def _move_heads(
        self, state: AgentState, active: jax.Array, above: jax.Array, move: jax.Array, step: jax.Array
    ) -> AgentState:
        """θ moves by `move`, [A], times the hats, and its average follows.

        The distances become (1 - τ)(m - θ - moved), over G (1 - τ).
        """
        rows, left = state.params["heads"], state.optimiser
        if self.act_average:
            # The first step sets m to θ.
            move = jnp.concatenate([move, jnp.where(step == 0, 0.0, -move / left)])
        rows = add(rows, active, Pair(lower=(1.0 - above)[:, None] * move, upper=above[:, None] * move))
        if self.act_average:
            left = jnp.where(step == 0, 1.0, left * (1.0 - self.act_rate(step)))
            # A loop of one turn or none: XLA would copy the rows into and out of a condition.
            last = (step + 1) % self.period == 0
            of_row = jnp.where(jnp.arange(rows.shape[1]) < self._actions(state), 1.0, left)
            rows = jax.lax.fori_loop(0, jnp.where(last, 1, 0), lambda _, all_bins: of_row * all_bins, rows)
            left = jnp.where(last, 1.0, left)
        return state._replace(params=state.params | {"heads": rows}, optimiser=left)


class Pair(NamedTuple):
    """What each unit's two active bins have: [units, numbers] each."""

    lower: jax.Array
    upper: jax.Array


def active_bins(lower: jax.Array, bins: int) -> jax.Array:
    """[units]: the row of the lower one of each unit's two active bins; the upper one's is the next."""
    return jnp.arange(lower.shape[0]) * bins + lower


def read(rows: jax.Array, active: jax.Array, count: int) -> Pair:
    """The first `count` numbers of the active rows."""
    lower, upper = (rows.at[row, :count].get(mode="promise_in_bounds") for row in (active, active + 1))
    return Pair(lower, upper)


def add(rows: jax.Array, active: jax.Array, moved: Pair) -> jax.Array:
    for row, values in zip((active, active + 1), moved, strict=True):
        rows = rows.at[row].add(values, mode="promise_in_bounds", unique_indices=True)
    return rows


def weigh(above: jax.Array, values: Pair) -> jax.Array:
    """[numbers]: Σ over units of what their two bins have, times the hats 1 - above and above."""
    return jnp.sum(values.lower + above[:, None] * (values.upper - values.lower), axis=0)


def without_heads(params: Params) -> Params:
    return {name: part for name, part in params.items() if name != "heads"}
