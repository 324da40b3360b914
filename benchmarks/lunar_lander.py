"""LunarLander-v3: what iqrl recommends beside Stable-Baselines3's DQN with RL-Zoo's settings, at equal steps.

python benchmarks/lunar_lander.py --out lunar            # trains what is missing, prints the table
python benchmarks/lunar_lander.py --out lunar --only iqrl-recommended --seeds 2 --steps 20000

Each seed is a process of its own with one thread; its numbers are kept in a file, so the script goes on where it was
stopped. The return of training episodes is that of the last tenth of the steps. Greedy returns are over 100 episodes
whose starts no model was chosen by: of the last model, and of the best of the evaluations (10 episodes) at every tenth
of the steps. Processor seconds are those of training and compiling, without evaluations. The peer: pip install -r
benchmarks/requirements.txt
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

TASK = "LunarLander-v3"
SELECTING, EPISODES = 10, 100
FIRST_CHOSEN, FIRST_JUDGED = 1_000_000, 2_000_000
"""seeds of the starts by which the best model is chosen, and by which models are judged"""

LIKE_ZOO = {
    "hidden": (256, 256),
    "activation": "relu",
    "learning_rate": 6.3e-4,
    "target_period": 250,
    "batch_size": 128,
}
IQRL: dict[str, dict[str, Any]] = {
    "iqrl-recommended": {},
    "iqrl-dqn-50000": {"method": "dqn", "buffer_size": 50_000} | LIKE_ZOO,
    "iqrl-dqn-100": {"method": "dqn", "buffer_size": 100},
    "iqrl-iq-100": {"method": "iq", "buffer_size": 100},
    "iqrl-dqn-1": {"method": "dqn", "buffer_size": 1},
}
# rl-baselines3-zoo, hyperparams/dqn.yml, LunarLander-v2
ZOO = {
    "policy": "MlpPolicy",
    "learning_rate": 6.3e-4,
    "batch_size": 128,
    "buffer_size": 50_000,
    "learning_starts": 0,
    "gamma": 0.99,
    "target_update_interval": 250,
    "train_freq": 4,
    "gradient_steps": -1,
    "exploration_fraction": 0.12,
    "exploration_final_eps": 0.1,
    "policy_kwargs": {"net_arch": [256, 256]},
}
CONTESTANTS = (*IQRL, "sb3-dqn-zoo")


class Best:
    """The best model so far, and the time that finding it took."""

    def __init__(self) -> None:
        self.value, self.seconds = -float("inf"), 0.0

    def judge(self, evaluate: Callable[[], float], save: Callable[[], Any]) -> None:
        started = time.process_time()
        if (value := evaluate()) > self.value:
            self.value = value
            save()
        self.seconds += time.process_time() - started


def train_iqrl(name: str, seed: int, steps: int, file: Path) -> dict[str, float]:
    import iqrl

    best, every = Best(), steps // 10

    def follow(model: Any, progress: Any) -> None:
        if progress.step // every > progress.began // every:
            best.judge(lambda: float(model.evaluate(SELECTING, FIRST_CHOSEN).mean()), lambda: model.save(file))

    started, settings = time.process_time(), dict(IQRL[name])
    result = iqrl.train(TASK, settings.pop("method", None), steps=steps, seed=seed, callback=follow, **settings)
    seconds = time.process_time() - started - best.seconds
    last, kept = iqrl.evaluate(result, EPISODES, FIRST_JUDGED), iqrl.load(file).evaluate(EPISODES, FIRST_JUDGED)
    return numbers(float(result.summary()["final"]), last.mean(), kept.mean(), seconds)


def train_sb3(name: str, seed: int, steps: int, file: Path) -> dict[str, float]:
    import gymnasium
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor

    torch.set_num_threads(1)
    best = Best()

    def evaluate(model: Any, episodes: int, first: int) -> float:
        env, returns = gymnasium.make(TASK), []
        for start in range(first, first + episodes):
            obs, _ = env.reset(seed=start)
            total, done = 0.0, False
            while not done:
                obs, reward, terminated, truncated, _ = env.step(int(model.predict(obs, deterministic=True)[0]))
                total, done = total + float(reward), terminated or truncated
            returns.append(total)
        return statistics.mean(returns)

    class Follow(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps % (steps // 10) == 0:
                best.judge(lambda: evaluate(self.model, SELECTING, FIRST_CHOSEN), lambda: self.model.save(file))
            return True

    env = Monitor(gymnasium.make(TASK))
    started = time.process_time()
    model = DQN(env=env, seed=seed, device="cpu", **ZOO)
    model.learn(steps, callback=Follow())
    seconds = time.process_time() - started - best.seconds
    total, ends, returns = 0, [], env.get_episode_rewards()
    for length in env.get_episode_lengths():
        total += length
        ends.append(total)
    late = [value for value, end in zip(returns, ends, strict=True) if end > 0.9 * steps]
    kept = DQN.load(file, device="cpu")
    last, best_return = (evaluate(one, EPISODES, FIRST_JUDGED) for one in (model, kept))
    return numbers(statistics.mean(late) if late else float("nan"), last, best_return, seconds)


def numbers(training: float, last: float, best: float, seconds: float) -> dict[str, float]:
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "training": training,
        "greedy": float(last),
        "best": float(best),
        "cpu_seconds": seconds,
        "megabytes": megabytes,
    }


def one(options: argparse.Namespace) -> None:
    name, seed = options.one[0], int(options.one[1])
    train = train_iqrl if name in IQRL else train_sb3
    with tempfile.TemporaryDirectory() as folder:
        suffix = ".iqrl" if name in IQRL else ".zip"
        print(json.dumps(train(name, seed, options.steps, Path(folder) / f"best{suffix}")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("lunar"))
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=CONTESTANTS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    threads = {"OMP_NUM_THREADS": "1", "IQRL_CORES": "1"}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name in options.only:
            file = options.out / f"{name}-{options.steps}-{seed}.json"
            if file.exists():
                continue
            command = [sys.executable, __file__, "--one", name, str(seed), "--steps", str(options.steps)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | threads)
            if done.returncode == 0:
                file.write_text(done.stdout.splitlines()[-1])
    table(options)


HEADS = ("training", "greedy", "best", "cpu_seconds", "megabytes")
TITLES = {
    "iqrl-recommended": "`iqrl train LunarLander-v3` (`local-q`)",
    "iqrl-dqn-50000": "`dqn`, N = 50,000, the same network",
    "iqrl-dqn-100": "`dqn`, N = 100",
    "iqrl-iq-100": "`iq`, N = 100",
    "iqrl-dqn-1": "`dqn`, N = 1",
    "sb3-dqn-zoo": "Stable-Baselines3's DQN, RL-Zoo's settings",
}


def summarise(out: Path, steps: int, only: Iterable[str] = CONTESTANTS) -> dict[str, list[str]]:
    """The number of seeds of each contestant, and the mean (lowest…highest) of each of HEADS; empty without seeds."""
    found = {}
    for name in only:
        rows = [json.loads(file.read_text()) for file in sorted(out.glob(f"{name}-{steps}-*.json"))]
        columns = [[row[head] for row in rows] for head in HEADS] if rows else []
        cells = [f"{statistics.mean(each):.0f} ({min(each):.0f}…{max(each):.0f})" for each in columns]
        found[name] = [str(len(rows)), *cells]
    return found


def table(options: argparse.Namespace) -> None:
    print(f"{TASK}, {options.steps:,} steps; mean (lowest…highest seed)")
    print(f"{'':18} {'seeds':>5} " + " ".join(f"{head:>20}" for head in HEADS))
    for name, (seeds, *cells) in summarise(options.out, options.steps, options.only).items():
        print(f"{name:18} {seeds:>5} " + " ".join(f"{cell:>20}" for cell in cells))


def markdown(out: Path, steps: int = 300_000) -> str:
    """The same for a page, without contestants that have no seed."""
    lines = ["| | seeds | training | greedy | best | processor seconds | MB |", "|---|" + "---:|" * 6]
    lines += [
        f"| {TITLES[name]} | {' | '.join(cells)} |" for name, cells in summarise(out, steps).items() if len(cells) > 1
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
