"""How many active bins of `local-q` do neighbouring states of a task share? It decides what a lagging target costs.

python examples/shared_bins.py [--tasks CartPole-v1 LunarLander-v3] [--steps 100000]

After training, an agent plays. c_j is the share of the features g(s) that the state j steps later has in common with s,
g(s)·g(s') / ‖g(s)‖². An update at s moves the value of that state by c_j times as much as that of s.
"""

import argparse

import gymnasium
import numpy as np

import iqrl

TASKS = ["CartPole-v1", "Acrobot-v1", "Pendulum-v0", "MountainCar-v0"]
AHEAD = (1, 2, 5, 10)
TORQUES = np.linspace(-2, 2, 5)[:, None]
"""of the library's Pendulum-v0; Gymnasium's has any torque as an action"""


def features(states, agent, bins):
    """[states, units * bins]: the hats of the weights that act."""
    moments = agent.state.preprocessor.states
    layer = agent.state.average["trunk"][0]
    x = np.clip((states - moments.mean) / np.sqrt(moments.squares / (moments.count - 1)), -5, 5)
    places = 0.5 * (bins - 1) * (np.tanh(0.5 * x @ layer["w"] + layer["b"]) + 1)
    return np.maximum(0, 1 - np.abs(places[..., None] - np.arange(bins))).reshape(len(states), -1)


def play(model, task, episodes=10, most=500):
    """The states of each episode."""
    env = gymnasium.make("Pendulum-v1" if task == "Pendulum-v0" else task)
    for seed in range(episodes):
        obs, _ = env.reset(seed=seed)
        states, done = [obs], False
        while not done and len(states) < most:
            action = int(model.predict(obs)[0])
            obs, _, terminated, truncated, _ = env.step(TORQUES[action] if task == "Pendulum-v0" else action)
            states.append(obs)
            done = terminated or truncated
        yield np.array(states)


def shares(g):
    """c_j for each j: the mean over the states of an episode that last longer."""
    own = np.sum(g * g, axis=1)
    return [np.mean(np.sum(g[:-j] * g[j:], axis=1) / own[:-j]) for j in AHEAD]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    print("share of the active bins that a state has in common with that j steps later")
    print(f"{'task':16}" + "".join(f"{f'j = {j}':>9}" for j in AHEAD))
    for task in options.tasks:
        model = iqrl.LocalQ(task, seeds=1, seed=1000).learn(options.steps)
        episodes = [features(states, model.agents[0], model.run.bins) for states in play(model, task)]
        found = np.mean([shares(g) for g in episodes if len(g) > max(AHEAD)], axis=0)
        print(f"{task:16}" + "".join(f"{share:9.2f}" for share in found), flush=True)


if __name__ == "__main__":
    main()
