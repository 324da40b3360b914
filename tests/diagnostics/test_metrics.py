"""The list of metrics against what runs write and what the documentation shows."""

import re
import runpy
from pathlib import Path

import pytest

import iqrl
from iqrl.diagnostics import metrics
from iqrl.diagnostics.interference.any_agent import MEASURES
from iqrl.diagnostics.metrics import METRICS, REGULARISER, SUMMARIES, find_metric, heading_of, label_of
from iqrl.experiments.report.interference_tables import summarise_interference
from iqrl.experiments.report.terminal import COLUMNS

ROOT = Path(__file__).parents[2]
DIMENSIONS = {"number": 0, "per context": 1, "per head": 1, "context × context": 2}


@pytest.fixture(scope="module")
def measured():
    lengths = {"steps": 400, "period": 200, "learning_starts": 100, "measure_every": 50, "seeds": 2}
    return iqrl.train("CartPole-v0", "iq", **lengths).metrics


def count_dimensions(dtype):
    return 1 + count_dimensions(dtype.inner) if dtype.is_nested() else 0


def test_every_column_of_a_measured_run_has_an_entry_and_every_entry_a_column(measured):
    pattern = lambda name: name.replace("distillation", REGULARISER)
    columns = [pattern(name) for name in measured.columns if name not in metrics.KEYS]
    assert sorted(columns) == sorted(metric.name for metric in METRICS)
    # The page says that a run that is not measured has the columns up to `occupancy`.
    assert columns[: columns.index("occupancy")] == [metric.name for metric in METRICS[: columns.index("occupancy")]]


def test_an_entry_has_the_shape_of_its_column(measured):
    for name in set(measured.columns) - set(metrics.KEYS):
        assert count_dimensions(measured.schema[name]) == DIMENSIONS[find_metric(name).shape], name


def test_summaries_are_what_the_report_computes(measured):
    computed = set(summarise_interference(measured)[0]) - {"seed"}
    assert {metric.name for metric in SUMMARIES} == {name for name in computed if name not in measured.columns}
    assert set(COLUMNS) <= computed


def test_agents_of_other_libraries_report_metrics_of_the_list():
    metrics.check_listed(MEASURES)
    with pytest.raises(ValueError, match="aei_smallest must have an entry"):
        metrics.check_listed(["aei", "aei_smallest"])


def test_labels():
    assert label_of("distillation_loss") == "distillation loss"
    assert find_metric("distillation_weight").name == "distillation_weight"
    assert label_of("negative_interference") == "negative interference"
    assert heading_of("negative_interference") == "negative"
    assert heading_of("aei_largest") == "largest"
    assert heading_of("action_gap") == label_of("action_gap") == "action gap"
    assert label_of("of_my_own") == "of my own"


def test_the_documentation_lists_exactly_these_metrics():
    page = (ROOT / "docs" / "interference.md").read_text()
    table = re.search(r"<!-- metrics -->\n(.*?)<!-- end -->", page, re.S)[1]
    assert re.findall(r"^\| `([^`]+)` \|", table, re.M) == [metric.name for metric in METRICS]
    assert runpy.run_path(str(ROOT / "scripts" / "results"))["fill"](page) == page
