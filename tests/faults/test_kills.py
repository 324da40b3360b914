"""A run in processes that are short of disk, killed, and two at a time ends with the bits of one left alone.

`scripts/soak` does the same hundreds of times, also of runs that are measured, hosted or made of images.
"""

import os
import random
import signal
import time

from kills import FILES, Killed, age_files, ended, left_over, stamp, wait_for_file


def test_a_full_disk_a_kill_and_two_at_once(tmp_path):
    seed = random.randrange(10**6)
    print(f"seed of the random moments: {seed}")
    chance, path = random.Random(seed), tmp_path / "run"
    killed = Killed("short", tmp_path, timed=False)

    size = (killed.whole / "checkpoint.safetensors").stat().st_size
    assert ended(killed.start(path, limit=size // 2)) == 1, "no checkpoint fits on the disk"
    assert (path / "run.json").exists()
    assert not left_over(path)

    before = stamp(path / FILES[0])
    process = killed.start(path, clock=3600.0)
    wait_for_file(process, path / FILES[0], before)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGCONT)
    time.sleep(chance.uniform(0.0, 0.3))
    process.kill()
    assert ended(process) in (-signal.SIGKILL, 0), "killed, or quicker than that"
    age_files(path, chance)

    codes = sorted(map(ended, [killed.start(path), killed.start(path)]))
    assert codes in ([0, 2], [0, 0]), "one trains, and the other is told or comes when the first is done"
    killed.assert_same(path)
