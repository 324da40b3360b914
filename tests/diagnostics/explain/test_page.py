"""The page on synthetic tables, in which what fell, what moved and where is known."""

import dataclasses
import re

import numpy as np
import polars as pl
import pytest

import iqrl
from iqrl.diagnostics.explain.evidence import Association, Correlation, find_association
from iqrl.diagnostics.explain.history import find_falls, split_by_seed
from iqrl.diagnostics.explain.page import explain, write_association
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.make_run import resolve
from iqrl.methods.registry import METHODS, build_agent
from iqrl.settings import settings_of

PERIODS, PERIOD = 40, 1000
FELL = slice(25, 28)
"""the periods in which the curve `collapsing` goes down; the one before is the last high one"""


def run_of(method="dqn", seeds=1, **settings):
    """ε decays over the first 4 periods, learning starts after the first."""
    given = {"steps": PERIODS * PERIOD, "period": PERIOD, "seeds": seeds, "buffer_size": 1} | settings
    fixed = METHODS[method].fixed if method in METHODS else {}
    task = "MinAtar/Breakout-v1" if method.endswith(("-re", "-te")) else "CartPole-v0"
    return resolve(task, method, **{name: value for name, value in given.items() if name not in fixed})


def collapsing(recovered=False):
    curve = np.concatenate([[20, 22, 30, 60], np.linspace(80, 190, 10), 196 + np.arange(11) % 3])
    curve = np.concatenate([curve, [120.0, 60.0, 21.4], np.full(12, 25.0)])
    curve[24] = 198.3
    if recovered:
        curve[30:] = 180.0
    return curve


def noise(scale, mean=0.0, seed=0):
    return mean + scale * np.random.default_rng(seed).normal(size=PERIODS)


def table(*curves, heads=1, **columns):
    """One seed per curve; the columns are the same for every seed."""
    rows = []
    for seed, curve in enumerate(curves):
        length = len(curve)
        base = {
            "seed": np.full(length, seed),
            "step": PERIOD * np.arange(1, length + 1),
            "return": curve,
            "episodes": np.full(length, 10),
            "value_loss": noise(0.01, 0.5)[:length],
            "max_q": noise(0.1, 50, seed=1)[:length],
            "epsilon": np.maximum(1 - 0.245 * np.arange(1, length + 1), 0.02),
            "occupancy": [[1 / heads] * heads] * length,
        }
        rows.append(pl.DataFrame(base | columns))
    return pl.concat(rows)


def interfering():
    """Interference rises in the last high period, the TD error in those after it, mostly in context 1."""
    interference, error = noise(0.01, 0.1), noise(0.05, 0.8, seed=2)
    interference[24], error[FELL] = 1.5, 14.2
    contexts = np.zeros((PERIODS, 3))
    contexts[FELL] = [-0.2, 0.9, 0.1]
    cosines = np.broadcast_to(np.eye(3), (PERIODS, 3, 3)).copy()
    cosines[:, 0, 2] = cosines[:, 2, 0] = -0.4
    return {
        "aei": noise(0.001),
        "negative_interference": interference,
        "update_interference": np.arange(1.0, 41.0),
        "squared_td_error": error,
        "aei_contexts": contexts.tolist(),
        "gradient_cosine": cosines.tolist(),
    }


# Falls


def test_falls_by_hand():
    curve = np.array([0, 10, 9, 10, 2, 1, np.nan, 0, 4, 5, 6, 8, 1, 2.0])
    first, second = find_falls(curve, 2.5)
    assert first == (3, 3, 5, 7, 9, 10.0)
    assert (curve[second.peak], second.trough, second.recovered, second.depth) == (8, 12, None, 7)
    assert find_falls(curve, 10.0) == []
    assert find_falls(np.array([3.0]), 0.0) == []
    assert find_falls(np.full(5, 3.0), 0.0) == []


def test_small_dips_do_not_hide_a_slow_decline():
    curve = np.array([100, 90, 95, 80, 86, 70, 76, 60, 66, 50.0])
    (fall,) = find_falls(curve, 25.0)
    assert (fall.peak, fall.trough, fall.depth) == (0, 9, 50.0)


