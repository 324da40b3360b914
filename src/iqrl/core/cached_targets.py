"""Cached targets: the same agent, which remembers what the target network computed for stored states.

The target network does not change between two syncs, so its values of a stored state can be kept and computed anew at
each sync. For small buffers that saves nearly half the work of an update. For large ones, a pass over every batch is
cheaper (`cache_pays`). Both give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from iqrl.core.agent import AgentState, LearnUniforms, QFunction, QLearner
from iqrl.core.networks import Output
from iqrl.core.types import Batch


def cache_pays(capacity: int, batch: float, period: int) -> bool:
    """`batch`: states sampled per step. A state that is refreshed costs about three times one of a batch."""
    return 3 * capacity / period + 1 < batch


@dataclass(frozen=True)
class CachedTargets(QLearner):
    def init(self, key: jax.Array) -> AgentState:
        state = super().init(key)
        return state._replace(cache=jnp.zeros((self.replay.states.count, self.contexts.count * self.network.width)))

    def learn(self, state: AgentState, step: jax.Array, random: LearnUniforms) -> tuple[AgentState, dict]:
        cache, table = state.cache, self.replay.states
        for numbers in table.newest(state.replay, step):
            if table.adjacent:
                cache = jax.lax.dynamic_update_slice(cache, self._values(state, numbers), (numbers[0], 0))
            else:
                cache = self._write(state, cache, numbers)
        return super().learn(state._replace(cache=cache), step, random)

    def sync(self, state: AgentState) -> AgentState:
        state, table = super().sync(state), self.replay.states
        if table.chunk == table.count:
            return state._replace(cache=self._values(state, jnp.arange(table.count)))

        def chunk(number: jax.Array, cache: jax.Array) -> jax.Array:
            some = jnp.minimum(number * table.chunk + jnp.arange(table.chunk), table.count - 1)
            return self._write(state, cache, some)

        chunks = -(-table.used(state.replay) // table.chunk)
        return state._replace(cache=jax.lax.fori_loop(0, chunks, chunk, state.cache))

    def _write(self, state: AgentState, cache: jax.Array, numbers: jax.Array) -> jax.Array:
        return cache.at[numbers].set(self._values(state, numbers))

    def _values(self, state: AgentState, numbers: jax.Array) -> jax.Array:
        """[n, w]: the target network's values of these states."""
        states = self.replay.states.get(state.replay, numbers)
        on_rows = jax.vmap(self.outputs, in_axes=(None, 0))
        return on_rows(state.target, states).values.reshape(states.shape[0], -1)

    def target_outputs(
        self, state: AgentState, online: QFunction, target: QFunction, batch: Batch
    ) -> tuple[Output, Output]:
        heads, width = self.contexts.count, self.network.width
        if batch.states is None:  # states 2i and 2i + 1 are those of slot i
            pairs = state.cache.reshape(-1, 2 * heads * width)
            values = (pairs if batch.slots is None else pairs.at[batch.slots].get(mode="promise_in_bounds")).T
        else:
            values = state.cache.at[batch.states].get(mode="promise_in_bounds").swapaxes(1, 2)
        size = values.shape[-1]
        values = values.reshape(2, heads, *self.network.values_shape, size)
        # The hidden layer is not kept.
        no_features = jnp.zeros((0, size))
        of_s, of_next = (Output(q=self.network.q_of(v), values=v, features=no_features) for v in values)
        return of_s, of_next
