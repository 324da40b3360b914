"""With which settings runs were made."""

import pytest
from made_up_studies import curves, record, study

from iqrl.experiments.report.page.render import render_page
from iqrl.experiments.report.settings_table import study_settings


def made(*runs):
    return study(list(runs), [curves(run, **{"return": [[1.0, 2.0]]}) for run in runs])


def test_what_all_have_is_said_once_and_what_differs_is_a_column():
    found = study_settings(
        made(
            record(method="dqn", gamma=0.9, double_q=True, learning_rate=0.001),
            record(method="iq", gamma=0.9, double_q=False, learning_rate=0.001, contexts=3),
            record(method="iq", gamma=0.9, double_q=False, learning_rate=0.001, contexts=3, task="Acrobot-v1"),
            record(method="iq", gamma=0.9, double_q=False, learning_rate=0.002, contexts=3, variant="tuned"),
        )
    )
    assert "γ=0.9" in found.shared
    assert "k=3" in found.shared, "all that have contexts have three"
    assert [column.name for column in found.table.columns] == ["double_q", "α", "where"]
    assert [(row.name, *[cell.text for cell in row.cells]) for row in found.table.sections[0].rows] == [
        ("dqn", "yes", "1e-3", "CartPole-v0, N=100"),
        ("iq", "no", "1e-3", "CartPole-v0, N=100; Acrobot-v1, N=100"),
        ("iq, tuned", "no", "2e-3", "CartPole-v0, N=100"),
    ]


OF_SOME_TASKS = {"torques": 7, "shaping_scale": 0.5, "sticky": 0.25}


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        ("CartPole-v0", ()),
        ("Pendulum-v0", ("torques",)),
        ("MountainCar", ("shaping_scale",)),
        ("MountainCar-v0", ()),
        ("MinAtar/Breakout-v1", ("sticky",)),
        ("ALE/Pong-v5", ("sticky",)),
        ("my_module:my_task", tuple(OF_SOME_TASKS)),
    ],
)
def test_a_setting_of_some_tasks_is_shown_for_runs_of_these_tasks(task, shown):
    page = render_page([made(record(task=task, **OF_SOME_TASKS))])
    for name, value in OF_SOME_TASKS.items():
        assert (f"{name}={value}" in page) is (name in shown)


def test_the_page_has_them():
    page = render_page([made(record(method="dqn", gamma=0.875), record(method="iq", gamma=0.875))])
    assert "<summary>Settings</summary>" in page
    assert "γ=0.875" in page
