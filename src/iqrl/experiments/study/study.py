"""A study as data: its runs, their names, its charts and its analyses.

title = "IQ and DQN without replay"
charts = ["return"]                       # the columns of the metrics to draw
analyses = ["context_matrix"]             # made of each finished run
beside = "table1"                         # in a report that has this study too, its runs are shown there, as variants
reference = "iq"                          # the method that a report sets beside all others,
margin = 0.02                             # and by how much of a task's range it may be below them

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

[[runs]]                                  # a random search: so many draws for every cell of its grid
task = "CartPole-v0"
method = "dqn"
search = { draws = 11, learning_rate = { low = 1e-4, high = 1e-2, log = true }, double_q = [false, true] }
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import tomllib
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from iqrl.envs.registry import TASKS
from iqrl.errors import BadInput, PackagesMissing, shown, unknown
from iqrl.experiments.study.analyses import ANALYSES
from iqrl.experiments.study.random_search import check_search, draw_settings, searched_settings
from iqrl.files import read_text
from iqrl.make_run import check_names, groups_for, read_run, resolve_names
from iqrl.plugins import Untrusted, is_plugin, module_form
from iqrl.settings import Run, settings_of, types_of

KEYS = ("title", "about", "charts", "analyses", "beside", "reference", "margin", "settings", "runs")
MARGIN = 0.02
"""of a task's range, where a study names none"""
SEARCH = "search"
"""the key of a block of runs that says what is drawn"""
MOST_RUNS = 100_000
"""of one grid"""


class PlannedRun(typing.NamedTuple):
    """One run of a study."""

    variant: str
    """the name of its block of runs; empty if it has none"""
    run: Run
    varied: tuple[str, ...]
    """the settings that are axes of its block"""
    given: dict[str, Any]
    """task, method, preset and settings as the study gives them"""


@dataclass(frozen=True)
class Study:
    """The content of a study file; `planned` are its runs."""

    name: str
    content: Mapping[str, Any]
    recorded: tuple[PlannedRun, ...] = ()
    """the runs as they were planned when the study was run, where reading them anew would import a plug-in"""

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
    def planned(self) -> tuple[PlannedRun, ...]:
        """Every run, once. An error names the place of the run in the grid."""
        if self.recorded:
            return self.recorded
        found: dict[tuple[str, str], PlannedRun] = {}
        for block in self.content["runs"]:
            for planned in _plan_block(self.name, self.content.get("settings", {}), block):
                found.setdefault((planned.variant, planned.run.identity), planned)
        return tuple(found.values())

    @property
    def runs(self) -> dict[str, Run]:
        """By identity: a run that two variants have in common is one run."""
        return {planned.run.identity: planned.run for planned in self.planned}

    def select(self, wanted: Mapping[str, Any]) -> list[Run]:
        """The runs with these settings, such as method="iq"; `variant` may be one of them."""
        settings = [(planned.run, planned.run.to_dict() | {"variant": planned.variant}) for planned in self.planned]
        for name in wanted:
            if not any(name in each for _, each in settings):
                raise unknown("setting", name, sorted({name for _, each in settings for name in each}))
        chosen = {run.identity: run for run, each in settings if all(each.get(n) == v for n, v in wanted.items())}
        if not chosen:
            named = ", ".join(f"{name}={value}" for name, value in wanted.items())
            raise BadInput(f"no run of the study {self.name} has {named}.")
        return list(chosen.values())

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits made of the runs it consists of."""
        text = json.dumps(sorted((planned.variant, planned.run.identity) for planned in self.planned))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def plugins(self) -> list[str]:
        """The tasks, methods and networks that are code of somebody's own."""
        blocks = (self.content.get("settings", {}), *self.content["runs"])
        names = (module_form(name) for key in ("task", "method", "network") for name in _named(blocks, key))
        return sorted(filter(is_plugin, names))

    @property
    def needs_packages(self) -> bool:
        """Whether planning its runs makes environments of other packages, which may not be there where it is read."""
        blocks = (self.content.get("settings", {}), *self.content["runs"])
        return any(name not in TASKS for name in _named(blocks, "task"))

    def with_settings(self, settings: Mapping[str, Any]) -> Study:
        """The same study with these settings in every run; an axis of that name is no axis any more."""
        if not settings:
            return self
        if not self.plugins:
            check_names(settings)
        runs = [_without(block, settings) for block in self.content["runs"]]
        settings = _without(self.content.get("settings", {}), settings) | dict(settings)
        return Study(self.name, {**self.content, "settings": settings, "runs": runs})


