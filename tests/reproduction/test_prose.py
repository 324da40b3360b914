"""Numbers in sentences that more seeds will change, computed again: a sentence cannot stay behind its data."""

import re

import numpy as np
from recomputed import NUMBERS, RANGE, ROOT, curves_of, runs_of

TASKS = ("CartPole-v0", "Pendulum-v0", "CartPole-v1", "Acrobot-v1")
final, deterioration = NUMBERS["final"], NUMBERS["deterioration"]


def sentence(page, pattern):
    """The numbers of one sentence, which may be wrapped over lines."""
    text = " ".join((ROOT / "docs" / page).read_text().split())
    found = re.search(pattern, text)
    assert found, f"docs/{page} has no sentence like {pattern}"
    return [float(number.replace("−", "-").rstrip("%")) for number in found.groups()]


def apart(curves, own, other, size, variant="", others=None):
    """The mean over tasks of the differences of the final returns, in percent of the range."""
    others = curves if others is None else others
    pairs = [(curves[variant, task, own, size], others["" if others is not curves else variant, task, other, size])
             for task in TASKS]  # fmt: skip
    return np.mean([100 * (final(x).mean() - final(y[: len(x)]).mean()) / RANGE[t]
                    for t, (x, y) in zip(TASKS, pairs, strict=True)])  # fmt: skip


def test_the_advantage_by_buffer():
    curves, number = curves_of("table1"), r"(\d+)%"
    pattern = (
        rf"is {number}, {number} and {number} of the range over DQN with N = 1, 100 and 50,000, {number}, {number} and "
        rf"{number} over SRNN, {number}, {number} and {number} over DSOM, and {number}, {number} and {number} over TCNN"
    )
    exact = [apart(curves, "iq", rival, size) for rival in ("dqn", "srnn", "dsom", "tcnn") for size in (1, 100, 50_000)]
    assert np.allclose(sentence("results.md", pattern), exact, atol=0.51)


def test_cartpole_v1_with_a_hundred():
    curves = curves_of("table1")
    of = {method: curves["", "CartPole-v1", method, 100] for method in ("iq", "dqn", "srnn", "dsom")}
    pattern = r"three rivals in the mean\*\*: (\d+) beside (\d+) \(DQN\), (\d+) \(SRNN\) and (\d+) \(DSOM\)"
    assert np.allclose(sentence("results.md", pattern), [final(x).mean() for x in of.values()], atol=0.51)
    pattern = r"loses more than they do \((\d+) beside (\d+), (\d+) and (\d+)\)"
    assert np.allclose(sentence("results.md", pattern), [deterioration(x).mean() for x in of.values()], atol=0.51)


def test_the_tuned_rivals_beside_their_preset():
    tuned, preset = curves_of("table1-tuned"), curves_of("table1")
    loss = -apart(tuned, "dqn", "dqn", 50_000, "tuned", preset)
    pairs = tuned["tuned", "CartPole-v1", "dqn", 50_000], preset["", "CartPole-v1", "dqn", 50_000][:5]
    on_one = 100 * (final(pairs[1]).mean() - final(pairs[0]).mean()) / RANGE["CartPole-v1"]
    pattern = r"Tuned DQN ends (\d+)% of the range below its own preset .*?, and (\d+)% below it on CartPole-v1"
    assert np.allclose(sentence("results.md", pattern), [loss, on_one], atol=0.51)
    ahead = apart(tuned, "iq", "dqn", 50_000, "tuned", preset)
    assert np.allclose(sentence("results.md", r"tuned IQ ends (\d+)% of the range higher"), [ahead], atol=0.51)


def test_hats_beside_plain_dqn_on_the_same_seeds():
    tasks = ("CartPole-v1", "Acrobot-v1", "Pendulum-v0", "MountainCar-v0")
    best = {(variant, task): -np.inf for variant in ("", "hats") for task in tasks}
    for run, returns in runs_of("no-memory-tuning"):
        key = run["variant"], run["config"]["task"]
        if key in best and (run["config"]["method"], run["config"]["buffer_size"]) == ("dqn", 50_000):
            best[key] = max(best[key], final(returns[:3]).mean())
    pattern = r"returns there are (−?\d+) on CartPole-v1, (−?\d+) on Acrobot, (−?\d+) on Pendulum and (−?\d+) on Mount"
    assert np.allclose(sentence("no-memory.md", pattern), [best["hats", task] for task in tasks], atol=0.51)
    pattern = r"plain DQN with its best setting ends at (−?\d+), (−?\d+), (−?\d+) and (−?\d+)\."
    assert np.allclose(sentence("no-memory.md", pattern), [best["", task] for task in tasks], atol=0.51)


def test_the_leads_of_local_q_over_tuned_dqn():
    own, other = curves_of("no-memory"), curves_of("no-memory-tuned")
    lead = {}
    for name in ("final", "AUC"):
        for task in RANGE:
            sides = [curves[variant, task, method, size] for curves, variant, method, size in (
                (own, "", "local-q", 1), (other, "tuned", "dqn", 50_000))]  # fmt: skip
            scores = [NUMBERS[name](returns).mean() for returns in sides]
            lead[name, task] = 100 * (scores[0] - scores[1]) / RANGE[task]
    pattern = (
        r"by (\d+)% of the range on MountainCar-v0, by ([\d.]+)% and ([\d.]+)% on CartPole-v1 and MountainCar, "
        r"by ([\d.]+)% on Acrobot"
    )
    far, *near = sentence("no-memory.md", pattern)
    assert abs(far - lead["final", "MountainCar-v0"]) < 0.51
    exact = [lead["final", task] for task in ("CartPole-v1", "MountainCar", "Acrobot-v1")]
    assert np.allclose(near, exact, atol=0.051)
    most, least = max(lead["AUC", task] for task in RANGE), min(lead["AUC", task] for task in RANGE)
    pattern = r"by (\d+)% to (\d+)% of the range on four and by ([\d.]+)% on Acrobot"
    low, high, acrobot = sentence("no-memory.md", pattern)
    assert abs(high - most) < 0.51
    assert abs(acrobot - lead["AUC", "Acrobot-v1"]) < 0.051
    assert sum(lead["AUC", task] > low - 0.51 for task in RANGE) == 4
    assert abs(sentence("no-memory.md", r"On CartPole-v0 it is below, by ([\d.]+)%")[0] + least) < 0.051
