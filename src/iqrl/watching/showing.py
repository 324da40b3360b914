"""Where a film is shown: a file or a window; `terminal.py` has the terminal."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from iqrl.errors import BadInput, PackagesMissing
from iqrl.files import write_whole, writing
from iqrl.watching.frames import Film, arrays
from iqrl.watching.pictures import INSTALL

COLOURS = 64
"""of a GIF: drawings need few, and fewer make a smaller file"""


def write_film(film: Film, path: Path) -> None:
    """A GIF or an MP4, by the ending of the name."""
    check_ending(path)
    WRITERS[path.suffix](film, path)


def check_ending(path: Path) -> None:
    """Before an episode is played."""
    if path.suffix not in WRITERS:
        raise BadInput(f"{path} is neither a GIF nor an MP4; end its name with {' or '.join(WRITERS)}.")


def write_gif(film: Film, path: Path) -> None:
    """One palette for all frames, so that what does not change from one to the next is not stored again."""
    sample = film.frames[:: max(len(film.frames) // 8, 1)]
    sheet = Image.new("RGB", (sample[0].width, sum(frame.height for frame in sample)))
    for i, frame in enumerate(sample):
        sheet.paste(frame, (0, i * frame.height))
    palette = sheet.quantize(COLOURS, dither=Image.Dither.NONE)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in film.frames]
    content = io.BytesIO()
    delay = max(round(100 / film.frames_a_second), 2) * 10  # in ms; a GIF counts hundredths of a second
    frames[0].save(
        content, "GIF", save_all=True, append_images=frames[1:], duration=delay, loop=0, optimize=False, disposal=1
    )
    with writing(path):
        write_whole(path, content.getvalue())


def write_mp4(film: Film, path: Path) -> None:
    try:
        import cv2
    except ImportError as error:
        raise PackagesMissing(
            f"an MP4 needs OpenCV ({error}): {INSTALL}; a GIF needs nothing more.", "OpenCV"
        ) from error
    height, width = np.asarray(film.frames[0]).shape[:2]
    even = width // 2 * 2, height // 2 * 2  # of odd sides most players can make nothing
    partial = path.with_name(f".{path.stem}.partial.mp4")
    with writing(path):
        coder = cv2.VideoWriter.fourcc(*"mp4v")
        writer = cv2.VideoWriter(str(partial), coder, film.frames_a_second, even)
        try:
            if not writer.isOpened():
                raise BadInput(f"cannot write {path}: OpenCV could not open it.")
            for frame in arrays(film):
                writer.write(np.ascontiguousarray(frame[: even[1], : even[0], ::-1]))
        finally:
            writer.release()
        os.replace(partial, path)


WRITERS: dict[str, Callable[[Film, Path], None]] = {".gif": write_gif, ".mp4": write_mp4}


def open_window(film: Film, title: str) -> None:
    """Shown once, then left open until it is closed; a key closes it too."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        pygame: Any = import_module("pygame")
    except ImportError as error:
        raise PackagesMissing(f"a window needs pygame ({error}): {INSTALL}; or give --out.", "pygame") from error
    pygame.display.init()  # not all of pygame, which would complain where there is no sound card
    try:
        if pygame.display.get_driver() == "offscreen":  # what SDL takes where it reaches no screen
            raise BadInput("no window can be opened here: the screen cannot be reached; give --out episode.gif.")
        screen = pygame.display.set_mode(film.frames[0].size)
        pygame.display.set_caption(title)
        clock = pygame.time.Clock()
        for frame in arrays(film):
            screen.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
            pygame.display.flip()
            clock.tick(film.frames_a_second)
            if _closed(pygame):
                return
        while not _closed(pygame) and pygame.display.get_driver() != "dummy":
            clock.tick(10)
    finally:
        pygame.quit()


def _closed(pygame: Any) -> bool:
    return any(event.type in (pygame.QUIT, pygame.KEYDOWN) for event in pygame.event.get())
