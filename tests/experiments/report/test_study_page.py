import json
import re

import numpy as np
import polars as pl
import pytest
from made_up_studies import METHODS, curves, learned, record, study, whole_report

from iqrl.colours import COLOURS, DARK_COLOURS, shared_colours
from iqrl.errors import BadInput
from iqrl.experiments.report.arrangement import arrange
from iqrl.experiments.report.cells import count_verdicts, detail_table, highest_table, judge, summarise_runs
from iqrl.experiments.report.charts import (
    BarChart,
    CurveChart,
    MatrixChart,
    axis_kind,
    charts_of,
)
from iqrl.experiments.report.figures.curves import draw_study
from iqrl.experiments.report.page.render import render_page
from iqrl.experiments.report.write import latex_report, markdown_report, write_report

ODD = "my_module:x<y>"
"""the name of a method that HTML, Markdown and LaTeX would all misread"""


@pytest.fixture
def small():
    """Two methods on CartPole-v0 with a buffer of 1: the paper prints 106.0 and 200.0. Eight seeds have a verdict."""
    dqn, iq = record(method="dqn", buffer_size=1), record(method="iq", buffer_size=1)
    tables = [
        curves(dqn, **{"return": [[10.0, 100.0], [20.0, 120.0], [30.0, float("nan")]] + [[20.0, 110.0]] * 5}),
        curves(iq, **{"return": [[50.0, 150.0], [60.0, 160.0], [70.0, 170.0]] + [[60.0, 160.0]] * 5}),
    ]
    return study([dqn, iq], tables)


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))


# Summaries


def test_summaries_by_hand(small):
    dqn, iq = summarise_runs(small)
    assert (dqn.printed, dqn.highest, dqn.verdict.name) == (106.0, 110.0, "not told apart")
    assert (iq.printed, iq.highest, iq.verdict.name) == (200.0, 160.0, "below")
    # Of five of eight seeds, the mean of the last point is 158 to 162; stretched by √(13/3).
    assert iq.verdict.expected == pytest.approx((160.0, 160 - 2 * (13 / 3) ** 0.5, 160 + 2 * (13 / 3) ** 0.5))
    assert dqn.finals == (100.0, 120.0, None, *[110.0] * 5)
    assert dqn.final.value == 110.0
    assert 100.0 <= dqn.final.low < 110.0 < dqn.final.high <= 120.0
    assert iq.auc.value == 110.0
    assert iq.fall.value == 0.0
    assert iq.seeds == tuple(range(8))


def test_a_run_in_which_no_episode_ended():
    run = record(method="dqn", buffer_size=1)
    unknown = study([run], [curves(run, **{"return": [[None, float("nan")]]}).with_columns(pl.col("return"))])
    (cell,) = summarise_runs(unknown)
    assert (cell.highest, cell.final, cell.auc, cell.verdict) == (None, None, None, None)
    assert "| CartPole-v0 | dqn | 106.0 | none |" in markdown_report(unknown)
    assert data_of(render_page([unknown]))["runs"][run.id]["values"]["return"] == [[None, None]]


@pytest.mark.parametrize(("printed", "word"), [(150.0, "above"), (156.0, "not told apart"), (170.0, "below")])
def test_a_printed_number_is_judged_by_its_spread_and_ours(printed, word):
    returns = np.array([[10.0, value] for value in (150, 155, 160, 160, 160, 160, 165, 170)])
    assert judge(returns, printed).name == word


def test_more_seeds_judge_more_sharply():
    """What five runs of the same kind print lies within the limits 19 times of 20, whatever the number of our seeds."""
    draw = np.random.default_rng(0)
    for seeds in (10, 30):
        inside = 0
        for _ in range(200):
            ours, theirs = (draw.normal(100, 20, (n, 12)) for n in (seeds, 5))
            inside += judge(ours, float(theirs.mean(axis=0).max())).name == "not told apart"
        assert 0.88 <= inside / 200 <= 0.99


def test_no_verdict_without_enough_seeds_or_a_printed_number():
    returns = np.full((8, 3), 100.0)
    assert judge(returns, 100.0).name == "not told apart"
    assert judge(returns[:7], 100.0) is None
    assert judge(returns, None) is None


