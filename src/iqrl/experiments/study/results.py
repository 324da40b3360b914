"""The results of a study: its finished runs and their curves, from its directory or from an export.

An export is one table of curves with a manifest. Exports of one study from several machines are merged, and so are
those of its earlier forms.

OUT/curves.parquet    a row per run, seed and period: what distinguishes the run, then what was measured
OUT/curves.csv        the same, on request; lists as JSON text
OUT/manifest.json     the study, and of each run its settings, identity, versions, commit, machine and timing
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from iqrl.errors import BadInput, shown
from iqrl.experiments.study.directory import STUDY_FILE, StudyDirectory
from iqrl.experiments.study.study import check_content
from iqrl.files import (
    SCRATCH,
    Damaged,
    make_directories,
    read_json,
    read_table,
    sweep,
    table_bytes,
    why,
    write_json,
    write_whole,
    writing,
)
from iqrl.make_run import read_run
from iqrl.training.run_directory import RUN_FILE, RunStore, check_rows, is_provenance

CURVES_FILE, MANIFEST_FILE = "curves.parquet", "manifest.json"
NAME_COLUMNS = ("study", "task", "method", "buffer_size")
"""columns of every export, beside the settings that the study varies"""
OWN_COLUMNS = ("run", "seed", "step", "return")
"""columns of every curve"""
NEEDED = ("task", "method", "buffer_size", "seed", "seeds", "steps")
"""settings of a run that its tables and charts name"""


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
    """task, method, preset and settings as the study gives them"""


class StudyResults(NamedTuple):
    name: str
    title: str
    about: str
    charts: tuple[str, ...]
    """the columns of the curves to draw"""
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
        return _read_export(path)
    if not (path / STUDY_FILE).exists():
        run = "; it holds a run: for one, take iqrl plot or iqrl explain" if (path / RUN_FILE).exists() else ""
        raise BadInput(f"{path} holds neither a study ({STUDY_FILE}) nor an export of one ({MANIFEST_FILE}){run}.")
    return _read_directory(StudyDirectory.open(path))


def _read_directory(directory: StudyDirectory) -> StudyResults:
    study = directory.study
    finished = {id: run for id, run in study.runs.items() if directory.is_finished(run)}
    stores = {id: RunStore.open(directory.path_of(run)) for id, run in finished.items()}
    analyses = {id: _read_analyses(store.path, study.analyses) for id, store in stores.items()}
    records = [
        RunRecord(
            id=planned.run.identity,
            study=study.name,
            variant=planned.variant,
            config=planned.run.to_dict(),
            varied=planned.varied,
            info=_select_info(stores[planned.run.identity].info),
            analyses=analyses[planned.run.identity],
            given=planned.given,
        )
        for planned in study.planned
        if planned.run.identity in stores
    ]
    return StudyResults(
        name=study.name,
        title=study.title,
        about=study.about,
        charts=study.charts,
        curves=concat_curves(_read_curves(id, store) for id, store in stores.items()),
        runs=records,
        unfinished=len(study.runs) - len(stores),
        content=dict(study.content),
        digest=study.digest,
        plan=tuple((planned.variant, planned.run.identity) for planned in study.planned),
    )


def _select_info(info: dict[str, Any]) -> dict[str, Any]:
    return {name: info[name] for name in ("versions", "commit", "machine", "timing") if name in info}


def _read_curves(id: str, store: RunStore) -> pl.DataFrame:
    """Up to where the study's runs end: a run may have been taken further since."""
    metrics = store.curves().filter(pl.col("step") <= store.run.steps)
    return metrics.select(pl.lit(id).alias("run"), pl.all())


