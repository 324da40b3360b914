"""IQRL: deep Q-learning that needs almost no memory, and the laboratory that shows why."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iqrl import callbacks
    from iqrl.api import export, load, resume, train, tune
    from iqrl.diagnostics.interference.any_agent import InterferenceMeter
    from iqrl.envs.base import EnvInputs, Task, TaskEntry
    from iqrl.envs.registry import TASKS
    from iqrl.errors import BadInput, RunFailed
    from iqrl.make_run import resolve
    from iqrl.methods.base import Method, Span
    from iqrl.methods.registry import METHODS
    from iqrl.model import Model
    from iqrl.settings import Run, Settings, setting
    from iqrl.training.evaluation import evaluate
    from iqrl.training.results import Result, TrainedAgent

__version__ = "0.1.0"

# Loaded when first used: the command line answers at once where JAX is not needed.
_HOMES = {
    "METHODS": "methods.registry", "TASKS": "envs.registry", "BadInput": "errors", "EnvInputs": "envs.base",
    "InterferenceMeter": "diagnostics.interference.any_agent", "Method": "methods.base", "Result": "training.results",
    "Run": "settings", "RunFailed": "errors", "Settings": "settings", "Task": "envs.base", "TaskEntry": "envs.base",
    "TrainedAgent": "training.results", "evaluate": "training.evaluation", "export": "api", "load": "api",
    "resolve": "make_run", "resume": "api", "setting": "settings", "train": "api", "tune": "api",
    "Model": "model", "Span": "methods.base",
}  # fmt: skip
_MODELS = (
    "DQN", "SRNN", "DSOM", "TCNN", "IQ", "IQNoDistillation", "IQNoMultiHead", "IQNoClustering", "IQInitialStates",
    "IQGameScore", "IQRE", "IQTE", "Rainbow", "RainbowSRNN", "RainbowIQ", "RainbowIQRE", "RainbowIQTE", "DQNLayerNorm",
    "MeDQNU", "MeDQNR", "StreamQ", "StreamC51", "LocalQ",
)  # fmt: skip
"""a class for each method"""

__all__ = [
    "METHODS", "TASKS", "BadInput", "EnvInputs", "InterferenceMeter", "Method", "Model", "Result", "Run",
    "RunFailed", "Settings", "Span", "Task", "TaskEntry", "TrainedAgent", "callbacks", "evaluate", "export", "load",
    "resolve", "resume", "setting", "train", "tune", *_MODELS,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODELS:
        models = import_module("iqrl.model").MODELS.values()
        value = {model.__name__: model for model in models}[name]
    elif name == "callbacks":
        value = import_module("iqrl.callbacks")
    elif name in _HOMES:
        value = getattr(import_module(f"iqrl.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'iqrl' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
