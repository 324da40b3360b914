"""Moments as frames: the picture, Q values as bars, the contexts so far as a coloured strip; several agents side by
side.

Drawn with Pillow, which Matplotlib brings along.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from iqrl.diagnostics.text import three_digits
from iqrl.experiments.report.arrangement import size_text
from iqrl.methods.registry import in_words, scales_rewards
from iqrl.watching.episode import Episode, Moment
from iqrl.watching.pictures import font

WIDTH, HEAD, MARGIN, STRIP = 300, 42, 8, 12
PICTURE_HEIGHT = 200
ROW, MOST_ROWS = 16, 18
"""height of a bar, and how many there are at most"""
INK, GREY, PALE, PAPER, BAR, CHOSEN, OVER = (
    "#24292f", "#6e7781", "#d0d7de", "#ffffff", "#b6c2cf", "#0b5d85", "#c0392b",
)  # fmt: skip
ACTIONS = {"CartPole": ("left", "right"), "MountainCar": ("left", "none", "right")}
"""what they are called, by task; elsewhere they are counted from 0"""
CONTEXTS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Tol's bright colours, which the colour-blind can tell apart"""
AFTER = 1.5
"""seconds for which the last moment stays"""


class Film(NamedTuple):
    frames: list[Image.Image]
    frames_a_second: float
    moments: list[int]
    """of each frame, which moment it is"""
    panels: list[Panel]
    """for where letters cannot be drawn"""


def make_film(episodes: Sequence[Episode], frames_a_second: float | None = None) -> Film:
    """All episodes side by side; one that is over stays as it ended. At most 30 frames a second, at the pace of the
    environment: where it is faster, moments are left out."""
    pace = frames_a_second or min(episode.frames_a_second for episode in episodes)
    every = max(1, int(np.ceil(pace / 30)))
    length = max(len(episode.moments) for episode in episodes)
    scale = [_scale(episode) for episode in episodes]
    rows = max(len(episode.moments[0].q_values) for episode in episodes)
    shown = [*range(0, length, every)]
    shown += [length - 1] if shown[-1] != length - 1 else []
    strip = any(episode.contexts > 1 for episode in episodes)
    bars = min(rows, MOST_ROWS) + (rows > 0)  # and a line for their scale
    height = HEAD + PICTURE_HEIGHT + bars * ROW + 2 * MARGIN + strip * (STRIP + MARGIN)
    panels = [Panel(episode, it, height) for episode, it in zip(episodes, scale, strict=True)]
    frames = [_beside([draw_panel(panel, i) for panel in panels]) for i in shown]
    stays = int(AFTER * pace / every)
    return Film(frames + [frames[-1]] * stays, pace / every, shown + [shown[-1]] * stays, panels)


def action_names(episode: Episode) -> Sequence[str]:
    numbers = [str(i) for i in range(len(episode.moments[0].q_values))]
    return ACTIONS.get(episode.run.task.partition("-")[0], numbers)


def _beside(panels: Sequence[Image.Image]) -> Image.Image:
    whole = Image.new("RGB", (sum(panel.width for panel in panels), panels[0].height), PAPER)
    left = 0
    for panel in panels:
        whole.paste(panel, (left, 0))
        left += panel.width
    return whole


def _scale(episode: Episode) -> tuple[float, float]:
    """The range of the Q values over the episode: differences between actions are small beside their size."""
    values = np.concatenate([moment.q_values for moment in episode.moments])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    return low - 0.15 * (high - low or 1.0), high


class Panel(NamedTuple):
    """What is the same in all frames of one agent."""

    episode: Episode
    scale: tuple[float, float]
    height: int

    def moment(self, index: int) -> Moment:
        """The last one where the episode is over by then."""
        return self.episode.moments[min(index, len(self.episode.moments) - 1)]

    def is_over(self, index: int) -> bool:
        return self.episode.over and index >= len(self.episode.moments) - 1


