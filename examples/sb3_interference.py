"""Measure the interference of a Stable-Baselines3 DQN with little memory while it trains.

    pip install '.[sb3]'
    python examples/sb3_interference.py [--steps STEPS]

prints return and interference by period, and draws both in sb3_interference.png.
"""

import argparse

import matplotlib.pyplot as plt
import polars as pl
from stable_baselines3 import DQN

from iqrl.sb3 import InterferenceCallback

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10_000)
steps = parser.parse_args().steps

interference = InterferenceCallback(every=5, sample=1000)
settings = {"buffer_size": 100, "learning_starts": 100, "train_freq": 1, "target_update_interval": 200}
model = DQN("MlpPolicy", "CartPole-v1", learning_rate=1e-3, seed=0, **settings)
model.learn(steps, callback=interference)

table = interference.frame(period=max(steps // 20, 1))
with pl.Config(tbl_rows=-1, tbl_width_chars=120):
    print(table)

figure, axis = plt.subplots(layout="constrained")
axis.plot(table["step"], table["aei"], color="#c8372d", label="AEI")
axis.set(xlabel="environment steps", ylabel="interference (AEI)", title="DQN (SB3) on CartPole-v1, N=100")
returns = axis.twinx()
returns.plot(table["step"], table["return"], color="#1b6ca8", label="return")
returns.set_ylabel("return of training episodes")
figure.legend(loc="outside lower center", ncols=2, frameon=False)
figure.savefig("sb3_interference.png", dpi=150)
