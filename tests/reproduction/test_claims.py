"""The claims: rules by hand, and the numbers of the pages computed again without the library's statistics."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from recomputed import NUMBERS, RANGE, ROOT, curves_of, near, number, rows_between

from iqrl.experiments.study.results import RunRecord, StudyResults
from iqrl.reproduction.claims.contrasts import Contrast, Effect, MeasuredCurves, MeasuredStudy, contrast, select
from iqrl.reproduction.claims.evaluate import measure_claims, read_claims
from iqrl.reproduction.claims.observations import (
    above,
    below,
    best_contexts,
    collapses,
    far_from_optimal,
    heads_apart,
    identical_runs,
    larger_advantage,
    moves_with_return,
    never_collapses,
    share_interval,
    task_by_task,
    varies_by_task,
)
from iqrl.reproduction.claims.verdicts import by_measure, by_rival, support
from iqrl.reproduction.printed import ATARI_SETTINGS, printed_deterioration
from iqrl.statistics.intervals import Interval

# Rules


def found(share, p=1.0, wins=None, never=(0, 0), held=(10, 10), measure="final"):
    """A contrast with one measure."""
    effect = Effect(Interval(*share), Interval(wins, wins, wins) if wins is not None else None, p, p)
    fates = tuple(Counter({"never learned": n, "held": h}) for n, h in zip(never, held, strict=True))
    return Contrast("a", "b", 1, (5, 5), fates, {measure: effect})


@pytest.mark.parametrize(
    ("share", "p", "says", "word"),
    [
        ((0.2, 0.1, 0.3), 0.01, "better", "yes"),
        ((0.2, 0.1, 0.3), 0.01, "worse", "the opposite"),
        ((-0.2, -0.3, -0.1), 0.01, "worse", "yes"),
        ((0.2, 0.1, 0.3), 0.2, "better", "suggested"),
        ((0.2, -0.1, 0.5), 0.2, "better", "not shown"),
        ((-0.2, -0.3, -0.1), 0.2, "better", "the opposite is suggested"),
        ((0.02, -0.05, 0.09), 0.2, "alike", "yes"),
        ((0.02, 0.01, 0.03), 0.01, "alike", "yes"),
        ((-0.09, -0.12, -0.05), 0.01, "alike", "not shown"),
        ((0.2, 0.11, 0.3), 1.0, "alike", "the opposite is suggested"),
        ((0.2, 0.11, 0.3), 0.01, "alike", "the opposite"),
        ((0.05, -0.05, 0.15), 1.0, "alike", "not shown"),
    ],
)
def test_what_one_measurement_says(share, p, says, word):
    assert support(found(share, p, 0.5), "final", says) == word


def test_what_was_never_learned_cannot_be_lost():
    less = ((-0.2, -0.3, -0.1), 0.01, 0.8)
    assert support(found(*less, measure="fall"), "fall", "better") == "yes"
    assert support(found(*less, never=(5, 1), measure="fall"), "fall", "better") == "not shown"
    assert support(found(*less, never=(5, 1), measure="fall"), "fall", "worse") == "not shown", (
        "nor held against a side"
    )
    assert support(found(*less, never=(1, 5), measure="fall"), "fall", "better") == "yes"
    # Shares count: four of 40 are more than six of 80.
    assert support(found(*less, never=(4, 6), held=(36, 74), measure="fall"), "fall", "better") == "not shown"
    assert by_measure([(found(*less, measure="fall"), "better")], "final") == ""


def interval_of(*seeds):
    return Interval(sum(seeds) / len(seeds), min(seeds), max(seeds))


def test_a_limit_is_reached_passed_or_open():
    assert [above(0.95, interval_of(*seeds)) for seeds in ((0.96, 0.99), (0.9, 0.94), (0.9, 0.99))] == [
        "yes", "the opposite", "not shown",
    ]  # fmt: skip
    assert below(0.95, interval_of(0.9, 0.94)) == "yes"
    # None of 30 seeds: by Clopper and Pearson at most 1 - .025^(1/30) of all would.
    assert share_interval(0, 30) == pytest.approx((0, 0, 1 - 0.025 ** (1 / 30)))
    assert share_interval(30, 30) == pytest.approx((1, 0.025 ** (1 / 30), 1))


def test_sides_are_matched_by_what_neither_fixes():
    curve = np.array([[9.0, 104.5], [9.0, 104.5]])
    runs = [
        MeasuredCurves("", {"task": "CartPole-v0", "method": method, "buffer_size": size}, curve * scale)
        for method, size, scale in (("iq", 1, 1.0), ("iq", 100, 2.0), ("dqn", 100, 1.0))
    ]
    one = contrast(runs, {"method": "iq"}, {"method": "dqn"}, ["early"])
    assert (one.cells, one.seeds) == (1, (2, 2))
    assert one.effects["final"].share.value == pytest.approx(104.5 / 191)
    assert one.effects["highest"].share.value == pytest.approx(104.5 / 191)
    assert one.effects["early"].share.value == pytest.approx(9 / 191)
    across = contrast(runs, {"method": "iq", "buffer_size": 1}, {"method": "dqn", "buffer_size": 100}, [])
    assert (across.own, across.other, across.effects["auc"].share.value) == ("iq, N=1", "dqn, N=100", 0.0)
    assert contrast(runs, {"method": "srnn"}, {"method": "dqn"}, []) is None
    assert len(select(runs, {"buffer_size": [1, 100], "method": "iq"})) == 2


def test_interference_is_compared_by_ratios():
    """By hand: half as much in one cell, an eighth in the other, so a quarter (-75%) in the geometric mean."""
    run = lambda method, size, level: MeasuredCurves(
        "", {"task": "CartPole-v0", "method": method, "buffer_size": size}, np.full((2, 10), 9.0),
        {"negative": np.array([level, level])},
    )  # fmt: skip
    runs = [run("iq", 1, 0.5), run("dqn", 1, 1.0), run("iq", 100, 1.0), run("dqn", 100, 8.0)]
    effect = contrast(runs, {"method": "iq"}, {"method": "dqn"}, ["negative"]).effects["negative"]
    assert effect.share.value == pytest.approx(-0.75)
    assert effect.wins.value == 1.0, "less is better"
    assert support(found((-0.75, -0.8, -0.7), 0.01, 1.0, measure="negative"), "negative", "better") == "yes"
    assert support(found((0.75, 0.7, 0.8), 0.01, 0.0, measure="negative"), "negative", "better") == "the opposite"


def test_what_moves_with_the_return_and_what_comes_before_it():
    """The return falls in the periods in which the column is high, and rises in the period after."""
    column, returns = [0.0, 1.0, 3.0, 2.0, 5.0], [10.0, 9.0, 6.0, 4.5, 0.0]
    rows = [
        {"run": "a", "seed": seed, "step": step, "return": returns[step], "interference": column[step]}
        for seed in (0, 1)
        for step in range(5)
    ]
    run = RunRecord("a", "mine", "", {"task": "CartPole-v0"}, (), {}, {})
    study = MeasuredStudy(StudyResults("mine", "", "", (), pl.DataFrame(rows), [run], 0), [])
    one = moves_with_return(study, {"column": "interference"})
    # Changes -1, -3, -1.5, -4.5 beside 1, 3, 2, 5: opposite orders. Changes -3, -1.5, -4.5 beside 1, 3, 2: ranks
    # 2, 3, 1 and 1, 3, 2, so 1 - 6 (1 + 0 + 1) / (3 * 8) = 0.5.
    assert (one.found, one.seeds) == (["suggested"], 2)
    assert "in it −1.00 (no spread) and in the next +0.50 (no spread)" in one.text


def runs_of_returns(returns):
    """{(method, N): the returns of two seeds on CartPole-v0}; nothing else is known of them."""
    config = {"task": "CartPole-v0"}
    runs = [
        MeasuredCurves("", config | {"method": method, "buffer_size": size}, np.array(of_seeds, float))
        for (method, size), of_seeds in returns.items()
    ]
    return MeasuredStudy(StudyResults("mine", "", "", (), pl.DataFrame(), [], 0), runs)


def test_an_advantage_is_larger_if_the_difference_of_the_differences_is():
    flat = lambda level: [[level] * 10, [level] * 10]
    study = runs_of_returns({
        ("iq", 1): flat(190.0), ("dqn", 1): flat(94.5), ("iq", 100): flat(199.5), ("dqn", 100): flat(199.5),
    })  # fmt: skip
    part = {"own": "iq", "others": ["dqn"], "at": 1, "beside": 100, "measures": ["final", "highest", "fall"]}
    one = larger_advantage(study, part)
    assert one.found == ["suggested", "suggested", "not shown"]
    assert "over dqn: final +50% [+50%, +50%], highest +50% [+50%, +50%] and deterioration 0%" in one.text
    assert larger_advantage(study, part | {"at": 100, "beside": 1}).found[0] == "the opposite is suggested"


def test_a_single_seed_that_collapsed_is_not_elimination():
    held, fallen = [190.0] * 10, [190.0] * 9 + [30.0]
    part = {"own": "iq", "others": ["dqn"]}
    assert never_collapses(runs_of_returns({("iq", 1): [held, held], ("dqn", 1): [held, fallen]}), part).found == [
        "yes"
    ]
    one = never_collapses(runs_of_returns({("iq", 1): [held, fallen], ("dqn", 1): [fallen, fallen]}), part)
    assert one.found == ["the opposite"]
    assert one.text.startswith("iq: 1 of 2 seeds collapsed, most of them on CartPole-v0 with N=1 (1 of 2)")


def test_a_quarter_that_was_lost_is_counted_beside_the_half():
    """A random policy has 22: of the 160 that were gained 60 are lost in the last tenth."""
    lost_a_third = [182.0] * 9 + [122.0]
    study = runs_of_returns({("dqn", 1): [lost_a_third, lost_a_third]})
    one = collapses(study, {"own": {"method": "dqn"}})
    assert one.found == ["not shown"], "two seeds leave it open whether most do"
    assert "dqn on CartPole-v0, N=1: 0 of 2 lost half, 2 a quarter." in one.text
    many = runs_of_returns({("dqn", 1): [[182.0] * 9 + [30.0]] * 10, ("iq", 1): [lost_a_third] * 10})
    assert collapses(many, {"own": {"method": "dqn"}}).found == ["yes"]
    assert collapses(many, {"own": {"method": "iq"}}).found == ["the opposite"]


def test_the_best_and_the_worst_number_of_contexts():
    config = {"task": "CartPole-v0", "method": "iq", "buffer_size": 1}
    runs = [
        MeasuredCurves("", config | {"contexts": k}, np.full((2, 10), level))
        for k, level in ((1, 100.0), (2, 50.0), (3, 20.0))
    ]
    study = MeasuredStudy(StudyResults("mine", "", "", (), pl.DataFrame(), [], 0), runs)
    words = [best_contexts(study, {"best": {"CartPole-v0": k}}).found for k in (1, 2, 3)]
    # Of the range of 191: 50 short of the best is 26%, 80 is 42%; 100 - 50 and 100 - 20 are both beyond a tenth.
    assert words == [["yes"] * 2, ["the opposite"] * 2, ["the opposite"] * 2]
    far = far_from_optimal(study, {"own": {"contexts": [2, 3]}})
    assert (far.found, far.text[:48]) == (["yes", "yes"], "Below 95% of the range at the end: 2 of 2. k = 2")


def test_a_contribution_varies_if_it_has_both_signs():
    flat = lambda level: [[level - 1] * 10, [level + 1] * 10]
    study = runs_of_returns({
        ("iq", 1): flat(104.5), ("iq", 100): flat(104.5), ("a", 1): flat(9.0), ("a", 100): flat(200.0),
        ("b", 1): flat(9.0), ("b", 100): flat(9.0),
    })  # fmt: skip
    one = varies_by_task(study, {"own": "iq", "others": ["a", "b"]})
    assert one.found == ["yes", "not shown"]
    assert "a: from −50% (CartPole-v0 with N=100) to +50% (CartPole-v0 with N=1)" in one.text


def test_what_an_average_hides_is_shown_by_task_and_equal_runs_are_counted():
    flat = lambda level: [[level] * 10, [level] * 10]
    study = runs_of_returns({
        ("iq", 1): flat(200.0), ("dqn", 1): flat(104.5), ("srnn", 1): [[104.5] * 10, [9.0] * 10],
    })  # fmt: skip
    one = task_by_task(study, {"own": {"method": "iq"}, "others": {"method": "dqn"}})
    assert (one.found, "CartPole-v0 +50% [+50%, +50%]" in one.text) == ([], True)
    one = identical_runs(study, {"own": "srnn", "other": "dqn"})
    assert one.text.startswith("1 of 2 runs of srnn are the run of dqn with the same seed")


def test_the_values_of_heads_are_those_of_the_last_tenth():
    rows = [{"run": "iq", "seed": seed, "step": step, "heads": [float(seed), 9.0 if step < 10 else -1.0]}
            for seed in (-2, -3) for step in range(1, 11)]  # fmt: skip
    run = RunRecord("iq", "mine", "", {"method": "iq"}, (), {}, {})
    study = MeasuredStudy(StudyResults("mine", "", "", (), pl.DataFrame(rows), [run], 0), [])
    one = heads_apart(study, {"own": "iq", "column": "heads", "most": 0.0})
    assert (one.found, one.seeds) == (["not shown"], 2), "two seeds leave it open"
    assert "−3.0, −1.0; −2.0, −1.0." in one.text


def test_which_rival_has_which_word():
    better, worse = found((0.2, 0.1, 0.3), 0.01, 0.8), found((-0.2, -0.3, -0.1), 0.01, 0.2)
    one, two, three = better._replace(other="c"), worse._replace(other="d"), worse._replace(other="e")
    assert by_rival([one, two, three], "final", "better") == "*yes* against c, *the opposite* against d and e"
    assert by_rival([two, three], "final", "worse") == "*yes*"


def test_a_test_that_several_claims_share_is_corrected_once():
    """Claim 16 is about the runs of claim 5, and each of its tests has the p of claim 5's."""
    claims, tests = measure_claims(ROOT / "results")
    contrasts = [one for claim in claims for part in claim.parts for one in part.contrasts]
    distinct = {(one.key, name): effect for one in contrasts for name, effect in one.effects.items()}
    assert len(distinct) == tests < sum(len(one.effects) for one in contrasts)
    fifth, sixteenth = (claims[number - 1].parts[0].contrasts for number in (5, 16))
    assert [one.effects for one in fifth] == [one.effects for one in sixteenth]
    # Holm by hand: the smallest p is multiplied by the number of tests.
    least = min(distinct.values(), key=lambda effect: effect.p)
    assert least.adjusted == pytest.approx(min(1, least.p * tests))


