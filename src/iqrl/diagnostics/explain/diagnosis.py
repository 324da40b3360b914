"""All that is known of a run when advice is given, and which of its settings may be changed.

Only settings are offered that the run's method has and does not fix itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from iqrl.diagnostics.explain.evidence import (
    Association,
    Coincidence,
    FallEvidence,
    examine_fall,
    find_association,
    find_coincidence,
)
from iqrl.diagnostics.explain.fate import RunFate, SeedFate, judge
from iqrl.diagnostics.explain.history import Fall, History, SeedMetrics, solved_at, split_by_seed, trace_history
from iqrl.envs.base import Task
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.methods.registry import Method, find_method
from iqrl.settings import COMMON, Run, settings_of
from iqrl.training.run_directory import curves_text, last_step

FALLS_PER_SEED, FALLS = 3, 6
"""how many falls are examined, at most"""


class Diagnosis(NamedTuple):
    """A run's curves, their falls, and what moved with them."""

    run: Run
    histories: list[History]
    falls: list[FallEvidence]
    """those that lasted, then the deepest of the others"""
    association: Association | None
    coincidence: Coincidence | None
    fate: RunFate
    solved: float
    """the return at which the task counts as solved; NaN where nobody says"""
    drop: float
    step: int
    """up to which the run was trained, which may lie after the last whole period"""
    task: Task | None
    """None for one of the user's own that cannot be found from here"""

    @property
    def seeds(self) -> list[SeedMetrics]:
        return [history.seed for history in self.histories]

    def judged(self, evidence: FallEvidence) -> SeedFate:
        """What became of the seed of this fall."""
        return next(each for each in self.fate.seeds if each.seed.seed == evidence.seed.seed)

    @property
    def reached(self) -> str:
        """The step at which it stopped, and how far its curves go where that is less."""
        curves = max(int(seed.steps[-1]) for seed in self.seeds)
        return f"step {self.step:,} of {self.run.steps:,}{curves_text(self.step, curves)}"

    def lasted(self, evidence: FallEvidence) -> bool:
        return evidence.fall in self.judged(evidence).lasting

    @property
    def columns(self) -> Mapping[str, Any]:
        """Those of the first seed; every seed has the same."""
        return self.histories[0].seed.columns

    @property
    def heads(self) -> int:
        return self.histories[0].seed.heads

    @property
    def shows_images(self) -> bool:
        return self.task is not None and self.task.image is not None

    @property
    def measured(self) -> bool:
        return "aei" in self.columns

    @property
    def interference_stands_out(self) -> bool:
        """It is high where the return falls, or the return falls after it, more than by chance."""
        coincides = self.coincidence is not None and self.coincidence.stands_out
        return coincides or (self.association is not None and self.association.follows)

    # Which settings may be offered

    @property
    def method(self) -> Method | None:
        """None for a method of the user's own that cannot be found from here."""
        try:
            return find_method(self.run.method)
        except BadInput:
            return None

    def has(self, group: type) -> bool:
        """Whether the method has this group of settings."""
        return self.method is not None and group in self.method.settings

    @property
    def fixed(self) -> Mapping[str, Any]:
        return self.method.fixed if self.method else {}

    @property
    def open_settings(self) -> set[str]:
        """Those that the method has and does not fix."""
        groups = (*COMMON, *(self.method.settings if self.method else ()))
        return set(settings_of(groups)) - set(self.fixed)

    def offer(self, **settings: Any) -> list[str]:
        """Flags for those open settings that would change something."""
        can = {name: value for name, value in settings.items() if name in self.open_settings}
        return [_write_flag(name, value) for name, value in can.items() if getattr(self.run, name) != value]


def diagnose(run: Run, metrics: pl.DataFrame, drop: float = 0.25, stopped: bool = False, step: int = 0) -> Diagnosis:
    """Read a run's metrics; `drop` is the share of a seed's range of returns that makes a fall.

    `stopped`: whether the run's own rules ended it before its last step. `step`: up to which it was trained, where that
    is after the last whole period."""
    if not 0 < drop <= 1:
        raise BadInput(f"drop must be more than 0 and at most 1, got {drop}.")
    if not metrics.height:
        raise BadInput("the run has no measurements yet; train it first.")
    seeds, solved = split_by_seed(run, metrics), solved_at(run.task)
    histories = [trace_history(seed, drop, solved) for seed in seeds]
    fate = judge(run, histories, drop, solved, stopped)
    return Diagnosis(
        run=run,
        histories=histories,
        falls=[examine_fall(seed, fall) for seed, fall in _select_falls(fate.seeds)],
        association=find_association(seeds),
        coincidence=find_coincidence(histories),
        fate=fate,
        solved=solved,
        drop=drop,
        step=max(step, last_step(metrics)),
        task=_find_task(run),
    )


def _find_task(run: Run) -> Task | None:
    try:
        return make_task(run)
    except BadInput:
        return None


def _select_falls(seeds: Sequence[SeedFate]) -> list[tuple[SeedMetrics, Fall]]:
    """Those that lasted first, then the deepest: of each seed, then of all seeds."""
    rank = lambda judged, fall: (fall not in judged.lasting, -fall.depth)
    chosen = [
        (judged, fall)
        for judged in seeds
        for fall in sorted(judged.history.falls, key=lambda fall: rank(judged, fall))[:FALLS_PER_SEED]
    ]
    return [(judged.seed, fall) for judged, fall in sorted(chosen, key=lambda pair: rank(*pair))[:FALLS]]


def _write_flag(name: str, value: Any) -> str:
    text = "" if value is True else f" {value:g}" if isinstance(value, float) else f" {value}"
    return f"`--{name.replace('_', '-')}{text}`"
