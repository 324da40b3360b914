"""The paper's tables, computed again."""

from collections import Counter

import numpy as np
import pytest

from iqrl.reproduction.printed import Pair, Setting
from iqrl.reproduction.tables import count_false_alarms


def test_the_tables_come_out_but_for_one_cell_each(found):
    wrong = lambda cells: {cell.setting: round(cell.computed, 3) for cell in cells if not cell.matches}
    assert len(found.highest) == len(found.deterioration) == 72
    assert wrong(found.highest) == {Setting("Freeway", 10_000, "DQN+SRNN"): 1.896}
    assert wrong(found.deterioration) == {Setting("Freeway", 10_000, "Rainbow"): 0.041}
    assert wrong(found.averages) == {Setting("Average", 10_000, "Rainbow"): 0.119}  # by the cell above


def test_all_p_values_come_out_of_pooled_points(found):
    assert Counter(test.printed_from for test in found.tests) == {"smoothed": 34, "both": 2, "raw": 12}
    raw = [test.pair for test in found.tests if test.printed_from == "raw"]
    assert sum(pair.game == "Breakout" for pair in raw) == 8
    assert Pair("Freeway", 1_000_000, "DQN+IQ-RE", "DQN") in raw
    marks = [(test.printed.significant, test.pooled_p < 0.01) for test in found.tests]
    assert Counter(marks) == {(True, True): 30, (False, False): 18}
    assert all(test.better != test.printed.worse for test in found.tests if test.printed.significant)


def test_what_exact_tests_leave_of_them(found):
    reached = [test for test in found.tests if test.permutation.p < 0.01]
    assert {test.pair.baseline for test in reached} == {"Rainbow+SRNN"}
    assert [test.better for test in reached].count(False) == 1
    assert len(reached) == sum(test.described_p < 0.01 for test in found.tests) == 4
    assert min(test.permutation.p for test in found.tests) == pytest.approx(2 / 252)
    assert sum(test.permutation.p < 0.05 for test in found.tests) == 9
    assert not any(test.holm_p < 0.05 for test in found.tests)
    assert all(test.permutation.exact and test.permutation.splits == 252 for test in found.tests)


def test_over_all_games(found):
    whole = {one.baseline: one for one in found.overall if one.buffer_size is None}
    values = {name: round(one.improvement.value, 3) for name, one in whole.items()}
    assert values == {"DQN": 0.632, "DQN+SRNN": 0.595, "Rainbow": 0.643, "Rainbow+SRNN": 0.7}
    assert whole["Rainbow+SRNN"].permutation.p < 0.001
    assert 0.05 < whole["DQN+SRNN"].permutation.p < 0.15
    single = [test.improvement.value for test in found.tests if test.pair.baseline == "Rainbow"]
    assert np.mean(single) == pytest.approx(whole["Rainbow"].improvement.value)


def test_what_srnn_adds_to_its_base(found):
    whole = {one.baseline: one for one in found.srnn if one.buffer_size is None}
    assert {name: round(one.improvement.value, 2) for name, one in whole.items()} == {"DQN": 0.57, "Rainbow": 0.45}
    assert all(one.permutation.p > 0.15 for one in found.srnn)


def test_the_papers_test_gives_false_alarms_on_runs_of_one_method(found):
    assert found.false_alarms == (630, 197)


def test_false_alarms_of_curves_without_a_level_of_their_own_are_rare():
    """Points that are independent are the only ones that may be pooled."""
    generator = np.random.default_rng(0)
    runs = {Setting("Pong", size, "DQN"): generator.normal(size=(5, 200)) for size in range(20)}
    noise = count_false_alarms(runs)
    assert noise.tests == 200
    assert noise.share <= 0.04
    levels = {setting: curves + generator.normal(size=(5, 1)) for setting, curves in runs.items()}
    assert count_false_alarms(levels).share > 0.5
    runs[Setting("Pong", 0, "DQN")][1] = 0
    assert count_false_alarms(runs).tests == 190
