"""Imports go downward only. The order is that of `docs/design.md`."""

import ast
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "iqrl"
LAYERS = (
    "cli", "api sb3", "model callbacks", "exporting watching", "reproduction.beside reproduction.claims", "experiments",
    "reproduction", "diagnostics.explain",
    "diagnostics.analysis", "training", "diagnostics.interference", "training.timetable", "make_run", "methods", "envs",
    "core", "settings",
    "accelerator statistics plugins tracking colours curve_svg diagnostics.metrics diagnostics.text", "files",
    "errors locks", "other_names",
)  # fmt: skip
LEVELS = {name: level for level, names in enumerate(reversed(LAYERS)) for name in names.split()}


def level_of(module: str) -> int:
    """Of the longest known name that it begins with."""
    parts = module.split(".")[1:]
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((LEVELS[name] for name in names if name in LEVELS), -1)


def imports_of(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("iqrl.")
    }


def test_imports_go_downward_only():
    upward = []
    for path in SRC.rglob("*.py"):
        module = ".".join(("iqrl", *path.relative_to(SRC).with_suffix("").parts))
        if path.name == "__init__.py" and not imports_of(path):
            continue  # a docstring
        if path.parent == SRC and path.name.startswith("__"):
            continue  # the names of the package
        assert level_of(module) >= 0, f"{module} has no layer"
        upward += [f"{module} imports {other}" for other in imports_of(path) if level_of(other) > level_of(module)]
    assert not upward
