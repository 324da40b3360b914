"""Atari games as the paper plays them: Dopamine's protocol on the Arcade Learning Environment (ALE).

Sticky actions, four frames to a step, grey pictures of 84 x 84 that pool the last two frames, four of them in a stack;
no no-ops and no FIRE at the start, no end when a life is lost, the smallest action set that plays the game. A task's
name, ALE/Pong-v5, is Gymnasium's and only says which game: nothing else of Gymnasium's v5 settings applies.

The state of ALE 0.12 that can be saved leaves out the action that may still stick and the picture on the screen, and in
some games (Qbert, Tetris) more. What it does hold exactly is the moment before an episode, as a reset forgets the rest.
A snapshot is therefore that moment and the actions since; restoring plays them again.
"""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete

from iqrl.core.encoders import NATURE, Image
from iqrl.envs.base import Task, external_task
from iqrl.envs.minatar.game import GameSettings
from iqrl.errors import BadInput, PackagesMissing, unknown

# The Atari games by name, and the packages that play them.


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


FRAME_SKIP, STACK, SIDE = 4, 4, 84
STICKY, TIME_LIMIT = 0.25, 27_000


def console(sticky: float) -> Any:
    """ALE without a game, silent."""
    ale_py = emulator()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    made = ale_py.ALEInterface()
    made.setFloat("repeat_action_probability", sticky)
    return made


def picture_maker() -> Callable[[np.ndarray], np.ndarray]:
    """Shrinks a screen: each pixel is the mean over the area that it covers."""
    try:
        import cv2
    except ImportError as error:
        raise packages_missing(error) from error
    return lambda screen: cv2.resize(screen, (SIDE, SIDE), interpolation=cv2.INTER_AREA)


