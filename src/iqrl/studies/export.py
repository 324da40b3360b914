"""Exports: a study's curves in one tidy table, with a manifest of what made them; results of several machines as one.

OUT/curves.parquet    a row per run, seed and period: what distinguishes the run, then what was measured
OUT/curves.csv        the same, if asked for; lists as JSON text
OUT/manifest.json     the study, and of each run its settings, identity, versions, commit, machine and timing
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from iqrl.errors import BadInput
from iqrl.studies.results import CURVES_FILE, MANIFEST_FILE, NAMES, RunRecord, StudyResults, load_results, together
from iqrl.training.checkpoint import write_whole


def export(results: Sequence[StudyResults], out: Path, csv: bool = False) -> list[Path]:
    """One directory of all of them; they are the same study, begun on different machines perhaps."""
    merged = merge(results)
    if out.exists() and not (out / MANIFEST_FILE).exists() and (out.is_file() or any(out.iterdir())):
        raise BadInput(f"{out} exists and is not an export; choose another directory.")
    if not merged.runs:
        raise BadInput(f"study {merged.name} has no finished run to export.")
    _refuse_another(out, merged)
    table = tidy(merged)
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd", compression_level=9)
    files = {CURVES_FILE: buffer.getvalue(), MANIFEST_FILE: _manifest(merged, buffer.getvalue())}
    if csv:
        files["curves.csv"] = _flat(table).write_csv().encode()
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(out / name, content)
        if not csv:
            (out / "curves.csv").unlink(missing_ok=True)  # an older export's
    except OSError as error:
        raise BadInput(f"cannot write to {out}: {error.strerror}.") from error
    return [out / name for name in files]


def _refuse_another(out: Path, results: StudyResults) -> None:
    """An export is replaced by one of the same study only."""
    if (out / MANIFEST_FILE).exists() and (there := load_results(out).name) != results.name:
        raise BadInput(f"{out} holds an export of the study {there!r}; choose another directory.")


def tidy(results: StudyResults) -> pl.DataFrame:
    """The curves, each row with what its run is."""
    if not results.runs:
        return results.curves
    varied = sorted({name for record in results.runs for name in record.varied} - set(NAMES))
    rows = [{"order": order} | _says(record, varied) for order, record in enumerate(results.runs)]
    says = pl.DataFrame(rows, infer_schema_length=None)
    curves = results.curves.select("run", *[name for name in results.curves.columns if name not in says.columns])
    # In the order of the study; a run that two variants have in common is in both.
    return says.join(curves, on="run", how="inner").sort("order", "seed", "step").drop("order")


def _says(record: RunRecord, varied: Sequence[str]) -> dict[str, Any]:
    config = record.config | {"study": record.study}
    plain = lambda value: json.dumps(value) if isinstance(value, list) else value
    named = {name: plain(config[name]) for name in (*NAMES, *varied)}
    return {"study": named.pop("study"), "variant": record.variant} | named | {"run": record.id}


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    as_text = lambda value: None if value is None else json.dumps(value.to_list())
    lists = [name for name, kind in table.schema.items() if kind.is_nested()]
    return table.with_columns(pl.col(name).map_elements(as_text, pl.String) for name in lists)


def _manifest(results: StudyResults, curves: bytes) -> bytes:
    content = {
        "name": results.name, "title": results.title, "about": results.about, "charts": results.charts,
        "digest": results.digest, "unfinished": results.unfinished, "content": results.content, "plan": results.plan,
        "curves_sha256": hashlib.sha256(curves).hexdigest(), "runs": [record._asdict() for record in results.runs],
    }  # fmt: skip
    return (json.dumps(content, indent=1) + "\n").encode()


def merge(results: Sequence[StudyResults]) -> StudyResults:
    """Results of one study from several places. A run found twice must be the same twice."""
    first = results[0]
    for other in results[1:]:
        if other.digest != first.digest:
            raise BadInput(
                f"the results are of different studies ({first.name} {first.digest} and {other.name} {other.digest}); "
                f"export them one by one."
            )
    records: dict[tuple[str, str], RunRecord] = {}
    curves: dict[str, pl.DataFrame] = {}
    for part in results:
        for record in part.runs:
            records.setdefault((record.variant, record.id), record)
        for (id,), table in _by_run(part.curves):
            _refuse_different(id, curves.setdefault(id, table), table)
    found = [records[key] for key in first.plan if key in records]
    unfinished = len({id for _, id in first.plan} - {record.id for record in found})
    return first._replace(curves=together(curves.values()), runs=found, unfinished=unfinished)


def _by_run(curves: pl.DataFrame) -> list[tuple[tuple[str], pl.DataFrame]]:
    return list(curves.group_by("run", maintain_order=True)) if curves.height else []


def _refuse_different(id: str, one: pl.DataFrame, other: pl.DataFrame) -> None:
    shared = ["seed", "step", "return"]
    if not one.select(shared).equals(other.select(shared)):
        raise BadInput(
            f"run {id} has different curves in two of the results, as different versions or processors give; "
            f"leave one of them out."
        )
