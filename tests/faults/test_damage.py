"""Nothing damaged, edited or exchanged is believed; what is refused is left alone."""

import json
import shutil

import polars as pl
import pytest
from damage import Reader, damage_files, damage_one_file_everywhere, swap_files

import iqrl
from iqrl.cli.main import main
from iqrl.errors import BadInput
from iqrl.experiments.integrity import check
from iqrl.experiments.study.results import load_results
from iqrl.files import table_bytes, write_json, write_whole
from iqrl.training.run_directory import RunStore


@pytest.fixture
def copied(originals, tmp_path):
    return shutil.copytree(originals / "run", tmp_path / "run")


def test_undamaged_directories_are_intact(originals, capsys):
    for path in sorted(originals.iterdir()):
        assert {finding.state for finding in check(path)} == {"intact"}
    assert main(["check", *map(str, sorted(originals.iterdir()))]) == 0
    assert "run/checkpoint.previous.safetensors: intact" in capsys.readouterr().out


def test_random_damage(originals, tmp_path):
    outcomes = damage_files(originals, tmp_path, 60, seed=0)
    assert outcomes["refused"] > 30
    assert outcomes["the one before"] > 0


def test_files_of_another_run_are_refused(originals, tmp_path):
    swap_files(originals, tmp_path)


def test_every_byte_of_run_json(originals, tmp_path):
    assert damage_one_file_everywhere(originals / "run", "run.json", tmp_path, stride=7) > 100


def test_check_ends_with_an_error_and_names_the_file(copied, capsys):
    data = (copied / "metrics.parquet").read_bytes()
    (copied / "metrics.parquet").write_bytes(data[:50] + b"x" + data[51:])
    assert main(["check", str(copied)]) == 1
    out, err = capsys.readouterr()
    assert "metrics.parquet is damaged or was edited" in out
    assert err == "iqrl: 1 of 4 files are damaged.\n"


def test_the_checkpoint_before_is_used_with_a_word_and_kept(copied, originals):
    newest, before = copied / "checkpoint.safetensors", copied / "checkpoint.previous.safetensors"
    data = bytearray(newest.read_bytes())
    data[-1] ^= 1
    newest.write_bytes(data)
    kept = before.read_bytes()
    with pytest.warns(UserWarning, match=r"safetensors is damaged .* The checkpoint before it, of step 200, is used"):
        resumed = iqrl.resume(copied)
    assert resumed.metrics.equals(iqrl.load(originals / "run").metrics)
    assert before.read_bytes() == kept, "the damaged one did not take its place"
    assert (copied / "checkpoint.damaged.safetensors").read_bytes() == data
    assert Reader(copied).said == Reader(originals / "run").said


def test_without_one_before_it_is_refused(copied):
    (copied / "checkpoint.previous.safetensors").unlink()
    (copied / "checkpoint.safetensors").write_bytes(b"x")
    with pytest.raises(BadInput, match="damaged or not a checkpoint"):
        iqrl.resume(copied)


def test_killed_between_two_names_the_one_before_is_used(copied, originals):
    (copied / "checkpoint.safetensors").unlink()
    assert iqrl.resume(copied).metrics.equals(iqrl.load(originals / "run").metrics)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows.filter(pl.col("seed") == 0), "it has the seeds 0, and the run has 0 to 1"),
        (lambda rows: rows.filter(pl.col("step") != 200), "a period is missing"),
        (lambda rows: rows.filter(pl.col("step") < 300), "step 300 is missing"),
        (lambda rows: rows.filter((pl.col("step") != 200) | (pl.col("seed") == 0)), "every seed once in every period"),
        (lambda rows: pl.concat([rows, rows]), "every seed once in every period"),
        (lambda rows: rows.drop("step"), "no column of numbers step"),
        (lambda rows: rows.with_columns(pl.col("return").cast(pl.String)), "no column of numbers return"),
        (lambda rows: rows.with_columns(seed=pl.lit(None, pl.Int64)), "a seed or a step is missing"),
    ],
)
@pytest.mark.parametrize("sealed", [True, False])
def test_a_table_that_lacks_something_is_refused(copied, originals, change, words, sealed):
    """Also in a file of an earlier version, which has no checksum."""
    reader, rows = Reader(originals / "run"), change(pl.read_parquet(copied / "metrics.parquet"))
    if sealed:
        names = {"run": RunStore.open(copied).info["id"]}
        write_whole(copied / "metrics.parquet", *table_bytes("metrics", rows, names))
    else:
        rows.write_parquet(copied / "metrics.parquet")
    with pytest.raises(BadInput, match=words):
        reader.read(copied)


def test_an_edited_setting_with_the_old_identity_is_refused(copied):
    content = json.loads((copied / "run.json").read_text())
    content["config"]["gamma"] = 0.5
    (copied / "run.json").write_text(json.dumps(content, indent=2) + "\n")
    with pytest.raises(BadInput, match=r"run.json is damaged or was edited"):
        iqrl.resume(copied)


def test_directories_of_earlier_versions_are_read_and_said_to_be_unverified(originals, tmp_path, capsys):
    for name in ("run", "study", "export"):
        shutil.copytree(originals / name, tmp_path / name)
        strip_checksums(tmp_path / name)
    assert main(["check", str(tmp_path / "run"), str(tmp_path / "study")]) == 0
    assert "run.json: unverified" in capsys.readouterr().out
    assert Reader(tmp_path / "run").said[0] == Reader(originals / "run").said[0]
    assert load_results(tmp_path / "study").curves.equals(load_results(originals / "study").curves)


def strip_checksums(folder):
    for file in folder.rglob("*.json"):
        content = json.loads(file.read_text())
        file.write_text(json.dumps({name: content[name] for name in content if name not in ("format", "checksum")}))
    for file in folder.rglob("metrics.parquet"):
        pl.read_parquet(file).write_parquet(file)


def test_an_export_with_the_table_of_another_is_refused(originals, tmp_path):
    path = shutil.copytree(originals / "export", tmp_path / "export")
    table = pl.read_parquet(path / "curves.parquet")
    write_whole(path / "curves.parquet", *table_bytes("curves", table.head(table.height - 1), {}))
    with pytest.raises(BadInput, match=r"curves.parquet is not the table that manifest.json was written with"):
        load_results(path)


def test_an_export_that_lacks_a_seed_is_refused(originals, tmp_path):
    """Though its checksums are right."""
    import hashlib

    path = shutil.copytree(originals / "export", tmp_path / "export")
    table = pl.read_parquet(path / "curves.parquet").filter(pl.col("seed") == 0)
    data = b"".join(table_bytes("curves", table, {}))
    write_whole(path / "curves.parquet", data)
    content = json.loads((path / "manifest.json").read_text()) | {"curves_sha256": hashlib.sha256(data).hexdigest()}
    write_json(path / "manifest.json", "manifest", {name: content[name] for name in content if name != "checksum"})
    with pytest.raises(BadInput, match="it has the seeds 0, and the run has 0 to 1"):
        load_results(path)


def test_saved_results_of_the_repository_are_whole():
    from pathlib import Path

    results = Path(__file__).parents[2] / "results"
    for path in sorted(results.iterdir()):
        assert {finding.state for finding in check(path)} <= {"intact", "unverified"}, path
