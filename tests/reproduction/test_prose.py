"""Numbers in sentences that more seeds will change, computed again: a sentence cannot stay behind its data."""

import re

import numpy as np
from recomputed import LOWEST, NUMBERS, RANGE, ROOT, curves_of, near, rows_between, runs_of

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


def test_srnn_in_the_forms_that_regularise():
    curves, dqn = curves_of("table1-srnn"), curves_of("table1")
    below = [np.mean([100 * (final(dqn["", task, "dqn", size]).mean()
                             - final(curves[f"SRNN of units, {form}", task, "srnn", size]).mean()) / RANGE[task]
                      for task in TASKS for size in (1, 100, 50_000)]) for form in ("tanh", "ReLU")]  # fmt: skip
    assert np.allclose(
        sentence("results.md", r"cells they end (\d+)% and (\d+)% of the range below DQN"), below, atol=0.51
    )


def test_what_the_ablations_say():
    curves, area = curves_of("ablations"), NUMBERS["AUC"]
    of = lambda task, part, size, score: score(curves["", task, f"iq{part}", size]).mean()
    ahead = [100 * (of(task, "-no-distillation", size, final) - of(task, "", size, final)) / RANGE[task]
             for task in TASKS for size in (1, 100)]  # fmt: skip
    pattern = (
        r"Without distillation IQ ends higher\*\*, by (\d+)% .*? ends at (\d+) instead of (\d+), on Pendulum at (−\d+) "
        r"instead of (−\d+)"
    )
    exact = [np.mean(ahead)]
    exact += [of(task, part, 1, final) for task in ("CartPole-v1", "Pendulum-v0") for part in ("-no-distillation", "")]
    assert np.allclose(sentence("results.md", pattern), exact, atol=0.51)
    pattern = (
        r"without replay \((\d+) against (\d+), (\d+) against (\d+)\) and ahead on Pendulum \((−\d+) against (−\d+)\)"
    )
    tasks = ("CartPole-v0", "CartPole-v1", "Pendulum-v0")
    exact = [of(task, part, 1, area) for task in tasks for part in ("-no-clustering", "")]
    assert np.allclose(sentence("results.md", pattern), exact, atol=0.51)
    pattern = (
        r"p \.0004: (\d+) against (\d+) on CartPole-v0, (\d+) against (\d+) on CartPole-v1\).*? on Pendulum "
        r"\((−\d+) against (−\d+)\)"
    )
    exact = [of(task, part, 1, area) for task in tasks[:2] for part in ("-no-multi-head", "")]
    exact += [of("Pendulum-v0", part, 100, area) for part in ("-no-multi-head", "")]
    assert np.allclose(sentence("results.md", pattern), exact, atol=0.51)


def test_what_the_numbers_of_contexts_say():
    found = {(run["config"]["task"], run["config"]["contexts"]): returns for run, returns in runs_of("k")
             if run["config"]["method"] == "iq"}  # fmt: skip
    three = [NUMBERS["AUC"](found[task, 3]).mean() for task in ("CartPole-v0", "CartPole-v1", "Acrobot-v1")]
    assert np.allclose(sentence("results.md", r"\(AUC (\d+), (\d+) and (−\d+)\)"), three, atol=0.51)
    ends = {k: final(found["CartPole-v0", k]).mean() for k in range(1, 6)}
    pattern = r"above it on CartPole-v0 \((\d+) to (\d+), k = 3 has (\d+)\)"
    others = [ends[k] for k in (1, 2, 4, 5)]
    assert np.allclose(sentence("results.md", pattern), [min(others), max(others), ends[3]], atol=0.51)


def leads(name, other, size):
    """local-q less a DQN of no-memory-tuned, in percent of each task's range."""
    own, others = curves_of("no-memory"), curves_of("no-memory-tuned")
    mean = lambda returns: NUMBERS[name](returns).mean()
    pairs = {task: (own["", task, "local-q", 1], others.get((other, task, "dqn", size))) for task in RANGE}
    return {
        task: 100 * (mean(x) - mean(y)) / RANGE[task] for task, (x, y) in pairs.items() if y is not None
    }  # fmt: skip


