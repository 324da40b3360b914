"""The meter: what the driver calls to measure a run while it happens. It changes nothing that the run computes; the
program with it is another one, though, and may be rounded differently.

Interference is read at every m-th update: the TD errors of transitions kept for this purpose,
before the update and after it. If every update is measured, on all recent transitions, what was computed
after one update is what holds before the next, and only the transition that came in between is new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.agent import Agent, AgentState
from iqrl.config import Run
from iqrl.measure.errors import Errors, change_of_square, chunk_around, in_chunks, td_errors
from iqrl.measure.gradients import gradient_interference
from iqrl.measure.grouping import Grouping, grouping, mean_by_group
from iqrl.measure.interference import Reading, Totals, means, no_readings, with_reading
from iqrl.measure.probes import probe
from iqrl.measure.samples import in_use, into_recent, into_reservoir, spread
from iqrl.parts.contexts import Situation
from iqrl.parts.replay import Transition, pack, relabelled, row_width
from iqrl.tasks.base import Task
from iqrl.tasks.exploring import random_situations


class Meter:
    """Measures nothing."""

    draws = 0
    """uniform numbers it needs per step; they come from a source of their own"""

    def init(self, agent: AgentState) -> Any:
        return ()

    def note(self, state: Any, agent: AgentState, step: Transition, t: jax.Array, uniforms: jax.Array) -> Any:
        """The t-th transition was made."""
        return state

    def begin(self, state: Any, agent: AgentState) -> Any:
        """Learning starts, and what is stored is labelled anew."""
        return state

    def read(self, state: Any, before: AgentState, after: AgentState, t: jax.Array) -> Any:
        """The agent learned after the t-th transition."""
        return state

    def report(self, state: Any, agent: AgentState, steps: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        """After so many steps a period ends: the state for the next one, and what was measured in this one."""
        return state, {}


NOTHING_MEASURED = Meter()


class MeterState(NamedTuple):
    recent: jax.Array
    """[M, W]: the last M transitions"""
    errors: jax.Array
    """[M]: their TD errors, where they are carried from one update to the next"""
    reservoir: jax.Array
    """[R, W]: a uniform sample of all transitions"""
    centres: jax.Array
    """[k, d]: the centroids when the period began"""
    totals: Totals


@dataclass(frozen=True)
class RunMeter(Meter):
    run: Run
    agent: Agent
    held_out: Situation
    grouping: Grouping
    errors: Errors

    draws = 1

    @property
    def whole(self) -> bool:
        """Whether all recent transitions are evaluated, and not a sample of them."""
        return not 0 < self.run.measure_sample < self.run.measure_recent

    @property
    def carries(self) -> bool:
        """Whether an update's errors hold until the next: perception that moves in between would make them stale."""
        sight = jax.eval_shape(self.agent.perception.init, jax.random.key(0))
        return self.whole and self.run.measure_every == 1 and not jax.tree.leaves(sight)

    def init(self, agent: AgentState) -> MeterState:
        width = row_width(self.agent.obs_size)
        return MeterState(
            recent=jnp.zeros((self.run.measure_recent, width)),
            errors=jnp.zeros(self.run.measure_recent if self.carries else 0),
            reservoir=jnp.zeros((self.run.measure_reservoir, width)),
            centres=self._centres(agent),
            totals=no_readings(self.grouping.count),
        )

    def _centres(self, agent: AgentState) -> jax.Array:
        centres = self.agent.contexts.centres
        return centres(agent.contexts) if centres else jnp.zeros((0, self.agent.obs_size))

    def note(
        self, state: MeterState, agent: AgentState, step: Transition, t: jax.Array, uniforms: jax.Array
    ) -> MeterState:
        row = pack(step)
        recent = into_recent(state.recent, row, t)
        reservoir = into_reservoir(state.reservoir, row, t, uniforms[0])
        errors = self._with_error_of(recent, state.errors, agent, t) if self.carries else state.errors
        return state._replace(recent=recent, reservoir=reservoir, errors=errors)

    def _with_error_of(self, recent: jax.Array, errors: jax.Array, agent: AgentState, t: jax.Array) -> jax.Array:
        """The newest transition's error among the others. Its whole chunk is evaluated, since a row alone would be
        rounded differently, and a change of zero would not be zero."""
        chunk, start = chunk_around(recent, t % recent.shape[0])
        q = agent.q_function
        return jax.lax.dynamic_update_slice_in_dim(errors, self.errors(q, q, chunk), start, axis=0)

    def begin(self, state: MeterState, agent: AgentState) -> MeterState:
        recent, reservoir, label = state.recent, state.reservoir, self.agent.label(agent)
        if label is not None:
            recent, reservoir = (relabelled(rows, self.agent.obs_size, label) for rows in (recent, reservoir))
        q = agent.q_function
        errors = in_chunks(self.errors)(q, q, recent) if self.carries else state.errors
        return state._replace(recent=recent, reservoir=reservoir, errors=errors)

    def read(self, state: MeterState, before: AgentState, after: AgentState, t: jax.Array) -> MeterState:
        every = self.run.measure_every
        if every == 1:
            return self.read_now(state, before, after, t)
        # Only the totals leave the branch: XLA would copy the transitions if they did.
        totals = lambda: self.read_now(state, before, after, t).totals
        due = (t + 1) // self.run.update_every % every == 0
        return state._replace(totals=jax.lax.cond(due, totals, lambda: state.totals))

    def read_now(self, state: MeterState, before: AgentState, after: AgentState, t: jax.Array) -> MeterState:
        """Read, whether it is due or not."""
        then, now = before.q_function, after.q_function
        whole = lambda: (state.recent, in_use(state.recent, t))
        rows, weights = whole() if self.whole else spread(state.recent, t, self.run.measure_sample)
        errors = in_chunks(self.errors) if self.whole else self.errors
        errors_before = state.errors if self.carries else errors(then, then, rows)
        errors_after = errors(now, now, rows)
        mean = lambda values: jnp.sum(weights * values) / jnp.sum(weights)
        change = change_of_square(errors_before, errors_after)
        by_context = mean_by_group(change, self.grouping.of_rows(rows), weights, self.grouping.count)
        raised = self._update_interference(state, before, after, t)
        reading = Reading(mean(change), mean(jnp.square(errors_before)), *by_context, raised)
        kept = errors_after if self.carries else state.errors
        return state._replace(errors=kept, totals=with_reading(state.totals, reading))

    def _update_interference(self, state: MeterState, before: AgentState, after: AgentState, t: jax.Array) -> jax.Array:
        """Both errors with one target, the one that the update had."""
        target = self.agent.target_of(before)
        size = self.run.measure_reservoir
        rows, weights = spread(state.reservoir, t, size if self.whole else min(self.run.measure_sample, size))
        then, now = (self.errors(agent.q_function, target, rows) for agent in (before, after))
        return jnp.maximum(jnp.sum(weights * change_of_square(then, now)) / jnp.sum(weights), 0.0)

    def report(self, state: MeterState, agent: AgentState, steps: jax.Array) -> tuple[MeterState, dict[str, jax.Array]]:
        q, target, centres = agent.q_function, self.agent.target_of(agent), self._centres(agent)
        rows, used = state.reservoir, in_use(state.reservoir, steps - 1)
        columns = means(state.totals)
        columns |= gradient_interference(self.agent, self.grouping, q, target, rows, used)
        columns |= probe(self.agent, agent, self.held_out)
        if centres.size:
            columns["centroid_movement"] = jnp.sqrt(jnp.sum(jnp.square(centres - state.centres), axis=1))
        return state._replace(centres=centres, totals=no_readings(self.grouping.count)), columns


def build_meter(run: Run, task: Task, agent: Agent) -> Meter:
    if not run.measure_every:
        return NOTHING_MEASURED
    held_out = random_situations(task, run.measure_states)
    contexts = grouping(agent, task.low, task.high, np.asarray(held_out.obs))
    return RunMeter(run, agent, held_out, contexts, td_errors(agent))
