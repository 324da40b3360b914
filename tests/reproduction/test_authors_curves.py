"""Reading the authors' curves, from both forms, and saying what is wrong with a path."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from made_up_curves import folder_of, make_up, write_clone, write_log

from iqrl.errors import BadInput
from iqrl.reproduction.authors_curves import find_equal_runs, read_curves, read_logs
from iqrl.reproduction.printed import Setting

PONG = Setting("Pong", 10_000, "DQN")


@pytest.fixture(scope="module")
def arrays():
    return make_up()


@pytest.fixture(scope="module")
def whole_clone(arrays, tmp_path_factory):
    root = tmp_path_factory.mktemp("clone")
    write_clone(root, arrays)
    return root


@pytest.fixture
def clone(whole_clone, tmp_path):
    """One to break."""
    return Path(shutil.copytree(whole_clone, tmp_path / "clone"))


def saved(path, arrays):
    np.savez(path, **arrays)
    return path


def test_arrays_and_clone_hold_the_same(arrays, whole_clone, tmp_path):
    one = read_curves(saved(tmp_path / "curves.npz", arrays))
    for path in (whole_clone, whole_clone / "IQ-RE"):
        other = read_curves(path)
        for mine, theirs in ((one.runs, other.runs), (one.encoders, other.encoders), (one.logged, other.logged)):
            assert list(mine) == list(theirs)
            assert all(np.array_equal(mine[key], theirs[key]) for key in mine)
    assert one.runs[Setting("Tennis", 10_000, "Rainbow+IQ-RE")].shape == (5, 200)
    assert np.array_equal(one.runs[PONG][2], arrays["Pong/10000/DQN/3"])
    trained = one.encoders[Setting("Carnival", 10_000, "DQN+IQ-TE")]
    assert np.array_equal(trained[4], arrays["RE_TE_compare/Carnival/10000/DQN+IQ-TE/5"])


def test_only_the_log_that_differs_is_kept(whole_clone, arrays):
    logged = read_curves(whole_clone).logged
    assert list(logged) == [(PONG, 1)]  # run 4 logged what was saved
    assert np.array_equal(logged[PONG, 1], arrays["tfevents/Pong/10000/DQN/1"])


def test_a_clone_without_logs_can_be_read(clone):
    for log in clone.glob("**/events*"):
        log.unlink()
    assert read_curves(clone).logged == {}


def test_a_log_in_parts(tmp_path):
    """Resumed from iteration 150: of repeated iterations the last log counts."""
    write_log(tmp_path / "events.out.tfevents.1.external", np.arange(160.0))
    write_log(tmp_path / "events.out.tfevents.2.external", np.arange(150.0, 200.0) + 0.5, first=150)
    curve = read_logs(tmp_path.glob("events*"))
    assert curve.tolist() == [*np.arange(150.0), *(np.arange(150.0, 200.0) + 0.5)]


def test_equal_runs_are_found_and_zeros_are_not_copies():
    curves = np.array([[1.0, 2], [0, 0], [1, 2], [0, 0], [1, 2.5]])
    assert find_equal_runs(curves) == [(1, 3)]
    assert find_equal_runs(np.ones((3, 2))) == [(1, 2), (1, 3), (2, 3)]


def without(arrays, name):
    return {key: value for key, value in arrays.items() if key != name}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda it: without(it, "Tennis/10000/Rainbow/3"), "has no array Tennis/10000/Rainbow/3; it must hold runs 1"),
        (lambda it: without(it, "RE_TE_compare/Breakout/10000/DQN+IQ-TE/5"), "no array RE_TE_compare/Breakout"),
        (lambda it: it | {"Pong/10000/DQN/2": np.zeros(199)}, r"Pong/10000/DQN/2 of .* must be 200 .* \(199,\)"),
        (lambda it: it | {"Pong/10000/DQN/2": np.zeros(200, int)}, "got an array of int64"),
        (lambda it: it | {"Pong/10000/DQN/2": np.full(200, np.nan)}, "for each iteration, got 200 that are none"),
        (lambda it: it | {"Pong/10000/DQN/2": np.full(200, np.inf)}, "for each iteration, got 200 that are none"),
        (lambda it: it | {"Pong/10000/DQN/2": np.array([None])}, "cannot be read as an .npz file of curves"),
    ],
)
def test_faults_of_a_file_of_arrays(change, words, arrays, tmp_path):
    with pytest.raises(BadInput, match=words):
        read_curves(saved(tmp_path / "curves.npz", change(arrays)))


def test_files_that_are_no_curves(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.save(tmp_path / "one.npy", np.zeros(200))
    (tmp_path / "empty.npz").touch()
    for name, words in (
        ("text.npz", "cannot be read as an .npz file"),
        ("empty.npz", "cannot be read as an .npz file"),
        ("one.npy", "holds one array"),
        ("none.npz", "does not exist; give a clone"),
        ("", "no folder IQ-RE/experiments"),
    ):
        with pytest.raises(BadInput, match=words):
            read_curves(tmp_path / name)


def test_faults_of_a_clone(clone):
    run = clone / folder_of("Freeway/1000000/Rainbow+IQ-RE/2")
    np.save(run / "training_performance.npy", np.zeros((200, 1)))
    with pytest.raises(BadInput, match=r"IQ_Rainbow_2/training_performance.npy must be 200 .* shape \(200, 1\)"):
        read_curves(clone)
    (run / "training_performance.npy").write_bytes(b"\x80\x04.")  # a pickle is never opened
    with pytest.raises(BadInput, match=r"training_performance.npy cannot be read as an array"):
        read_curves(clone)
    (run / "training_performance.npy").unlink()
    with pytest.raises(BadInput, match=r"has no file training_performance.npy; fetch the whole repository"):
        read_curves(clone)
    shutil.rmtree(run)
    with pytest.raises(BadInput, match=r"Freeway/RBS=1000000 has no folder IQ_Rainbow_2; the clone must hold"):
        read_curves(clone)
