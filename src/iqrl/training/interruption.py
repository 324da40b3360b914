"""Ctrl-C and SIGTERM as a request to stop at the next good moment."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any


class Interruption:
    """While entered, the first signal sets `asked`; a second Ctrl-C interrupts at once."""

    def __init__(self) -> None:
        self.asked = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if number == signal.SIGINT:
            print("iqrl: stopping as soon as all is saved; Ctrl-C once more stops at once", file=sys.stderr, flush=True)

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
