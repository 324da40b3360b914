"""Studies that look like real ones, without training anything."""

import hashlib
from typing import Any

import numpy as np
import polars as pl

from iqrl.experiments.report.cells import SCALES
from iqrl.experiments.study.results import RunRecord, StudyResults

METHODS = ("dqn", "srnn", "dsom", "tcnn", "iq")
TASKS = {"CartPole-v0": 400_000, "Pendulum-v0": 400_000, "CartPole-v1": 1_000_000, "Acrobot-v1": 400_000}
INFO = {
    "versions": {"python": "3.12.3", "iqrl": "0.1.0", "jax": "0.10.2"},
    "commit": "0123456789abcdef",
    "machine": {"system": "Linux-6.8-x86_64", "processor": "Some CPU @ 2.40GHz", "cores": 4},
    "timing": {"steps_per_second": 150_000.0, "compile_seconds": 4.2},
}


def record(study="table1", variant="", varied=("task", "method", "buffer_size"), analyses=None, **config) -> RunRecord:
    """A run named by what it is."""
    config = {"task": "CartPole-v0", "method": "iq", "buffer_size": 100, "seeds": 5, "steps": 400_000} | config
    identity = hashlib.sha256(repr((variant, sorted(config.items()))).encode()).hexdigest()[:8]
    return RunRecord(identity, study, variant, config, tuple(varied), INFO, analyses or {})


def curves(run: RunRecord, **columns: Any) -> pl.DataFrame:
    """Rows of a run from columns [seeds][points]; steps are evenly spaced up to its last."""
    seeds, points = len(columns["return"]), len(columns["return"][0])
    steps = [run.config["steps"] * (i + 1) // points for i in range(points)]
    rows = {"run": [run.id] * seeds * points, "seed": np.repeat(range(seeds), points), "step": steps * seeds}
    return pl.DataFrame(rows | {name: [value for seed in values for value in seed] for name, values in columns.items()})


def study(runs: list[RunRecord], tables: list[pl.DataFrame], **changes: Any) -> StudyResults:
    fields = {
        "name": "table1",
        "title": "Table I: highest return on classic control",
        "about": "IQ reaches the highest return with every buffer, and needs almost none.",
        "charts": ("return",),
        "curves": pl.concat(tables, how="diagonal"),
        "runs": runs,
        "unfinished": 0,
    }
    return StudyResults(**(fields | changes))


def learned(run: RunRecord, skill: float, seeds: int = 5, points: int = 40) -> pl.DataFrame:
    """Curves that rise, waver and sometimes collapse; the first point of one seed is not known."""
    draw = np.random.default_rng(int(run.id, 16))
    scale = SCALES.get(run.config["task"], SCALES["CartPole-v0"])
    time = np.linspace(0, 1, points)
    rise = skill * (1 - np.exp(-time * draw.uniform(3, 9, (seeds, 1))))
    wave = (1.1 - skill) * 0.3 * np.cumsum(draw.normal(size=(seeds, points)), axis=1) / np.sqrt(points)
    returns = scale.worst + (scale.best - scale.worst) * np.clip(rise + wave, 0, 1)
    returns[0, 0] = np.nan
    loss = np.exp(draw.normal(size=(seeds, points)) * 0.3 - 4 * time * skill)
    heads = returns[..., None] * np.array([0.9, 1.0, 1.1])
    return curves(run, **{
        "return": returns, "value_loss": loss, "negative_interference": loss**2 * draw.uniform(1, 50),
        "held_out_max_q": returns / 2, "held_out_max_q_heads": heads.tolist(),
    })  # fmt: skip


def whole_report(tasks=tuple(TASKS), seeds: int = 5, points: int = 40) -> list[StudyResults]:
    """A main table with a variant, a sweep over k, and convergence with heads, contexts and costs."""
    return [_main_table(tasks, seeds, points), _sweep(tasks, seeds, points), _analysis(seeds, points)]


def _main_table(tasks, seeds, points) -> StudyResults:
    runs = [
        record(variant=variant, task=task, method=method, buffer_size=size, steps=TASKS[task], seeds=seeds)
        for task in tasks for size in (1, 100, 50_000) for method in METHODS
        for variant in (("", "same target rule") if method != "iq" else ("",))
    ]  # fmt: skip
    tables = [learned(run, _skill(run), seeds, points) for run in runs]
    return study(runs, tables, charts=("return", "negative_interference"), unfinished=3)


def _skill(run: RunRecord) -> float:
    skill = {"dqn": 0.55, "srnn": 0.6, "dsom": 0.8, "tcnn": 0.5, "iq": 0.97}[run.config["method"]]
    return min(1.0, skill * {1: 0.7, 100: 0.95, 50_000: 1.2}[run.config["buffer_size"]])


def _sweep(tasks, seeds, points) -> StudyResults:
    varied = ("task", "contexts")
    runs = [
        record("contexts", varied=varied, task=task, contexts=k, buffer_size=1, steps=TASKS[task], seeds=seeds)
        for task in tasks for k in range(1, 6)
    ]  # fmt: skip
    tables = [learned(run, 0.4 + run.config["contexts"] / 10, seeds, points) for run in runs]
    return study(runs, tables, name="contexts", title="Fig. 8: the number of contexts k")


def _analysis(seeds, points) -> StudyResults:
    matrix = {"matrix": [[-0.62, 0.8, 0.04], [1.9, -0.3, 0.4], [0.001, None, -0.51]]}
    flops = lambda i: {"formula": 3.2e11 * (1 + i / 9), "compiled": 4e11 * (1 + i / 20)}
    cost = lambda i: {"flops": flops(i), "seconds_per_million_steps": 4.0 + i}
    analyses = lambda i: {"cost": cost(i)} | ({"context_matrix": matrix} if METHODS[i] in ("dqn", "iq") else {})
    varied = ("method",)
    runs = [
        record("analysis", varied=varied, task="Pendulum-v0", method=method, analyses=analyses(i), seeds=seeds)
        for i, method in enumerate(METHODS)
    ]
    tables = [learned(run, _skill(run), seeds, points) for run in runs]
    charts = ("value_loss", "held_out_max_q", "held_out_max_q_heads")
    return study(runs, tables, name="analysis", title="Fig. 9 and 10: convergence and cost", charts=charts)
