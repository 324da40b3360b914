"""Which differences are real, on numbers worked out by hand."""

import re

import numpy as np
import pytest
from made_up_studies import curves, learned, record, study

from iqrl.experiments.report.charts import profile_charts
from iqrl.experiments.report.comparison_tables import (
    headlines,
    improvement_tables,
    notes,
    p_text,
    standing_table,
)
from iqrl.experiments.report.comparisons import compare, compare_page, rank
from iqrl.experiments.report.page.render import render_page
from iqrl.experiments.report.write import markdown_report
from iqrl.statistics.significance import permutation_test, smallest_p

NAN = float("nan")


def flat(run, values):
    """Curves that stand still: final and area of each seed are its value."""
    return curves(run, **{"return": [[value, value] for value in values]})


def made(*runs_and_values, **changes):
    runs = [run for run, _ in runs_and_values]
    return study(runs, [flat(*pair) for pair in runs_and_values], **changes)


def at(method, size, values, task="CartPole-v0", **settings):
    return record(method=method, buffer_size=size, task=task, **settings), values


@pytest.fixture
def small():
    """CartPole-v0 goes from 9 to 200: 104.5 is 0.5 on its scale, 152.25 is 0.75."""
    return made(
        at("dqn", 1, [9.0, 9.0, 104.5]), at("iq", 1, [152.25, 200.0, 200.0]),
        at("dqn", 100, [104.5, 152.25, 200.0]), at("iq", 100, [104.5, 152.25, 200.0]),
    )  # fmt: skip


def test_cells_by_hand(small):
    (found,) = compare(small)
    assert [one.measure for one in found.cells] == ["final", "auc", "fall"] * 2
    one, hundred = found.cells[0], found.cells[3]
    assert (found.reference, one.rival, one.cell.text) == ("iq", "dqn", "CartPole-v0, N=1")
    assert one.effect.value == pytest.approx(552.25 / 3 - 122.5 / 3)
    assert one.share.value == pytest.approx(one.effect.value / 191), "of 9 to 200"
    assert one.effect.low < one.effect.value < one.effect.high
    assert one.improvement == 1.0
    assert (hundred.effect.value, hundred.improvement) == (0.0, 0.5)


def test_what_was_lost_is_compared_too():
    """Both reach 200; iq keeps it, dqn ends at 100. Less is better."""
    runs = [record(method=method, buffer_size=1) for method in ("dqn", "iq")]
    ends = {"dqn": (100.0, 101.0, 102.0), "iq": (198.0, 199.0, 200.0)}
    tables = [curves(run, **{"return": [[200.0, end] for end in ends[run.config["method"]]]}) for run in runs]
    (found,) = compare(study(runs, tables))
    lost = found.cells[2]
    assert (lost.measure, lost.effect.value, lost.improvement) == ("fall", 1.0 - 99.0, 1.0)
    over_all = found.overall[2]
    assert (over_all.measure, over_all.improvement.value) == ("fall", 1.0)
    assert over_all.share.value == pytest.approx(-98 / 191)


def test_over_all_cells_by_hand(small):
    (found,) = compare(small)
    everything, one, hundred = [each for each in found.overall if each.measure == "auc"]
    assert [each.buffer_size for each in found.overall] == [None] * 3 + [1] * 3 + [100] * 3
    assert everything.improvement.value == pytest.approx((1 + 0.5) / 2)
    assert (everything.cells, one.cells) == (2, 1)
    assert one.p == pytest.approx(0.1, abs=0.005), "within one cell it is the test of that cell"
    assert one.smallest == pytest.approx(2 / 20)
    assert hundred.p == 1.0
    # By hand: the differences of the two cells, on the scale of 191, and their mean.
    assert everything.share.value == pytest.approx((429.75 / 3 / 191 + 0) / 2)
    assert found.tests == 9
    assert one.adjusted == pytest.approx(9 * min(each.p for each in found.overall), abs=0.001), "corrected for the page"


