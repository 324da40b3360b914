"""IQRL: deep Q-learning that does not forget."""

from iqrl.api import resume, train
from iqrl.config import Run
from iqrl.errors import BadInput, RunFailed
from iqrl.methods import METHODS, Method, resolve
from iqrl.results import Result, TrainedAgent
from iqrl.tasks import TASKS
from iqrl.tasks.base import Task
from iqrl.train.evaluation import evaluate
from iqrl.train.training import load_result as load

__version__ = "0.1.0"

__all__ = [
    "METHODS", "TASKS", "BadInput", "Method", "Result", "Run", "RunFailed", "Task", "TrainedAgent",
    "evaluate", "load", "resolve", "resume", "train",
]  # fmt: skip
