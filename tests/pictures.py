"""A small task of images, and how the tests choose a task for a method."""

import jax.numpy as jnp

from iqrl.core.encoders import MINATAR, Image
from iqrl.envs.base import Task
from iqrl.methods.registry import METHODS

WALK = f"{__name__}:picture_of_a_walk"
ON_IMAGES = [name for name, method in METHODS.items() if method.observations == "images"]
ON_VECTORS = [name for name, method in METHODS.items() if method.observations != "images"]


def picture_of_a_walk(options):
    """A line of five squares, seen as an image: stepping off to the right pays and leads back to the middle."""

    def step(place, action, _):
        place = place + jnp.where(action == 1, 1, -1)
        paid = place >= 5
        return jnp.where(paid, 2, place), jnp.where(paid, 1.5, -0.25).astype(jnp.float32), place < 0

    def observe(place):
        rows, columns, channels = jnp.indices((5, 5, 2))
        return ((columns == place) & (channels == 0) | (rows == 1) & (channels == 1)).astype(jnp.uint8)

    return Task(
        name="walk",
        actions=2,
        low=(0.0,) * 50,
        high=(1.0,) * 50,
        time_limit=23,
        reset=lambda _: jnp.int32(2),
        step=step,
        observe=observe,
        num_reset_uniforms=0,
        image=Image(5, 5, 2, highest=1.0),
        layers=MINATAR,
        network=(("hidden", (32,)), ("own_layers", 1)),
    )
