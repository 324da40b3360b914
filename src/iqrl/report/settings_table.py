"""With which settings the runs of a study were made: those that all have, and those in which they differ."""

from __future__ import annotations

from typing import Any, NamedTuple

from iqrl.config import COMMON, GROUPS, Measuring, fields_of
from iqrl.methods import METHODS
from iqrl.report.arrangement import Placed, arranged, setting_text, unique
from iqrl.studies.results import StudyResults
from iqrl.tasks import SETTINGS_OF

NAMED = ("task", "method", "buffer_size", "seed", "seeds")
"""what the other tables say already"""


class SettingsRow(NamedTuple):
    label: str
    variant: str
    where: str
    """the panels of the runs that have these values"""
    values: list[str]


class SettingsTable(NamedTuple):
    common: str
    """the same in all runs that have them, in words"""
    columns: list[str]
    """the settings in which runs differ"""
    rows: list[SettingsRow]


def settings_table(study: StudyResults) -> SettingsTable:
    told = [(one, _told(one.run.config)) for one in arranged(study)]
    names = unique(name for _, settings in told for name in settings)
    values = {name: unique(settings[name] for _, settings in told if name in settings) for name in names}
    common = [f"{name}={values[name][0]}" for name in names if len(values[name]) == 1]
    columns = [name for name in names if len(values[name]) > 1]
    return SettingsTable(", ".join(common), columns, _rows(told, columns))


def _rows(told: list[tuple[Placed, dict[str, str]]], columns: list[str]) -> list[SettingsRow]:
    alike: dict[tuple[str, ...], list[str]] = {}
    for one, settings in told:
        values = (settings.get(name, "") for name in columns)
        alike.setdefault((one.label, one.variant, *values), []).append(one.place.title)
    return [
        SettingsRow(label, variant, "; ".join(places), values) for (label, variant, *values), places in alike.items()
    ]


def _told(config: dict[str, Any]) -> dict[str, str]:
    """What is worth saying of a run's settings, by the short names of the other tables."""
    unused = {*NAMED, *_unused(config)}
    said = {name: value for name, value in config.items() if value is not None and value != [] and name not in unused}
    return dict(setting_text(name, value).split("=", 1) for name, value in said.items())


def _unused(config: dict[str, Any]) -> set[str]:
    """Settings of other methods and tasks, and of measurements that are not made."""
    names = lambda groups: {field.name for group in groups for field in fields_of(group)}
    method, of_others = METHODS.get(config["method"]), set()
    if method is not None:
        of_others = names(GROUPS) - names((*COMMON, *method.extra_groups))
    of_others |= {name for name, task in SETTINGS_OF.items() if task != config["task"]}
    return of_others | (set() if config.get("measure_every") else names([Measuring]))