def test_periods_are_settled_once_epsilon_has_decayed():
    """The decay ends `epsilon_decay` steps after it begins, and it need not begin at step 0."""
    settled = lambda **settings: split_by_seed(run_of(**settings), table(collapsing()))[0].settled
    np.testing.assert_array_equal(np.flatnonzero(~settled(epsilon_decay=4 * PERIOD)), range(4))
    later = settled(epsilon_begin=6 * PERIOD, epsilon_decay=4 * PERIOD)
    np.testing.assert_array_equal(np.flatnonzero(~later), range(10))
    np.testing.assert_array_equal(np.flatnonzero(~settled(learning_starts=20 * PERIOD)), range(20))


# The page


def test_a_collapse_with_interference_before_it():
    page = explain(run_of(), table(collapsing(), **interfering()))
    assert "dqn on CartPole-v0, N=1, 1 seed, 40,000 steps; finished. Returns between 20.0 and 198.3." in page
    assert page.startswith(
        "**Collapsed** in 1 of 1 seed. Seed 0 fell from 198.3 at step 25,000 to 21.4 at step 28,000, and ended at 25.0."
    )
    before, during = re.findall(r"^- (Before .*|During .*)$", page, re.M)
    assert before.startswith("Before it (up to step 25,000): negative interference rose from 0.0")
    assert re.search(r"to 1\.5 \(\d+ spreads\); 1 of \d measurements moved\.", before)
    assert during.startswith("During it (steps 25,000 to 28,000):")
    assert re.search(r"squared TD error rose from 0\.8\d* to 14\.2 \(\d+ spreads\)", during)
    assert "negative interference" not in during
    assert (
        "Contexts (steps 25,000 to 28,000): Updates raised the squared TD error most in context 1, by 0.9 an update, "
        "90% of"
    ) in page
    assert (
        "At the same time: negative interference was raised in 0 of 3 periods in which the return fell, and in 1 of "
    ) in page
    assert "The TD gradients of contexts 0 and 2 conflicted most: cosine -0.4." in page
    assert "clusters of states found before training, counted from 0" in page
    assert "No: what there is could be chance." in page  # it was raised, but not more often in falls than elsewhere
    assert "have a cosine of -0.40 (seed 0, mean over the last half). Try `--method iq`" in page
    # Highest, final, falls, deepest; the largest tenth of 21, …, 40 is 39 and 40.
    assert re.search(r"^\| 0 \| collapsed \| 198\.0 \| 25\.0 \| 1 \| 176\.9 \| 0\.\d+ \| 39\.5 \|$", page, re.M)


def interfering_in_every_fall():
    interference = noise(0.01, 0.1)
    interference[FELL] = 1.5
    return interfering() | {"negative_interference": interference}


def test_falls_with_interference():
    page = explain(run_of(seeds=3), table(collapsing(), collapsing(), collapsing(), **interfering_in_every_fall()))
    words = r"\*\*With it:\*\* interference goes with the falls: negative interference was raised in 9 of 9 periods "
    assert re.search(words + r"in which the return fell, and in 0 of \d+ others, p (= 0\.00\d|< 0\.001)\.", page)
    assert "Yes, at the same time: interference is higher where the return falls." in page
    assert "`--buffer-size 100` (memory for 100 transitions: 6,000 bytes a seed, now 60)" in page


def test_a_collapse_in_which_nothing_measured_moved():
    still = {"aei": noise(0.01), "negative_interference": noise(0.01, 0.1), "squared_td_error": noise(0.05, 0.8)}
    page = explain(run_of(), table(collapsing(), **still))
    assert "to 21.4 at step 28,000" in page
    assert page.count("none of 5 measurements moved.") == 2
    assert "no sign that the return falls" in page
    assert "**With it:** nothing that was measured stands out." in page
    assert "No: what there is could be chance." in page
    assert "buffer-size" not in page


def test_an_unmeasured_run_says_how_to_measure():
    page = explain(run_of(), table(collapsing()))
    assert "Unknown: interference was not measured." in page
    assert (
        "**Try:** `--measure-every 100`, which shows whether interference goes with it; or `--buffer-size 100`" in page
    )
    assert "none of 2 measurements moved" in page
    assert "interference, 0.9 tail" not in page


