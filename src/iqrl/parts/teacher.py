"""The target's word on transitions: Q(s, ·; θ⁻) and Q(s', ·; θ⁻), every head and action.

The target stands still for C steps, so what it says of a stored transition can be remembered beside it
and renewed at each sync. That costs 2N/C evaluations per step where asking it anew for every batch costs
twice the batch size: for small buffers nearly half the work of an update disappears. For large ones,
asking anew is cheaper. Both are here and answer the same. A third is for agents without a target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from iqrl.parts.networks import Network, Output, Params
from iqrl.parts.perception import Perception
from iqrl.parts.replay import Batch


class QFunction(NamedTuple):
    """All that decides Q(s, ·): θ and how it sees s. Held fast, it is the target."""

    params: Params
    perception: Any


Answer = Callable[[QFunction, jax.Array], Output]
"""what a Q-function says of a state"""


def answers(network: Network, perception: Perception) -> Answer:
    return lambda q, obs: network.apply(q.params, perception.encode(q.perception, obs))


def on_batch(answer: Answer) -> Answer:
    """The same on a batch [d, B]: the batch is the last axis of what goes in and of what comes out."""
    on_rows = jax.vmap(answer, in_axes=(None, 0), out_axes=-1)
    # States enter the first product as rows, in the layout they are stored in; XLA cancels the transposes.
    return lambda q, obs: on_rows(q, obs.T)


class Teacher(NamedTuple):
    width: int
    """numbers kept beside each stored state"""
    note: Callable[[QFunction, jax.Array], jax.Array]
    """(target, states [n, d]) -> what is kept of them [n, width]"""
    recall: Callable[[QFunction, QFunction, Batch], tuple[Output, Output]]
    """(Q-function, target, batch) -> what is said of s and of s'"""
    lags: bool = True
    """whether there is a target beside the Q-function"""


def recomputed(answer: Answer) -> Teacher:
    """Ask the target anew for every sampled batch."""
    ask = on_batch(answer)

    def recall(now: QFunction, target: QFunction, batch: Batch) -> tuple[Output, Output]:
        return ask(target, batch.steps.obs_tm1), ask(target, batch.steps.obs_t)

    return Teacher(0, lambda target, states: jnp.zeros((states.shape[0], 0)), recall)


def the_network_itself(answer: Answer) -> Teacher:
    """No target: θ answers for itself. The same as a target that follows after every update."""
    teacher = recomputed(answer)

    def recall(now: QFunction, target: QFunction, batch: Batch) -> tuple[Output, Output]:
        return teacher.recall(now, jax.lax.stop_gradient(now), batch)

    return teacher._replace(recall=recall, lags=False)


def remembered(answer: Answer, network: Network, heads: int, actions: int) -> Teacher:
    """Keep what the target said beside each state."""
    ask = jax.vmap(answer, in_axes=(None, 0))

    def note(target: QFunction, states: jax.Array) -> jax.Array:
        return ask(target, states).values.reshape(states.shape[0], -1)

    def recall(now: QFunction, target: QFunction, batch: Batch) -> tuple[Output, Output]:
        per_action = () if network.width == actions else (network.width // actions,)
        size = batch.notes.shape[-1]
        values = batch.notes.reshape(2, heads, actions, *per_action, size)
        # What the hidden layer was is not kept.
        nothing = jnp.zeros((0, size))
        of_s, of_next = (Output(network.q_of(value), value, nothing) for value in values)
        return of_s, of_next

    return Teacher(heads * network.width, note, recall)


def renewing_is_cheaper(capacity: int, batch: float, period: int) -> bool:
    """`batch`: rows per step that are drawn. Renewing a row costs about three times what a row of a batch does."""
    return 3 * capacity / period + 1 < batch
