"""The same work on a real Ray cluster of this machine, started here; one of its workers is killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iqrl.experiments.study.directory import StudyDirectory
from iqrl.experiments.study.run_study import Watcher, run_study
from iqrl.experiments.study.study import Study
from iqrl.experiments.study.work import run_unit

ray = pytest.importorskip("ray", reason="Ray is not installed")

from iqrl.errors import BadInput
from iqrl.experiments.executors.ray_cluster import RayExecutor, refuse_open

STUDY = Study(
    "on-ray",
    {
        "settings": {"preset": "paper", "seeds": 3, "steps": 20_000},
        "runs": [{"task": "CartPole-v0", "method": ["dqn", "iq"], "buffer_size": 1}],
    },
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A cluster of its own, not one that may be running here already."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).parent / "ray", "start", "--head", "--block", f"--port={port}", "--num-cpus=2"]
    flags = ["--include-dashboard=false", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
    environment = os.environ | {"IQRL_CHECKPOINT_SECONDS": "0", "RAY_AUTH_MODE": "disabled"}
    head = subprocess.Popen(
        [*map(str, command), *flags], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: answers(port))
    yield f"127.0.0.1:{port}"
    head.terminate()
    head.wait(30)


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


class Killer(Watcher):
    """Kills the Ray worker of the first run that says how far it is."""

    def __init__(self):
        self.killed, self.errors = False, []

    def on_progress(self, progress):
        under_way = [run for run in progress.running if run.step]
        if under_way and not self.killed:
            self.killed = any(map(kill, ray_workers()))

    def on_end(self, unit, error, retry):
        self.errors += [error] if error else []


def ray_workers():
    """Processes of Ray at work on a unit."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if words.startswith(b"ray::_remote_work"):
            yield int(folder.name)


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    return True


@pytest.mark.filterwarnings("ignore")  # of Ray's own
def test_a_cluster_gives_the_same_bits_though_a_worker_is_killed(address, tmp_path):
    directory = StudyDirectory.create(tmp_path / "ray", STUDY)
    killer, runs = Killer(), list(STUDY.runs.values())
    executor = RayExecutor(address, 2, trusted=True)
    try:
        assert run_study(directory, executor, killer, runs) == {}
    finally:
        executor.close()
    assert killer.killed
    assert killer.errors, "the killed run was not reported"
    alone = StudyDirectory.create(tmp_path / "alone", STUDY)
    for run in runs:
        with alone.locked():
            run_unit(alone.work_unit(run))
        metrics = [(folder.path_of(run) / "metrics.parquet").read_bytes() for folder in (directory, alone)]
        assert metrics[0] == metrics[1]


@pytest.mark.filterwarnings("ignore")
def test_no_cluster_is_said_in_a_sentence():
    with pytest.raises(BadInput, match="no Ray cluster at 'nowhere:1'"):
        RayExecutor("nowhere:1", None, trusted=True)


def test_an_open_cluster_is_not_joined_unless_it_is_trusted(monkeypatch):
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with pytest.raises(BadInput, match=r"may be open to everybody.* --trust head:6379"):
        RayExecutor("head:6379", None)
    refuse_open("head:6379", trusted=True)
    refuse_open(None, trusted=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    refuse_open("head:6379", trusted=False)


def test_a_cluster_of_this_machine_listens_to_it_alone(monkeypatch):
    given = {}

    class Pretended:
        def init(self, **named):
            given.update(named)

        def cluster_resources(self):
            return {"CPU": 1}

        def remote(self, **named):
            return lambda function: function

    monkeypatch.setattr("iqrl.experiments.executors.ray_cluster._import_ray", Pretended)
    monkeypatch.delenv("RAY_NODE_IP_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # given back afterwards
    RayExecutor(None, 1)
    assert (given["_node_ip_address"], given["include_dashboard"]) == ("127.0.0.1", False)
    monkeypatch.setenv("RAY_NODE_IP_ADDRESS", "10.0.0.1")
    RayExecutor(None, 1)
    assert given["_node_ip_address"] == "10.0.0.1"
