"""The five games of MinAtar (Young and Tian 2019), small enough to be stepped inside a compiled program."""

from iqrl.tasks.minatar.asterix import asterix
from iqrl.tasks.minatar.breakout import breakout
from iqrl.tasks.minatar.freeway import freeway
from iqrl.tasks.minatar.seaquest import seaquest
from iqrl.tasks.minatar.space_invaders import space_invaders

__all__ = ["asterix", "breakout", "freeway", "seaquest", "space_invaders"]
