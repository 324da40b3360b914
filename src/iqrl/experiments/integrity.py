"""What `iqrl check` says of the files of a run, a study or an export. Nothing is changed, and no code is imported."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Literal, NamedTuple

from iqrl.errors import BadInput
from iqrl.experiments.study.directory import FAILURES_FILE, STUDY_FILE, StudyDirectory
from iqrl.experiments.study.results import CURVES_FILE, MANIFEST_FILE, load_results
from iqrl.files import is_sealed, mapped, read_json, why
from iqrl.training.checkpoint import is_intact
from iqrl.training.run_directory import (
    BEST_FILE,
    CHECKPOINT_FILE,
    EVALUATIONS_FILE,
    METRICS_FILE,
    PREVIOUS_FILE,
    RUN_FILE,
    RunStore,
)

State = Literal["intact", "unverified", "damaged"]


class Finding(NamedTuple):
    path: Path
    state: State
    text: str


def check(path: Path) -> list[Finding]:
    """One finding for each file."""
    if (path / RUN_FILE).exists():
        return list(check_run(path))
    if (path / STUDY_FILE).exists():
        return list(check_study(path))
    if (path / MANIFEST_FILE).exists():
        return list(check_export(path))
    raise BadInput(f"{path} holds no run ({RUN_FILE}), no study ({STUDY_FILE}) and no export ({MANIFEST_FILE}).")


def check_run(path: Path) -> Generator[Finding]:
    yield (first := _find(path / RUN_FILE, lambda: _has_seal(path / RUN_FILE, "run") and bool(RunStore.open(path))))
    if first.state == "damaged":
        return  # nothing can be said of files whose run is not known
    try:
        store = RunStore.open(path)
    except BadInput as error:
        yield Finding(path / RUN_FILE, "damaged", str(error))
        return
    identity = store.info["id"]
    for name in (CHECKPOINT_FILE, PREVIOUS_FILE):
        if (path / name).exists():
            yield _find(path / name, lambda file=path / name: is_intact(file, identity))
    if store.has_checkpoint and not (path / METRICS_FILE).exists():
        missing = f"{path / METRICS_FILE} is missing, though there is a checkpoint."
        yield Finding(path / METRICS_FILE, "damaged", missing)
    if (path / METRICS_FILE).exists():
        yield _find(path / METRICS_FILE, lambda: bool(store.read_metrics().names))
    if (path / EVALUATIONS_FILE).exists():
        yield _find(path / EVALUATIONS_FILE, lambda: bool(store.read_evaluations().names))
    if (path / BEST_FILE).exists():
        yield _find(path / BEST_FILE, lambda: is_model(path / BEST_FILE))


def check_study(path: Path) -> Generator[Finding]:
    yield (first := _find(path / STUDY_FILE, lambda: _has_seal(path / STUDY_FILE, "study")))
    if first.state == "damaged":
        return
    if (path / FAILURES_FILE).exists():
        yield _find(path / FAILURES_FILE, lambda: _has_seal(path / FAILURES_FILE, "failures"))
    try:
        analyses = StudyDirectory.open(path).study.analyses
    except BadInput as error:
        yield Finding(path / STUDY_FILE, "damaged", str(error))
        return
    for run in sorted((path / "runs").glob(f"*/{RUN_FILE}")):
        yield from check_run(run.parent)
        for name in analyses:
            file = run.parent / f"{name}.json"
            if file.exists():
                yield _find(file, lambda file=file: _has_seal(file, "analysis"))


def check_export(path: Path) -> Generator[Finding]:
    yield (first := _find(path / MANIFEST_FILE, lambda: _has_seal(path / MANIFEST_FILE, "manifest")))
    if first.state != "damaged":
        # A manifest has always had the checksum of its table.
        yield _find(path / CURVES_FILE, lambda: bool(load_results(path)))


def is_model(path: Path) -> bool:
    with mapped(path) as (view, _):
        return is_sealed(path, view, "model")


def _has_seal(path: Path, kind: str) -> bool:
    read_json(path, kind)
    with mapped(path) as (view, _):
        return is_sealed(path, view, kind)


def _find(path: Path, verify: Callable[[], bool]) -> Finding:
    """`verify`: whether the file is sealed; raises BadInput or OSError."""
    try:
        try:
            sealed = verify()
        except FileNotFoundError:  # another process saves, and the file was between two names
            time.sleep(0.1)
            sealed = verify()
        if sealed:
            return Finding(path, "intact", "intact")
        return Finding(path, "unverified", "unverified: an earlier version wrote it, without a checksum")
    except BadInput as error:
        return Finding(path, "damaged", str(error))
    except OSError as error:
        return Finding(path, "damaged", f"{path} cannot be read: {why(error)}.")
