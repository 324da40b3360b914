"""The paper's Atari tables, computed again; with the authors' curves where they are at hand."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from authors_curves import TRUE, made_up

from iqrl import cli
from iqrl.paper.calibration import false_alarms
from iqrl.paper.curves import read_curves
from iqrl.paper.findings import findings
from iqrl.paper.numbers import as_numbers
from iqrl.paper.page import page
from iqrl.paper.reanalysis import reanalyse
from iqrl.paper.settings import Pair, Setting


@pytest.fixture(scope="module")
def curves():
    if not TRUE.exists():
        pytest.skip(f"the authors' curves are not at hand ({TRUE}); IQRL_AUTHORS_CURVES names another place")
    return read_curves(TRUE)


@pytest.fixture(scope="module")
def found(curves):
    return reanalyse(curves)


@pytest.fixture(scope="module")
def made_up_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("made up") / "curves.npz"
    np.savez(path, **made_up())
    return path


@pytest.fixture(scope="module")
def noise(made_up_file):
    return reanalyse(read_curves(made_up_file))


# With the authors' curves


def test_the_tables_come_out_but_for_one_cell_each(found):
    wrong = lambda cells: {cell.setting: round(cell.computed, 3) for cell in cells if not cell.matches}
    assert len(found.highest) == len(found.deterioration) == 72
    assert wrong(found.highest) == {Setting("Freeway", 10_000, "DQN+SRNN"): 1.896}
    assert wrong(found.deterioration) == {Setting("Freeway", 10_000, "Rainbow"): 0.041}
    assert wrong(found.averages) == {Setting("Average", 10_000, "Rainbow"): 0.119}  # by the cell above


def test_all_p_values_come_out_of_pooled_points(found):
    assert Counter(test.printed_from for test in found.tests) == {"smoothed": 34, "both": 2, "raw": 12}
    raw = [test.pair for test in found.tests if test.printed_from == "raw"]
    assert sum(pair.game == "Breakout" for pair in raw) == 8
    assert Pair("Freeway", 1_000_000, "DQN+IQ-RE", "DQN") in raw
    marks = [(test.printed.significant, test.pooled_p < 0.01) for test in found.tests]
    assert Counter(marks) == {(True, True): 30, (False, False): 18}
    assert all(test.better != test.printed.worse for test in found.tests if test.printed.significant)


def test_what_exact_tests_leave_of_them(found):
    reached = [test for test in found.tests if test.permutation.p < 0.01]
    assert {test.pair.baseline for test in reached} == {"Rainbow+SRNN"}
    assert [test.better for test in reached].count(False) == 1
    assert len(reached) == sum(test.described_p < 0.01 for test in found.tests) == 4
    assert min(test.permutation.p for test in found.tests) == pytest.approx(2 / 252)
    assert sum(test.permutation.p < 0.05 for test in found.tests) == 9
    assert not any(test.holm_p < 0.05 for test in found.tests)
    assert all(test.permutation.exact and test.permutation.splits == 252 for test in found.tests)


def test_over_all_games(found):
    whole = {one.baseline: one for one in found.overall if one.buffer_size is None}
    values = {name: round(one.improvement.value, 3) for name, one in whole.items()}
    assert values == {"DQN": 0.632, "DQN+SRNN": 0.595, "Rainbow": 0.643, "Rainbow+SRNN": 0.7}
    assert whole["Rainbow+SRNN"].permutation.p < 0.001
    assert 0.05 < whole["DQN+SRNN"].permutation.p < 0.15
    single = [test.improvement.value for test in found.tests if test.pair.baseline == "Rainbow"]
    assert np.mean(single) == pytest.approx(whole["Rainbow"].improvement.value)


def test_the_papers_test_cries_wolf_on_runs_of_one_method(found):
    assert found.false_alarms == (630, 197)


def test_copies(found):
    copies = {(copy.setting, copy.runs): copy.replaced for copy in found.defects.copies}
    assert copies == {
        (Setting("Pong", 10_000, "DQN+SRNN"), (1, 4)): 4,
        (Setting("Breakout", 1_000_000, "DQN+SRNN"), (1, 2)): 1,
        (Setting("Carnival", 1_000_000, "DQN+IQ-RE"), (2, 4)): 2,
        (Setting("Freeway", 10_000, "DQN+SRNN"), (4, 5)): 4,
    }
    assert {setting.game for setting in found.defects.zero_runs} == {"Freeway"}
    assert sum(found.defects.zero_runs.values()) == 11
    assert found.defects.elsewhere == []


def test_what_the_logged_curves_change(found):
    pong = next(both for both in found.defects.tests if both.before.pair.game == "Pong")
    assert (round(pong.before.permutation.p, 4), round(pong.after.permutation.p, 4)) == (0.0397, 0.1111)
    assert len(found.defects.tests) == 5
    breakout = [change for change in found.defects.changes if change.setting.game == "Breakout"]
    assert [change.what for change in breakout] == ["highest", "deterioration", "final", "AUC"]
    assert (round(breakout[0].before, 1), round(breakout[0].after, 1)) == (86.4, 92.2)


def test_encoders(found):
    assert [one.same_runs for one in found.encoders] == [5, 5, 5, 5]
    assert all(one.permutation.difference > 0 and one.permutation.p > 0.15 for one in found.encoders)
    assert round(found.encoders[0].random.highest, 1) == 90.5  # the number of the main table


def test_claims(found):
    told = {(claim.what.split()[0] + claim.what[-3:], claim.family): claim[2:] for claim in found.claims}
    assert told["settingsnes", "DQN"] == ("7 of 12", "5 of 12", "5 of 12", "0 of 12")
    assert told["settingsnes", "Rainbow"] == ("8 of 12", "7 of 12", "7 of 12", "0 of 12")
    lower = [claim[2:5] for claim in found.claims if "below" in claim.what]
    assert lower == [("4 of 12", "4 of 12", "5 of 12"), ("2 of 12", "2 of 12", "4 of 12")]
    gaps = [claim[2:5] for claim in found.claims if "average" in claim.what]
    assert gaps[1] == ("0.022", "0.022", "0.027")
    assert gaps[3] == ("0.108", "0.108", "0.108")


def test_the_page_in_docs_is_this_page(found):
    assert (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8") == page(found)


# With curves made up


def test_the_command_writes_a_page_and_prints_numbers(made_up_file, noise, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("iqrl.paper.reanalysis.reanalyse", lambda curves: noise)  # done once is enough
    out = tmp_path / "page.md"
    assert cli.main(["paper", str(made_up_file), "--out", str(out), "--json"]) == 0
    printed, told = capsys.readouterr()
    numbers = json.loads(printed.strip().splitlines()[-1])
    assert len(numbers["tests"]) == 48
    assert numbers["highest"][0].keys() == {"setting", "printed", "computed", "matches"}
    assert numbers["tests"][0]["printed_from"] in ("smoothed", "raw", "both", "neither")
    assert "of 72 highest returns" in told
    text = out.read_text(encoding="utf-8")
    assert str(made_up_file) not in text
    assert text.startswith("# The paper's Atari results")
    for title in ("Findings", "Test by test", "Runs saved twice", "Random against trained encoder", "Every setting"):
        assert f"\n## {title}\n" in text
    assert "nan" not in text


def test_pages_say_what_the_numbers_say(noise):
    """Noise does not reproduce the paper, and the page must not say that it does."""
    matched = sum(cell.matches for cell in noise.highest)
    assert matched < 20
    told = "\n".join(findings(noise))
    assert f"{matched} of 72 highest returns" in told
    assert "**1 run is there twice**: Pong DQN N=10,000 runs 1 and 4." in told
    assert "0 of the 20 runs with the random encoder" in told
    text = page(noise)
    assert "Freeway DQN N=10,000 (2 runs)" in text
    assert text.count("| Pong DQN N=10,000 |") == 4
    assert json.loads(json.dumps(as_numbers(noise)))["defects"]["zero_runs"] == {"Freeway DQN N=10,000": 2}


def test_tables_are_whole(noise):
    text = page(noise)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({line.count("|") for line in block.splitlines()}) == 1
    assert text.count("| Pong | 10,000 |") == 4 + 6


def test_false_alarms_of_curves_without_a_level_of_their_own_are_rare():
    """Points that are independent are the one case in which pooling them is right."""
    generator = np.random.default_rng(0)
    runs = {Setting("Pong", size, "DQN"): generator.normal(size=(5, 200)) for size in range(20)}
    noise = false_alarms(runs)
    assert noise.tests == 200
    assert noise.share <= 0.04
    levels = {setting: curves + generator.normal(size=(5, 1)) for setting, curves in runs.items()}
    assert false_alarms(levels).share > 0.5
    runs[Setting("Pong", 0, "DQN")][1] = 0
    assert false_alarms(runs).tests == 190


def test_a_bad_path_is_one_sentence(capsys, tmp_path):
    assert cli.main(["paper", str(tmp_path / "none")]) == 2
    assert "does not exist; give a clone of the authors' repository" in capsys.readouterr().err