def test_all_tests_of_a_page_are_corrected_together(small):
    alone, (both, _) = compare(small)[0], compare_page([small, small._replace(name="again")])
    assert both[0].tests == 2 * alone.tests
    assert min(one.adjusted for one in both[0].overall) > min(one.adjusted for one in alone.overall)
    assert [one.p for one in both[0].overall] == [one.p for one in alone.overall]


def test_standings_and_profiles_by_hand(small):
    (found,) = compare(small)
    standings = {(one.buffer_size, one.method): one for one in found.standings}
    # dqn: 0, 0, 0.5, 0.5, 0.75, 1; ⌊6/4⌋ is cut at either end.
    assert standings[None, "dqn"].final.value == pytest.approx((0 + 0.5 + 0.5 + 0.75) / 4)
    # With three runs nothing is cut.
    assert standings[1, "iq"].auc.value == pytest.approx((0.75 + 1 + 1) / 3)
    share = dict(zip(*standings[None, "dqn"].profile[:2], strict=True))
    assert (share[0.0], share[0.25], share[0.5], share[1.0]) == (4 / 6, 4 / 6, 2 / 6, 0.0)
    profile = standings[None, "dqn"].profile
    assert (profile.low <= profile.share).all()
    assert (profile.share <= profile.high).all()
    charts = profile_charts([found])
    assert [chart.title for chart in charts] == ["all tasks and sizes", "all tasks, N=1", "all tasks, N=100"]
    assert [chart.place.buffer_size for chart in charts] == [None, 1, 100]
    assert [line.name for line in charts[0].lines] == ["dqn", "iq"]


def test_finals_and_areas_are_not_the_same():
    runs = [record(method=method, buffer_size=1) for method in ("dqn", "iq")]
    (found,) = compare(study(runs, [curves(run, **{"return": [[9.0, 200.0]] * 2}) for run in runs]))
    for one in found.standings:
        assert (one.final.value, one.auc.value) == (1.0, 0.5)
        assert one.profile.share[:-1].tolist() == [1.0] * 40, "the profile is that of the finals"
        assert one.profile.thresholds[[0, -1]].tolist() == [0.0, 1.0]


def test_rivals_are_corrected_for_each_other():
    values = {"iq": [200.0] * 4, "dqn": [9.0, 10.0, 11.0, 12.0], "srnn": [100.0, 101.0, 102.0, 103.0]}
    (found,) = compare(made(*[at(method, 1, some) for method, some in values.items()]))
    assert [one.rival for one in found.overall] == ["dqn"] * 3 + ["srnn"] * 3
    tested = [one for one in found.overall if one.measure != "fall"]
    for one in tested:
        assert one.p == pytest.approx(2 / 70, abs=0.002)
        assert one.adjusted == pytest.approx(6 * max(each.p for each in tested), abs=0.02)
    # 4 against 4 seeds have no p below 2/70, and 6 tests need .05 / 6; but the interval of the mean leaves out 0.
    assert {rank(one, found.tests) for one in tested} == {"differs, not confirmed"}
    assert headlines([found])[0].startswith(
        "Final return (1 cell, in percent of the range): iq ends higher than dqn (+99% ["
    )
    assert headlines([found])[0].endswith("P 1.00), which the corrected test does not confirm.")


def test_the_reference_is_iq_or_the_last_method_and_variants_stay_apart():
    found = compare(made(
        at("iq", 1, [1.0, 2.0]), at("dqn", 1, [1.0, 2.0]),
        at("dqn", 1, [1.0, 2.0], variant="b"), at("srnn", 1, [1.0, 2.0], variant="b"),
        at("iq", 1, [1.0, 2.0], variant="alone"),
    ))  # fmt: skip
    assert [(one.variant, one.reference, len(one.cells)) for one in found] == [("", "iq", 3), ("b", "srnn", 3)]
    first, second = improvement_tables(found)
    assert (first.title, second.title) == ("iq against each method", "srnn against each method, b")
    assert first.groups == [("final", 3), ("AUC", 3), ("deterioration", 3)]
    ((name, cells),) = [(row.name, [cell.text for cell in row.cells]) for row in second.sections[0].rows]
    assert (name, cells[:3]) == ("dqn", ["0% [-0.5%, +0.5%]", "0.50 [0.00, 1.00]", "1"])