def test_only_words_that_occur_are_explained():
    words_of = lambda page: re.findall(r"\*(\w[^*]*)\*:", page.partition("## Words")[2])
    calm = explain(run_of(seeds=2), table(noise(3, 22), noise(3, 22, seed=1)))
    assert words_of(calm) == ["Fall", "Best level", "Final", "Exploring"]
    fallen = words_of(explain(run_of(), table(collapsing(), **interfering())))
    assert {"Lasted", "Moved", "Spread", "Raised", "Contexts", "0.9 tail"} <= {*fallen}


def test_a_recovered_fall():
    page = explain(run_of(), table(collapsing(recovered=True)))
    assert page.startswith("**Fine** in 1 of 1 seed. The return ended at 180.0; its best level was 198.0;")
    assert "**With it:** 1 fall deeper than 25% of the range of the returns, none of which lasted." in page
    assert "Half of the loss was regained: 180.0 at step 31,000." in page


def test_noise_is_not_a_fall():
    page = explain(run_of(seeds=2), table(noise(3, 22), noise(3, 22, seed=1)))
    assert page.startswith("**Never learned** in 2 of 2 seeds. The best level was 2")
    assert "## The falls" not in page
    flat = explain(run_of(), table(np.full(PERIODS, -500.0)))
    assert flat.startswith("**Never learned**")
    once = np.full(PERIODS, -500.0)
    once[20] = -473
    assert explain(run_of(), table(once)).startswith("**Never learned**")


def test_what_was_learned_before_the_first_point_can_fall_too():
    curve = np.concatenate([noise(1, 195)[:20], np.full(20, 30.0)])
    page = explain(run_of(), table(curve))
    assert page.startswith("**Collapsed**")
    # Exploring episodes that were longer than greedy ones are no learned level.
    longer = np.concatenate([[24, 28, 28, 20], np.full(36, 9.0)])
    assert explain(run_of(), table(longer)).startswith("**Never learned**")


def test_no_fall():
    curve = np.minimum(20 + 20.0 * np.arange(PERIODS), 200)
    page = explain(run_of(), table(curve))
    assert page.startswith("**Fine** in 1 of 1 seed. The return ended at 200.0; its best level was 200.0")
    assert "**With it:** no fall deeper than 25% of the range of the returns." in page
    assert "What to try" not in page
    fallen = curve - 60 * (np.arange(PERIODS) > 30)
    assert explain(run_of(), table(fallen)).startswith("**Collapsed**")
    assert explain(run_of(), table(fallen), drop=0.5).startswith("**Fine**")


def test_too_little_to_say():
    first = explain(run_of(), table(np.array([20.0])))
    assert first.startswith("**Still learning**: the run stopped at step 1,000 of 40,000; return 20.0;")
    none = explain(run_of(), table(np.full(PERIODS, np.nan)))
    assert none.startswith("**Too short** to tell: there is no return after the exploring ones, and three are needed")
    exploring = table(np.full(PERIODS, 20.0), epsilon=np.full(PERIODS, 0.9))
    page = explain(dataclasses.replace(run_of(), epsilon_begin=1000, epsilon_decay=119_000), exploring)
    assert page.startswith(f"**Too short** to tell: 0 of {PERIODS} periods with a return came after the exploring ones")
    assert "**With it:** ε was 0.9 at step 40,000, and decays up to step 120,000." in page
    assert "**Try:** `iqrl resume RUN --steps 240000`" in page
    early = np.concatenate([[20, 22, 30, 150, 180, 190, 190, 30, 20], np.full(31, 20.0)])
    assert "What moved cannot be said: there are 2 periods" in explain(run_of(), table(early))
    stopped = explain(run_of(), table(collapsing()[:30]))
    assert "stopped at step 30,000" in stopped


def test_periods_without_a_return_are_skipped():
    curve = collapsing()
    curve[[0, 10, 25, 26, 35]] = np.nan
    page = explain(run_of(), table(curve, **interfering()))
    assert "from 198.3 at step 25,000 to 21.4 at step 28,000" in page
    assert "squared TD error" in page


