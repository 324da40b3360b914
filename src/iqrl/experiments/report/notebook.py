"""Progress in a notebook: a bar and a line below the cell, updated in place."""

from __future__ import annotations

import html
import sys
import time
from importlib import import_module
from typing import Any

from iqrl.training.loop import Progress

BETWEEN = 0.2
"""seconds between two updates: each is sent to the browser and kept"""


def in_notebook() -> bool:
    """Whether a kernel runs this: the output goes to a page and not to a terminal."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and hasattr(found, "kernel")


class NotebookDisplay:
    """What `LiveDisplay` is on a terminal. `text`: the line of one moment."""

    def __init__(self, label: str, text: Any):
        self._label, self._text, self._last = label, text, 0.0
        self._shown: Any = None

    def __enter__(self) -> NotebookDisplay:
        page: Any = import_module("IPython.display")  # is there where a notebook is
        self._html = page.HTML
        self._shown = page.display(self._html(f"{html.escape(self._label)}: compiling…"), display_id=True)
        return self

    def __call__(self, progress: Progress) -> None:
        if progress.step < progress.steps and time.monotonic() - self._last < BETWEEN:
            return
        self._last = time.monotonic()
        bar = f'<progress value="{progress.step}" max="{progress.steps}" style="vertical-align:middle"></progress>'
        text = f"{progress.step:,} of {progress.steps:,} steps  {self._text(progress)}"
        self._shown.update(self._html(f"{html.escape(self._label)} {bar} {html.escape(text)}"))

    def __exit__(self, *error: object) -> None:
        pass
