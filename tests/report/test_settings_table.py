"""With which settings runs were made."""

from made_up_studies import curves, record, study

from iqrl.report.page.render import render_page
from iqrl.report.settings_table import settings_table


def made(*runs):
    return study(list(runs), [curves(run, **{"return": [[1.0, 2.0]]}) for run in runs])


def test_what_all_have_is_said_once_and_what_differs_is_a_column():
    table = settings_table(
        made(
            record(method="dqn", gamma=0.9, double_q=True, learning_rate=0.001),
            record(method="iq", gamma=0.9, double_q=False, learning_rate=0.001, contexts=3),
            record(method="iq", gamma=0.9, double_q=False, learning_rate=0.001, contexts=3, task="Acrobot-v1"),
            record(method="iq", gamma=0.9, double_q=False, learning_rate=0.002, contexts=3, variant="tuned"),
        )
    )
    assert "γ=0.9" in table.common
    assert "k=3" in table.common, "all that have contexts have three"
    assert table.columns == ["double_q", "α"]
    assert {(row.label, row.variant, *row.values) for row in table.rows} == {
        ("dqn", "", "yes", "0.001"), ("iq", "", "no", "0.001"), ("iq", "tuned", "no", "0.002"),
    }  # fmt: skip
    plain = next(row for row in table.rows if row.label == "iq" and not row.variant)
    assert plain.where == "CartPole-v0, N=100; Acrobot-v1, N=100"


def test_the_page_has_them():
    page = render_page([made(record(method="dqn", gamma=0.875), record(method="iq", gamma=0.875))])
    assert "<summary>Settings</summary>" in page
    assert "γ=0.875" in page
