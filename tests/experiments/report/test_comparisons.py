"""Which differences are real, on numbers worked out by hand."""

import numpy as np
import pytest
from made_up_studies import curves, learned, record, study

from iqrl.experiments.report.charts import profile_charts
from iqrl.experiments.report.comparison_tables import (
    cell_table,
    headlines,
    improvement_table,
    notes,
    p_text,
    standing_table,
)
from iqrl.experiments.report.comparisons import compare
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
    one, hundred = found.cells
    assert (found.reference, one.rival, one.cell.text) == ("iq", "dqn", "CartPole-v0, N=1")
    assert one.difference == pytest.approx(552.25 / 3 - 122.5 / 3)
    assert one.p == pytest.approx(2 / 20), "3 against 3: the true split and its mirror, of 20"
    assert one.adjusted == pytest.approx(4 / 20), "the smaller of two counts twice"
    assert one.smallest == pytest.approx(2 / 20)
    assert one.improvement == (1.0, 1.0, 1.0)
    assert (hundred.difference, hundred.p, hundred.improvement.value) == (0.0, 1.0, 0.5)


def test_over_all_cells_by_hand(small):
    (found,) = compare(small)
    everything, one, hundred = found.overall
    assert [each.buffer_size for each in found.overall] == [None, 1, 100]
    assert everything.improvement.value == pytest.approx((1 + 0.5) / 2)
    assert (everything.cells, one.cells) == (2, 1)
    assert one.p == pytest.approx(0.1, abs=0.005), "within one cell it is the test of that cell"
    assert hundred.p == 1.0
    assert everything.adjusted == everything.p, "one rival needs no correction"


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
    assert [one.rival for one in found.overall] == ["dqn", "srnn"]
    for one in found.overall:
        assert one.p == pytest.approx(2 / 70, abs=0.002)
        assert one.adjusted == pytest.approx(2 * max(each.p for each in found.overall), abs=0.005)
    assert headlines([found]) == ["Over 1 cell, iq is not told apart from dqn and srnn."]


def test_the_reference_is_iq_or_the_last_method_and_variants_stay_apart():
    found = compare(made(
        at("iq", 1, [1.0, 2.0]), at("dqn", 1, [1.0, 2.0]),
        at("dqn", 1, [1.0, 2.0], variant="b"), at("srnn", 1, [1.0, 2.0], variant="b"),
        at("iq", 1, [1.0, 2.0], variant="alone"),
    ))  # fmt: skip
    assert [(one.variant, one.reference, len(one.cells)) for one in found] == [("", "iq", 1), ("b", "srnn", 1)]
    table = improvement_table(found)
    assert table.groups == [("measured (iq)", 2), ("b (srnn)", 2)]
    assert [(row.name, [cell.text for cell in row.cells]) for row in table.sections[0].rows] == [
        ("dqn", ["0.50 [0.00, 1.00]", "1", "0.50 [0.00, 1.00]", "1"])
    ]


def test_too_few_seeds_are_left_out_with_a_word():
    study_ = made(
        at("dqn", 1, [9.0, NAN]), at("iq", 1, [200.0, 190.0]),
        at("dqn", 100, [9.0, 10.0, NAN]), at("iq", 100, [200.0, 190.0, 180.0]),
        at("iq", 50_000, [200.0, 190.0]),
    )  # fmt: skip
    (found,) = compare(study_)
    assert [(one.cell.buffer_size, one.p) for one in found.cells] == [(100, pytest.approx(1 / 10))], "2 against 3 seeds"
    assert found.left_out == ["dqn on CartPole-v0, N=1"], "what was never run is not left out"
    (left, few) = notes([found])
    assert left.endswith("known return: dqn on CartPole-v0, N=1.")
    assert "no p below .100" in few
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
    assert len(found.cells) == 2
    assert {one.cells for one in found.standings} == {1}
    assert any("No scale is known for Pong" in note for note in notes([found]))
    (none,) = compare(made(*tasks[:2]))
    assert none.standings == []
    assert "no scale" in render_page([made(*tasks[:2])]).lower()


def test_what_else_varies_makes_cells():
    varied = ("task", "method", "gamma")
    runs = [at(m, 1, [1.0, 2.0], gamma=g, varied=varied) for g in (0.5, 0.9) for m in ("dqn", "iq")]
    (found,) = compare(made(*runs))
    assert [one.cell.text for one in found.cells] == ["CartPole-v0, N=1, γ=0.5", "CartPole-v0, N=1, γ=0.9"]


def test_where_no_cell_can_hold_after_correction_it_is_said():
    five = [at(m, n, np.arange(5.0) + 100 * (m == "iq")) for n in (1, 100, 1000, 5000, 50_000, 60_000, 70_000)
            for m in ("dqn", "iq")]  # fmt: skip
    (found,) = compare(made(*five))
    assert found.too_few_seeds
    assert "no p below .0079, and the least of 7 must be below .0071" in notes([found])[0]
    assert {one.p for one in found.cells} == {2 / 252}
    assert not compare(made(*five[:6]))[0].too_few_seeds, "3 × 2/252 is below .05"
    assert found.overall[0].adjusted < 0.05, "all cells together can"


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
    assert "Over 2 cells, iq is not told apart from dqn." in lines
    assert r"|  |  | P \[95%\] | p |" in lines
    assert any(line.startswith(r"| all cells | dqn | 0.75 \[") for line in lines)
    assert r"| N=1 | iq | 0.92 \[0.75, 1.00\] | 0.92 \[0.75, 1.00\] |" in lines
    assert r"| CartPole-v0, N=1 | dqn | +143.2 | .100 | .200 | 1.00 \[1.00, 1.00\] |" in lines
    assert r"| CartPole-v0, N=100 | dqn | 0.00 | 1 | 1 | 0.50 \[0.06, 0.94\] |" in lines


def test_what_is_told_apart_is_marked():
    far = made(at("dqn", 1, [9.0, 10.0, 11.0, 12.0, 13.0]), at("iq", 1, [100.0, 101.0, 102.0, 103.0, 104.0]))
    found = compare(far)
    ((_, texts),) = cell_table(found[0]).sections[0].rows
    assert [text.text for text in texts[:3]] == ["+91.0", ".0079 *", ".0079"]
    assert [text.strong for text in texts[:3]] == [True, False, True]
    assert headlines(found) == ["Over 1 cell, iq is above dqn."]
    turned = made(at("dqn", 1, [100.0, 101.0, 102.0, 103.0, 104.0]), at("iq", 1, [9.0, 10.0, 11.0, 12.0, 13.0]))
    assert headlines(compare(turned)) == ["Over 1 cell, iq is below dqn."]


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
