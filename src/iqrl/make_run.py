"""How settings become a `Run`: the library's defaults, the task's, the method's, a preset, and what was given."""

from __future__ import annotations

import dataclasses
import functools
import json
import keyword
import math
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import gymnasium

from iqrl.core.networks import Network
from iqrl.envs.base import Task, TaskEntry
from iqrl.envs.external import copies_of
from iqrl.envs.registry import TASK_GROUPS, find_task, groups_of_task, task_of
from iqrl.errors import BadInput, shown, unknown
from iqrl.methods.base import Method
from iqrl.methods.iq_images import RELEASED_LAYER
from iqrl.methods.registry import METHODS, RECOMMENDED, find_method
from iqrl.plugins import load_attribute, name_of, name_of_network, trust
from iqrl.settings import (
    COMMON,
    Measuring,
    QNetwork,
    Run,
    Settings,
    TaskSettings,
    check_groups,
    check_value,
    fields_of,
    run_class,
    settings_of,
    task_settings_class,
    types_of,
)

Named = str | Callable | gymnasium.Env
"""a name, a class or function of the user's own, or an environment, of which copies are made"""
NAME = re.compile(r"[\w./:+-]{1,200}")
"""what a task or a method may be called"""


def resolve(task: Named, method: Named | None = None, preset: str | None = None, **settings: Any) -> Run:
    """A complete `Run`: the library's defaults, the task's, the method's, then the preset, then the settings given.

    A task or method of the user's own is imported: whoever calls this names it. Without a method it is the one that is
    recommended for the task.
    """
    task = copies_of(task) if isinstance(task, gymnasium.Env) else task
    if "network" in settings:
        settings["network"] = name_of_network(settings["network"])
    trust(name for name in (name_of(task), name_of(method or ""), settings.get("network", "")) if ":" in name)
    if method is not None:
        return resolve_names(task, method, preset, **settings)
    chosen = recommended_method(task, settings)
    try:
        return resolve_names(task, chosen, preset, **settings)
    except BadInput as error:
        if chosen not in str(error):
            raise
        raise BadInput(f"{str(error).rstrip('.')}; {chosen} is the method here where none is named.") from error


def recommended_method(task: Named, settings: Mapping[str, Any] = MappingProxyType({})) -> str:
    """What `docs/which-method.md` recommends for a task of this kind."""
    entry = find_task(name_of(task))
    names = settings_of((TaskSettings, *entry.settings))
    given = {name: value for name, value in settings.items() if name in names}
    if isinstance(given.get("env_kwargs"), Mapping):
        given["env_kwargs"] = _as_json(given["env_kwargs"])
    record = task_of(entry, task_settings_class(entry.settings)(**given))
    return RECOMMENDED["images" if record.image else "vectors"]


def resolve_names(task: Named, method: Named, preset: str | None = None, **settings: Any) -> Run:
    """The same for names that stand in a file; what is not trusted is not imported."""
    task_name, method_name = name_of(task), name_of(method)
    if "network" in settings:
        settings["network"] = name_of_network(settings["network"])
    if isinstance(settings.get("env_kwargs"), Mapping):
        settings["env_kwargs"] = _as_json(settings["env_kwargs"])
    entry, found = find_task(task_name), find_method(method_name)
    check_names(settings, (*entry.settings, *check_groups(method_name, found.settings)))
    given = check_settings(settings, (*COMMON, *_declared(), *entry.settings, *found.settings))
    _refuse_other_methods(method_name, found, given)
    _refuse_fixed(method_name, found, given)
    _refuse_unmeasured(given)
    _refuse_other_tasks(task_name, entry, given)
    own_task = task_settings_class(entry.settings)
    options = own_task(**{name: given[name] for name in settings_of((TaskSettings, *entry.settings)) if name in given})
    record = task_of(entry, options)
    _refuse_imageless(record, given)
    chosen = _preset(preset, method_name, found, record, given)
    values = _used(record.defaults, found) | dict(found.defaults) | dict(record.network)
    values = values | chosen | given | dict(found.fixed)
    values |= _before_heads(values, given)
    steps = values.get("steps", record.paper_steps or 100_000)
    values = {name: value(steps) if callable(value) else value for name, value in values.items()}
    cls = run_class((*found.settings, *entry.settings))
    for name in values:
        if name not in {field.name for field in dataclasses.fields(cls)}:
            raise BadInput(f"{method_name} on {task_name} decides {shown(name)}, which is no setting of theirs.")
    values = _derived(values, steps) | values
    _refuse_short(method_name, values, given)
    run = cls(task=task_name, method=method_name, **values)
    return found.settle(run, record, given)


def changed(run: Run, **settings: Any) -> Run:
    """The run with other settings, if they may change while it learns."""
    fields = {field.name: field for field in dataclasses.fields(run)}
    free = [name for name, field in fields.items() if field.metadata.get("may_change")]
    for name in settings:
        if name not in fields:
            raise unknown("setting", name, free)
        if name not in free:
            raise BadInput(f"{name} is settled when a model begins to learn; what may change is {', '.join(free)}.")
    _refuse_fixed(run.method, find_method(run.method), settings)
    return dataclasses.replace(run, **settings)