def test_the_papers_number_stands_beside_runs_with_its_settings_and_length_only():
    given = {"task": "CartPole-v0", "method": "iq", "preset": "paper", "seeds": 8}
    for said, expected in (
        (given, True), (given | {"steps": 1000}, False), (given | {"learning_rate": 0.1}, False),
        ({"task": "CartPole-v0"}, False),
    ):  # fmt: skip
        run = record(method="iq")._replace(given=said)
        (cell,) = summarise_runs(study([run], [curves(run, **{"return": [[1.0, 2.0]] * 8})]))
        assert (cell.verdict is not None) is expected
        assert cell.printed == (200.0 if expected else None)


def test_never_learned_is_told_apart_from_collapsed():
    run = record(seeds=4)
    rows = [[22.0, 40.0, 30.0], [22.0, 190.0, 60.0], [22.0, 190.0, 180.0], [22.0, 66.6, 66.6]]
    (cell,) = summarise_runs(study([run], [curves(run, **{"return": rows})]))
    assert cell.fates == ("never learned", "collapsed", "held", "held")
    assert cell.falls == (10.0, 130.0, 10.0, 0.0)
    table = detail_table([cell])
    assert table.sections[0].rows[0].cells[6].text == "1 of 4 never learned, 1 of 4 collapsed"


def test_a_study_that_varies_more_than_the_table_is_not_compared_with_it():
    run = record(varied=("task", "contexts"), contexts=5, buffer_size=1)
    (cell,) = summarise_runs(study([run], [learned(run, 0.9)]))
    assert cell.printed is None


# Arrangement


def test_what_varies_makes_the_lines():
    name = lambda **settings: [
        (one.place.title, one.label) for one in arrange(study([record(**settings)], [pl.DataFrame()]))
    ]
    assert name() == [("CartPole-v0, N=100", "iq")]
    assert name(varied=("task", "contexts"), contexts=4) == [("CartPole-v0, N=100", "k=4")]
    assert name(varied=("method", "gamma"), gamma=0.5) == [("CartPole-v0, N=100", "iq γ=0.5")]
    assert name(varied=("buffer_size",), buffer_size=50_000) == [("CartPole-v0", "N=50,000")]
    assert name(varied=()) == [("CartPole-v0, N=100", "iq")]


def test_two_runs_of_one_name_are_refused():
    runs = [record(gamma=gamma) for gamma in (0.9, 0.99)]
    with pytest.raises(BadInput, match="study table1 has two runs for iq on CartPole-v0, N=100"):
        arrange(study(runs, [pl.DataFrame()]))


def test_charts_of_every_kind():
    main, sweep, analysis = whole_report(("CartPole-v0",), seeds=2, points=5)
    assert [chart.title for chart in charts_of(main)[:3]] == [f"CartPole-v0, N={n}" for n in ("1", "100", "50,000")]
    assert [line.name for line in charts_of(sweep)[0].lines] == [f"k={k}" for k in range(1, 6)]
    kinds = [type(chart) for chart in charts_of(analysis)]
    assert [kinds.count(kind) for kind in (CurveChart, BarChart, MatrixChart)] == [2 + len(METHODS), 3, 2]
    heads = next(chart for chart in charts_of(analysis) if chart.metric == "held_out_max_q_heads")
    assert [line.head for line in heads.lines] == [0, 1, 2]


def test_axes():
    assert axis_kind("value_loss", pl.Series([0.0, 1.0, 1.0, 1000.0])) == "log"
    assert axis_kind("aei", pl.Series([-1.0, 1.0, 1.0, 1000.0])) == "signed log"
    assert axis_kind("return", pl.Series([1.0, 1.0, 1.0, 1000.0])) == "linear"
    assert axis_kind("held_out_max_q_heads", pl.Series([[1.0, 2.0], [None, float("nan")]])) == "linear"


def test_colours_are_shared_and_distinct_within_a_study():
    chosen = shared_colours([METHODS, ("iq", "iq-no-clustering", "dqn"), [f"k={k}" for k in range(8)]])
    for group in (METHODS, ("iq", "iq-no-clustering", "dqn"), [f"k={k}" for k in range(8)]):
        assert len({chosen[name] for name in group}) == len(group)


@pytest.mark.parametrize(("palette", "background"), [(COLOURS, "#ffffff"), (DARK_COLOURS, "#16191d")])
def test_every_colour_is_seen_on_its_background(palette, background):
    def luminance(colour):
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    for colour in palette:
        low, high = sorted([luminance(colour), luminance(background)])
        assert (high + 0.05) / (low + 0.05) >= 2.99


