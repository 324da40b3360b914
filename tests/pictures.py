"""A small task of pictures, and the methods that are for nothing else."""

import jax.numpy as jnp

from iqrl.methods import METHODS
from iqrl.parts.encoders import MINATAR, Image
from iqrl.tasks.base import Task

WALK = f"{__name__}:picture_of_a_walk"
ON_IMAGES = [method for method in METHODS if method.endswith(("-re", "-te"))]


def picture_of_a_walk(options):
    """A line of five squares, seen as a picture: stepping off to the right pays and leads back to the middle."""

    def step(place, action, _):
        place = place + jnp.where(action == 1, 1, -1)
        paid = place >= 5
        return jnp.where(paid, 2, place), jnp.where(paid, 1.5, -0.25).astype(jnp.float32), place < 0

    def observe(place):
        rows, columns, channels = jnp.indices((5, 5, 2))
        return ((columns == place) & (channels == 0) | (rows == 1) & (channels == 1)).astype(jnp.uint8)

    picture = {
        "image": Image(5, 5, 2, highest=1.0),
        "layers": MINATAR,
        "network": (("hidden", (32,)), ("own_layers", 1)),
    }
    return Task("walk", 2, (0.0,) * 50, (1.0,) * 50, 23, lambda _: jnp.int32(2), step, observe, 0, **picture)
