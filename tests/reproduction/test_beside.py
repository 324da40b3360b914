"""Our Atari curves beside the authors'."""

import numpy as np
import polars as pl
import pytest
from made_up_curves import make_up

from iqrl.cli.main import main
from iqrl.errors import BadInput
from iqrl.experiments.study.results import RunRecord, StudyResults
from iqrl.reproduction.authors_curves import read_curves
from iqrl.reproduction.beside import match_runs, render_matches


def study(*runs, returns=(1.0, 2.0, 3.0, 5.0), episodes=(10, 30, 20, 20)):
    """Runs with these curves of four points."""
    records, tables = [], []
    for number, changes in enumerate(runs):
        config = {"task": "ALE/Breakout-v5", "buffer_size": 10_000, "steps": 100_000, "period": 25_000} | changes
        records.append(RunRecord(str(number), "breakout", "", config, (), {}, {}))
        steps = [config["steps"] * (point + 1) // 4 for point in range(4)]
        rows = {"run": [str(number)] * 4, "seed": [config.get("seed", 0)] * 4, "step": steps}
        tables.append(pl.DataFrame(rows | {"return": returns, "episodes": episodes}))
    return StudyResults("breakout", "", "", (), pl.concat(tables), records, 0)


def test_means_are_over_episodes_and_seeds_are_pooled(made_up_file):
    """(10 * 1 + 30 * 2) / 40 = 1.75 and (20 * 3 + 20 * 5) / 40 = 4; a period without an episode counts nothing."""
    runs = study({"method": "iq-re"}, {"method": "iq-re", "seed": 1})
    missing = pl.Series([0, 3, 1, 1]), pl.Series([None, 2.0, 3.0, 5.0])
    second = runs.curves.filter(pl.col("run") == "1").with_columns(episodes=missing[0], **{"return": missing[1]})
    curves = pl.concat([runs.curves.filter(pl.col("run") == "0"), second])
    (found,) = match_runs(runs._replace(curves=curves), read_curves(made_up_file))
    assert str(found.setting) == "Breakout DQN+IQ-RE N=10,000"
    np.testing.assert_allclose(found.ours, [[1.75, 4.0], [2.0, 4.0]])
    np.testing.assert_array_equal(found.authors[2], make_up()["Breakout/10000/DQN+IQ-RE/3"][:2])


def test_one_table_per_game_and_capacity(made_up_file):
    short = {"method": "rainbow-iq-re", "steps": 50_000, "period": 12_500}
    runs = study({"method": "dqn"}, short, {"method": "dqn", "task": "ALE/Pong-v5"})
    text = render_matches(match_runs(runs, read_curves(made_up_file)))
    assert text.count("| steps |") == 2
    first = next(line for line in text.splitlines() if line.startswith("| 100,000"))
    assert first.startswith("| 100,000 | 4.00 | ")
    assert first.endswith("|  |  |")
    theirs = np.array([make_up()[f"Breakout/10000/DQN/{number}"][1] for number in range(1, 6)])
    assert f"{theirs.mean():.2f} ({theirs.min():.2f} to {theirs.max():.2f})" in first


@pytest.mark.parametrize(
    "other",
    [{"method": "iq-te"}, {"buffer_size": 5000}, {"task": "ALE/Seaquest-v5"}, {"steps": 49_999}, {"period": 30_000}],
)
def test_what_the_authors_do_not_have(other, made_up_file):
    with pytest.raises(BadInput, match="study breakout has no finished run that the authors have: of dqn, srnn, iq-re"):
        match_runs(study({"method": "dqn"} | other), read_curves(made_up_file))


def test_a_path_that_is_no_study(made_up_file, tmp_path, capsys):
    assert main(["paper", str(made_up_file), "--beside", str(tmp_path)]) == 2
    assert "holds neither a study" in capsys.readouterr().err