def test_an_emptied_context():
    occupancy = np.tile([0.5, 0.3, 0.2], (PERIODS, 1))
    occupancy[25:] = [0.998, 0.002, 0.0]
    movement = np.full((PERIODS, 3), 0.2)
    columns = {"occupancy": occupancy.tolist(), "centroid_movement": movement.tolist()}
    page = explain(run_of("iq"), table(collapsing(), **columns))
    assert "Context 0 took over: from 50% of the steps to 99.8%." in page
    assert "Context 1 emptied: from 30% of the steps to 0.2%." in page
    assert "Context 2 emptied: from 20% of the steps to 0%." in page
    assert "The contexts divide little" not in page  # not over the whole last half
    assert "The centroids still move at the end (seed 0: 0.2 a period" in page
    occupancy[:] = [0.998, 0.002, 0.0]
    columns["occupancy"] = occupancy.tolist()
    page = explain(run_of("iq"), table(collapsing(), **columns))
    assert "held 99.8% of the steps (seed 0), and 2 of 3 contexts held less than 1%. Try `--contexts 2`; or" in page


def test_values_beyond_the_returns_and_silent_units():
    columns = interfering() | {"held_out_max_q": np.full(PERIODS, 700.0), "dormant_units": np.full(PERIODS, 0.5)}
    metrics = table(collapsing(), **columns)
    page = explain(run_of(bootstrap_time_limit=False), metrics)
    assert "max-Q on held-out states is 700 over the last tenth, and 198 is about the most" in page
    assert "Try `--double-q`; or `--learning-rate 0.0001`; or another `target_period`." in page
    assert "50% of them over the last tenth (seed 0). Try `--layer-norm`; or `--learning-rate 0.0001`." in page
    # Rewards that go on behind the time limit have no bound at γ = 1.
    assert "beyond what the returns" not in explain(run_of(gamma=1.0), metrics)


def test_only_the_deepest_falls_are_shown():
    saw = np.concatenate([[20, 22, 30, 60], np.tile([190, 195, 200, 60, 20, 25], 6)]).astype(float)
    page = explain(run_of(seeds=3), table(saw, saw, saw))
    assert "## 6 of 18 falls: those that lasted, then the deepest" in page
    assert page.count("### ") == 6


@pytest.mark.parametrize("drop", [0.0, -1.0, 1.5, np.nan])
def test_bad_input(drop):
    with pytest.raises(BadInput, match="drop must be more than 0 and at most 1"):
        explain(run_of(), table(collapsing()), drop)
    with pytest.raises(BadInput, match="no measurements yet"):
        explain(run_of(), pl.DataFrame())


# What is offered


@pytest.mark.parametrize("method", METHODS)
def test_every_offer_is_a_setting_of_the_method(method):
    heads = 3 if "contexts" in settings_of(METHODS[method].settings) else 1
    wrong = interfering() | {
        "held_out_max_q": np.full(PERIODS, 1e9),
        "dormant_units": np.full(PERIODS, 0.9),
        "centroid_movement": np.full((PERIODS, 3), 0.2).tolist(),
        "epsilon": np.where(np.arange(PERIODS) < 2, 0.8, 0.3),
        "occupancy": [[1.0] + [0.0] * (heads - 1)] * PERIODS,
    }
    for term in ("distillation", "consolidation", "sparsity"):
        wrong |= {f"{term}_loss": np.full(PERIODS, 1e3), f"{term}_weight": np.ones(PERIODS)}
    run = run_of(method, epsilon_final=0.3)
    page = explain(run, table(collapsing(), **wrong))
    offers = dict(re.findall(r"`--([\w-]+)(?: ([^`]+))?`", page.partition("## What to try")[2]))
    assert offers.pop("method", "iq") in METHODS
    assert offers["epsilon-final"] == "0.02"
    for name, value in offers.items():
        given = True if value == "" else value if not value[0].isdigit() else float(value)
        changed = resolve(run.task, method, steps=PERIODS * PERIOD, **{name.replace("-", "_"): given})
        build_agent(changed, make_task(changed))


def test_a_method_that_cannot_be_found_is_offered_what_all_methods_have():
    seeds = table(collapsing(), collapsing(), collapsing(), **interfering_in_every_fall())
    page = explain(dataclasses.replace(run_of(seeds=3), method="gone:mine"), seeds)
    assert "`--buffer-size 100`" in page


def test_what_never_varied_is_not_compared():
    """A share that was 0 in every period before has no spread; one that varied a little has."""
    share = np.zeros(PERIODS)
    share[FELL] = 1.0
    page = explain(run_of(), table(collapsing(), aei=noise(0.01), raised_share=share))
    assert "share of updates" not in page
    share[10] = 0.01
    page = explain(run_of(), table(collapsing(), aei=noise(0.01), raised_share=share))
    assert "share of updates that raised the TD error rose from 0 to 1 (more than 1,000 spreads)" in page