def test_too_few_seeds_are_left_out_with_a_word():
    study_ = made(
        at("dqn", 1, [9.0, NAN]), at("iq", 1, [200.0, 190.0]),
        at("dqn", 100, [9.0, 10.0, NAN]), at("iq", 100, [200.0, 190.0, 180.0]),
        at("iq", 50_000, [200.0, 190.0]),
    )  # fmt: skip
    (found,) = compare(study_)
    assert [one.cell.buffer_size for one in found.cells] == [100] * 3
    assert found.overall[0].smallest == pytest.approx(1 / 10), "2 against 3 seeds"
    assert found.left_out == ["dqn on CartPole-v0, N=1"], "what was never run is not left out"
    assert notes([found])[0].endswith("known return: dqn on CartPole-v0, N=1.")
    assert standing_table([found]).sections[0].rows[0].cells[0].text.endswith("(1 of 3 cells)")


def test_a_single_seed_compares_nothing():
    one = made(at("dqn", 1, [9.0]), at("iq", 1, [200.0]))
    (found,) = compare(one)
    assert (found.cells, found.overall, found.standings) == ([], [], [])
    assert headlines([found]) == []
    for text in (render_page([one]), markdown_report(one)):
        assert "fewer than two seeds" in text


def test_tasks_without_a_scale_are_left_out_of_what_is_normalised():
    tasks = [at(m, 1, [1.0, 2.0], task=t) for t in ("Pong", "CartPole-v0") for m in ("dqn", "iq")]
    (found,) = compare(made(*tasks))
    assert len(found.cells) == 2 * 3
    assert [one.share is None for one in found.cells] == [True] * 3 + [False] * 3
    assert {one.cells for one in found.standings} == {1}
    assert any("No scale is known for Pong" in note for note in notes([found]))
    (none,) = compare(made(*tasks[:2]))
    assert none.standings == []
    assert "no scale" in render_page([made(*tasks[:2])]).lower()


def test_what_else_varies_makes_cells():
    varied = ("task", "method", "gamma")
    runs = [at(m, 1, [1.0, 2.0], gamma=g, varied=varied) for g in (0.5, 0.9) for m in ("dqn", "iq")]
    (found,) = compare(made(*runs))
    assert [one.cell.text for one in found.cells[::3]] == ["CartPole-v0, N=1, γ=0.5", "CartPole-v0, N=1, γ=0.9"]


def test_where_no_test_can_hold_after_correction_it_is_said():
    """2 against 2 seeds have no p below 2/6; on a task without a scale there is no interval to read instead."""
    few = made(at("dqn", 1, [1.0, 2.0], task="Pong"), at("iq", 1, [11.0, 12.0], task="Pong"))
    found = compare(few)
    assert [rank(one, found[0].tests) for one in found[0].overall] == ["differs, not confirmed"] * 2 + [
        "too few seeds to test"
    ]
    assert any(
        "no p below .333, and the least of the page's 3 tests must be below .017" in note for note in notes(found)
    )
    # A task without a range has its difference in returns.
    assert headlines(found)[2].startswith("Deterioration (1 cell): iq has too few seeds to be tested against dqn")
    assert headlines(found)[0] == (
        "Final return (1 cell): iq ends higher than dqn (+10.0 [+9.00, +11.0], P 1.00), "
        "which the corrected test does not confirm."
    )
    turned = compare(made(at("dqn", 1, [11.0, 12.0], task="Pong"), at("iq", 1, [1.0, 2.0], task="Pong")))
    assert "iq ends lower than dqn (-10.0 [-11.0, -9.00], P 0.00)" in headlines(turned)[0]


