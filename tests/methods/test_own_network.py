"""Networks of the user's own before the library's heads."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import iqrl
from iqrl.core.networks import Network, Output
from iqrl.core.types import ContextInputs
from iqrl.envs.registry import make_task
from iqrl.errors import BadInput
from iqrl.exporting.export import export_result
from iqrl.methods.registry import build_agent
from iqrl.plugins import module_form, name_of_network
from iqrl.training.results import Result
from iqrl.training.run_directory import RunStore

FEATURES = 5


class Duck:
    """As Flax and Haiku have it."""

    def init(self, key, obs):
        return {"params": {"w": jax.random.normal(key, (obs.size, FEATURES))}}

    def apply(self, variables, obs):
        return jnp.tanh(obs.reshape(-1) @ variables["params"]["w"])


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Pytree:
    """As Equinox has it: the weights are inside, and what is not a float is not learned."""

    w: jax.Array
    count: int = 3

    def __call__(self, obs):
        return jnp.tanh(obs.reshape(-1) @ self.w) + 0.0 * self.count


def pytree(key, inputs):
    return Pytree(jax.random.normal(key, (inputs, FEATURES)))


def convolution(key, task):
    return Convolution(jax.random.normal(key, (2, task.image.channels, 3, 3)))


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Convolution:
    """An operation that the library's own networks do not have."""

    kernels: jax.Array

    def __call__(self, image):
        images = image.transpose(2, 0, 1)[None]
        return jax.nn.gelu(jax.lax.conv_general_dilated(images, self.kernels, (2, 2), ((0, 1), (1, 0))))


def whole(task, heads):
    def apply(params, obs):
        q = params @ obs
        return Output(q=q, values=q, features=obs)

    shape = (heads, task.actions, task.obs_size)
    return Network(lambda key: jax.random.normal(key, shape), apply, lambda values: values, (task.actions,))


def built(task, method, **settings):
    run = iqrl.resolve(task, method, **settings)
    return run, build_agent(run, make_task(run))


def shapes(agent):
    state = jax.eval_shape(agent.init, jax.random.key(0))
    return agent.network.values_shape, jax.tree.map(lambda leaf: leaf.shape, state.params)


@pytest.mark.parametrize("network", [Duck, Duck(), pytree, lambda key, inputs: pytree(key, inputs)])
@pytest.mark.parametrize(("method", "heads"), [("dqn", 1), ("iq", 3), ("rainbow-iq", 3), ("medqn-u", 1)])
def test_heads_stand_on_the_features_of_a_module(network, method, heads):
    run, agent = built("CartPole-v0", method, network=network)
    outputs = {"rainbow-iq": 2 * 51}.get(method, 2)
    params = shapes(agent)[1]
    assert params["heads"]["w"] == (heads, outputs, FEATURES)
    assert jax.tree.leaves(params["encoder"], is_leaf=lambda each: isinstance(each, tuple) and each == (4, FEATURES))
    assert (run.hidden, params["trunk"]) == ((), ())


def test_local_features_stand_between_the_module_and_the_heads():
    run, agent = built("CartPole-v0", "local-q", network=Duck, bins=4)
    params = shapes(agent)[1]
    assert run.hidden == (128,)
    assert params["trunk"][0]["w"] == (FEATURES, 128)
    assert params["heads"] == (128 * 4, 2 * 2)  # θ of two actions, and the distances of their averages


def test_hidden_layers_between_if_asked_for():
    _, agent = built("CartPole-v0", "dqn", network=Duck, hidden=(7,), dueling=True, noisy=True)
    params = shapes(agent)[1]
    assert (params["trunk"][0]["w"], params["heads"]["w"]) == ((FEATURES, 7), (1, 3, 7))


def values_of(agent, state, obs):
    seen = jnp.asarray(obs, jnp.float32)
    return agent.q_values(state, ContextInputs(obs=seen, initial_obs=seen, score=jnp.float32(0)))[0]