class AtariGame(gymnasium.Env):
    """One game; rewards are the game's own, not clipped. `reset(seed=...)` starts the episode that Gymnasium's does."""

    def __init__(self, name: str, sticky: float = STICKY, time_limit: int = TIME_LIMIT):
        """`sticky`: chance that a frame repeats the last action; `time_limit`: steps until an episode is truncated."""
        if not 0 <= sticky < 1:
            raise BadInput(f"sticky must be at least 0 and below 1, got {sticky}.")
        if time_limit < 1:
            raise BadInput(f"time_limit must be at least 1, got {time_limit}.")
        self.name, self.sticky, self.time_limit = name, sticky, time_limit
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 15}
        self._resized = picture_maker()
        self._console = console(sticky)
        self._rom = emulator().roms.get_rom_path(rom_of(name))
        self._console.loadROM(self._rom)
        self.buttons = self._console.getMinimalActionSet()
        self.action_space = Discrete(len(self.buttons))
        self.observation_space = Box(0, 255, (STACK, SIDE, SIDE), np.uint8)
        self._screens = np.zeros((2, *self._console.getScreenDims()), np.uint8)
        self._before_episode: bytes | None = None
        self._over = True

    def __repr__(self) -> str:
        return f"AtariGame({self.name!r}, sticky={self.sticky}, time_limit={self.time_limit})"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        if seed is not None or self._before_episode is None:
            self._switch_on(seed)
        self._before_episode = self._console.cloneSystemState().serialize()
        return self._begin_episode(), self._info()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        if self._over:
            raise ResetNeeded("the episode is over or was not begun: call reset().")
        reward, observation = self._play(action), self._see()
        terminated = self._console.game_over(with_truncation=False)
        truncated = len(self._actions) >= self.time_limit and not terminated
        self._over = terminated or truncated
        return observation, float(reward), terminated, truncated, self._info()

    def render(self) -> np.ndarray:
        """The screen in colours, [height, width, 3]."""
        return self._console.getScreenRGB()

    def snapshot(self) -> dict[str, np.ndarray]:
        """What `restore` needs to go on from here exactly, in this process or another: some 14 kB and the actions."""
        if self._before_episode is None:
            raise ResetNeeded("there is nothing to save before the first reset().")
        return {
            "game": np.frombuffer(repr(self).encode(), np.uint8),
            "before_episode": np.frombuffer(self._before_episode, np.uint8),
            "actions": np.array(self._actions, np.uint8),
        }

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Plays the episode again up to the snapshot: some seconds for the longest, most of them unseen."""
        game = snapshot["game"].tobytes().decode()
        if game != repr(self):
            raise BadInput(f"a snapshot of {game} cannot be restored into {self!r}.")
        self._before_episode = snapshot["before_episode"].tobytes()
        self._console.restoreSystemState(emulator().ALEState(self._before_episode))
        self._begin_episode()
        actions = snapshot["actions"].tolist()
        for action in actions[:-STACK]:
            self._play(action, seen=False)
        for action in actions[-STACK:]:
            self.step(action)

    def _switch_on(self, seed: int | None) -> None:
        """ALE takes a seed only when a game is loaded. The seed is made as in Gymnasium, so that both play the same."""
        _, ale_seed = np.random.SeedSequence(seed).generate_state(2).astype(np.int32)
        self._console.setInt("random_seed", int(ale_seed))
        self._console.loadROM(self._rom)

    def _begin_episode(self) -> np.ndarray:
        self._console.reset_game()
        self._over, self._actions = False, []
        self._pictures = deque([np.zeros((SIDE, SIDE), np.uint8)] * STACK, maxlen=STACK)
        self._screens[1] = 0
        self._console.getScreenGrayscale(self._screens[0])
        return self._see()

    def _play(self, action: int, seen: bool = True) -> int:
        """The rewards of four frames. When the game ends among them, its last screens are those from before."""
        self._actions.append(int(action))
        button, reward = self.buttons[action], 0
        for frames_left in reversed(range(FRAME_SKIP)):
            reward += self._console.act(button)
            if self._console.game_over(with_truncation=False):
                break
            if seen and frames_left < 2:
                self._console.getScreenGrayscale(self._screens[frames_left])
        return reward

    def _see(self) -> np.ndarray:
        """Things that are drawn in every other frame only are in the brighter of the last two."""
        pooled = np.maximum(self._screens[0], self._screens[1], out=self._screens[0])
        self._pictures.append(self._resized(pooled))
        return np.stack(self._pictures)

    def _info(self) -> dict[str, Any]:
        return {"lives": self._console.lives()}


DEFAULTS = (
    ("buffer_size", 10_000), ("learning_starts", 20_000), ("update_every", 4), ("target_period", 8000), ("gamma", 0.99),
    ("optimiser", "rmsprop"), ("learning_rate", 2.5e-4), ("epsilon_final", 0.01), ("epsilon_begin", 20_000),
    ("epsilon_decay", 250_000), ("activation", "relu"), ("bootstrap_time_limit", False), ("seeds", 1),
    ("srnn_form", "samples"),
)  # fmt: skip
"""Dopamine's, but for the paper's small buffer"""


@functools.cache
def actions_of(name: str, sticky: float) -> int:
    """Loading a game takes a tenth of a second, and a study asks of hundreds of runs."""
    return len(AtariGame(name, sticky).buttons)


def atari_task(name: str, options: GameSettings) -> Task:
    """The game as a task: what is learned from is the reward clipped to [-1, 1]."""
    sticky = STICKY if options.sticky is None else options.sticky
    make: Callable[[int], AtariGame] = lambda seed: AtariGame(name, sticky)
    pixels = STACK * SIDE * SIDE
    return external_task(
        make,
        name=name,
        actions=actions_of(name, sticky),
        low=(0.0,) * pixels,
        high=(255.0,) * pixels,
        time_limit=TIME_LIMIT,
        external_reward=lambda rewards: np.clip(rewards, -1.0, 1.0),
        summary="an Atari game",
        image=Image(SIDE, SIDE, 1, stack=STACK),
        layers=NATURE,
        network=(("hidden", (512,)), ("own_layers", 1)),
        defaults=DEFAULTS,
        paper_steps=10_000_000,
        paper_period=200_000,
        # The preset's discount and target rule are those of the classic tasks; here the paper has Dopamine's.
        paper=(("gamma", 0.99), ("double_q", False)),
    )