def _refuse_short(method: str, values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Steps that end before the method's own default lets it learn."""
    starts, steps = values.get("learning_starts", settings_of(COMMON)["learning_starts"].default), values["steps"]
    if "learning_starts" in given or starts <= steps:
        return
    every = values.get("update_every", 1)
    enough = max(float(f"{steps / 3:.0e}") // every * every, every)  # a third of the steps, in one digit
    raise BadInput(
        f"{method} waits {starts:,} steps (learning_starts) before its first update: give more steps than that, or "
        f"learning_starts={enough:.0f}."
    )


def _as_json(keywords: Mapping[str, Any]) -> str:
    try:
        return json.dumps(keywords, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"env_kwargs cannot be written as JSON ({error}); give a function that makes the environment with them."
        ) from error


def read_run(config: Mapping[str, Any]) -> Run:
    """A run from its saved settings. A task or method of the user's own is not imported for it."""
    task, method = config["task"], config["method"]
    for name in (task, method):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise BadInput(f"task and method must be names, not {shown(name)}.")
    plugin = ":" in task or ":" in method
    groups = () if ":" in method else find_method(method).settings
    groups += () if ":" in task else groups_of_task(task)
    names = settings_of((*COMMON, *groups))
    others = {name: value for name, value in config.items() if name not in (*names, "task", "method")}
    if plugin:
        groups += _groups_in(others)
    else:
        _refuse_unused(others)
    return run_class(groups)(**{name: value for name, value in config.items() if plugin or name not in others})


def _groups_in(values: Mapping[str, Any]) -> tuple[type[Settings], ...]:
    """The library's groups that these settings are of, and a group of those that are declared in a file not loaded."""
    groups = tuple(group for group in _declared() if settings_of((group,)).keys() <= values.keys())
    names = settings_of(groups)
    rest = {name: value for name, value in values.items() if name not in names}
    return (*groups, _unchecked(rest)) if rest else groups


def _unchecked(values: Mapping[str, Any]) -> type[Settings]:
    for name in values:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_") or hasattr(Run, name):
            raise BadInput(f"{shown(name)} is not a name that a setting can have.")
    as_field = lambda value: dataclasses.field(default=tuple(value) if isinstance(value, list) else value)
    fields = {name: as_field(value) for name, value in values.items()}
    return type("OwnSettings", (Settings,), {"__annotations__": dict.fromkeys(values, Any), **fields})


def _refuse_unused(others: Mapping[str, Any]) -> None:
    """Runs used to be saved with the settings of all methods and tasks; at their defaults they mean nothing."""
    declared = settings_of(_declared())
    for name, value in others.items():
        if name not in declared:
            raise unknown("setting", name, [*settings_of((*COMMON, *_declared())), "task", "method"])
        default = declared[name].default
        if value != (list(default) if isinstance(default, tuple) else default):
            raise BadInput(f"{name} is {shown(value)}, and the run has no such setting.")


# Which settings there are


@functools.cache
def _declared() -> tuple[type[Settings], ...]:
    """The groups of all methods and tasks of the library."""
    groups = [group for method in METHODS.values() for group in method.settings]
    return tuple(dict.fromkeys((*groups, *TASK_GROUPS)))


def groups_for(task: str | None = None, method: str | None = None) -> tuple[type[Settings], ...]:
    """Every group of the library, and those of a task and a method of the user's own."""
    groups: tuple[type[Settings], ...] = (*COMMON, *_declared())
    if method is not None and ":" in method:
        groups += check_groups(method, find_method(method).settings)
    if task is not None and ":" in task:
        groups += find_task(task).settings
    return tuple(dict.fromkeys(groups))


def unused_settings(task: str, method: str) -> set[str]:
    """The library's settings that a run of this method on this task does not have. Nothing is imported for it; a task
    or method of the user's own may have any."""
    used = METHODS[method].settings if method in METHODS else _declared()
    return set(settings_of(_declared())) - set(settings_of((*used, *groups_of_task(task))))


def check_names(names: Iterable[str], own: Iterable[type] = ()) -> None:
    known = [*settings_of((*COMMON, *_declared(), *own)), "task", "method"]
    for name in names:
        if name not in known:
            raise unknown("setting", name, known)


def check_settings(settings: Mapping[str, Any], groups: Iterable[type]) -> dict[str, Any]:
    """Each value in its declared type and range."""
    groups = tuple(groups)
    fields, hints = settings_of(groups), types_of(groups)
    return {name: check_value(fields[name], hints[name], value) for name, value in settings.items()}


# Presets


PAPER_GAMMA = 0.995
"""not stated; of the values tried, the one with which IQ's cells of Table I come out: docs/differences.md"""


def _preset(preset: str | None, name: str, method: Method, task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    if preset is None:
        return {}
    if not isinstance(preset, str) or preset not in PRESETS:
        raise unknown("preset", preset if isinstance(preset, str) else shown(preset), PRESETS)
    return PRESETS[preset](name, method, task, given)


def paper_preset(name: str, method: Method, task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the paper, and the Baselines script its tables match, say for this task."""
    if not task.paper_steps:
        raise BadInput(f"the paper has no settings for {task.name}; leave out the preset.")
    length = {} if "steps" in given else {"steps": task.paper_steps, "period": task.paper_period}
    own = dict(method.presets.get("paper", {}))
    return {"gamma": PAPER_GAMMA, "bootstrap_time_limit": False} | length | own | dict(task.paper)


def original_preset(name: str, method: Method, task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the method's own authors used on tasks of this kind."""
    if "original" not in method.presets:
        raise BadInput(f"method {name!r} has no preset original; leave it out.")
    if task.image:
        raise BadInput(f"the preset original is for states in a vector, and {task.name} has images; leave it out.")
    return dict(method.presets["original"])


def released_preset(name: str, method: Method, task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the code that the paper's authors published does: one more shared layer, and nothing else of IQ."""
    if "as-released" not in method.presets:
        raise BadInput(f"method {name!r} has no preset as-released; leave it out.")
    paper = paper_preset(name, method, task, given) if task.paper_steps else {}
    hidden = (*dict(task.network).get("hidden", ()), RELEASED_LAYER)
    return paper | dict(method.presets["as-released"]) | {"hidden": hidden}


PRESETS = {"paper": paper_preset, "original": original_preset, "as-released": released_preset}


# Settings that the run would not use are refused.


def _refuse_other_methods(name: str, method: Method, given: Mapping[str, Any]) -> None:
    groups = [group for other in METHODS.values() for group in other.settings if group not in method.settings]
    for group in dict.fromkeys(groups):
        for field in fields_of(group):
            if field.name in given and field.name not in settings_of(method.settings):
                raise BadInput(f"method {name!r} has no {group.__doc__}; {field.name} does not apply to it.")


def _refuse_other_tasks(name: str, entry: TaskEntry, given: Mapping[str, Any]) -> None:
    for group in TASK_GROUPS:
        for field in fields_of(group):
            if field.name in given and field.name not in settings_of(entry.settings):
                raise BadInput(f"{field.name} is a setting of {group.__doc__}; it does not apply to {name}.")


def _refuse_fixed(name: str, method: Method, given: Mapping[str, Any]) -> None:
    for setting in given:
        if setting in method.fixed and given[setting] != method.fixed[setting]:
            its = method.fixed[setting]
            what = f"{setting} is always {its} for {name}" if its != "" else f"{name} needs its own {setting}"
            other = ""
            if setting == "buffer_size" and its == 1:
                what, other = f"{name} stores nothing and has no buffer_size", ", or take a method with a buffer: dqn"
            raise BadInput(f"{what}; leave it out{other}.")


def _refuse_unmeasured(given: Mapping[str, Any]) -> None:
    for field in fields_of(Measuring):
        if field.name in given and not given.get("measure_every") and field.name != "measure_every":
            raise BadInput(f"{field.name} does nothing while nothing is measured; give measure_every too, such as 100.")


def _refuse_imageless(task: Task, given: Mapping[str, Any]) -> None:
    if "padding" in given and task.image is None:
        raise BadInput(f"padding is a setting of convolutions, and {task.name} has no images.")
    for name in ("frame_stack", "flatten_observations", "n_envs", "env_processes"):
        if name in given and task.external is None:
            raise BadInput(f"{name} is a setting of Gymnasium's environments; it does not apply to {task.name}.")


# What follows from other settings


def _before_heads(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A network of the user's own stands before the heads: hidden layers between them are there only if asked for."""
    name = values.get("network")
    if not name:
        return {}
    is_whole = isinstance(load_attribute(name), Network)  # says at once what cannot be imported
    between = values.get("features", "dense") != "dense" or "hidden" in given
    idle = [field.name for field in fields_of(QNetwork) if field.name != "network"] if is_whole else []
    idle += [] if between else ["activation", "layer_norm", "own_layers"]
    for setting in (*idle, "padding"):
        if setting in given:
            raise BadInput(f"{setting} is a setting of the library's layers, and {name} stands in their place.")
    return {} if between else {"hidden": (), "own_layers": 0}


def _used(defaults: Iterable[tuple[str, Any]], method: Method) -> dict[str, Any]:
    """A task's defaults, but for those of parts that the method does not have."""
    names = settings_of((*COMMON, *method.settings))
    return {name: value for name, value in defaults if name in names}


RATE_ON_HATS = 2e-5
"""Each hat is 1 where it is highest, and all of a state's hats move: so steps are shorter than with dense layers. The
best of six rates for DQN without replay: docs/no-memory.md"""


def _derived(values: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """What follows from other settings when it is not given."""
    every = math.lcm(values.get("update_every", 1), values.get("n_envs", 1))
    lengths = {"steps": steps, "period": max(steps // 40 // every, 1) * every, "epsilon_decay": steps // 10}
    if values.get("optimiser") == "bounded":
        return lengths | {"learning_rate": 1.0}  # the bound is what keeps this step short
    return lengths | ({"learning_rate": RATE_ON_HATS} if values.get("features") == "hats" else {})
