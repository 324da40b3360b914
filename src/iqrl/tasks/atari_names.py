"""The Atari games by name, and the packages that play them."""

from __future__ import annotations

import re
from types import ModuleType

import gymnasium

from iqrl.errors import BadInput, PackagesMissing, unknown

TASK_NAME = re.compile(r"ALE/(?P<game>\w+)-v5")


def emulator() -> ModuleType:
    """ale-py, which brings the games along and registers them with Gymnasium when it is imported."""
    try:
        import ale_py
    except ImportError as error:
        raise packages_missing(error) from error
    return ale_py


def packages_missing(error: ImportError) -> PackagesMissing:
    return PackagesMissing(
        f'Atari games need more packages ({error}): pip install ".[atari]" in iqrl\'s source tree.', "the extra atari"
    )


def game_names() -> list[str]:
    """The games as Gymnasium spells them: "Pong", "FishingDerby"."""
    return sorted(_roms())


def rom_of(task: str) -> str:
    """The file name of the game that `task`, of the form ALE/<Game>-v5, is about."""
    matched = TASK_NAME.fullmatch(task)
    if matched is None:
        raise BadInput(f"an Atari task is named like ALE/Pong-v5, got {task!r}.")
    roms, game = _roms(), matched["game"]
    if game not in roms:
        raise unknown("Atari game", game, roms)
    return roms[game]


def _roms() -> dict[str, str]:
    """ "FishingDerby" -> "fishing_derby", from Gymnasium's registry: games for two players only are not in it."""
    emulator()
    named = {TASK_NAME.fullmatch(task): spec.kwargs.get("game") for task, spec in gymnasium.registry.items()}
    return {matched["game"]: rom for matched, rom in named.items() if matched and rom}
