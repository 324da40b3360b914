"""IQRL: deep Q-learning that does not forget."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iqrl.api import resume, train
    from iqrl.config import Run
    from iqrl.errors import BadInput, RunFailed
    from iqrl.measure.outside import InterferenceMeter
    from iqrl.methods import METHODS, Method
    from iqrl.results import Result, TrainedAgent
    from iqrl.settings import resolve
    from iqrl.tasks import TASKS
    from iqrl.tasks.base import Task
    from iqrl.training.evaluation import evaluate
    from iqrl.training.loop import load

__version__ = "0.1.0"

# Loaded when first used: the command line answers at once where JAX is not needed.
_HOMES = {
    "METHODS": "methods", "TASKS": "tasks", "BadInput": "errors", "InterferenceMeter": "measure.outside",
    "Method": "methods", "Result": "results", "Run": "config", "RunFailed": "errors", "Task": "tasks.base",
    "TrainedAgent": "results",
    "evaluate": "training.evaluation", "load": "training.loop", "resolve": "settings", "resume": "api", "train": "api",
}  # fmt: skip

__all__ = [
    "METHODS", "TASKS", "BadInput", "InterferenceMeter", "Method", "Result", "Run", "RunFailed", "Task",
    "TrainedAgent", "evaluate", "load", "resolve", "resume", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'iqrl' has no attribute {name!r}")
    value = getattr(import_module(f"iqrl.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