def test_the_leads_of_local_q_over_tuned_dqn():
    lead = leads("final", "tuned", 50_000)
    pattern = r"by (\d+)% of the range on MountainCar-v0, by ([\d.]+)% on MountainCar, by ([\d.]+)% on Acrobot"
    far, *near = sentence("no-memory.md", pattern)
    assert abs(far - lead["MountainCar-v0"]) < 0.51
    assert np.allclose(near, [lead["MountainCar"], lead["Acrobot-v1"]], atol=0.051)
    (below,) = sentence("no-memory.md", r"On CartPole-v0 and CartPole-v1 it is below, by ([\d.]+)%")
    assert np.allclose([-lead["CartPole-v0"], -lead["CartPole-v1"]], below, atol=0.051)
    lead = leads("AUC", "tuned", 50_000)
    low, high = sentence("no-memory.md", r"on five tasks\*\*, by ([\d.]+)% to (\d+)% of the range")
    assert abs(low - min(lead.values())) < 0.051
    assert abs(high - max(lead.values())) < 0.51
    by_auc = leads("AUC", "tuned by AUC", 50_000)
    (above,) = sentence("no-memory.md", r"`local-q` is (\d+)% above the one")
    assert abs(above - lead["CartPole-v0"]) < 0.51
    pattern = r"and ([\d.]+)% below the other\. .*? and ([\d.]+)% above on Pendulum, which is not confirmed"
    exact = [-by_auc["CartPole-v0"], by_auc["Pendulum-v0"]]
    assert np.allclose(sentence("no-memory.md", pattern), exact, atol=0.051)


def test_the_leads_of_local_q_by_medians_and_by_problems():
    own, others = curves_of("no-memory"), curves_of("no-memory-tuned")
    pairs = {task: (own["", task, "local-q", 1], others["tuned", task, "dqn", 50_000]) for task in RANGE}
    median = lambda x, y, task: 100 * (np.median(final(x)) - np.median(final(y))) / RANGE[task]
    exact = [median(*pairs[task], task) for task in ("MountainCar-v0", "MountainCar")]
    assert np.allclose(sentence("no-memory.md", r"by medians it is ([\d.]+)% and ([\d.]+)%"), exact, atol=0.051)
    share = lambda side, task: 100 * (final(pairs[task][side]).mean() - LOWEST[task]) / RANGE[task]
    problems = (("CartPole-v0", "CartPole-v1"), ("Acrobot-v1",), ("Pendulum-v0",), ("MountainCar-v0", "MountainCar"))
    of = [np.mean([np.mean([share(side, task) for task in tasks]) for tasks in problems]) for side in (0, 1)]
    pattern = r"the four problems are ([\d.]+)% for `local-q`, ([\d.]+)% for that DQN"
    assert np.allclose(sentence("no-memory.md", pattern), of, atol=0.051)


def test_what_exploration_brings_on_pendulum_without_replay():
    name, found = "explores for half of the run", {}
    for run, returns in runs_of("remarks"):
        found[run["variant"], run["config"].get("double_q", False)] = final(returns).mean()
    exact = [found[name, False], found[f"DQN, {name}", False], found[f"DQN, {name}", True]]
    pattern = r"IQ ends at (−\d+), and DQN at (−\d+) with the single rule and (−\d+) with the double one"
    assert np.allclose(sentence("results.md", pattern), exact, atol=0.51)
    preset = final(curves_of("table1")["", "Pendulum-v0", "iq", 1]).mean()
    pattern = r"it ends at (−\d+), with ε falling over half of the run at (−\d+)"
    assert np.allclose(sentence("reproduction.md", pattern), [preset, exact[0]], atol=0.51)


