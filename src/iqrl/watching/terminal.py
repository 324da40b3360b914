"""An episode in the terminal: pictures in half characters, and below them, as text, what has letters and numbers.

Letters drawn in so few pixels could not be read, so bars and their scale are written. Agents stand side by side.
"""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import TextIO

import numpy as np
from PIL import Image

from iqrl.diagnostics.text import three_digits
from iqrl.watching.frames import CONTEXTS, Film, Panel, action_names, fitted, head_texts, scale_text
from iqrl.watching.pictures import Variables

CLEAR, HOME, ERASE_BELOW, BOLD, RESET = "\x1b[2J", "\x1b[H", "\x1b[J", "\x1b[1m", "\x1b[0m"
STYLE = re.compile(r"\x1b\[[0-9;]*m")
EIGHTHS = " ▏▎▍▌▋▊▉█"
NUMBER, RANGE, NARROWEST = 7, 6, 18
"""characters of a value, of an end of a range, and of the narrowest bar with its label"""
FEW_BARS, MOST_BARS = 6, 9
"""below each other, where they can stand in columns and where the columns are full"""
GAP = "  "


def play_in_terminal(
    film: Film, file: TextIO, columns: int, rows: int, wait: Callable[[float], None] = time.sleep
) -> None:
    file.write(CLEAR)
    for moment in film.moments:
        file.write(HOME + "\n".join(screen(film.panels, moment, columns, rows)) + ERASE_BELOW)
        file.flush()
        wait(1 / film.frames_a_second)
    file.write("\n")


