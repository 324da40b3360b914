"""Names of runs, and studies that are shown beside another."""

import polars as pl
from made_up_studies import curves, record, study

from iqrl.experiments.report.arrangement import arrange, common_settings, distinct_labels, gather_studies, plot_labels
from iqrl.experiments.report.cells import highest_table, summarise_runs
from iqrl.experiments.report.charts import charts_of
from iqrl.experiments.report.figures.curves import draw_study
from iqrl.experiments.report.page.render import hidden_variants, render_page
from iqrl.make_run import resolve
from iqrl.training.run_directory import describe


def made(name, runs, beside="", **changes):
    tables = [curves(run, **{"return": [[1.0, 2.0], [3.0, 4.0]]}) for run in runs]
    content = {"beside": beside} if beside else {}
    return study(runs, tables, name=name, title=f"Title of {name}", about="", content=content, **changes)


def base(**changes):
    return made("table1", [record(method=method) for method in ("dqn", "iq")], **changes)


def test_runs_become_variants_of_the_base():
    other = made("rule", [record("rule", variant="single", method="dqn", double_q=False)], "table1")
    tuned = made("tuned", [record("tuned", varied=(), method="iq", learning_rate=0.1)], "table1", charts=("aei",))
    (joined,) = gather_studies([other, base(), tuned])
    assert joined.name == "table1"
    assert [run.variant for run in joined.runs] == ["", "", "single", "Title of tuned"]
    assert joined.charts == ("return", "aei")
    assert "Title of rule" in joined.about
    table = highest_table(summarise_runs(joined))
    assert [column.name for column in table.columns] == ["paper", "measured", "single", "Title of tuned"]
    assert [[cell.text for cell in row.cells[1:]] for row in table.sections[0].rows] == [
        ["3.00", "3.00", ""], ["3.00", "", "3.00"],
    ]  # fmt: skip


def test_without_its_base_a_study_stands_alone():
    other = made("rule", [record("rule", method="dqn")], "table1")
    assert gather_studies([other]) == [other]
    assert gather_studies([other, made("table2", [record("table2")])])[0] is other


def test_a_run_that_both_have_is_there_once():
    shared = record(method="iq")
    other = made("again", [shared._replace(study="again"), record("again", method="dqn", double_q=False)], "table1")
    (joined,) = gather_studies([base(), other])
    assert [(run.config["method"], run.variant) for run in joined.runs] == [
        ("dqn", ""), ("iq", ""), ("iq", "Title of again"), ("dqn", "Title of again"),
    ]  # fmt: skip
    assert joined.curves.height == 3 * 4
    assert joined.curves.select("run", "seed", "step").is_unique().all()


def test_a_variant_of_another_meaning_gets_the_title_of_its_study():
    first = made("a", [record("a", variant="tuned", method="dqn", gamma=0.9)], "table1")
    same = made("b", [record("b", variant="tuned", method="dqn", gamma=0.9)], "table1")
    other = made("c", [record("c", variant="tuned", method="dqn", gamma=0.5)], "table1")
    (joined,) = gather_studies([base(), first, same, other])
    assert [run.variant for run in joined.runs] == ["", "", "tuned", "Title of c: tuned"]


def test_buffer_sizes_are_columns_there_also_where_they_would_be_lines_alone():
    other = made("sizes", [record("sizes", varied=("buffer_size",), method="iq", gamma=0.9)], "table1")
    (joined,) = gather_studies([base(), other])
    assert [column.group for column in highest_table(summarise_runs(joined)).columns] == ["N=100"] * 3


def test_chains_and_circles():
    third = made("third", [record("third", method="iq", gamma=0.5)], "second")
    second = made("second", [record("second", method="iq", gamma=0.9)], "table1")
    assert [one.name for one in gather_studies([third, second, base()])] == ["table1"]
    circle = [made("a", [record("a")], "b"), made("b", [record("b")], "a"), made("c", [record("c")], "c")]
    assert [one.name for one in gather_studies(circle)] == ["a", "b", "c"]
    once = gather_studies([base(), second])
    assert gather_studies(once)[0] is once[0]


def test_what_is_not_finished_counts_once():
    runs = [record(method=method) for method in ("dqn", "iq")]
    plan = (("", runs[0].id), ("", runs[1].id), ("", "missing1"))
    first = made("table1", runs, unfinished=1, plan=plan)
    other = made("again", runs[:1], "table1", unfinished=3, plan=(*plan, ("", "missing2")))
    (joined,) = gather_studies([first, other])
    assert joined.unfinished == 2, "missing1 is planned by both, and iq is finished in one"
    assert ("Title of again", "missing2") in joined.plan


def test_a_base_without_runs():
    empty = study([], [pl.DataFrame({"run": [], "seed": [], "step": [], "return": []})], unfinished=2)
    (joined,) = gather_studies([empty, made("rule", [record("rule", method="dqn")], "table1")])
    assert joined.curves.height == 4
    assert "Title of rule" in render_page([joined])


