"""What a run costs: operations by the paper's formula and in the compiled program, and where its time goes.

Training is one compiled program, which no profiler takes apart. So programs that do less and less are timed beside it,
all through the driver that trains. What one program takes more than the one before it is the time of what it adds:
environment, acting, storing and clustering, learning, measuring.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iqrl.core import contexts, randomness, schedules
from iqrl.core.agent import QLearner, as_q_learner
from iqrl.core.networks import Output
from iqrl.diagnostics.analysis.flops import count_pieces, run_flops
from iqrl.diagnostics.interference.meter import NOTHING_MEASURED
from iqrl.settings import Run
from iqrl.training.compilation import COMPILER_OPTIONS, compile_together
from iqrl.training.compiled import Driver, Loop, Uniforms
from iqrl.training.loop import driver_of
from iqrl.training.run_directory import RunStore, describe
from iqrl.training.states import Carry, Period, StepUniforms, TrainState, end_period, zero_sums

STEPS, SECONDS = 4000, 0.5
"""length of a timing: so many steps, or as many as fit into the seconds"""
ROUNDS = 5
"""timings of each program, of which the shortest counts"""
PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")
"""of units, by powers of 1000"""


# Where the time of a step goes


def split_wallclock(driver: Driver) -> dict[str, float]:
    """Microseconds of each part, per step that all seeds make side by side, once learning has started.

    The environment includes the driver's own work, statistics and random numbers; learning includes the syncs.
    """
    plain = dataclasses.replace(driver, meter=NOTHING_MEASURED)
    init, advance, *_ = compile_together(plain)
    programs = compile_partial_programs(plain) | {"learning": advance}
    clock = Clock(driver.run.update_every, _warm_up(plain, init, advance, programs["storing_and_clustering"]))
    clocks = dict.fromkeys(programs, clock)
    if driver.meter is not NOTHING_MEASURED:  # its state is another, so it needs a clock of its own
        init, programs["measuring"], *_ = compile_together(driver)
        state, _ = programs["measuring"](init(), np.int32(driver.run.learning_starts))
        clocks["measuring"] = Clock(driver.run.update_every, state)
    trial = clock.seconds_per_step(advance, STEPS // 20)
    steps = math.ceil(min(STEPS, SECONDS / trial))
    best = dict.fromkeys(programs, math.inf)
    # In turn, so that a slow moment of the machine affects all of them.
    for _, name in itertools.product(range(ROUNDS), programs):
        best[name] = min(best[name], clocks[name].seconds_per_step(programs[name], steps))
    return split_times({name: 1e6 * seconds for name, seconds in best.items()})


class Clock:
    """Times programs that all advance the same state, each from where the last one left it."""

    def __init__(self, every: int, state: TrainState):
        self.every, self.state, self.t = every, state, int(state.step)

    def seconds_per_step(self, program: Callable, steps: int) -> float:
        steps = _round_to_updates(steps, self.every)
        self.t += steps
        started = time.perf_counter()
        self.state, _ = jax.block_until_ready(program(self.state, np.int32(self.t)))
        return (time.perf_counter() - started) / steps


def _round_to_updates(steps: int, every: int) -> int:
    return math.ceil(steps / every) * every


def compile_partial_programs(driver: Driver) -> dict[str, Any]:
    """Programs that advance the driver's state without learning; each does what the one before it does, and more."""
    random = WithoutLearning(driver.run, driver.task, make_random_agent(driver))
    acting = WithoutLearning(driver.run, driver.task, driver.agent)
    return {
        "environment": _compile(driver, random.advance_acting),
        "acting": _compile(driver, acting.advance_acting),
        "storing_and_clustering": _compile(driver, acting.advance_storing),
    }


def split_times(times: dict[str, float]) -> dict[str, float]:
    """What each program adds to the one before it.

    A program that does less cannot take longer; where it did, that was noise, and it counts as taking as long. So no
    part is negative, and the sum of the parts is the time of the last program.
    """
    ends = np.minimum.accumulate([*times.values()][::-1])[::-1]
    return dict(zip(times, np.diff(ends, prepend=0.0).tolist(), strict=True))


