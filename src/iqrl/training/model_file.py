"""A trained model as one file: settings, what acting needs of each agent, and curves; or all that learning needs.

The file is safetensors, sealed like a checkpoint (`files.py`): arrays, and beside them JSON with the settings of the
run and a description of the task. An agent acts from it without the environment's code.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import polars as pl
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from iqrl.core.agent import QLearner, plain_form
from iqrl.core.encoders import Image
from iqrl.envs.base import Task, external_task
from iqrl.envs.registry import make_task
from iqrl.envs.spaces import describe_space, read_space
from iqrl.errors import BadInput, RunFailed
from iqrl.files import UNSEALED, Damaged, claim, is_sealed, mapped, seal, why, write_whole
from iqrl.make_run import read_run
from iqrl.methods.registry import build_agent
from iqrl.plugins import mark_of, trust_marked, warn_of_edits
from iqrl.settings import Run
from iqrl.training.checkpoint import ENVIRONMENTS, compressed, named_leaves, read_arrays, read_environments
from iqrl.training.loop import Session, driver_of
from iqrl.training.results import Result
from iqrl.training.run_directory import NO_EVALUATIONS, RunStore, Saved

FORMAT = 1
SUFFIX = ".iqrl"
CURVES, EVALUATIONS, ACTING, LEARNING = "curves", "evaluations", "acting", "learning"

Change = dict[str, Any]
"""of settings: the step, and each setting's old and new value"""


class SavedModel(NamedTuple):
    result: Result
    session: Session | None
    """to go on learning, where the file has what that needs"""
    changes: list[Change]


def write_model(path: Path, result: Result, session: Session | None, changes: list[Change]) -> Path:
    """`session`: to go on learning from. `changes`: of settings between two calls of `learn`."""
    kind = ACTING if session is None else LEARNING
    whole = acting_state(result) if session is None else jax.device_get(session.state)
    arrays = {f"{kind}{name}": np.asarray(leaf, order="C") for name, leaf in named_leaves(whole).items()}
    packed = dict(part for name, array in arrays.items() for part in compressed(name, array))
    packed |= {ENVIRONMENTS + name: array for name, array in (session.snapshot() if session else {}).items()}
    packed[CURVES] = np.frombuffer(_as_parquet(result.metrics), np.uint8)
    if session is not None and session.evaluations.height:
        packed[EVALUATIONS] = np.frombuffer(_as_parquet(session.evaluations), np.uint8)
    marks = {"step": str(result.step), "changes": json.dumps(changes)} | {
        "sealed": claim("model"), "format": str(FORMAT), "holds": kind, "run": json.dumps(result.run.to_dict()),
        "task": json.dumps(describe_task(result.task)), "mark": mark_of(*result.run.names), "checksum": UNSEALED,
    }  # fmt: skip
    try:
        write_whole(path, *seal(save(packed, metadata=marks)))
    except OSError as error:
        raise RunFailed(f"cannot write {path}: {why(error)}.") from error
    return path


def read_model(path: Path, task: str | None = None) -> SavedModel:
    """`task`: the name of the environment here, where it has another than it had."""
    with opened_model(path) as (file, marks):
        return _read(path, file, marks, task)


def read_curves(path: Path) -> tuple[Run, pl.DataFrame]:
    """The settings of a model and its curves; no code of the environment is needed."""
    with opened_model(path) as (file, marks):
        return read_run(json.loads(marks["run"])), _read_parquet(file, CURVES)


class Curves(NamedTuple):
    run: Run
    metrics: pl.DataFrame
    stopped: str = ""
    """why its own rules ended it; empty where they did not"""
    step: int = 0
    """up to which it was trained, which may lie after the last whole period"""


def curves_of(path: Path) -> Curves:
    """Of the directory of a run or the file of a model."""
    if path.is_dir() or path.suffix != SUFFIX:
        store = RunStore.open(path)
        return Curves(store.run, store.curves(), store.stopped, store.trained_step)
    run, curves = read_curves(path)
    if not curves.height:
        raise BadInput(f"{path} has no curves: no period had ended when it was saved.")
    return Curves(run, curves, step=step_of(path))


