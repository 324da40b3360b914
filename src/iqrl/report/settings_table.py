"""With which settings the runs of a study were made: those that all have, and those in which they differ."""

from __future__ import annotations

import json
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
    placed = arranged(study)
    names = unique(name for one in placed for name in one.run.config if name not in NAMED)
    values = {name: unique(filter(None, (_key(one, name) for one in placed))) for name in names}
    common = [setting_text(name, json.loads(values[name][0])) for name in names if len(values[name]) == 1]
    columns = [name for name in names if len(values[name]) > 1]
    return SettingsTable(", ".join(common), columns, _rows(placed, columns))


def _rows(placed: list[Placed], columns: list[str]) -> list[SettingsRow]:
    alike: dict[tuple, list[Placed]] = {}
    for one in placed:
        alike.setdefault((one.label, one.variant, *(_key(one, name) for name in columns)), []).append(one)
    return [
        SettingsRow(
            label, variant, "; ".join(one.place.title for one in group), [_text(group[0], name) for name in columns]
        )
        for (label, variant, *_), group in alike.items()
    ]


def _key(one: Placed, name: str) -> str | None:
    """What a run has of a setting; None where that says nothing of it."""
    config, value = one.run.config, one.run.config.get(name)
    return None if value is None or value == [] or name in _unused(config) else json.dumps(value)


def _unused(config: dict[str, Any]) -> set[str]:
    """Settings of other methods and tasks, and of measurements that are not made."""
    names = lambda groups: {field.name for group in groups for field in fields_of(group)}
    method, of_others = METHODS.get(config["method"]), set()
    if method is not None:
        of_others = names(GROUPS) - names((*COMMON, *method.extra_groups))
    of_others |= {name for name, task in SETTINGS_OF.items() if task != config["task"]}
    return of_others | (set() if config.get("measure_every") else names([Measuring]))


def _text(one: Placed, name: str) -> str:
    value: Any = one.run.config.get(name)
    return "" if _key(one, name) is None else setting_text(name, value).partition("=")[2]