class WithoutLearning(Driver):
    """The driver's steps without updates. The random numbers that an update needs are not drawn: they are its cost."""

    @property
    def uniforms(self) -> StepUniforms:
        return super().uniforms._replace(learn=0)

    def advance_acting(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """Act and step the environment up to step `stop`."""
        return self._run_steps(self._interact_only, state, stop)

    def _interact_only(self, carry: Carry, t: jax.Array, uniforms: Uniforms) -> Carry:
        return self.interact(carry, t, randomness.hand_out(self.uniforms, uniforms.run))[0]

    def advance_storing(self, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """The same, and store every transition."""
        return self._run_steps(self.observe_step, state, stop)

    def _run_steps(self, step: Callable, state: TrainState, stop: jax.Array) -> tuple[TrainState, Period]:
        """As `advance`. State and statistics are returned, because XLA removes what nobody uses."""
        loop = Loop(stride=1, body=self._in_block(step), syncs=False)
        carry = Carry(env=state.env, agent=state.agent, meter=state.meter, sums=zero_sums(self.agent, self.run.seeds))
        t, carry = self._run_loop(loop, state.seeds, state.step, stop, carry)
        end = TrainState(step=t, seeds=state.seeds, env=carry.env, agent=carry.agent, meter=carry.meter)
        return end, end_period(self.agent, carry, t - state.step, jnp.int32(0), {})


def make_random_agent(driver: Driver) -> QLearner:
    """The agent with nothing to evaluate: one context, values that are all 0, actions at random."""
    zeros = Output(jnp.zeros((1, driver.task.actions)), jnp.zeros(0), jnp.zeros(0))
    agent = as_q_learner(driver.agent)
    network = agent.network._replace(apply=lambda params, obs: zeros, only=None)
    division = contexts.single()
    if agent.contexts.encode:
        code = jax.eval_shape(driver.init).env.inputs.embedding
        division = division._replace(encode=lambda state, params, obs: jnp.zeros(code.shape[1:], code.dtype))
    return dataclasses.replace(agent, network=network, contexts=division, epsilon=schedules.constant(1.0))


def _compile(driver: Driver, program: Callable) -> Any:
    like, stop = jax.eval_shape(driver.init), jax.ShapeDtypeStruct((), "int32")
    return jax.jit(program, donate_argnums=0).lower(like, stop).compile(COMPILER_OPTIONS)


def _warm_up(driver: Driver, init: Callable, advance: Callable, store: Callable) -> TrainState:
    """A state as it is while learning: contexts started, buffer full or as full as the run makes it."""
    run = driver.run
    state, _ = advance(init(), np.int32(run.learning_starts))
    full = _round_to_updates(min(run.buffer_size, run.steps), run.update_every)
    state, _ = store(state, np.int32(max(run.learning_starts, full)))
    return state


# The report


def measure_cost(run: Run) -> dict[str, Any]:
    """Numbers as `iqrl cost --json` prints them; `formula` and `ratio` are None where the formula does not apply.

    Of a task that is played outside the compiled program there is the formula alone.
    """
    driver = driver_of(run)
    formula = run_flops(run, driver.task)
    if driver.task.external:
        return {
            "flops_per_seed": {"formula": formula, "compiled": None, "ratio": None},
            "flops_all_seeds": {"formula": formula and formula * run.seeds, "compiled": None},
            "pieces_per_seed": {}, "microseconds_per_step": {"total": None}, "shares": {},
        }  # fmt: skip
    pieces = count_pieces(driver)
    compiled = sum(piece.total for piece in pieces.values())
    # The formula does not include measuring.
    unmeasured = sum(piece.total for name, piece in pieces.items() if name != "measuring")
    split = split_wallclock(driver)
    total = sum(split.values())
    return {
        "flops_per_seed": {"formula": formula, "compiled": compiled, "ratio": formula and unmeasured / formula},
        "flops_all_seeds": {"formula": formula and formula * run.seeds, "compiled": compiled * run.seeds},
        "pieces_per_seed": {name: {**piece._asdict(), "total": piece.total} for name, piece in pieces.items()},
        "microseconds_per_step": {**split, "total": total},
        "shares": {name: part / total for name, part in split.items()},
    }


def cost_report(of: RunStore | Run) -> tuple[dict[str, Any], list[str]]:
    """The cost of a run, or of the run in a store: as numbers for `--json`, and as lines of text."""
    run = of.run if isinstance(of, RunStore) else of
    cost = measure_cost(run)
    named = {"task": run.task, "method": run.method, "buffer_size": run.buffer_size, "seeds": run.seeds}
    lines = [describe(run), "", *_write_flops(cost)]
    return named | {"steps": run.steps} | cost, [*lines, "", *_write_time(cost)] if cost["shares"] else lines


def _write_flops(cost: dict[str, Any]) -> list[str]:
    one, all_seeds = cost["flops_per_seed"], cost["flops_all_seeds"]
    row = lambda name, *cells: f"{name:<34}" + "".join(f"{cell:>16}" for cell in cells)
    lines = [row("floating-point operations", "one seed", "all seeds")]
    if one["formula"] is None:
        lines.append("  by the paper's formula: unknown, the network is not a trunk and heads")
    else:
        lines.append(row("  by the paper's formula", format_flops(one["formula"]), format_flops(all_seeds["formula"])))
    if one["compiled"] is None:
        return [*lines, "  in the compiled program: unknown, the task is played outside it, and is not timed either"]
    lines.append(row("  in the compiled program", format_flops(one["compiled"]), format_flops(all_seeds["compiled"])))
    if one["ratio"] is not None:
        what = "  the same, not measuring" if "measuring" in cost["pieces_per_seed"] else "  compiled"
        lines.append(row(f"{what} / formula", f"{one['ratio']:.2f}"))
    lines += ["", row("in the compiled program", "each time", "times", "one seed")]
    for name, piece in cost["pieces_per_seed"].items():
        lines.append(
            row(f"  {name}", format_flops(piece["flops"]), f"{piece['times']:,}", format_flops(piece["total"]))
        )
    return lines


def _write_time(cost: dict[str, Any]) -> list[str]:
    split, shares = cost["microseconds_per_step"], cost["shares"]
    lines = ["a step of all seeds, while learning:  microseconds   share"]
    for name, share in shares.items():
        lines.append(f"  {name.replace('_', ' '):<34}{split[name]:>15.2f}{share:>8.0%}")
    return [*lines, f"  {'together':<34}{split['total']:>15.2f}"]


def format_flops(flops: float) -> str:
    """Four digits and a prefix.

    >>> format_flops(13.962e15), format_flops(512e9), format_flops(0)
    ('13.96 PFLOPs', '512 GFLOPs', '0 FLOPs')
    """
    power = min((len(str(int(flops))) - 1) // 3, len(PREFIXES) - 1)
    return f"{flops / 1000**power:.4g} {PREFIXES[power]}FLOPs"