def draw_panel(panel: Panel, index: int) -> Image.Image:
    """One agent at one moment; at its last one where the episode is over by then."""
    moment, over = panel.moment(index), panel.is_over(index)
    drawn = Image.new("RGB", (WIDTH + 2 * MARGIN, panel.height), PAPER)
    draw = ImageDraw.Draw(drawn)
    (who, memory), (total, state) = head_texts(panel, index)
    draw.text((MARGIN, 4), who, INK, font(15))
    draw.text((WIDTH + MARGIN, 6), memory, INK, font(13), anchor="ra")
    draw.text((MARGIN, 24), total, INK, font(13))
    draw.text((WIDTH + MARGIN, 24), state, OVER if over else GREY, font(13), anchor="ra")
    drawn.paste(fitted(moment.picture, over), (MARGIN, HEAD))
    draw.rectangle((MARGIN, HEAD, MARGIN + WIDTH - 1, HEAD + PICTURE_HEIGHT - 1), outline=PALE)
    _draw_bars(draw, moment, HEAD + PICTURE_HEIGHT + MARGIN, panel)
    _draw_strip(draw, panel.episode, index, panel.height - STRIP - MARGIN)
    return drawn


def head_texts(panel: Panel, index: int) -> list[tuple[str, str]]:
    """Two lines, the left and the right of each: who it is and its memory, the return and where the episode is."""
    episode, run = panel.episode, panel.episode.run
    last = min(index, len(episode.moments) - 1)
    state = f"over after {last:,} steps" if panel.is_over(index) else f"step {last:,}"
    return [
        (in_words(run, on_task=False), f"{size_text(episode.memory)} of memory"),
        (f"return {three_digits(panel.moment(index).total)}", state),
    ]


def fitted(picture: np.ndarray, over: bool) -> Image.Image:
    """As large as the place allows, its sides in proportion; small images in whole squares."""
    image = Image.fromarray(picture)
    factor = min(WIDTH / image.width, PICTURE_HEIGHT / image.height)
    size = (max(round(image.width * factor), 1), max(round(image.height * factor), 1))
    image = image.resize(size, Image.Resampling.NEAREST if factor > 1 else Image.Resampling.BOX)
    if over:
        image = Image.blend(image, Image.new("RGB", size, GREY), 0.35)
    place = Image.new("RGB", (WIDTH, PICTURE_HEIGHT), PAPER)
    place.paste(image, ((WIDTH - size[0]) // 2, (PICTURE_HEIGHT - size[1]) // 2))
    return place


def _draw_bars(draw: ImageDraw.ImageDraw, moment: Moment, top: int, panel: Panel) -> None:
    low, high = panel.scale
    names = action_names(panel.episode)
    left, right = MARGIN + 62, WIDTH + MARGIN - 58
    for action, value in enumerate(moment.q_values[:MOST_ROWS]):
        y, best = top + action * ROW, action == moment.action
        draw.text((MARGIN, y + 1), f"Q {names[action]}", CHOSEN if best else GREY, font(12))
        if np.isfinite(value):
            length = (float(value) - low) / (high - low) * (right - left)
            draw.rectangle((left, y + 2, left + max(round(length), 1), y + ROW - 3), CHOSEN if best else BAR)
        draw.text((WIDTH + MARGIN, y + 1), three_digits(float(value)), CHOSEN if best else GREY, font(12), anchor="ra")
    if len(moment.q_values):
        y = top + min(len(moment.q_values), MOST_ROWS) * ROW
        draw.text((MARGIN, y + 1), scale_text(panel), GREY, font(11))


def scale_text(panel: Panel) -> str:
    """Where the bars begin and end, and what Q is measured in where that is not the task's reward."""
    low, high = (three_digits(end) for end in panel.scale)
    return f"bars from {low} to {high}" + "; Q in scaled rewards" * scales_rewards(panel.episode.run)


def _draw_strip(draw: ImageDraw.ImageDraw, episode: Episode, last: int, top: int) -> None:
    """The context of every state so far; of an agent with one context there is nothing to tell."""
    if episode.contexts == 1:
        return
    last = min(last, len(episode.moments) - 1)
    context = episode.moments[last].context
    colour = CONTEXTS[context % len(CONTEXTS)]
    draw.text((MARGIN, top - 1), f"context {context}", colour, font(12))
    left, width = MARGIN + 62, WIDTH - 62
    length = len(episode.moments)
    for i in range(last + 1):
        x0, x1 = left + i * width // length, left + max((i + 1) * width // length - 1, i * width // length)
        draw.rectangle((x0, top, x1, top + STRIP), CONTEXTS[episode.moments[i].context % len(CONTEXTS)])


def arrays(film: Film) -> Iterator[np.ndarray]:
    return (np.asarray(frame) for frame in film.frames)