# Tables


def test_highest_returns_by_hand(small):
    table = highest_table(summarise_runs(small))
    assert [(column.group, column.name) for column in table.columns] == [("N=1", "paper"), ("N=1", "measured")]
    shown = [(row.name, [(cell.text, cell.strong) for cell in row.cells]) for row in table.sections[0].rows]
    assert shown == [
        ("dqn", [("106.0", False), ("110.0", False)]),
        ("iq", [("200.0", True), ("160.0", True)]),
    ]
    assert count_verdicts(summarise_runs(small)) == {"not told apart": 1, "above": 0, "below": 1}


def test_variants_are_columns_and_ties_are_all_bold():
    runs = [record(method="dqn"), record(method="iq"), record(method="dqn", variant="tuned")]
    tables = [curves(run, **{"return": [[value]]}) for run, value in zip(runs, (200.0, 200.01, 150.0), strict=True)]
    table = highest_table(summarise_runs(study(runs, tables)))
    assert [column.name for column in table.columns] == ["paper", "measured", "tuned"]
    rows = table.sections[0].rows
    assert [[cell.strong for cell in row.cells][1:] for row in rows] == [[True, False], [True, False]]
    assert [row.cells[2].text for row in rows] == ["150.0", ""]


def test_one_seed_has_no_interval():
    run = record()
    table = detail_table(summarise_runs(study([run], [curves(run, **{"return": [[1.0, 2.0]]})])))
    texts = [cell.text for cell in table.sections[0].rows[0].cells[3:]]
    assert texts == ["2.00", "1.50", "0.00", "1 of 1 never learned", "2.00"]


def test_an_interval_without_a_width_is_said_in_words():
    run = record()
    table = detail_table(summarise_runs(study([run], [curves(run, **{"return": [[100.0, 200.0]] * 4})])))
    assert [cell.text for cell in table.sections[0].rows[0].cells[3:6]] == [
        "200.0 (no spread)", "150.0 (no spread)", "0.00 (no spread)",
    ]  # fmt: skip


def test_markdown_by_hand(small):
    lines = markdown_report(small._replace(unfinished=1)).splitlines()
    assert "| task |  | N=1 paper | N=1 measured |" in lines
    assert "| --- | --- | ---: | ---: |" in lines
    assert "| CartPole-v0 | dqn | 106.0 | 110.0 ≈ |" in lines
    assert "| CartPole-v0 | iq | **200.0** | **160.0** ▼ |" in lines
    assert "1 planned run is not finished and left out." in lines
    assert any(line.startswith("| CartPole-v0 | N=1 | dqn |  | 110.0 [") for line in lines)
    assert any("no spread" in line for line in lines)


def test_latex_by_hand(small):
    lines = latex_report(small).splitlines()
    assert r"\begin{tabular}{llrr}" in lines
    assert r"&  & \multicolumn{2}{c}{$N=1$} \\" in lines
    assert r"\cmidrule(lr){3-4}" in lines
    assert r"CartPole-v0 & dqn & 106.0 & 110.0 $\approx$ \\" in lines
    assert r"& iq & \textbf{200.0} & \textbf{160.0} $\blacktriangledown$ \\" in lines
    assert lines.count(r"\begin{table}") == lines.count(r"\end{table}") == 2


def test_negative_returns_have_a_minus():
    run = record(task="Pendulum-v0", method="dqn")
    of_pendulum = study([run], [curves(run, **{"return": [[-400.0], [-380.0]]})])
    assert "$-$375.2 & $-$390.0" in latex_report(of_pendulum)
    assert "−390.0" in render_page([of_pendulum])


@pytest.fixture
def odd():
    run = record(method=ODD, variant="50% & more|$")
    return study([run], [learned(run, 0.5)], title="a <b> & {c}", about="</script><script>alert(1)</script>")


def test_names_are_escaped(odd):
    assert markdown_report(odd).count(r"my\_module:x\<y\>") == 2
    assert r"50% & more\|$" in markdown_report(odd)
    text = latex_report(odd)
    assert r"my\_module:x\textless{}y\textgreater{}" in text
    assert r"50\% \& more\textbar{}\$" in text
    assert r"a \textless{}b\textgreater{} \& \{c\}" in text
    page = render_page([odd])
    assert "x<y>" not in page
    assert "<script>alert" not in page
    assert "my_module:x&lt;y&gt;" in page
    assert data_of(page)["charts"][0]["lines"][0]["name"] == ODD


