"""Which runs are shown together, and what each is called there.

Task and buffer size make the panels of a figure and the columns of a table. Whatever else a study varies makes the
lines in a panel. Where nothing else is varied, the buffer size makes the lines.

Before that, a report joins what belongs together: runs that differ in their seeds only, and studies. A study whose
file says `beside = "table1"` belongs to that study: its runs become variants of the runs of table1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import polars as pl

from iqrl.errors import BadInput
from iqrl.experiments.study.results import RunRecord, StudyResults, concat_curves
from iqrl.methods.registry import METHOD_NAMES, scales_rewards, stores_nothing
from iqrl.settings import Run

# Names

SHORT = {"buffer_size": "N", "contexts": "k", "gamma": "γ", "distill_weight": "λ", "learning_rate": "α"}
"""settings with a symbol of their own"""
MeasuredRun = tuple[Run, pl.DataFrame]
"""a run and its metrics"""
NEVER_IN_LABELS = ("task", "method", "steps", "period", "epsilon_decay")
SELDOM_IN_LABELS = ("seed", "seeds", "measure_")
"""beginnings of settings that change nothing that is learned: in labels only where runs differ in nothing else"""


def unique(items: Iterable[Any]) -> list[Any]:
    """Each item once, in order of first appearance."""
    return list(dict.fromkeys(items))


def size_name(buffer_size: int) -> str:
    return f"N={buffer_size:,}"


def setting_text(name: str, value: Any) -> str:
    return f"{SHORT.get(name, name)}={_value_text(value)}"


def _value_text(value: Any) -> str:
    """A setting's value without spaces, as short as it can be told: small numbers as powers of ten.

    >>> [_value_text(value) for value in (0.0002, 0.0010000000000000002, 6.25e-5, 0.05, 1.0, 50_000, True, (64, 64))]
    ['2e-4', '1e-3', '6.25e-5', '0.05', '1', '50000', 'yes', '[64,64]']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_value_text, value))}]"
    return _float_text(value) if isinstance(value, float) else str(value)


def _float_text(value: float) -> str:
    """Six digits at most, as runs that differ must not have one name. Below 0.01 a learning rate reads best as 5e-4."""
    if not 0 < abs(value) < 0.01:
        return f"{value:g}"
    digits, _, power = f"{value:.5e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"


def distinct_labels(runs: Sequence[Run]) -> list[str]:
    """The method, and every setting in which runs of that method differ."""
    short = _labels(runs, SELDOM_IN_LABELS)
    names = {(run.task, label) for run, label in zip(runs, short, strict=True)}
    return short if len(names) == len(runs) else _labels(runs, ())


def _labels(runs: Sequence[Run], left_out: tuple[str, ...]) -> list[str]:
    configs = [run.to_dict() for run in runs]

    def label(run: Run) -> str:
        same_method = [config for config in configs if config["method"] == run.method]
        unnamed = (*NEVER_IN_LABELS, "buffer_size") if stores_nothing(run) else NEVER_IN_LABELS
        shown = lambda name: name not in unnamed and not name.startswith(left_out)
        settings = {name: value for name, value in run.to_dict().items() if shown(name)}
        # Runs of other tasks may lack a setting.
        differs = lambda name, others: len({str(other[name]) for other in others if name in other}) > 1
        # The buffer size is what this library is about: it is named wherever runs differ in it.
        differing = [name for name in settings if differs(name, configs if name == "buffer_size" else same_method)]
        value = lambda name: _value_text(settings[name])
        text = lambda name: size_name(run.buffer_size) if name == "buffer_size" else f"{name}={value(name)}"
        return " ".join([run.method, *map(text, differing)])

    return [label(run) for run in runs]


def plot_labels(runs: Sequence[Run]) -> list[str]:
    """As `distinct_labels`, in words for a figure: "DQN, N = 100"."""
    return [_in_words(label) for label in distinct_labels(runs)]


def _in_words(label: str) -> str:
    method, *settings = label.split(" ")
    words = []
    for setting in settings:
        name, _, value = setting.partition("=")
        value = f"{int(value):,}" if value.isdigit() else value
        words.append(f"{SHORT.get(name, name.replace('_', ' '))} = {value}" if value else setting)
    return ", ".join([METHOD_NAMES.get(method, method), *words])