def test_the_settings_of_dqn_on_hats_on_lunar_lander():
    found = {
        (run["config"]["learning_rate"], run["config"]["target_period"]): final(returns).mean()
        for run, returns in runs_of("no-memory-lunar-tuning")
    }
    page, compared = (ROOT / "docs" / "no-memory.md").read_text(), 0
    for row in rows_between(page, "| learning rate | period 1, no θ⁻ |", "\n\n"):
        for head, shown in row.items():
            if head != "learning rate" and shown:
                exact = found[float(row["learning rate"]), int(re.search(r"\d+", head)[0])]
                assert near(shown.replace("−", "-"), exact), row
                compared += 1
    assert compared == 16


def test_the_finals_on_lunar_lander():
    curves = curves_of("no-memory-lunar")
    of = lambda variant, method, size, score=final: score(curves[variant, "LunarLander-v3", method, size]).mean()
    hats = "hats as local-q has"
    pattern = (
        r"without replay on the hats ends at (\d+), and `local-q` at (\d+)\. .*? ends at (\d+) with a target period "
        r"of 10 and at (\d+) without"
    )
    exact = [of(hats, "dqn", 1), of("", "local-q", 1), of(f"{hats}, tuned for this task", "dqn", 1)]
    exact.append(of(f"{hats}, tuned for this task, no target network", "dqn", 1))
    assert np.allclose(sentence("no-memory.md", pattern), exact, atol=0.51)
    (few,) = sentence("no-memory.md", r"Neither does DQN with 100 transitions, which ends at (−\d+)")
    assert abs(few - of("", "dqn", 100)) < 0.51


def test_what_is_lost_over_two_million_steps():
    returns = curves_of("local-q-long")["", "CartPole-v1", "local-q", 1]
    lost = 100 * deterioration(returns) / RANGE["CartPole-v1"]
    pattern = (
        r"The largest loss on CartPole-v1, ([\d.]+)%, .*? seeds lose less than ([\d.]+)% there, "
        r"nine of ten less than ([\d.]+)%"
    )
    largest, half, most = sentence("no-memory.md", pattern)
    assert abs(largest - lost.max()) < 0.051
    assert 0 <= half - np.median(lost) < 0.1
    assert 0 <= most - np.quantile(lost, 0.9) < 0.1


def test_the_others_over_two_million_steps():
    curves, tasks = curves_of("local-q-long"), ("CartPole-v1", "MountainCar-v0", "Pendulum-v0")
    for key, pattern in (
        (("256 units", 50_000), r"With 256 units three of ten do on .*? it ends at (\d+), (−\d+) and (−\d+)"),
        (("hats as local-q has", 1), r"that loses 10\.6% on CartPole-v1; it ends at (\d+), (−\d+) and (−\d+)"),
    ):
        of = {task: curves[key[0], task, "dqn", key[1]] for task in tasks}
        assert np.allclose(sentence("no-memory.md", pattern), [final(x).mean() for x in of.values()], atol=0.51)
        lost = {task: (100 * deterioration(x) / RANGE[task] > 10).sum() for task, x in of.items()}
        assert list(lost.values()) == [{"256 units": 3, "hats as local-q has": 1}[key[0]], 0, 0]


def test_the_means_of_the_control_on_hats():
    own, others = curves_of("no-memory"), curves_of("no-memory-tuned")
    pattern = (
        r"reaches ([\d.]+)% of the range in the mean of the finals\. `local-q` reaches ([\d.]+)%, .*? ([\d.]+)%\. "
        r"With the normalisation and dense layers it reaches ([\d.]+)%"
    )
    lines = [
        [others["hats as local-q has", task, "dqn", 1] for task in RANGE],
        [own["", task, "local-q", 1] for task in RANGE],
        [others["tuned", task, "dqn", 1] for task in RANGE],
        [others["normalised", task, "dqn", 1] for task in RANGE],
    ]  # fmt: skip
    share = lambda line: np.mean([100 * (final(x).mean() - LOWEST[task]) / RANGE[task]
                                  for task, x in zip(RANGE, line, strict=True)])  # fmt: skip
    assert np.allclose(sentence("no-memory.md", pattern), [share(line) for line in lines], atol=0.051)


