"""Interference among contexts, and where contexts lie: two of the paper's figures from two short runs.

python examples/context_figures.py [--steps 100000] [--folder .]
"""

import argparse
from pathlib import Path

import iqrl
from iqrl.diagnostics.analysis.context_matrix import context_matrix
from iqrl.diagnostics.analysis.experience import gather
from iqrl.experiments.report.figures.interference import plot_context_matrix
from iqrl.experiments.report.figures.maps import plot_states

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=100_000, help="of each run")
parser.add_argument("--folder", type=Path, default=Path(), help="where the figures go")
parser.add_argument("--states", type=int, default=2000, help="shown on each map")
arguments = parser.parse_args()

titles = {"iq-initial-states": "contexts of initial states", "iq": "contexts of all states"}
settings = {"preset": "paper", "buffer_size": 100, "steps": arguments.steps, "seeds": 3}
results = {method: iqrl.train("CartPole-v0", method, **settings) for method in titles}

matrix = context_matrix(results["iq"])
print(matrix)
print("drawn:", plot_context_matrix(matrix, results["iq"].run, arguments.folder / "context_matrix.png"))

panels = []
for method, title in titles.items():
    met = gather(results[method], count=arguments.states)
    panels.append((title, met.states[0], met.contexts[0]))  # of the first seed
print("drawn:", plot_states(panels, arguments.folder / "context_states.png", results["iq"].task))
