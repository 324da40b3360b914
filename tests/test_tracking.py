"""Trackers."""

import csv
import struct
import sys
from types import SimpleNamespace

import pytest

from iqrl.errors import BadInput, PackagesMissing, RunFailed
from iqrl.tracking import make_tracker


def track(kind, folder, *logged):
    tracker = make_tracker(kind, folder, "a run", {"seed": 0})
    for step, values in logged:
        tracker.log(step, values)
    tracker.close()


def test_csv_has_a_row_per_step_and_goes_on(tmp_path):
    track("csv", tmp_path / "new", (100, {"return": 1.5}), (200, {"return": 2.0}), (300, {"return": 9.0}))
    track("csv", tmp_path / "new", (300, {"return": 3.0, "evaluation": 4.0}))  # a killed run computes a period again
    with open(tmp_path / "new" / "tracking.csv") as file:
        assert list(csv.DictReader(file)) == [
            {"step": "100", "return": "1.5", "evaluation": ""},
            {"step": "200", "return": "2.0", "evaluation": ""},
            {"step": "300", "return": "3.0", "evaluation": "4.0"},
        ]


def test_a_csv_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "tracking.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match=r"tracking\.csv is not a file of iqrl's tracker"):
        track("csv", tmp_path, (100, {"return": 1.5}))
    assert (tmp_path / "tracking.csv").read_text() == "a,b\n1,2\n"


def read_events(folder):
    from tensorboardX.proto.event_pb2 import Event

    (path,) = folder.iterdir()
    data, place = path.read_bytes(), 0
    while place < len(data):
        (size,) = struct.unpack("<Q", data[place : place + 8])
        event = Event.FromString(data[place + 12 : place + 12 + size])
        yield from ((event.step, value.tag, value.simple_value) for value in event.summary.value)
        place += 16 + size


def test_tensorboard_can_be_read_back(tmp_path):
    pytest.importorskip("tensorboardX")
    track("tensorboard", tmp_path, (100, {"return": 1.5}), (200, {"return": 2.0, "return/seed_0": 2.5}))
    expected = [(100, "return", 1.5), (200, "return", 2.0), (200, "return/seed_0", 2.5)]
    assert list(read_events(tmp_path / "tensorboard")) == expected


@pytest.mark.parametrize("kind", ["wandb", "trackio"])
def test_projects_are_begun_logged_to_and_finished(kind, tmp_path, monkeypatch, capsys):
    """A package of the same form takes its place."""
    calls = []
    fake = SimpleNamespace(
        init=lambda **given: (calls.append(("init", given)), print("hello")),
        log=lambda values, step: calls.append(("log", step, values)),
        finish=lambda: calls.append(("finish",)),
    )
    monkeypatch.setitem(sys.modules, kind, fake)
    track(kind, tmp_path)
    assert not calls  # nothing was logged, so nothing is begun
    track(kind, tmp_path, (100, {"return": 1.0}))
    first, *rest = calls
    assert first[1].items() >= {"project": "iqrl", "name": "a run", "config": {"seed": 0}}.items()
    assert rest == [("log", 100, {"return": 1.0}), ("finish",)]
    assert capsys.readouterr().out == ""  # it may be JSON that a program reads


def test_a_package_that_is_missing_or_fails_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(PackagesMissing, match=r"tracking by wandb needs another package .*: pip install wandb"):
        make_tracker("wandb", tmp_path, "a run", {})

    def init(**given):
        raise ConnectionError("no account")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    with pytest.raises(RunFailed, match=r"tracking by wandb failed with ConnectionError.*: no account"):
        track("wandb", tmp_path, (100, {}))
