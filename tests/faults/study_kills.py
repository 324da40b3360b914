"""Studies whose processes are killed: that of the study, its workers, those of Ray. Long in `scripts/soak`.

`tests/experiments/study/test_crash_safety.py` and `tests/experiments/executors/test_ray.py` are the short form.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from kills import content, left_over

from iqrl.experiments.executors.ray_cluster import RayExecutor
from iqrl.experiments.integrity import check
from iqrl.experiments.study.directory import StudyDirectory
from iqrl.experiments.study.run_study import StudyProgress, Watcher, run_study
from iqrl.experiments.study.study import Study

SETTINGS = {"seeds": 2, "steps": 3000, "period": 100, "learning_starts": 100, "target_period": 100, "buffer_size": 50}
GAMMAS = (0.9, 0.95, 0.98, 0.99)
CONTENT = {"settings": SETTINGS, "runs": [{"task": "CartPole-v0", "method": "dqn", "gamma": list(GAMMAS)}]}
TOML = "[settings]\n" + "".join(f"{name} = {value}\n" for name, value in SETTINGS.items())
TOML += f'[[runs]]\ntask = "CartPole-v0"\nmethod = "dqn"\ngamma = {list(GAMMAS)}\n'


def begin(folder: Path, out: Path) -> subprocess.Popen:
    """The command, with a checkpoint after every period."""
    (folder / "killed.toml").write_text(TOML)
    command = [sys.executable, "-m", "iqrl", "study", "run", str(folder / "killed.toml"), "--out", str(out)]
    environment = os.environ | {"IQRL_CHECKPOINT_SECONDS": "0"}
    return subprocess.Popen(
        [*command, "--workers", "2", "--no-report"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def finish(process: subprocess.Popen) -> str:
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return err


def curves(out: Path) -> dict[str, object]:
    return {str(file.relative_to(out)): content(file) for file in out.glob("runs/*/metrics.parquet")}


def assert_same(out: Path, whole: Path) -> None:
    assert len(curves(whole)) == len(GAMMAS)
    assert curves(out) == curves(whole), "the curves differ"
    assert {finding.state for finding in check(out)} == {"intact"}
    assert not left_over(out), f"{left_over(out)} is left over"


def children(process: subprocess.Popen) -> list[int]:
    if process.poll() is not None:
        return []
    with contextlib.suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    return []


def saves(out: Path) -> int:
    """A number that grows with every file that is saved."""
    with contextlib.suppress(OSError):
        return sum(file.stat().st_mtime_ns for file in out.glob("runs/*/*.*"))
    return 0


def wait_for(process: subprocess.Popen, condition) -> None:
    """Until it holds, or the process is over."""
    while process.poll() is None and not condition():
        time.sleep(0.01)


def kill_studies(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """So many kills of studies and their workers; each study is finished and compared."""
    chance, counts, studies = random.Random(f"{seed}/study"), {"study": 0, "worker": 0}, 0
    whole = folder / "whole"
    finish(begin(folder, whole))
    while sum(counts.values()) < kills:
        out = folder / f"study-{studies}"
        for _ in range(chance.randrange(1, 3)):
            kill_some(folder, out, chance, counts)
        finish(begin(folder, out))
        assert_same(out, whole)
        studies += 1
        print(f"{studies} studies, {counts}", file=sys.stderr, flush=True)
    return counts | {"studies": studies}


def kill_some(folder: Path, out: Path, chance: random.Random, counts: dict[str, int]) -> None:
    """Workers one after the other, each when runs are being saved, and then the study itself."""
    before, process = saves(out), begin(folder, out)
    for _ in range(chance.randrange(0, 6)):
        wait_for(process, lambda: saves(out) != before)  # noqa: B023
        time.sleep(chance.uniform(0.0, 0.3))
        if workers := children(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
                counts["worker"] += 1
        before = saves(out)
    wait_for(process, lambda: saves(out) != before)
    time.sleep(chance.uniform(0.0, 0.3))
    if process.poll() is None:
        process.kill()
        counts["study"] += 1
    process.communicate()


# Ray


@contextlib.contextmanager
def ray_cluster():
    """A cluster of this machine, as the tests start one: its address, and the process that all of it descends from."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).parent / "ray", "start", "--head", "--block", f"--port={port}", "--num-cpus=1"]
    flags = ["--include-dashboard=false", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
    environment = os.environ | {"IQRL_CHECKPOINT_SECONDS": "0", "RAY_AUTH_MODE": "disabled"}
    head = subprocess.Popen(
        [*map(str, command), *flags], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}", head.pid
    finally:
        head.terminate()
        head.wait(30)


class Killer(Watcher):
    """Kills the Ray worker of each run once, while it trains."""

    def __init__(self, head: int, chance: random.Random):
        self.head, self.chance, self.killed = head, chance, set[str]()

    def on_progress(self, progress: StudyProgress) -> None:
        for run in progress.running:
            if run.step and run.name not in self.killed:
                time.sleep(self.chance.uniform(0.0, 0.5))
                for pid in ray_workers(self.head):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        self.killed.add(run.name)


def ray_workers(head: int):
    """Processes of this cluster, and of no other, that are at work on a unit."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            if words.startswith(b"ray::_remote_work") and head in ancestors(int(folder.name)):
                yield int(folder.name)


def ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def kill_ray_workers(folder: Path, kills: int, seed: int) -> dict[str, int]:
    chance, killed, studies = random.Random(f"{seed}/ray"), 0, 0
    whole = folder / "whole"
    if not whole.exists():
        finish(begin(folder, whole))
    with ray_cluster() as (address, head):
        executor = RayExecutor(address, 1, trusted=True)
        try:
            while killed < kills:
                directory = StudyDirectory.create(folder / f"ray-{studies}", Study("killed", CONTENT))
                killer = Killer(head, chance)
                assert run_study(directory, executor, killer, list(directory.study.runs.values())) == {}
                assert_same(directory.path, whole)
                killed += len(killer.killed)
                studies += 1
        finally:
            executor.close()
    return {"Ray worker": killed, "studies": studies}