def _without(block: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The block, but it neither gives these settings nor searches them."""
    kept = {name: value for name, value in block.items() if name not in names}
    search = {name: value for name, value in kept.pop(SEARCH, {}).items() if name not in names}
    return kept | ({SEARCH: search} if searched_settings(search) else {})


def _plan_block(study: str, shared: Mapping[str, Any], block: Mapping[str, Any]) -> Iterator[PlannedRun]:
    variant = block.get("variant", "")
    settings = {**shared, **block}
    settings.pop("variant", None)
    search = settings.pop(SEARCH, {})
    plugins = [groups_for(**{key: name}) for key in ("task", "method") for name in _named([settings], key)]
    hints = types_of(dict.fromkeys(itertools.chain(groups_for(), *plugins)))
    axes = {name: value for name, value in settings.items() if is_axis(value, hints.get(name))}
    if (count := math.prod(map(len, axes.values())) * search.get("draws", 1)) > MOST_RUNS:
        raise BadInput(f"study {study} has a grid of {count:,} runs; it may have {MOST_RUNS:,}.")
    for values, drawn in itertools.product(itertools.product(*axes.values()), draw_settings(search)):
        varied = dict(zip(axes, values, strict=True)) | drawn
        chosen = settings | varied
        place = ", ".join(f"{name} {_plain(value)}" for name, value in varied.items())
        try:
            run = _resolve_run(dict(chosen))
            yield PlannedRun(variant=variant, run=run, varied=tuple(varied), given=chosen)
        except (PackagesMissing, Untrusted):
            raise
        except BadInput as error:
            raise BadInput(f"study {study}, {place or 'its run'}: {error}") from None


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)


def is_axis(value: Any, hint: Any) -> bool:
    """A list, unless the setting takes a list itself, such as hidden; then a list of lists."""
    if typing.get_origin(hint) is not tuple or not isinstance(value, list):
        return isinstance(value, list)
    lists = [isinstance(item, list) for item in value]
    if any(lists) and not all(lists):
        raise BadInput(f"{shown(value)} has numbers beside lists; an axis of lists has lists alone.")
    return any(lists)


def _resolve_run(chosen: dict[str, Any]) -> Run:
    names = {name: chosen.pop(name, None) for name in ("task", "method", "preset")}
    if names["task"] is None or names["method"] is None:
        raise BadInput("every run needs a task and a method.")
    return resolve_names(names["task"], names["method"], names["preset"], **chosen)


# The plan of a study as data


def record_plan(study: Study) -> list[dict[str, Any]]:
    as_data = lambda planned: {**planned._asdict(), "run": planned.run.to_dict(), "id": planned.run.identity}
    return [as_data(planned) for planned in study.planned]


def read_plan(records: Iterable[Mapping[str, Any]]) -> tuple[PlannedRun, ...]:
    """Raises ValueError, KeyError and TypeError for what is not a plan."""
    return tuple(map(_read_planned, records))


def _read_planned(record: Mapping[str, Any]) -> PlannedRun:
    run, identity = read_run(record["run"]), record["id"]
    if not isinstance(identity, str) or not re.fullmatch("[0-9a-f]{8}", identity):
        raise BadInput(f"{shown(identity)} is not the identity of a run.")
    object.__setattr__(run, "recorded_identity", identity)
    return PlannedRun(variant=record["variant"], run=run, varied=tuple(record["varied"]), given=dict(record["given"]))


# Where studies come from


def catalogue() -> dict[str, Study]:
    """The paper's tables and figures."""
    folder = resources.files("iqrl.experiments.study") / "catalogue"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name[:-5])
    return {file.name[:-5]: _parse(file.name[:-5], file.read_text("utf-8"), file.name) for file in files}


def find_study(name: str) -> Study:
    """A study of the catalogue by its name, or the user's own by the path of its file."""
    if name.endswith(".toml"):
        return _parse(Path(name).stem, read_text(Path(name)), name)
    studies = catalogue()
    if name not in studies:
        error = unknown("study", name, studies)
        raise BadInput(f"{error} A study of your own is a file that ends in .toml.")
    return studies[name]


def _parse(name: str, text: str, source: str) -> Study:
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{source} is not valid TOML: {error}.") from error
    try:
        check_content(content)
    except BadInput as error:
        raise BadInput(f"in {source}: {error}") from None
    return Study(name, content)


def check_content(content: Mapping[str, Any]) -> None:
    """Check names and kinds. The values of settings are checked when the runs are planned."""
    for key in content:
        if key not in KEYS:
            raise unknown("key", key, KEYS)
    for key, kind, words in (
        ("title", str, "text"), ("about", str, "text"), ("beside", str, "text"), ("reference", str, "a method"),
        ("charts", list, "a list of columns"), ("analyses", list, "a list of names"), ("settings", dict, "a table"),
        ("runs", list, "tables [[runs]]"),
    ):  # fmt: skip
        if key in content and not isinstance(content[key], kind):
            raise BadInput(f"{key} must be {words}, got {shown(content[key])}.")
    margin = content.get("margin", MARGIN)
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 < margin < 1:
        raise BadInput(f"margin must be a number between 0 and 1, a share of a task's range, got {shown(margin)}.")
    for key in ("charts", "analyses"):
        for name in content.get(key, ()):
            if not isinstance(name, str):
                raise BadInput(f"{key} must be a list of names, got {shown(content[key])}.")
    for name in content.get("analyses", ()):
        if name not in ANALYSES:
            raise unknown("analysis", name, ANALYSES)
    if not content.get("runs") or not all(isinstance(block, dict) for block in content["runs"]):
        raise BadInput("there are no runs; give at least one table [[runs]] with a task and a method.")
    names, blocks = _block_keys(), (content.get("settings", {}), *content["runs"])
    # A task or method of the user's own may have settings of its own. They are checked when it is loaded.
    plugin = any(":" in name for key in ("task", "method") for name in _named(blocks, key))
    for block in blocks:
        if SEARCH in block:
            check_search(block[SEARCH], {**content.get("settings", {}), **block})
        for name in (*block, *searched_settings(block.get(SEARCH, {}))):
            if name not in names and not plugin:
                raise unknown("setting", name, names)
        if not isinstance(block.get("variant", ""), str):
            raise BadInput(f"variant must be text, got {shown(block['variant'])}.")
        empty = [name for name, value in block.items() if value == []]
        if empty:
            raise BadInput(f"{empty[0]} is an empty list; an axis needs at least one value.")


def _named(blocks: Iterable[Mapping[str, Any]], key: str) -> set[str]:
    """The tasks or methods that blocks name."""
    values = (block.get(key) for block in blocks)
    names = itertools.chain(*(value if isinstance(value, list) else [value] for value in values))
    return {name for name in names if isinstance(name, str)}


def _block_keys() -> list[str]:
    """What a table [settings] or [[runs]] may set."""
    return [*settings_of(groups_for()), "task", "method", "preset", "variant", SEARCH]
