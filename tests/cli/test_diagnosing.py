"""iqrl interference, explain and cost. What they compute is tested with the code that computes it."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def measured(trained):
    """The trained run, as if interference had been measured."""
    metrics = pl.read_parquet(trained / "metrics.parquet")
    numbers = "aei aei_largest negative_interference raised_share squared_td_error update_interference"
    probes = "held_out_max_q action_gap dormant_units"
    columns = [pl.lit(0.5).alias(name) for name in (*numbers.split(), *probes.split())]
    cosine = pl.Series("gradient_cosine", [[[1.0, -0.5], [-0.5, 1.0]]] * metrics.height)
    metrics.with_columns(*columns, cosine).write_parquet(trained / "metrics.parquet")
    return trained


def test_interference_of_a_measured_run(run, measured):
    code, out, err = result = run("interference", measured, "--json")
    assert code == 0
    seeds = result.json["runs"]["runs/dqn"]
    assert [(seed["seed"], seed["raised_share"], seed["lowest_gradient_cosine"]) for seed in seeds] == [
        (0, 0.5, -0.5),
        (1, 0.5, -0.5),
    ]
    assert out.count("\n") == 1
    assert "negative" in err
    assert [path.name for path in Path("interference").iterdir()] == ["dqn-interference.png"]


def test_the_matrix_of_contexts(run, trained, monkeypatch):
    from iqrl.diagnostics.analysis.context_matrix import ContextMatrix

    calls = []

    def matrix_of(result, **training):
        calls.append((result.path, training))
        change = np.full((2, 2, 2), 0.25)
        change[0, 0, 1] = np.nan
        counts = np.full((2, 2), 500)
        return ContextMatrix(change, np.ones((2, 2)), counts, np.zeros((2, 2), int), own=False)

    monkeypatch.setattr("iqrl.diagnostics.analysis.context_matrix.context_matrix", matrix_of)
    code, _, err = result = run("interference", trained, "--matrix", "--updates", 20, "--json", "--out", "here")
    assert code == 0
    assert calls == [(trained, {"updates": 20, "settle": 1000, "contexts": 3})]
    change = result.json["matrices"]["runs/dqn"]["change"]
    assert change == [[[0.25, None], [0.25, 0.25]], [[0.25, 0.25], [0.25, 0.25]]]
    assert result.json["runs"] == {}
    assert "context 1" in err
    assert [path.name for path in Path("here").iterdir()] == ["dqn-matrix.png"]


def test_the_map_of_states(run, trained, monkeypatch):
    monkeypatch.setattr(
        "iqrl.experiments.report.figures.maps.plot_context_maps", lambda results, path: (results[0].path, str(path))
    )
    code, out, _ = run("interference", trained, "--map")
    assert code == 0
    assert out == f"{(trained, 'interference/dqn-map.png')}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["interference", "runs/dqn"], "runs/dqn has no measurements; train with --measure-every 100, or use what"),
        (["interference", "runs/dqn", "--matrix", "--updates", "0"], "updates is 0; it must be at least 1"),
        (["interference", "runs/dqn", "--matrix", "--contexts", "1"], "contexts is 1; it must be at least 2"),
        (["interference", "runs/dqn", "--map", "--updates", "5"], "--updates is for --matrix; give both or neither"),
        (["explain", "runs/dqn", "--drop", "1.5"], "drop must be more than 0 and at most 1, got 1.5"),
        (["explain", "runs/dqn", "--out", "nowhere/a.md"], "cannot write nowhere/a.md: No such file"),
        (["cost", "elsewhere"], "elsewhere holds no run"),
    ],
)
def test_bad_input(refused, trained, arguments, words):
    assert words in refused(*arguments)


def test_a_directory_that_cannot_be_made(refused, measured):
    Path("taken").write_text("")
    assert "cannot write to taken: File exists." in refused("interference", measured, "--out", "taken")


def test_explain_prints_the_page_and_writes_it(run, trained):
    code, out, err = run("explain", trained)
    assert (code, err) == (0, "written to runs/dqn/explain.md\nwritten to runs/dqn/explain.svg\n")
    assert out.startswith("**")
    assert "explain.svg" not in out
    assert " RUN" not in out
    assert "interference was not measured" in out
    page = (trained / "explain.md").read_text()
    picture = "![the return over the steps; the falls are numbered as below](explain.svg)\n\n"
    assert page.count(picture) == 1
    assert page.replace(picture, "") == out
    assert (trained / "explain.svg").read_text().startswith("<svg")
    result = run("explain", trained, "--out", "here.md", "--json")
    assert result.out.count("\n") == 1
    assert result.json["run"] == "runs/dqn"
    assert result.json["lines"][0] in Path("here.md").read_text()
    assert Path("here.svg").exists()


def test_cost_says_when_the_run_is_not_finished(run, trained, monkeypatch):
    monkeypatch.setattr(
        "iqrl.diagnostics.analysis.cost.cost_report", lambda store: ({"steps": store.run.steps}, ["title", "numbers"])
    )
    code, _, err = result = run("cost", trained, "--json")
    assert (code, result.json, err) == (0, {"steps": 1000}, "title\nnumbers\n")
    (trained / "metrics.parquet").unlink()
    assert run("cost", trained).out == "title (not begun; this is the cost of the whole run)\nnumbers\n"
