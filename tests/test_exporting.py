"""Exported agents: what the file computes is what the agent computes."""

import runpy
import sys

import gymnasium
import jax
import numpy as np
import polars as pl
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from iqrl.core.types import ContextInputs
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.exporting import primitives
from iqrl.exporting.export import export_result
from iqrl.exporting.program import trace
from iqrl.make_run import resolve
from iqrl.methods.registry import build_agent
from iqrl.training.results import Result

SMALL = {"hidden": (6,), "seeds": 2, "seed": 5}


def drawn(task, method, **settings):
    """A run whose agents have weights drawn at random: nothing is trained, and nothing is at zero."""
    run = resolve(task, method, **(SMALL | settings))
    task = make_task(run)
    agent = build_agent(run, task)
    random = np.random.default_rng(0)

    def draw(leaf):
        shape = (run.seeds, *leaf.shape)
        return (
            np.float32(np.abs(random.normal(size=shape))) if leaf.dtype == np.float32 else np.zeros(shape, leaf.dtype)
        )

    like = jax.eval_shape(agent.init, jax.random.key(0))
    state = jax.tree.map(draw, like._replace(replay=(), cache=()))
    return Result(run=run, metrics=pl.DataFrame(), agent_state=state, task=task, agent=agent, timing={})


class OddSpaces(gymnasium.Env):
    observation_space = Dict(
        {"a": Box(-1, 1, (2, 2)), "b": Tuple([Discrete(3, start=-1), MultiBinary(2)]), "c": MultiDiscrete([2, 3])}
    )
    action_space = MultiDiscrete([2, 3], start=[1, 0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


class ChannelsFirst(OddSpaces):
    observation_space = Box(0, 255, (3, 8, 6), np.uint8)
    action_space = Discrete(3, start=5)


class Large(ChannelsFirst):
    """So large that a batch is convolved image by image."""

    observation_space = Box(0, 255, (84, 84, 3), np.uint8)


RAINBOW = {"dueling": True, "noisy": True, "layer_norm": True, "normalise_inputs": True, "own_layers": 1, "atoms": 5}
CASES = {
    "contexts, heads, value distribution, dueling, normalisation": ("CartPole-v0", "rainbow-iq", RAINBOW),
    "hats that an average of the weights has": ("CartPole-v0", "local-q", {"bins": 4}),
    "fta": ("CartPole-v0", "dqn", {"features": "fta", "bins": 4}),
    "elephant": ("CartPole-v0", "dqn", {"features": "elephant"}),
    "tiles": ("CartPole-v0", "tcnn", {}),
    "tilings": ("CartPole-v0", "tcnn", {"tilings": 3, "tile_inputs": 30}),
    "gates": ("CartPole-v0", "dsom", {"hidden": (4,)}),
    "contexts by the first observation": ("CartPole-v0", "iq-initial-states", {}),
    "contexts by the score": ("CartPole-v0", "iq-game-score", {}),
    "images, contexts by an encoder": (ChannelsFirst, "iq-re", {"padding": "same", "code_size": 3}),
    "large images": (Large, "dqn", {"hidden": (4,)}),
    "spaces of several parts": (OddSpaces, "dqn", {}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_file_gives_what_its_agent_gives(case, tmp_path):
    """`export_result` compares them; it writes nothing otherwise."""
    task, method, settings = case
    result = drawn(task, method, **settings)
    for to in ("numpy", "onnx"):
        done = export_result(result, tmp_path / to, to)
        assert done.path.stat().st_size > 1000
        assert done.largest > 0.01


@pytest.fixture(scope="module")
def result():
    return drawn("CartPole-v0", "iq", contexts=2)


def test_the_functions_of_the_file(result, tmp_path):
    done = export_result(result, tmp_path / "agent.py", seed=6)
    agent, functions = result.agents[1], runpy.run_path(str(done.path))
    rows = np.random.default_rng(1).normal(size=(7, 4)).astype(np.float32)
    np.testing.assert_allclose(functions["q_values"](rows), agent.q_values(rows), rtol=1e-4)
    np.testing.assert_array_equal(functions["context"](rows), agent.context(rows))
    np.testing.assert_array_equal(functions["predict"](rows), agent.predict(rows))
    assert functions["predict"](rows[0]) == agent.predict(rows[0])
    assert functions["SETTINGS"] == result.run.to_dict()
    assert "seed 6 of iq on CartPole-v0" in functions["__doc__"]
    with pytest.raises(ValueError, match="an observation has shape"):
        functions["predict"]([1.0, 2.0])
    assert "jax" not in done.path.read_text().lower()


def test_what_differs_is_not_written(result, tmp_path, monkeypatch):
    wrong = primitives.each("np.sinh({0})", "Sinh")
    monkeypatch.setitem(primitives.TABLE, "tanh", wrong)
    with pytest.raises(BadInput, match="more than rounding; nothing was written"):
        export_result(result, tmp_path / "agent.py")
    monkeypatch.delitem(primitives.TABLE, "tanh")
    with pytest.raises(BadInput, match="the operation tanh, which cannot be exported; dense layers"):
        export_result(result, tmp_path / "agent.py")
    assert not list(tmp_path.iterdir())


def test_other_files_are_left_alone(result, tmp_path):
    path = tmp_path / "agent.py"
    path.write_text("print('mine')")
    with pytest.raises(BadInput, match="exists and was not exported by iqrl"):
        export_result(result, path)
    path.unlink()
    assert export_result(result, path) == export_result(result, path)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"seed": 7}, "no seed 7; the run has the seeds 5 to 6"), ({"to": "numpi"}, "unknown format 'numpi'")],
)
def test_wrong_arguments(result, tmp_path, wrong, words):
    with pytest.raises(BadInput, match=words):
        export_result(result, tmp_path / "agent.py", **wrong)


def test_without_the_package_a_sentence_says_what_to_install(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(BadInput, match=r'pip install "iqrl\[onnx\]"'):
        export_result(result, tmp_path / "agent.onnx", "onnx")


def test_what_the_observation_does_not_decide_is_computed_beforehand():
    """Of DQN a product and a sum per layer remain, and the activation between them."""
    result = drawn("CartPole-v0", "dqn")
    state = jax.tree.map(lambda leaf: leaf[0], result.agent_state)
    program = trace(result.agent, state, 4)
    names = [step.primitive for step in program.steps]
    assert names == ["dot_general", "add", "tanh", "dot_general", "transpose", "add", "reshape"]
    assert [value.name for value in program.inputs] == ["obs"]
    assert list(program.outputs) == ["q_values"]
    assert ContextInputs._fields[:3] == ("obs", "initial_obs", "score")  # the order of `program.INPUTS`