@contextlib.contextmanager
def opened_model(path: Path) -> Generator[tuple[Any, dict[str, str]]]:
    """The arrays and the marks of a file, if it is a whole model of a version that is known here."""
    try:
        with mapped(path) as (view, _):
            if not is_sealed(path, view, "model"):
                raise Damaged(f"{path} is damaged or no model of iqrl: it has no checksum.")
            with safe_open(path, framework="numpy") as file:
                yield file, _read_marks(path, file)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}.") from None
    except BadInput:
        raise
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        reason = why(error) if isinstance(error, OSError) else str(error)
        raise Damaged(f"{path} is damaged or no model of iqrl ({reason}).") from error


def _read_marks(path: Path, file: Any) -> dict[str, str]:
    marks = file.metadata() or {}
    if not marks.get("format", "").isdigit() or "holds" not in marks:
        raise BadInput(f"{path} is no model of iqrl.")
    if int(marks["format"]) > FORMAT:
        raise BadInput(f"{path} was written by a later version of iqrl; this one reads format {FORMAT}.")
    return marks


def _read(path: Path, file: Any, marks: dict[str, str], name: str | None) -> SavedModel:
    settings, kind, changes = json.loads(marks["run"]), marks["holds"], json.loads(marks.get("changes", "[]"))
    run = read_run(settings if name is None else settings | {"task": name})
    trust_marked(marks.get("mark"), *run.names)  # before the environment is looked for, now or when it is evaluated
    curves = _read_parquet(file, CURVES)
    if kind == LEARNING:
        warn_of_edits(marks.get("mark"), *run.names)
        driver = driver_of(run)
        state = _fill(path, file, kind, jax.eval_shape(driver.init))
        evaluations = _read_parquet(file, EVALUATIONS) if EVALUATIONS in file.keys() else NO_EVALUATIONS  # noqa: SIM118
        session = Session(driver, Saved(state, curves, dict(read_environments(path, file)), evaluations))
        return SavedModel(session.result(), session, changes)
    task = task_without_environment(json.loads(marks["task"])) if name is None else make_task(run)
    agent = build_agent(run, task)
    like = jax.eval_shape(lambda keys: jax.vmap(lambda key: _acting(agent, agent.init(key)))(keys), _keys(run))
    state = jax.tree.map(np.asarray, _fill(path, file, kind, like))
    step = int(marks["step"]) if "step" in marks else max(curves["step"], default=0)
    result = Result(
        run=run, metrics=curves, agent_state=state, task=task, agent=plain_form(agent), timing={}, path=path, step=step
    )
    return SavedModel(result, None, changes)


def step_of(path: Path) -> int:
    """At which step a model was saved; -1 where there is no model."""
    try:
        with safe_open(path, framework="numpy") as file:
            return int((file.metadata() or {}).get("step", -1))
    except (SafetensorError, OSError, ValueError):
        return -1


def _keys(run: Run) -> jax.Array:
    return jax.vmap(jax.random.key)(np.arange(run.seeds))


def _fill(path: Path, file: Any, kind: str, like: Any) -> Any:
    expected = {f"{kind}{name}": leaf for name, leaf in named_leaves(like).items()}
    arrays = dict(read_arrays(path, file, expected, others=(CURVES, EVALUATIONS)))
    return jax.tree.unflatten(jax.tree.structure(like), [jax.numpy.asarray(arrays[name]) for name in expected])


def acting_state(result: Result) -> Any:
    """What acting needs, of each seed."""
    return jax.vmap(lambda state: _acting(result.agent, state))(result.agent_state)


def _acting(agent: Any, state: Any) -> Any:
    return agent.acting_state(state) if isinstance(agent, QLearner) else state


def _as_parquet(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def _read_parquet(file: Any, name: str) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(file.get_tensor(name).tobytes()))


# Tasks without their environment


def describe_task(task: Task) -> dict[str, Any]:
    return {
        "name": task.name, "actions": task.actions, "low": list(task.low), "high": list(task.high),
        "time_limit": task.time_limit, "image": task.image, "layers": task.layers,
        "spaces": [describe_space(space) for space in task.spaces or ()],
    }  # fmt: skip


def task_without_environment(described: dict[str, Any]) -> Task:
    """The task as far as acting goes."""
    name = described["name"]

    def missing(seed: int) -> Any:
        raise BadInput(f"this model was saved to act, without {name}.")

    return external_task(
        missing,
        name=name,
        actions=described["actions"],
        low=tuple(described["low"]),
        high=tuple(described["high"]),
        time_limit=described["time_limit"],
        image=Image(*described["image"]) if described["image"] else None,
        layers=tuple(map(tuple, described["layers"])),
        spaces=tuple(map(read_space, described["spaces"])) or None,
    )
