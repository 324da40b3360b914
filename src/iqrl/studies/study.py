"""A study is data: which runs, under which names, to draw and to analyse how.

title = "IQ and DQN without replay"
charts = ["return"]                       # the columns of the metrics worth a chart
analyses = ["context_matrix"]             # what is done with each finished run
beside = "table1"                         # in a report that has this study too, its runs are shown there, as variants

[settings]                                # of every run
preset = "paper"
seeds = 5

[[runs]]                                  # a list is an axis of the grid, a single value holds for all of it
task = ["CartPole-v0", "Acrobot-v1"]
method = ["dqn", "iq"]
buffer_size = [1, 100]

[[runs]]                                  # another grid, under a name of its own
variant = "one target rule"
task = "CartPole-v0"
method = "dqn"
double_q = false
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from iqrl.config import OPTIONS, TYPES, Run, check_names
from iqrl.errors import BadInput, PackagesMissing, unknown
from iqrl.settings import resolve
from iqrl.studies.analyses import ANALYSES

KEYS = ("title", "about", "charts", "analyses", "beside", "settings", "runs")


class Planned(typing.NamedTuple):
    """One run of a study."""

    variant: str
    """the name of its block of runs; empty if it has none"""
    run: Run
    varied: tuple[str, ...]
    """the settings that are axes of its block"""
    given: dict[str, Any]
    """what the study says of it: task, method, preset and settings"""


@dataclass(frozen=True)
class Study:
    """What a study file says; `planned` are its runs."""

    name: str
    content: Mapping[str, Any]

    @property
    def title(self) -> str:
        return self.content.get("title", self.name)

    @property
    def about(self) -> str:
        return " ".join(self.content.get("about", "").split())

    @property
    def charts(self) -> tuple[str, ...]:
        return tuple(self.content.get("charts", ("return",)))

    @property
    def analyses(self) -> tuple[str, ...]:
        return tuple(self.content.get("analyses", ()))

    @property
    def beside(self) -> str:
        """The study in whose tables and charts its runs are shown, where a report has both; empty if in none."""
        return self.content.get("beside", "")

    @cached_property
    def planned(self) -> tuple[Planned, ...]:
        """Every run, once; what is wrong with one is said with its place in the grid."""
        found: dict[tuple[str, str], Planned] = {}
        for block in self.content["runs"]:
            for planned in _runs_of(self.name, self.content.get("settings", {}), block):
                found.setdefault((planned.variant, planned.run.identity), planned)
        return tuple(found.values())

    @property
    def runs(self) -> dict[str, Run]:
        """By identity: a run that two variants have in common is one run."""
        return {planned.run.identity: planned.run for planned in self.planned}

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits made of the runs it consists of."""
        text = json.dumps(sorted((planned.variant, planned.run.identity) for planned in self.planned))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def changed(self, settings: Mapping[str, Any]) -> Study:
        """The same study with these settings in every run; an axis of that name is no axis any more."""
        if not settings:
            return self
        check_names(settings)
        runs = [
            {name: value for name, value in block.items() if name not in settings} for block in self.content["runs"]
        ]
        settings = dict(self.content.get("settings", {})) | dict(settings)
        return Study(self.name, {**self.content, "settings": settings, "runs": runs})


def _runs_of(study: str, shared: Mapping[str, Any], block: Mapping[str, Any]) -> Iterator[Planned]:
    variant = block.get("variant", "")
    settings = {**shared, **block}
    settings.pop("variant", None)
    axes = {name: value for name, value in settings.items() if is_axis(name, value)}
    for values in itertools.product(*axes.values()):
        chosen = settings | dict(zip(axes, values, strict=True))
        place = ", ".join(f"{name} {value}" for name, value in zip(axes, values, strict=True))
        try:
            yield Planned(variant, _resolved(dict(chosen)), tuple(axes), chosen)
        except PackagesMissing:
            raise
        except BadInput as error:
            raise BadInput(f"study {study}, {place or 'its run'}: {error}") from None


def is_axis(name: str, value: Any) -> bool:
    """A list, unless the setting is a list itself, such as hidden; then a list of lists."""
    if not isinstance(value, list):
        return False
    of_its_own = name in TYPES and typing.get_origin(TYPES[name]) is tuple
    return not of_its_own or bool(value and isinstance(value[0], list))


def _resolved(chosen: dict[str, Any]) -> Run:
    names = {name: chosen.pop(name, None) for name in ("task", "method", "preset")}
    if names["task"] is None or names["method"] is None:
        raise BadInput("every run needs a task and a method.")
    return resolve(names["task"], names["method"], names["preset"], **chosen)


# Where studies come from


def catalogue() -> dict[str, Study]:
    """The paper's tables and figures."""
    folder = resources.files("iqrl.studies") / "catalogue"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name[:-5])
    return {file.name[:-5]: _parsed(file.name[:-5], file.read_text("utf-8"), file.name) for file in files}


def find_study(name: str) -> Study:
    """A study of the catalogue by its name, or the user's own by the path of its file."""
    if name.endswith(".toml"):
        path = Path(name)
        try:
            return _parsed(path.stem, path.read_text("utf-8"), name)
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"cannot read {name}: {getattr(error, 'strerror', None) or error}.") from error
    known = catalogue()
    if name not in known:
        error = unknown("study", name, known)
        raise BadInput(f"{error} A study of your own is a file that ends in .toml.")
    return known[name]


def _parsed(name: str, text: str, source: str) -> Study:
    try:
        content = tomllib.loads(text)
    except ValueError as error:
        raise BadInput(f"{source} is not valid TOML: {error}.") from error
    try:
        check_content(content)
    except BadInput as error:
        raise BadInput(f"in {source}: {error}") from None
    return Study(name, content)


def check_content(content: Mapping[str, Any]) -> None:
    """Names and kinds; whether the runs make sense is seen when they are planned."""
    for key in content:
        if key not in KEYS:
            raise unknown("key", key, KEYS)
    for key, kind, words in (
        ("title", str, "text"), ("about", str, "text"), ("beside", str, "text"),
        ("charts", list, "a list of columns"), ("analyses", list, "a list of names"), ("settings", dict, "a table"),
        ("runs", list, "tables [[runs]]"),
    ):  # fmt: skip
        if key in content and not isinstance(content[key], kind):
            raise BadInput(f"{key} must be {words}, got {content[key]!r}.")
    for name in content.get("analyses", ()):
        if name not in ANALYSES:
            raise unknown("analysis", name, ANALYSES)
    if not content.get("runs") or not all(isinstance(block, dict) for block in content["runs"]):
        raise BadInput("there are no runs; give at least one table [[runs]] with a task and a method.")
    for block in (content.get("settings", {}), *content["runs"]):
        for name in block:
            if name not in (*OPTIONS, "task", "method", "preset", "variant"):
                raise unknown("setting", name, [*OPTIONS, "task", "method", "preset", "variant"])
        empty = [name for name, value in block.items() if value == []]
        if empty:
            raise BadInput(f"{empty[0]} is an empty list; an axis needs at least one value.")
