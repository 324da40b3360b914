"""Studies that belong beside another: their runs become variants of its runs, in its tables and charts."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from iqrl.report.arrangement import unique
from iqrl.report.pooling import pooled
from iqrl.studies.results import RunRecord, StudyResults, together


def gathered(studies: Sequence[StudyResults]) -> list[StudyResults]:
    """The studies of a report, each that is `beside` another within that one; alone where the other is not there."""
    studies = [pooled(study) for study in studies]
    bases = [_base(study, studies) for study in studies]
    return [
        _joined(study, [other for other, base in zip(studies, bases, strict=True) if base is study])
        for study, base in zip(studies, bases, strict=True)
        if base is None
    ]


def _base(study: StudyResults, studies: Sequence[StudyResults]) -> StudyResults | None:
    """Beside which it stands in the end; None if beside none. Studies that stand beside each other all stand alone."""
    named = {other.name: other for other in reversed(studies)}
    at, seen = study, [study.name]
    while (name := at.content.get("beside", "")) in named:
        if name in seen:
            return None
        at = named[name]
        seen.append(name)
    return None if at is study else at


def _joined(base: StudyResults, others: Sequence[StudyResults]) -> StudyResults:
    for other in others:
        base = _beside(base, other)
    return base


def _beside(base: StudyResults, other: StudyResults) -> StudyResults:
    names = _names(base, other)
    there = {(run.variant, run.id) for run in base.runs}
    runs = [_as_variant(run, names[run.variant], _shared_axes(base)) for run in other.runs]
    plan = [(names[variant], id) for variant, id in other.plan]
    return base._replace(
        about=" ".join(filter(None, [base.about, f"Beside it: {other.title}.", other.about])),
        charts=tuple(unique([*base.charts, *other.charts])),
        curves=_curves(base, other),
        runs=[*base.runs, *[run for run in runs if (run.variant, run.id) not in there]],
        unfinished=base.unfinished + other.unfinished - _counted_twice(base, other),
        plan=tuple(unique([*base.plan, *plan])),
    )


def _names(base: StudyResults, other: StudyResults) -> dict[str, str]:
    """What its variants are called there: a name that means other runs already gets the title of its study."""
    known = {(run.variant, run.id) for run in base.runs} | set(base.plan)
    taken, names = {variant for variant, _ in known}, {}
    for variant in unique([*[variant for variant, _ in other.plan], *[run.variant for run in other.runs]]):
        own = {(run.variant, run.id) for run in other.runs if run.variant == variant}
        clashes = variant in taken and not own <= known
        name = f"{other.title}: {variant}" if variant and clashes else variant or other.title
        names[variant] = f"{name} ({other.name})" if name != variant and name in taken else name
    return names


def _as_variant(run: RunRecord, variant: str, axes: Sequence[str]) -> RunRecord:
    """Named as the runs beside it are, also by what its own study does not vary."""
    return run._replace(variant=variant, varied=tuple(unique([*axes, *run.varied])))


def _shared_axes(study: StudyResults) -> list[str]:
    """What all runs of the study vary, in order."""
    first, *rest = [run.varied for run in study.runs] or [()]
    return [name for name in first if all(name in varied for varied in rest)]


def _curves(base: StudyResults, other: StudyResults) -> pl.DataFrame:
    """A run that both have is there once."""
    if not other.runs:
        return base.curves
    there = base.curves["run"].unique().to_list()
    return together([base.curves, other.curves.filter(~pl.col("run").is_in(there))])


def _counted_twice(base: StudyResults, other: StudyResults) -> int:
    """Of the runs that are not finished: those that both plan, and those that the other has finished."""
    finished = {run.id for run in [*base.runs, *other.runs]}
    missing = [{id for _, id in study.plan} - {run.id for run in study.runs} for study in (base, other)]
    return sum(map(len, missing)) - len(set.union(*missing) - finished)
