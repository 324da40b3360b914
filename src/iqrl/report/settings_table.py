"""With which settings the runs of a study were made: those that all have, and those in which they differ."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from iqrl.report.arrangement import Placed, arranged, setting_text, unique
from iqrl.studies.results import StudyResults

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
    """of all runs, in words"""
    columns: list[str]
    """the settings in which runs differ"""
    rows: list[SettingsRow]


def settings_table(study: StudyResults) -> SettingsTable:
    placed = arranged(study)
    names = unique(name for one in placed for name in one.run.config if name not in NAMED)
    values = {name: unique(_key(one, name) for one in placed) for name in names}
    common = [name for name in names if len(values[name]) == 1]
    # A setting that only some methods have is not one in which they differ.
    columns = [name for name in names if len([value for value in values[name] if value is not None]) > 1]
    first = placed[0].run.config if placed else {}
    return SettingsTable(", ".join(setting_text(name, first[name]) for name in common), columns, _rows(placed, columns))


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
    return json.dumps(one.run.config[name]) if name in one.run.config else None


def _text(one: Placed, name: str) -> str:
    value: Any = one.run.config.get(name)
    return "" if value is None else setting_text(name, value).partition("=")[2]
