"""A method of your own in one file: its settings, its network, how it is composed, its entry.

    iqrl train CartPole-v0 --method own_method:fourier --fourier-features 128
    iqrl train CartPole-v0 --method own_method:fourier --help

run in this folder. The method is DQN with a linear layer over random Fourier features of the state (Rahimi & Recht
2007), which are drawn once and not trained. Its two settings are flags, keywords, TOML keys and part of `run.json`.
"""

import jax
import jax.numpy as jnp

from iqrl import Method, Settings, setting
from iqrl.core.networks import Network, Output
from iqrl.methods.base import q_learner


class FourierSettings(Settings):
    """random Fourier features"""

    fourier_features: int = setting(256, "number of features", minimum=1)
    fourier_width: float = setting(0.5, "distance, as a share of a variable's range, at which states differ", above=0)


def fourier_network(task, features, width):
    low, high = jnp.asarray(task.low), jnp.asarray(task.high)
    key, phase_key = jax.random.split(jax.random.key(0))
    directions = jax.random.normal(key, (features, task.obs_size)) / width
    phases = jax.random.uniform(phase_key, (features,), maxval=2 * jnp.pi)

    def init(key):
        return {"w": jnp.zeros((task.actions, features)), "b": jnp.zeros(task.actions)}

    def apply(params, obs):  # of one state; batches and seeds are vmap axes
        wave = jnp.cos(directions @ ((obs - low) / (high - low)) + phases)
        q = (params["w"] @ wave + params["b"])[None]  # one head
        return Output(q=q, values=q, features=wave)

    return Network(init=init, apply=apply, q_of=lambda values: values, values_shape=(task.actions,))


def build(run, task):
    network = fourier_network(task, run.fourier_features, run.fourier_width)
    return q_learner(run, task, network=network)


fourier = Method(
    name="fourier",
    summary="DQN with a linear layer over random Fourier features",
    paper="Rahimi & Recht 2007",
    build=build,
    settings=(FourierSettings,),
    defaults={"learning_rate": 3e-3},
)
