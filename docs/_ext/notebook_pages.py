"""Notebooks as pages: what is stored in them is shown, and nothing is executed.

The usual extension for this brings Jupyter and its kernel, thirty packages; two notebooks need the lines below.
`scripts/notebooks` executes them.
"""

from __future__ import annotations

import json
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser


def page(notebook: dict[str, Any]) -> str:
    """The notebook in Markdown.

    >>> cell = {"cell_type": "code", "source": ["1 + 1"], "outputs": []}
    >>> page({"cells": [cell | {"outputs": [{"output_type": "execute_result", "data": {"text/plain": ["2"]}}]}]})
    '```python\\n1 + 1\\n```\\n\\n```text\\n2\\n```\\n'
    """
    return "\n\n".join(part for cell in notebook["cells"] for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [_fenced("python", source), *map(_shown, cell["outputs"])]


def _shown(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fenced("text", "".join(output["text"]))
    data = output["data"]
    if "image/png" in data:
        alternative = "".join(data.get("text/plain", ["picture"]))
        return f'<img alt="{alternative}" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    return _fenced("text", "".join(data["text/plain"]))


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


class NotebookParser(MystParser):
    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        super().parse(page(json.loads(inputstring)), document)


def setup(app: Any) -> dict[str, bool]:
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
