"""Reading the authors' Atari curves: from a clone of their repository, or from one file of arrays.

The repository is https://github.com/Sweety-dm/Interference-aware-Deep-Q-learning (MIT License). A run is a folder
such as `IQ-RE/experiments/Pong/RBS=10000/IQ_DQN_1` with a file `training_performance.npy`: the mean return of the
training episodes of each of 200 iterations. A file of arrays (.npz) holds the same under `<Game>/<N>/<Method>/<run>`,
under `RE_TE_compare/<Game>/10000/<Method>/<run>` where the two encoders are compared, and under
`tfevents/<Game>/<N>/<Method>/<run>` the curve that the run itself logged where it differs from the saved one.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iqrl.errors import BadInput
from iqrl.paper.event_files import logged_curve
from iqrl.paper.settings import POINTS, RUNS, Setting, encoder_settings, every_setting

Key = tuple[Setting, int]
"""a setting and a run from 1 to 5"""
FOLDERS = {"": "", "+SRNN": "SRNN_", "+IQ-RE": "IQ_"}
RUN_FILE, LOG_FILES = "training_performance.npy", "events.out.tfevents.*"


@dataclass(frozen=True)
class AuthorsCurves:
    """Curves [runs, iterations] of every setting."""

    runs: dict[Setting, np.ndarray]
    encoders: dict[Setting, np.ndarray]
    """the comparison of random and trained encoders"""
    logged: dict[Key, np.ndarray]
    """what runs logged themselves, known only where a saved curve is doubtful"""


def read_curves(path: Path) -> AuthorsCurves:
    """From an .npz file or from a clone of the authors' repository (its root or its folder IQ-RE)."""
    if path.is_dir():
        return _from_clone(path)
    if not path.exists():
        raise BadInput(
            f"{path} does not exist; give a clone of the authors' repository, or an .npz file of its curves."
        )
    return _from_arrays(path)


def equal_runs(curves: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of runs, counted from 1, with the same curve. Runs that never scored are alike without being copies."""
    return [
        (i + 1, j + 1)
        for i in range(len(curves))
        for j in range(i + 1, len(curves))
        if curves[i].any() and np.array_equal(curves[i], curves[j])
    ]


# One file of arrays


def _from_arrays(path: Path) -> AuthorsCurves:
    arrays = _load_arrays(path)
    name_of = lambda setting, run: f"{setting.game}/{setting.buffer_size}/{setting.method}/{run}"

    def read(prefix: str) -> Callable[[Setting, int], np.ndarray]:
        def one(setting: Setting, run: int) -> np.ndarray:
            name = prefix + name_of(setting, run)
            if name not in arrays:
                raise BadInput(f"{path} has no array {name}; it must hold runs 1 to {RUNS} of every setting.")
            return _checked(arrays[name], f"{name} of {path}")

        return one

    runs = _all_runs(every_setting(), read(""))
    keys = [(setting, run) for setting in runs for run in range(1, RUNS + 1)]
    logged = {key: read("tfevents/")(*key) for key in keys if f"tfevents/{name_of(*key)}" in arrays}
    return AuthorsCurves(runs, _all_runs(encoder_settings(), read("RE_TE_compare/")), logged)


def _load_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.lib.npyio.NpzFile):
            with file:
                return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        # What NumPy says of a file of another kind is about pickles.
        why = getattr(error, "strerror", None) or "it is no .npz file, or a damaged one"
        raise BadInput(f"{path} cannot be read as an .npz file of curves: {why}.") from error
    raise BadInput(f"{path} holds one array; an .npz file with one array per run is needed.")


# A clone of the repository


def _from_clone(path: Path) -> AuthorsCurves:
    root = path / "IQ-RE" if (path / "IQ-RE").is_dir() else path
    if not (root / "experiments").is_dir():
        raise BadInput(f"{path} has no folder IQ-RE/experiments; give the root of a clone of the authors' repository.")
    runs_in = lambda setting: root / "experiments" / setting.game / f"RBS={setting.buffer_size}"
    encoders_in = lambda setting: root / "RE_TE_compare" / setting.game

    def read(setting: Setting, run: int) -> np.ndarray:
        return _read_run(_run_folder(runs_in(setting), _experiment_folder(setting.method), run))

    def read_encoder(setting: Setting, run: int) -> np.ndarray:
        return _read_run(_run_folder(encoders_in(setting), _encoder_folder(setting.method), run))

    def read_log(setting: Setting, run: int) -> np.ndarray | None:
        return _read_log(_run_folder(runs_in(setting), _experiment_folder(setting.method), run))

    runs = _all_runs(every_setting(), read)
    return AuthorsCurves(runs, _all_runs(encoder_settings(), read_encoder), _doubtful(runs, read_log))


def _experiment_folder(method: str) -> str:
    """DQN+IQ-RE is in the folders IQ_DQN_1, …"""
    family, plus, part = method.partition("+")
    return FOLDERS[plus + part] + family


def _encoder_folder(method: str) -> str:
    """DQN+IQ-TE is in the folders TE_DQN_1, …"""
    family, encoder = method.split("+IQ-")
    return f"{encoder}_{family}"


def _run_folder(folder: Path, name: str, run: int) -> Path:
    """The authors write Rainbow with a large and with a small letter."""
    wanted = f"{name}_{run}".lower()
    found = [path for path in folder.glob("*") if path.name.lower() == wanted]
    if not found:
        raise BadInput(f"{folder} has no folder {name}_{run}; the clone must hold runs 1 to {RUNS} of every setting.")
    return found[0]


def _read_run(folder: Path) -> np.ndarray:
    path = folder / RUN_FILE
    try:
        curve = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise BadInput(f"{folder} has no file {RUN_FILE}; fetch the whole repository.") from None
    except (OSError, ValueError, EOFError) as error:
        raise BadInput(f"{path} cannot be read as an array: {error}.") from error
    return _checked(curve, str(path))


def _read_log(folder: Path) -> np.ndarray | None:
    """What the run logged itself; None where there is no log, or not of every iteration."""
    curve = logged_curve(folder.glob(LOG_FILES))
    return curve if curve.shape == (POINTS,) else None


def _doubtful(
    runs: dict[Setting, np.ndarray], read_log: Callable[[Setting, int], np.ndarray | None]
) -> dict[Key, np.ndarray]:
    """The logs, of runs that equal another, that tell of a different curve."""
    logged = {}
    for setting, curves in runs.items():
        for run in sorted({run for pair in equal_runs(curves) for run in pair}):
            curve = read_log(setting, run)
            # Logs are in single precision.
            if curve is not None and not np.allclose(curve, curves[run - 1], rtol=1e-5, atol=1e-5):
                logged[setting, run] = curve
    return logged


# Both


def _all_runs(settings: Iterable[Setting], read: Callable[[Setting, int], np.ndarray]) -> dict[Setting, np.ndarray]:
    return {setting: np.stack([read(setting, run) for run in range(1, RUNS + 1)]) for setting in settings}


def _checked(curve: Any, name: str) -> np.ndarray:
    if curve.shape != (POINTS,) or not np.issubdtype(curve.dtype, np.floating):
        kind = f"an array of {curve.dtype} of shape {curve.shape}"
        raise BadInput(f"{name} must be {POINTS} floating-point numbers, one per iteration, got {kind}.")
    if not np.isfinite(curve).all():
        raise BadInput(
            f"{name} must hold a number for each iteration, got {(~np.isfinite(curve)).sum()} that are none."
        )
    return curve.astype(np.float64)
