"""How a study is run, with an executor that only pretends."""

import signal
import threading
from typing import ClassVar

import polars as pl
import pytest

from iqrl.errors import BadInput
from iqrl.experiments.executors.base import Outcome
from iqrl.experiments.study.directory import StudyDirectory
from iqrl.experiments.study.estimate import seconds_of, total_seconds
from iqrl.experiments.study.run_study import Watcher, run_study
from iqrl.experiments.study.study import Study

CONTENT = {
    "settings": {"seeds": 2, "steps": 3000},
    "runs": [{"task": "CartPole-v0", "method": ["dqn", "iq"], "buffer_size": [1, 100]}],
}


class Pretended:
    """Answers at once: the errors it was given for a run, in turn, then success."""

    def __init__(self, directory, errors=(), size=1):
        self.directory, self.size, self.submitted = directory, size, []
        self.errors = {name: list(words) for name, words in dict(errors).items()}
        self.pending = []

    @property
    def free(self):
        return self.size - len(self.pending)

    def submit(self, unit):
        self.submitted.append(unit.name)
        self.pending.append(unit)

    def wait(self, seconds):
        ended, self.pending = [Outcome(unit, self._error(unit)) for unit in self.pending], []
        return ended

    def _error(self, unit):
        errors = self.errors.get(unit.name)
        return errors.pop(0) if errors else None

    def stop(self):
        return self.wait(0)

    def close(self):
        pass


class Recorder(Watcher):
    def __init__(self):
        self.events, self.left = [], []

    def on_start(self, runs, finished, workers):
        self.events.append(("start", runs, finished))

    def on_progress(self, progress):
        self.left.append(progress.seconds_left)

    def on_end(self, unit, error, retry):
        self.events.append((unit.name, error, retry))


@pytest.fixture
def directory(tmp_path):
    return StudyDirectory.create(tmp_path / "study", Study("mine", CONTENT))


def runs_of(directory):
    return list(directory.study.runs.values())


def names(directory):
    return {run.method + str(run.buffer_size): directory.work_unit(run).name for run in runs_of(directory)}


def test_the_longest_run_is_first(directory):
    executor = Pretended(directory)
    assert run_study(directory, executor, Watcher(), runs_of(directory)) == {}
    expected = sorted(runs_of(directory), key=lambda run: -seconds_of(run))
    assert executor.submitted == [directory.work_unit(run).name for run in expected]
    assert "N100" in executor.submitted[0], "a step with a buffer takes longer than one without"


def test_a_failed_run_is_tried_once_more_and_never_stops_the_others(directory):
    name = names(directory)
    executor = Pretended(directory, {name["iq100"]: ["once"], name["dqn1"]: ["first", "second"]})
    recorder = Recorder()
    assert run_study(directory, executor, recorder, runs_of(directory)) == {name["dqn1"]: "second"}
    assert sorted(executor.submitted) == sorted([*name.values(), name["iq100"], name["dqn1"]])
    assert (name["iq100"], "once", True) in recorder.events
    assert (name["dqn1"], "second", False) in recorder.events
    assert StudyDirectory.open(directory.path).failures() == {name["dqn1"]: "second"}
    # The next time it is tried again, and what succeeds is no failure any more.
    assert run_study(directory, Pretended(directory), Watcher(), runs_of(directory)) == {}
    assert StudyDirectory.open(directory.path).failures() == {}


def test_what_is_finished_is_not_run_again(directory, monkeypatch):
    done = runs_of(directory)[:3]
    monkeypatch.setattr(StudyDirectory, "is_finished", lambda self, run: run in done)
    executor, recorder = Pretended(directory), Recorder()
    run_study(directory, executor, recorder, runs_of(directory))
    assert executor.submitted == [directory.work_unit(runs_of(directory)[3]).name]
    assert recorder.events[0] == ("start", 4, 3)


def test_a_second_process_is_refused(directory):
    executor = Pretended(directory)
    with directory.locked(), pytest.raises(BadInput, match="being run by another process"):
        run_study(StudyDirectory.open(directory.path), executor, Watcher(), runs_of(directory))
    assert executor.submitted == []


def test_ctrl_c_stops_what_runs_and_says_how_to_go_on(directory):
    class Interrupted(Pretended):
        def wait(self, seconds):
            if self.pending and len(self.submitted) == 2:
                signal.raise_signal(signal.SIGINT)
                self.errors = {unit.name: ["interrupted"] for unit in self.pending}
            return super().wait(seconds)

    assert threading.current_thread() is threading.main_thread()
    executor = Interrupted(directory)
    with pytest.raises(KeyboardInterrupt, match="the same command goes on"):
        run_study(directory, executor, Watcher(), runs_of(directory))
    assert len(executor.submitted) == 2
    assert directory.failures() == {}


