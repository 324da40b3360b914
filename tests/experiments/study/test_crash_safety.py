"""A real study in real processes, killed at random moments, ends with the very bits of one that was left alone."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from iqrl.cli.main import main
from iqrl.experiments.study.results import load_results

STUDY = """
title = "cut down"

[settings]
preset = "paper"
seeds = 2
steps = 10_000

[[runs]]
task = "CartPole-v0"
method = ["dqn", "iq"]
buffer_size = 1
"""
RUNS = 2


def study_file(folder):
    file = folder / "cut-down.toml"
    file.write_text(STUDY)
    return file


def begin(folder, *flags):
    """The command in a process of its own; a checkpoint after every period."""
    command = [sys.executable, "-m", "iqrl.cli", "study", "run", str(study_file(folder)), "--out", str(folder / "out")]
    environment = os.environ | {"IQRL_CHECKPOINT_SECONDS": "0"}
    return subprocess.Popen(
        [*command, "--workers", "2", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    finish(begin(folder, "--no-report"))
    return folder / "out"


def metrics(directory):
    return {file.parent.name: file.read_bytes() for file in directory.glob("runs/*/metrics.parquet")}


def finished(directory):
    """When the curves of finished runs were written."""
    files = directory.glob("runs/*/metrics.parquet")
    done = [file for file in files if pl.read_parquet(file)["step"].max() == 10_000]
    return {file: file.stat().st_mtime_ns for file in done}


def workers_of(process):
    """The study's workers, by their numbers."""
    if process.poll() is not None:
        return []
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if b"executors.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def kill_a_worker(process, chance):
    """One of the study's workers, within a second of their start; none where the study is over before it has any."""
    wait_for(lambda: workers_of(process) or process.poll() is not None)
    time.sleep(chance.uniform(0.0, 1.0))
    if workers := workers_of(process):
        os.kill(chance.choice(workers), signal.SIGKILL)


def test_killed_at_random_moments_it_ends_with_the_same_bits(unbroken, tmp_path):
    seed = random.randrange(10**6)
    print(f"seed of the random moments: {seed}")
    chance, out = random.Random(seed), tmp_path / "out"
    a_second_process_is_told(tmp_path)

    before = finished(out)
    process = begin(tmp_path, "--no-report")
    kill_a_worker(process, chance)
    time.sleep(chance.uniform(1.0, 6.0))
    process.kill()
    process.communicate()
    assert before.items() <= finished(out).items(), "what was finished was run again"

    before = finished(out)
    process = begin(tmp_path, "--no-report")
    kill_a_worker(process, chance)
    _, err = finish(process)
    assert "failed" not in err
    assert before.items() <= finished(out).items(), "what was finished was run again"
    assert metrics(out) == metrics(unbroken)
    assert len(metrics(out)) == RUNS
    assert list(out.glob("runs/*/.*")) == [], "half-written files are left"


def a_second_process_is_told(tmp_path):
    """And the first one, asked to stop, saves what runs and says how to go on."""
    first = begin(tmp_path, "--no-report")
    wait_for(lambda: workers_of(first))
    workers = workers_of(first)
    for worker in workers:  # so that the study is not over before the second process has begun
        os.kill(worker, signal.SIGSTOP)
    second = begin(tmp_path, "--no-report")
    _, err = second.communicate(timeout=300)
    for worker in workers:
        os.kill(worker, signal.SIGCONT)
    assert second.returncode == 2
    assert "is being run by another process" in err
    assert err.count("\n") == 1
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=300)
    assert first.returncode == 130
    assert "the same command goes on" in err
    assert not Path(f"/proc/{first.pid}").exists()


def wait_for(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def test_running_a_finished_study_again_does_nothing(unbroken, capsys):
    before = finished(unbroken)
    assert main(["study", "run", str(study_file(unbroken.parent)), "--out", str(unbroken), "--no-report"]) == 0
    assert f"{RUNS} of them finished before" in capsys.readouterr().err
    assert finished(unbroken) == before


def test_the_results_are_all_there(unbroken):
    results = load_results(unbroken)
    assert results.unfinished == 0
    assert len(results.runs) == RUNS
    assert results.curves.height == RUNS * 2 * 40
    assert results.curves["return"].is_not_null().all()
