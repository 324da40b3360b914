"""The five games of MinAtar (Young and Tian 2019), small enough to be stepped inside a compiled program."""

from iqrl.envs.minatar.asterix import asterix
from iqrl.envs.minatar.breakout import breakout
from iqrl.envs.minatar.freeway import freeway
from iqrl.envs.minatar.seaquest import seaquest
from iqrl.envs.minatar.space_invaders import space_invaders

__all__ = ["asterix", "breakout", "freeway", "seaquest", "space_invaders"]
