"""What a study found: its runs and their curves, from its directory or from an export of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from iqrl.errors import BadInput
from iqrl.studies.directory import STUDY_FILE, StudyDirectory
from iqrl.training.store import RunStore

CURVES_FILE, MANIFEST_FILE = "curves.parquet", "manifest.json"
NAMES = ("study", "task", "method", "buffer_size")
"""what every row of an export says of its run, beside the settings that the study varies"""


class RunRecord(NamedTuple):
    """One finished run, as one variant of a study has it."""

    id: str
    """its identity, eight hexadecimal digits; `run` in the curves"""
    study: str
    variant: str
    config: dict[str, Any]
    varied: tuple[str, ...]
    """the settings that the study varies"""
    info: dict[str, Any]
    """versions, commit, machine, timing"""
    analyses: dict[str, Any]
    """by name"""
    given: dict[str, Any] = {}  # noqa: RUF012
    """what the study says of it: task, method, preset and settings"""


class StudyResults(NamedTuple):
    name: str
    title: str
    about: str
    charts: tuple[str, ...]
    """the columns of the curves that are worth a chart"""
    curves: pl.DataFrame
    """run, seed, step, return and whatever else was measured"""
    runs: list[RunRecord]
    unfinished: int
    """runs that were planned and are not there"""
    content: dict[str, Any] = {}  # noqa: RUF012
    """the study as its file has it"""
    digest: str = ""
    plan: tuple[tuple[str, str], ...] = ()
    """variant and identity of every run that was planned, in order"""


def load_results(path: str | Path) -> StudyResults:
    """From the directory of a study, running or finished, or from one that `iqrl study export` wrote."""
    path = Path(path)
    if (path / MANIFEST_FILE).exists():
        return _from_export(path)
    if not (path / STUDY_FILE).exists():
        raise BadInput(f"{path} holds neither a study ({STUDY_FILE}) nor an export of one ({MANIFEST_FILE}).")
    return _from_directory(StudyDirectory.open(path))


def _from_directory(directory: StudyDirectory) -> StudyResults:
    study = directory.study
    finished = {id: run for id, run in study.runs.items() if directory.is_finished(run)}
    stores = {id: RunStore.open(directory.path_of(run)) for id, run in finished.items()}
    analyses = {id: _analyses(store.path, study.analyses) for id, store in stores.items()}
    records = [
        RunRecord(
            planned.run.identity, study.name, planned.variant, planned.run.to_dict(), planned.varied,
            _info(stores[planned.run.identity].info), analyses[planned.run.identity], planned.given,
        )
        for planned in study.planned
        if planned.run.identity in stores
    ]  # fmt: skip
    curves = together(_curves(id, store) for id, store in stores.items())
    unfinished = len(study.runs) - len(stores)
    return StudyResults(
        study.name, study.title, study.about, study.charts, curves, records, unfinished, dict(study.content),
        study.digest, tuple((planned.variant, planned.run.identity) for planned in study.planned),
    )  # fmt: skip


def _info(info: dict[str, Any]) -> dict[str, Any]:
    return {name: info[name] for name in ("versions", "commit", "machine", "timing") if name in info}


def _curves(id: str, store: RunStore) -> pl.DataFrame:
    """Up to where the study's runs end: a run may have been taken further since."""
    metrics = store.metrics().filter(pl.col("step") <= store.run.steps)
    return metrics.select(pl.lit(id).alias("run"), pl.all())


def together(tables: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """One table; a column that a run does not have is null there. In one order, whatever came first."""
    tables = list(tables)
    if not tables:
        return pl.DataFrame({"run": [], "seed": [], "step": [], "return": []})
    joined = pl.concat(tables, how="diagonal_relaxed")
    first = ["run", "seed", "step", "return"]
    columns = first + sorted(set(joined.columns) - set(first))
    return joined.select(columns).sort("run", "seed", "step")


def _analyses(path: Path, names: Iterable[str]) -> dict[str, Any]:
    try:
        return {name: json.loads((path / f"{name}.json").read_text()) for name in names}
    except (OSError, ValueError) as error:
        raise BadInput(
            f"an analysis in {path} cannot be read ({error}); delete it, and the study makes it again."
        ) from error


def _from_export(path: Path) -> StudyResults:
    try:
        manifest = json.loads((path / MANIFEST_FILE).read_text())
        curves = pl.read_parquet(path / CURVES_FILE)
        records = [RunRecord(**record | {"varied": tuple(record["varied"])}) for record in manifest.pop("runs")]
        # The table says of each row what its run is, which the records say too.
        said = {"study", "variant", *(name for record in records for name in record.varied), *NAMES} - {"run"}
        curves = together([curves.drop(said & set(curves.columns)).unique(["run", "seed", "step"])])
        return StudyResults(
            **{name: manifest[name] for name in ("name", "title", "about", "unfinished", "content", "digest")},
            charts=tuple(manifest["charts"]), curves=curves, runs=records, plan=tuple(map(tuple, manifest["plan"])),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise BadInput(f"{path} cannot be read as an export of a study ({error}).") from error
