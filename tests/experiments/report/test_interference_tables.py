"""Interference of a study: numbers of a seed by hand, and one method beside another."""

import numpy as np
import polars as pl
import pytest
from made_up_studies import curves, record, study

from iqrl.experiments.report.cells import summarise_runs
from iqrl.experiments.report.interference_tables import interference_tables, summarise_interference
from iqrl.experiments.report.page.render import render_page
from iqrl.experiments.report.write import markdown_interference


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
    (seed,) = summarise_interference(table)
    assert seed["seed"] == 3
    assert seed["aei"] == 2.0
    assert seed["negative_interference"] == 4.0
    assert seed["relative_interference"] == pytest.approx((2 / 20 + 6 / 20) / 2)
    assert seed["raised_share"] == 0.5
    assert seed["relative_aei"] == pytest.approx((-1 / 10 + 2 / 20 + 5 / 20) / 3)
    assert seed["aei_largest"] == 8.0
    assert seed["interference_across_iterations"] == 3.0
    assert seed["lowest_gradient_cosine"] == pytest.approx(-0.1)
    assert (seed["held_out_max_q"], seed["action_gap"], seed["dormant_units"]) == (4.0, 0.5, 0.25)


def measured(run, each):
    """Two periods per seed that are alike; AEI and tail are as large as the negative interference."""
    whole = lambda values: [[value] * 2 for value in values]
    same = {name: whole(each) for name in ("aei", "negative_interference", "update_interference", "aei_largest")}
    rest = {
        name: whole([0.5] * len(each)) for name in ("raised_share", "held_out_max_q", "action_gap", "dormant_units")
    }
    cosines = [[[[1.0, 0.25], [0.25, 1.0]]] * 2] * len(each)
    errors = whole([10.0] * len(each))
    columns = same | rest | {"gradient_cosine": cosines, "squared_td_error": errors}
    return curves(run, **columns, **{"return": whole([100.0] * len(each))})


@pytest.fixture
def compared():
    """IQ has less than DQN with both buffers, all seeds below; Stream Q scales its rewards."""
    runs = [
        (record(method="iq", buffer_size=1, seeds=4), [1.0, 2.0, 3.0, 4.0]),
        (record(method="iq", seeds=4), [0.1, 0.2, 0.3, 0.4]),
        (record(method="dqn", buffer_size=1, seeds=4), [5.0, 6.0, 7.0, 8.0]),
        (record(method="dqn", seeds=4), [0.5, 0.6, 0.7, 0.8]),
        (record(method="stream-q", buffer_size=1, seeds=4, normalise=True), [0.0, 0.0, 0.0, 0.0]),
    ]
    return study([run for run, _ in runs], [measured(*both) for both in runs])


def test_what_was_measured_by_hand(compared):
    table, beside = interference_tables(compared, summarise_runs(compared))
    rows = {row.name: [cell.text for cell in row.cells] for section in table.sections for row in section.rows}
    assert rows["IQ, N=1"][0].startswith("2.5 [")
    assert rows["IQ, N=1"][1].startswith("25% [")
    assert rows["DQN, N=100"][3].startswith("6.5% [")
    assert rows["DQN, N=100"][4] == "0.25 (no spread)"
    rows = {row.name: [cell.text for cell in row.cells] for section in beside.sections for row in section.rows}
    assert rows["dqn"][0] == "2 of 2"
    # (1 * 2 * 3 * 4 / (5 * 6 * 7 * 8)) ** (1/4), in both cells.
    assert rows["dqn"][1].startswith("0.35 [")
    assert rows["dqn"][2] == "1.00"
    # Shares can be compared with a method that scales its rewards, and what has a unit cannot.
    assert rows["stream-q"][:4] == ["", "", "", ""]
    # Its shares are 0, which count as half of the least of IQ's: (1 * 2 * 3 * 4) ** (1/4) / 0.5.
    assert rows["stream-q"][4] == "0 of 1"
    assert rows["stream-q"][5].startswith("4.4 [")
    assert rows["stream-q"][6] == "0.00"


def test_a_report_has_the_tables_where_something_was_measured(compared):
    text, page = "Interference of iq beside the others", render_page([compared])
    assert text in "\n".join(markdown_interference(compared, summarise_runs(compared)))
    assert text in page
    run, *rest = compared.runs
    some = study(
        [run, *rest], [measured(run, [1.0, 2.0, 3.0, 4.0]), *[curves(it, **{"return": [[1.0]]}) for it in rest]]
    )
    (table,) = interference_tables(some, summarise_runs(some))
    assert [row.name for section in table.sections for row in section.rows] == ["IQ, N=1"]
    plain = compared._replace(curves=compared.curves.drop("aei"))
    assert interference_tables(plain, summarise_runs(plain)) == []
    assert text not in render_page([plain])


def test_training_on_one_context_by_hand():
    """Two seeds, two contexts; the second seed has one context only."""
    per_seed = [[[-0.5, 0.2], [4.0, -0.1]], [[-0.3, np.nan], [np.nan, np.nan]]]
    run = record(analyses={"context_matrix": {"per_seed": per_seed}}, seeds=2)
    made = study([run], [curves(run, **{"return": [[1.0, 2.0], [1.0, 2.0]]})])
    (table,) = interference_tables(made, summarise_runs(made))
    ((row,),) = [section.rows for section in table.sections]
    assert [cell.text for cell in row.cells] == ["-30%", "+210%", "2 of 2", "+400%", "+400% to +400%"]
    alone = record(analyses={"context_matrix": {"per_seed": [[[-0.5]], [[None]]]}}, seeds=2)
    made = study([alone], [curves(alone, **{"return": [[1.0, 2.0], [1.0, 2.0]]})])
    assert interference_tables(made, summarise_runs(made)) == []