def test_variants_that_would_crowd_a_chart_are_off():
    variants = [f"v{i}" for i in range(4)]
    runs = [record(variant=variant, method=method) for variant in ("", *variants) for method in ("dqn", "sr", "iq")]
    crowded = made("table1", runs)
    alone = made("alone", [record("alone", variant="v1")])
    pairs = lambda *studies: [(one, charts_of(one)) for one in studies]
    assert hidden_variants(pairs(crowded)) == variants
    assert hidden_variants(pairs(crowded, alone)) == ["v0", "v2", "v3"], "v1 is all there is in the other study"
    assert hidden_variants(pairs(made("few", runs[:6]))) == []
    page = render_page([crowded])
    assert 'checked data-variant-choice=""' in page
    assert '<input type="checkbox" data-variant-choice="v0">' in page


def test_figures_are_split_by_variant_where_one_would_be_crowded(tmp_path):
    runs = [record(variant=variant, method=f"m{i}") for variant in ("", "a b") for i in range(6)]
    names = [path.name for path in draw_study(made("table1", runs), tmp_path) if path.suffix == ".svg"]
    assert names == ["table1-return.svg", "table1-return-a-b.svg"]
    assert "a b" not in (tmp_path / names[0]).read_text()


def test_runs_that_differ_in_their_seed_are_one():
    runs = [record(varied=("method", "seed"), method=m, seed=s, seeds=1) for m in ("dqn", "iq") for s in (0, 5)]
    tables = [curves(run, **{"return": [[1.0 + i, 2.0 + i]]}) for i, run in enumerate(runs)]
    for run, table in zip(runs, tables, strict=True):
        table.replace_column(table.get_column_index("seed"), pl.Series("seed", [run.config["seed"]] * table.height))
    (joined,) = gather_studies([study(runs, tables)])
    assert [(run.config["method"], run.config["seeds"], run.varied) for run in joined.runs] == [
        ("dqn", 2, ("method",)), ("iq", 2, ("method",)),
    ]  # fmt: skip
    assert joined.curves.group_by("run").agg(pl.col("seed").unique().sort())["seed"].to_list() == [[0, 5], [0, 5]]
    table = highest_table(summarise_runs(joined))
    assert [row.cells[1].text for row in table.sections[0].rows] == ["2.50", "4.50"]


def test_a_run_whose_other_seeds_are_missing_has_no_seed_in_its_name():
    (joined,) = gather_studies([made("table1", [record(varied=("method", "seed"), method="dqn", seed=0)])])
    assert [placed.label for placed in arrange(joined)] == ["dqn"]


def test_labels_name_what_differs():
    runs = [resolve("CartPole-v0", "iq", buffer_size=n) for n in (1, 100)] + [resolve("CartPole-v0", "dqn")]
    assert distinct_labels(runs) == ["iq N=1", "iq N=100", "dqn N=100"]
    assert distinct_labels(runs[:1]) == ["iq"]


def test_a_method_that_stores_nothing_has_no_buffer_size_in_its_label():
    local, iq = resolve("CartPole-v0", "local-q"), resolve("CartPole-v0", "iq", buffer_size=100)
    assert distinct_labels([local, iq]) == ["local-q", "iq N=100"]
    assert [common_settings(runs) for runs in ([local], [iq])] == ["CartPole-v0", "CartPole-v0, N=100"]
    assert describe(local).startswith("local-q on CartPole-v0, stores nothing, 5 seeds")
    assert describe(resolve("CartPole-v0", "iq", buffer_size=1)).startswith("iq on CartPole-v0, N=1, 5 seeds")


def test_labels_leave_out_what_changes_nothing_that_is_learned(small_run):
    runs = [small_run(method="dqn", measure_every=100, seeds=5), small_run(method="dqn", buffer_size=1)]
    assert distinct_labels(runs) == ["dqn N=100", "dqn N=1"]
    assert distinct_labels([runs[0], small_run(method="dqn", seeds=5)]) == [
        "dqn measure_every=100",
        "dqn measure_every=0",
    ]


def test_runs_of_several_tasks_have_labels(small_run):
    """A task may have settings that others lack."""
    runs = [small_run(task=task, method="dqn") for task in ("CartPole-v0", "Pendulum-v0")]
    assert distinct_labels(runs) == ["dqn", "dqn"]


def test_numbers_in_labels_are_short_and_of_one_form():
    """A rate that a program computed has no tail of digits; layers are one word."""
    rates = (0.0002, 0.002 / 2 + 1e-19, 1 / 3000, 0.05)
    runs = [resolve("CartPole-v0", "dqn", steps=2000, learning_rate=rate) for rate in rates]
    assert plot_labels(runs) == ["DQN, α = 2e-4", "DQN, α = 1e-3", "DQN, α = 3.33333e-4", "DQN, α = 0.05"]
    assert distinct_labels(runs)[0] == "dqn learning_rate=2e-4"
    runs = [
        resolve("CartPole-v0", "dqn", steps=2000, hidden=hidden, double_q=len(hidden) == 2) for hidden in ((8, 4), (8,))
    ]
    assert plot_labels(runs) == ["DQN, double q = yes, hidden = [8,4]", "DQN, double q = no, hidden = [8]"]
    varied = [record("rates", varied=("learning_rate",), learning_rate=rate) for rate in rates[:2]]
    assert [one.label for one in arrange(made("rates", varied))] == ["α=2e-4", "α=1e-3"]
