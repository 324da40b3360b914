"""A learning curve as a small SVG drawing, made of text alone: for pages and notebooks.

Every seed is a thin line, their mean a thick one, both in the colour of the method. Falls are marked in black: the part
of the seed's line that fell, a band where it went down with a number above it, and a triangle at the lowest point. The
triangle is hollow where the fall did not last.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from iqrl.colours import COLOURS

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 42, 40
INK, PALE, PAPER = "#24292f", "#d0d7de", "#fff"
SEED_OPACITY = 0.5
APART = 12
"""between two numbers"""
POINTS = 400
"""of a line, at most: more cannot be seen"""


class Mark(NamedTuple):
    """A fall of one seed's curve."""

    start: float
    """the step up to which the return was still high"""
    end: float
    path: tuple[tuple[float, float], ...]
    """steps and returns from the high point to the lowest"""
    lasting: bool
    """whether the seed ended low after it"""
    label: str


class Frame(NamedTuple):
    """Where steps and returns are in the drawing."""

    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, step: float) -> float:
        return LEFT + (step - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)

    def down(self, value: float) -> float:
        return TOP + (self.y[1] - value) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM)

    def place(self, step: float, value: float) -> tuple[float, float]:
        return self.across(step), self.down(value)


def draw_curve(
    steps: np.ndarray, returns: np.ndarray, title: str, marks: Sequence[Mark] = (), colour: str | None = None
) -> str:
    """`steps` [periods], `returns` [seeds, periods] with NaN where no episode ended."""
    values = returns[np.isfinite(returns)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    margin = 0.05 * (high - low) or max(abs(high), 1.0) * 0.05
    frame = Frame((0.0, float(max(steps[-1], 1)) if len(steps) else 1.0), (low - margin, high + margin))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'aria-label="{html.escape(title)}" style="max-width:100%;height:auto" font-family="sans-serif" '
        f'font-size="12" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
        f'<text x="{LEFT}" y="18" font-size="13">{html.escape(title)}</text>',
        *_draw_axes(frame),
        *([_draw_legend()] if marks else []),
        *[_draw_band(frame, mark) for mark in marks],
        *_draw_numbers(frame, marks),
        *_draw_lines(frame, steps, returns, colour or COLOURS[0]),
        *[_draw_path(frame, mark) for mark in marks],
        *[_draw_triangle(*frame.place(*mark.path[-1]), mark.lasting) for mark in marks],
    ]
    return "".join(parts) + "</svg>"


def _draw_axes(frame: Frame) -> list[str]:
    parts = []
    for value in nice_ticks(*frame.y):
        y = frame.down(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{PALE}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>')
    for value in nice_ticks(*frame.x):
        anchor = "end" if frame.across(value) > WIDTH - RIGHT - 30 else "middle"
        place = f'x="{frame.across(value):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="{anchor}"'
        parts.append(f"<text {place}>{_short(value)}</text>")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">steps</text>')
    parts.append(f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">return</text>')
    return parts


def _draw_lines(frame: Frame, steps: np.ndarray, returns: np.ndarray, colour: str) -> list[str]:
    thin = [_draw_line(frame, steps, row, colour, 1.0) for row in returns] if len(returns) > 1 else []
    seeds = [f'<g opacity="{SEED_OPACITY}">', *thin, "</g>"]
    finite = np.isfinite(returns)
    mean = np.where(finite, returns, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    return [*seeds, _draw_line(frame, steps, np.where(finite.any(axis=0), mean, np.nan), colour, 2.2)]


def _draw_line(frame: Frame, steps: np.ndarray, values: np.ndarray, colour: str, width: float) -> str:
    shown = np.flatnonzero(np.isfinite(values))
    shown = shown[np.unique(np.linspace(0, len(shown) - 1, POINTS).astype(int))] if len(shown) > POINTS else shown
    points = [(frame.across(float(steps[i])), frame.down(float(values[i]))) for i in shown]
    if len(points) == 1:
        return f'<circle cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="3" fill="{colour}"/>'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'


def _draw_band(frame: Frame, mark: Mark) -> str:
    left, right = frame.across(mark.start), frame.across(mark.end)
    size = f'width="{max(right - left, 2):.1f}" height="{HEIGHT - TOP - BOTTOM}"'
    return f'<rect x="{left:.1f}" y="{TOP}" {size} fill-opacity="{0.14 if mark.lasting else 0.07}"/>'


def _draw_numbers(frame: Frame, marks: Sequence[Mark]) -> list[str]:
    """Above the bands; those that would stand on each other are moved to the right, or back from the edge."""
    places = sorted((frame.across((mark.start + mark.end) / 2), mark.label) for mark in marks)
    across: list[float] = []
    for x, _ in places:
        across.append(max([x, *[left + APART for left in across[-1:]]]))
    edge = float(WIDTH - RIGHT)
    for i in reversed(range(len(across))):
        across[i] = min(across[i], edge)
        edge = across[i] - APART
    return [
        f'<text x="{x:.1f}" y="{TOP - 3}" text-anchor="middle">{html.escape(label)}</text>'
        for x, (_, label) in zip(across, places, strict=True)
    ]


def _draw_path(frame: Frame, mark: Mark) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (frame.place(*point) for point in mark.path))
    return f'<polyline points="{points}" fill="none" stroke="{INK}" stroke-width="1.2" stroke-linejoin="round"/>'


def _draw_triangle(x: float, y: float, filled: bool) -> str:
    return f'<path d="M{x:.1f} {y:.1f}l-5 -9h10z" fill="{INK if filled else PAPER}" stroke="{INK}"/>'


def _draw_legend() -> str:
    """What the triangles say, at the right above the drawing."""
    right = WIDTH - RIGHT
    words = ((right - 206, True, "fall that lasted"), (right - 94, False, "did not last"))
    texts = [_draw_triangle(x, 18, filled) + f'<text x="{x + 9}" y="18">{text}</text>' for x, filled, text in words]
    return "".join(texts)


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers in a span.

    >>> nice_ticks(0, 198), nice_ticks(-1.2, 0.9)
    ([0.0, 50.0, 100.0, 150.0], [-1.0, -0.5, 0.0, 0.5])
    """
    rough = (high - low) / about
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) + 0.0 for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _short(steps: float) -> str:
    """
    >>> _short(0), _short(400_000), _short(2_500_000)
    ('0', '400k', '2.5M')
    """
    if steps >= 1e6:
        return f"{steps / 1e6:g}M"
    return f"{steps / 1000:g}k" if steps >= 1000 else f"{steps:g}"