def test_nothing_read_is_not_no_rise():
    nothing = np.full((PERIODS, 3), np.nan)
    columns = {"aei": np.full(PERIODS, np.nan), "negative_interference": np.full(PERIODS, np.nan)}
    page = explain(run_of(), table(collapsing(), **columns, aei_contexts=nothing))
    assert "of no context" not in page
    assert "Unknown: there is too little to compare." in page


def test_a_relapse_below_the_last_low_is_a_fall():
    curve = np.concatenate([np.full(4, -500.0), np.linspace(-480, -100, 16), [-300.0, -190.0], np.full(18, -500.0)])
    page = explain(run_of(), table(curve))
    assert "from -100.0 at step 20,000 to -300.0 at step 21,000" in page
    assert "from -190.0 at step 22,000 to -500.0 at step 23,000" in page
    assert page.startswith("**Collapsed** in 1 of 1 seed.")


# Correlation


def test_correlation_with_what_follows():
    generator = np.random.default_rng(0)
    curves = [100 + generator.normal(scale=20, size=PERIODS) for _ in range(3)]
    following = [np.append(-np.diff(curve), 0.0) for curve in curves]
    metrics = pl.concat(
        table(curve, negative_interference=after).with_columns(pl.lit(seed).alias("seed"))
        for seed, (curve, after) in enumerate(zip(curves, following, strict=True))
    )
    found = find_association(split_by_seed(run_of(seeds=3), metrics))
    assert found.pairs == 3 * 35
    np.testing.assert_allclose([found.plain.rho, found.given_return.rho], -1)
    assert found.plain.p < 0.01
    page = explain(run_of(seeds=3), metrics.with_columns(aei=0.0))
    assert "Yes, one after the other: the return falls after periods of high interference." in page


def test_a_high_return_falls_without_interference_too():
    """Interference that only mirrors the level correlates with what follows, until the level is taken out."""
    curves = [noise(20, 100, seed) for seed in range(4)]
    metrics = pl.concat(
        table(curve, negative_interference=curve + noise(5, seed=20 + seed)).with_columns(pl.lit(seed).alias("seed"))
        for seed, curve in enumerate(curves)
    )
    found = find_association(split_by_seed(run_of(seeds=4), metrics))
    assert found.plain.rho < -0.4
    assert abs(found.given_return.rho) < 0.2
    page = explain(run_of(seeds=4), metrics.with_columns(aei=0.0))
    assert "no more than high returns fall anyway" in page
    assert "No: the return does not fall after interference more than it falls anyway." in page
    assert "Yes" not in page


def test_chance_is_rarely_called_a_sign():
    generator, signs = np.random.default_rng(1), 0
    for _ in range(100):
        smooth = lambda: np.convolve(generator.normal(size=PERIODS + 5), np.ones(6) / 6, "valid")
        found = find_association(split_by_seed(run_of(), table(smooth(), negative_interference=smooth())))
        signs += found.plain.p < 0.05
    assert signs <= 12


def test_a_real_run():
    result = iqrl.train("CartPole-v0", "dqn", steps=2000, seeds=2, buffer_size=1)
    page = explain(result.run, result.metrics)
    assert "dqn on CartPole-v0, N=1, 2 seeds, 2,000 steps; finished." in page
    assert len(re.findall(r"^\| [01] \| \w", page, re.M)) == 2


@pytest.mark.parametrize(
    ("plain", "given", "words"),
    [
        ((-0.1, 0.2), (-0.1, 0.01), "no sign that"),
        ((-0.3, 0.01), (-0.2, 0.01), "Yes, one after the other: the return falls"),
        ((-0.3, 0.01), (-0.1, 0.4), "no more than high returns fall anyway"),
        ((0.3, 0.0001), (0.1, 0.4), "later: the return rises after more interference, as low returns rise anyway"),
        ((0.3, 0.0001), (0.2, 0.01), "the opposite"),
    ],
)
def test_whether_falls_follow_interference_in_words(plain, given, words):
    found = Association(
        metric="negative_interference", pairs=100, plain=Correlation(*plain), given_return=Correlation(*given)
    )
    text = write_association(found, None, measured=True)
    assert words in text
    assert ("p < 0.001" in text) == (plain[1] < 0.001)