def test_the_time_left_is_what_was_estimated_until_runs_say_otherwise(directory):
    class Slow(Pretended):
        def wait(self, seconds):
            return super().wait(seconds) if len(self.waits) > 1 else self.waits.append(seconds) or []

        waits: ClassVar = []

    recorder = Recorder()
    run_study(directory, Slow(directory), recorder, runs_of(directory))
    estimated = sum(map(seconds_of, runs_of(directory)))
    assert recorder.left[0] == pytest.approx(estimated, rel=0.01), "none has ended"
    assert recorder.left[2] < estimated / 100, "the first took no time at all"
    assert recorder.left[-1] == 0


def test_time_on_several_cores_by_hand():
    assert total_seconds([], 2) == 0
    assert total_seconds([5, 4, 3], 2) == 7
    assert total_seconds([5, 4, 3], 3) == 5
    assert total_seconds([5, 4, 3], 1) == 12


def test_measuring_takes_longer(directory, small_run):
    plain, measured = small_run(), small_run(measure_every=100, measure_sample=0)
    assert seconds_of(measured) > seconds_of(plain)


def test_a_directory_is_kept_for_one_study(directory, tmp_path):
    with pytest.raises(BadInput, match="holds the study 'mine'"):
        StudyDirectory.create(directory_written(directory), Study("other", CONTENT))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    with pytest.raises(BadInput, match="is not a study"):
        StudyDirectory.create(tmp_path / "full", Study("mine", CONTENT))
    with pytest.raises(BadInput, match="holds no study"):
        StudyDirectory.open(tmp_path / "full")


def test_a_study_file_that_is_damaged_is_left_alone(directory):
    file = directory_written(directory) / "study.json"
    file.write_text("{")
    with pytest.raises(BadInput, match="left alone"):
        StudyDirectory.open(directory.path)
    assert file.read_text() == "{"


def directory_written(directory):
    with directory.locked():
        return directory.path


def test_only_half_written_files_are_removed(directory):
    run = directory_written(directory) / "runs" / "one"
    run.mkdir()
    left = f".iqrl-{'0' * 16}.tmp"
    for folder in (directory.path, run.parent, run, directory.path / "progress"):
        for name in (left, ".mine.2024"):
            (folder / name).write_text("")
    StudyDirectory.open(directory.path)
    assert not list(directory.path.rglob(left))
    assert len(list(directory.path.rglob(".mine.2024"))) == 4


def test_what_another_study_has_finished_is_copied_and_not_run(directory, tmp_path):
    other = StudyDirectory.create(tmp_path / "other", Study("other", CONTENT))
    one, two, *_ = runs_of(directory)
    with other.locked():
        pretend_to_train(other.path_of(one), one.steps)
        pretend_to_train(other.path_of(two), one.steps - 1)
    with directory.locked():
        pretend_to_train(directory.path_of(one), 1)
        (directory.path_of(one) / "begun here").write_text("")
    executor, recorder = Pretended(directory), Recorder()
    run_study(directory, executor, recorder, runs_of(directory), [other.path])
    assert recorder.events[0] == ("start", 4, 1)
    assert directory.work_unit(one).name not in executor.submitted
    assert directory.work_unit(two).name in executor.submitted, "it was not finished there"
    files = {file.name: file.read_bytes() for file in directory.path_of(one).iterdir()}
    assert files == {file.name: file.read_bytes() for file in other.path_of(one).iterdir()}
    with pytest.raises(BadInput, match="holds no study"):
        run_study(directory, executor, recorder, runs_of(directory), [tmp_path])


def test_a_run_that_is_finished_has_not_failed(directory):
    """Its worker may have died after the last save, and with it the word that it was done."""
    one = runs_of(directory)[0]
    with directory.locked():
        pretend_to_train(directory.path_of(one), one.steps)
        directory.write_failures({directory.work_unit(one).name: "its worker process ended by SIGKILL"})
    assert run_study(directory, Pretended(directory), Recorder(), runs_of(directory)) == {}
    assert not (directory.path / "failures.json").exists()


def pretend_to_train(path, step):
    path.mkdir()
    (path / "run.json").write_text("{}")
    pl.DataFrame({"step": [step]}).write_parquet(path / "metrics.parquet")
