"""What a regulariser is: a term added to the value loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from iqrl.parts.losses import Sample
from iqrl.parts.networks import Output
from iqrl.parts.schedules import Schedule


class Moment(NamedTuple):
    """What a regulariser may look at when an update is made."""

    samples: Sample
    """the batch, its axis last"""
    online: Callable[[jax.Array], Output]
    """θ on other states [d, B]; gradients flow"""
    teacher: Callable[[jax.Array], Output]
    """θ⁻ on other states [d, B]"""
    perception: Any
    """the state of the agent's perception"""
    uniforms: jax.Array
    """as many random numbers as the regulariser asked for"""


class Regulariser(NamedTuple):
    """Adds weight(t) · mean of loss(moment) to what is minimised."""

    name: str
    weight: Schedule
    loss: Callable[[Moment], jax.Array]
    """one number per sample [B], or one for the batch"""
    draws: int = 0
    """uniform numbers it needs per update"""
