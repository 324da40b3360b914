"""A network of your own: a module that stands before the library's heads.

    iqrl train CartPole-v0 --method iq --network own_network.py:Residual

run in this folder; in Python, `iqrl.DQN("CartPole-v0", network=Residual)`. A module gives features of one observation.
The heads on them are the library's, so the same module serves DQN, IQ with its k heads, Rainbow and local-q. This one
needs no other package. A module of Flax has `init` and `apply` itself, one of Equinox is made by a function of `key`:

    class Net(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, obs):
            return flax.linen.relu(flax.linen.Dense(64)(obs))

    def net(key, inputs):
        return equinox.nn.MLP(inputs, 64, 64, 1, final_activation=jax.nn.relu, key=key)
"""

import jax
import jax.numpy as jnp


class Residual:
    """Two layers with a connection around the second."""

    def init(self, key, obs):
        first, second = jax.random.split(key)
        return {"in": jax.random.normal(first, (obs.size, 32)) / 2, "block": jax.random.normal(second, (32, 32)) / 16}

    def apply(self, params, obs):
        hidden = jnp.tanh(obs @ params["in"])
        return hidden + jnp.tanh(hidden @ params["block"])
