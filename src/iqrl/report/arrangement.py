"""Which runs of a study share a chart or a row, and what each is called there.

Task and buffer size make the panels of a figure and the columns of a table; whatever else a study varies makes the
lines in a panel. Where nothing else is varied, the buffer size makes the lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from iqrl.errors import BadInput
from iqrl.studies.results import RunRecord, StudyResults

SHORT = {"buffer_size": "N", "contexts": "k", "gamma": "γ", "distill_weight": "λ", "learning_rate": "α"}


class Place(NamedTuple):
    """The panel of a run."""

    task: str
    buffer_size: int | None
    """None where buffer sizes are lines"""

    @property
    def title(self) -> str:
        return self.task if self.buffer_size is None else f"{self.task}, {size_name(self.buffer_size)}"


class Placed(NamedTuple):
    """A run, where it belongs and what it is called there."""

    run: RunRecord
    place: Place
    label: str

    @property
    def variant(self) -> str:
        return self.run.variant


def arranged(study: StudyResults) -> list[Placed]:
    """The runs of a study, tasks in their own order, buffer sizes from small to large."""
    placed = [_placed(run) for run in study.runs]
    _refuse_twins(study.name, placed)
    tasks = unique(one.place.task for one in placed)
    return sorted(placed, key=lambda one: (tasks.index(one.place.task), one.place.buffer_size or 0))


def unique(items: Iterable[Any]) -> list[Any]:
    """Each item once, in order of first appearance."""
    return list(dict.fromkeys(items))


def size_name(buffer_size: int) -> str:
    return f"N={buffer_size:,}"


def setting_text(name: str, value: Any) -> str:
    return f"{SHORT.get(name, name)}={_short(value)}"


def _placed(run: RunRecord) -> Placed:
    others = [name for name in run.varied if name not in ("task", "buffer_size")]
    if not others and "buffer_size" in run.varied:
        return Placed(run, Place(run.config["task"], None), size_name(run.config["buffer_size"]))
    return Placed(run, Place(run.config["task"], run.config["buffer_size"]), _label(run, others))


def _label(run: RunRecord, varied: list[str]) -> str:
    """The method, if methods are compared or nothing is, and every other setting that varies."""
    settings = [setting_text(name, run.config.get(name)) for name in varied if name != "method"]
    return " ".join([run.config["method"]] * ("method" in varied or not settings) + settings)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _refuse_twins(study: str, placed: list[Placed]) -> None:
    """Two runs of one name would be drawn and counted as one."""
    seen: dict[tuple[Any, ...], str] = {}
    for one in placed:
        key = (one.place, one.label, one.variant)
        if key in seen:
            where = f"{one.label} on {one.place.title}" + (f" ({one.variant})" if one.variant else "")
            raise BadInput(f"study {study} has two runs for {where}, {seen[key]} and {one.run.id}; what differs?")
        seen[key] = one.run.id
