"""Training steps per second on Pong, the same network and schedule: iqrl and a DQN written in PyTorch.

    python benchmarks/atari_throughput.py [--threads 1 2] [--rounds 5] [--seconds 10] [--methods iq-re rainbow …]

Both play through the same emulator, store frames once, update every fourth step on batches of 32, and sync every
8000 steps; the buffer holds 10,000. Each contestant is a process of its own, pinned to as many cores as it may have
threads; they take turns, and the ratios compare turns of the same round. With one thread, times are those of the
processor, so that other programs on the machine matter less. The last lines say how near an update comes
to what the machine can do: its operations over the time of a large matrix product. `--beside`: our methods at another
commit, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
GAME, CAPACITY, BATCH, EVERY, STARTS, SYNC = "ALE/Pong-v5", 10_000, 32, 4, 1000, 8000
UPDATE_FLOPS = 4 * BATCH * 18.7e6
"""of DQN: forward and backward on s, forward on s'"""


def prepare_iqrl(name: str) -> Callable[[int], None]:
    import jax
    import numpy as np

    from iqrl.make_run import resolve
    from iqrl.training.compilation import compile_driver
    from iqrl.training.loop import driver_of

    method, _, linear = name.partition(" ")
    settings = {"own_layers": 0} if linear else {}
    # Greedy from the start, or nearly: an action at random would not be computed.
    run = resolve(
        GAME,
        method,
        buffer_size=CAPACITY,
        learning_starts=STARTS,
        steps=10_000_000,
        epsilon_begin=0,
        epsilon_decay=STARTS,
        **settings,
    )
    program = compile_driver(driver_of(run))
    state = program.init()

    def train(steps: int) -> None:
        nonlocal state
        state, period = program.advance(state, np.int32(program.step(state) + steps))
        jax.block_until_ready(period)

    return train


def prepare_torch(name: str, threads: int) -> Callable[[int], None]:
    import torch

    from iqrl.envs.atari import AtariGame

    torch.set_num_threads(threads)
    env = AtariGame(GAME)
    agent = TorchDQN(int(env.action_space.n), channels_last="channels_last" in name)
    obs, _ = env.reset(seed=0)
    t = 0

    def train(steps: int) -> None:
        nonlocal obs, t
        for _ in range(steps):
            action = agent.act(obs, t)
            following, reward, terminated, truncated, _ = env.step(action)
            agent.store(obs, action, reward, terminated or truncated)
            obs = env.reset()[0] if terminated or truncated else following
            t += 1
            if t > STARTS and t % EVERY == 0:
                agent.learn()
            if t % SYNC == 0:
                agent.sync()

    return train


class TorchDQN:
    """The network of Mnih et al. 2015, centred RMSProp, Huber's loss, frames stored once."""

    def __init__(self, actions: int, channels_last: bool):
        import numpy as np
        import torch
        from torch import nn

        self.np, self.torch, self.actions = np, torch, actions
        make = lambda: nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions),
        )  # fmt: skip
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.online, self.target = (make().to(memory_format=self.format) for _ in range(2))
        self.sync()
        self.optimiser = torch.optim.RMSprop(self.online.parameters(), lr=2.5e-4, alpha=0.95, eps=1e-5, centered=True)
        self.random = np.random.default_rng(0)
        self.frames = np.zeros((CAPACITY, 84, 84), np.uint8)
        self.facts = np.zeros((CAPACITY, 3), np.float32)
        self.stored = 0

    def sync(self) -> None:
        self.target.load_state_dict(self.online.state_dict())

    def act(self, obs, t: int) -> int:
        if self.random.random() < max(0.01, 1 - t / STARTS):
            return int(self.random.integers(self.actions))
        with self.torch.no_grad():
            return int(self.online(self._seen(obs[None])).argmax())

    def store(self, obs, action: int, reward: float, over: bool) -> None:
        place = self.stored % CAPACITY
        self.frames[place] = obs[-1]
        self.facts[place] = action, min(max(reward, -1.0), 1.0), over
        self.stored += 1

    def learn(self) -> None:
        torch, np = self.torch, self.np
        size = min(self.stored, CAPACITY)
        # The newest place is left out, and stacks across the place that is written next are as they come.
        places = (self.stored - 2 - self.random.integers(0, size - 5, BATCH)) % CAPACITY
        stack = lambda last: self._seen(self.frames[(last[:, None] + np.arange(-3, 1)) % CAPACITY])
        action, reward, over = torch.from_numpy(self.facts[places]).unbind(1)
        with torch.no_grad():
            following = self.target(stack(places + 1)).max(1).values
        value = self.online(stack(places)).gather(1, action.long()[:, None])[:, 0]
        loss = torch.nn.functional.smooth_l1_loss(value, reward + 0.99 * (1 - over) * following)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def _seen(self, stacks):
        return (self.torch.from_numpy(stacks).float() / 255).to(memory_format=self.format)