# The page


def test_the_page_needs_nothing_from_anywhere():
    page = render_page(whole_report(("CartPole-v0",), seeds=2, points=5))
    assert "://" not in page
    assert not re.search(r"<(img|iframe|object|embed)|@import|url\(|src=", page)
    assert re.findall(r'<link[^>]*href="([^"]*)"', page) == ["data:,"]


def test_the_page_is_the_same_every_time(small):
    assert render_page([small]) == render_page([small])


def test_a_large_report_stays_small():
    varied = ("gamma", "buffer_size")
    runs = [record(gamma=i / 50, buffer_size=n, seeds=10, varied=varied) for i in range(50) for n in (1, 100, 50_000)]
    large = study(runs, [learned(run, 0.7, seeds=10, points=50) for run in runs])
    assert len(render_page([large]).encode()) < 900_000


def test_numbers_on_the_page_are_those_of_the_curves(small):
    data = data_of(render_page([small]))
    dqn = data["runs"][small.runs[0].id]
    assert dqn["values"]["return"] == [[10, 100], [20, 120], [30, None], *[[20, 110]] * 5]
    assert data["steps"][dqn["steps"]] == [200_000, 400_000]
    assert dqn["seeds"] == list(range(8))


def test_a_run_of_two_studies_is_stored_once(small):
    data = data_of(render_page([small, small._replace(name="again")]))
    assert len(data["runs"]) == 2
    assert [chart["metric"] for chart in data["charts"]] == ["return", "profile"] * 2


def test_the_head_says_what_was_run(small):
    page = render_page([small._replace(unfinished=4)])
    for words in ("2, and 4 planned but not finished", "4,000,000 environment steps", "0123456789abcdef", "Some CPU"):
        assert words in page


def test_seeds_of_different_lengths_are_drawn_as_far_as_they_go(tmp_path):
    run = record()
    rows = curves(run, **{"return": [[1.0, 2.0], [3.0, 4.0]]})
    short = study([run], [rows[:3]], charts=("return",))
    assert data_of(render_page([short]))["runs"][run.id]["values"]["return"] == [[1, 2], [3, None]]


# Files


def test_a_report_is_a_page_tables_and_figures(tmp_path):
    studies = whole_report(("CartPole-v0",), seeds=2, points=5)[2:]
    runs = studies[0].runs[:2]
    few = study(runs, [studies[0].curves.filter(pl.col("run").is_in([run.id for run in runs]))], name="a/b")
    paths, findings = write_report([few], tmp_path / "new" / "report")
    assert len(findings) == 3
    assert findings[0].startswith(
        "Final return (1 cell, in percent of the range): srnn has too few seeds to be tested against dqn"
    )
    names = [str(path.relative_to(tmp_path / "new" / "report")) for path in paths]
    assert names[:3] == ["report.html", "tables/a-b.md", "tables/a-b.tex"]
    assert {"figures/a-b-return.pdf", "figures/a-b-return.svg", "figures/a-b-context_matrix.pdf"} <= set(names)
    assert all(path.stat().st_size > 500 for path in paths)
    assert not [path for path in (tmp_path / "new").rglob(".*")]


def test_figures_of_heads_and_odd_names(tmp_path, odd):
    run = odd.runs[0]
    paths = draw_study(odd._replace(charts=("held_out_max_q_heads", "absent")), tmp_path)
    assert [path.suffix for path in paths] == [".pdf", ".svg"]
    assert "head 2" in paths[1].read_text()
    assert run.config["method"].replace("<", "&lt;").replace(">", "&gt;") in paths[1].read_text()


def test_bands_of_figures_are_what_was_asked_for(tmp_path, small):
    drawn = {}
    for spread in ("deviation", "interval"):
        (tmp_path / spread).mkdir()
        drawn[spread] = draw_study(small, tmp_path / spread, formats=[".svg"], spread=spread)[0].read_text()
    assert drawn["deviation"] != drawn["interval"]


def test_nothing_to_report_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no finished runs"):
        write_report([study([], [pl.DataFrame()])], tmp_path)


def test_a_study_without_finished_runs_is_named_on_the_page(small):
    empty = study([], [small.curves.clear()], title="Not yet", unfinished=7)
    page = render_page([small, empty])
    assert "Not yet" in page
    assert "7 planned runs are not finished" in page
