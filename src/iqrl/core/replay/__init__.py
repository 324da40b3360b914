"""Replay: what the agent stores of its experience. To add a type of replay, make a `Replay` (`base.py`)."""

from iqrl.core.replay.base import Replay
from iqrl.core.replay.frames import frame_replay
from iqrl.core.replay.ring import ring_replay
from iqrl.core.replay.sampling import one_copy, prioritised, uniform, whole

__all__ = ["Replay", "frame_replay", "one_copy", "prioritised", "ring_replay", "uniform", "whole"]
