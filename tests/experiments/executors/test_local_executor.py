"""Worker processes: pinned, replaced, honest about what went wrong."""

import os
import signal
from pathlib import Path

import pytest

from iqrl.errors import BadInput
from iqrl.experiments.executors.local import LocalExecutor, available_cores
from iqrl.experiments.study.directory import WorkUnit


@pytest.fixture
def executor(tmp_path):
    opened = LocalExecutor(1, tmp_path)
    yield opened
    opened.close()


def broken_unit(folder, **config):
    """A unit that fails as soon as it is looked at."""
    return WorkUnit(str(folder / "none" / "run"), str(folder / "progress"), config, ())


def outcome(executor):
    for _ in range(600):
        if ended := executor.wait(0.1):
            return ended[0]
    raise AssertionError("nothing ended")


def test_what_goes_wrong_in_a_worker_is_said_and_the_worker_lives_on(executor, tmp_path):
    executor.submit(broken_unit(tmp_path))
    assert executor.free == 0
    first = outcome(executor)
    assert "every worker sees" in first.error
    process = executor.workers[0].process
    executor.submit(broken_unit(tmp_path))
    assert outcome(executor).error == first.error
    assert executor.workers[0].process is process
    assert executor.free == 1
    assert os.sched_getaffinity(process.pid) == {executor.cores[0]} <= set(available_cores())


def test_a_worker_that_was_killed_is_named_and_replaced(executor, tmp_path):
    executor.submit(broken_unit(tmp_path))
    os.kill(executor.workers[0].process.pid, signal.SIGKILL)
    assert "ended by SIGKILL" in outcome(executor).error
    executor.submit(broken_unit(tmp_path))
    assert "every worker sees" in outcome(executor).error


def test_a_worker_ends_with_its_study(executor, tmp_path):
    executor.submit(broken_unit(tmp_path))
    outcome(executor)
    process = executor.workers[0].process
    process.stdin.close()  # as the operating system does for a study that was killed
    assert process.wait(10) == 0


def test_a_traceback_is_in_the_log_and_not_in_the_answer(executor, tmp_path):
    unit = WorkUnit(str(tmp_path / "run"), str(tmp_path / "progress"), {"task": 3}, ())
    executor.submit(unit)
    error = outcome(executor).error
    assert "\n" not in error
    assert "Traceback" in Path(tmp_path / "worker-0.log").read_text()


def test_no_workers_is_refused(tmp_path):
    with pytest.raises(BadInput, match="at least 1"):
        LocalExecutor(0, tmp_path)


def test_more_workers_than_cores_share_them(tmp_path):
    crowd = LocalExecutor(len(available_cores()) + 1, tmp_path)
    assert set(crowd.cores) == {None}
    crowd.close()


def test_studies_beside_each_other_use_different_cores(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("iqrl.experiments.executors.local.available_cores", lambda: [3, 5, 8])
    first, second = LocalExecutor(1, tmp_path), LocalExecutor(1, tmp_path)
    assert (first.cores, second.cores) == ([3], [5])
    third = LocalExecutor(2, tmp_path)  # one is free: the other is shared
    assert third.cores == [8, 3]
    first.close()
    assert LocalExecutor(1, tmp_path).cores == [3]


def test_cores_are_used_where_the_cache_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert LocalExecutor(1, tmp_path).cores == [available_cores()[0]]
