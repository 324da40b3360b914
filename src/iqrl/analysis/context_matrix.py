"""What training on one context does to the others: the paper's picture of interference among contexts.

A finished agent is taken as it is, and trained on the transitions of one context alone, by its own update. Before and
after, the loss on every context is measured. The target θ⁻ is the network before training and is held fast, also
where the method has no target network: both losses are then errors with regard to the same values, and only the
predictions move. One half of each context's transitions is trained on, the other half measured.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.agent import Agent, AgentState
from iqrl.analysis.experience import gather
from iqrl.analysis.numbering import alike, clustered
from iqrl.analysis.retraining import held_fast, losses, retrainable, trained_on
from iqrl.errors import BadInput
from iqrl.results import Result, mean_known

FEWEST = 50
"""transitions that a context must have: one with fewer is neither trained on nor measured"""


class ContextMatrix(NamedTuple):
    """S seeds, C contexts; NaN where a context has too few transitions, or no loss that could change."""

    change: np.ndarray
    """[S, C, C]: (after - before) / before of the loss on context j (column) when context i (row) is trained on"""
    loss_before: np.ndarray
    """[S, C]: mean Huber loss of the TD errors on each context"""
    counts: np.ndarray
    """[S, C]: transitions of each context, half of them trained on and half measured"""
    numbers: np.ndarray
    """[S, C]: the number that each context has in the agent of that seed, where contexts are the agent's own"""
    own: bool
    """whether they are, or are clusters found afterwards"""

    @property
    def shares(self) -> np.ndarray:
        """[S, C]: the share of transitions in each context."""
        return self.counts / self.counts.sum(axis=1, keepdims=True)

    @property
    def mean_change(self) -> np.ndarray:
        """[C, C]: over the seeds for which it is known; NaN where it is for none."""
        return mean_known(self.change, axis=0)

    @property
    def left_out(self) -> list[tuple[int, int]]:
        """(position of the seed, context) of those with too few transitions."""
        return [(int(s), int(c)) for s, c in np.argwhere(self.counts < FEWEST)]

    def __str__(self) -> str:
        """The mean over seeds, and which contexts were left out."""
        names = [f"context {c}" for c in range(self.counts.shape[1])]
        lines = ["trained on " + "".join(f"{name:>12}" for name in names)]
        for name, row in zip(names, self.mean_change, strict=True):
            cells = ["too few" if np.isnan(change) else f"{change:+.1%}" for change in row]
            lines.append(f"{name:<11}" + "".join(f"{cell:>12}" for cell in cells))
        lines += [f"{names[c]} of seed {s}: {self.counts[s, c]} transitions, too few" for s, c in self.left_out]
        return "\n".join(lines)


def context_matrix(
    result: Result, updates: int = 1000, contexts: int = 3, settle: int = 1000, count: int = 10_000, seed: int = 0
) -> ContextMatrix:
    """Train each agent of a run `updates` times on one context alone, for every context, and see all losses change.

    Contexts are the agent's own where it has several; otherwise the states that its seeds meet are divided into
    `contexts` clusters. An update is the method's own, with its regularisers at the weight of the run's last step
    and the optimiser as the run left it; only that its batches hold transitions of one context and nothing else.

    Before that, and before the first measurement, there are `settle` updates on all contexts, as there are between
    two syncs of a target. A target that has just moved leaves an error that all states share, above all where γ is 1;
    any training lessens it everywhere, and 0 shows how much that hides.
    """
    check_training(updates, contexts, settle)
    own, k = result.agent.contexts.count > 1, result.agent.contexts.count
    experience = gather(result, count, seed=seed)
    labels, numbers = alike(experience, k) if own else clustered(experience.states, result.task, contexts, seed)
    training = _training(result, updates, settle, seed)
    in_turn = jax.jit(partial(jax.lax.map, lambda given: _of_seed(training, numbers.shape[1], *given)))
    loss, counts = map(np.asarray, in_turn((result.agent_state, experience.rows, labels)))
    return ContextMatrix(*_compared(loss, counts), counts, numbers, own)


def check_training(updates: int, contexts: int, settle: int) -> None:
    for name, value, least in (("updates", updates, 1), ("contexts", contexts, 2), ("settle", settle, 0)):
        if value < least:
            raise BadInput(f"{name} is {value}; it must be at least {least}.")


class _Training(NamedTuple):
    """How agents are trained, the same for every seed and context."""

    agent: Agent
    t: int
    """the last step of the run: schedules stay where they were then"""
    settling: np.ndarray
    alone: np.ndarray
    """the uniform numbers of each update"""


def _training(result: Result, updates: int, settle: int, seed: int) -> _Training:
    agent = retrainable(result)
    uniforms = np.random.default_rng(seed).random((settle + updates, agent.learn_draws), dtype=np.float32)
    return _Training(agent, int(result.steps[-1]) - 1, uniforms[:settle], uniforms[settle:])


def _of_seed(
    training: _Training, contexts: int, state: AgentState, rows: jax.Array, labels: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The loss on each context before [0, C] and after training on each [1…, C], and their counts [C].

    One program measures before and after, so that what did not change is found to be the same to the last bit.
    """
    belongs = labels == jnp.arange(contexts)[:, None]
    learned, measured = halves(belongs)
    train = lambda state, members, uniforms: trained_on(training.agent, state, rows, members, training.t, uniforms)
    state = train(held_fast(state), jnp.any(learned, axis=0), training.settling)
    after = jax.vmap(lambda members: train(state, members, training.alone).params)(learned)
    all_params = jax.tree.map(lambda old, new: jnp.concatenate([old[None], new]), state.params, after)
    total = jax.vmap(lambda params: measured @ losses(training.agent, params, state, rows))(all_params)
    return total / jnp.maximum(jnp.sum(measured, axis=1), 1), jnp.sum(belongs, axis=1)


def halves(belongs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Every second transition of each context [C, n], and the others; they are in no order."""
    odd = jnp.cumsum(belongs, axis=1) % 2 == 1
    return belongs & odd, belongs & ~odd


def _compared(loss: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Change [S, C, C] and loss before [S, C], where they are known."""
    enough = counts >= FEWEST
    before = np.where(enough, loss[:, 0], np.nan)
    # Where nothing was lost before, there is nothing to compare with.
    divisor = np.where(before > 0, before, np.nan)[:, None]
    return np.where(enough[:, :, None], (loss[:, 1:] - divisor) / divisor, np.nan), before
