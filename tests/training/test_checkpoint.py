"""Stopping and going on, bit for bit; refusing what is damaged or foreign."""

import json
import os
import shutil
import subprocess
import sys
import zlib

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save, save_file

import iqrl
from iqrl.errors import BadInput, RunFailed
from iqrl.training import loop as training
from iqrl.training.checkpoint import load_state
from iqrl.training.run_directory import RunStore

SETTINGS = {
    "steps": 2000,
    "period": 500,
    "seeds": 2,
    "learning_starts": 200,
    "target_period": 300,
    "epsilon_decay": 800,
}


def assert_same_run(a, b):
    for x, y in zip(jax.tree.leaves(a.agent_state), jax.tree.leaves(b.agent_state), strict=True):
        np.testing.assert_array_equal(x, y)
    assert a.metrics.equals(b.metrics)


def test_half_and_half_in_a_new_process_is_the_whole(tmp_path):
    """2T equals T, saved, loaded in a new process, T more: every array of the checkpoint, every metric."""
    whole = iqrl.train("CartPole-v0", "iq", out=tmp_path / "whole", **SETTINGS)
    iqrl.train("CartPole-v0", "iq", out=tmp_path / "half", **(SETTINGS | {"steps": 1000}))
    code = f"import iqrl; iqrl.resume({str(tmp_path / 'half')!r}, steps=2000)"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"JAX_PLATFORMS": "cpu"})
    assert_same_run(whole, iqrl.load(tmp_path / "half"))
    files = [load_file(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "half")]
    assert files[0].keys() == files[1].keys()
    for name, array in files[0].items():
        np.testing.assert_array_equal(array, files[1][name])


def test_training_in_memory_and_with_a_directory_agree(tmp_path):
    assert_same_run(
        iqrl.train("CartPole-v0", "iq", **SETTINGS), iqrl.train("CartPole-v0", "iq", out=tmp_path / "run", **SETTINGS)
    )


def test_a_finished_run_is_not_run_again(tmp_path):
    first = iqrl.train("CartPole-v0", "iq", out=tmp_path / "run", **SETTINGS)
    stamp = (tmp_path / "run" / "checkpoint.safetensors").stat().st_mtime_ns
    again = iqrl.train("CartPole-v0", "iq", out=tmp_path / "run", **SETTINGS)
    assert_same_run(first, again)
    assert (tmp_path / "run" / "checkpoint.safetensors").stat().st_mtime_ns == stamp


def test_rows_after_the_checkpoint_are_dropped(tmp_path):
    """A crash between writing the metrics and the checkpoint costs nothing."""
    half = SETTINGS | {"steps": 1000}
    iqrl.train("CartPole-v0", "iq", out=tmp_path / "run", **half)
    store = RunStore.open(tmp_path / "run")
    rows = store.metrics()
    rows.vstack(rows.filter(rows["step"] == 1000).with_columns(step=rows["step"][:2] * 0 + 1500)).write_parquet(
        tmp_path / "run" / "metrics.parquet"
    )
    resumed = iqrl.resume(tmp_path / "run", steps=2000)
    assert_same_run(resumed, iqrl.train("CartPole-v0", "iq", **SETTINGS))


def test_the_first_command_finds_a_run_that_went_further(tmp_path):
    iqrl.train("CartPole-v0", "iq", out=tmp_path / "run", **(SETTINGS | {"steps": 500}))
    longer = iqrl.resume(tmp_path / "run", steps=1000)
    assert_same_run(longer, iqrl.train("CartPole-v0", "iq", out=tmp_path / "run", **(SETTINGS | {"steps": 500})))
    assert_same_run(longer, iqrl.train("CartPole-v0", "iq", out=tmp_path / "run", **(SETTINGS | {"steps": 1000})))


