"""Read the authors' Atari curves from a clone of their repository, or from one file of arrays.

The repository is https://github.com/Sweety-dm/Interference-aware-Deep-Q-learning (MIT License). A run is a folder
such as `IQ-RE/experiments/Pong/RBS=10000/IQ_DQN_1` with a file `training_performance.npy`: the mean return of the
training episodes of each of 200 iterations. Its TensorBoard log holds the same numbers, except where a saved curve was
overwritten by another run's.

A file of arrays (.npz) has an array for each run:

    <Game>/<N>/<Method>/<run>                       the saved curve
    RE_TE_compare/<Game>/10000/<Method>/<run>       the saved curve, where the two encoders are compared
    tfevents/<Game>/<N>/<Method>/<run>              the logged curve, where it differs from the saved one
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

from iqrl.errors import BadInput
from iqrl.reproduction.printed import ATARI_SETTINGS, ENCODER_SETTINGS, ITERATIONS, RUNS, Setting

RUN_NUMBERS = range(1, RUNS + 1)
FOLDERS = {"": "", "+SRNN": "SRNN_", "+IQ-RE": "IQ_"}
RUN_FILE, LOG_FILES = "training_performance.npy", "events.out.tfevents.*"


@dataclass(frozen=True)
class AuthorsCurves:
    runs: dict[Setting, np.ndarray]
    """[runs, iterations] of every setting"""
    encoders: dict[Setting, np.ndarray]
    """[runs, iterations] of the comparison of random and trained encoders"""
    logged: dict[tuple[Setting, int], np.ndarray]
    """[iterations] by setting and number of the run: logged curves that differ from the saved ones"""


def read_curves(path: Path) -> AuthorsCurves:
    """From an .npz file, or from a clone of the authors' repository (its root or its folder IQ-RE)."""
    if path.is_dir():
        return _read_clone(path)
    if not path.exists():
        raise BadInput(
            f"{path} does not exist; give a clone of the authors' repository, or an .npz file of its curves."
        )
    return _read_arrays(path)


