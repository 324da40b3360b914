"""What was held to the end, by hand."""

from made_up_studies import curves, record, study

from iqrl.experiments.report.cells import summarise_runs
from iqrl.experiments.report.held import held_table
from iqrl.experiments.report.table import markdown


def test_losses_by_hand():
    """CartPole-v0 goes from 9 to 200: the second seed ends 38.2 below its best, 20% of that range."""
    run = record(method="local-q", buffer_size=1, seeds=2, varied=("task", "method"))
    other = record(method="dqn", task="a task without a range", seeds=2)
    returns = [[10.0, 200.0, 200.0], [10.0, 198.2, 160.0]]
    made = study([run, other], [curves(run, **{"return": returns}), curves(other, **{"return": returns})])
    lines = markdown(held_table(summarise_runs(made))).splitlines()
    assert lines[2:] == ["| CartPole-v0 | local-q | 400,000 | 2 | 180.0 | 160.0 | 10.0% | 20.0% | 1 |"]
