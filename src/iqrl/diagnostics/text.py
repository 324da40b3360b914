"""Numbers as they stand in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def number(value: float) -> str:
    """Three significant digits, without an exponent where none is needed.

    >>> number(0.01234), number(14.21), number(12345.6), number(0.0), number(float("nan"))
    ('0.0123', '14.2', '12,346', '0', 'unknown')
    """
    if not np.isfinite(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def three_digits(value: float) -> str:
    """At most three significant digits, with the sign of a number in print.

    >>> three_digits(-0.4921), three_digits(200.0), three_digits(12345.0), three_digits(1.5)
    ('−0.492', '200', '12,300', '1.5')
    """
    if not np.isfinite(value):
        return str(value)
    return f"{float(f'{value:.3g}') + 0.0:,g}".replace("-", "−")


def return_text(value: float) -> str:
    """A return as the tables of results show it."""
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def percent(share: float) -> str:
    """
    >>> percent(0.25), percent(0.9991), percent(0.0012)
    ('25%', '99.9%', '0.1%')
    """
    return f"{100 * share:.0f}%" if 0.01 <= share <= 0.99 or share in (0, 1) else f"{100 * share:.1f}%"


def p_value(p: float) -> str:
    """
    >>> p_value(0.0123), p_value(0.0004)
    ('p = 0.012', 'p < 0.001')
    """
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def count(amount: int, what: str) -> str:
    """
    >>> count(1, "fall"), count(3, "seed")
    ('1 fall', '3 seeds')
    """
    return f"{amount:,} {what}" + ("" if amount == 1 else "s")


def listing(items: Sequence[str], last: str = "and") -> str:
    """
    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    return f"{', '.join(items[:-1])} {last} {items[-1]}" if len(items) > 1 else "".join(items)