def find_equal_runs(curves: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of runs, numbered from 1, with the same curve. Runs that never scored are equal without being copies."""
    return [
        (first + 1, second + 1)
        for first, second in combinations(range(len(curves)), 2)
        if curves[first].any() and np.array_equal(curves[first], curves[second])
    ]


def _stack_runs(settings: Iterable[Setting], read: Callable[[Setting, int], np.ndarray]) -> dict[Setting, np.ndarray]:
    return {setting: np.stack([read(setting, run) for run in RUN_NUMBERS]) for setting in settings}


def _check_curve(curve: np.ndarray, name: str) -> np.ndarray:
    if curve.shape != (ITERATIONS,) or not np.issubdtype(curve.dtype, np.floating):
        kind = f"an array of {curve.dtype} of shape {curve.shape}"
        raise BadInput(f"{name} must be {ITERATIONS} floating-point numbers, one per iteration, got {kind}.")
    if not np.isfinite(curve).all():
        raise BadInput(
            f"{name} must hold a number for each iteration, got {(~np.isfinite(curve)).sum()} that are none."
        )
    return curve.astype(np.float64)


# A file of arrays


def _read_arrays(path: Path) -> AuthorsCurves:
    arrays = _load_arrays(path)

    def read(folder: str, setting: Setting, run: int) -> np.ndarray:
        name = folder + _array_name(setting, run)
        if name not in arrays:
            raise BadInput(f"{path} has no array {name}; it must hold runs 1 to {RUNS} of every setting.")
        return _check_curve(arrays[name], f"{name} of {path}")

    return AuthorsCurves(
        runs=_stack_runs(ATARI_SETTINGS, partial(read, "")),
        encoders=_stack_runs(ENCODER_SETTINGS, partial(read, "RE_TE_compare/")),
        logged={
            (setting, run): read("tfevents/", setting, run)
            for setting in ATARI_SETTINGS
            for run in RUN_NUMBERS
            if "tfevents/" + _array_name(setting, run) in arrays
        },
    )


def _array_name(setting: Setting, run: int) -> str:
    return f"{setting.game}/{setting.buffer_size}/{setting.method}/{run}"


def _load_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.lib.npyio.NpzFile):
            with file:
                return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        # NumPy's own message about a file of another kind speaks of pickles, which would mislead.
        why = getattr(error, "strerror", None) or "it is no .npz file, or a damaged one"
        raise BadInput(f"{path} cannot be read as an .npz file of curves: {why}.") from error
    raise BadInput(f"{path} holds one array; an .npz file with one array per run is needed.")


# A clone of the repository


def _read_clone(path: Path) -> AuthorsCurves:
    root = path / "IQ-RE" if (path / "IQ-RE").is_dir() else path
    if not (root / "experiments").is_dir():
        raise BadInput(f"{path} has no folder IQ-RE/experiments; give the root of a clone of the authors' repository.")
    runs = _stack_runs(ATARI_SETTINGS, lambda setting, run: _read_run(_experiment_folder(root, setting, run)))
    encoders = _stack_runs(ENCODER_SETTINGS, lambda setting, run: _read_run(_encoder_folder(root, setting, run)))
    return AuthorsCurves(runs=runs, encoders=encoders, logged=_read_differing_logs(root, runs))


def _experiment_folder(root: Path, setting: Setting, run: int) -> Path:
    """DQN+IQ-RE is in the folders IQ_DQN_1, …"""
    family, plus, part = setting.method.partition("+")
    folder = root / "experiments" / setting.game / f"RBS={setting.buffer_size}"
    return _find_folder(folder, f"{FOLDERS[plus + part]}{family}_{run}")


def _encoder_folder(root: Path, setting: Setting, run: int) -> Path:
    """DQN+IQ-TE is in the folders TE_DQN_1, …"""
    family, encoder = setting.method.split("+IQ-")
    return _find_folder(root / "RE_TE_compare" / setting.game, f"{encoder}_{family}_{run}")


def _find_folder(parent: Path, name: str) -> Path:
    """In upper or lower case: the authors write both Rainbow and rainbow."""
    found = [path for path in parent.glob("*") if path.name.lower() == name.lower()]
    if not found:
        raise BadInput(f"{parent} has no folder {name}; the clone must hold runs 1 to {RUNS} of every setting.")
    return found[0]


def _read_run(folder: Path) -> np.ndarray:
    path = folder / RUN_FILE
    try:
        curve = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise BadInput(f"{folder} has no file {RUN_FILE}; fetch the whole repository.") from None
    except (OSError, ValueError, EOFError) as error:
        raise BadInput(f"{path} cannot be read as an array: {error}.") from error
    return _check_curve(curve, str(path))


def _read_differing_logs(root: Path, runs: dict[Setting, np.ndarray]) -> dict[tuple[Setting, int], np.ndarray]:
    """The logs of runs that equal another run, where a log differs from the saved curve."""
    logged = {}
    for setting, curves in runs.items():
        for run in sorted({run for pair in find_equal_runs(curves) for run in pair}):
            curve = read_logs(_experiment_folder(root, setting, run).glob(LOG_FILES))
            # Logs are in single precision. A run without a log, or with an incomplete one, is left out.
            if len(curve) == ITERATIONS and not np.allclose(curve, curves[run - 1], rtol=1e-5, atol=1e-5):
                logged[setting, run] = curve
    return logged


# TensorBoard logs, read without TensorBoard.
#
# A log is a list of records: the length in eight bytes, four of checksum, the record, four of checksum. A record is
# a protocol buffer: the time, the iteration (absent if 0), and the numbers logged then, each under its tag.

TAG = b"Train/AverageReturns"
ITERATION_FIELD = re.compile(rb"\x09.{8}\x10([\x80-\xff]*[\x00-\x7f])", re.DOTALL)
NUMBER_FIELD = re.compile(b"\x0a" + bytes([len(TAG)]) + TAG + b"\x15(.{4})", re.DOTALL)


def read_logs(paths: Iterable[Path]) -> np.ndarray:
    """[iterations]: the mean returns that a run logged, in single precision.

    A resumed run has a log for each part. If an iteration was repeated, the last log counts.
    """
    curve: dict[int, float] = {}
    for path in sorted(paths):
        curve |= dict(_parse_log(path.read_bytes()))
    return np.array([curve[iteration] for iteration in sorted(curve)])


def _parse_log(log: bytes) -> Iterator[tuple[int, float]]:
    """Iteration and mean return of each record that has one."""
    for record in _split_records(log):
        if number := NUMBER_FIELD.search(record):
            iteration = ITERATION_FIELD.match(record)
            yield (_parse_varint(iteration[1]) if iteration else 0), struct.unpack("<f", number[1])[0]


def _split_records(log: bytes) -> Iterator[bytes]:
    start = 0
    while start + 12 <= len(log):
        end = start + 12 + struct.unpack_from("<Q", log, start)[0]
        yield log[start + 12 : end]
        start = end + 4


def _parse_varint(digits: bytes) -> int:
    """Seven bits a byte, the lowest first."""
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(digits))