def test_q_is_the_head_of_the_features_and_seeds_have_their_own_weights():
    _, agent = built("CartPole-v0", "dqn", network=pytree, buffer_size=1)
    states, obs = [agent.init(jax.random.key(seed)) for seed in (0, 1)], [0.1, -0.2, 0.3, 0.4]
    for state in states:
        features = np.tanh(np.float32(obs) @ state.params["encoder"][0])
        np.testing.assert_allclose(values_of(agent, state, obs), state.params["heads"]["w"][0] @ features, rtol=1e-5)
    assert not np.allclose(states[0].params["encoder"][0], states[1].params["encoder"][0])


def test_a_module_gets_images_as_images_and_is_exported(tmp_path):
    """The clusters of iq-te are those of its features."""
    run, agent = built("MinAtar/Breakout-v1", "iq-te", network=convolution, buffer_size=1, seeds=1)
    state = jax.tree.map(lambda leaf: leaf[None], agent.init(jax.random.key(0))._replace(replay=()))
    result = Result(run=run, metrics=pl.DataFrame(), agent_state=state, task=make_task(run), agent=agent, timing={})
    assert export_result(result, tmp_path / "agent.py").largest > 0
    assert export_result(result, tmp_path / "agent.onnx", "onnx").largest > 0


def test_a_whole_network():
    _, agent = built("CartPole-v0", "iq", network=whole)
    assert shapes(agent)[1] == (3, 2, 4)
    with pytest.raises(BadInput, match=r"gives q and values of the shapes .*; rainbow on CartPole-v0 needs"):
        built("CartPole-v0", "rainbow", network=whole)


class Failing(Duck):
    def apply(self, variables, obs):
        raise ValueError("no features today")


class Stateful(Duck):
    def init(self, key, obs):
        return super().init(key, obs) | {"batch_stats": {"mean": jnp.zeros(3)}}


class Asking(Duck):
    def __init__(self, width):
        self.width = width


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("tcnn", {"network": Duck}, "tcnn needs its own network; leave it out"),
        ("dsom", {"network": Duck}, "dsom needs its own network; leave it out"),
        ("dqn", {"network": Failing}, "Failing failed with ValueError at .*: no features today"),
        ("dqn", {"network": Stateful}, "Stateful keeps batch_stats beside its weights"),
        ("dqn", {"network": Asking}, "asks for width; what makes a network may ask for key, inputs"),
        ("dqn", {"network": Pytree(jnp.ones((4, 2)))}, "give a function of key that makes it"),
        ("dqn", {"network": object()}, "which has no init and apply"),
        ("dqn", {"network": "nowhere:Net"}, "cannot import 'nowhere'"),
        ("dqn", {"network": "../my.py:Net"}, "run from a folder that holds it"),
        ("dqn", {"network": Duck, "activation": "relu"}, "activation is a setting of the library's layers"),
        ("dqn", {"hidden": ()}, "hidden must have at least one value"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(method, settings, words):
    with pytest.raises(BadInput, match=words):
        built("CartPole-v0", method, **settings)


def test_names():
    assert module_form("nets/my.py:Net") == "nets.my:Net"
    assert name_of_network(Duck) == f"{__name__}:Duck"
    assert name_of_network(Duck()).startswith("object:Duck_")


def test_a_saved_run_names_its_network_and_needs_its_code(tmp_path, monkeypatch):
    (tmp_path / "saved_net.py").write_text("class Net:\n    init = apply = lambda self, *given: given\n")
    monkeypatch.chdir(tmp_path)
    run = iqrl.resolve("CartPole-v0", "dqn", network="saved_net.py:Net")
    assert run.identity != iqrl.resolve("CartPole-v0", "dqn").identity
    store = RunStore.create(tmp_path / "run", run)
    assert store.info["config"]["network"] == "saved_net:Net"
    assert "mark" in store.info
    monkeypatch.delitem(__import__("sys").modules, "saved_net")
    (tmp_path / "saved_net.py").unlink()
    found = RunStore.open(tmp_path / "run").run
    assert found == run
    with pytest.raises(BadInput, match="cannot import 'saved_net' for 'saved_net:Net'"):
        build_agent(found, make_task(found))
