"""All tasks together, by hand."""

from made_up_studies import curves, record, study

from iqrl.experiments.report.cells import summarise_runs
from iqrl.experiments.report.scores import scores_table
from iqrl.experiments.report.table import markdown


def test_means_over_tasks_by_hand():
    """CartPole-v0 goes from 9 to 200, MountainCar-v0 from -200 to -100; a line without both tasks is left out."""
    of = lambda task, bins: record(method="local-q", task=task, bins=bins, seeds=1, varied=("task", "bins"))
    runs = [
        of("CartPole-v0", 8),
        of("MountainCar-v0", 8),
        of("CartPole-v0", 16),
        of("MountainCar-v0", 16),
        of("CartPole-v0", 4),
    ]
    values = [200.0, -150.0, 104.5, -100.0, 200.0]
    made = study(runs, [curves(run, **{"return": [[it, it]]}) for run, it in zip(runs, values, strict=True)])
    assert markdown(scores_table(summarise_runs(made))).splitlines() == [
        "| run | final CartPole-v0 | final MountainCar-v0 | mean final | mean AUC |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| bins=8 | 200.0 | -150.0 | **75.0%** | **75.0%** |",
        "| bins=16 | 104.5 | -100.0 | **75.0%** | **75.0%** |",
    ]


def test_rows_of_methods_have_the_names_of_other_tables():
    varied = ("method", "buffer_size")
    runs = [
        record(method="dqn", buffer_size=size, seeds=1, varied=varied, variant=variant)
        for size, variant in [(100, ""), (100, "tuned"), (50_000, "tuned")]
    ]
    made = study(runs, [curves(run, **{"return": [[200.0, 200.0]]}) for run in runs])
    rows = [row.name for row in scores_table(summarise_runs(made)).sections[0].rows]
    assert rows == ["DQN, N=100", "DQN, N=100, tuned", "DQN, N=50,000, tuned"]
