"""Our Atari curves beside the authors'."""

import numpy as np
import polars as pl
import pytest
from authors_curves import made_up

from iqrl.cli import main
from iqrl.errors import BadInput
from iqrl.paper.beside import beside, table
from iqrl.paper.curves import read_curves
from iqrl.studies.results import RunRecord, StudyResults


@pytest.fixture(scope="module")
def authors(tmp_path_factory):
    path = tmp_path_factory.mktemp("authors") / "curves.npz"
    np.savez(path, **made_up())
    return path


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


def test_means_are_over_episodes_and_seeds_are_pooled(authors):
    """(10 * 1 + 30 * 2) / 40 = 1.75 and (20 * 3 + 20 * 5) / 40 = 4; a period without an episode counts nothing."""
    runs = study({"method": "iq-re"}, {"method": "iq-re", "seed": 1})
    silent = pl.Series([0, 3, 1, 1]), pl.Series([None, 2.0, 3.0, 5.0])
    second = runs.curves.filter(pl.col("run") == "1").with_columns(episodes=silent[0], **{"return": silent[1]})
    curves = pl.concat([runs.curves.filter(pl.col("run") == "0"), second])
    (found,) = beside(runs._replace(curves=curves), read_curves(authors))
    assert str(found.setting) == "Breakout DQN+IQ-RE N=10,000"
    np.testing.assert_allclose(found.ours, [[1.75, 4.0], [2.0, 4.0]])
    np.testing.assert_array_equal(found.authors[2], made_up()["Breakout/10000/DQN+IQ-RE/3"][:2])


def test_one_table_per_game_and_capacity(authors):
    short = {"method": "rainbow-iq-re", "steps": 50_000, "period": 12_500}
    runs = study({"method": "dqn"}, short, {"method": "dqn", "task": "ALE/Pong-v5"})
    text = table(beside(runs, read_curves(authors)))
    assert text.count("| steps |") == 2
    first = next(line for line in text.splitlines() if line.startswith("| 100,000"))
    assert first.startswith("| 100,000 | 4.00 | ")
    assert first.endswith("|  |  |")
    theirs = np.array([made_up()[f"Breakout/10000/DQN/{number}"][1] for number in range(1, 6)])
    assert f"{theirs.mean():.2f} ({theirs.min():.2f} to {theirs.max():.2f})" in first


@pytest.mark.parametrize(
    "other",
    [{"method": "iq-te"}, {"buffer_size": 5000}, {"task": "ALE/Seaquest-v5"}, {"steps": 49_999}, {"period": 30_000}],
)
def test_what_the_authors_do_not_have(other, authors):
    with pytest.raises(BadInput, match="study breakout has no finished run that the authors have: of dqn, srnn, iq-re"):
        beside(study({"method": "dqn"} | other), read_curves(authors))


def test_a_path_that_is_no_study(authors, tmp_path, capsys):
    assert main(["paper", str(authors), "--beside", str(tmp_path)]) == 2
    assert "holds neither a study" in capsys.readouterr().err
