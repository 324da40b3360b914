"""IQRL: deep Q-learning that needs almost no memory, and the laboratory that shows why."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iqrl.api import resume, train
    from iqrl.diagnostics.interference.any_agent import InterferenceMeter
    from iqrl.envs.base import EnvInputs, Task, TaskEntry
    from iqrl.envs.registry import TASKS
    from iqrl.errors import BadInput, RunFailed
    from iqrl.make_run import resolve
    from iqrl.methods.base import Method
    from iqrl.methods.registry import METHODS
    from iqrl.settings import Run, Settings, setting
    from iqrl.training.evaluation import evaluate
    from iqrl.training.loop import load
    from iqrl.training.results import Result, TrainedAgent

__version__ = "0.1.0"

# Loaded when first used: the command line answers at once where JAX is not needed.
_HOMES = {
    "METHODS": "methods.registry", "TASKS": "envs.registry", "BadInput": "errors", "EnvInputs": "envs.base",
    "InterferenceMeter": "diagnostics.interference.any_agent", "Method": "methods.base", "Result": "training.results",
    "Run": "settings", "RunFailed": "errors", "Settings": "settings", "Task": "envs.base", "TaskEntry": "envs.base",
    "TrainedAgent": "training.results", "evaluate": "training.evaluation", "load": "training.loop",
    "resolve": "make_run", "resume": "api", "setting": "settings", "train": "api",
}  # fmt: skip

__all__ = [
    "METHODS", "TASKS", "BadInput", "EnvInputs", "InterferenceMeter", "Method", "Result", "Run", "RunFailed",
    "Settings", "Task", "TaskEntry", "TrainedAgent", "evaluate", "load", "resolve", "resume", "setting", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'iqrl' has no attribute {name!r}")
    value = getattr(import_module(f"iqrl.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
