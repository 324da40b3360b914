"""Seeds in groups: the same bits on any number of cores, the same to rounding on several devices."""

import os
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest

import iqrl
from iqrl.errors import BadInput
from iqrl.training import cores, devices

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
    assert len(groups.places) == cores.count_groups(seeds, one_by_one)
    assert {len(places) for places in groups.places} == {groups.size}
    assert groups.size <= (1 if one_by_one else cores.TOGETHER)
    assert len(groups.places) * groups.size - seeds < len(groups.places)  # little is computed twice


def test_threads_have_programs_of_their_own(monkeypatch):
    monkeypatch.setenv("IQRL_CORES", "2")
    groups, running, seen = cores.groups_of(10, one_by_one=False), threading.Barrier(2, timeout=60), []

    def copy(name):
        def advance(state, stop):
            seen.append(name)
            running.wait()
            return state, jax.numpy.zeros(5)

        return advance

    shared = cores.InGroups(groups, [copy("first"), copy("second")])
    state = cores.TrainState(np.int32(0), np.arange(10), env=(), agent=(), meter=())
    shared.advance(shared.split(state), 1)
    assert sorted(seen) == ["first", "second"]


def test_a_program_is_compiled_once_and_copied(tmp_path):
    """The copy is read from the cache."""
    environment = os.environ | {"IQRL_CORES": "2", "JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # on a fast machine it takes next to nothing
    done = subprocess.run([sys.executable, "-c", COPIES], env=environment, timeout=300, capture_output=True, text=True)
    assert done.stdout.split() == ["2", "True"], done.stderr


def test_the_number_of_cores(monkeypatch):
    monkeypatch.setenv("IQRL_CORES", "3")
    assert cores.available_cores() == 3
    monkeypatch.delenv("IQRL_CORES")
    assert cores.available_cores() >= 1
    with pytest.raises(BadInput, match="at least 1"):
        cores.choose_cores(0)


COPIES = """
import jax, iqrl
from iqrl.training import compilation
made, compiled, hits = compilation.compile_advance, [], []
def compile_advance(driver):
    compiled.append(made(driver))
    return compiled[-1]
compilation.compile_advance = compile_advance
jax.monitoring.register_event_listener(lambda event, **_: hits.append("cache_hits" in event))
iqrl.train("CartPole-v0", "dqn", seeds=10, steps=400, period=200, learning_starts=100)
print(len({program.runtime_executable() for program in compiled}), any(hits))
"""


ON_DEVICES = """
import sys, iqrl, jax, numpy
from iqrl.training.devices import choose_devices
settings = dict(period=200, learning_starts=100, target_period=100, hidden=(8,), seeds=7, epsilon_decay=60)
choose_devices(4)
iqrl.train("CartPole-v0", "dqn", steps=200, out=sys.argv[1], **settings)  # 2 + 2 + 2 + 1 seeds
there = iqrl.resume(sys.argv[1], steps=400)
assert len(jax.devices()) == 4
choose_devices(1)
here = iqrl.train("CartPole-v0", "dqn", steps=400, **settings)
numpy.testing.assert_array_equal(there.returns, here.returns)
close = lambda a, b: numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
jax.tree.map(close, there.agent_state.params, here.agent_state.params)
"""


def test_seeds_on_several_devices(tmp_path):
    """The program is another one there, and may round in another way."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", ON_DEVICES, tmp_path / "run"], check=True, env=environment, timeout=300)


def test_the_number_of_devices(monkeypatch):
    monkeypatch.delenv("IQRL_DEVICES", raising=False)
    assert len(devices.available_devices()) == 1
    monkeypatch.setenv("IQRL_DEVICES", "64")
    with pytest.raises(BadInput, match="devices is 64; JAX finds 1 of kind cpu here"):
        devices.available_devices()
    for count in (0, 10**9):
        with pytest.raises(BadInput, match="it must be from 1 to 256"):
            devices.choose_devices(count)