def concat_curves(tables: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """One table, its rows and columns in a fixed order; a column that a run does not have is null there."""
    tables = list(tables)
    if not tables:
        return pl.DataFrame({name: [] for name in OWN_COLUMNS})
    joined = pl.concat(tables, how="diagonal_relaxed")
    columns = [*OWN_COLUMNS, *sorted(set(joined.columns) - set(OWN_COLUMNS))]
    return joined.select(columns).sort("run", "seed", "step")


def _read_analyses(path: Path, names: Iterable[str]) -> dict[str, Any]:
    try:
        return {name: read_json(path / f"{name}.json", "analysis") for name in names}
    except OSError as error:
        raise BadInput(f"an analysis in {path} cannot be read: {why(error)}.") from error
    except Damaged as error:
        raise Damaged(f"{error} Delete it, and the study makes it again.") from error


def _read_export(path: Path) -> StudyResults:
    try:
        manifest = read_json(path / MANIFEST_FILE, "manifest")
        read = read_table(path / CURVES_FILE, "curves")
        check_manifest(manifest)
        check_export(path, manifest, read.data)
        curves = read.table
        records = [_read_record(record) for record in manifest.pop("runs")]
        # The table repeats in each row what its run is, which the records have too.
        repeated = {"study", "variant", *(name for record in records for name in record.varied), *NAME_COLUMNS}
        curves = concat_curves(
            [curves.drop((repeated - {*OWN_COLUMNS}) & set(curves.columns)).unique(["run", "seed", "step"])]
        )
        for record in {record.id: record for record in records}.values():
            rows = curves.filter(pl.col("run") == record.id)
            if not check_rows(path / CURVES_FILE, read_run(record.config), rows).height:
                raise Damaged(f"{path / CURVES_FILE} has no rows of the run {shown(record.id)}.")
        return StudyResults(
            **{name: manifest[name] for name in ("name", "title", "about", "unfinished", "content", "digest")},
            charts=tuple(manifest["charts"]), curves=curves, runs=records,
            plan=tuple((variant, id) for variant, id in manifest["plan"]),
        )  # fmt: skip
    except BadInput:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        raise BadInput(f"{path} cannot be read as an export of a study ({error}).") from error


def check_manifest(manifest: dict[str, Any]) -> None:
    """Kinds of what is read from it. Raises BadInput, KeyError and TypeError."""
    check_content(manifest["content"])
    texts = [manifest[name] for name in ("name", "title", "about", "digest")] + list(manifest["charts"])
    texts += [text for pair in manifest["plan"] for text in pair]
    if not all(isinstance(text, str) for text in texts) or not isinstance(manifest["unfinished"], int):
        raise TypeError("a text or a number is something else")


def check_export(path: Path, manifest: dict[str, Any], curves: bytes) -> None:
    """Manifest and table belong together. Raises Damaged."""
    if hashlib.sha256(curves).hexdigest() != manifest["curves_sha256"]:
        raise Damaged(f"{path / CURVES_FILE} is not the table that {MANIFEST_FILE} was written with.")


def _read_record(record: dict[str, Any]) -> RunRecord:
    given: dict[str, Any] = record | {"varied": tuple(record["varied"])}
    read = RunRecord(**given)
    texts, tables = (read.id, read.study, read.variant, *read.varied), (read.config, read.info, read.analyses)
    if not all(isinstance(each, str) for each in texts) or not all(isinstance(each, dict) for each in tables):
        raise TypeError("a run of the manifest is not that of a study")
    complete = {*read.varied, *NEEDED} <= set(read.config) and isinstance(read.given, dict)
    if not complete or not is_provenance(read.info):
        raise TypeError(f"the run {shown(read.id)} of the manifest is not complete")
    return read


# Write an export


def write_export(results: Sequence[StudyResults], out: Path, csv: bool = False) -> list[Path]:
    """One directory of all results, which are of one study; returns the paths of its files."""
    merged = merge_results(results)
    if out.exists() and not (out / MANIFEST_FILE).exists() and (out.is_file() or any(map(_is_foreign, out.iterdir()))):
        raise BadInput(f"{out} exists and is not an export; choose another directory.")
    if not merged.runs:
        raise BadInput(f"study {merged.name} has no finished run to export.")
    _refuse_other_study(out, merged)
    table = tidy_curves(merged)
    curves = b"".join(table_bytes("curves", table, {}, compression="zstd", compression_level=9))
    make_directories(out)
    sweep(out)
    with writing(out):
        write_whole(out / CURVES_FILE, curves)
        write_json(out / MANIFEST_FILE, "manifest", _make_manifest(merged, curves), indent=1)
        if csv:
            write_whole(out / "curves.csv", _flatten_lists(table).write_csv().encode())
        else:
            (out / "curves.csv").unlink(missing_ok=True)  # of an older export
    return [out / name for name in (CURVES_FILE, MANIFEST_FILE, *["curves.csv"] * csv)]


def _refuse_other_study(out: Path, results: StudyResults) -> None:
    """An export is replaced by one of the same study only."""
    try:
        there = read_json(out / MANIFEST_FILE, "manifest").get("name")
    except (FileNotFoundError, NotADirectoryError):
        return
    if there != results.name:
        raise BadInput(f"{out} holds an export of the study {shown(there)}; choose another directory.")


def tidy_curves(results: StudyResults) -> pl.DataFrame:
    """The curves, each row with the names and the varied settings of its run."""
    if not results.runs:
        return results.curves
    # Where runs vary the first of their seeds, each row has its own.
    varied = sorted({name for record in results.runs for name in record.varied} - {*NAME_COLUMNS, *OWN_COLUMNS})
    rows = [{"order": order} | _row_names(record, varied) for order, record in enumerate(results.runs)]
    names = pl.DataFrame(rows, infer_schema_length=None)
    curves = results.curves.select("run", *[name for name in results.curves.columns if name not in names.columns])
    # In the order of the study; a run that two variants have in common is in both.
    return names.join(curves, on="run", how="inner").sort("order", "seed", "step").drop("order")


def _row_names(record: RunRecord, varied: Sequence[str]) -> dict[str, Any]:
    config = record.config | {"study": record.study}
    plain = lambda value: json.dumps(value) if isinstance(value, list) else value
    # A method may lack a setting that others vary.
    named = {name: plain(config.get(name)) for name in (*NAME_COLUMNS, *varied)}
    return {"study": named.pop("study"), "variant": record.variant} | named | {"run": record.id}


def _flatten_lists(table: pl.DataFrame) -> pl.DataFrame:
    as_text = lambda value: None if value is None else json.dumps(value.to_list())
    lists = [name for name, kind in table.schema.items() if kind.is_nested()]
    return table.with_columns(pl.col(name).map_elements(as_text, pl.String) for name in lists)


def _is_foreign(path: Path) -> bool:
    """Whether a file is not one that an export leaves behind when it is killed."""
    return path.name != CURVES_FILE and not SCRATCH.fullmatch(path.name)


def _make_manifest(results: StudyResults, curves: bytes) -> dict[str, Any]:
    return {
        "name": results.name, "title": results.title, "about": results.about, "charts": results.charts,
        "digest": results.digest, "unfinished": results.unfinished, "content": results.content, "plan": results.plan,
        "curves_sha256": hashlib.sha256(curves).hexdigest(), "runs": [record._asdict() for record in results.runs],
    }  # fmt: skip


# Merge results of several machines


def merge_results(results: Sequence[StudyResults]) -> StudyResults:
    """Results of one study from several places. A run found twice must be the same twice.

    A study may have changed in between: what the first of the results plans is taken from all.
    """
    first = results[0]
    planned = {id for _, id in first.plan}
    for other in results[1:]:
        if other.name != first.name or planned.isdisjoint(id for _, id in other.plan):
            raise BadInput(
                f"the results are of different studies ({first.name} {first.digest} and {other.name} {other.digest}); "
                f"export them one by one."
            )
    records: dict[tuple[str, str], RunRecord] = {}
    curves: dict[str, pl.DataFrame] = {}
    for part in results:
        for record in part.runs:
            records.setdefault((record.variant, record.id), record)
        for (id,), table in _split_runs(part.curves.filter(pl.col("run").is_in(planned))):
            _refuse_different_curves(id, curves.setdefault(id, table), table)
    found = [records[key] for key in first.plan if key in records]
    unfinished = len(planned - {record.id for record in found})
    return first._replace(curves=concat_curves(curves.values()), runs=found, unfinished=unfinished)


def left_out(results: Sequence[StudyResults]) -> int:
    """How many finished runs the first of the results does not plan."""
    planned = set(results[0].plan)
    return len({(record.variant, record.id) for part in results for record in part.runs} - planned)


def _split_runs(curves: pl.DataFrame) -> list[tuple[tuple[str], pl.DataFrame]]:
    return list(curves.group_by("run", maintain_order=True)) if curves.height else []


def _refuse_different_curves(id: str, one: pl.DataFrame, other: pl.DataFrame) -> None:
    shared = ["seed", "step", "return"]
    if not one.select(shared).equals(other.select(shared)):
        raise BadInput(
            f"run {id} has different curves in two of the results, as different versions or processors give; "
            f"leave one of them out."
        )
