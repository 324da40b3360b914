"""The commands about studies as a user meets them; nothing is trained here."""

import pytest
from test_export import results

from iqrl import cli
from iqrl.studies.directory import StudyDirectory
from iqrl.studies.export import export
from iqrl.studies.study import Study

TWO_RUNS = """
[settings]
steps = 3000
[[runs]]
task = "CartPole-v0"
method = ["dqn", "iq"]
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(TWO_RUNS)


def run(capsys, *arguments):
    """Exit code, stdout, stderr."""
    code = cli.main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def refused(capsys, *arguments):
    """The one sentence, of a command that did nothing."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("iqrl: ")
    return err


def test_the_list_says_what_studies_cost(capsys):
    code, out, _ = run(capsys, "study", "list")
    assert code == 0
    line = next(line for line in out.splitlines() if line.split()[:1] == ["table1"])
    assert "60 × 5" in line
    assert "210.0 M" in line
    assert "3,600.0 M" in next(line for line in out.splitlines() if line.split()[:1] == ["table2"])


def test_the_list_takes_a_study_of_ones_own(capsys):
    _, out, _ = run(capsys, "study", "list", "mine.toml")
    assert "mine" in out
    assert "2 × 5" in out
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
        (["study", "run", "mine.toml", "--set", "gamma"], "NAME=VALUE"),
        (["study", "run", "mine.toml", "--set", "gamma=2"], "gamma must be at most 1"),
        (["study", "run", "mine.toml", "--part", "3/2"], "--part takes I/N"),
        (["study", "run", "mine.toml", "--workers", "0"], "at least 1"),
        (["study", "run", "mine.toml", "--executor", "slurm"], "choose from local, ray"),
        (["study", "run", "mine.toml", "--address", "here:1"], "is for --executor ray"),
        (["study", "run", "mine.toml", "--worker", "2"], "did you mean --workers?"),
        (["study", "status", "."], "holds no study"),
        (["study", "export", ".", "--out", "x"], "neither a study"),
        (["report", "nothing"], "neither a study"),
    ],
)
def test_bad_input_gets_one_sentence(capsys, tmp_path, arguments, words):
    assert words in refused(capsys, *arguments)
    assert not (tmp_path / "studies").exists(), "nothing is made for a request that is refused"


def test_status_tells_how_far_a_study_is(capsys, tmp_path):
    directory = StudyDirectory.create(
        tmp_path / "out", Study("mine", {"runs": [{"task": "CartPole-v0", "method": "iq"}]})
    )
    with directory.locked():
        directory.write_failures({"some-run": "it broke"})
    unit = directory.unit_of(next(iter(directory.study.runs.values())))
    (tmp_path / "out" / "progress" / unit.name).write_text("1000 50000")
    _, out, _ = run(capsys, "study", "status", "out")
    assert "0 of 1 runs finished; nothing is running" in out
    assert "step 1,000 of 400,000, 50,000 steps/s" in out
    assert "failed some-run: it broke" in out
    with directory.locked():
        assert "nothing is running" not in run(capsys, "study", "status", "out")[1]


def test_a_study_is_looked_for_where_studies_are(capsys, tmp_path):
    study = Study("mine", {"runs": [{"task": "CartPole-v0", "method": "iq"}]})
    with StudyDirectory.create(tmp_path / "studies" / "mine", study).locked():
        pass
    assert "there is no such directory; did you mean studies/mine?" in refused(capsys, "study", "status", "mine")


def test_exports_merge_and_make_a_report(capsys, tmp_path):
    export([results(keep=lambda run: run.run.method == "dqn")], tmp_path / "one")
    export([results(keep=lambda run: run.run.method == "iq")], tmp_path / "other")
    code, out, _ = run(capsys, "study", "export", "one", "other", "--out", "all", "--csv")
    assert code == 0
    assert out.splitlines() == ["all/curves.parquet", "all/manifest.json", "all/curves.csv"]
    code, out, err = run(capsys, "report", "all")
    assert code == 0, err
    assert (tmp_path / "report" / "report.html").stat().st_size > 10_000
    assert "report/report.html" in out


def test_the_best_settings_become_a_study(capsys, tmp_path):
    export([results(keep=lambda run: not run.variant)], tmp_path / "all")
    _, out, _ = run(capsys, "study", "choose", "all", "--over", "learning_rate", "--out", "tuned.toml")
    assert "32.5" in out
    assert "tuned.toml exists" in refused(
        capsys, "study", "choose", "all", "--over", "learning_rate", "--out", "tuned.toml"
    )
    code, out, _ = run(capsys, "study", "list", "tuned.toml")
    assert code == 0
    assert "did you mean learning_rate" in refused(
        capsys, "study", "choose", "all", "--over", "learning_rat", "--out", "x.toml"
    )
