"""What training on one context does to the others: the paper's figure of interference among contexts.

A finished agent is trained on the transitions of one context alone, by its own update. The loss on every context is
measured before and after. The target θ⁻ is the network before training and stays fixed, also where the method has no
target network: both losses are then errors with regard to the same values, and only the predictions move. Half of each
context's transitions are trained on, the other half is measured.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from iqrl.core import randomness
from iqrl.core.agent import AgentState, QLearner, as_q_learner, plain_form
from iqrl.core.contexts.kmeans import kmeans
from iqrl.core.contexts.sequential_kmeans import nearest
from iqrl.core.losses import huber
from iqrl.core.networks import Params
from iqrl.core.replay.base import Replay, unpack
from iqrl.core.scaling import fixed
from iqrl.core.types import Batch
from iqrl.diagnostics.analysis.experience import Experience, gather
from iqrl.diagnostics.interference.td_errors import evaluate_batch, one_step_errors
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.statistics.curves import mean_finite
from iqrl.training.results import Result

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
    """whether contexts are the agent's own, or clusters found afterwards"""

    @property
    def shares(self) -> np.ndarray:
        """[S, C]: the share of transitions in each context."""
        return self.counts / self.counts.sum(axis=1, keepdims=True)

    @property
    def mean_change(self) -> np.ndarray:
        """[C, C]: over the seeds that have a number; NaN where none has."""
        return mean_finite(self.change, axis=0)

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
    """Train each agent of a run `updates` times on one context alone, for every context, and measure all losses.

    Contexts are the agent's own where it has several; otherwise the states that its seeds meet are divided into
    `contexts` clusters. An update is the method's own, with its regularisers at the weight of the run's last step
    and the optimiser as the run left it; only its batches differ: they hold transitions of one context.

    Before that, and before the first measurement, there are `settle` updates on all contexts, as there are between
    two syncs of a target. A target that has just moved leaves an error that all states share, above all where γ is 1;
    any training reduces it everywhere. With 0, the matrix shows how much that hides.
    """
    check_training(updates, contexts, settle)
    own, k = as_q_learner(result.agent).contexts.count > 1, as_q_learner(result.agent).contexts.count
    experience = gather(result, count, seed=seed)
    labels, numbers = (
        match_contexts(experience, k) if own else cluster_states(experience.states, result.task, contexts, seed)
    )
    training = _plan_training(result, updates, settle, seed)
    states = jax.vmap(as_q_learner(result.agent).dense)(result.agent_state)
    measure = jax.jit(partial(jax.lax.map, lambda given: _measure_seed(training, numbers.shape[1], *given)))
    loss, counts = map(np.asarray, measure((states, experience.rows, labels)))
    change, before = _compare_losses(loss, counts)
    return ContextMatrix(change=change, loss_before=before, counts=counts, numbers=numbers, own=own)


def check_training(updates: int, contexts: int, settle: int) -> None:
    for name, value, least in (("updates", updates, 1), ("contexts", contexts, 2), ("settle", settle, 0)):
        if value < least:
            raise BadInput(f"{name} is {value}; it must be at least {least}.")


# The contexts, with the same numbers in all seeds of a run, so that a mean over seeds has a meaning


