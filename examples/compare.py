"""Train two methods with almost no memory, compare them, and use the trained agent.

python examples/compare.py [STEPS]
"""

import sys

import numpy as np

import iqrl

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
results = {method: iqrl.train("CartPole-v0", method, buffer_size=1, steps=steps, seeds=3) for method in ("dqn", "iq")}
for method, result in results.items():
    summary = result.summary()
    print(f"{method}: highest {summary['highest']:.1f}, final {summary['final']:.1f}, AUC {summary['auc']:.1f}")

print(results["iq"].metrics.tail(3))  # a polars dataframe: one row per seed and period

agent = results["iq"].agents[0]
state = np.zeros(4, np.float32)
print("action", agent.predict(state), "values", agent.q_values(state), "context", agent.context(state))
print("greedy in Gymnasium:", iqrl.evaluate(results["iq"], episodes=2).mean())
