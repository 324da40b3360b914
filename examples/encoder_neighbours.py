"""What a random encoder finds similar: states of Breakout and their nearest neighbours in the space of codes.

python examples/encoder_neighbours.py [--steps 3000] [--folder .]

It needs the games: pip install '.[atari]'
"""

import argparse
import sys
from pathlib import Path

import gymnasium
import jax
import numpy as np
from gymnasium.error import DependencyNotInstalled
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from iqrl.core.encoders import NATURE, Image, convolutional, random_encoder
from iqrl.diagnostics.analysis.neighbours import nearest_neighbours
from iqrl.experiments.report.figures.maps import plot_neighbour_map, plot_neighbours


def random_play(steps):
    """[steps, 84, 84, 4]: what a random policy sees of Breakout."""
    try:
        import ale_py

        gymnasium.register_envs(ale_py)
        game = AtariPreprocessing(gymnasium.make("ALE/Breakout-v5", frameskip=1))
    except (ImportError, DependencyNotInstalled):
        sys.exit("the games are not installed; pip install '.[atari]'")
    env = FrameStackObservation(game, 4)
    env.action_space.seed(0)
    seen, (obs, _) = [], env.reset(seed=0)
    for _ in range(steps):
        seen.append(np.moveaxis(np.asarray(obs), 0, -1))
        obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            obs, _ = env.reset()
    return np.stack(seen)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=3000, help="of a random policy")
parser.add_argument("--folder", type=Path, default=Path(), help="where the figures go")
arguments = parser.parse_args()

images = random_play(arguments.steps)
encoder = random_encoder(convolutional(Image(84, 84, 1, stack=4), NATURE))
params, encode = encoder.init(jax.random.key(0)), jax.jit(jax.vmap(encoder.apply, in_axes=(None, 0)))
# An agent sees the frames one after another, their numbers in a row.
seen = np.moveaxis(images, -1, 1).reshape(len(images), -1)
codes = np.concatenate([encode(params, part) for part in np.array_split(seen, -(-len(seen) // 250))])
queries = np.linspace(0.1, 0.9, 5) * len(images)
neighbours = nearest_neighbours(codes, queries.astype(int), count=8, apart=20)
print("drawn:", plot_neighbours(images, neighbours, arguments.folder / "neighbours.png"))
print("drawn:", plot_neighbour_map(codes, neighbours, arguments.folder / "neighbour_map.png"))