def cluster_states(states: np.ndarray, task: Task, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """K-means on the states [S, n, d] of all seeds together: labels [S, n] and the numbers 0 … k - 1 of each seed."""
    weights = fixed(task.low, task.high).weights(())
    everything = jnp.asarray(states).reshape(-1, states.shape[-1])
    centroids, _ = jax.jit(kmeans, static_argnums=2)(jax.random.key(seed), everything, k, weights)
    labels = nearest(jnp.asarray(states), centroids, weights)
    return np.asarray(labels), np.tile(np.arange(k), (len(states), 1))


def match_contexts(experience: Experience, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The agents' own contexts, renumbered: labels [S, n], and the number [S, k] that each has in its agent.

    Each agent divides states by itself, so context 0 of one seed may be context 2 of another. Every context gets the
    number of the context of the first seed that it resembles most; the sum of all distances is the smallest possible.
    """
    labels = experience.contexts
    means = np.stack([_mean_by_context(*each, k) for each in zip(_describe_inputs(experience), labels, strict=True)])
    distances = np.square(means[:1, :, None] - means[:, None]).sum(axis=-1)
    # An empty context has no mean: it gets the number that is left over.
    pairs = [linear_sum_assignment(np.nan_to_num(distance, nan=1e6)) for distance in distances]
    numbers = np.stack([own for _, own in pairs])
    return np.take_along_axis(np.argsort(numbers, axis=1), labels, axis=1), numbers


def _describe_inputs(experience: Experience) -> np.ndarray:
    """[S, n, …]: all variables that a context may depend on, each in units of its deviation."""
    obs, first, score = map(np.asarray, experience.inputs[:3])
    variables = np.concatenate([obs, first, score[..., None]], axis=-1)
    return variables / np.maximum(variables.std(axis=(0, 1)), 1e-6)


def _mean_by_context(variables: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """[k, …]: the mean of each context."""
    belongs = labels == np.arange(k)[:, None]
    counts = belongs.sum(axis=1, keepdims=True)
    return np.where(counts > 0, belongs @ variables / np.maximum(counts, 1), np.nan)


# A finished agent, trained further on some of its transitions, towards a target that stays fixed


def prepare_agent(result: Result) -> QLearner:
    """The run's agent with a target for every method, one update at a time, and a replay that is yet to be chosen.

    A batch is as large as in the run: `batch_size`, or the whole buffer where the run takes that.
    """
    agent, run = as_q_learner(result.agent), result.run
    batch = run.buffer_size if run.sampling == "whole" else run.batch_size
    own: dict[str, Any] = {"has_target": True, "replay": agent.replay._replace(num_uniforms=batch), "gradient_steps": 1}
    own |= {"act_average": 0.0, "target_average": 0.0}
    # Not of the class of the run's agent: it may cache what a target computed for its own replay.
    return dataclasses.replace(as_q_learner(plain_form(agent)), **own)


def fix_target(state: AgentState) -> AgentState:
    """θ⁻ <- θ, and nothing stored."""
    return state._replace(target=state.q_function, replay=(), cache=(), average=())


def train_on(
    agent: QLearner, state: AgentState, rows: jax.Array, members: jax.Array, t: int, uniforms: jax.Array
) -> AgentState:
    """The agent after one update for each row of `uniforms`, with batches drawn from the rows that are members.

    Schedules are where they were at step t.
    """
    agent = dataclasses.replace(agent, replay=_replay_of(rows, agent, members))
    random = lambda row: randomness.hand_out(agent.learn_uniforms, row)
    update = lambda state, row: (agent.learn(state, jnp.int32(t), random(row))[0], None)
    return jax.lax.scan(update, state, uniforms)[0]


def _replay_of(rows: jax.Array, agent: QLearner, members: jax.Array) -> Replay:
    """A replay that holds nothing but the members among the rows."""
    members_first, size = jnp.argsort(~members, stable=True), jnp.sum(members)

    def sample(stored: tuple, t: jax.Array, uniforms: jax.Array) -> Batch:
        drawn = jnp.minimum((uniforms * size).astype(jnp.int32), size - 1)
        steps = unpack(rows[members_first[drawn]].T, agent.obs_size, agent.masked_actions)
        # Rows drawn at random do not follow each other: an eligibility trace must not run from one to the next.
        steps = steps._replace(done=jnp.ones_like(steps.done))
        return Batch(transitions=steps, slots=None, weights=None)

    unchanged = lambda stored, *rest: stored
    return agent.replay._replace(
        init=tuple, add=unchanged, sample=sample, update_priorities=unchanged, relabel=unchanged
    )


def compute_losses(agent: QLearner, params: Params, state: AgentState, rows: jax.Array) -> jax.Array:
    """[n]: L(δ), δ = r + γ max_a Q(s', a, ω(s'); θ⁻) - Q(s, a, ω(s); θ)."""
    steps, evaluate = unpack(rows.T, agent.obs_size, agent.masked_actions), evaluate_batch(agent)
    of_s = evaluate(state.q_function._replace(params=params), steps.obs_tm1)
    return huber(one_step_errors(steps, of_s, evaluate(state.target, steps.obs_t)))


# The measurement


class _Training(NamedTuple):
    """How agents are trained, the same for every seed and context."""

    agent: QLearner
    t: int
    """the last step of the run: schedules stay where they were then"""
    settling: np.ndarray
    """the uniform numbers of each update on all contexts"""
    alone: np.ndarray
    """those of each update on one context"""


def _plan_training(result: Result, updates: int, settle: int, seed: int) -> _Training:
    agent = prepare_agent(result)
    uniforms = np.random.default_rng(seed).random(
        (settle + updates, randomness.count(agent.learn_uniforms)), dtype=np.float32
    )
    last = int(result.steps[-1]) - 1
    return _Training(agent=agent, t=last, settling=uniforms[:settle], alone=uniforms[settle:])


def _measure_seed(
    training: _Training, contexts: int, state: AgentState, rows: jax.Array, labels: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The loss on each context before [0, C] and after training on each [1…, C], and their counts [C].

    One program measures before and after, so that what did not change is the same to the last bit.
    """
    belongs = labels == jnp.arange(contexts)[:, None]
    learned, measured = split_halves(belongs)
    train = lambda state, members, uniforms: train_on(training.agent, state, rows, members, training.t, uniforms)
    state = train(fix_target(state), jnp.any(learned, axis=0), training.settling)
    after = jax.vmap(lambda members: train(state, members, training.alone).params)(learned)
    all_params = jax.tree.map(lambda old, new: jnp.concatenate([old[None], new]), state.params, after)
    total = jax.vmap(lambda params: measured @ compute_losses(training.agent, params, state, rows))(all_params)
    return total / jnp.maximum(jnp.sum(measured, axis=1), 1), jnp.sum(belongs, axis=1)


def split_halves(belongs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Every second transition of each context [C, n], and the others. The transitions are in no order."""
    odd = jnp.cumsum(belongs, axis=1) % 2 == 1
    return belongs & odd, belongs & ~odd


def _compare_losses(loss: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Change [S, C, C] and loss before [S, C]; NaN where there are too few transitions."""
    enough = counts >= FEWEST
    before = np.where(enough, loss[:, 0], np.nan)
    # Where the loss was 0 before, there is nothing to compare with.
    divisor = np.where(before > 0, before, np.nan)[:, None]
    return np.where(enough[:, :, None], (loss[:, 1:] - divisor) / divisor, np.nan), before