def test_a_refused_extension_changes_nothing(saved):
    (saved / "checkpoint.safetensors").write_bytes(b"broken")
    before = (saved / "run.json").read_bytes()
    with pytest.raises(BadInput, match="damaged"):
        iqrl.resume(saved, steps=5000)
    assert (saved / "run.json").read_bytes() == before


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "run"
    iqrl.train("CartPole-v0", "iq", out=path, **(SETTINGS | {"steps": 500}))
    return path


@pytest.fixture
def saved(saved_once, tmp_path):
    return shutil.copytree(saved_once, tmp_path / "run")


def refused(path, words):
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with pytest.raises(BadInput, match=words) as caught:
        iqrl.resume(path)
    assert "\n" not in str(caught.value)
    assert before == {file.name: file.read_bytes() for file in path.iterdir()}


def test_a_run_cannot_be_shortened(saved):
    with pytest.raises(BadInput, match="cannot be shortened to 10"):
        iqrl.resume(saved, steps=10)


def test_truncated_checkpoint_is_refused(saved):
    file = saved / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    refused(saved, "checkpoint.safetensors is damaged")


def test_foreign_bytes_are_refused(saved):
    (saved / "checkpoint.safetensors").write_bytes(b"PK\x03\x04 something else")
    refused(saved, "damaged or not a checkpoint")


def test_foreign_safetensors_are_refused(saved):
    save_file({"weights": np.zeros(3)}, saved / "checkpoint.safetensors")
    refused(saved, "was not written by this version of iqrl")


def test_another_runs_checkpoint_is_refused(saved, tmp_path):
    iqrl.train("CartPole-v0", "dqn", out=tmp_path / "other", **(SETTINGS | {"steps": 500}))
    (saved / "checkpoint.safetensors").write_bytes((tmp_path / "other" / "checkpoint.safetensors").read_bytes())
    refused(saved, "belongs to another run")


def test_a_checkpoint_of_other_shapes_is_refused(saved):
    content = json.loads((saved / "run.json").read_text())
    content["config"]["hidden"] = [32]
    (saved / "run.json").write_text(json.dumps(content))
    refused(saved, "run.json is damaged or was edited")
    (saved / "run.json").write_text(json.dumps(without_marks(content)))
    refused(saved, "does not fit its run")


def without_marks(content):
    """As an earlier version wrote it, without a checksum."""
    return {name: value for name, value in content.items() if name not in ("format", "checksum")}


def test_a_broken_run_file_is_refused(saved):
    content = json.loads((saved / "run.json").read_text())
    content = without_marks(content)
    content["config"]["tsk"] = 1
    for text, words in (
        (json.dumps(content), "unknown setting 'tsk'"),
        ('{"config": {"tsk": 1}}', "cannot be read as a run"),
        ("{", "run.json is not valid JSON"),
    ):
        (saved / "run.json").write_text(text)
        refused(saved, words)


def test_another_run_in_the_directory_is_refused(saved):
    before = (saved / "run.json").read_bytes()
    with pytest.raises(BadInput, match="holds another run"):
        iqrl.train("CartPole-v0", "iq", out=saved, **(SETTINGS | {"gamma": 0.5}))
    assert (saved / "run.json").read_bytes() == before


def test_a_directory_of_other_things_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="exists and is not a run"):
        iqrl.train("CartPole-v0", "iq", out=tmp_path, **SETTINGS)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_infinite_parameters_stop_the_run_and_keep_what_was_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(training, "SAVING_SHARE", np.inf)
    settings = SETTINGS | {"learning_starts": 1200, "learning_rate": 1e38, "gamma": 1.0}
    with pytest.raises(RunFailed, match=r"seed 0, 1 became infinite or NaN before step 1,500; .*keeps step 1,000"):
        iqrl.train("CartPole-v0", "iq", out=tmp_path / "run", **settings)
    kept = iqrl.load(tmp_path / "run")
    assert kept.metrics["step"].max() == 1000
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(kept.agent_state.params))


