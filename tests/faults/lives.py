"""What a process does that is going to be killed: it trains a run and saves as often as the driver can.

Processes are forked from one that has imported everything and computed nothing, so that many can be killed in a minute.
"""

import os
import resource
import signal
import sys
import time
from pathlib import Path

import iqrl
from iqrl.errors import BadInput, RunFailed
from iqrl.experiments.study import work  # noqa: F401
from iqrl.training import compilation, loop, run_directory

TINY = {"seeds": 2, "learning_starts": 100, "target_period": 100, "buffer_size": 50}
KINDS = {
    "short": ("CartPole-v0", "dqn", TINY | {"steps": 3000, "period": 100}),
    "compiled": ("CartPole-v0", "iq", TINY | {"steps": 10_000, "period": 50}),
    "measured": (
        "CartPole-v0", "dqn", TINY | {"steps": 10_000, "period": 100, "measure_every": 20, "measure_recent": 200},
    ),
    "hosted": ("gymnasium:CartPole-v1", "dqn", TINY | {"steps": 400, "period": 100, "learning_starts": 100}),
    "images": (
        "fault_tasks:Pictures", "dqn",
        {"seeds": 1, "steps": 100, "period": 20, "learning_starts": 20, "target_period": 20, "buffer_size": 5000,
         "hidden": (16,), "update_every": 4},
    ),
}  # fmt: skip


def resolve(kind: str):
    task, method, settings = KINDS[kind]
    if str(Path(__file__).parent) not in sys.path:
        sys.path.insert(0, str(Path(__file__).parent))
    return iqrl.resolve(task, method, **settings)


def train(kind: str, path: str, limit: int | None = None, clock: float = 0.0) -> None:
    """To the end of the run. Ends with the exit code of a command. `limit`: bytes that a file may have."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    loop.CHECKPOINT_SECONDS, loop.SAVING_SHARE = 0.0, float("inf")
    if clock:  # as after the clock of the machine was set back
        now = time.time
        time.time = lambda: now() - clock
    code = 0
    try:
        run = resolve(kind)
        driver = loop.driver_of(run)
        compilation.enable_cache()
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        store = run_directory.RunStore.create(path, run)
        loop.train_run(store.run, store, driver=driver)
    except BadInput:
        code = 2
    except RunFailed:
        code = 1
    except BaseException:
        code = 99
    os._exit(code)