def test_the_leads_of_local_q_over_the_control_on_hats():
    lead, area = (leads(name, "hats as local-q has", 1) for name in ("final", "AUC"))
    pattern = (
        r"above it on Acrobot by ([\d.]+)%, on MountainCar-v0 by ([\d.]+)% and on MountainCar by ([\d.]+)%, level on "
        r"CartPole-v1 and Pendulum, and ([\d.]+)% below on CartPole-v0\. .*? "
        r"below on both CartPoles, by ([\d.]+)% and ([\d.]+)%"
    )
    exact = [lead["Acrobot-v1"], lead["MountainCar-v0"], lead["MountainCar"], -lead["CartPole-v0"]]
    exact += [-area["CartPole-v0"], -area["CartPole-v1"]]
    assert np.allclose(sentence("no-memory.md", pattern), exact, atol=0.051)


def test_what_hats_gain_with_replay():
    curves = curves_of("no-memory-tuned")
    gain = lambda task: 100 * (
        final(curves["hats", task, "dqn", 50_000]).mean() - final(curves["tuned", task, "dqn", 50_000]).mean()
    ) / RANGE[task]  # fmt: skip
    pattern = (
        r"hats gain (\d+)% of the range on MountainCar-v0 and lose ([\d.]+)% on CartPole-v1 and ([\d.]+)% on Acrobot"
    )
    far, *near = sentence("no-memory.md", pattern)
    assert abs(far - gain("MountainCar-v0")) < 0.51
    assert np.allclose(near, [-gain("CartPole-v1"), -gain("Acrobot-v1")], atol=0.051)


def test_what_single_parts_bring():
    curves = curves_of("local-q-ablations")

    def loss(variant, task, name="final"):
        of = [NUMBERS[name](curves[it, task, "local-q", 1]).mean() for it in ("", variant)]
        return 100 * (of[0] - of[1]) / RANGE[task]

    pattern = (
        r"With tanh units it loses (\d+)% on MountainCar-v0 and (\d+)% on Pendulum; with states and rewards as they "
        r"are (\d+)% and (\d+)%.*?bring (\d+)% on MountainCar-v0 and (\d+)% on CartPole-v1"
    )
    pairs = [("tanh units instead of hats", "MountainCar-v0"), ("tanh units instead of hats", "Pendulum-v0"),
             ("states as they are", "MountainCar-v0"), ("states as they are", "Pendulum-v0"),
             ("fixed projections", "MountainCar-v0"), ("fixed projections", "CartPole-v1")]  # fmt: skip
    assert np.allclose(sentence("no-memory.md", pattern), [loss(*pair) for pair in pairs], atol=0.51)
    pattern = r"brings ([\d.]+)% on Acrobot and ([\d.]+)% on Pendulum; by AUC ([\d.]+)% and ([\d.]+)%"
    exact = [loss("no share of the step", task, name) for name in ("final", "AUC")
             for task in ("Acrobot-v1", "Pendulum-v0")]  # fmt: skip
    assert np.allclose(sentence("no-memory.md", pattern), exact, atol=0.051)
    small = ["16 bins", "64 bins", "64 units", "the same step for projections and heads", "κ = 1", "κ = 2", "τ = 0.003",
             "traces, λ = 0.5"]  # fmt: skip
    losses = sorted(loss(variant, task) for variant in small for task in ("CartPole-v1", "Acrobot-v1", "Pendulum-v0",
                                                                          "MountainCar-v0"))  # fmt: skip
    pattern = r"τ = 0.003 loses ([\d.]+)% on CartPole-v1, and no other change loses more than ([\d.]+)%"
    most, bound = sentence("no-memory.md", pattern)
    assert abs(losses[-1] - most) < 0.051
    assert losses[-2] < bound