def work(name: str, threads: int) -> None:
    """A contestant's process: a turn of as many seconds as each line of the input says."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    answer = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        train = prepare_torch(name, threads) if name.startswith("PyTorch") else prepare_iqrl(name)
        train(STARTS + 40)
        print(json.dumps({"ready": True}), file=answer, flush=True)
        clock = time.process_time if threads == 1 else time.perf_counter
        for line in sys.stdin:
            steps, started = 0, clock()
            while clock() - started < float(line):
                train(20)
                steps += 20
            print(json.dumps({"rate": steps / (clock() - started)}), file=answer, flush=True)


def started(name: str, threads: int, source: Path) -> subprocess.Popen:
    command = [sys.executable, __file__, "--worker", name, "--threads", str(threads)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "NPROC": str(threads), "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = str(source / "src")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def turn(process: subprocess.Popen, seconds: float) -> float:
    print(seconds, file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())["rate"]


def product_rate(threads: int) -> float:
    """Operations per second of a large matrix product: the fastest of forty, by XLA."""
    code = (
        f"import os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-{threads}:])\n"
        "import jax, time; a = jax.random.normal(jax.random.key(0), (1024, 1024)); f = jax.jit(lambda a: a @ a);"
        "t = []\n"
        "for _ in range(40): s = time.perf_counter(); f(a).block_until_ready(); t.append(time.perf_counter() - s)\n"
        "print(2 * 1024**3 / min(t))"
    )
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def compare(contestants: dict[str, tuple[str, Path]], threads: int, rounds: int, seconds: float) -> None:
    processes = {shown: started(name, threads, source) for shown, (name, source) in contestants.items()}
    rates: dict[str, list[float]] = {name: [] for name in processes}
    for _ in range(rounds):
        for name, process in processes.items():
            rates[name].append(turn(process, seconds))
    for process in processes.values():
        process.stdin.close()
        process.wait()
    reference = rates["dqn"]
    print(f"\n{threads} thread(s)\n{'':24}{'steps/s':>10}{'lowest':>10}{'highest':>10}{'dqn is faster by':>18}")
    for name, own in rates.items():
        ratio = statistics.median(ours / its for ours, its in zip(reference, own, strict=True))
        print(f"{name:24}{statistics.median(own):>10.1f}{min(own):>10.1f}{max(own):>10.1f}{ratio:>18.2f}")
    per_update = EVERY / statistics.median(reference)
    peak = product_rate(threads)
    reached = UPDATE_FLOPS / per_update
    print(
        f"dqn: {1000 * per_update:.1f} ms per update and its four steps; {reached / 1e9:.0f} GFLOP/s, "
        f"{100 * reached / peak:.0f}% of a large matrix product ({peak / 1e9:.0f} GFLOP/s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--methods", nargs="+", default=["iq-re", "iq-re linear", "rainbow", "rainbow-iq-re"])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--beside", metavar="COMMIT", help="the same methods at this commit, too")
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.threads[0])
        return
    names = ["dqn", "PyTorch", "PyTorch channels_last", *options.methods]
    contestants = {name: (name, ROOT) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        if options.beside:
            unpack(options.beside, folder)
            ours = [name for name in names if not name.startswith("PyTorch")]
            contestants |= {f"{name} at {options.beside[:7]}": (name, Path(folder)) for name in ours}
        for threads in options.threads:
            compare(contestants, threads, options.rounds, options.seconds)


def unpack(commit: str, folder: str) -> None:
    """The library at this commit."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)


if __name__ == "__main__":
    main()