def test_the_printed_deteriorations_that_claim_40_counts():
    less, least = Counter(), 0
    for setting in ATARI_SETTINGS:
        family, _, part = setting.method.partition("+")
        if part == "IQ-RE":
            rivals = [printed_deterioration(setting._replace(method=family + more)).value for more in ("", "+SRNN")]
            own = printed_deterioration(setting).value
            less.update(family + more for more, other in zip(("", "+SRNN"), rivals, strict=True) if own < other)
            least += own < min(rivals)
    assert less == {"DQN": 6, "DQN+SRNN": 8, "Rainbow": 6, "Rainbow+SRNN": 7}
    assert least == 11
    (text,) = [claim["text"] for claim in read_claims() if claim["title"].startswith("IQ-RE deteriorates less")]
    assert "6 of 12 settings against DQN, 8 against DQN+SRNN, 6 against Rainbow and 7 against Rainbow+SRNN" in text
    assert "11 of 24" in text


def test_every_claim_has_a_sentence_its_place_and_something_behind_it():
    claims = read_claims()
    assert len(claims) > 50
    brief = [claim.get("brief", False) for claim in claims]
    assert brief == sorted(brief), "those without a measurement stand last, as on the page"
    for claim in claims:
        assert all(quote["text"] and quote["place"] for quote in claim["quote"])
        assert claim.get("part") or (claim["verdict"] and claim["text"])
        assert not (claim.get("part") and claim.get("verdict")), "a measured claim has the verdict of its numbers"


