"""A network of the user's own: a module of Flax, Equinox or Haiku before the library's heads, or a whole `Network`.

A module gives features of one observation; the heads, one per context, are the library's and stand on them. So one
module serves every method: Q values, dueling heads, distributions, noise and local features are parts of the heads.
Nothing of Flax or Equinox is imported; a module is known by what it can do:

    init(key, obs), apply(params, obs)   Flax linen, Haiku without a key, or any record with these functions
    a function or class with `key`       gives a callable pytree, as Equinox and Flax NNX have it; its arrays of floats
                                         are the weights
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from iqrl.core.encoders import Encoder, beside_vector, picture
from iqrl.core.networks import Network
from iqrl.envs.base import Task
from iqrl.errors import BadInput
from iqrl.plugins import in_a_sentence, load_attribute
from iqrl.settings import Run

ARGUMENTS = ("key", "inputs", "actions", "heads", "task", "run")
"""what a function or class that makes a network may ask for, by name"""


def own_network(run: Run, task: Task, heads: int, values_shape: tuple[int, ...]) -> Network | None:
    """The whole network, where the user gave one."""
    made = _make(run, task, heads)
    if not isinstance(made, Network):
        return None
    if run.noisy:
        raise BadInput(f"noisy is for the library's own heads, and {run.network} is a whole Network.")
    output = _tried(run, made.init, made.apply, jax.ShapeDtypeStruct((task.obs_size,), jnp.float32))
    shapes = tuple(getattr(getattr(output, part, None), "shape", None) for part in ("q", "values"))
    needed = ((heads, task.actions), (heads, *values_shape))
    if shapes != needed:
        raise BadInput(
            f"{run.network} gives q and values of the shapes {shapes}; {run.method} on {run.task} needs {needed}."
        )
    return made._replace(own=True)


def own_encoder(run: Run, task: Task, heads: int = 1) -> Encoder:
    """The user's module as what stands before the hidden layers, if there are any, and the heads."""
    made = _make(run, task, heads)
    if isinstance(made, Network):
        raise BadInput(f"{run.network} is a whole Network; {run.method} builds on a module that gives features.")
    init, apply = made
    image = task.image
    seen: Callable[[jax.Array], jax.Array] = lambda obs: obs if image is None else picture(obs, image)
    shown = jax.eval_shape(seen, jax.ShapeDtypeStruct((task.obs_size,), jnp.float32))
    features = _tried(run, lambda key: init(key, jnp.zeros(shown.shape)), apply, shown)
    if not jnp.issubdtype(getattr(features, "dtype", jnp.int32), jnp.floating):
        raise BadInput(f"{run.network} must give an array of floats, the features of one observation.")
    encoder = Encoder(
        init=lambda key: init(key, jnp.zeros(shown.shape)),
        apply=lambda params, obs: apply(params, seen(obs)).reshape(-1),
        size=math.prod(features.shape),
    )
    return encoder if image is None else beside_vector(encoder, image)


def _tried(run: Run, init: Callable, apply: Callable, seen: jax.ShapeDtypeStruct) -> Any:
    """What it gives for one observation, by its shapes; a mistake in it is a sentence."""
    try:
        params = jax.eval_shape(init, jax.random.key(0))
        found = jax.eval_shape(apply, params, seen)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"{run.network} failed with {in_a_sentence(error)}.") from error
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(params)):
        raise BadInput(f"{run.network} has weights that are not floats.")
    state = [name for name in params if name != "params"] if isinstance(params, Mapping) and "params" in params else []
    if state:
        raise BadInput(f"{run.network} keeps {state[0]} beside its weights, and only weights are learned here.")
    return found


def _make(run: Run, task: Task, heads: int) -> Network | tuple[Callable, Callable]:
    """A `Network`, or functions init(key, obs) and apply(params, obs)."""
    given = load_attribute(run.network)
    arguments = {"inputs": task.obs_size, "actions": task.actions, "heads": heads, "task": task, "run": run}
    if is_maker(given):
        wanted = _wanted(run.network, given)
        passed = {name: arguments[name] for name in wanted if name != "key"}
        if "key" in wanted:
            return _callable_pytree(run.network, lambda key: given(key=key, **passed))
        try:
            given = given(**passed)
        except Exception as error:
            raise BadInput(f"{run.network} failed with {in_a_sentence(error)}.") from error
    if isinstance(given, Network):
        return given
    if not _has_functions(given):
        raise BadInput(
            f"{run.network} is {type(given).__name__}, which has no init and apply; for a module that is made with its "
            f"weights, give a function of key that makes it."
        )
    return given.init, given.apply


def is_maker(given: Any) -> bool:
    """Whether it makes a network, and is none itself. The class of a module has init and apply too; a module that has
    its weights in it can be called too."""
    has_weights = jax.tree.leaves(given) != [given]
    return inspect.isclass(given) or (callable(given) and not _has_functions(given) and not has_weights)


def _has_functions(given: Any) -> bool:
    return all(callable(getattr(given, name, None)) for name in ("init", "apply"))


def _wanted(name: str, maker: Callable) -> list[str]:
    """The arguments that it asks for."""
    try:
        parameters = inspect.signature(maker).parameters
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name} has arguments that cannot be read; give a function that makes the network.") from error
    for each in parameters.values():
        required = each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        if required and each.name not in ARGUMENTS:
            raise BadInput(
                f"{name} asks for {each.name}; what makes a network may ask for {', '.join(ARGUMENTS)}. Give a "
                f"function that sets the rest."
            )
    return [each for each in ARGUMENTS if each in parameters]


def _callable_pytree(name: str, make: Callable[[jax.Array], Any]) -> tuple[Callable, Callable]:
    """Functions init and apply of a module that is made with its weights: its arrays of floats are learned."""
    try:
        leaves, structure = jax.tree.flatten(make(jax.random.key(0)))
    except Exception as error:
        raise BadInput(f"{name} failed with {in_a_sentence(error)}.") from error
    learned = [isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves]
    if not any(learned):
        raise BadInput(
            f"{name} made {type(leaves[0]).__name__ if leaves else 'nothing'}, in which there are no weights."
        )
    pick = lambda leaves: tuple(leaf for leaf, yes in zip(leaves, learned, strict=True) if yes)

    def apply(params: tuple[jax.Array, ...], obs: jax.Array) -> jax.Array:
        weights = iter(params)
        whole = [next(weights) if yes else leaf for leaf, yes in zip(leaves, learned, strict=True)]
        return jax.tree.unflatten(structure, whole)(obs)

    return lambda key, obs: pick(jax.tree.leaves(make(key))), apply
