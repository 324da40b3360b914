"""The meter: measures the interference of a run's updates while the run is trained.

Interference is the change that an update makes to the squared TD error of other transitions:

AEI (the paper, after Liu et al. 2020)     E_d[δ(θ_t)² - δ(θ_{t-1})²], d the recent transitions, both δ by one network
negative interference (the paper)          its mean over the updates that raised the error
update interference (Liu et al. 2023)      max(E_d[…], 0), d a reservoir, both δ with the same fixed target

The driver calls the meter at every step, when learning starts, around every update, and at the end of a period. The
meter changes nothing that the run computes; but the compiled program is another one, and XLA may round it differently.

Every m-th update is measured. If every update is measured, on all recent transitions, the errors after one update are
those before the next, and only the transition that came in between is evaluated anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core.agent import AgentState, QFunction, QLearner, as_q_learner
from iqrl.core.replay.base import pack, relabel_rows, row_width
from iqrl.core.types import Agent, ContextInputs, Transition
from iqrl.diagnostics.interference.probes import probe_network
from iqrl.diagnostics.interference.samples import add_recent, add_to_reservoir, mask_filled, take_spread
from iqrl.diagnostics.interference.td_errors import (
    Errors,
    Grouping,
    change_of_square,
    chunk_around,
    gradient_interference,
    group_by_context,
    in_chunks,
    mean_by_group,
    td_errors,
)
from iqrl.diagnostics.metrics import check_listed
from iqrl.envs.base import Task
from iqrl.envs.random_policy import random_inputs
from iqrl.settings import Run
from iqrl.training.timetable import timetable_of

Columns = dict[str, jax.Array]
"""metrics of a period, by name"""


class Meter:
    """What the driver calls. This one measures nothing; its state is empty."""

    num_uniforms = 0
    """uniform numbers that it needs per step; they come from a source of their own"""

    def init(self, agent: AgentState) -> Any:
        return ()

    def observe(self, state: Any, agent: AgentState, step: Transition, t: jax.Array, uniforms: jax.Array) -> Any:
        """Store the t-th transition."""
        return state

    def start_learning(self, state: Any, agent: AgentState) -> Any:
        """Label the stored transitions again, as the agent does when learning starts."""
        return state

    def measure(self, state: Any, before: AgentState, after: AgentState, t: jax.Array) -> Any:
        """Measure the update after the t-th transition, if it is due."""
        return state

    def report(self, state: Any, agent: AgentState, steps: jax.Array) -> tuple[Any, Columns]:
        """The state for the next period, and the metrics of the one that ended after `steps` steps."""
        return state, {}


NOTHING_MEASURED = Meter()


# One measured update, and the sums over a period


class Reading(NamedTuple):
    """What one update did."""

    aei: jax.Array
    squared_error: jax.Array
    """mean δ² before the update"""
    by_context: jax.Array
    """[C]: the AEI of each context"""
    present: jax.Array
    """[C]: whether there were transitions of the context"""
    update_interference: jax.Array


class Totals(NamedTuple):
    """Sums over the readings of a period."""

    readings: jax.Array
    """how many there were"""
    aei: jax.Array
    squared_error: jax.Array
    raised: jax.Array
    """the sum of AEI over the updates that raised the error"""
    raises: jax.Array
    """how many those were"""
    largest: jax.Array
    """the largest AEI"""
    by_context: jax.Array
    present: jax.Array
    update_interference: jax.Array


def zero_totals(contexts: int) -> Totals:
    zero, per_context = jnp.float32(0), jnp.zeros(contexts)
    return Totals(
        readings=zero,
        aei=zero,
        squared_error=zero,
        raised=zero,
        raises=zero,
        largest=jnp.float32(-jnp.inf),
        by_context=per_context,
        present=per_context,
        update_interference=zero,
    )


def add_reading(totals: Totals, reading: Reading) -> Totals:
    raised = reading.aei > 0
    return Totals(
        readings=totals.readings + 1,
        aei=totals.aei + reading.aei,
        squared_error=totals.squared_error + reading.squared_error,
        raised=totals.raised + jnp.where(raised, reading.aei, 0.0),
        raises=totals.raises + raised,
        largest=jnp.maximum(totals.largest, reading.aei),
        by_context=totals.by_context + reading.by_context,
        present=totals.present + reading.present,
        update_interference=totals.update_interference + reading.update_interference,
    )


def average(totals: Totals) -> Columns:
    """The metrics of a period; NaN where there was nothing to take the mean of."""
    per_reading = lambda total: _divide(total, totals.readings)
    return {
        "aei": per_reading(totals.aei),
        "negative_interference": _divide(totals.raised, totals.raises),
        "raised_share": per_reading(totals.raises),
        "aei_largest": jnp.where(totals.readings > 0, totals.largest, jnp.nan),
        "squared_td_error": per_reading(totals.squared_error),
        "aei_contexts": _divide(totals.by_context, totals.present),
        "update_interference": per_reading(totals.update_interference),
    }


def _divide(total: jax.Array, count: jax.Array) -> jax.Array:
    return jnp.where(count > 0, total / jnp.maximum(count, 1), jnp.nan)


# The meter of a measured run


class MeterState(NamedTuple):
    recent: jax.Array
    """[M, W]: the last M transitions"""
    errors: jax.Array
    """[M]: their TD errors, where they are carried from one update to the next; otherwise empty"""
    reservoir: jax.Array
    """[R, W]: a uniform sample of all transitions"""
    centres: jax.Array
    """[k, d]: the centroids at the start of the period"""
    totals: Totals


@dataclass(frozen=True)
class RunMeter(Meter):
    """Measures every `run.measure_every`-th update of one seed."""

    run: Run
    agent: QLearner
    held_out: ContextInputs
    grouping: Grouping
    errors: Errors

    num_uniforms = 1

    def q_of(self, agent: AgentState) -> QFunction:
        """The Q-function that is measured."""
        return {"acting": self.agent.acting, "learned": self.agent.live}[self.run.measure_weights](agent)

    @property
    def uses_all(self) -> bool:
        """Whether all recent transitions are evaluated, and not a sample of them."""
        return not 0 < self.run.measure_sample < self.run.measure_recent

    @property
    def carries_errors(self) -> bool:
        """Whether the errors after an update hold until the next. A preprocessor that moves makes them stale."""
        preprocessor = jax.eval_shape(self.agent.preprocessor.init, jax.random.key(0))
        return self.uses_all and self.run.measure_every == 1 and not jax.tree.leaves(preprocessor)

    def init(self, agent: AgentState) -> MeterState:
        width = row_width(self.agent.obs_size, self.agent.masked_actions)
        return MeterState(
            recent=jnp.zeros((self.run.measure_recent, width)),
            errors=jnp.zeros(self.run.measure_recent if self.carries_errors else 0),
            reservoir=jnp.zeros((self.run.measure_reservoir, width)),
            centres=self._locate_centres(agent),
            totals=zero_totals(self.grouping.count),
        )

    def _locate_centres(self, agent: AgentState) -> jax.Array:
        centres = self.agent.contexts.centres
        return centres(agent.contexts) if centres else jnp.zeros((0, self.agent.obs_size))

    def observe(
        self, state: MeterState, agent: AgentState, step: Transition, t: jax.Array, uniforms: jax.Array
    ) -> MeterState:
        row = pack(step)
        recent = add_recent(state.recent, row, t)
        reservoir = add_to_reservoir(state.reservoir, row, t, uniforms[0])
        errors = self._evaluate_newest(recent, state.errors, agent, t) if self.carries_errors else state.errors
        return state._replace(recent=recent, reservoir=reservoir, errors=errors)

    def _evaluate_newest(self, recent: jax.Array, errors: jax.Array, agent: AgentState, t: jax.Array) -> jax.Array:
        """The errors with that of the newest transition.

        Its whole chunk is evaluated: a row alone would be rounded differently, and a change of zero would not be zero.
        """
        chunk, start = chunk_around(recent, t % recent.shape[0])
        q = self.q_of(agent)
        return jax.lax.dynamic_update_slice_in_dim(errors, self.errors(q, q, chunk), start, axis=0)

    def start_learning(self, state: MeterState, agent: AgentState) -> MeterState:
        recent, reservoir, label = state.recent, state.reservoir, self.agent.label(agent)
        if label is not None:
            size, actions = self.agent.obs_size, self.agent.masked_actions
            recent, reservoir = (relabel_rows(rows, size, label, actions) for rows in (recent, reservoir))
        q = self.q_of(agent)
        errors = in_chunks(self.errors)(q, q, recent) if self.carries_errors else state.errors
        return state._replace(recent=recent, reservoir=reservoir, errors=errors)

    def measure(self, state: MeterState, before: AgentState, after: AgentState, t: jax.Array) -> MeterState:
        every = self.run.measure_every
        if every == 1:
            return self.measure_now(state, before, after, t)
        # Only the totals leave the branch: XLA would copy the transitions if they did.
        totals = lambda: self.measure_now(state, before, after, t).totals
        due = timetable_of(self.run, self.agent.syncs).measures(t)
        return state._replace(totals=jax.lax.cond(due, totals, lambda: state.totals))

    def measure_now(self, state: MeterState, before: AgentState, after: AgentState, t: jax.Array) -> MeterState:
        """Measure the update, whether it is due or not."""
        q_before, q_after = self.q_of(before), self.q_of(after)
        if self.uses_all:
            rows, weights, errors = state.recent, mask_filled(state.recent, t), in_chunks(self.errors)
        else:
            (rows, weights), errors = take_spread(state.recent, t, self.run.measure_sample), self.errors
        errors_before = state.errors if self.carries_errors else errors(q_before, q_before, rows)
        errors_after = errors(q_after, q_after, rows)
        change = change_of_square(errors_before, errors_after)
        by_context, present = mean_by_group(change, self.grouping.of_rows(rows), weights, self.grouping.count)
        reading = Reading(
            aei=_mean(change, weights),
            squared_error=_mean(jnp.square(errors_before), weights),
            by_context=by_context,
            present=present,
            update_interference=self._measure_on_reservoir(state, before, after, t),
        )
        carried = errors_after if self.carries_errors else state.errors
        return state._replace(errors=carried, totals=add_reading(state.totals, reading))

    def _measure_on_reservoir(
        self, state: MeterState, before: AgentState, after: AgentState, t: jax.Array
    ) -> jax.Array:
        """Update interference: both errors with the target that the update had."""
        target, size = self.agent.target_of(before), self.run.measure_reservoir
        count = size if self.uses_all else min(self.run.measure_sample, size)
        rows, weights = take_spread(state.reservoir, t, count)
        errors_before, errors_after = (self.errors(self.q_of(agent), target, rows) for agent in (before, after))
        return jnp.maximum(_mean(change_of_square(errors_before, errors_after), weights), 0.0)

    def report(self, state: MeterState, agent: AgentState, steps: jax.Array) -> tuple[MeterState, Columns]:
        q, target, centres = self.q_of(agent), self.agent.target_of(agent), self._locate_centres(agent)
        rows, weights = state.reservoir, mask_filled(state.reservoir, steps - 1)
        columns = average(state.totals)
        columns |= gradient_interference(self.agent, self.grouping, q, target, rows, weights)
        columns |= probe_network(self.agent, agent, q, self.held_out)
        if centres.size:
            columns["centroid_movement"] = jnp.sqrt(jnp.sum(jnp.square(centres - state.centres), axis=1))
        check_listed(columns)
        return state._replace(centres=centres, totals=zero_totals(self.grouping.count)), columns


def _mean(values: jax.Array, weights: jax.Array) -> jax.Array:
    return jnp.sum(weights * values) / jnp.sum(weights)


def build_meter(run: Run, task: Task, agent: Agent) -> Meter:
    """The meter of a run; one that measures nothing unless `run.measure_every` is set."""
    if not run.measure_every:
        return NOTHING_MEASURED
    learner, held_out = as_q_learner(agent), random_inputs(task, run.measure_states)
    contexts = group_by_context(learner, task.low, task.high, np.asarray(held_out.obs))
    return RunMeter(run=run, agent=learner, held_out=held_out, grouping=contexts, errors=td_errors(learner))
