"""iqrl study and iqrl report. Nothing is trained here."""

from pathlib import Path

import pytest

from iqrl.cli.studies import assignment, part
from iqrl.experiments.study.directory import StudyDirectory
from iqrl.experiments.study.study import Study

RESULTS = Path(__file__).parents[2] / "results"

TWO_RUNS = """
[settings]
steps = 3000
[[runs]]
task = "CartPole-v0"
method = ["dqn", "iq"]
"""


@pytest.fixture(autouse=True)
def own_study(own_directory):
    Path("mine.toml").write_text(TWO_RUNS)


def test_the_list_has_the_size_of_every_study(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = run("study", "list")
    assert code == 0
    line = next(line for line in out.splitlines() if line.split()[:1] == ["table1"])
    assert "180 × 10" in line
    assert "1,260.0 M" in line
    assert "3,600.0 M" in next(line for line in out.splitlines() if line.split()[:1] == ["table2"])


def test_on_a_narrow_terminal_the_list_is_not_cut(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = run("study", "list").out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 60
    assert "180 runs × 10 seeds, 1,260.0 M steps" in " ".join(out.split())


def test_the_list_takes_an_own_study(run):
    _, out, _ = run("study", "list", "mine.toml")
    assert "mine" in out
    assert "2 runs × 5 seeds" in out
    assert "30,000" in out
    assert "table1" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["study"], "which action?"),
        (["study", "run", "tabel1"], "did you mean table1?"),
        (["study", "run", "none.toml"], "cannot read none.toml"),
        (["study", "run", "table2", "--set", "task=ALE/Pogn-v5"], "did you mean Pong?"),
        (["study", "run", "mine.toml", "--set", "gama=1"], "did you mean gamma?"),
        (["study", "run", "mine.toml", "--set", "gamma"], "'gamma' is not NAME=VALUE, such as gamma=0.99"),
        (["study", "run", "mine.toml", "--set", "gamma=2"], "gamma must be at most 1"),
        (["study", "run", "mine.toml", "--part", "3/2"], "argument --part: '3/2' is not I/N with I from 1 to N"),
        (["study", "run", "mine.toml", "--only", "method=rainbow"], "no run of the study mine has method=rainbow"),
        (["study", "run", "mine.toml", "--workers", "0"], "at least 1"),
        (["study", "run", "mine.toml", "--executor", "slurm"], "choose from local, ray"),
        (["study", "run", "mine.toml", "--address", "here:1"], "is for --executor ray"),
        (["study", "status", "."], "holds no study"),
        (["study", "export", ".", "--out", "x"], "neither a study"),
        (["report", "nothing"], "neither a study"),
    ],
)
def test_bad_input(refused, arguments, words):
    assert words in refused(*arguments)


def test_parts_and_assignments():
    assert part("2/3") == (2, 3)
    given = ["gamma=0.5", "hidden=[64, 32]", "double_q=true", "task=CartPole-v0", "out=a=b"]
    values = {"gamma": 0.5, "hidden": [64, 32], "double_q": True, "task": "CartPole-v0", "out": "a=b"}
    assert dict(map(assignment, given)) == values


def test_the_status_of_a_study(run, tmp_path):
    directory = StudyDirectory.create(
        tmp_path / "out", Study("mine", {"runs": [{"task": "CartPole-v0", "method": "iq"}]})
    )
    with directory.locked():
        directory.write_failures({"some-run": "it broke"})
    unit = directory.work_unit(next(iter(directory.study.runs.values())))
    (tmp_path / "out" / "progress" / unit.name).write_text("1000 50000")
    _, out, _ = run("study", "status", "out")
    assert "0 of 1 runs finished; nothing is running" in out
    assert "step 1,000 of 400,000, 50,000 steps/s" in out
    assert "failed some-run: it broke" in out
    with directory.locked():
        assert "nothing is running" not in run("study", "status", "out")[1]


def test_a_name_without_its_directory(refused, tmp_path):
    study = Study("mine", {"runs": [{"task": "CartPole-v0", "method": "iq"}]})
    with StudyDirectory.create(tmp_path / "studies" / "mine", study).locked():
        pass
    assert "there is no such directory; did you mean studies/mine?" in refused("study", "status", "mine")


def test_an_export_becomes_a_report(run):
    code, out, _ = run("study", "export", RESULTS / "breakout", RESULTS / "breakout", "--out", "all", "--csv")
    assert code == 0
    assert out.splitlines() == ["all/curves.parquet", "all/manifest.json", "all/curves.csv"]
    code, out, err = run("report", "all", "all")
    assert code == 0, err
    assert Path("report/report.html").stat().st_size > 10_000
    assert out.startswith("report: report/report.html, with ")


def test_the_best_settings_become_a_study(run, refused):
    choose = ["study", "choose", RESULTS / "table1-tuning", "--over", "learning_rate"]
    code, out, err = run(*choose, "target_period", "--out", "tuned.toml")
    assert (code, err) == (0, "written to tuned.toml\n")
    assert "auc     126.2  task CartPole-v0, method dqn, buffer_size 1, target_period 10, learning_rate 0.002\n" in out
    assert "tuned" in run("study", "list", "tuned.toml").out
    assert "tuned.toml exists" in refused(*choose, "target_period", "--out", "tuned.toml")
    assert "did you mean target_period?" in refused(*choose, "target_perod", "--out", "x.toml")
    assert "cannot write nowhere/x.toml" in run(*choose, "target_period", "--out", "nowhere/x.toml").err
