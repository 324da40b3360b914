"""Links between the site and the pages of the repository's own folder, which read well in both places."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ON_THE_SITE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""pages of the repository, and the pages of the site that have their content"""
FILE_NAME = re.compile(r"\[[\w-]+\.md\]\(([\w-]+\.md(?:#[^)]*)?)\)")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(\.\./([^)#]+)(#[^)]*)?\)")


def on_the_site(text: str) -> str:
    """A page of docs/: what is a page of the site is linked there by its title, and a folder is only named.

    >>> on_the_site("[a](../CHANGELOG.md), [`b`](../src/iqrl), [c](../examples/own_task.py), [design.md](design.md#x)")
    '[a](changelog.md), `b`, [c](../examples/own_task.py), [](design.md#x)'
    """

    def link(found: re.Match[str]) -> str:
        if found[2] in ON_THE_SITE:
            return f"[{found[1]}]({ON_THE_SITE[found[2]]})"
        return found[1] if (ROOT / found[2]).is_dir() else found[0]

    return FILE_NAME.sub(r"[](\1)", LINK.sub(link, text))


def from_docs(text: str, folder: str = "") -> str:
    """A page of the repository as if it were one of docs/.

    >>> from_docs("[a](docs/design.md), [b](examples/own_task.py), [c](https://arxiv.org), [d](#here)")
    '[a](design.md), [b](../examples/own_task.py), [c](https://arxiv.org), [d](#here)'
    """
    moved = re.sub(r"\]\((?!https?:|#)", f"](../{folder}", text)
    return on_the_site(re.sub(r"\]\(\.\./(?:\w+/\.\./)?docs/", "](", moved))


def setup(app: Any) -> dict[str, bool]:
    def read(app: Any, page: str, content: list[str]) -> None:
        content[0] = on_the_site(content[0])

    def include(app: Any, path: Path, parent: str, content: list[str]) -> None:
        folder = (ROOT / "docs" / path).resolve().relative_to(ROOT).parent.as_posix()
        content[0] = from_docs(content[0], "" if folder == "." else f"{folder}/")

    app.connect("source-read", read)
    app.connect("include-read", include)
    return {"parallel_read_safe": True}
