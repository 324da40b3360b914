"""Export an agent: write its file, after the file gave what the agent gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from iqrl.errors import BadInput, unknown
from iqrl.exporting.numpy_file import numpy_source
from iqrl.exporting.program import Program, trace
from iqrl.exporting.subject import MARK, Subject, subject_of
from iqrl.files import opened, write_whole, writing
from iqrl.plugins import in_a_sentence
from iqrl.training.results import Result

SAMPLES = 256
"""observations on which a file is compared with its agent"""
ROUNDING = 1e-4
"""the largest difference that is rounding, as a share of the largest Q value"""


class Outputs(NamedTuple):
    """Of observations as the environment gives them."""

    actions: Any
    q_values: np.ndarray
    contexts: np.ndarray | None


Compute = Callable[["Samples"], Outputs]


class Exported(NamedTuple):
    path: Path
    difference: float
    """the largest, between a Q value of the file and one of the agent"""
    largest: float
    """the largest Q value among those compared"""


class Format(NamedTuple):
    suffix: str
    make: Callable[[Subject, Program], tuple[bytes, Compute]]
    """the bytes of the file, and what it computes"""


def export_result(
    result: Result, path: str | Path | None = None, to: str = "numpy", seed: int | None = None
) -> Exported:
    """Write the agent of one seed; nothing is written where the file would not give what the agent gives."""
    if to not in FORMATS:
        raise unknown("format", str(to), FORMATS)
    form = FORMATS[to]
    path = Path(path or f"agent{form.suffix}")
    _refuse_other_files(path)
    subject = subject_of(result, seed)
    program = trace(subject.agent, subject.state, subject.task.obs_size)
    content, compute = form.make(subject, program)
    difference, largest = compare(subject, compute)
    with writing(path):
        write_whole(path, content)
    return Exported(path, difference, largest)


def _refuse_other_files(path: Path) -> None:
    """Only a file that was exported before is written over."""
    if path.is_file():
        with writing(path), opened(path), path.open("rb") as file:
            if MARK.encode() not in file.read(1000):
                raise BadInput(f"{path} exists and was not exported by iqrl; choose another name.")


# The comparison


class Samples(NamedTuple):
    """Observations as the environment gives them, and the same in rows."""

    obs: list[Any]
    first: list[Any]
    score: np.ndarray
    obs_rows: np.ndarray
    first_rows: np.ndarray

    def arrays(self, subject: Subject) -> dict[str, np.ndarray]:
        """As a model gets them that takes arrays alone."""
        shape = subject.observation_shape
        of = lambda raw, rows: np.asarray(raw if subject.sees_arrays else rows, np.float32).reshape(-1, *shape)
        return {"obs": of(self.obs, self.obs_rows), "first": of(self.first, self.first_rows), "score": self.score}


def compare(subject: Subject, compute: Compute) -> tuple[float, float]:
    """The largest difference of Q values and the largest Q value; raises BadInput beyond rounding."""
    samples = sampled(subject)
    episode: dict[str, Any] = {"first": samples.first_rows, "score": samples.score}
    expected = subject.trained.q_values(samples.obs_rows, **episode)
    found = compute(samples)
    largest, difference = float(np.abs(expected).max()), float(np.abs(found.q_values - expected).max())
    allowed = ROUNDING * largest + 1e-6
    same = difference <= allowed  # not so where the difference is no number
    if found.contexts is not None:
        same &= np.array_equal(found.contexts, subject.trained.context(samples.obs_rows, **episode))
    best = np.sort(expected, axis=-1)[:, -2:]
    clear = np.flatnonzero(best[:, -1] - best[:, 0] > 2 * allowed)  # where rounding does not decide the action
    right = [subject.decoded(number) for number in expected.argmax(axis=-1)]
    same &= all(np.array_equal(found.actions[i], right[i]) for i in clear)
    if not same:
        raise BadInput(
            f"the exported agent would differ from the trained one, in its Q values by {difference:.2g} where the "
            f"largest is {largest:.2g}, which is more than rounding; nothing was written."
        )
    return difference, largest


def sampled(subject: Subject) -> Samples:
    """Observations inside the ranges of the task and around them; bytes of images."""
    random = np.random.default_rng(0)
    count = 16 if subject.task.image else SAMPLES
    obs, first = draw(subject, random, count), draw(subject, random, count)
    in_rows = lambda raw: np.stack([subject.encoded(each) for each in raw])
    return Samples(obs, first, np.asarray(random.uniform(-10, 100, count), np.float32), in_rows(obs), in_rows(first))


def draw(subject: Subject, random: np.random.Generator, count: int) -> list[Any]:
    task, shape = subject.task, subject.observation_shape
    if not subject.sees_arrays:
        subject.observation_space.seed(int(random.integers(2**31)))
        return [subject.observation_space.sample() for _ in range(count)]
    if task.image:
        return list(random.integers(0, int(task.image.highest) + 1, (count, *shape)))
    shares = random.uniform(size=(count, task.obs_size))
    shares[: count // 2] = 4 * shares[: count // 2] - 1.5
    low, high = np.asarray(task.low), np.asarray(task.high)
    return list((low + shares * (high - low)).astype(np.float32).reshape(count, *shape))


# Formats


def _numpy(subject: Subject, program: Program) -> tuple[bytes, Compute]:
    source = numpy_source(subject, program)
    functions: dict[str, Any] = {}
    exec(compile(source, "exported agent", "exec"), functions)

    def compute(samples: Samples) -> Outputs:
        episode = {value.name: getattr(samples, value.name) for value in program.inputs[1:]}
        computed = lambda name: functions[name](samples.obs, **episode)
        return Outputs(
            computed("predict"), computed("q_values"), computed("context") if "context" in functions else None
        )

    return source.encode(), compute


def _onnx(subject: Subject, program: Program) -> tuple[bytes, Compute]:
    from iqrl.exporting.onnx_file import onnx_model, runner

    content = onnx_model(subject, program)
    try:
        run = runner(content)
    except BadInput:
        raise
    except Exception as error:  # a runtime need not have every operation
        raise BadInput(f"onnxruntime cannot compute the model ({in_a_sentence(error)}); export to numpy.") from error

    def compute(samples: Samples) -> Outputs:
        arrays = samples.arrays(subject)
        found = run({value.name: arrays[value.name] for value in program.inputs})
        actions = [subject.decoded(number) for number in found["action"]]  # the model gives numbers from 0
        return Outputs(actions, found["q_values"], found.get("context"))

    return content, compute


FORMATS = {"numpy": Format(".py", _numpy), "onnx": Format(".onnx", _onnx)}