def size_text(count: int) -> str:
    """A number of bytes in three digits.

    >>> size_text(28416), size_text(2_800_000), size_text(512)
    ('28.4 kB', '2.80 MB', '512 B')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:#.3g} {name}".replace(". ", " ")
    return f"{count} B"


def squared_unit(runs: Sequence[Run]) -> str:
    """The unit of squared TD errors, and so of interference."""
    scaled = [run.method for run in runs if scales_rewards(run)]
    if not scaled:
        return "reward²"
    return "scaled reward²" if len(scaled) == len(runs) else f"reward² ({', '.join(unique(scaled))}: scaled reward²)"


def common_settings(runs: Sequence[Run]) -> str:
    """The task, and the buffer size if the runs share it."""
    sizes = {run.buffer_size for run in runs if not stores_nothing(run)}
    return runs[0].task + (f", {size_name(sizes.pop())}" if len(sizes) == 1 else "")


def panel_title(runs: Sequence[Run]) -> str:
    """As `common_settings`, for a figure: "CartPole-v0, N = 100"."""
    return common_settings(runs).replace("N=", "N = ")


# Places


class Place(NamedTuple):
    """The panel of a run."""

    task: str
    buffer_size: int | None
    """None where buffer sizes are lines"""

    @property
    def title(self) -> str:
        return self.task if self.buffer_size is None else f"{self.task}, {size_name(self.buffer_size)}"


class PlacedRun(NamedTuple):
    """A run, where it belongs and what it is called there."""

    run: RunRecord
    place: Place
    label: str

    @property
    def variant(self) -> str:
        return self.run.variant


def arrange(study: StudyResults) -> list[PlacedRun]:
    """The runs of a study, tasks in their own order, buffer sizes from small to large."""
    placed = [_place(run) for run in study.runs]
    _refuse_equal_names(study.name, placed)
    tasks = unique(one.place.task for one in placed)
    return sorted(placed, key=lambda one: (tasks.index(one.place.task), one.place.buffer_size or 0))


def _place(run: RunRecord) -> PlacedRun:
    task, buffer_size = run.config["task"], run.config["buffer_size"]
    others = [name for name in run.varied if name not in ("task", "buffer_size")]
    if not others and "buffer_size" in run.varied:
        return PlacedRun(run=run, place=Place(task=task, buffer_size=None), label=size_name(buffer_size))
    return PlacedRun(run=run, place=Place(task=task, buffer_size=buffer_size), label=_label(run, others))


def _label(run: RunRecord, varied: list[str]) -> str:
    """The method, if methods are compared or nothing is, and every other setting that varies."""
    settings = [setting_text(name, run.config.get(name)) for name in varied if name != "method"]
    return " ".join([run.config["method"]] * ("method" in varied or not settings) + settings)


def _refuse_equal_names(study: str, placed: list[PlacedRun]) -> None:
    """Two runs of one name would be drawn and counted as one."""
    seen: dict[tuple[Place, str, str], str] = {}
    for one in placed:
        key = (one.place, one.label, one.variant)
        if key in seen:
            where = f"{one.label} on {one.place.title}" + (f" ({one.variant})" if one.variant else "")
            raise BadInput(f"study {study} has two runs for {where}, {seen[key]} and {one.run.id}; what differs?")
        seen[key] = one.run.id


# Studies of one report


def gather_studies(studies: Sequence[StudyResults]) -> list[StudyResults]:
    """The studies of a report, each that is `beside` another within that one; alone where the other is not there."""
    studies = [pool_seeds(study) for study in studies]
    bases = [_find_base(study, studies) for study in studies]
    return [
        _join_all(study, [other for other, base in zip(studies, bases, strict=True) if base is study])
        for study, base in zip(studies, bases, strict=True)
        if base is None
    ]


SEED_SETTINGS = ("seed", "seeds")


def pool_seeds(study: StudyResults) -> StudyResults:
    """The study with runs that differ in their seeds only as one run, under the name of the first.

    Where a seed takes hours, a study runs seeds apart.
    """
    first: dict[str, RunRecord] = {}
    pooled = {run.id: first.setdefault(_identity_without_seeds(run), run).id for run in study.runs}
    if len(first) == len(study.runs) and not any({*SEED_SETTINGS} & {*run.varied} for run in study.runs):
        return study
    seeds = {id: sum(run.config["seeds"] for run in study.runs if pooled[run.id] == id) for id in set(pooled.values())}
    curves = study.curves.with_columns(pl.col("run").replace(pooled)).sort("run", "seed", "step")
    plan = unique((variant, pooled.get(id, id)) for variant, id in study.plan)
    runs = [_with_seeds(run, seeds[run.id]) for run in first.values()]
    return study._replace(runs=runs, curves=curves, plan=tuple(plan))


def _identity_without_seeds(run: RunRecord) -> str:
    config = {name: value for name, value in run.config.items() if name not in SEED_SETTINGS}
    return json.dumps([run.variant, config], sort_keys=True)


def _with_seeds(run: RunRecord, seeds: int) -> RunRecord:
    varied = tuple(name for name in run.varied if name not in SEED_SETTINGS)
    return run._replace(config={**run.config, "seeds": seeds}, varied=varied)


def _find_base(study: StudyResults, studies: Sequence[StudyResults]) -> StudyResults | None:
    """The study at the end of the chain of `beside`; None if there is none, and if the chain is a circle."""
    by_name = {other.name: other for other in reversed(studies)}
    at, seen = study, [study.name]
    while (name := at.content.get("beside", "")) in by_name:
        if name in seen:
            return None
        at = by_name[name]
        seen.append(name)
    return None if at is study else at


def _join_all(base: StudyResults, others: Sequence[StudyResults]) -> StudyResults:
    for other in others:
        base = _join(base, other)
    return base


def _join(base: StudyResults, other: StudyResults) -> StudyResults:
    names = _variant_names(base, other)
    present = {(run.variant, run.id) for run in base.runs}
    runs = [_as_variant(run, names[run.variant], _shared_axes(base)) for run in other.runs]
    plan = [(names[variant], id) for variant, id in other.plan]
    return base._replace(
        about="\n\n".join(filter(None, [base.about, f"{other.title}: {other.about}" if other.about else other.title])),
        charts=tuple(unique([*base.charts, *other.charts])),
        curves=_join_curves(base, other),
        runs=[*base.runs, *[run for run in runs if (run.variant, run.id) not in present]],
        unfinished=base.unfinished + other.unfinished - _counted_twice(base, other),
        plan=tuple(unique([*base.plan, *plan])),
    )


def _variant_names(base: StudyResults, other: StudyResults) -> dict[str, str]:
    """The variants of `other` -> their names in `base`; a name with another meaning there gets the study's title."""
    present = {(run.variant, run.id) for run in base.runs} | set(base.plan)
    taken, names = {variant for variant, _ in present}, {}
    for variant in unique([*[variant for variant, _ in other.plan], *[run.variant for run in other.runs]]):
        own = {(run.variant, run.id) for run in other.runs if run.variant == variant}
        clashes = variant in taken and not own <= present
        name = f"{other.title}: {variant}" if variant and clashes else variant or other.title
        names[variant] = f"{name} ({other.name})" if name != variant and name in taken else name
    return names


def _as_variant(run: RunRecord, variant: str, axes: Sequence[str]) -> RunRecord:
    """Labelled as the runs beside it are, also by what its own study does not vary."""
    return run._replace(variant=variant, varied=tuple(unique([*axes, *run.varied])))


def _shared_axes(study: StudyResults) -> list[str]:
    """What all runs of the study vary, in order."""
    first, *rest = [run.varied for run in study.runs] or [()]
    return [name for name in first if all(name in varied for varied in rest)]


def _join_curves(base: StudyResults, other: StudyResults) -> pl.DataFrame:
    """A run that both have is there once."""
    if not other.runs:
        return base.curves
    present = base.curves["run"].unique().to_list()
    return concat_curves([base.curves, other.curves.filter(~pl.col("run").is_in(present))])


def _counted_twice(base: StudyResults, other: StudyResults) -> int:
    """Among the unfinished runs: those that both plan, and those that the other study has finished."""
    finished = {run.id for run in [*base.runs, *other.runs]}
    missing = [{id for _, id in study.plan} - {run.id for run in study.runs} for study in (base, other)]
    return sum(map(len, missing)) - len(set.union(*missing) - finished)