# The numbers of the pages again


def test_finals_areas_and_what_was_lost_on_the_page_of_results():
    page = (ROOT / "docs" / "table1.md").read_text()
    curves = curves_of("table1", "table1-same-rule", "table1-tuned")
    compared = 0
    for row in rows_between(page, "<!-- results/table1 results/table1-same-rule", "### Which differences"):
        if "line" not in row:
            continue
        returns = curves[row["variant"], row["task"], row["line"], int(number(row["buffer"].removeprefix("N=")))]
        for name, score in NUMBERS.items():
            assert near(row[f"{name} [95%]"], score(returns).mean()), row
            compared += 1
    assert compared >= 400


SECTIONS = {
    "## 5. ": ("table1", "", (1, 100, 50_000)), "## 7. ": ("table1", "", (100,)), "## 8. ": ("table1", "", (1,)),
    "Both with the single rule:": ("table1-same-rule", "both single", (1, 100, 50_000)),
    "Both with the double rule:": ("table1-same-rule", "both double", (1, 100, 50_000)),
    "Each tuned:": ("table1-tuned", "tuned", (1, 100, 50_000)), "## 39. ": ("mountaincar", "", (100, 50_000)),
}  # fmt: skip


def test_effect_sizes_and_wins_on_the_page_of_claims():
    page = (ROOT / "docs" / "claims.md").read_text()
    compared = 0
    for start, (study, variant, sizes) in SECTIONS.items():
        curves = curves_of(study)
        # Each begins with a table; after it there is text.
        table = page[page.index("\n|", page.index(start)) :].partition("\n\n")[0]
        for row in rows_between(f"{table}\n\n", "\n|", "\n\n"):
            own, other = row[""].split(" against ")
            cells = [key for key in curves if key[0] == variant and key[2] == own and key[3] in sizes]
            pairs = [(curves[key], curves[*key[:2], other, key[3]], RANGE[key[1]]) for key in cells]
            assert int(row["cells"]) == len(pairs)
            highest = [np.nanmax(x.mean(axis=0)) - np.nanmax(y.mean(axis=0)) for x, y, _ in pairs]
            shares = [100 * apart / scale for apart, (*_, scale) in zip(highest, pairs, strict=True)]
            assert near(row["highest difference [95%]"], np.mean(shares)), row
            for name, score in NUMBERS.items():
                shares = [100 * (score(x).mean() - score(y).mean()) / scale for x, y, scale in pairs]
                assert near(row[f"{name} difference [95%]"], np.mean(shares)), row
                ahead = [score(x)[:, None] - score(y)[None, :] for x, y, _ in pairs]
                wins = np.mean([(apart > 0).mean() + 0.5 * (apart == 0).mean() for apart in ahead])
                assert near(row[f"{name} P"], 1 - wins if name == "deterioration" else wins), row
                compared += 2
            compared += 1
    assert compared >= 100
