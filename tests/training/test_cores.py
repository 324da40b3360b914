"""Seeds in groups on several cores: the same bits as on one, and as each seed has in a smaller run."""

import jax
import numpy as np
import pytest

import iqrl
from iqrl.errors import BadInput
from iqrl.training import cores

SMALL = {"steps": 600, "period": 200, "learning_starts": 100, "target_period": 100, "hidden": (8,)}


def train(monkeypatch, count, seeds=7, **settings):
    monkeypatch.setenv("IQRL_CORES", str(count))
    return iqrl.train("CartPole-v0", "dqn", seeds=seeds, **SMALL | settings)


def test_bits_do_not_depend_on_the_number_of_cores(monkeypatch, tmp_path):
    one, two = train(monkeypatch, 1), train(monkeypatch, 2)
    assert one.metrics.equals(two.metrics)
    assert one.metrics.height == 7 * 3
    jax.tree.map(np.testing.assert_array_equal, one.agent_state, two.agent_state)
    assert len({row.tobytes() for row in np.asarray(one.agent_state.params["trunk"][0]["w"])}) == 7
    # Stopped after a period on two cores, continued on one.
    train(monkeypatch, 2, steps=200, epsilon_decay=60, out=tmp_path / "run")
    whole = train(monkeypatch, 1, epsilon_decay=60, out=tmp_path / "run")
    again = train(monkeypatch, 2, epsilon_decay=60)
    assert whole.metrics.equals(again.metrics)
    jax.tree.map(np.testing.assert_array_equal, whole.agent_state, again.agent_state)


@pytest.mark.parametrize("seeds", [1, 2, 5, 6, 7, 11, 20, 31])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_every_seed_counts_once(seeds, one_by_one):
    groups = cores.groups_of(seeds, one_by_one)
    counted = [place for places, count in zip(groups.places, groups.counts, strict=True) for place in places[:count]]
    assert counted == list(range(seeds))
    assert {len(places) for places in groups.places} == {groups.size}
    assert groups.size <= (1 if one_by_one else cores.TOGETHER)
    assert len(groups.places) * groups.size - seeds < len(groups.places)  # little is computed twice


def test_the_number_of_cores(monkeypatch):
    monkeypatch.setenv("IQRL_CORES", "3")
    assert cores.available_cores() == 3
    monkeypatch.delenv("IQRL_CORES")
    assert cores.available_cores() >= 1
    with pytest.raises(BadInput, match="at least 1"):
        cores.choose_cores(0)