def test_a_failure_inside_xla_is_a_sentence(monkeypatch):
    def out_of_memory(state, stop, paused):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.\nmore")

    compile_driver = training.compile_driver
    monkeypatch.setattr(
        training, "compile_driver", lambda driver: compile_driver(driver)._replace(advance=out_of_memory)
    )
    with pytest.raises(RunFailed, match="the compiled program failed: RESOURCE_EXHAUSTED") as caught:
        iqrl.train("CartPole-v0", "iq", **SETTINGS)
    assert "\n" not in str(caught.value)


def test_a_full_disk_fails_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(training, "SAVING_SHARE", np.inf)
    written = []

    def full(path, *given):
        written.append(path)
        if len(written) > 1:
            raise OSError(28, "No space left on device")
        original(path, *given)

    from iqrl.training import run_directory as store

    original = store.save_state
    monkeypatch.setattr(store, "save_state", full)
    with pytest.raises(RunFailed, match="No space left on device; what was saved before is still there"):
        iqrl.train("CartPole-v0", "iq", out=tmp_path / "run", **SETTINGS)
    assert iqrl.load(tmp_path / "run").metrics["step"].max() == 500
    assert not [file for file in (tmp_path / "run").iterdir() if file.name.startswith(".")]


def test_run_json_says_what_and_where(saved):
    content = json.loads((saved / "run.json").read_text())
    assert content["config"] == iqrl.load(saved).run.to_dict()
    assert content["versions"]["jax"] == jax.__version__
    assert content["machine"]["cores"] >= 1
    assert content["timing"]["steps_per_second"] > 0


LIKE = {"frames": jax.ShapeDtypeStruct((3, 2_000_000), np.uint8)}
MARKS = {"format": "iqrl-checkpoint-2", "run": "id"}
NAME = "['frames']"


def pieces(*raw, shape):
    """A checkpoint of an earlier version, without a checksum, whose image is in these compressed pieces."""
    arrays = {f"{NAME}/pieces/{i}": np.frombuffer(zlib.compress(each), np.uint8) for i, each in enumerate(raw)}
    return save(arrays | {f"{NAME}/shape": np.asarray(shape, np.int64)}, metadata=MARKS)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pieces(b"x", shape=(9 << 40,)), "frames.* differs"),
        (pieces(b"x", shape=(-1, -9)), "frames.* differs"),
        (pieces(b"x" * 20_000_000, shape=(3, 2_000_000)), "frames.* differs"),
        (pieces(b"x" * 100, shape=(3, 2_000_000)), "frames.* differs"),
        (pieces(shape=(3, 2_000_000)), "damaged or not a checkpoint"),
        ((9 << 40).to_bytes(8, "little") + b"{}", "damaged or not a checkpoint"),
        (b"", "is empty"),
    ],
)
def test_what_a_file_claims_is_not_believed(tmp_path, data, words):
    """Nine terabytes, and compressed pieces that unpack to more or less than they should."""
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(BadInput, match=words):
        load_state(tmp_path / "c", LIKE, "id")


def test_a_snapshot_of_an_environment_cannot_claim_more_than_its_pieces_hold(tmp_path):
    array = {"environments/0.own/shape": np.asarray([9 << 40], np.int64), NAME: np.zeros((3, 2_000_000), np.uint8)}
    (tmp_path / "c").write_bytes(save(array, metadata=MARKS))
    with pytest.raises(BadInput, match=r"environments/0.own differs"):
        load_state(tmp_path / "c", LIKE, "id")


def test_images_of_earlier_versions_are_read(tmp_path):
    frames = np.arange(6_000_000, dtype=np.uint8).reshape(3, 2_000_000)
    (tmp_path / "c").write_bytes(pieces(frames.tobytes(), shape=frames.shape))
    np.testing.assert_array_equal(load_state(tmp_path / "c", LIKE, "id")[0]["frames"], frames)