def test_studies_that_compare_no_methods_or_no_returns():
    iq = [at("iq", 1, [1.0, 2.0]), at("iq", 100, [1.0, 2.0])]
    assert compare(made(*iq)) == []
    assert compare(made(at("dqn", 1, [1.0, 2.0]), *iq, charts=("value_loss",))) == []
    assert "Which differences" not in render_page([made(*iq)])


def test_the_same_every_time_and_whatever_the_order():
    runs = [record(method=method, buffer_size=1) for method in ("dqn", "iq")]
    tables = [learned(run, 0.5, seeds=4, points=6) for run in runs]
    first, second = compare(study(runs, tables)), compare(study(runs, tables[::-1]))
    assert repr(first) == repr(second)


def test_markdown_by_hand(small):
    lines = markdown_report(small).splitlines()
    assert "### Which differences are real?" in lines
    assert any(line.startswith("Final return (2 cells, in percent of the range): ") for line in lines)
    assert any(line.startswith(r"|  |  | final difference \[95%\] | final P \[95%\] | final p | AUC") for line in lines)
    assert any(line.startswith(r"| all cells | dqn | +38% \[") for line in lines)
    assert any(
        line.startswith(r"| N=1 | iq | 0.92 \[0.75, 1.00\] | 0.92 \[0.75, 1.00\] | 0.00 (no spread)") for line in lines
    )
    assert any(
        re.match(r"\| CartPole-v0, N=1 \| dqn \| \*\*\+143.2\*\* \| \+75% .* \| 1.00 \|", line) for line in lines
    )
    assert any(line.startswith(r"| CartPole-v0, N=100 | dqn | 0.00 | 0% \[") for line in lines)


def test_what_is_told_apart_is_marked():
    low, high = [9.0, 10.0, 11.0, 12.0, 13.0], [100.0, 101.0, 102.0, 103.0, 104.0]
    found = compare(made(at("dqn", 1, low), at("iq", 1, high)))
    (row,) = improvement_tables(found)[0].sections[0].rows
    # 5 against 5 with nothing between: p = 2/252, three tests; the interval of P is exact, .025^(1/5).
    assert [cell.text for cell in row.cells[1:3]] == ["1.00 [0.48, 1.00]", ".024"]
    assert [cell.strong for cell in row.cells[:3]] == [True, False, True]
    assert headlines(found)[0].startswith(
        "Final return (1 cell, in percent of the range): iq ends higher than dqn (+48% ["
    )
    assert headlines(found)[2].startswith(
        "Deterioration (1 cell, in percent of the range): iq shows no clear difference from dqn"
    )
    turned = headlines(compare(made(at("dqn", 1, high), at("iq", 1, low))))
    assert turned[1].startswith("AUC (1 cell, in percent of the range): iq has a smaller AUC than dqn (-48% [")


@pytest.mark.parametrize(("own", "others"), [(2, 2), (2, 4), (5, 5)])
def test_the_smallest_p_is_that_of_the_clearest_difference(own, others):
    assert permutation_test(np.arange(own) + 100.0, np.arange(others)).p == pytest.approx(smallest_p(own, others))


def test_p_as_text():
    assert [p_text(p) for p in (0.00005, 0.0001, 0.0099, 0.04, 1.0)] == ["<.0001", ".0001", ".0099", ".040", "1"]


def test_names_are_escaped():
    odd = made(at("a<b>", 1, [1.0, 2.0], variant="x|y"), at("iq", 1, [1.0, 2.0], variant="x|y"))
    page = render_page([odd])
    assert "a<b>" not in page
    assert "iq against each method, x|y" in page
    assert r"a\<b\>" in markdown_report(odd).partition("Which differences")[2]
