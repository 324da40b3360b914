"""How settings become a `Run`: the library's defaults, the method's, a preset, and what was given."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from iqrl.config import (
    COMMON,
    OPTIONAL,
    OPTIONS,
    Clustering,
    Consolidation,
    Distillation,
    Measuring,
    Run,
    TaskOptions,
    check_names,
    checked,
    fields_of,
)
from iqrl.errors import BadInput, unknown
from iqrl.methods import Method, find_method
from iqrl.plugins import name_of
from iqrl.tasks import find_task, make_task, refuse_unused
from iqrl.tasks.base import Task

TASK_OPTIONS = {field.name for field in fields_of(TaskOptions)}


def resolve(task: str | Callable, method: str | Callable, preset: str | None = None, **settings: Any) -> Run:
    """A complete `Run`: the library's defaults, the task's, the method's, then the preset, then the settings given."""
    task, method = name_of(task), name_of(method)
    check_names(settings)
    found = find_method(method)
    _refuse_unused(method, found, settings)
    given = {name: checked(OPTIONS[name], value) for name, value in settings.items()}
    _refuse_fixed(method, found, given)
    _refuse_unmeasured(given)
    record = find_task(task)(TaskOptions(**{name: given[name] for name in given if name in TASK_OPTIONS}))
    refuse_unused(record, settings)
    if preset is not None and preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    chosen = PRESETS[preset](method, found, record, given) if preset else {}
    defaults = _used(record.defaults, found) | dict(found.defaults) | dict(record.network)
    values = defaults | chosen | given | dict(found.fixed)
    steps = values.get("steps", record.paper_steps or 100_000)
    values = {name: value(steps) if callable(value) else value for name, value in values.items()}
    _refuse_imageless(record, given)
    run = Run(task=task, method=method, **(_lengths(values, steps, found) | values))
    _check_target(run, found)
    _check_centroids(run, found, record)
    return with_estimated_contexts(run, given) if run.contexts == "auto" else run


# Presets


PAPER_GAMMA = 0.995
"""not stated; of the values tried, the one with which IQ's cells of Table I come out: docs/differences.md"""


def paper_preset(name: str, method: Method, task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the paper, and the Baselines script its tables match, say for this task."""
    if not task.paper_steps:
        raise BadInput(f"the paper has no settings for {task.name}; leave out the preset.")
    length = {} if "steps" in given else {"steps": task.paper_steps, "period": task.paper_period}
    return {"gamma": PAPER_GAMMA, "bootstrap_time_limit": False} | length | dict(method.paper) | dict(task.paper)


def original_preset(name: str, method: Method, task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the method's own authors used on tasks of this kind."""
    if not method.original:
        raise BadInput(f"method {name!r} has no preset original; leave it out.")
    if task.image:
        raise BadInput(f"the preset original is for states in a vector, and {task.name} has images; leave it out.")
    return dict(method.original)


PRESETS = {"paper": paper_preset, "original": original_preset}


# What does not fit


def _refuse_unused(name: str, method: Method, settings: Mapping[str, Any]) -> None:
    """A setting that would change nothing is a mistake, not a wish."""
    for group in set(OPTIONAL) - set(method.extra_groups):
        for field in fields_of(group):
            if field.name in settings:
                raise BadInput(f"method {name!r} has no {group.__doc__}; {field.name} does not apply to it.")


def _refuse_fixed(name: str, method: Method, given: Mapping[str, Any]) -> None:
    for setting in given:
        if setting in method.fixed and given[setting] != method.fixed[setting]:
            raise BadInput(f"{setting} is always {method.fixed[setting]} for {name}; leave it out.")


def _refuse_unmeasured(given: Mapping[str, Any]) -> None:
    for field in fields_of(Measuring):
        if field.name in given and not given.get("measure_every") and field.name != "measure_every":
            raise BadInput(f"{field.name} does nothing while nothing is measured; give measure_every too, such as 100.")


def _used(defaults: Iterable[tuple[str, Any]], method: Method) -> dict[str, Any]:
    """A task's defaults, but for those of parts that the method does not have."""
    names = {field.name for group in (*COMMON, *method.extra_groups) for field in fields_of(group)}
    return {name: value for name, value in defaults if name in names}


def _refuse_imageless(task: Task, given: Mapping[str, Any]) -> None:
    if "padding" in given and task.image is None:
        raise BadInput(f"padding is a setting of convolutions, and {task.name} has no images.")


def _lengths(values: Mapping[str, Any], steps: int, method: Method) -> dict[str, Any]:
    """The lengths that follow from others when they are not given."""
    every = values.get("update_every", 1)
    lengths = {"steps": steps, "period": max(steps // 40 // every, 1) * every, "epsilon_decay": steps // 10}
    return lengths | ({"consolidation_growth": steps} if Consolidation in method.extra_groups else {})


def _check_target(run: Run, method: Method) -> None:
    """Distillation and consolidation hold the network to its target; without one they would do nothing."""
    weight = {Distillation: run.distill_weight, Consolidation: run.consolidation_weight}
    held = [group for group in weight if group in method.extra_groups and weight[group] > 0]
    if held and not run.has_target:
        raise BadInput(
            f"target_period is {run.target_period}, which leaves no target network for the {held[0].__doc__} of "
            f"{run.method}; it must be more than update_every."
        )


def _check_centroids(run: Run, method: Method, task: Task) -> None:
    if Clustering not in method.extra_groups or "context_init" in method.fixed:
        if run.contexts == "auto":
            raise BadInput(
                f"contexts auto is for methods that cluster the states themselves while they learn, such as iq; "
                f"{run.method} does not: give a number."
            )
        return
    if run.contexts == "auto" and not run.centroids:
        return
    if run.contexts == "auto" or (run.context_init == "given") != bool(run.centroids):
        raise BadInput("centroids go with context_init given and a number of contexts: give all three or neither.")
    size = len(task.low)
    if run.centroids and len(run.centroids) != run.contexts * size:
        raise BadInput(
            f"centroids has {len(run.centroids)} numbers; {run.contexts} contexts of {size} variables need "
            f"{run.contexts * size}."
        )
    if run.context_init == "kmeans" and run.learning_starts < run.contexts:
        raise BadInput(
            f"learning_starts is {run.learning_starts}; with context_init kmeans it must be at least "
            f"the number of contexts, {run.contexts}."
        )


# Contexts found before training

RANDOM_STATES = 10_000
"""states of a random policy in which contexts are looked for"""


def with_estimated_contexts(run: Run, given: Mapping[str, Any]) -> Run:
    """k and the first centroids by density-based clustering of a random policy's states, as the paper recommends.

    The same for every seed of the run. A `context_init` that was asked for decides the centroids; k is still found.
    """
    from iqrl.parts.density import density_centroids  # not needed, and not loaded, otherwise
    from iqrl.tasks.exploring import random_states

    task = make_task(run)
    states = random_states(task, RANDOM_STATES)
    weights = {
        "task": lambda: 1 / np.square(np.subtract(task.high, task.low)),
        "running": lambda: 1 / np.maximum(np.var(states, axis=0), 1e-12),
        "none": lambda: np.ones(len(task.low)),
    }[run.context_scaling]()
    centroids = density_centroids(states, weights)
    if given.get("context_init", "given") != "given":
        return dataclasses.replace(run, contexts=len(centroids))
    values = tuple(np.float32(centroids).ravel().tolist())
    return dataclasses.replace(run, contexts=len(centroids), context_init="given", centroids=values)
