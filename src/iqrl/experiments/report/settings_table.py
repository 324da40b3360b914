"""The settings of the runs of a study: those that all runs share, and a table of those in which runs differ."""

from __future__ import annotations

from typing import Any, NamedTuple

from iqrl.experiments.report.arrangement import PlacedRun, arrange, setting_text, unique
from iqrl.experiments.report.table import Cell, Column, Row, Section, Table
from iqrl.experiments.study.results import StudyResults
from iqrl.make_run import unused_settings
from iqrl.settings import Measuring, settings_of

IN_OTHER_TABLES = ("task", "method", "buffer_size", "seed", "seeds")


class StudySettings(NamedTuple):
    shared: str
    """the settings that are the same in all runs that have them, such as γ=0.99, k=4"""
    table: Table
    """a column per setting in which runs differ, a row per label and variant"""


def study_settings(study: StudyResults) -> StudySettings:
    shown = [(placed, shown_settings(placed.run.config)) for placed in arrange(study)]
    names = unique(name for _, settings in shown for name in settings)
    values = {name: unique(settings[name] for _, settings in shown if name in settings) for name in names}
    shared = [f"{name}={values[name][0]}" for name in names if len(values[name]) == 1]
    differing = [name for name in names if len(values[name]) > 1]
    columns = [Column(name=name, numeric=False) for name in differing]
    columns.append(Column(name="where", align="left", numeric=False, muted=True))
    sections = [Section(name="", rows=_rows(shown, differing))]
    table = Table(title=f"settings, {study.title}", section_header=None, columns=columns, sections=sections)
    return StudySettings(shared=", ".join(shared), table=table)


def _rows(shown: list[tuple[PlacedRun, dict[str, str]]], names: list[str]) -> list[Row]:
    """Runs with the same label and values are one row; its last cell has their places."""
    places: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for placed, settings in shown:
        label = ", ".join(filter(None, [placed.label, placed.variant]))
        values = tuple(settings.get(name, "") for name in names)
        places.setdefault((label, values), []).append(placed.place.title)
    return [
        Row(name=label, cells=[Cell(text=text) for text in (*values, "; ".join(titles))])
        for (label, values), titles in places.items()
    ]


def shown_settings(config: dict[str, Any]) -> dict[str, str]:
    """The settings of a run that have an effect and a value, by the short names of the other tables."""
    unmeasured = set() if config.get("measure_every") else set(settings_of([Measuring]))
    hidden = unused_settings(config["task"], config["method"]) | set(IN_OTHER_TABLES) | unmeasured
    values = {name: value for name, value in config.items() if value not in (None, []) and name not in hidden}
    return dict(setting_text(name, value).split("=", 1) for name, value in values.items())
