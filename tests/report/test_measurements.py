"""What was measured, summed up per seed."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iqrl.report.measurements import interference_of, names_of


def test_numbers_of_a_seed_by_hand():
    """Four periods: nothing in the first; no update raised the error in the second."""
    nothing, cosine = np.nan, lambda value: [[1.0, value], [value, 1.0]]
    table = pl.DataFrame(
        {
            "seed": [3] * 4,
            "step": [100, 200, 300, 400],
            "aei": [nothing, -1.0, 2.0, 5.0],
            "negative_interference": [nothing, nothing, 2.0, 6.0],
            "raised_share": [nothing, 0.0, 0.5, 1.0],
            "squared_td_error": [nothing, 10.0, 20.0, 20.0],
            "update_interference": [nothing, 9.0, 1.0, 3.0],
            "aei_largest": [nothing, -0.5, 4.0, 8.0],
            "gradient_cosine": [cosine(-1.0), cosine(-1.0), cosine(0.2), cosine(-0.4)],
            "held_out_max_q": [1.0, 2.0, 3.0, 4.0],
            "action_gap": [0.0, 0.0, 0.0, 0.5],
            "dormant_units": [0.0, 0.0, 0.0, 0.25],
        }
    )
    (seed,) = interference_of(table)
    assert seed["seed"] == 3
    assert seed["aei"] == 2.0
    assert seed["negative_interference"] == 4.0
    assert seed["relative_interference"] == pytest.approx((2 / 20 + 6 / 20) / 2)
    assert seed["raised_share"] == 0.5
    assert seed["aei_largest"] == 8.0
    assert seed["interference_across_iterations"] == 3.0
    assert seed["lowest_gradient_cosine"] == pytest.approx(-0.1)
    assert (seed["held_out_max_q"], seed["action_gap"], seed["dormant_units"]) == (4.0, 0.5, 0.25)


def test_runs_of_one_name_are_told_apart_by_the_directory_above():
    assert names_of([Path("a/same"), Path("b/same"), Path("c/other")]) == ["a-same", "b-same", "other"]