def screen(panels: Sequence[Panel], index: int, columns: int, rows: int) -> list[str]:
    """The lines of one moment, none wider than `columns`."""
    width = max((columns - len(GAP) * (len(panels) - 1)) // len(panels), 1)
    texts = [panel_text(panel, index, width) for panel in panels]
    room = max(rows - max(map(len, texts)), 1)
    pictures = [picture_lines(panel, index, width, room) for panel in panels]
    blocks = [_filled(lines, width, max(map(len, all_lines))) for all_lines in (pictures, texts) for lines in all_lines]
    above, below = blocks[: len(panels)], blocks[len(panels) :]
    return [GAP.join(parts) for part in (above, below) for parts in zip(*part, strict=True)][:rows]


def _filled(lines: Sequence[str], width: int, height: int) -> list[str]:
    return [line + " " * (width - _width(line)) for line in [*lines, *[""] * (height - len(lines))]]


def _width(line: str) -> int:
    return len(STYLE.sub("", line))


# Above: what the environment looks like


def picture_lines(panel: Panel, index: int, width: int, height: int) -> list[str]:
    moment = panel.moment(index)
    if moment.variables is not None:
        return variable_lines(moment.variables, width, height)
    return in_characters(fitted(moment.picture, panel.is_over(index)), width, height)


def in_characters(picture: Image.Image, columns: int, rows: int) -> list[str]:
    """Two pixels to a character, the upper half of it in one colour and the lower in another."""
    factor = min(columns / picture.width, 2 * rows / picture.height)
    size = max(int(picture.width * factor), 1), max(int(picture.height * factor) // 2, 1) * 2
    pixels = np.asarray(picture.resize(size, Image.Resampling.BOX))
    lines = []
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        cells = [f"\x1b[38;2;{a};{b};{c};48;2;{d};{e};{f}m▀" for (a, b, c), (d, e, f) in zip(upper, lower, strict=True)]
        lines.append("".join(cells) + RESET)
    return lines


def variable_lines(seen: Variables, width: int, height: int) -> list[str]:
    """A line for each observed variable: its value, and a bar from the middle of its range between the ends of it."""
    places = seen.places()
    label = len(f"obs {len(places) - 1}")

    def cell(i: int, wide: int) -> str:
        start = f"{f'obs {i}':{label}} {three_digits(float(seen.values[i])):>{NUMBER}}"
        ends = [three_digits(float(end[i])) for end in (seen.low, seen.high)]
        length = wide - len(start) - 2 * RANGE - 4
        if length < 8 or max(map(len, ends)) > RANGE:
            return f"{start} {middle_bar(places[i], wide - len(start) - 1)}"
        return f"{start} {ends[0]:>{RANGE}} {middle_bar(places[i], length)} {ends[1]:<{RANGE}}"

    return in_columns(len(places), width, height, cell)


def middle_bar(place: float, length: int) -> str:
    """From the middle to `place`, a share of the length.

    >>> middle_bar(0.0, 9), middle_bar(0.5, 9), middle_bar(0.75, 9)
    ('████│····', '····│····', '····│██··')
    """
    half = max((length - 1) // 2, 0)
    filled = round(abs(2 * place - 1) * half)
    sides = ["·" * half, "█" * filled + "·" * (half - filled)]
    left, right = sides if place >= 0.5 else (sides[1][::-1], sides[0])
    return f"{left}│{right}"[: max(length, 0)]


# Below: what is written in a frame


def panel_text(panel: Panel, index: int, width: int) -> list[str]:
    lines = [line for pair in head_texts(panel, index) for line in _at_both_ends(*pair, width)]
    bars = q_lines(panel, index, width)
    if bars:
        bars += _wrapped(scale_text(panel), width)
    return [*lines, *bars, *strip_lines(panel, index, width)]


def _at_both_ends(left: str, right: str, width: int) -> list[str]:
    if len(left) + len(right) + 2 <= width:
        return [left + " " * (width - len(left) - len(right)) + right]
    return [line for text in (left, right) for line in _wrapped(text, width)]


def _wrapped(text: str, width: int) -> list[str]:
    """At its words; one that is too long is broken, so that nothing is cut.

    >>> _wrapped("bars from 1 to 2", 10), _wrapped("unbreakable", 8)
    (['bars from', '1 to 2'], ['unbreaka', 'ble'])
    """
    return textwrap.wrap(text, width)


def q_lines(panel: Panel, index: int, width: int) -> list[str]:
    """A bar for each action, with its value; the chosen one is marked and bold."""
    moment, (low, high) = panel.moment(index), panel.scale
    names = [f"Q {name}" for name in action_names(panel.episode)]
    label = max(map(len, names), default=0)

    def cell(i: int, wide: int) -> str:
        value, chosen = float(moment.q_values[i]), i == moment.action
        share = (value - low) / (high - low) if np.isfinite(value) else 0.0
        length = max(wide - label - NUMBER - 4, 0)
        text = f"{'>' if chosen else ' '} {names[i]:{label}} {bar(share, length)} {three_digits(value):>{NUMBER}}"
        return f"{BOLD}{text[:wide]}{RESET}" if chosen else text[:wide]

    needed = -(-len(moment.q_values) // max(width // NARROWEST, 1))
    return in_columns(len(moment.q_values), width, min(max(needed, FEW_BARS), MOST_BARS), cell)


def bar(share: float, length: int) -> str:
    """
    >>> bar(0.5, 5), bar(0.0, 3), bar(1.0, 3)
    ('██▌  ', '   ', '███')
    """
    eighths = round(min(max(share, 0.0), 1.0) * length * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + EIGHTHS[rest] * (rest > 0)).ljust(length)


def strip_lines(panel: Panel, index: int, width: int) -> list[str]:
    """The context of every state so far, in colours; of an agent with one context there is nothing to tell."""
    episode = panel.episode
    if episode.contexts == 1:
        return []
    last = min(index, len(episode.moments) - 1)
    label = f"context {episode.moments[last].context:<2} "
    length = max(width - len(label), 1)
    shown = range(length * (last + 1) // len(episode.moments))
    contexts = [episode.moments[i * len(episode.moments) // length].context for i in shown]
    return [label + "".join(f"{_colour(CONTEXTS[it % len(CONTEXTS)])}█" for it in contexts) + RESET]


def _colour(code: str) -> str:
    red, green, blue = bytes.fromhex(code.removeprefix("#"))
    return f"\x1b[38;2;{red};{green};{blue}m"


def in_columns(count: int, width: int, height: int, cell: Callable[[int, int], str]) -> list[str]:
    """Cells below each other, in several columns where they are more than `height`; `cell(i, width)` makes one.

    What does not fit is counted in the last line.
    """
    across = max(1, min(-(-count // height), width // NARROWEST))
    down, each = min(-(-count // across), height), (width - (across - 1)) // across
    shown = min(count, across * down)
    lines = []
    for row in range(down):
        cells = [cell(i, each) for i in range(row, shown, down)]
        lines.append(" ".join(text + " " * (each - _width(text)) for text in cells))
    if shown < count:
        lines[-1] = f"… and {count - shown + across} more"[:width]
    return lines
